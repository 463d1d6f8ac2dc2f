/* How a generated recurrence walks: blocks of rows, each in tiles of steps, forward and backward.
 * Comes behind the functions of the step, see recurrence.h. */

/* Takes memory, or with a base of NULL only counts how much. */
typedef struct {
    char *base;
    size_t used;
} arena;

static void *carve(arena *a, int64_t count, size_t size) {
    const size_t at = a->used;
    a->used += ((size_t)count * size + 63) & ~(size_t)63;
    return a->base ? a->base + at : NULL;
}

static int64_t starts_in(int64_t steps, int64_t every) { return (steps + every - 1) / every; }

/* Saved of a row: the states at the start of each tile and the values of each step, or only the
 * states at the start of each chunk. */
static int64_t saved_reals(const context *c) {
    const recurrence_call *k = c->call;
    if (k->keep == KEEP_ALL)
        return starts_in(k->steps, k->tile) * c->start_row + k->steps * c->saved_row;
    return k->keep == KEEP_STARTS ? starts_in(k->steps, k->every) * c->start_row : 0;
}

/* A row of a buffer. (Rows that are a multiple of 512 bytes apart would share cache lines.) */
static int64_t pitch_of(int64_t width) {
    const int64_t row = rounded_up(width, PANEL);
    return row * (int64_t)sizeof(real) % 512 ? row : row + 64 / (int64_t)sizeof(real);
}

static void lay_out_sizes(context *c, arena *a) {
    const recurrence_call *k = c->call;
    c->width = carve(a, WIDTHS, sizeof(int64_t));
    c->section = carve(a, WIDTHS, sizeof(int64_t));
    c->vectors = carve(a, WIDTHS, sizeof(int64_t));
    c->pitch = carve(a, WIDTHS, sizeof(int64_t));
    c->saved_column = carve(a, SAVED, sizeof(int64_t));
    c->number = carve(a, NUMBERS, sizeof(real));
    c->saved_row = c->start_row = 0;
    for (int i = 0; i < SAVED; i++) {
        if (a->base) c->saved_column[i] = c->saved_row;
        c->saved_row += rounded_up(k->widths[saved_widths[i]], LANES);
    }
    for (int i = 0; i < STATE_PIECES; i++)
        c->start_row += rounded_up(k->widths[state_pieces[i].width], LANES);
    if (!a->base) return;
    for (int i = 0; i < WIDTHS; i++) {
        c->width[i] = k->widths[i];
        c->section[i] = rounded_up(k->widths[i], PANEL);
        c->vectors[i] = rounded_up(k->widths[i], LANES);
        c->pitch[i] = pitch_of(k->widths[i]);
    }
    for (int i = 0; i < NUMBERS; i++) c->number[i] = (real)k->numbers[i];
}

/* Matrices in panels, vectors with zeros behind them. */
static void lay_out_fixed(context *c, arena *a) {
    const recurrence_call *k = c->call;
    c->matrix = carve(a, MATRICES, sizeof(real *));
    c->vector = carve(a, VECTORS, sizeof(real *));
    for (int i = 0; i < MATRICES; i++) {
        const int64_t *m = k->matrices + 6 * i, inner = m[3] - m[2];
        real *to = carve(a, inner * rounded_up(m[5] - m[4], PANEL), sizeof(real));
        if (!a->base) continue;
        c->matrix[i] = to;
        for (int64_t n = m[4]; n < m[5]; n += PANEL)
            for (int64_t r = m[2]; r < m[3]; r++, to += PANEL)
                pack_row(to, k->fixed[m[0]] + r * m[1] + n, 0, smaller(PANEL, m[5] - n));
    }
    for (int i = 0; i < VECTORS; i++) {
        const int64_t *v = k->vectors + 3 * i, count = v[2] - v[1];
        real *to = carve(a, rounded_up(count, PANEL), sizeof(real));
        if (!a->base) continue;
        c->vector[i] = to;
        memset(to, 0, (size_t)rounded_up(count, PANEL) * sizeof(real));
        memcpy(to, k->fixed[v[0]] + v[1], (size_t)count * sizeof(real));
    }
}

