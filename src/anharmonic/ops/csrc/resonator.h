/* Damped oscillators that are driven by sequences, and pooled while they run:
 *   e = u - y,   y += a e + b z,   z += b e - c z,   u = sum over the inputs of weight * x.
 *
 * A vector of oscillators runs through a whole sequence with its states and sums in registers.
 * Every lane is on its own and every sum runs in the order of time, so that results depend neither
 * on threads nor on what else runs, and a sequence may come in parts of any length. */
#ifndef AN_RESONATOR_H
#define AN_RESONATOR_H

#include <math.h>

#include "graph.h"

/* What is pooled of y and of z, behind the sums for each bias: `above` [B] and `excess` [B]. */
enum { RUN, LONGEST, POSITION, LARGEST, SQUARE, OTHER_POOLS };

typedef struct {
    vec a, b, c;
} propagator;

typedef struct {
    vec above[AN_MOST_BIASES], excess[AN_MOST_BIASES], other[OTHER_POOLS];
} pools;

/* Some lanes of memory: all, or the first `part` if that is not 0. */
AN_INLINE vec take(const real *p, int64_t part) {
    if (!part) return load(p);
    real some[LANES] = {0};
    copy(some, p, part);
    return load(some);
}

/* The coefficients of a step of `elapsed`, lane by lane, as ops/resonator.py says. */
static propagator propagator_of(const double *frequency, const double *q, double elapsed,
                                int64_t lanes) {
    real a[LANES] = {0}, b[LANES] = {0}, c[LANES] = {0};
    for (int64_t i = 0; i < lanes; i++) {
        const double tau = frequency[i] * elapsed, zeta = 0.5 / q[i];
        const double x = (1 - zeta * zeta) * tau * tau;
        double C, S;
        if (fabs(x) < 1e-3) {
            const double decay = exp(-zeta * tau);
            C = decay * (1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56))));
            S = decay * (1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72)))) * tau;
        } else if (x > 0) {
            const double root = sqrt(x), decay = exp(-zeta * tau);
            C = decay * cos(root);
            S = decay * sin(root) / root * tau;
        } else {
            const double root = sqrt(-x);
            const double slow = exp(root - zeta * tau), fast = exp(-root - zeta * tau);
            C = (slow + fast) / 2;
            S = (slow - fast) / 2 / root * tau;
        }
        a[i] = (real)(1 - C - zeta * S);
        b[i] = (real)S;
        c[i] = (real)(1 - C + zeta * S);
    }
    return (propagator){load(a), load(b), load(c)};
}

AN_INLINE void pool(pools *p, vec r, const vec *bias, const int B, vec t) {
    const vec zero = splat(0), one = splat(1);
    for (int i = 0; i < B; i++) {
        const vec over = r - bias[i];
        const whole_vec is_over = over > zero;
        p->above[i] += choose(is_over, one, zero);
        p->excess[i] += most(over, zero);
        if (i == 0) {
            p->other[RUN] = choose(is_over, p->other[RUN] + one, zero);
            p->other[LONGEST] = most(p->other[RUN], p->other[LONGEST]);
            p->other[POSITION] += choose(is_over, t, zero);
        }
    }
    p->other[LARGEST] = most(r, p->other[LARGEST]);
    p->other[SQUARE] += r * r;
}

AN_INLINE void move_row(vec *row, int64_t part, real *memory, int save) {
    if (save)
        store_columns(memory, *row, part);
    else
        *row = take(memory, part);
}

/* Between memory, [2B + OTHER_POOLS] rows, and registers. */
AN_INLINE void move_pools(pools *p, const int B, int64_t part, real *memory, int64_t K, int save) {
    for (int i = 0; i < B; i++) move_row(p->above + i, part, memory + i * K, save);
    memory += B * K;
    for (int i = 0; i < B; i++) move_row(p->excess + i, part, memory + i * K, save);
    memory += B * K;
    for (int i = 0; i < OTHER_POOLS; i++) move_row(p->other + i, part, memory + i * K, save);
}

AN_INLINE void resonate(const an_resonator_call *c, int64_t n, int64_t at, const int B,
                        int64_t part) {
    const int64_t K = c->oscillators, F = c->inputs, from = c->offsets[n], to = c->offsets[n + 1];
    const int64_t rows = 2 * B + OTHER_POOLS;
    const real *weight = (const real *)c->weight + at, *steps = (const real *)c->steps + at;
    real *state = (real *)c->state + n * 2 * K + at;
    real *memory = c->pools ? (real *)c->pools + n * 2 * rows * K + at : NULL;
    vec y = take(state, part), z = take(state + K, part), bias[2][AN_MOST_BIASES];
    pools of_y, of_z;
    propagator w = {0};
    if (!c->elapsed)
        w = (propagator){take(steps, part), take(steps + K, part), take(steps + 2 * K, part)};
    if (memory) {
        const real *p = (const real *)c->bias + at;
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < B; i++) bias[s][i] = take(p + (s * B + i) * K, part);
        move_pools(&of_y, B, part, memory, K, 0);
        move_pools(&of_z, B, part, memory + rows * K, K, 0);
    }
    for (int64_t sample = from; sample < to; sample++) {
        const real *x = (const real *)c->x + sample * F;
        if (c->elapsed && (sample == from || c->elapsed[sample] != c->elapsed[sample - 1]))
            w = propagator_of(c->frequency + at, c->q + at, c->elapsed[sample],
                              part ? part : LANES);
        vec u = splat(x[0]) * take(weight, part);
        for (int64_t f = 1; f < F; f++) u += splat(x[f]) * take(weight + f * K, part);
        const vec e = u - y, before = z;
        y += w.a * e + w.b * before;
        z += w.b * e - w.c * before;
        if (memory) {
            const vec t = splat((real)(c->before[n] + sample - from));
            pool(&of_y, y, bias[0], B, t);
            pool(&of_z, z, bias[1], B, t);
        }
        if (c->output) {
            real *out = (real *)c->output + sample * 2 * K + at;
            store_columns(out, y, part);
            store_columns(out + K, z, part);
        }
    }
    store_columns(state, y, part);
    store_columns(state + K, z, part);
    if (memory) {
        move_pools(&of_y, B, part, memory, K, 1);
        move_pools(&of_z, B, part, memory + rows * K, K, 1);
    }
}

/* One vector of oscillators through one sequence. The usual numbers of biases are constants, so
 * that their sums can stay in registers. */
static void resonate_one(void *context, int64_t index) {
    const an_resonator_call *c = context;
    const int64_t vectors = (c->oscillators + LANES - 1) / LANES;
    const int64_t n = index / vectors, at = index % vectors * LANES;
    const int64_t part = at + LANES <= c->oscillators ? 0 : c->oscillators - at;
    if (part)
        resonate(c, n, at, (int)c->biases, part);
    else if (c->biases == 1)
        resonate(c, n, at, 1, 0);
    else if (c->biases == 2)
        resonate(c, n, at, 2, 0);
    else
        resonate(c, n, at, (int)c->biases, 0);
}

static void run_resonators(const an_resonator_call *c) {
    const int64_t vectors = (c->oscillators + LANES - 1) / LANES;
    const int64_t work = c->offsets[c->sequences] * c->oscillators;
    an_parallel(c->sequences * vectors, work < SMALL ? 1 : (int)c->threads, resonate_one,
                (void *)c);
}

#endif
