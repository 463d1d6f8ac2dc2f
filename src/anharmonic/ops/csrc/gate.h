/* The gate of Gradient Gating before its tanh, (8.4):
 *   s_i = sum over neighbours j of |h_j - h_i|^p,   channel by channel or over all channels,
 * divided by their number for the mean; and its gradient
 *   dh_i = -g_i sum_j phi'(h_j - h_i) - sum_k g_k phi'(h_k - h_i),   k: i is a neighbour of k,
 * with phi'(d) = p |d|^(p - 1) sign(d), 0 at d = 0. Differences are taken edge by edge: sums of
 * squares would cancel where neighbours are alike, which is what the gate looks for. */
#ifndef AN_GATE_H
#define AN_GATE_H

#include "graph.h"

/* How |d|^p is computed. */
enum { POWER_1 = 1, POWER_2, POWER_3, POWER_4, POWER_5, POWER_ANY };

AN_INLINE vec size_of(vec d) { return (vec)((natural_vec)d & ~(natural_vec)splat((real)-0.0)); }

AN_INLINE vec power_of_difference(vec d, const int law, exponent p) {
    switch (law) {
        case POWER_1: return size_of(d);
        case POWER_2: return d * d;
        case POWER_3: return size_of(d) * (d * d);
        case POWER_4: return (d * d) * (d * d);
        case POWER_5: return size_of(d) * ((d * d) * (d * d));
        default: return power_of(size_of(d), p);
    }
}

/* phi'(d) / p */
AN_INLINE vec slope_at_difference(vec d, const int law, exponent p_less_1) {
    const vec a = size_of(d);
    switch (law) {
        case POWER_1:
            return choose((whole_vec)(d > splat(0)), splat(1),
                          choose((whole_vec)(d < splat(0)), splat(-1), d));
        case POWER_2: return d;
        case POWER_3: return a * d;
        case POWER_4: return (d * d) * d;
        case POWER_5: return (d * d) * (a * d);
        default: {
            const natural_vec sign = (natural_vec)d & (natural_vec)splat((real)-0.0);
            return (vec)((natural_vec)power_of(a, p_less_1) | sign);
        }
    }
}

/* w * slope, but 0 where w is: where slopes overflow (p > 2), tanh is flat. */
AN_INLINE vec weighted(vec w, vec slope, const int law) {
    if (law == POWER_1 || law == POWER_2) return w * slope;
    return choose((whole_vec)(w == splat(0)), splat(0), w * slope);
}

AN_INLINE real share_of(const an_graph_call *c, int64_t i) {
    return c->mean ? 1 / (real)(c->start[i + 1] - c->start[i]) : 1;
}

AN_INLINE void gate_block(const an_graph_call *c, int64_t from, int64_t to, int64_t at,
                          const int vectors, int64_t part, const int law) {
    const int64_t F = c->features, *start = c->start, *other = c->other, edges = start[c->nodes];
    const real *h = c->x;
    const exponent p = exponent_of(c->power);
    for (int64_t i = from; i < to; i++) {
        vec sum[WIDE] = {0}, all = splat(0);
        const real *own = h + i * F + at;
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            if (e + AHEAD < edges) fetch_ahead(h + other[e + AHEAD] * F + at, vectors);
            const real *row = h + other[e] * F + at;
            for (int v = 0; v < vectors; v++) {
                const vec d = load_columns(c, h, row + v * LANES, part) -
                              load_columns(c, h, own + v * LANES, part);
                sum[v] += power_of_difference(d, law, p);
            }
        }
        const int64_t count = start[i + 1] - start[i];
        const real by = c->mean && count ? (real)count : 1;
        for (int v = 0; v < vectors; v++) {
            if (c->single)
                all += sum[v];
            else
                store_columns((real *)c->result + i * F + at + v * LANES, sum[v] / splat(by), part);
        }
        if (c->single) {
            for (int64_t lane = part; part && lane < LANES; lane++) all[lane] = 0;
            ((real *)c->result)[i] += sum_of_lanes(all) / by;
        }
    }
}

AN_INLINE void gate_back_block(const an_graph_call *c, int64_t from, int64_t to, int64_t at,
                               const int vectors, int64_t part, const int law) {
    const int64_t F = c->features, *start = c->start, *other = c->other, edges = start[c->nodes];
    const int64_t *back_start = c->back_start, *back_other = c->back_other;
    const real *h = c->x, *g = c->grad;
    const exponent less_1 = exponent_of(c->power - 1);
    for (int64_t i = from; i < to; i++) {
        vec sum[WIDE] = {0};
        const real *own = h + i * F + at;
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            if (e + AHEAD < edges) fetch_ahead(h + other[e + AHEAD] * F + at, vectors);
            const real *row = h + other[e] * F + at;
            for (int v = 0; v < vectors; v++) {
                const vec d = load_columns(c, h, row + v * LANES, part) -
                              load_columns(c, h, own + v * LANES, part);
                sum[v] += slope_at_difference(d, law, less_1);
            }
        }
        const real share = start[i + 1] > start[i] ? share_of(c, i) : 0;
        for (int v = 0; v < vectors; v++) {
            const vec g_i =
                c->single ? splat(g[i]) : load_columns(c, g, g + i * F + at + v * LANES, part);
            sum[v] = weighted(splat(share) * g_i, sum[v], law);
        }
        for (int64_t e = back_start[i]; e < back_start[i + 1]; e++) {
            if (e + AHEAD < edges) {
                const int64_t next = back_other[e + AHEAD] * F + at;
                fetch_ahead(h + next, vectors);
                if (!c->single) fetch_ahead(g + next, vectors);
            }
            const int64_t k = back_other[e];
            const vec k_share = splat(share_of(c, k));
            for (int v = 0; v < vectors; v++) {
                const int64_t there = k * F + at + v * LANES;
                const vec d =
                    load_columns(c, h, h + there, part) - load_columns(c, h, own + v * LANES, part);
                const vec g_k = c->single ? splat(g[k]) : load_columns(c, g, g + there, part);
                sum[v] += weighted(k_share * g_k, slope_at_difference(d, law, less_1), law);
            }
        }
        for (int v = 0; v < vectors; v++)
            store_columns((real *)c->result + i * F + at + v * LANES,
                          splat((real)-c->power) * sum[v], part);
    }
}

#define BY_LAW(block, c, from, to)                                                                 \
    if (c->power == 1)                                                                             \
        IN_BLOCKS(block, c, from, to, POWER_1)                                                     \
    else if (c->power == 2)                                                                        \
        IN_BLOCKS(block, c, from, to, POWER_2)                                                     \
    else if (c->power == 3)                                                                        \
        IN_BLOCKS(block, c, from, to, POWER_3)                                                     \
    else if (c->power == 4)                                                                        \
        IN_BLOCKS(block, c, from, to, POWER_4)                                                     \
    else if (c->power == 5)                                                                        \
        IN_BLOCKS(block, c, from, to, POWER_5)                                                     \
    else                                                                                           \
        IN_BLOCKS(block, c, from, to, POWER_ANY)

static void gate_rows(const an_graph_call *c, int64_t from, int64_t to) {
    if (c->single) clear((real *)c->result + from, to - from);
    BY_LAW(gate_block, c, from, to)
}

static void gate_back_rows(const an_graph_call *c, int64_t from, int64_t to) {
    BY_LAW(gate_back_block, c, from, to)
}

#endif
