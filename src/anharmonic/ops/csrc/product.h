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
#define FEW 3 /* rows that go through two panels at once */

AN_INLINE int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* What products multiply: reals, or with AN_BFLOAT16 pairs of rounded ones. With AN_AMX
 * the inner index is padded to whole tiles of 16 pairs. */
#if defined(AN_BFLOAT16)
enum { PER_OPERAND = 2, AMX_TILE = 16 }; /* entries along the inner index, and operands of a tile */
typedef uint32_t operand;
typedef __m512i operand_vec;
AN_INLINE operand_vec load_operands(const operand *p);
AN_INLINE operand_vec splat_operand(operand x);
AN_INLINE vec add_multiple(vec sum, operand_vec x, operand_vec y);
#else
enum { PER_OPERAND = 1 };
typedef real operand;
typedef vec operand_vec;
AN_INLINE operand_vec load_operands(const operand *p) { return load(p); }
AN_INLINE operand_vec splat_operand(operand x) { return splat(x); }
AN_INLINE vec add_multiple(vec sum, operand_vec x, operand_vec y) { return sum + x * y; }
#endif

AN_INLINE int64_t operands(int64_t inner) {
    const int64_t count = (inner + PER_OPERAND - 1) / PER_OPERAND;
#if defined(AN_AMX)
    return rounded_up(count, AMX_TILE);
#else
    return count;
#endif
}

/* What a sum begins with. FROM_START: `start`, or 0 where that is NULL. FROM_C: what is in c.
 * THEN_C: 0, and what is in c is added last. */
enum { FROM_START, FROM_C, THEN_C };

/* The two factors of a product: a(r, k) = a[r * a_row + k * a_inner], one of a_row and a_inner
 * being 1, and panel p of b, b(k, n) = b[p * b_panel + k * b_inner + n]. The inner index is walked
 * in `stretches` of `inner`, a_stretch and b_stretch apart. */
typedef struct {
    const operand *a, *b;
    int64_t a_row, a_inner, a_stretch, b_panel, b_inner, b_stretch, inner, stretches;
} factors;

