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

static int lem_gated(const chain *c) { return c->call->model != AN_LEM_SINGLE_SCALE; }

/* Half a step: of z, or (`which` is 1) of y, whose drive has got the share of z'. `rebuild`: the
 * activations are known, only the states are not. */
AN_INLINE void lem_half(block *b, int64_t l, int64_t t0, int64_t s, const int which,
                        const int rebuild) {
    const chain *c = b->c;
    const int gated = lem_gated(c);
    const int64_t part = (gated ? 2 : 0) + which; /* section of the tanh */
    real *const tile = which ? b->y[l] : b->z[l];
    for (int64_t r = 0; r < b->rows; r++) {
        const real *old = state_slot(b, tile, s, r), *p = drive_row(b, s, r);
        real *new = state_slot(b, tile, s + 1, r);
        real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
        if (t0 + s >= length_of(b, r)) {
            copy(new, old, c->padded);
            continue;
        }
        const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
        for (int64_t j = 0; j < c->padded; j += LANES) {
            vec gate = splat(dt), open;
            if (gated) {
                const int64_t at = which * c->kept_row + j;
                const vec o =
                    rebuild ? load(act + at) : sigmoid_of(load(p + which * c->section + j));
                if (act && !rebuild) store(act + at, o);
                gate = lem_gate(c, o, dt, &open);
            }
            const int64_t at = part * c->kept_row + j;
            const vec t = rebuild ? load(act + at) : tanh_of(load(p + part * c->section + j));
            if (act && !rebuild) store(act + at, t);
            const vec v = load(old + j);
            store(new + j, v + gate * (t - v));
        }
    }
}

AN_INLINE void lem_steps(block *b, int64_t l, int64_t t0, int64_t n, const int rebuild) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int64_t before = hidden_columns(c, 0); /* columns that read y, not z' */
    for (int64_t s = 0; s < n; s++) {
        real *pre = drive_row(b, s, 0);
        if (!rebuild)
            product(state_slot(b, b->y[l], s, 0), c->y_row, b->rows, w->hidden[0], c->H, before,
                    pre, c->n_row, 1, 0);
        lem_half(b, l, t0, s, 0, rebuild);
        if (!rebuild)
            product(state_slot(b, b->z[l], s + 1, 0), c->y_row, b->rows, w->hidden[1], c->H,
                    c->section, pre + before, c->n_row, 1, 0);
        lem_half(b, l, t0, s, 1, rebuild);
    }
}

static void lem_walk(block *b, int64_t l, int64_t t0, int64_t n) { lem_steps(b, l, t0, n, 0); }
static void lem_rebuild(block *b, int64_t l, int64_t t0, int64_t n) { lem_steps(b, l, t0, n, 1); }

/* Back through v' = v + gate (t - v), v being z or (`which` is 1) y. */
AN_INLINE void lem_half_back(block *b, int64_t l, int64_t t0, int64_t s, const int which) {
    const chain *c = b->c;
    const int gated = lem_gated(c), elapsed = c->call->grad_elapsed != NULL;
    const int64_t part = (gated ? 2 : 0) + which;
    real *const tile = which ? b->y[l] : b->z[l], *const gradient = which ? b->dy[l] : b->dz[l];
    for (int64_t r = 0; r < b->rows; r++) {
        real *g = drive_row(b, s, r), *d = gradient + r * c->y_row;
        if (t0 + s >= length_of(b, r)) {
            if (which) clear(g, c->N);
            continue;
        }
        const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
        const vec h = splat(dt);
        const real *old = state_slot(b, tile, s, r);
        const real *act = b->act[l] + (s * b->rows + r) * act_row(c);
        if (which) prefetch_tile_before(b, act);
        const real *out = which ? output_gradient(b, l, t0 + s, s, r) : NULL;
        vec by_elapsed = splat(0);
        for (int64_t j = 0; j < c->padded; j += LANES) {
            const vec t = load(act + part * c->kept_row + j);
            vec p = load(d + j), gate = h, open;
            if (out) p += load(out + j);
            const vec by_gate = p * (t - load(old + j));
            if (gated) {
                const vec o = load(act + which * c->kept_row + j);
                gate = lem_gate(c, o, dt, &open);
                store(g + which * c->section + j, h * open * by_gate * (o * (splat(1) - o)));
                if (elapsed) by_elapsed += open * by_gate * o;
            } else {
                by_elapsed += by_gate;
            }
            store(g + part * c->section + j, p * gate * (splat(1) - t * t));
            store(d + j, p - p * gate);
        }
        if (elapsed) add_elapsed_gradient(b, t0 + s, r, splat((real)c->call->dt) * by_elapsed);
    }
}

static void lem_back(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int64_t before = hidden_columns(c, 0);
    for (int64_t s = n - 1; s >= 0; s--) {
        real *pre = drive_row(b, s, 0);
        lem_half_back(b, l, t0, s, 1);
        product(pre + before, c->n_row, b->rows, w->hidden_back[1], c->H, c->section, b->dz[l],
                c->y_row, 1, 0);
        lem_half_back(b, l, t0, s, 0);
        product(pre, c->n_row, b->rows, w->hidden_back[0], hidden_inner(c, 0), c->section, b->dy[l],
                c->y_row, 1, 0);
    }
    add_weight_gradient(b, n, b->y[l], c->y_row, c->H, b->drive, before, w->sum_hidden[0]);
    add_weight_gradient(b, n, state_slot(b, b->z[l], 1, 0), c->y_row, c->H, b->drive + before,
                        c->section, w->sum_hidden[1]);
}

#endif