/* The sums of one block. */
static void lay_out_sums(const context *c, block *b, arena *a) {
    b->sum = carve(a, SUMS, sizeof(double *));
    b->outer = carve(a, OUTERS, sizeof(real *));
    for (int i = 0; i < SUMS; i++) {
        double *to = carve(a, c->width[sum_widths[i]], sizeof(double));
        if (a->base) b->sum[i] = to;
    }
    for (int i = 0; i < OUTERS; i++) {
        const int *w = outer_widths[i];
        real *to = carve(a, c->width[w[0]] * c->section[w[1]], sizeof(real));
        if (a->base) b->outer[i] = to;
    }
}

typedef struct {
    real *starts, *values; /* of one chunk that is walked again; values of a tile if not kept */
} chunk;

static void lay_out_block(const context *c, block *b, chunk *again, arena *a) {
    const recurrence_call *k = c->call;
    b->buffer = carve(a, BUFFERS, sizeof(real *));
    for (int i = 0; i < BUFFERS; i++) {
        const int kind = buffer_shapes[i].kind;
        const int64_t steps = kind == STEP ? 1 : kind == TILE ? k->tile : k->tile + 1;
        real *to = carve(a, steps * b->rows * c->pitch[buffer_shapes[i].width], sizeof(real));
        if (a->base) b->buffer[i] = to;
    }
    if (!k->backward && k->keep != KEEP_ALL)
        again->values = carve(a, k->tile * b->rows * c->saved_row, sizeof(real));
    if (!k->backward || k->keep != KEEP_STARTS) return;
    again->starts = carve(a, starts_in(k->every, k->tile) * b->rows * c->start_row, sizeof(real));
    again->values = carve(a, k->every * b->rows * c->saved_row, sizeof(real));
}

