/* The recurrences for one kind of real and one instruction set: compiled with -DAN_REAL=float|double,
 * -DAN_REAL_BYTES=4|8 and -DAN_ENGINE=the name of the table below. */
#include <stdlib.h>

#include "cornn.h"
#include "engine.h"
#include "lem.h"
#include "pool.h"
#include "unicornn.h"
#include "workspace.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the shape of a call ----------------------------------------------------------------- */

static const real *weight(const chain *c, int64_t l, int i) {
    return c->call->weights[l * AN_WEIGHTS + i];
}

/* Which of a layer's weights is what, by model. */
enum { IN = 0, CORNN_BIAS = 3, LEM_BIAS = 3, UNI_W = 1, UNI_BIAS = 2, UNI_C = 3, UNI_SKIP = 4 };

static int is_dense(const chain *c) { return c->call->model != AN_UNICORNN; }
static int is_lem(const chain *c) { return c->call->model >= AN_LEM; }
static int bias_of(const chain *c) { return is_dense(c) ? CORNN_BIAS : UNI_BIAS; }

/* Columns of the drive that the first and second hidden matrix feed. */
static int64_t hidden_columns(const chain *c, int which) {
    if (!is_dense(c)) return 0;
    return is_lem(c) && which == 0 ? (c->sections - 1) * c->section : c->section;
}

static void shape(chain *c, const an_call *call, int backward) {
    *c = (chain){.call = call, .backward = backward, .H = call->hidden};
    c->padded = rounded_up(c->H, LANES);
    c->section = rounded_up(c->H, PANEL);
    c->sections = call->model == AN_LEM_SINGLE_SCALE ? 2 : is_lem(c) ? 4 : 1;
    c->N = c->sections * c->section;
    c->y_row = pitch(c->H);
    c->n_row = pitch(c->N);
    c->kept_row = rounded_up(c->H, KEPT_UNIT);
    c->activations = is_lem(c) ? c->sections : 1;
    c->blocks = (call->batch + call->block - 1) / call->block;
}

/* Packs every `sections` block of H rows of w [sections * H, inputs] as columns (forward) or as the
 * inner index (backward). */
static void pack_forward(const chain *c, real *packed, const real *w, int64_t sections,
                         int64_t inputs) {
    for (int64_t i = 0; i < sections; i++)
        pack(packed + i * c->section * inputs, inputs, c->H, w + i * c->H * inputs, inputs);
}

static void pack_backward(const chain *c, real *packed, const real *w, int64_t sections,
                          int64_t inputs, int64_t stride) {
    for (int64_t n = 0; n < inputs; n += PANEL)
        for (int64_t i = 0; i < sections; i++)
            for (int64_t k = 0; k < stride; k++, packed += PANEL) {
                const int64_t here = k < c->H ? smaller(inputs - n, PANEL) : 0;
                if (here) copy(packed, w + (i * c->H + k) * inputs + n, here);
                if (here < PANEL) clear(packed + here, PANEL - here);
            }
}

static void pad_vector(const chain *c, real *to, const real *from, int64_t sections) {
    clear(to, sections * c->section);
    for (int64_t i = 0; from && i < sections; i++)
        copy(to + i * c->section, from + i * c->H, c->H);
}

