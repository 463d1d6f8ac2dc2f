/* UnICORNN, (3.6): neurons of a layer never meet. With e the elapsed time and h = dt sigmoid(c):
 *   z' = z - e h (tanh(w y + drive) + alpha y),   y' = y + e h z'
 * Nothing is kept of a step but states at checkpoints: a tile is walked again in the backward pass.
 *
 * On the grid, states are doubles that are multiples of 2^-40; increments are computed in reals,
 * rounded to the grid and added exactly, so that a step is undone bit for bit. */
#ifndef AN_UNICORNN_H
#define AN_UNICORNN_H

#include "kept.h"

#define GRID_LIMIT 1024.0
/* 1.5 * 2^52 multiples of 2^-40: adding it rounds to the grid what is smaller than 2048. Increments
 * are, being differences of states within the limit; a larger one leads out of it. */
#define GRID_SHIFTER 6144.0

/* A NaN is off the grid, too. */
AN_INLINE int off_grid(double state) { return !(state < GRID_LIMIT && state > -GRID_LIMIT); }

AN_INLINE grid_vec load_grid(const double *p) { return *(const unaligned_grid_vec *)p; }
AN_INLINE void store_grid(double *p, grid_vec v) { *(unaligned_grid_vec *)p = v; }

/* The compiler may not see through the increment: fused with the addition that rounds it, it would
 * be another number here than there. */
AN_INLINE grid_vec on_grid(vec v) {
    const grid_vec shifter = (grid_vec){0} + GRID_SHIFTER;
    __asm__("" : "+m"(v));
    return (__builtin_convertvector(v, grid_vec) + shifter) - shifter;
}

/* e h (tanh(w y + x) + alpha y), and the tanh */
AN_INLINE vec unicornn_force(vec w, vec h, vec alpha, vec y, vec x, vec *t) {
    *t = tanh_of(w * y + x);
    return h * (*t + alpha * y);
}

static void hold_state(block *b, int64_t l, int64_t slot_from, int64_t slot_to, int64_t row) {
    copy(state_slot(b, b->y[l], slot_to, row), state_slot(b, b->y[l], slot_from, row),
         b->c->padded);
    copy(state_slot(b, b->z[l], slot_to, row), state_slot(b, b->z[l], slot_from, row),
         b->c->padded);
}

static void unicornn_walk(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const vec alpha = splat((real)c->call->frequency);
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++) {
            if (t0 + s >= length_of(b, r)) {
                hold_state(b, l, s, s + 1, r);
                continue;
            }
            const vec e = splat(elapsed_at(b, t0 + s, r));
            const real *x = drive_row(b, s, r);
            const real *y = state_slot(b, b->y[l], s, r), *z = state_slot(b, b->z[l], s, r);
            real *y_new = state_slot(b, b->y[l], s + 1, r);
            real *z_new = state_slot(b, b->z[l], s + 1, r);
            real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec h = e * load(w->h + j), y_j = load(y + j);
                vec t;
                const vec force = unicornn_force(load(w->w + j), h, alpha, y_j, load(x + j), &t);
                const vec z_j = load(z + j) - force;
                if (act) store(act + j, t);
                store(z_new + j, z_j);
                store(y_new + j, y_j + h * z_j);
            }
        }
}

/* The same walk with states on the grid. (In one function with the other, the compiler would fuse
 * other operations, which changes the last bits.) */
static void unicornn_grid_walk(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const vec alpha = splat((real)c->call->frequency);
    for (int64_t s = 0; s < n; s++)
        for (int64_t r = 0; r < b->rows; r++) {
            if (t0 + s >= length_of(b, r)) {
                hold_state(b, l, s, s + 1, r);
                continue;
            }
            const vec e = splat(elapsed_at(b, t0 + s, r));
            const real *x = drive_row(b, s, r), *y = state_slot(b, b->y[l], s, r);
            real *y_new = state_slot(b, b->y[l], s + 1, r);
            real *z_new = state_slot(b, b->z[l], s + 1, r);
            double *grid_y = b->grid_y[l] + r * c->y_row, *grid_z = b->grid_z[l] + r * c->y_row;
            real *act = b->act[l] ? b->act[l] + (s * b->rows + r) * act_row(c) : NULL;
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec h = e * load(w->h + j);
                vec t;
                const vec force =
                    unicornn_force(load(w->w + j), h, alpha, load(y + j), load(x + j), &t);
                if (act) store(act + j, t);
                const grid_vec z_j = load_grid(grid_z + j) - on_grid(force);
                const vec z_real = __builtin_convertvector(z_j, vec);
                const grid_vec y_j = load_grid(grid_y + j) + on_grid(h * z_real);
                store_grid(grid_z + j, z_j);
                store_grid(grid_y + j, y_j);
                store(z_new + j, z_real);
                store(y_new + j, __builtin_convertvector(y_j, vec));
            }
            for (int64_t j = 0; j < c->H; j++)
                if (off_grid(grid_y[j]) || off_grid(grid_z[j])) b->overflow = 1;
        }
}