/* Memory of a block, zeroed: what lies between columns and rows must be numbers. NULL if none. */
static char *begin_block(context *c, int64_t index, block *b, chunk *again) {
    const recurrence_call *k = c->call;
    *b = (block){.c = c, .first = index * k->rows};
    b->rows = smaller(k->rows, k->batch - b->first);
    char *memory = k->take((size_t)c->block_bytes);
    if (!memory) {
        __atomic_store_n(&c->no_memory, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    memset(memory, 0, (size_t)c->block_bytes);
    arena a = {.base = memory};
    lay_out_block(c, b, again, &a);
    return memory;
}

/* ---- between the caller's tensors and buffers ---------------------------------------------------
 */
/* The first column of a piece of its variable, and how many that has. */
static int64_t column_of(const context *c, const piece *pieces, int i) {
    int64_t column = 0;
    for (int j = 0; j < i; j++)
        if (pieces[j].variable == pieces[i].variable) column += c->width[pieces[j].width];
    return column;
}
static int64_t columns_of(const context *c, const piece *pieces, int count, int variable) {
    int64_t columns = 0;
    for (int j = 0; j < count; j++)
        if (pieces[j].variable == variable) columns += c->width[pieces[j].width];
    return columns;
}

static void load_row(real *to, const real *from, int64_t width) {
    if (width == 1)
        widen(to, *from);
    else
        memcpy(to, from, (size_t)width * sizeof(real));
}

/* Variables [B, H], dense, into buffers and out of them. */
static void load_state(block *b, const piece *pieces, const real *const *from) {
    const context *c = b->c;
    for (int i = 0; i < STATE_PIECES; i++) {
        const piece p = pieces[i];
        const real *source = from[p.variable];
        if (!source) continue;
        const int64_t column = column_of(c, pieces, i),
                      columns = columns_of(c, pieces, STATE_PIECES, p.variable);
        for (int64_t r = 0; r < b->rows; r++)
            load_row(b->buffer[p.buffer] + r * c->pitch[p.width],
                     source + (b->first + r) * columns + column, c->width[p.width]);
    }
}
static void store_state(const block *b, const piece *pieces, real *const *to) {
    const context *c = b->c;
    for (int i = 0; i < STATE_PIECES; i++) {
        const piece p = pieces[i];
        const int64_t column = column_of(c, pieces, i),
                      columns = columns_of(c, pieces, STATE_PIECES, p.variable);
        if (!to[p.variable]) continue;
        for (int64_t r = 0; r < b->rows; r++)
            memcpy(to[p.variable] + (b->first + r) * columns + column,
                   b->buffer[p.buffer] + r * c->pitch[p.width],
                   (size_t)c->width[p.width] * sizeof(real));
    }
}

/* The state before a tile, into what is saved and back. */
static void keep_start(const block *b, real *to) {
    const context *c = b->c;
    for (int i = 0; i < STATE_PIECES; i++) {
        const piece p = state_pieces[i];
        copy_rows(to, c->vectors[p.width], b->buffer[p.buffer], c->pitch[p.width], b->rows,
                  c->vectors[p.width]);
        to += b->rows * c->vectors[p.width];
    }
}
static void bring_start(block *b, const real *from) {
    const context *c = b->c;
    for (int i = 0; i < STATE_PIECES; i++) {
        const piece p = state_pieces[i];
        copy_rows(b->buffer[p.buffer], c->pitch[p.width], from, c->vectors[p.width], b->rows,
                  c->vectors[p.width]);
        from += b->rows * c->vectors[p.width];
    }
}

static void load_inputs(block *b, int64_t t, int64_t n) {
    const context *c = b->c;
    const recurrence_call *k = c->call;
    for (int i = 0; i < INPUT_PIECES; i++) {
        const piece p = input_pieces[i];
        const int64_t *stride = k->input_strides + 2 * p.variable, pitch = c->pitch[p.width];
        const real *from = k->inputs[p.variable] + t * stride[0] + b->first * stride[1] +
                           column_of(c, input_pieces, i);
        for (int64_t s = 0; s < n; s++)
            for (int64_t r = 0; r < b->rows; r++)
                load_row(b->buffer[p.buffer] + (s * b->rows + r) * pitch,
                         from + s * stride[0] + r * stride[1], c->width[p.width]);
    }
}

/* [n, B, ..] of the caller's from rows of a buffer, the first of which is `slot` steps in. */
static void store_rows(const block *b, const piece *pieces, int i, int slot, real *to, int64_t time,
                       int64_t batch, int64_t t, int64_t n) {
    const context *c = b->c;
    const int width = pieces[i].width;
    const real *from = b->buffer[pieces[i].buffer] + slot * b->rows * c->pitch[width];
    to += t * time + b->first * batch + column_of(c, pieces, i);
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++)
            memcpy(to + s * time + r * batch, from + (s * b->rows + r) * c->pitch[width],
                   (size_t)c->width[width] * sizeof(real));
}

/* The gradient of the output of one step reaches the state behind it. */
static void add_grad_output(block *b, int64_t t) {
    const context *c = b->c;
    const recurrence_call *k = c->call;
    for (int i = 0; i < STATE_PIECES; i++) {
        const piece p = arriving_pieces[i];
        if (p.variable != 0) continue;
        const int64_t width = c->width[p.width];
        for (int64_t r = 0; r < b->rows; r++) {
            real *to = b->buffer[p.buffer] + r * c->pitch[p.width];
            const real *from = k->grad_output + t * k->grad_output_time +
                               (b->first + r) * k->grad_output_batch +
                               column_of(c, arriving_pieces, i);
            if (width == 1)
                widen(to, *to + *from);
            else
                for (int64_t j = 0; j < width; j++) to[j] += from[j];
        }
    }
}

/* ---- forward
 * --------------------------------------------------------------------------------------- */
/* Behind a tile, the last state is the next one's first. */
static void carry_over(block *b, int64_t n) {
    for (int i = 0; i < STATE_PIECES; i++) {
        const int64_t step = b->rows * b->c->pitch[state_pieces[i].width];
        real *first = b->buffer[state_pieces[i].buffer];
        memcpy(first, first + n * step, (size_t)step * sizeof(real));
    }
}

/* Writes to b->saved, which is scratch where nothing is kept: one code for all policies, so that
 * all give the same bits. */
static void walk_tile(block *b, int64_t t, int64_t n) {
    load_inputs(b, t, n);
    forward_tile(b, n);
    for (int64_t s = 0; s < n; s++) forward_step(b, s);
}

/* What is saved of a block: its starts, and behind them its values. */
static real *saved_starts(const block *b) {
    return b->c->call->saved + b->first * saved_reals(b->c);
}
static real *saved_values(const block *b) {
    const recurrence_call *k = b->c->call;
    return saved_starts(b) + starts_in(k->steps, k->tile) * b->rows * b->c->start_row;
}

static void forward_block(void *shared, int64_t index) {
    context *c = shared;
    const recurrence_call *k = c->call;
    block b;
    chunk scratch = {NULL, NULL};
    char *memory = begin_block(c, index, &b, &scratch);
    if (!memory) return;
    b.saved = scratch.values;
    load_state(&b, state_pieces, k->starts);
    for (int64_t t = 0; t < k->steps; t += k->tile) {
        const int64_t n = smaller(k->tile, k->steps - t);
        if (k->keep == KEEP_ALL) {
            keep_start(&b, saved_starts(&b) + t / k->tile * b.rows * c->start_row);
            b.saved = saved_values(&b) + t * b.rows * c->saved_row;
        } else if (k->keep == KEEP_STARTS && t % k->every == 0)
            keep_start(&b, saved_starts(&b) + t / k->every * b.rows * c->start_row);
        walk_tile(&b, t, n);
        for (int i = 0; k->output && i < STATE_PIECES; i++)
            if (state_pieces[i].variable == 0)
                store_rows(&b, state_pieces, i, 1, k->output, k->output_time, k->output_batch, t,
                           n);
        carry_over(&b, n);
    }
    store_state(&b, state_pieces, k->ends);
    k->give(memory);
}

/* ---- backward
 * -------------------------------------------------------------------------------------- */
static void swap_gradients(block *b) {
    for (int i = 0; i < STATE_PIECES; i++) {
        real **arriving = &b->buffer[arriving_pieces[i].buffer];
        real **leaving = &b->buffer[leaving_pieces[i].buffer], *held = *arriving;
        *arriving = *leaving;
        *leaving = held;
    }
}

/* One tile back: `start` is the state before it, b->saved what its steps saved. */
static void walk_tile_back(block *b, int64_t t, int64_t n, const real *start) {
    const recurrence_call *k = b->c->call;
    bring_start(b, start);
    load_inputs(b, t, n);
    for (int64_t s = 0; s < n; s++) again_step(b, s);
    for (int64_t s = n - 1; s >= 0; s--) {
        if (k->grad_output) add_grad_output(b, t + s);
        backward_step(b, s);
        swap_gradients(b);
    }
    backward_tile(b, n);
    sum_tile(b, n);
    for (int i = 0; i < GRAD_PIECES; i++) {
        const int v = grad_pieces[i].variable;
        if (k->grad_inputs[v])
            store_rows(b, grad_pieces, i, 0, k->grad_inputs[v], k->grad_input_strides[2 * v],
                       k->grad_input_strides[2 * v + 1], t, n);
    }
}

static void backward_block(void *shared, int64_t index) {
    context *c = shared;
    const recurrence_call *k = c->call;
    block b;
    chunk again = {NULL, NULL};
    char *memory = begin_block(c, index, &b, &again);
    if (!memory) return;
    char *sums = c->sums + index * c->sum_bytes;
    memset(sums, 0, (size_t)c->sum_bytes);
    arena a = {.base = sums};
    lay_out_sums(c, &b, &a);
    load_state(&b, arriving_pieces, k->grad_ends);
    const int64_t length = k->keep == KEEP_STARTS ? k->every : k->steps;
    for (int64_t from = (k->steps - 1) / length * length; from >= 0; from -= length) {
        const int64_t end = smaller(from + length, k->steps);
        const real *starts = saved_starts(&b);
        real *values = k->keep == KEEP_ALL ? saved_values(&b) : again.values;
        if (k->keep == KEEP_STARTS) {
            bring_start(&b, starts + from / length * b.rows * c->start_row);
            for (int64_t t = from; t < end; t += k->tile) {
                const int64_t n = smaller(k->tile, end - t);
                keep_start(&b, again.starts + (t - from) / k->tile * b.rows * c->start_row);
                b.saved = values + (t - from) * b.rows * c->saved_row;
                walk_tile(&b, t, n);
                carry_over(&b, n);
            }
            starts = again.starts;
        }
        for (int64_t t = from + (end - 1 - from) / k->tile * k->tile; t >= from; t -= k->tile) {
            b.saved = values + (t - from) * b.rows * c->saved_row;
            walk_tile_back(&b, t, smaller(k->tile, end - t),
                           starts + (t - from) / k->tile * b.rows * c->start_row);
        }
    }
    store_state(&b, arriving_pieces, k->grad_starts);
    k->give(memory);
}

/* Adds the sums of all blocks to the caller's, one block after another. */
static void add_sums(const context *c) {
    const recurrence_call *k = c->call;
    for (int64_t index = 0; index < c->blocks; index++) {
        block b = {.c = c};
        arena a = {.base = c->sums + index * c->sum_bytes};
        lay_out_sums(c, &b, &a);
        for (int i = 0; i < SUMS; i++) {
            const int64_t *part = k->sum_parts + 2 * i;
            double *to = k->roots[part[0]] + part[1];
            for (int64_t j = 0; j < c->width[sum_widths[i]]; j++) to[j] += b.sum[i][j];
        }
        for (int i = 0; i < OUTERS; i++) {
            const int64_t *part = k->outer_parts + 5 * i, columns = part[3];
            const int64_t thin = c->width[outer_widths[i][0]], wide = c->width[outer_widths[i][1]];
            const int64_t row = c->section[outer_widths[i][1]];
            real *to = k->outer_roots[part[0]] + part[1] * columns + part[2];
            if (part[4]) /* rows of the result belong to the wide factor */
                for (int64_t n = 0; n < wide; n++)
                    for (int64_t m = 0; m < thin; m++)
                        to[n * columns + m] += b.outer[i][m * row + n];
            else
                for (int64_t m = 0; m < thin; m++)
                    for (int64_t n = 0; n < wide; n++)
                        to[m * columns + n] += b.outer[i][m * row + n];
        }
    }
}

/* ---- the call
 * -------------------------------------------------------------------------------------- */
#define AN_EXPORT __attribute__((visibility("default")))

static void lay_out(context *c, arena *a) {
    const recurrence_call *k = c->call;
    lay_out_sizes(c, a);
    lay_out_fixed(c, a);
    if (!a->base) return;
    block b = {.rows = smaller(k->rows, k->batch)};
    chunk again;
    arena count = {0}, count_sums = {0};
    lay_out_block(c, &b, &again, &count);
    lay_out_sums(c, &b, &count_sums);
    c->block_bytes = (int64_t)count.used;
    c->sum_bytes = (int64_t)count_sums.used;
}

/* 0, or 1 if there is no memory. */
AN_EXPORT int recurrence_run(const recurrence_call *k) {
    context c = {.call = k, .blocks = (k->batch + k->rows - 1) / k->rows};
    arena count = {0};
    lay_out(&c, &count);
    char *memory = k->take(count.used + 64);
    if (!memory) return 1;
    arena a = {.base = memory};
    lay_out(&c, &a);
    if (k->backward && !(c.sums = k->take((size_t)(c.blocks * c.sum_bytes) + 64))) {
        k->give(memory);
        return 1;
    }
    k->parallel(c.blocks, (int)k->threads, k->backward ? backward_block : forward_block, &c);
    if (k->backward && !c.no_memory) add_sums(&c);
    k->give(c.sums);
    k->give(memory);
    return c.no_memory;
}

/* Bytes that are saved for each row of the batch. */
AN_EXPORT int64_t recurrence_saved_bytes(const recurrence_call *k) {
    context c = {.call = k};
    arena count = {0};
    lay_out_sizes(&c, &count);
    return saved_reals(&c) * (int64_t)sizeof(real);
}