/* Lays out (and, once there is memory, packs) the weights; counts the sums of the gradients. */
static void lay_out_weights(chain *c, arena *a) {
    const an_call *k = c->call;
    c->layers = carve(a, k->layers, sizeof(layer));
    c->sums = 0;
    for (int64_t l = 0; l < k->layers; l++) {
        layer w = {.inputs = l ? c->H : k->inputs};
        const int64_t up = rounded_up(w.inputs, PANEL);
        const int skips = k->skip > 0 && l >= k->skip;
        if (skips) w.skip_inputs = l > k->skip ? c->H : k->inputs;
        const int64_t skip_up = rounded_up(w.skip_inputs, PANEL);
        w.in = reals(a, c->N * w.inputs);
        w.bias = reals(a, c->N);
        if (skips) w.skip = reals(a, c->N * w.skip_inputs);
        for (int i = 0; i < 2 && is_dense(c); i++) w.hidden[i] = reals(a, hidden_columns(c, i) * c->H);
        if (!is_dense(c)) {
            w.w = reals(a, c->section);
            w.h = reals(a, c->section);
        }
        if (c->backward) {
            if (l || k->grad_x) w.in_back = reals(a, up * c->N);
            if (skips) w.skip_back = reals(a, skip_up * c->N);
            for (int i = 0; i < 2 && is_dense(c); i++)
                w.hidden_back[i] = reals(a, c->section * (is_lem(c) && i == 0 ? hidden_columns(c, 0) : c->H));
            w.sum_in = c->sums, c->sums += w.inputs * c->N;
            w.sum_bias = c->sums, c->sums += c->N;
            w.sum_skip = c->sums, c->sums += w.skip_inputs * c->N;
            for (int i = 0; i < 2; i++) w.sum_hidden[i] = c->sums, c->sums += c->H * hidden_columns(c, i);
            w.sum_w = c->sums, c->sums += c->section;
            w.sum_h = c->sums, c->sums += c->section;
        }
        if (!a->base) continue;
        c->layers[l] = w;
        pack_forward(c, w.in, weight(c, l, IN), c->sections, w.inputs);
        pad_vector(c, w.bias, weight(c, l, bias_of(c)), c->sections);
        if (skips) pack_forward(c, w.skip, weight(c, l, UNI_SKIP), 1, w.skip_inputs);
        for (int i = 0; i < 2 && is_dense(c); i++)
            pack_forward(c, w.hidden[i], weight(c, l, 1 + i), hidden_columns(c, i) / c->section, c->H);
        if (!is_dense(c)) {
            pad_vector(c, w.w, weight(c, l, UNI_W), 1);
            pad_vector(c, w.h, weight(c, l, UNI_C), 1);
            for (int64_t j = 0; j < c->section; j += LANES) /* h = dt sigmoid(c) */
                store(w.h + j, splat((real)k->layer_dt[l]) * sigmoid_of(load(w.h + j)));
        }
        if (!c->backward) continue;
        if (w.in_back)
            pack_backward(c, w.in_back, weight(c, l, IN), c->sections, w.inputs, c->section);
        if (skips)
            pack_backward(c, w.skip_back, weight(c, l, UNI_SKIP), 1, w.skip_inputs, c->section);
        for (int i = 0; i < 2 && is_dense(c); i++) {
            const int wide = is_lem(c) && i == 0;
            pack_backward(c, w.hidden_back[i], weight(c, l, 1 + i),
                          wide ? hidden_columns(c, 0) / c->section : 1, c->H,
                          wide ? c->section : c->H);
        }
    }
    if (c->backward) {
        c->all_sums = reals(a, c->blocks * c->sums);
        c->all_scalars = carve(a, c->blocks * 3, sizeof(double));
    }
}

/* Steps of one chunk of the backward pass, and whether it is walked again into a workspace. */
static int64_t chunk_steps(const chain *c) {
    const an_call *k = c->call;
    return k->keep == AN_KEEP_CHECKPOINTS ? k->checkpoint : k->steps;
}

static int walks_chunks_again(const chain *c) {
    const an_call *k = c->call;
    return k->keep == AN_KEEP_CHECKPOINTS && (is_dense(c) || k->checkpoint > k->tile);
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
        spare = (count) > 0 ? reals(a, count) : NULL;                                                  \
        if (a->base) (table)[index] = spare;                                                       \
    } while (0)
    for (int64_t l = 0; l < L; l++) {
        PLACE(b->y, l, (tile + 1) * rows * c->y_row);
        PLACE(b->z, l, (tile + 1) * rows * c->y_row);
        /* Activations of dense models lie where they are kept. */
        PLACE(b->act, l, c->backward && !is_dense(c) ? tile * rows * act_row(c) : 0);
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
    b->scratch = is_dense(c) ? NULL : reals(a, 2 * c->padded);
    if (walks_chunks_again(c)) {
        const int64_t steps = chunk_steps(c), size = k->grid ? 8 : sizeof(real);
        b->chunk.states = carve(a, checkpoints_in(steps, tile) * L * 2 * rows * c->kept_row, size);
        b->chunk.activations = is_dense(c) ? reals(a, L * steps * rows * act_row(c)) : NULL;
        b->chunk.steps = steps;
        b->chunk.spacing = tile;
    }
#undef PLACE
}

/* ---- one block --------------------------------------------------------------------------- */

static int64_t saved_state_bytes(const chain *c) { /* of one batch row */
    const an_call *k = c->call;
    const int64_t states = k->keep == AN_KEEP_END ? 1 : checkpoints_in(k->steps, k->checkpoint);
    return states * k->layers * 2 * c->kept_row * (k->grid ? 8 : (int64_t)sizeof(real));
}

