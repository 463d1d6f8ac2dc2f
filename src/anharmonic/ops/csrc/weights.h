/* The shape of a call, its weights in packed form, and their gradients. */
#ifndef AN_WEIGHTS_H
#define AN_WEIGHTS_H

#include "chain.h"

static const real *weight(const chain *c, int64_t l, int i) {
    return c->call->weights[l * AN_WEIGHTS + i];
}

/* Which of a layer's weights is what. */
enum { IN = 0, HIDDEN = 1, DIAGONAL_W = 1, DIAGONAL_C = 3, SKIP = 4 };

static void shape(chain *c, const an_call *call, const model *model, int backward) {
    *c = (chain){.call = call, .model = model, .backward = backward, .H = call->hidden};
    c->padded = rounded_up(c->H, LANES);
    c->section = rounded_up(c->H, PANEL);
    c->sections = model->sections;
    c->N = c->sections * c->section;
    c->y_row = pitch(c->H);
    c->n_row = pitch(c->N);
    c->kept_row = rounded_up(c->H, KEPT_UNIT);
    c->blocks = (call->batch + call->block - 1) / call->block;
    c->groups = (call->batch + call->sum_rows - 1) / call->sum_rows;
}

/* Packs every `sections` block of H rows of w [sections * H, inputs] as columns (forward) or as the
 * inner index (backward). */
static void pack_forward(const chain *c, operand *packed, const real *w, int64_t sections,
                         int64_t inputs) {
    for (int64_t i = 0; i < sections; i++)
        pack(packed + i * c->section * operands(inputs), inputs, c->H, w + i * c->H * inputs,
             inputs);
}

static void pack_backward(const chain *c, operand *packed, const real *w, int64_t sections,
                          int64_t inputs, int64_t stride) {
    const int64_t inner = sections * stride, end = operands(inner) * PER_OPERAND;
    for (int64_t n = 0; n < inputs; n += PANEL)
        for (int64_t k = 0; k < end; k += PER_OPERAND, packed += PANEL) {
            const real *rows[2] = {0};
            for (int64_t i = 0; i < PER_OPERAND && k + i < inner; i++)
                if ((k + i) % stride < c->H)
                    rows[i] = w + ((k + i) / stride * c->H + (k + i) % stride) * inputs + n;
            pack_row(packed, rows[0], rows[1], smaller(inputs - n, PANEL));
        }
}

/* Room for a packed matrix. */
static operand *packed_matrix(arena *a, int64_t inner, int64_t columns) {
    return carve(a, operands(inner) * columns, sizeof(operand));
}

static void pad_vector(const chain *c, real *to, const real *from, int64_t sections) {
    clear(to, sections * c->section);
    for (int64_t i = 0; from && i < sections; i++) copy(to + i * c->section, from + i * c->H, c->H);
}

