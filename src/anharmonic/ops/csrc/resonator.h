/* Damped oscillators that are driven by sequences, and pooled while they run:
 *   e = u - y,   y += a e + b z,   z += b e - c z,   u = sum over the inputs of weight * x.
 *
 * Oscillators that compete run side by side: MEMBERS vectors go through a whole sequence together,
 * and lane i of each competes with lane i of the others. Every sum runs in the order of time, so
 * that results depend neither on threads nor on what else runs, and a sequence may come in parts of
 * any length. */
#ifndef AN_RESONATOR_H
#define AN_RESONATOR_H

#include <math.h>

#include "graph.h"

/* What is pooled of y and of z: rows [B] each, then single rows. A run is the number of samples in
 * a row up to now, counted above 0 above the bias and below 0 below it. */
enum { ABOVE, EXCESS, RUN, LONGEST, LONGEST_BELOW, CROSSINGS, BIAS_POOLS };
enum { POSITION, LARGEST, SMALLEST, SQUARE, MOST, LEAST, OTHER_POOLS };
/* The oscillators are two blocks of groups: oscillator k of a block competes with k + S, k + 2S,
 * ..., MEMBERS in all, where S = oscillators / (2 MEMBERS), rounded up. */
enum { MEMBERS = 8, ALL_ROWS = BIAS_POOLS * AN_MOST_BIASES + OTHER_POOLS };
/* Samples that go together, and inputs whose weights are loaded once for them. */
enum { TILE = 32, KNOWN = 16 };

typedef struct {
    vec a, b, c;
} propagator;

/* A vector of oscillators. `part` of its lanes exist, or all if that is 0. */
typedef struct {
    int64_t at, part;
    propagator step;
    vec y, z, absent; /* absent: -infinity in lanes that do not exist, 0 in others */
} member;

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

/* Pools some responses; the first is sample number `before`. A response that is once NaN stays NaN,
 * so that it comes second where `most` and `least` must keep it. */
AN_INLINE void pool(vec *rows, const vec *response, int64_t samples, int64_t before,
                    const vec *biases, const int B) {
    const vec zero = splat(0), one = splat(1);
    vec bias[AN_MOST_BIASES], p[ALL_ROWS], *other = p + BIAS_POOLS * B;
    for (int i = 0; i < B; i++) bias[i] = biases[i];
    for (int i = 0; i < BIAS_POOLS * B + OTHER_POOLS; i++) p[i] = rows[i];
    for (int64_t sample = 0; sample < samples; sample++) {
        const vec r = response[sample], t = splat((real)(before + sample));
        for (int i = 0; i < B; i++) {
            const vec over = r - bias[i], last = p[RUN * B + i];
            const whole_vec is_over = over > zero;
            const vec run = choose(is_over, most(last, zero) + one, least(last, zero) - one);
            p[ABOVE * B + i] += choose(is_over, one, zero);
            p[EXCESS * B + i] += most(zero, over);
            p[RUN * B + i] = run;
            p[LONGEST * B + i] = most(run, p[LONGEST * B + i]);
            p[LONGEST_BELOW * B + i] = most(-run, p[LONGEST_BELOW * B + i]);
            p[CROSSINGS * B + i] += choose(is_over & (last < zero), one, zero);
            if (i == 0) other[POSITION] += choose(is_over, t, zero);
        }
        other[LARGEST] = most(other[LARGEST], r);
        other[SMALLEST] = least(other[SMALLEST], r);
        other[SQUARE] += r * r;
    }
    for (int i = 0; i < BIAS_POOLS * B + OTHER_POOLS; i++) rows[i] = p[i];
}

/* Whether a member became NaN. */
AN_INLINE int has_nan(const member *m, const int members) {
    whole_vec nan = {0};
    whole any = 0;
    for (int i = 0; i < members; i++) nan |= (whole_vec)(m[i].y != m[i].y) | (m[i].z != m[i].z);
    for (int lane = 0; lane < LANES; lane++) any |= nan[lane];
    return any != 0;
}

/* Counts which response is the largest of its group, and which the smallest. With `nan` none is
 * beside a NaN. */