static int64_t saved_activation_bytes(const chain *c) {
    const an_call *k = c->call;
    const int all = k->keep == AN_KEEP_ALL && is_dense(c);
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

/* Zeros everything: padding must hold no garbage, then lays out. */
static block start_block(const chain *c, int64_t index, char *memory) {
    const an_call *k = c->call;
    block b = {.c = c, .first = index * k->block};
    b.rows = k->batch - b.first < k->block ? k->batch - b.first : k->block;
    for (int64_t r = 0; r < b.rows; r++)
        if (length_of(&b, r) > b.steps) b.steps = length_of(&b, r);
    memset(memory, 0, c->block_bytes);
    arena a = {.base = memory};
    lay_out_block(&b, &a);
    return b;
}

static void walk_layer(block *b, int64_t l, int64_t t, int64_t n) {
    switch (b->c->call->model) {
        case AN_UNICORNN:
            if (b->c->call->grid)
                unicornn_grid_walk(b, l, t, n);
            else
                unicornn_walk(b, l, t, n);
            break;
        case AN_CORNN_EXPLICIT:
        case AN_CORNN_IMPLICIT: cornn_walk(b, l, t, n, 0); break;
        default: lem_walk(b, l, t, n, 0);
    }
}

/* Walks n steps from slot 0 of every layer; activations go to `k` if it keeps them. */
static void walk_tile(block *b, int64_t t, int64_t n, const kept *k) {
    point_activations(b, k, t);
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        make_drive(b, l, n);
        walk_layer(b, l, t, n);
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

static void load_initial_states(block *b) {
    const chain *c = b->c;
    const an_call *k = c->call;
    for (int64_t l = 0; l < k->layers; l++)
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = (l * k->batch + b->first + r) * c->H;
            const real *y = (const real *)k->y0 + at, *z = (const real *)k->z0 + at;
            copy(state_slot(b, b->y[l], 0, r), y, c->H);
            copy(state_slot(b, b->z[l], 0, r), z, c->H);
            if (!k->grid) continue;
            double *grid_y = b->grid_y[l] + r * c->y_row, *grid_z = b->grid_z[l] + r * c->y_row;
            for (int64_t j = 0; j < c->H; j++) {
                grid_y[j] = ((double)y[j] + GRID_SHIFTER) - GRID_SHIFTER;
                grid_z[j] = ((double)z[j] + GRID_SHIFTER) - GRID_SHIFTER;
                if (!(grid_y[j] < GRID_LIMIT && grid_y[j] > -GRID_LIMIT && grid_z[j] < GRID_LIMIT &&
                      grid_z[j] > -GRID_LIMIT))
                    b->overflow = 1;
            }
        }
    if (k->grid)
        for (int64_t l = 0; l < k->layers; l++) show_grid_state(b, l, 0);
}

static void store_final_states(block *b) {
    const chain *c = b->c;
    const an_call *k = c->call;
    for (int64_t l = 0; l < k->layers; l++)
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = (l * k->batch + b->first + r) * c->H;
            copy((real *)k->y_n + at, state_slot(b, b->y[l], 0, r), c->H);
            copy((real *)k->z_n + at, state_slot(b, b->z[l], 0, r), c->H);
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
    load_initial_states(&b);
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
    store_final_states(&b);
    if (b.overflow) __atomic_store_n(&c->status, AN_GRID_OVERFLOW, __ATOMIC_RELAXED);
    an_workspace_give(memory);
}

/* Fills the tile's states, activations and levels from what is known at its start. */
static void bring_back_tile(block *b, int64_t t, int64_t n, const kept *k) {
    if (!is_dense(b->c)) {
        walk_tile(b, t, n, k);
        return;
    }
    point_activations(b, k, t);
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        if (is_lem(b->c))
            lem_walk(b, l, t, n, 1);
        else
            cornn_walk(b, l, t, n, 1);
        show_level(b, l, n);
    }
}

/* The same from the grid states at its end, which become those at its start. */
static void undo_tile(block *b, int64_t t, int64_t n) {
    load_inputs(b, t, n);
    for (int64_t l = 0; l < b->c->call->layers; l++) {
        make_drive(b, l, n);
        unicornn_grid_undo(b, l, t, n);
        show_level(b, l, n);
    }
}

static void back_through_tile(block *b, int64_t t, int64_t n) {
    const chain *c = b->c;
    const an_call *k = c->call;
    load_output_gradients(b, t, n);
    if (k->skip > 0)
        for (int64_t l = 0; l < k->layers; l++)
            clear(b->grad_level[l],
                  n * b->rows * (l ? c->y_row : pitch(k->inputs)));
    for (int64_t l = k->layers - 1; l >= 0; l--) {
        if (l < k->layers - 1) thin_level_gradient(b, l, n);
        if (k->model == AN_UNICORNN)
            unicornn_back(b, l, t, n);
        else if (is_lem(c))
            lem_back(b, l, t, n);
        else
            cornn_back(b, l, t, n);
        spread_drive_gradient(b, l, n);
    }
    if (k->grad_x) store_input_gradients(b, t, n);
}

static void load_state_gradients(block *b) {
    const chain *c = b->c;
    const an_call *k = c->call;
    for (int64_t l = 0; l < k->layers; l++)
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = (l * k->batch + b->first + r) * c->H;
            if (k->grad_y_n) copy(b->dy[l] + r * c->y_row, (const real *)k->grad_y_n + at, c->H);
            if (k->grad_z_n) copy(b->dz[l] + r * c->y_row, (const real *)k->grad_z_n + at, c->H);
        }
}

