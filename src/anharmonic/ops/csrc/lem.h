/* LEM, (5.3), with e the elapsed time:
 *   a = e dt sigmoid(W1 y + drive1),  e_ = e dt sigmoid(W2 y + drive2)
 *   z' = z + a (tanh(Wz y + drive_z) - z)
 *   y' = y + e_ (tanh(Wy z' + drive_y) - y)
 * Clipped: both gates are clamped to [floor, 1]. With one scale: a = e_ = e dt, no gates.
 * Kept of every step: the two sigmoids and the two tanh; from them y and z are rebuilt by the same
 * sums, bit for bit. Sections of a drive row: gate of z, gate of y, z, y (z, y with one scale). */
#ifndef AN_LEM_H
#define AN_LEM_H

#include "chain.h"

/* A gate from its sigmoid; *open is 0 where the clamp holds it, else 1. */
AN_INLINE vec lem_gate(const chain *c, vec sigmoid, real dt, vec *open) {
    vec gate = splat(dt) * sigmoid;
    *open = splat(1);
    if (c->call->model == AN_LEM_CLIPPED) {
        const vec low = splat((real)c->call->gate_floor);
        *open = choose((gate < low) | (gate > splat(1)), splat(0), *open);
        gate = least(splat(1), most(low, gate));
    }
    return gate;
}

static void lem_walk(block *b, int64_t l, int64_t t0, int64_t n, int rebuild) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int gated = c->call->model != AN_LEM_SINGLE_SCALE;
    const int64_t before = (c->sections - 1) * c->section; /* columns that read y, not z' */
    const int64_t sz = gated ? 2 : 0;                      /* activations: sections of z and y */
    for (int64_t s = 0; s < n; s++) {
        const real *y = state_slot(b, b->y[l], s, 0), *z = state_slot(b, b->z[l], s, 0);
        real *y_new = state_slot(b, b->y[l], s + 1, 0), *z_new = state_slot(b, b->z[l], s + 1, 0);
        real *pre = drive_row(b, s, 0);
        if (!rebuild)
            product(y, c->y_row, b->rows, w->hidden[0], c->H, before, pre, c->n_row, 1, 0);
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = r * c->y_row;
            real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
            if (t0 + s >= length_of(b, r)) {
                copy(z_new + at, z + at, c->padded);
                continue;
            }
            const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
            const vec h = splat(dt);
            const real *p = pre + r * c->n_row;
            for (int64_t j = 0; j < c->padded; j += LANES) {
                vec gate = h, open, t;
                if (gated) {
                    const vec o = rebuild ? load(act + j) : sigmoid_of(load(p + j));
                    if (act && !rebuild) store(act + j, o);
                    gate = lem_gate(c, o, dt, &open);
                    if (!rebuild) {
                        /* The other gate waits in the drive until z' is known. */
                        const vec o_y = sigmoid_of(load(p + c->section + j));
                        store((real *)p + c->section + j, o_y);
                        if (act) store(act + c->kept_row + j, o_y);
                    }
                }
                t = rebuild ? load(act + sz * c->kept_row + j)
                            : tanh_of(load(p + before - c->section + j));
                if (act && !rebuild) store(act + sz * c->kept_row + j, t);
                const vec z_j = load(z + at + j);
                store(z_new + at + j, z_j + gate * (t - z_j));
            }
        }
        if (!rebuild)
            product(z_new, c->y_row, b->rows, w->hidden[1], c->H, c->section, pre + before,
                    c->n_row, 1, 0);
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = r * c->y_row;
            real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
            if (t0 + s >= length_of(b, r)) {
                copy(y_new + at, y + at, c->padded);
                continue;
            }
            const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
            const vec h = splat(dt);
            const real *p = pre + r * c->n_row;
            for (int64_t j = 0; j < c->padded; j += LANES) {
                vec gate = h, open;
                if (gated) {
                    const vec o = rebuild ? load(act + c->kept_row + j) : load(p + c->section + j);
                    gate = lem_gate(c, o, dt, &open);
                }
                const vec t = rebuild ? load(act + (sz + 1) * c->kept_row + j)
                                      : tanh_of(load(p + before + j));
                if (act && !rebuild) store(act + (sz + 1) * c->kept_row + j, t);
                const vec y_j = load(y + at + j);
                store(y_new + at + j, y_j + gate * (t - y_j));
            }
        }
    }
}