/* From the grid state after n steps back to slot 0, exactly. */
static void unicornn_grid_undo(block *b, int64_t l, int64_t t0, int64_t n) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    const vec alpha = splat((real)c->call->frequency);
    show_grid_state(b, l, n);
    for (int64_t s = n - 1; s >= 0; s--)
        for (int64_t r = 0; r < b->rows; r++) {
            if (t0 + s >= length_of(b, r)) {
                hold_state(b, l, s + 1, s, r);
                continue;
            }
            const vec e = splat(elapsed_at(b, t0 + s, r));
            const real *x = drive_row(b, s, r), *z_new = state_slot(b, b->z[l], s + 1, r);
            real *y = state_slot(b, b->y[l], s, r), *z = state_slot(b, b->z[l], s, r);
            double *grid_y = b->grid_y[l] + r * c->y_row, *grid_z = b->grid_z[l] + r * c->y_row;
            real *act = b->act[l] + (s * b->rows + r) * act_row(c);
            for (int64_t j = 0; j < c->padded; j += LANES) {
                const vec h = e * load(w->h + j);
                const grid_vec y_j = load_grid(grid_y + j) - on_grid(h * load(z_new + j));
                const vec y_real = __builtin_convertvector(y_j, vec);
                vec t;
                const vec force = unicornn_force(load(w->w + j), h, alpha, y_real, load(x + j), &t);
                const grid_vec z_j = load_grid(grid_z + j) + on_grid(force);
                store(act + j, t);
                store_grid(grid_y + j, y_j);
                store_grid(grid_z + j, z_j);
                store(y + j, y_real);
                store(z + j, __builtin_convertvector(z_j, vec));
            }
        }
}

/* Row r back through its first n steps of the tile, for `vectors` vectors of neurons from j on: all
 * that is carried from step to step stays in registers. */
AN_INLINE void unicornn_row_back(block *b, int64_t l, int64_t t0, int64_t n, int64_t r, int64_t j,
                                 const int vectors) {
    const chain *c = b->c;
    const layer *weights = &c->layers[l];
    const vec alpha = splat((real)c->call->frequency);
    real *dy = b->dy[l] + r * c->y_row + j, *dz = b->dz[l] + r * c->y_row + j;
    real *sum_w = b->scratch + j, *sum_h = b->scratch + c->padded + j;
    vec w[2], h0[2], p[2], q[2], dw[2], dh[2];
    for (int i = 0; i < vectors; i++) {
        w[i] = load(weights->w + j + i * LANES), h0[i] = load(weights->h + j + i * LANES);
        p[i] = load(dy + i * LANES), q[i] = load(dz + i * LANES);
        dw[i] = load(sum_w + i * LANES), dh[i] = load(sum_h + i * LANES);
    }
    for (int64_t s = n - 1; s >= 0; s--) {
        const vec e = splat(elapsed_at(b, t0 + s, r));
        const real *y = state_slot(b, b->y[l], s, r) + j;
        const real *z_new = state_slot(b, b->z[l], s + 1, r) + j;
        const real *act = b->act[l] + (s * b->rows + r) * act_row(c) + j;
        const real *out = output_gradient(b, l, t0 + s, s, r);
        real *g = drive_row(b, s, r) + j;
        vec by_elapsed = splat(0);
        for (int i = 0; i < vectors; i++) {
            const int k = i * LANES;
            const vec h = e * h0[i], t = load(act + k), y_i = load(y + k);
            if (out) p[i] += load(out + j + k);
            q[i] += h * p[i];
            const vec by_h = p[i] * load(z_new + k) - q[i] * (t + alpha * y_i);
            const vec a = -(q[i] * h) * (splat(1) - t * t);
            store(g + k, a);
            dw[i] += a * y_i;
            dh[i] += e * by_h;
            by_elapsed += h0[i] * by_h;
            p[i] += a * w[i] - q[i] * h * alpha;
        }
        if (c->call->grad_elapsed) add_elapsed_gradient(b, t0 + s, r, by_elapsed);
    }
    for (int i = 0; i < vectors; i++) {
        store(dy + i * LANES, p[i]), store(dz + i * LANES, q[i]);
        store(sum_w + i * LANES, dw[i]), store(sum_h + i * LANES, dh[i]);
    }
}

static void unicornn_group_back(block *b, int64_t l, int64_t t0, int64_t n, group k) {
    const chain *c = b->c;
    const layer *w = &c->layers[l];
    clear(b->scratch, 2 * c->padded);
    for (int64_t r = k.first; r < k.first + k.rows; r++) {
        int64_t valid = length_of(b, r) - t0, j = 0;
        valid = valid < 0 ? 0 : valid < n ? valid : n;
        for (; j + LANES < c->padded; j += 2 * LANES) unicornn_row_back(b, l, t0, valid, r, j, 2);
        if (j < c->padded) unicornn_row_back(b, l, t0, valid, r, j, 1);
        for (int64_t s = valid; s < n; s++) clear(drive_row(b, s, r), c->padded);
    }
    real *sum_w = k.sums + w->sum_w, *sum_h = k.sums + w->sum_h;
    for (int64_t j = 0; j < c->padded; j += LANES) {
        store(sum_w + j, load(sum_w + j) + load(b->scratch + j));
        store(sum_h + j, load(sum_h + j) + load(b->scratch + c->padded + j));
    }
}

static void unicornn_back(block *b, int64_t l, int64_t t0, int64_t n) {
    for (int64_t i = 0; i < groups_in(b); i++) unicornn_group_back(b, l, t0, n, group_of(b, i));
}

#endif
