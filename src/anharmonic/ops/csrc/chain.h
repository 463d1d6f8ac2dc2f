/* What all models share when block.h walks a stack of layers over time in tiles.
 *
 * Rows of the batch never meet before the weight gradients, so that each block of rows walks the
 * whole stack through the whole sequence on its own, on whatever thread. Time goes in tiles of
 * `tile` steps: one product makes the drive V u_n + b of a layer for the tile, the layer's
 * recurrence runs over data still in cache, then comes the layer above. Backward, each tile's
 * states are brought back first (from what was kept, by walking again from a checkpoint, or by
 * undoing the steps on the grid), then the gradient runs through the tile from top to bottom, and
 * the weight gradients of the tile are products over its rows.
 *
 * Per layer a tile holds y and z in slots 0..tile (slot 0 is the state before its first step), the
 * activations, and levels: level 0 is the input, level l + 1 what layer l shows to the one above.
 */
#ifndef AN_CHAIN_H
#define AN_CHAIN_H

#include <stddef.h>

#include "anharmonic.h"
#include "elementary.h"
#include "product.h"

#define KEPT_UNIT 16 /* kept rows are padded to a multiple of this on every instruction set */

/* A bump allocator; with base NULL it only counts. */
typedef struct {
    char *base;
    size_t used;
} arena;

static void *carve(arena *a, int64_t count, size_t size) {
    size_t at = a->used;
    a->used += ((size_t)count * size + 63) & ~(size_t)63;
    return a->base ? a->base + at : NULL;
}

static real *reals(arena *a, int64_t count) { return carve(a, count, sizeof(real)); }

/* Rows of a tile are kept apart by a pitch that does not fall onto few cache sets. */
static int64_t pitch(int64_t n) {
    int64_t padded = rounded_up(n, n > LANES ? PANEL : LANES);
    if (padded < PANEL) padded = PANEL;
    return padded * (int64_t)sizeof(real) % 512 ? padded : padded + 64 / (int64_t)sizeof(real);
}

typedef struct { /* one layer's weights, packed, and where its gradients are summed */
    int64_t inputs, skip_inputs;
    operand *in, *skip, *hidden[2], *in_back, *skip_back, *hidden_back[2];
    real *bias, *w, *h;
    int64_t sum_in, sum_skip, sum_bias, sum_hidden[2], sum_w, sum_h;
} layer;

/* What the library knows of a model; a row of the table in block.h. Functions take a layer, and n
 * steps from t on. A diagonal model's neurons meet in the drive alone: it has vectors w and c in
 * place of hidden matrices, and keeps no activations, so that a tile is walked again. */
typedef struct block block;
typedef void step_function(block *b, int64_t l, int64_t t, int64_t n);
typedef struct {
    step_function *walk;    /* from slot 0 of the tile */
    step_function *rebuild; /* the same where the activations are known; NULL if diagonal */
    step_function *back;    /* from the gradients behind the last step to those before the first */
    step_function *grid_walk; /* `walk` on the grid, or NULL */
    step_function *grid_undo; /* from the state after the last step to slot 0, or NULL */
    int diagonal, bias;       /* which of the weights is the bias */
    int sections;             /* H rows each in V and b; as many activations in a step */
    int hidden[2];            /* sections that each hidden matrix feeds, the second one the last:
                                 LEM's W the gates and z (3), its Wy the section of y (1) */
} model;

typedef struct { /* what all blocks of a call share */
    const an_call *call;
    const model *model;
    int64_t H, padded;              /* neurons; as many as vector loops run over */
    int64_t section, sections, N;   /* drive columns: sections of neurons, padded to panels */
    int64_t y_row, n_row, kept_row; /* pitches of states, drives and kept rows */
    layer *layers;
    int64_t sums;           /* reals of one block's weight gradients */
    real *all_sums;         /* [groups][sums] */
    double *all_scalars;    /* [groups][3] */
    int64_t blocks, groups; /* of rows that walk together; whose gradients are summed */
    size_t block_bytes;
    int backward, status;
} chain;

typedef struct {       /* states and activations of a stretch of time */
    char *states;      /* [checkpoints][L][2][rows][kept_row] of reals, of doubles on the grid */
    real *activations; /* [L][steps][rows][activations * kept_row], or NULL */
    int64_t begin, steps, spacing;
} kept;

struct block { /* one block of rows at work */
    const chain *c;
    int64_t first, rows, steps; /* steps: of its longest sequence */
    real **y, **z, **act, **level, **masked;
    double **grid_y, **grid_z;
    real *drive; /* [tile * rows][n_row]; backward, the gradient of the drive */
    real **grad_level, **dy, **dz;
    real *scratch; /* gradients of w and h of one tile and group (UnICORNN) */
    kept chunk;    /* workspace of the chunk that is walked again */
    int overflow;
};

