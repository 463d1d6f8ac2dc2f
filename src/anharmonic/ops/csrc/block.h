/* One block of batch rows, walked through the whole sequence: forward, and backward. */
#ifndef AN_BLOCK_H
#define AN_BLOCK_H

#include "cornn.h"
#include "kept.h"
#include "lem.h"
#include "unicornn.h"
#include "weights.h"
#include "workspace.h"

static const model models[] = {
    [AN_CORNN_EXPLICIT] = {cornn_walk, cornn_rebuild, cornn_back, .bias = 3, .sections = 1,
                           .hidden = {1, 1}},
    [AN_CORNN_IMPLICIT] = {cornn_walk, cornn_rebuild, cornn_back, .bias = 3, .sections = 1,
                           .hidden = {1, 1}},
    [AN_UNICORNN] = {unicornn_walk, NULL, unicornn_back, unicornn_grid_walk, unicornn_grid_undo,
                     .diagonal = 1, .bias = 2, .sections = 1},
    [AN_LEM] = {lem_walk, lem_rebuild, lem_back, .bias = 3, .sections = 4, .hidden = {3, 1}},
    [AN_LEM_CLIPPED] = {lem_walk, lem_rebuild, lem_back, .bias = 3, .sections = 4,
                        .hidden = {3, 1}},
    [AN_LEM_SINGLE_SCALE] = {lem_walk, lem_rebuild, lem_back, .bias = 3, .sections = 2,
                             .hidden = {1, 1}},
};

/* Steps of one chunk of the backward pass, and whether it is walked again into a workspace. */
static int64_t chunk_steps(const chain *c) {
    const an_call *k = c->call;
    return k->keep == AN_KEEP_CHECKPOINTS ? k->checkpoint : k->steps;
}

static int walks_chunks_again(const chain *c) {
    const an_call *k = c->call;
    return k->keep == AN_KEEP_CHECKPOINTS && (!c->model->diagonal || k->checkpoint > k->tile);
}

static void lay_out_block(block *b, arena *a) {
    const chain *c = b->c;
    const an_call *k = c->call;
    const int64_t L = k->layers, rows = b->rows, tile = k->tile;
    real ***tables[] = {&b->y, &b->z, &b->act, &b->masked, &b->dy, &b->dz};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = carve(a, L, sizeof(real *));
    b->level = carve(a, L + 1, sizeof(real *));
    b->grad_level = carve(a, L + 1, sizeof(real *));
    b->grid_y = carve(a, L, sizeof(double *));
    b->grid_z = carve(a, L, sizeof(double *));
    real *spare;
    double *spare_grid;
#define PLACE(table, index, count)                                                                 \
    do {                                                                                           \
        spare = (count) > 0 ? reals(a, count) : NULL;                                              \
        if (a->base) (table)[index] = spare;                                                       \
    } while (0)
    for (int64_t l = 0; l < L; l++) {
        PLACE(b->y, l, (tile + 1) * rows * c->y_row);
        PLACE(b->z, l, (tile + 1) * rows * c->y_row);
        /* Other models' activations lie where they are kept. */
        PLACE(b->act, l, c->backward && c->model->diagonal ? tile * rows * act_row(c) : 0);
        PLACE(b->masked, l, k->masks && l < L - 1 ? tile * rows * c->y_row : 0);
        PLACE(b->dy, l, c->backward ? rows * c->y_row : 0);
        PLACE(b->dz, l, c->backward ? rows * c->y_row : 0);
        spare_grid = k->grid ? carve(a, rows * c->y_row, sizeof(double)) : NULL;
        if (a->base) b->grid_y[l] = spare_grid;
        spare_grid = k->grid ? carve(a, rows * c->y_row, sizeof(double)) : NULL;
        if (a->base) b->grid_z[l] = spare_grid;
    }
    PLACE(b->level, 0, tile * rows * pitch(k->inputs));
    b->drive = reals(a, tile * rows * c->n_row);
    if (!c->backward) return;
    for (int64_t l = 0; l <= L; l++)
        PLACE(b->grad_level, l, tile * rows * (l ? c->y_row : pitch(k->inputs)));
    b->scratch = c->model->diagonal ? reals(a, 2 * c->padded) : NULL;
    if (walks_chunks_again(c)) {
        const int64_t steps = chunk_steps(c), size = k->grid ? 8 : sizeof(real);
        b->chunk.states = carve(a, checkpoints_in(steps, tile) * L * 2 * rows * c->kept_row, size);
        b->chunk.activations = c->model->diagonal ? NULL : reals(a, L * steps * rows * act_row(c));
        b->chunk.steps = steps;
        b->chunk.spacing = tile;
    }
#undef PLACE
}

