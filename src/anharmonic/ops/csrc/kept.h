/* What is kept between forward and backward: how it lies, how it is written and read back. */
#ifndef AN_KEPT_H
#define AN_KEPT_H

#include "weights.h"

static int64_t checkpoints_in(int64_t steps, int64_t spacing) {
    return (steps + spacing - 1) / spacing;
}

static char *kept_states(const block *b, const kept *k, int64_t t, int64_t l, int64_t z) {
    const int64_t size = b->c->call->grid ? 8 : sizeof(real);
    const int64_t at = ((t - k->begin) / k->spacing * b->c->call->layers + l) * 2 + z;
    return k->states + at * b->rows * b->c->kept_row * size;
}

/* Between slot 0 of every layer, or its grid state, and what is kept of time t. */
static void move_states(block *b, const kept *k, int64_t t, int keep) {
    const chain *c = b->c;
    const int64_t grid = c->call->grid, size = grid ? sizeof(double) : sizeof(real);
    for (int64_t l = 0; l < c->call->layers; l++)
        for (int z = 0; z < 2; z++) {
            char *here =
                grid ? (char *)(z ? b->grid_z : b->grid_y)[l] : (char *)(z ? b->z : b->y)[l];
            char *there = kept_states(b, k, t, l, z);
            for (int64_t r = 0; r < b->rows; r++) {
                char *own = here + r * c->y_row * size, *saved = there + r * c->kept_row * size;
                memcpy(keep ? saved : own, keep ? own : saved, c->padded * size);
            }
        }
}

static void keep_states(block *b, const kept *k, int64_t t) { move_states(b, k, t, 1); }

/* Puts a grid state into slot `slot` of the tile as reals. */
static void show_grid_state(block *b, int64_t l, int64_t slot) {
    const chain *c = b->c;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < c->padded; j++) {
            state_slot(b, b->y[l], slot, r)[j] = (real)b->grid_y[l][r * c->y_row + j];
            state_slot(b, b->z[l], slot, r)[j] = (real)b->grid_z[l][r * c->y_row + j];
        }
}

static void restore_states(block *b, const kept *k, int64_t t) {
    move_states(b, k, t, 0);
    for (int64_t l = 0; b->c->call->grid && l < b->c->call->layers; l++) show_grid_state(b, l, 0);
}

/* Points layer l's activations of a tile that begins at t to where they are kept. */
static void point_activations(block *b, const kept *k, int64_t t) {
    const chain *c = b->c;
    if (!k || !k->activations) return;
    for (int64_t l = 0; l < c->call->layers; l++)
        b->act[l] = k->activations + (l * k->steps + t - k->begin) * b->rows * act_row(c);
}

static int64_t saved_state_bytes(const chain *c) { /* of one batch row */
    const an_call *k = c->call;
    const int64_t states = k->keep == AN_KEEP_END ? 1 : checkpoints_in(k->steps, k->checkpoint);
    return states * k->layers * 2 * c->kept_row * (k->grid ? 8 : (int64_t)sizeof(real));
}

static int64_t saved_activation_bytes(const chain *c) {
    const an_call *k = c->call;
    const int all = k->keep == AN_KEEP_ALL && !c->model->diagonal;
    return all ? k->layers * k->steps * act_row(c) * (int64_t)sizeof(real) : 0;
}

static kept saved_of(const block *b) {
    const an_call *k = b->c->call;
    const int64_t states = saved_state_bytes(b->c), activations = saved_activation_bytes(b->c);
    char *base = (char *)k->saved + b->first * (states + activations);
    return (kept){
        .states = base,
        .activations = activations ? (real *)(base + b->rows * states) : NULL,
        .begin = 0,
        .steps = k->steps,
        .spacing = k->keep == AN_KEEP_END ? k->steps : k->checkpoint,
    };
}

#endif
