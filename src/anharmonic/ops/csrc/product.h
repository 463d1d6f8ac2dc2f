/* Products of matrices with one fixed order of summation.
 *
 * Every element of a product is a sum over the inner index in ascending order, whatever rows stand
 * beside it: results do not depend on how rows are grouped into blocks, tiles or threads. */
#ifndef AN_PRODUCT_H
#define AN_PRODUCT_H

#include "vector.h"

#define PANEL (2 * LANES) /* columns of a packed panel */
#if AN_VECTOR_BYTES == 64
#define GROUP 8 /* rows whose sums are held in registers together */
#else
#define GROUP 6
#endif

AN_INLINE int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* What a sum begins with. FROM_START: `start`, or 0 where that is NULL. FROM_C: what is in c.
 * THEN_C: 0, and what is in c is added last. */
enum { FROM_START, FROM_C, THEN_C };

/* c[r][0:PANEL] = sum_k a(r, k) b[k][0:PANEL] for r < m. One of a_row, a_inner is 1. */
AN_INLINE void micro(const int m, const real *a, int64_t a_row, int64_t a_inner, const real *b,
                     int64_t b_inner, int64_t inner, real *c, int64_t c_row, const int from,
                     const real *start) {
    vec sum[GROUP][2];
    for (int r = 0; r < m; r++) {
        if (from == FROM_C) {
            sum[r][0] = load(c + r * c_row);
            sum[r][1] = load(c + r * c_row + LANES);
        } else if (start) {
            sum[r][0] = load(start);
            sum[r][1] = load(start + LANES);
        } else {
            sum[r][0] = sum[r][1] = splat(0);
        }
    }
    for (int64_t k = 0; k < inner; k++) {
        const vec b0 = load(b + k * b_inner), b1 = load(b + k * b_inner + LANES);
        for (int r = 0; r < m; r++) {
            const vec s = splat(a[r * a_row + k * a_inner]);
            sum[r][0] += s * b0;
            sum[r][1] += s * b1;
        }
    }
    for (int r = 0; r < m; r++) {
        real *to = c + r * c_row;
        store(to, from == THEN_C ? load(to) + sum[r][0] : sum[r][0]);
        store(to + LANES, from == THEN_C ? load(to + LANES) + sum[r][1] : sum[r][1]);
    }
}

/* How many of `left` rows go into the next group. */
AN_INLINE int64_t next_group(int64_t left) {
#if GROUP == 6
    return left == 8 ? 4 : left == 7 ? 4 : left < 6 ? left : 6;
#else
    return left < GROUP ? left : GROUP;
#endif
}

#if GROUP == 8
#define MORE_ROWS(...)                                                                             \
    case 8: micro(8, __VA_ARGS__); break;                                                          \
    case 7: micro(7, __VA_ARGS__); break;
#else
#define MORE_ROWS(...)
#endif
#define MICRO_ROWS(m, ...)                                                                         \
    switch (m) {                                                                                   \
        MORE_ROWS(__VA_ARGS__)                                                                     \
        case 6: micro(6, __VA_ARGS__); break;                                                      \
        case 5: micro(5, __VA_ARGS__); break;                                                      \
        case 4: micro(4, __VA_ARGS__); break;                                                      \
        case 3: micro(3, __VA_ARGS__); break;                                                      \
        case 2: micro(2, __VA_ARGS__); break;                                                      \
        case 1: micro(1, __VA_ARGS__); break;                                                      \
    }

/* c [rows, columns] = start + a [rows, inner] B, or c += a B where `add`; columns a multiple of
 * PANEL, B packed. */
static void product(const real *a, int64_t a_row, int64_t rows, const real *packed, int64_t inner,
                    int64_t columns, real *c, int64_t c_row, int add, const real *start) {
    for (int64_t n = 0; n < columns; n += PANEL, packed += inner * PANEL) {
        const real *from = start ? start + n : 0;
        for (int64_t r = 0, m; r < rows; r += m) {
            m = next_group(rows - r);
            if (add) {
                MICRO_ROWS(m, a + r * a_row, a_row, 1, packed, PANEL, inner, c + r * c_row + n,
                           c_row, FROM_C, 0)
            } else {
                MICRO_ROWS(m, a + r * a_row, a_row, 1, packed, PANEL, inner, c + r * c_row + n,
                           c_row, FROM_START, from)
            }
        }
    }
}

/* c [inputs, columns] += sum over rows of a[row][input] g[row][column]; columns a multiple of PANEL. */
static void add_outer_product(const real *a, int64_t a_row, int64_t inputs, const real *g,
                          int64_t g_row, int64_t columns, int64_t rows, real *c) {
    for (int64_t n = 0; n < columns; n += PANEL)
        for (int64_t k = 0, m; k < inputs; k += m) {
            m = next_group(inputs - k);
            MICRO_ROWS(m, a + k, 1, a_row, g + n, g_row, rows, c + k * columns + n, columns, THEN_C, 0)
        }
}

/* Packs the matrix B(k, n) = b[n * b_row + k] into panels of PANEL columns, zeros beside it; `packed`
 * holds rounded_up(columns, PANEL) * inner reals. */
static void pack(real *packed, int64_t inner, int64_t columns, const real *b, int64_t b_row) {
    for (int64_t n = 0; n < columns; n += LANES) {
        real *to = packed + n / PANEL * PANEL * inner + n % PANEL;
        int64_t k = 0;
        for (; n + LANES <= columns && k + LANES <= inner; k += LANES) {
            vec square[LANES];
            for (int j = 0; j < LANES; j++) square[j] = load(b + (n + j) * b_row + k);
            transpose(square);
            for (int j = 0; j < LANES; j++) store(to + (k + j) * PANEL, square[j]);
        }
        for (; k < inner; k++)
            for (int64_t j = 0; j < LANES; j++)
                to[k * PANEL + j] = n + j < columns ? b[(n + j) * b_row + k] : 0;
    }
    for (int64_t n = rounded_up(columns, LANES); n % PANEL; n += LANES)
        for (int64_t k = 0; k < inner; k++)
            store(packed + n / PANEL * PANEL * inner + k * PANEL + n % PANEL, splat(0));
}

#endif