/* ---- one block --------------------------------------------------------------------------- */

/* Zeros everything: padding must hold no garbage, then lays out. */
static block start_block(const chain *c, int64_t index, char *memory) {
    const an_call *k = c->call;
    block b = {.c = c, .first = index * k->block};
    b.rows = smaller(k->block, k->batch - b.first);
    for (int64_t r = 0; r < b.rows; r++)
        if (length_of(&b, r) > b.steps) b.steps = length_of(&b, r);
    memset(memory, 0, c->block_bytes);
    arena a = {.base = memory};
    lay_out_block(&b, &a);
    return b;
}

/* Walks n steps from slot 0 of every layer; activations go to `k` if it keeps them. */
static void walk_tile(block *b, int64_t t, int64_t n, const kept *k) {
    const model *m = b->c->model;
    step_function *walk = b->c->call->grid ? m->grid_walk : m->walk;
    point_activations(b, k, t);
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        make_drive(b, l, n);
        walk(b, l, t, n);
        show_level(b, l, n);
    }
}

static void carry_over(block *b, int64_t n) {
    const int64_t size = b->rows * b->c->y_row;
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        copy(b->y[l], b->y[l] + n * size, size);
        copy(b->z[l], b->z[l] + n * size, size);
    }
}

/* Where row r of the caller's states [L, B, H], or of their gradients, begins in layer l. */
static int64_t caller_row(const block *b, int64_t l, int64_t r) {
    return (l * b->c->call->batch + b->first + r) * b->c->H;
}

/* Rows of every layer, y_row apart, from the caller's array, and back; NULL is passed over. */
static void take_rows(const block *b, real *const *rows, const void *from) {
    for (int64_t l = 0; from && l < b->c->call->layers; l++)
        for (int64_t r = 0; r < b->rows; r++)
            copy(rows[l] + r * b->c->y_row, (const real *)from + caller_row(b, l, r), b->c->H);
}

static void give_rows(const block *b, void *to, real *const *rows) {
    for (int64_t l = 0; to && l < b->c->call->layers; l++)
        for (int64_t r = 0; r < b->rows; r++)
            copy((real *)to + caller_row(b, l, r), rows[l] + r * b->c->y_row, b->c->H);
}

/* Slot 0 of every layer rounded to the grid. */
static void put_on_grid(block *b) {
    const chain *c = b->c;
    for (int64_t l = 0; l < c->call->layers; l++) {
        for (int64_t r = 0; r < b->rows; r++)
            for (int64_t j = 0; j < c->H; j++) {
                double *y = b->grid_y[l] + r * c->y_row + j, *z = b->grid_z[l] + r * c->y_row + j;
                *y = ((double)state_slot(b, b->y[l], 0, r)[j] + GRID_SHIFTER) - GRID_SHIFTER;
                *z = ((double)state_slot(b, b->z[l], 0, r)[j] + GRID_SHIFTER) - GRID_SHIFTER;
                if (off_grid(*y) || off_grid(*z)) b->overflow = 1;
            }
        show_grid_state(b, l, 0);
    }
}