AN_INLINE void compete(const member *m, const int members, vec response[][TILE], int64_t samples,
                       const vec *scale, vec *sums, int64_t stride, const int nan) {
    const vec zero = splat(0), one = splat(1);
    vec most_often[MEMBERS], least_often[MEMBERS], scaled[MEMBERS];
    for (int i = 0; i < members; i++) {
        most_often[i] = sums[i * stride + MOST];
        least_often[i] = sums[i * stride + LEAST];
    }
    for (int64_t sample = 0; sample < samples; sample++) {
        vec high, low;
        whole_vec none = {0};
        for (int i = 0; i < members; i++) {
            scaled[i] = response[i][sample] * scale[i];
            if (nan) none |= (whole_vec)(scaled[i] != scaled[i]) & (m[i].absent == zero);
            high = i ? most(scaled[i] + m[i].absent, high) : scaled[i] + m[i].absent;
            low = i ? least(scaled[i] - m[i].absent, low) : scaled[i] - m[i].absent;
        }
        for (int i = 0; i < members; i++) {
            most_often[i] += choose((scaled[i] >= high) & ~none, one, zero);
            least_often[i] += choose((scaled[i] <= low) & ~none, one, zero);
        }
    }
    for (int i = 0; i < members; i++) {
        sums[i * stride + MOST] = most_often[i];
        sums[i * stride + LEAST] = least_often[i];
    }
}

AN_INLINE void move_row(vec *row, int64_t part, real *memory, int save) {
    if (save)
        store_columns(memory, *row, part);
    else
        *row = take(memory, part);
}

/* Between memory and what a member sums, of y and then of z. */
AN_INLINE void move_sums(const an_resonator_call *c, const member *m, int64_t n, vec *sums,
                         int64_t rows, int save) {
    const int64_t K = c->oscillators;
    real *memory = (real *)c->pools + n * 2 * rows * K + m->at;
    for (int64_t i = 0; i < 2 * rows; i++) move_row(sums + i, m->part, memory + i * K, save);
}

/* A member through some samples, the first of which is sample `from` of sequence n. */
AN_INLINE void respond(const an_resonator_call *c, int64_t n, member *m, int64_t from,
                       int64_t samples, vec *y, vec *z) {
    const int64_t K = c->oscillators, F = c->inputs, known = F < KNOWN ? F : KNOWN;
    const real *weight = (const real *)c->weight + m->at;
    vec weights[KNOWN], last_y = m->y, last_z = m->z;
    propagator w = m->step;
    for (int64_t f = 0; f < known; f++) weights[f] = take(weight + f * K, m->part);
    for (int64_t i = 0; i < samples; i++) {
        const int64_t sample = from + i;
        const real *x = (const real *)c->x + sample * F;
        if (c->elapsed && (sample == c->offsets[n] || c->elapsed[sample] != c->elapsed[sample - 1]))
            w = propagator_of(c->frequency + m->at, c->q + m->at, c->elapsed[sample],
                              m->part ? m->part : LANES);
        vec u = splat(x[0]) * weights[0];
        for (int64_t f = 1; f < known; f++) u += splat(x[f]) * weights[f];
        for (int64_t f = known; f < F; f++) u += splat(x[f]) * take(weight + f * K, m->part);
        const vec e = u - last_y, before = last_z;
        last_y += w.a * e + w.b * before;
        last_z += w.b * e - w.c * before;
        y[i] = last_y;
        z[i] = last_z;
        if (c->output) {
            real *out = (real *)c->output + sample * 2 * K + m->at;
            store_columns(out, last_y, m->part);
            store_columns(out + K, last_z, m->part);
        }
    }
    m->y = last_y, m->z = last_z, m->step = w;
}

/* The members through sequence n, some samples after the other: what is pooled of one response in
 * them stays in registers. */