static void store_state_gradients(block *b) {
    const chain *c = b->c;
    const an_call *k = c->call;
    for (int64_t l = 0; l < k->layers; l++)
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = (l * k->batch + b->first + r) * c->H;
            if (k->grad_y0) copy((real *)k->grad_y0 + at, b->dy[l] + r * c->y_row, c->H);
            if (k->grad_z0) copy((real *)k->grad_z0 + at, b->dz[l] + r * c->y_row, c->H);
        }
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
    b.sums = c->all_sums + index * c->sums;
    b.scalars = c->all_scalars + index * 3;
    clear(b.sums, c->sums);
    memset(b.scalars, 0, 3 * sizeof(double));
    clear_beyond(&b);
    load_state_gradients(&b);
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
    store_state_gradients(&b);
    an_workspace_give(memory);
}

/* ---- the whole call ---------------------------------------------------------------------- */

/* to [sections * H, inputs] = the sum over blocks of their sums [inputs, sections * section]. */
static void reduce(const chain *c, real *to, int64_t at, int64_t inputs, int64_t sections) {
    if (!to) return;
    const int64_t columns = sections * c->section;
    for (int64_t k = 0; k < inputs; k++)
        for (int64_t i = 0; i < sections; i++)
            for (int64_t j = 0; j < c->H; j++) {
                real sum = 0;
                for (int64_t b = 0; b < c->blocks; b++)
                    sum += c->all_sums[b * c->sums + at + k * columns + i * c->section + j];
                to[(i * c->H + j) * inputs + k] = sum;
            }
}

static void reduce_all(const chain *c) {
    const an_call *call = c->call;
    for (int64_t l = 0; l < call->layers; l++) {
        const layer *w = &c->layers[l];
        real *const *to = (real *const *)call->grad_weights + l * AN_WEIGHTS;
        reduce(c, to[IN], w->sum_in, w->inputs, c->sections);
        reduce(c, to[bias_of(c)], w->sum_bias, 1, c->sections);
        if (is_dense(c)) {
            for (int i = 0; i < 2; i++)
                reduce(c, to[1 + i], w->sum_hidden[i], c->H, hidden_columns(c, i) / c->section);
        } else {
            reduce(c, to[UNI_W], w->sum_w, 1, 1);
            reduce(c, to[UNI_C], w->sum_h, 1, 1);
            real *dc = to[UNI_C]; /* dh / dc = h (1 - sigmoid(c)) */
            for (int64_t j = 0; dc && j < c->H; j++)
                dc[j] *= w->h[j] * (1 - w->h[j] / (real)call->layer_dt[l]);
            if (w->skip) reduce(c, to[UNI_SKIP], w->sum_skip, w->skip_inputs, 1);
        }
    }
    for (int i = 0; call->grad_scalars && i < 3; i++) {
        call->grad_scalars[i] = 0;
        for (int64_t b = 0; b < c->blocks; b++) call->grad_scalars[i] += c->all_scalars[b * 3 + i];
    }
}

static int run(const an_call *call, int backward) {
    chain c;
    shape(&c, call, backward);
    arena count = {0};
    lay_out_weights(&c, &count);
    block widest = {.c = &c, .rows = smaller(call->block, call->batch)};
    arena count_block = {0};
    lay_out_block(&widest, &count_block);
    c.block_bytes = count_block.used;
    char *memory = an_workspace_take(count.used);
    if (!memory) return AN_NO_MEMORY;
    arena a = {.base = memory};
    lay_out_weights(&c, &a);
    const int64_t cells = call->steps * call->batch * (int64_t)sizeof(real);
    if (backward && call->grad_x) an_advise_huge(call->grad_x, cells * call->inputs);
    if (!backward && call->output) an_advise_huge(call->output, cells * c.H);
    if (!backward && call->keep)
        an_advise_huge(call->saved,
                       call->batch * (saved_state_bytes(&c) + saved_activation_bytes(&c)));
    an_parallel(c.blocks, (int)call->threads, backward ? backward_block : forward_block, &c);
    if (backward && c.status == AN_OK) reduce_all(&c);
    an_workspace_give(memory);
    return c.status;
}

static int forward(const an_call *call) { return run(call, 0); }
static int backward(const an_call *call) { return run(call, 1); }

static void elementary(int which, const void *from, void *to, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        real in[LANES] = {0}, out[LANES];
        const int64_t here = smaller(LANES, n - i);
        copy(in, (const real *)from + i, here);
        const vec x = load(in);
        store(out, which == 0 ? tanh_of(x) : which == 1 ? sigmoid_of(x) : exp_of(x));
        copy((real *)to + i, out, here);
    }
}

const an_engine AN_ENGINE = {forward, backward, elementary};