static void forward_block(void *context, int64_t index) {
    chain *c = context;
    const an_call *k = c->call;
    char *memory = an_workspace_take(c->block_bytes);
    if (!memory) {
        __atomic_store_n(&c->status, AN_NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    block b = start_block(c, index, memory);
    const kept saved = k->keep ? saved_of(&b) : (kept){0};
    take_rows(&b, b.y, k->y0);
    take_rows(&b, b.z, k->z0);
    if (k->grid) put_on_grid(&b);
    for (int64_t t = 0; t < b.steps; t += k->tile) {
        const int64_t n = smaller(k->tile, b.steps - t);
        if ((k->keep == AN_KEEP_ALL || k->keep == AN_KEEP_CHECKPOINTS) && t % k->checkpoint == 0)
            keep_states(&b, &saved, t);
        walk_tile(&b, t, n, &saved);
        if (k->output) store_outputs(&b, t, n);
        carry_over(&b, n);
    }
    if (k->output) store_outputs(&b, b.steps, k->steps - b.steps); /* zeros beyond the longest */
    if (k->keep == AN_KEEP_END) keep_states(&b, &saved, 0);
    give_rows(&b, k->y_n, b.y);
    give_rows(&b, k->z_n, b.z);
    if (b.overflow) __atomic_store_n(&c->status, AN_GRID_OVERFLOW, __ATOMIC_RELAXED);
    an_workspace_give(memory);
}

/* Fills the tile's states, activations and levels from what is known at its start. */
static void bring_back_tile(block *b, int64_t t, int64_t n, const kept *k) {
    if (b->c->model->diagonal) {
        walk_tile(b, t, n, k);
        return;
    }
    point_activations(b, k, t);
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        b->c->model->rebuild(b, l, t, n);
        show_level(b, l, n);
    }
}

/* The same from the grid states at its end, which become those at its start. */
static void undo_tile(block *b, int64_t t, int64_t n) {
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        make_drive(b, l, n);
        b->c->model->grid_undo(b, l, t, n);
        show_level(b, l, n);
    }
}

static void back_through_tile(block *b, int64_t t, int64_t n) {
    const chain *c = b->c;
    const an_call *k = c->call;
    load_output_gradients(b, t, n);
    if (k->skip > 0)
        for (int64_t l = 0; l < k->layers; l++)
            clear(b->grad_level[l], n * b->rows * (l ? c->y_row : pitch(k->inputs)));
    for (int64_t l = k->layers - 1; l >= 0; l--) {
        if (l < k->layers - 1) thin_level_gradient(b, l, n);
        c->model->back(b, l, t, n);
        spread_drive_gradient(b, l, n);
    }
    if (k->grad_x) store_input_gradients(b, t, n);
}

static void clear_beyond(block *b) {
    const an_call *k = b->c->call;
    if (k->grad_x) store_input_gradients(b, b->steps, k->steps - b->steps);
    if (k->grad_elapsed)
        for (int64_t t = 0; t < k->steps; t++)
            clear((real *)k->grad_elapsed + t * k->batch + b->first, b->rows);
}

static void backward_block(void *context, int64_t index) {
    chain *c = context;
    const an_call *k = c->call;
    char *memory = an_workspace_take(c->block_bytes);
    if (!memory) {
        __atomic_store_n(&c->status, AN_NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    block b = start_block(c, index, memory);
    for (int64_t i = 0; i < groups_in(&b); i++) {
        clear(group_of(&b, i).sums, c->sums);
        memset(group_of(&b, i).scalars, 0, 3 * sizeof(double));
    }
    clear_beyond(&b);
    take_rows(&b, b.dy, k->grad_y_n);
    take_rows(&b, b.dz, k->grad_z_n);
    const kept saved = saved_of(&b);
    if (k->keep == AN_KEEP_END && b.steps > 0) restore_states(&b, &saved, 0);
    const int64_t chunk = chunk_steps(c);
    const int again = walks_chunks_again(c);
    for (int64_t begin = (b.steps - 1) / chunk * chunk; begin >= 0; begin -= chunk) {
        const int64_t end = smaller(begin + chunk, b.steps);
        kept here = saved;
        if (again) {
            here = b.chunk;
            here.begin = begin;
            restore_states(&b, &saved, begin);
            for (int64_t t = begin; t < end; t += k->tile) {
                keep_states(&b, &here, t);
                walk_tile(&b, t, smaller(k->tile, end - t), &here);
                carry_over(&b, smaller(k->tile, end - t));
            }
        }
        for (int64_t t = begin + (end - 1 - begin) / k->tile * k->tile; t >= begin; t -= k->tile) {
            const int64_t n = smaller(k->tile, end - t);
            if (k->keep == AN_KEEP_END) {
                undo_tile(&b, t, n);
            } else {
                restore_states(&b, &here, t);
                bring_back_tile(&b, t, n, &here);
            }
            back_through_tile(&b, t, n);
        }
    }
    give_rows(&b, k->grad_y0, b.dy);
    give_rows(&b, k->grad_z0, b.dz);
    an_workspace_give(memory);
}

#endif