AN_INLINE void resonate(const an_resonator_call *c, int64_t n, member *m, const int members,
                        const int B) {
    const int64_t K = c->oscillators, start = c->offsets[n], end = c->offsets[n + 1];
    const int64_t rows = BIAS_POOLS * B + OTHER_POOLS;
    const int pools = c->pools != NULL, competing = pools && c->scale;
    const real *bias = c->bias, *scale = c->scale;
    vec sums[MEMBERS * 2 * ALL_ROWS], biases[MEMBERS * 2 * AN_MOST_BIASES], factor[2][MEMBERS];
    vec response[2][MEMBERS][TILE];
    for (int i = 0; i < members; i++) {
        if (pools) move_sums(c, m + i, n, sums + i * 2 * rows, rows, 0);
        for (int s = 0; pools && s < 2 * B; s++)
            biases[i * 2 * B + s] = take(bias + s * K + m[i].at, m[i].part);
        for (int s = 0; competing && s < 2; s++)
            factor[s][i] = take(scale + s * K + m[i].at, m[i].part);
    }
    for (int64_t from = start; from < end; from += TILE) {
        const int64_t samples = end - from < TILE ? end - from : TILE;
        for (int i = 0; i < members; i++) {
            respond(c, n, m + i, from, samples, response[0][i], response[1][i]);
            for (int s = 0; pools && s < 2; s++)
                pool(sums + (i * 2 + s) * rows, response[s][i], samples,
                     c->before[n] + from - start, biases + (i * 2 + s) * B, B);
        }
        const int nan = competing && has_nan(m, members);
        for (int s = 0; competing && s < 2; s++) {
            vec *others = sums + s * rows + BIAS_POOLS * B;
            if (nan)
                compete(m, members, response[s], samples, factor[s], others, 2 * rows, 1);
            else
                compete(m, members, response[s], samples, factor[s], others, 2 * rows, 0);
        }
    }
    for (int i = 0; i < members; i++) {
        real *state = (real *)c->state + n * 2 * K + m[i].at;
        store_columns(state, m[i].y, m[i].part);
        store_columns(state + K, m[i].z, m[i].part);
        if (pools) move_sums(c, m + i, n, sums + i * 2 * rows, rows, 1);
    }
}

static int64_t groups_of(const an_resonator_call *c) {
    return (c->oscillators + 2 * MEMBERS - 1) / (2 * MEMBERS);
}

/* Some groups of one block through one sequence. The usual numbers of biases and of members are
 * constants, so that loops over them unroll. */
static void resonate_some(void *context, int64_t index) {
    const an_resonator_call *c = context;
    const int64_t K = c->oscillators, groups = groups_of(c), vectors = (groups + LANES - 1) / LANES;
    const int64_t n = index / (2 * vectors), block = index / vectors % 2 * MEMBERS * groups;
    const int64_t first = index % vectors * LANES;
    member m[MEMBERS];
    int members = 0;
    for (; members < MEMBERS; members++) {
        const int64_t at = block + members * groups + first;
        const int64_t group_lanes = groups - first < LANES ? groups - first : LANES;
        const int64_t lanes = K - at < group_lanes ? K - at : group_lanes;
        if (lanes <= 0) break;
        const int64_t part = lanes < LANES ? lanes : 0;
        const real *state = (const real *)c->state + n * 2 * K + at;
        const real *step = (const real *)c->steps + at;
        real absent[LANES];
        for (int64_t i = 0; i < LANES; i++) absent[i] = i < lanes ? 0 : -(real)INFINITY;
        m[members] = (member){.at = at, .part = part, .y = take(state, part)};
        m[members].z = take(state + K, part), m[members].absent = load(absent);
        if (!c->elapsed)
            m[members].step =
                (propagator){take(step, part), take(step + K, part), take(step + 2 * K, part)};
    }
    if (members == MEMBERS && c->biases == 2)
        resonate(c, n, m, MEMBERS, 2);
    else if (members == MEMBERS && c->biases == 1)
        resonate(c, n, m, MEMBERS, 1);
    else
        resonate(c, n, m, members, (int)c->biases);
}

static void run_resonators(const an_resonator_call *c) {
    const int64_t vectors = (groups_of(c) + LANES - 1) / LANES;
    const int64_t work = c->offsets[c->sequences] * c->oscillators;
    an_parallel(c->sequences * 2 * vectors, work < SMALL ? 1 : (int)c->threads, resonate_some,
                (void *)c);
}

#endif
