/* Sums over the neighbours of every node of a graph.
 *
 * A node's sum runs over its edges in their order, on one thread: results depend neither on the
 * number of threads nor on how nodes are cut into chunks. What a node gets back in a backward pass
 * is gathered over the edges sorted by their other end, so that nothing is written by two threads.
 *
 * Columns are taken in blocks of up to WIDE vectors, whose sums stay in registers while the edges
 * pass. The vector with the last columns may read on into the next row, never past the last one;
 * what it sums there is not used.
 */
#ifndef AN_GRAPH_H
#define AN_GRAPH_H

#include "chain.h"
#include "pool.h"
#include "power.h"
#include "workspace.h"

enum { WIDE = 8, AHEAD = 6, CHUNKS_PER_THREAD = 16, SMALL = 1 << 15 };

typedef struct {
    const an_graph_call *call;
    int64_t chunks;
    void (*walk)(const an_graph_call *call, int64_t from, int64_t to);
} graph_job;

/* Calls block(call, from, to, first column, vectors, columns of the last vector or 0 if all, ...)
 * on all columns. Vectors and the zero are constants. */
#define IN_BLOCKS(block, call, from, to, ...)                                                      \
    {                                                                                              \
        const int64_t last = (call)->features;                                                     \
        int64_t at = 0;                                                                            \
        for (; at + WIDE * LANES <= last; at += WIDE * LANES)                                      \
            block(call, from, to, at, WIDE, 0, __VA_ARGS__);                                       \
        for (; at + WIDE / 2 * LANES <= last; at += WIDE / 2 * LANES)                              \
            block(call, from, to, at, WIDE / 2, 0, __VA_ARGS__);                                   \
        for (; at + LANES <= last; at += LANES) block(call, from, to, at, 1, 0, __VA_ARGS__);      \
        if (at < last) block(call, from, to, at, 1, last - at, __VA_ARGS__);                       \
    }

/* Columns of one node in a matrix [nodes, features]; `part` of a vector's lanes are wanted. */
AN_INLINE vec load_columns(const an_graph_call *c, const real *matrix, const real *p,
                           int64_t part) {
    if (!part || p + LANES <= matrix + c->nodes * c->features) return load(p);
    real some[LANES] = {0};
    copy(some, p, part);
    return load(some);
}

AN_INLINE void store_columns(real *p, vec v, int64_t part) {
    if (part) {
        real all[LANES];
        store(all, v);
        copy(p, all, part);
    } else {
        store(p, v);
    }
}

/* Edges come in any order; without this, every row would be waited for. */
AN_INLINE void fetch_ahead(const real *row, const int vectors) {
    for (int byte = 0; byte < vectors * AN_VECTOR_BYTES; byte += 64)
        __builtin_prefetch((const char *)row + byte);
}

AN_INLINE void sum_block(const an_graph_call *c, int64_t from, int64_t to, int64_t at,
                         const int vectors, int64_t part, const int weighted) {
    const int64_t F = c->features, *start = c->start, *other = c->other, edges = start[c->nodes];
    const real *x = c->x, *weight = c->weight;
    for (int64_t i = from; i < to; i++) {
        vec sum[WIDE] = {0};
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            if (e + AHEAD < edges) fetch_ahead(x + other[e + AHEAD] * F + at, vectors);
            const real *row = x + other[e] * F + at;
            const vec w = splat(weighted ? weight[e] : 1);
            for (int v = 0; v < vectors; v++) {
                const vec x_j = load_columns(c, x, row + v * LANES, part);
                sum[v] += weighted ? w * x_j : x_j;
            }
        }
        for (int v = 0; v < vectors; v++)
            store_columns((real *)c->result + i * F + at + v * LANES, sum[v], part);
    }
}

static void sum_rows(const an_graph_call *c, int64_t from, int64_t to) {
    if (c->weight)
        IN_BLOCKS(sum_block, c, from, to, 1)
    else
        IN_BLOCKS(sum_block, c, from, to, 0)
}

/* Where a chunk begins, so that all have about the same number of nodes and edges. */
static int64_t chunk_start(const graph_job *job, int64_t chunk) {
    const an_graph_call *c = job->call;
    const int64_t *start = c->start, *back = c->back_start, n = c->nodes;
    const double all = (double)(n + start[n] + (back ? back[n] : 0));
    const double wanted = all * ((double)chunk / (double)job->chunks);
    int64_t low = 0, high = n;
    if (chunk == job->chunks) return n;
    while (low < high) {
        const int64_t i = low + (high - low) / 2;
        if ((double)(i + start[i] + (back ? back[i] : 0)) < wanted)
            low = i + 1;
        else
            high = i;
    }
    return low;
}

static void walk_chunk(void *context, int64_t chunk) {
    const graph_job *job = context;
    job->walk(job->call, chunk_start(job, chunk), chunk_start(job, chunk + 1));
}

static void walk_graph(const an_graph_call *c,
                       void (*walk)(const an_graph_call *call, int64_t from, int64_t to),
                       int64_t results) {
    const int threads = (c->nodes + c->start[c->nodes]) * c->features < SMALL ? 1 : (int)c->threads;
    const graph_job job = {c, threads > 1 ? threads * CHUNKS_PER_THREAD : 1, walk};
    an_advise_huge(c->result, results * (int64_t)sizeof(real));
    an_parallel(job.chunks, threads, walk_chunk, (void *)&job);
}

#endif
