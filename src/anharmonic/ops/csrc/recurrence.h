/* What a generated recurrence begins with: the call, the context of its functions, and their words.
 *
 * Python writes a step as six functions (ops/compiler/emit.py); recurrence_walk.h, which the
 * generated file includes behind them, walks a sequence with them. Rows that are adjacent in a
 * buffer are those of one step, then those of the next. A value of one column stands in every lane.
 */
#ifndef AN_RECURRENCE_H
#define AN_RECURRENCE_H

#include <math.h>
#include <stddef.h>

#include "elementary.h"
#include "product.h"

enum { KEEP_NOTHING, KEEP_ALL, KEEP_STARTS };
enum { TILE, SLOT, STEP };

/* One call; ops/compiler/kernel.py has the same fields in the same order. */
typedef struct {
    int64_t steps, batch, rows, tile; /* rows of a block, steps of a tile */
    int64_t keep, every;              /* what is saved; steps between starts that are */
    int64_t threads, backward;
    void (*parallel)(int64_t, int, void (*)(void *, int64_t), void *);
    void *(*take)(size_t);
    void (*give)(void *);
    const int64_t *widths;
    const double *numbers;
    const real *const *fixed;     /* dense tensors that were made of the weights */
    const int64_t *matrices;      /* fixed, columns of it, k0, k1, n0, n1 */
    const int64_t *vectors;       /* fixed, n0, n1 */
    const real *const *inputs;    /* [T, B, F] */
    const int64_t *input_strides; /* time, batch */
    const real *const *starts;    /* [B, H] dense, each variable */
    real *output;                 /* [T, B, H] of the first variable, or NULL */
    int64_t output_time, output_batch;
    real *const *ends; /* as starts */
    real *saved;
    const real *grad_output; /* or NULL */
    int64_t grad_output_time, grad_output_batch;
    const real *const *grad_ends; /* each or NULL */
    real *const *grad_inputs;     /* each or NULL */
    const int64_t *grad_input_strides;
    real *const *grad_starts;
    const int64_t *sum_parts;   /* root, first column */
    const int64_t *outer_parts; /* root, first row, first column, columns, turned */
    double *const *roots;       /* sums over rows, added to */
    real *const *outer_roots;   /* sums of products of columns, added to */
} recurrence_call;

typedef struct {
    int kind, width;
} buffer_shape;

/* Some columns of a variable, and the buffer in which they lie. */
typedef struct {
    int buffer, width, variable;
} piece;

typedef struct {
    const recurrence_call *call;
    int64_t *width, *section, *vectors, *pitch; /* by the number of a width */
    int64_t *saved_column;
    int64_t saved_row, start_row; /* reals of a row of saved values, of a state */
    real **matrix, **vector, *number;
    int64_t blocks, block_bytes, sum_bytes;
    char *sums;
    int no_memory;
} context;

typedef struct {
    const context *c;
    int64_t first, rows;
    real **buffer;
    real *saved; /* of the first step of the tile */
    double **sum;
    real **outer;
} block;

AN_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- single numbers ----------------------------------------------------------------------------
 */
AN_INLINE vec one_where(whole_vec where) { return choose(where, splat(1), splat(0)); }
AN_INLINE vec abs_of(vec x) { return choose((whole_vec)(x < splat(0)), -x, x + splat(0)); }
/* NaN where either is. */
AN_INLINE vec larger_of(vec a, vec b) { return choose((whole_vec)(a != a), a, most(a, b)); }
AN_INLINE vec smaller_of(vec a, vec b) { return choose((whole_vec)(a != a), a, least(a, b)); }
/* exp with its limits 0 and infinity, which exp_of does not reach. */
AN_INLINE vec wide_exp_of(vec x) {
    const vec half = exp_of(x * splat((real)0.5));
    return half * half;
}
#if AN_REAL_BYTES == 4
#define AN_MATH(name) name##f
#else
#define AN_MATH(name) name
#endif
#define AN_MAP(name, f)                                                                            \
    AN_INLINE vec name(vec x) {                                                                    \
        for (int i = 0; i < LANES; i++) x[i] = AN_MATH(f)(x[i]);                                   \
        return x;                                                                                  \
    }
AN_MAP(sqrt_of, sqrt)
AN_MAP(log_of, log)
AN_MAP(log1p_of, log1p)
AN_MAP(log2_of, log2)
AN_MAP(log10_of, log10)
AN_MAP(expm1_of, expm1)
AN_MAP(exp2_of, exp2)
AN_MAP(sin_of, sin)
AN_MAP(cos_of, cos)
AN_MAP(tan_of, tan)
AN_MAP(asin_of, asin)
AN_MAP(acos_of, acos)
AN_MAP(atan_of, atan)
AN_MAP(sinh_of, sinh)
AN_MAP(cosh_of, cosh)
AN_MAP(asinh_of, asinh)
AN_MAP(acosh_of, acosh)
AN_MAP(atanh_of, atanh)
AN_MAP(erf_of, erf)
AN_MAP(erfc_of, erfc)
AN_MAP(floor_of, floor)
AN_MAP(ceil_of, ceil)
AN_MAP(trunc_of, trunc)
AN_MAP(round_of, rint)
AN_INLINE vec pow_of(vec a, vec b) {
    for (int i = 0; i < LANES; i++) a[i] = AN_MATH(pow)(a[i], b[i]);
    return a;
}
AN_INLINE vec atan2_of(vec a, vec b) {
    for (int i = 0; i < LANES; i++) a[i] = AN_MATH(atan2)(a[i], b[i]);
    return a;
}

AN_INLINE vec fmod_of(vec a, vec b) {
    for (int i = 0; i < LANES; i++) a[i] = AN_MATH(fmod)(a[i], b[i]);
    return a;
}

/* With the sign of the divisor, as in Python. */
AN_INLINE vec remainder_of(vec a, vec b) {
    for (int i = 0; i < LANES; i++) {
        const real rest = AN_MATH(fmod)(a[i], b[i]);
        a[i] = rest != 0 && (rest < 0) != (b[i] < 0) ? rest + b[i] : rest;
    }
    return a;
}

/* ---- rows
 * ---------------------------------------------------------------------------------------- */
/* Lanes beyond column `width` hold anything: what reads all columns takes `other` there. */
AN_INLINE vec within(vec v, int64_t j, int64_t width, real other) {
    for (int i = 0; i < LANES; i++)
        if (j + i >= width) v[i] = other;
    return v;
}
AN_INLINE real largest_lane(vec v) {
    real m = v[0];
    for (int i = 1; i < LANES; i++)
        if (!(v[i] <= m)) m = m == m ? v[i] : m;
    return m;
}
AN_INLINE void widen(real *to, real x) { store(to, splat(x)); }
static void widen_rows(real *first, int64_t row, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) widen(first + r * row, first[r * row]);
}
static void copy_rows(real *to, int64_t to_row, const real *from, int64_t from_row, int64_t rows,
                      int64_t columns) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * to_row, from + r * from_row, (size_t)columns * sizeof(real));
}
/* Adds the sum of each column. Few rows are added up as reals, then these as doubles. */
static void sum_rows(const real *from, int64_t row, int64_t rows, int64_t columns, double *to) {
    for (int64_t j = 0; j < columns; j += LANES)
        for (int64_t r = 0; r < rows;) {
            const int64_t end = smaller(r + 16, rows);
            vec sum = splat(0);
            for (; r < end; r++) sum += load(from + r * row + j);
            for (int i = 0; i < LANES && j + i < columns; i++) to[j + i] += (double)sum[i];
        }
}

#endif
