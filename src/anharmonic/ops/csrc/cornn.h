/* coRNN, (2.3). With A = W y + Wz z + drive and e the elapsed time:
 *   explicit  z' = z + e dt (tanh A - gamma y - epsilon z)
 *   implicit  z' = (z + e dt (tanh A - gamma y)) / (1 + e dt epsilon)
 *   both      y' = y + e dt z'
 * Kept of every step: tanh A. From it y and z are rebuilt by the same sums, bit for bit. */
#ifndef AN_CORNN_H
#define AN_CORNN_H

#include "chain.h"

AN_INLINE void cornn_update(const chain *c, vec t, real dt, vec *y, vec *z) {
    const vec gamma = splat((real)c->call->frequency), epsilon = splat((real)c->call->damping);
    const vec h = splat(dt);
    if (c->call->model == AN_CORNN_EXPLICIT)
        *z = *z + h * (t - gamma * *y - epsilon * *z);
    else
        *z = (*z + h * (t - gamma * *y)) * splat(1 / (1 + dt * (real)c->call->damping));
    *y = *y + h * *z;
}

/* `rebuild`: the activations are known, only the states are not. */
AN_INLINE void cornn_steps(block *b, int64_t l, int64_t t0, int64_t n, const int rebuild) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    for (int64_t s = 0; s < n; s++) {
        const real *y = state_slot(b, b->y[l], s, 0), *z = state_slot(b, b->z[l], s, 0);
        real *y_new = state_slot(b, b->y[l], s + 1, 0), *z_new = state_slot(b, b->z[l], s + 1, 0);
        if (!rebuild) {
            product(y, c->y_row, b->rows, w->hidden[0], c->H, c->section, drive_row(b, s, 0),
                    c->n_row, 1, 0);
            product(z, c->y_row, b->rows, w->hidden[1], c->H, c->section, drive_row(b, s, 0),
                    c->n_row, 1, 0);
        }
        for (int64_t r = 0; r < b->rows; r++) {
            const int64_t at = r * c->y_row;
            real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
            if (t0 + s >= length_of(b, r)) {
                copy(y_new + at, y + at, c->padded);
                copy(z_new + at, z + at, c->padded);
                continue;
            }
            const real dt = (real)c->call->dt * elapsed_at(b, t0 + s, r);
            const real *a = drive_row(b, s, r);
            for (int64_t j = 0; j < c->padded; j += LANES) {
                vec y_j = load(y + at + j), z_j = load(z + at + j);
                const vec t = rebuild ? load(act + j) : tanh_of(load(a + j));
                if (act && !rebuild) store(act + j, t);
                cornn_update(c, t, dt, &y_j, &z_j);
                store(y_new + at + j, y_j);
                store(z_new + at + j, z_j);
            }
        }
    }
}

static void cornn_walk(block *b, int64_t l, int64_t t0, int64_t n) { cornn_steps(b, l, t0, n, 0); }
static void cornn_rebuild(block *b, int64_t l, int64_t t0, int64_t n) {
    cornn_steps(b, l, t0, n, 1);
}

static void cornn_back(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const int explicit = c->call->model == AN_CORNN_EXPLICIT;
    const int scalars = c->call->grad_scalars != NULL, elapsed = c->call->grad_elapsed != NULL;
    const vec gamma = splat((real)c->call->frequency), epsilon = splat((real)c->call->damping);
    real *dy = b->dy[l], *dz = b->dz[l];
    for (int64_t s = n - 1; s >= 0; s--) {
        for (int64_t r = 0; r < b->rows; r++) {
            real *g = drive_row(b, s, r);
            if (t0 + s >= length_of(b, r)) {
                clear(g, c->padded);
                continue;
            }
            const int64_t at = r * c->y_row;
            const real e = elapsed_at(b, t0 + s, r), dt = (real)c->call->dt * e;
            const vec h = splat(dt);
            const vec shrink = explicit ? splat(1) : splat(1 / (1 + dt * (real)c->call->damping));
            const real *y = state_slot(b, b->y[l], s, r), *z = state_slot(b, b->z[l], s, r);
            const real *z_new = state_slot(b, b->z[l], s + 1, r);
            const real *act = b->act[l] + (s * b->rows + r) * act_row(c);
            prefetch_tile_before(b, act);
            const real *out = output_gradient(b, l, t0 + s, s, r);
            vec by_dt = splat(0), by_gamma = splat(0), by_epsilon = splat(0);
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec t = load(act + j);
                vec p = load(dy + at + j), q = load(dz + at + j);
                if (out) p += load(out + j);
                q = (q + h * p) * shrink;
                store(g + j, h * q * (splat(1) - t * t));
                if (scalars || elapsed) {
                    const vec y_j = load(y + j), z_j = explicit ? load(z + j) : load(z_new + j);
                    by_dt += q * (t - gamma * y_j - epsilon * z_j) + p * load(z_new + j);
                    by_gamma -= h * q * y_j;
                    by_epsilon -= h * q * z_j;
                }
                store(dy + at + j, p - h * gamma * q);
                store(dz + at + j, explicit ? q - h * epsilon * q : q);
            }
            if (scalars) {
                double *sums = group_of(b, r / c->call->sum_rows).scalars;
                sums[0] += (double)e * sum_of_lanes(by_dt);
                sums[1] += sum_of_lanes(by_gamma);
                sums[2] += sum_of_lanes(by_epsilon);
            }
            if (elapsed) add_elapsed_gradient(b, t0 + s, r, splat((real)c->call->dt) * by_dt);
        }
        product(drive_row(b, s, 0), c->n_row, b->rows, w->hidden_back[0], c->H, c->section, dy,
                c->y_row, 1, 0);
        product(drive_row(b, s, 0), c->n_row, b->rows, w->hidden_back[1], c->H, c->section, dz,
                c->y_row, 1, 0);
    }
    real *const states[2] = {b->y[l], b->z[l]};
    for (int i = 0; i < 2; i++)
        add_weight_gradient(b, n, states[i], c->y_row, c->H, b->drive, c->section,
                            w->sum_hidden[i]);
}

#endif