/* Lays out (and, once there is memory, packs) the weights; counts the sums of the gradients. */
static void lay_out_weights(chain *c, arena *a) {
    const an_call *k = c->call;
    const model *m = c->model;
    c->layers = carve(a, k->layers, sizeof(layer));
    c->sums = 0;
    for (int64_t l = 0; l < k->layers; l++) {
        layer w = {.inputs = l ? c->H : k->inputs};
        const int64_t up = rounded_up(w.inputs, PANEL);
        const int skips = k->skip > 0 && l >= k->skip && weight(c, l, SKIP);
        if (skips) w.skip_inputs = l > k->skip ? c->H : k->inputs;
        const int64_t skip_up = rounded_up(w.skip_inputs, PANEL);
        w.in = packed_matrix(a, w.inputs, c->N);
        w.bias = reals(a, c->N);
        if (skips) w.skip = packed_matrix(a, w.skip_inputs, c->N);
        for (int i = 0; i < 2; i++) w.hidden[i] = packed_matrix(a, c->H, hidden_columns(c, i));
        if (m->diagonal) {
            w.w = reals(a, c->section);
            w.h = reals(a, c->section);
        }
        if (c->backward) {
            if (l || k->grad_x) w.in_back = packed_matrix(a, c->N, up);
            if (skips) w.skip_back = packed_matrix(a, c->N, skip_up);
            for (int i = 0; i < 2 && m->hidden[i]; i++)
                w.hidden_back[i] = packed_matrix(a, hidden_inner(c, i), c->section);
            w.sum_in = c->sums, c->sums += w.inputs * c->N;
            w.sum_bias = c->sums, c->sums += c->N;
            w.sum_skip = c->sums, c->sums += w.skip_inputs * c->N;
            for (int i = 0; i < 2; i++)
                w.sum_hidden[i] = c->sums, c->sums += c->H * hidden_columns(c, i);
            w.sum_w = c->sums, c->sums += c->section;
            w.sum_h = c->sums, c->sums += c->section;
        }
        if (!a->base) continue;
        c->layers[l] = w;
        pack_forward(c, w.in, weight(c, l, IN), c->sections, w.inputs);
        pad_vector(c, w.bias, weight(c, l, m->bias), c->sections);
        if (skips) pack_forward(c, w.skip, weight(c, l, SKIP), 1, w.skip_inputs);
        for (int i = 0; i < 2; i++)
            pack_forward(c, w.hidden[i], weight(c, l, HIDDEN + i), m->hidden[i], c->H);
        if (m->diagonal) {
            pad_vector(c, w.w, weight(c, l, DIAGONAL_W), 1);
            pad_vector(c, w.h, weight(c, l, DIAGONAL_C), 1);
            for (int64_t j = 0; j < c->section; j += LANES) /* h = dt sigmoid(c) */
                store(w.h + j, splat((real)k->layer_dt[l]) * sigmoid_of(load(w.h + j)));
        }
        if (!c->backward) continue;
        if (w.in_back)
            pack_backward(c, w.in_back, weight(c, l, IN), c->sections, w.inputs, c->section);
        if (skips) pack_backward(c, w.skip_back, weight(c, l, SKIP), 1, w.skip_inputs, c->section);
        for (int i = 0; i < 2 && m->hidden[i]; i++)
            pack_backward(c, w.hidden_back[i], weight(c, l, HIDDEN + i), m->hidden[i], c->H,
                          hidden_inner(c, i) / m->hidden[i]);
    }
    if (c->backward) {
        c->all_sums = reals(a, c->groups * c->sums);
        c->all_scalars = carve(a, c->groups * 3, sizeof(double));
    }
}

/* to [sections * H, inputs] = the sum over groups of their sums [inputs, sections * section]. */
static void reduce(const chain *c, real *to, int64_t at, int64_t inputs, int64_t sections) {
    if (!to) return;
    const int64_t columns = sections * c->section;
    for (int64_t k = 0; k < inputs; k++)
        for (int64_t i = 0; i < sections; i++)
            for (int64_t j = 0; j < c->H; j++) {
                real sum = 0;
                for (int64_t b = 0; b < c->groups; b++)
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
        reduce(c, to[c->model->bias], w->sum_bias, 1, c->sections);
        for (int i = 0; i < 2 && !c->model->diagonal; i++)
            reduce(c, to[HIDDEN + i], w->sum_hidden[i], c->H, c->model->hidden[i]);
        if (c->model->diagonal) {
            reduce(c, to[DIAGONAL_W], w->sum_w, 1, 1);
            reduce(c, to[DIAGONAL_C], w->sum_h, 1, 1);
            real *dc = to[DIAGONAL_C]; /* dh / dc = h (1 - sigmoid(c)) */
            const real dt = (real)call->layer_dt[l];
            for (int64_t j = 0; dc && j < c->H; j++) dc[j] *= dt ? w->h[j] * (1 - w->h[j] / dt) : 0;
            if (w->skip) reduce(c, to[SKIP], w->sum_skip, w->skip_inputs, 1);
        }
    }
    for (int i = 0; call->grad_scalars && i < 3; i++) {
        call->grad_scalars[i] = 0;
        for (int64_t b = 0; b < c->groups; b++) call->grad_scalars[i] += c->all_scalars[b * 3 + i];
    }
}

#endif