AN_INLINE int64_t length_of(const block *b, int64_t row) {
    const int64_t *lengths = b->c->call->lengths;
    return lengths ? lengths[b->first + row] : b->c->call->steps;
}

AN_INLINE real elapsed_at(const block *b, int64_t t, int64_t row) {
    const an_call *k = b->c->call;
    return k->elapsed ? ((const real *)k->elapsed)[t * k->batch + b->first + row] : 1;
}

AN_INLINE void add_elapsed_gradient(const block *b, int64_t t, int64_t row, vec v) {
    const an_call *k = b->c->call;
    ((real *)k->grad_elapsed)[t * k->batch + b->first + row] += sum_of_lanes(v);
}

AN_INLINE real *state_slot(const block *b, real *tile, int64_t slot, int64_t row) {
    return tile + (slot * b->rows + row) * b->c->y_row;
}

AN_INLINE real *drive_row(const block *b, int64_t step, int64_t row) {
    return b->drive + (step * b->rows + row) * b->c->n_row;
}

AN_INLINE int64_t act_row(const chain *c) { return c->sections * c->kept_row; }

/* Columns of the drive that a hidden matrix feeds. */
static int64_t hidden_columns(const chain *c, int which) {
    return c->model->hidden[which] * c->section;
}

/* The inner index of a hidden matrix backward: several blocks of rows lie as in the drive. */
static int64_t hidden_inner(const chain *c, int which) {
    return c->model->hidden[which] > 1 ? hidden_columns(c, which) : c->H;
}

/* Asks for the activations of the tile before, at the same step and row: what was kept lies in main
 * memory, and products do not wait for it. */
AN_INLINE void prefetch_tile_before(const block *b, const real *act) {
    const int64_t size = act_row(b->c);
    act -= b->c->call->tile * b->rows * size;
    for (int64_t i = 0; i < size; i += 64 / (int64_t)sizeof(real))
        __builtin_prefetch(act + i, 0, 2);
}

/* The gradient that arrives at layer l's output at one step and row; NULL if there is none. */
AN_INLINE const real *output_gradient(const block *b, int64_t l, int64_t t, int64_t step,
                                      int64_t row) {
    const an_call *k = b->c->call;
    if (l == k->layers - 1) {
        if (!k->grad_output) return NULL;
        if (b->c->H == b->c->padded)
            return (const real *)k->grad_output + t * k->grad_output_time +
                   (b->first + row) * k->grad_output_batch;
    }
    return b->grad_level[l + 1] + (step * b->rows + row) * b->c->y_row;
}

static void copy(real *to, const real *from, int64_t n) { memcpy(to, from, n * sizeof(real)); }
static void clear(real *to, int64_t n) { memset(to, 0, n * sizeof(real)); }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- between the caller's arrays and the tile -------------------------------------------- */

static void load_inputs(block *b, int64_t t, int64_t n) {
    const an_call *k = b->c->call;
    const int64_t row = pitch(k->inputs);
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++) {
            real *to = b->level[0] + (s * b->rows + r) * row;
            if (t + s < length_of(b, r))
                copy(to, (const real *)k->x + (t + s) * k->x_time + (b->first + r) * k->x_batch,
                     k->inputs);
            else
                clear(to, k->inputs);
        }
}

/* To rows [n, B, width] of the caller's, zeros behind the end of each sequence. */
static void store_rows(const block *b, int64_t t, int64_t n, void *caller, int64_t time,
                       int64_t batch, const real *from, int64_t row, int64_t width) {
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++) {
            real *to = (real *)caller + (t + s) * time + (b->first + r) * batch;
            if (t + s < length_of(b, r))
                copy(to, from + (s * b->rows + r) * row, width);
            else
                clear(to, width);
        }
}

static void store_outputs(const block *b, int64_t t, int64_t n) {
    const an_call *k = b->c->call;
    store_rows(b, t, n, k->output, k->output_time, k->output_batch,
               state_slot(b, b->y[k->layers - 1], 1, 0), b->c->y_row, k->hidden);
}

static void store_input_gradients(const block *b, int64_t t, int64_t n) {
    const an_call *k = b->c->call;
    store_rows(b, t, n, k->grad_x, k->grad_x_time, k->grad_x_batch, b->grad_level[0],
               pitch(k->inputs), k->inputs);
}

static void load_output_gradients(block *b, int64_t t, int64_t n) {
    const an_call *k = b->c->call;
    if (!k->grad_output || b->c->H == b->c->padded) return;
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++)
            copy(b->grad_level[k->layers] + (s * b->rows + r) * b->c->y_row,
                 (const real *)k->grad_output + (t + s) * k->grad_output_time +
                     (b->first + r) * k->grad_output_batch,
                 k->hidden);
}

/* ---- the stack within a tile ------------------------------------------------------------- */

/* Zeros between the neurons of a section and its end: an infinite input times the zeros of packed
 * weights is NaN there, which must not come back in a sum. */
