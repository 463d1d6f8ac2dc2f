/* What attention does along the edges of every node, head by head; a node's features are those of
 * all heads next to each other. The weighted sum over neighbours that goes with it is in graph.h. */
#ifndef AN_ATTENTION_H
#define AN_ATTENTION_H

#include "graph.h"

AN_INLINE real dot(const real *a, const real *b, int64_t n) {
    vec sum = splat(0);
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) sum += load(a + k) * load(b + k);
    real rest = 0;
    for (; k < n; k++) rest += a[k] * b[k];
    return n < LANES ? rest : sum_of_lanes(sum) + rest;
}

/* result_eh = own_ih . x_jh for the edges e of i, j at their other end */
static void product_rows(const an_graph_call *c, int64_t from, int64_t to) {
    const int64_t F = c->features, H = c->heads, wide = F / H;
    const int64_t *start = c->start, *other = c->other, edges = start[c->nodes];
    const real *own = c->own, *x = c->x;
    real *result = c->result;
    for (int64_t i = from; i < to; i++) {
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            if (e + AHEAD < edges) __builtin_prefetch(x + other[e + AHEAD] * F);
            for (int64_t h = 0; h < H; h++)
                result[e * H + h] = dot(own + i * F + h * wide, x + other[e] * F + h * wide, wide);
        }
    }
}

/* exp, and exactly 0 where it would be no normal number */
AN_INLINE vec weight_of(vec s) {
    const real least_normal = AN_REAL_BYTES == 4 ? (real)-87 : (real)-708;
    return choose((whole_vec)(s < splat(least_normal)), splat(0), exp_of(s));
}

/* result_eh = exp(weight_eh) / sum over the edges e' of i of exp(weight_e'h) */
static void softmax_rows(const an_graph_call *c, int64_t from, int64_t to) {
    const int64_t H = c->heads, *start = c->start;
    const real *score = c->weight;
    real *result = c->result;
    for (int64_t i = from; i < to; i++) {
        for (int64_t h = 0; h < H; h++) {
            const int64_t first = start[i] * H + h, last = start[i + 1] * H;
            real top = first < last ? score[first] : 0;
            for (int64_t at = first; at < last; at += H)
                if (score[at] > top) top = score[at];
            for (int64_t at = first; at < last; at += H) result[at] = score[at] - top;
        }
    }
    const int64_t end = start[to] * H;
    for (int64_t at = start[from] * H; at < end; at += LANES) {
        if (at + LANES <= end) {
            store(result + at, weight_of(load(result + at)));
        } else {
            real some[LANES] = {0};
            copy(some, result + at, end - at);
            store(some, weight_of(load(some)));
            copy(result + at, some, end - at);
        }
    }
    for (int64_t i = from; i < to; i++) {
        for (int64_t h = 0; h < H; h++) {
            const int64_t first = start[i] * H + h, last = start[i + 1] * H;
            real total = 0;
            for (int64_t at = first; at < last; at += H) total += result[at];
            for (int64_t at = first; at < last; at += H) result[at] /= total;
        }
    }
}

/* result_eh = a_eh (g_eh - sum over the edges e' of i of a_e'h g_e'h), a the softmax */
static void softmax_back_rows(const an_graph_call *c, int64_t from, int64_t to) {
    const int64_t H = c->heads, *start = c->start;
    const real *a = c->weight, *g = c->grad;
    real *result = c->result;
    for (int64_t i = from; i < to; i++) {
        for (int64_t h = 0; h < H; h++) {
            const int64_t first = start[i] * H + h, last = start[i + 1] * H;
            real mean = 0;
            for (int64_t at = first; at < last; at += H) mean += a[at] * g[at];
            for (int64_t at = first; at < last; at += H) result[at] = a[at] * (g[at] - mean);
        }
    }
}

#endif