/* c[r][0:panels * PANEL] = sum_k a(r, k) b(k, 0:panels * PANEL) for r < m. */
AN_INLINE void micro(const int m, const int panels, const factors f, real *c, int64_t c_row,
                     const int from, const real *start) {
    vec sum[GROUP][4];
    for (int r = 0; r < m; r++)
        for (int v = 0; v < 2 * panels; v++)
            sum[r][v] = from == FROM_C ? load(c + r * c_row + v * LANES)
                        : start        ? load(start + v * LANES)
                                       : splat(0);
    const operand *a = f.a, *b = f.b;
    for (int64_t i = 0; i < f.stretches; i++, a += f.a_stretch, b += f.b_stretch)
        for (int64_t k = 0; k < f.inner; k++) {
            operand_vec row[4];
            for (int v = 0; v < 2 * panels; v++)
                row[v] = load_operands(b + v / 2 * f.b_panel + k * f.b_inner + v % 2 * LANES);
            for (int r = 0; r < m; r++) {
                const operand_vec s = splat_operand(a[r * f.a_row + k * f.a_inner]);
                for (int v = 0; v < 2 * panels; v++) sum[r][v] = add_multiple(sum[r][v], s, row[v]);
            }
        }
    for (int r = 0; r < m; r++)
        for (int v = 0; v < 2 * panels; v++) {
            real *to = c + r * c_row + v * LANES;
            store(to, from == THEN_C ? load(to) + sum[r][v] : sum[r][v]);
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

/* How many of the last rows are too few to keep the processor busy with one panel. */
AN_INLINE int64_t few_rows(int64_t rows) {
    while (rows > FEW) rows -= next_group(rows);
    return rows;
}

AN_INLINE void micro_rows(int64_t m, const factors f, real *c, int64_t c_row, const int from,
                          const real *start) {
    switch (m) {
#if GROUP == 8
        case 8: micro(8, 1, f, c, c_row, from, start); break;
        case 7: micro(7, 1, f, c, c_row, from, start); break;
#endif
        case 6: micro(6, 1, f, c, c_row, from, start); break;
        case 5: micro(5, 1, f, c, c_row, from, start); break;
        case 4: micro(4, 1, f, c, c_row, from, start); break;
        case 3: micro(3, 1, f, c, c_row, from, start); break;
        case 2: micro(2, 1, f, c, c_row, from, start); break;
        case 1: micro(1, 1, f, c, c_row, from, start); break;
    }
}

/* Few rows through two panels at once: each row has too few sums in flight in one. */
AN_INLINE void micro_few_rows(int64_t m, const factors f, real *c, int64_t c_row, const int from,
                              const real *start) {
    switch (m) {
        case 3: micro(3, 2, f, c, c_row, from, start); break;
        case 2: micro(2, 2, f, c, c_row, from, start); break;
        case 1: micro(1, 2, f, c, c_row, from, start); break;
    }
}

/* One or two panels of c for `rows` rows. */
AN_INLINE void panel_pair(int64_t rows, int64_t panels, factors f, real *c, int64_t c_row,
                          const int from, const real *start) {
    const int64_t few = panels == 2 ? few_rows(rows) : 0;
    const operand *a = f.a, *b = f.b;
    for (int64_t p = 0; p < panels; p++)
        for (int64_t r = 0, m; r < rows - few; r += m) {
            m = next_group(rows - r);
            f.a = a + r * f.a_row, f.b = b + p * f.b_panel;
            micro_rows(m, f, c + r * c_row + p * PANEL, c_row, from, start ? start + p * PANEL : 0);
        }
    f.a = a + (rows - few) * f.a_row, f.b = b;
    micro_few_rows(few, f, c + (rows - few) * c_row, c_row, from, start);
}

#if defined(AN_BFLOAT16)
#include "bfloat16.h"
#else

/* c [rows, columns] = start + a [rows, inner] B, or c += a B where `add`; columns a multiple of
 * PANEL, B packed. */
static void product(const real *a, int64_t a_row, int64_t rows, const operand *packed,
                    int64_t inner, int64_t columns, real *c, int64_t c_row, int add,
                    const real *start) {
    factors f = {.a = a,
                 .a_row = a_row,
                 .a_inner = 1,
                 .b_panel = inner * PANEL,
                 .b_inner = PANEL,
                 .inner = inner,
                 .stretches = 1};
    for (int64_t n = 0; n < columns; n += 2 * PANEL) {
        f.b = packed + n * inner;
        const real *from = start ? start + n : 0;
        const int64_t panels = columns - n > PANEL ? 2 : 1;
        if (add)
            panel_pair(rows, panels, f, c + n, c_row, FROM_C, 0);
        else
            panel_pair(rows, panels, f, c + n, c_row, FROM_START, from);
    }
}

/* c [inputs, columns] += sum over steps and their rows of a[row][input] g[row][column]; the rows of
 * one step follow those of the one before after `step_rows` rows; columns a multiple of PANEL. */
static void add_outer_product(const real *a, int64_t a_row, int64_t inputs, const real *g,
                              int64_t g_row, int64_t columns, int64_t steps, int64_t step_rows,
                              int64_t rows, real *c) {
    factors f = {.a_row = 1,
                 .a_inner = a_row,
                 .a_stretch = step_rows * a_row,
                 .b_inner = g_row,
                 .b_stretch = step_rows * g_row,
                 .inner = rows,
                 .stretches = steps};
    if (rows == step_rows) f.inner *= steps, f.stretches = 1;
    for (int64_t n = 0; n < columns; n += PANEL)
        for (int64_t k = 0, m; k < inputs; k += m) {
            m = next_group(inputs - k);
            f.a = a + k, f.b = g + n;
            micro_rows(m, f, c + k * columns + n, columns, THEN_C, 0);
        }
}

/* Packs the matrix B(k, n) = b[n * b_row + k] into panels of PANEL columns, zeros beside it;
 * `packed` holds rounded_up(columns, PANEL) * inner reals. */
static void pack(operand *packed, int64_t inner, int64_t columns, const real *b, int64_t b_row) {
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

/* One row of a panel, from n columns of `row`; NULL is a row of zeros. */
static void pack_row(operand *to, const real *row, const real *unused, int64_t n) {
    (void)unused;
    if (!row) n = 0;
    if (n) memcpy(to, row, (size_t)n * sizeof(real));
    memset(to + n, 0, (size_t)(PANEL - n) * sizeof(real));
}

#endif

#endif