static void clear_padding(block *b, int64_t rows) {
    const chain *c = b->c;
    for (int64_t r = 0; c->H < c->section && r < rows; r++)
        for (int64_t i = 0; i < c->sections; i++)
            clear(b->drive + r * c->n_row + i * c->section + c->H, c->section - c->H);
}

/* The drive of layer l for n steps: V level + b, and the skipped level through its matrix. */
static void make_drive(block *b, int64_t l, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    product(b->level[l], pitch(w->inputs), n * b->rows, w->in, w->inputs, c->N, b->drive, c->n_row,
            0, w->bias);
    if (w->skip)
        product(b->level[l - c->call->skip], pitch(w->skip_inputs), n * b->rows, w->skip,
                w->skip_inputs, c->N, b->drive, c->n_row, 1, 0);
    clear_padding(b, n * b->rows);
}

/* to = from times the mask of layer l, for n steps. */
static void thin(const block *b, int64_t l, int64_t n, real *to, const real *from) {
    const chain *c = b->c;
    const real *mask = (const real *)c->call->masks[l] + b->first * c->H;
    for (int64_t i = 0; i < n * b->rows; i++)
        for (int64_t j = 0; j < c->H; j++)
            to[i * c->y_row + j] = from[i * c->y_row + j] * mask[i % b->rows * c->H + j];
}

/* What layer l shows to the layer above: its outputs, thinned by the mask if there is one. */
static void show_level(block *b, int64_t l, int64_t n) {
    real *y = state_slot(b, b->y[l], 1, 0), *masked = b->masked[l];
    if (masked) thin(b, l, n, masked, y);
    b->level[l + 1] = masked ? masked : y;
}

static void thin_level_gradient(block *b, int64_t l, int64_t n) {
    if (b->masked[l]) thin(b, l, n, b->grad_level[l + 1], b->grad_level[l + 1]);
}

/* A group of rows of a block, and where its weight gradients are summed. */
typedef struct {
    int64_t first, rows;
    real *sums;
    double *scalars;
} group;

AN_INLINE int64_t groups_in(const block *b) {
    const int64_t size = b->c->call->sum_rows;
    return (b->rows + size - 1) / size;
}

AN_INLINE group group_of(const block *b, int64_t index) {
    const chain *c = b->c;
    const int64_t size = c->call->sum_rows, first = index * size;
    const int64_t at = b->first / size + index;
    return (group){first, smaller(size, b->rows - first), c->all_sums + at * c->sums,
                   c->all_scalars + at * 3};
}

/* Adds a matrix's gradient within n steps to the sums `at`: a [n * rows, inputs] is what it was
 * multiplied by, g [n * rows, columns] the gradient of the product. */
static void add_weight_gradient(block *b, int64_t n, const real *a, int64_t a_row, int64_t inputs,
                                const real *g, int64_t columns, int64_t at) {
    for (int64_t i = 0; i < groups_in(b); i++) {
        const group k = group_of(b, i);
        add_outer_product(a + k.first * a_row, a_row, inputs, g + k.first * b->c->n_row,
                          b->c->n_row, columns, n, b->rows, k.rows, k.sums + at);
    }
}

/* The same for the bias of a layer. */
static void add_bias_gradient(block *b, int64_t n, int64_t at) {
    const chain *c = b->c;
    for (int64_t i = 0; i < groups_in(b); i++) {
        const group k = group_of(b, i);
        for (int64_t j = 0; j < c->N; j += LANES) {
            vec sum = splat(0);
            for (int64_t s = 0; s < n; s++)
                for (int64_t r = k.first; r < k.first + k.rows; r++)
                    sum += load(drive_row(b, s, r) + j);
            store(k.sums + at + j, load(k.sums + at + j) + sum);
        }
    }
}

/* From the gradient of the drive: gradients of V, b and the skip matrix, and of the levels read. */
static void spread_drive_gradient(block *b, int64_t l, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int64_t rows = n * b->rows, from = l - c->call->skip;
    add_weight_gradient(b, n, b->level[l], pitch(w->inputs), w->inputs, b->drive, c->N, w->sum_in);
    add_bias_gradient(b, n, w->sum_bias);
    if (l > 0 || c->call->grad_x)
        product(b->drive, c->n_row, rows, w->in_back, c->N, rounded_up(w->inputs, PANEL),
                b->grad_level[l], pitch(w->inputs), c->call->skip > 0, 0);
    if (w->skip) {
        add_weight_gradient(b, n, b->level[from], pitch(w->skip_inputs), w->skip_inputs, b->drive,
                            c->N, w->sum_skip);
        if (from > 0 || c->call->grad_x)
            product(b->drive, c->n_row, rows, w->skip_back, c->N, rounded_up(w->skip_inputs, PANEL),
                    b->grad_level[from], pitch(w->skip_inputs), 1, 0);
    }
}

#endif