static void lem_back(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int gated = c->call->model != AN_LEM_SINGLE_SCALE;
    const int elapsed = c->call->grad_elapsed != NULL;
    const int64_t before = (c->sections - 1) * c->section, sz = gated ? 2 : 0;
    real *dy = b->dy[l], *dz = b->dz[l];
    for (int64_t s = n - 1; s >= 0; s--) {
        real *pre = drive_row(b, s, 0);
        /* through y' = y + gate (t - y) */
        for (int64_t r = 0; r < b->rows; r++) {
            real *g = pre + r * c->n_row;
            if (t0 + s >= length_of(b, r)) {
                clear(g, c->N);
                continue;
            }
            const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
            const vec h = splat(dt);
            const real *y = state_slot(b, b->y[l], s, r);
            const real *act = b->act[l] + (s * b->rows + r) * act_row(c);
            prefetch_tile_before(b, act);
            const real *out = output_gradient(b, l, t0 + s, s, r);
            vec by_elapsed = splat(0);
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec t = load(act + (sz + 1) * c->kept_row + j);
                vec p = load(dy + r * c->y_row + j), gate = h, open;
                if (out) p += load(out + j);
                const vec by_gate = p * (t - load(y + j));
                if (gated) {
                    const vec o = load(act + c->kept_row + j);
                    gate = lem_gate(c, o, dt, &open);
                    store(g + c->section + j, h * open * by_gate * (o * (splat(1) - o)));
                    if (elapsed) by_elapsed += open * by_gate * o;
                } else {
                    by_elapsed += by_gate;
                }
                store(g + before + j, p * gate * (splat(1) - t * t));
                store(dy + r * c->y_row + j, p - p * gate);
            }
            if (elapsed) add_elapsed_gradient(b, t0 + s, r, splat((real)c->call->dt) * by_elapsed);
        }
        product(pre + before, c->n_row, b->rows, w->hidden_back[1], c->H, c->section, dz, c->y_row,
                1, 0);
        /* through z' = z + gate (t - z) */
        for (int64_t r = 0; r < b->rows; r++) {
            real *g = pre + r * c->n_row;
            if (t0 + s >= length_of(b, r)) continue;
            const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
            const vec h = splat(dt);
            const real *z = state_slot(b, b->z[l], s, r);
            const real *act = b->act[l] + (s * b->rows + r) * act_row(c);
            vec by_elapsed = splat(0);
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec t = load(act + sz * c->kept_row + j);
                const vec q = load(dz + r * c->y_row + j);
                vec gate = h, open;
                const vec by_gate = q * (t - load(z + j));
                if (gated) {
                    const vec o = load(act + j);
                    gate = lem_gate(c, o, dt, &open);
                    store(g + j, h * open * by_gate * (o * (splat(1) - o)));
                    if (elapsed) by_elapsed += open * by_gate * o;
                } else {
                    by_elapsed += by_gate;
                }
                store(g + before - c->section + j, q * gate * (splat(1) - t * t));
                store(dz + r * c->y_row + j, q - q * gate);
            }
            if (elapsed) add_elapsed_gradient(b, t0 + s, r, splat((real)c->call->dt) * by_elapsed);
        }
        product(pre, c->n_row, b->rows, w->hidden_back[0], before, c->section, dy, c->y_row, 1, 0);
    }
    add_weight_gradient(b, n, b->y[l], c->y_row, c->H, b->drive, before, w->sum_hidden[0]);
    add_weight_gradient(b, n, state_slot(b, b->z[l], 1, 0), c->y_row, c->H, b->drive + before,
                        c->section, w->sum_hidden[1]);
}

#endif
