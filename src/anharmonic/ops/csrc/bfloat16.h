/* Products in bfloat16 with sums in float: what product.h does, with rounded factors.
 *
 * An operand is a pair of neighbours along the inner index, 2k and 2k + 1, the first in the lower
 * half; beyond the end of the inner index stand zeros. Factors are rounded to the nearest, ties to
 * even; numbers too small to be normal count as 0. A sum runs over the pairs in ascending order,
 * whatever rows stand beside it. Included by product.h. */

AN_INLINE operand_vec load_operands(const operand *p) { return _mm512_loadu_si512(p); }
AN_INLINE operand_vec splat_operand(operand x) { return _mm512_set1_epi32((int)x); }
AN_INLINE vec add_multiple(vec sum, operand_vec x, operand_vec y) {
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
}

/* The first n of LANES reals, zeros behind them; n may be too small or too large. */
AN_INLINE vec load_some(const real *p, int64_t n) {
    const __mmask16 lanes = n >= LANES ? 0xffff : n > 0 ? (__mmask16)((1u << n) - 1) : 0;
    return _mm512_maskz_loadu_ps(lanes, p);
}

/* 32 reals that follow each other, as pairs. */
AN_INLINE operand_vec neighbours(vec low, vec high) {
    return (operand_vec)_mm512_cvtne2ps_pbh(high, low);
}

/* Lane by lane, (first, second) as pairs. */
AN_INLINE operand_vec pairs_of(vec first, vec second) {
    static const uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), neighbours(first, second));
}

/* Pairs from the first n of LANES columns of two rows; row -1 is zeros. */
AN_INLINE operand_vec pair_of_rows(const real *a, int64_t a_row, const int64_t *at, int64_t n) {
    return pairs_of(at[0] < 0 ? splat(0) : load_some(a + at[0] * a_row, n),
                    at[1] < 0 ? splat(0) : load_some(a + at[1] * a_row, n));
}

/* Rounds m rows of `inner` reals to pairs, zeros behind them. */
AN_INLINE void round_rows(operand *to, int64_t to_row, const real *a, int64_t a_row, int64_t m,
                          int64_t inner) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < operands(inner); j += LANES) {
            const real *from = a + i * a_row + 2 * j;
            const vec low = load_some(from, inner - 2 * j);
            const vec high = load_some(from + LANES, inner - 2 * j - LANES);
            _mm512_storeu_si512(to + i * to_row + j, neighbours(low, high));
        }
}

enum {
    PAIRS = 256, /* of a row that are rounded at once */
    PAIR_PITCH = PAIRS + 16,
    OUTER_COLUMNS = 128 /* of an outer product that are packed at once */
};

#if defined(AN_AMX)
#include "amx.h"
#else

enum {
    OUTER_PAIRS = 32, /* of rows, and columns beside them, whose outer product is added at once */
    OUTER_PITCH = OUTER_COLUMNS + 16,
    OUTER_LEFT = OUTER_PAIRS * OUTER_PITCH
};

AN_INLINE void take_tiles(void) {}
AN_INLINE void give_tiles(void) {}

/* c [rows, columns] = start + a [rows, inner] B, or c += a B where `add`; columns a multiple of
 * PANEL, B packed. */
static void product(const real *a, int64_t a_row, int64_t rows, const operand *packed,
                    int64_t inner, int64_t columns, real *c, int64_t c_row, int add,
                    const real *start) {
    _Alignas(64) operand pairs[GROUP * PAIR_PITCH];
    factors f = {.a = pairs,
                 .a_row = PAIR_PITCH,
                 .a_inner = 1,
                 .b_panel = operands(inner) * PANEL,
                 .b_inner = PANEL,
                 .stretches = 1};
    for (int64_t r = 0, m; r < rows; r += m) {
        m = next_group(rows - r);
        for (int64_t k = 0; k < inner; k += 2 * PAIRS) {
            const int64_t here = inner - k < 2 * PAIRS ? inner - k : 2 * PAIRS;
            f.inner = operands(here);
            round_rows(pairs, PAIR_PITCH, a + r * a_row + k, a_row, m, here);
            for (int64_t n = 0; n < columns; n += 2 * PANEL) {
                const int64_t panels = columns - n > PANEL ? 2 : 1;
                f.b = packed + n * operands(inner) + k / 2 * PANEL;
                real *to = c + r * c_row + n;
                if (add || k)
                    panel_pair(m, panels, f, to, c_row, FROM_C, 0);
                else
                    panel_pair(m, panels, f, to, c_row, FROM_START, start ? start + n : 0);
            }
        }
    }
}

/* Rounds the pairs of rows that `at` names, `wide` <= OUTER_COLUMNS columns of them. */
AN_INLINE void pack_left(operand *left, const real *a, int64_t a_row, const int64_t *at,
                         int64_t pairs, int64_t wide) {
    for (int64_t i = 0; i < pairs; i++)
        for (int64_t j = 0; j < wide; j += LANES)
            _mm512_storeu_si512(left + i * OUTER_PITCH + j,
                                pair_of_rows(a + j, a_row, at + 2 * i, wide - j));
}

/* c[k][0:PANEL] += sum_i left(i, k) right(i, 0:PANEL) for k < wide. */
AN_INLINE void add_panel(const operand *left, int64_t wide, const operand *right, int64_t pairs,
                         real *c, int64_t c_row) {
    factors f = {.b = right,
                 .a_row = 1,
                 .a_inner = OUTER_PITCH,
                 .b_inner = PANEL,
                 .inner = pairs,
                 .stretches = 1};
    for (int64_t k = 0, m; k < wide; k += m) {
        m = next_group(wide - k);
        f.a = left + k;
        micro_rows(m, f, c + k * c_row, c_row, THEN_C, 0);
    }
}

#endif

/* c [inputs, columns] += sum over steps and their rows of a[row][input] g[row][column]; the rows of
 * one step follow those of the one before after `step_rows` rows; columns a multiple of PANEL. */
static void add_outer_product(const real *a, int64_t a_row, int64_t inputs, const real *g,
                              int64_t g_row, int64_t columns, int64_t steps, int64_t step_rows,
                              int64_t rows, real *c) {
    _Alignas(64) operand left[OUTER_LEFT], right[OUTER_PAIRS * PANEL];
    int64_t at[2 * OUTER_PAIRS]; /* the rows, -1 behind the last */
    take_tiles();
    for (int64_t q = 0; q < steps * rows; q += 2 * OUTER_PAIRS) {
        const int64_t count =
            steps * rows - q < 2 * OUTER_PAIRS ? steps * rows - q : 2 * OUTER_PAIRS;
        const int64_t pairs = operands(count);
        for (int64_t i = 0; i < 2 * pairs; i++)
            at[i] = i < count ? (q + i) / rows * step_rows + (q + i) % rows : -1;
        for (int64_t k = 0; k < inputs; k += OUTER_COLUMNS) {
            const int64_t wide = inputs - k < OUTER_COLUMNS ? inputs - k : OUTER_COLUMNS;
            pack_left(left, a + k, a_row, at, pairs, wide);
            for (int64_t n = 0; n < columns; n += PANEL) {
                for (int64_t i = 0; i < pairs; i++)
                    for (int64_t j = 0; j < PANEL; j += LANES)
                        _mm512_storeu_si512(right + i * PANEL + j,
                                            pair_of_rows(g + n + j, g_row, at + 2 * i, LANES));
                add_panel(left, wide, right, pairs, c + k * columns + n, columns);
            }
        }
    }
    give_tiles();
}

/* Packs the matrix B(k, n) = b[n * b_row + k] into panels of PANEL columns, zeros beside it;
 * `packed` holds rounded_up(columns, PANEL) * operands(inner). */
static void pack(operand *packed, int64_t inner, int64_t columns, const real *b, int64_t b_row) {
    for (int64_t n = 0; n < rounded_up(columns, PANEL); n += LANES) {
        operand *to = packed + n / PANEL * PANEL * operands(inner) + n % PANEL;
        for (int64_t k = 0; k < inner; k += 2 * LANES) {
            vec square[LANES];
            for (int64_t j = 0; j < LANES; j++) {
                const int64_t left = n + j < columns ? inner - k : 0;
                const real *from = b + (n + j < columns ? (n + j) * b_row + k : 0);
                square[j] =
                    (vec)neighbours(load_some(from, left), load_some(from + LANES, left - LANES));
            }
            transpose(square);
            for (int64_t j = 0; j < LANES && k / 2 + j < operands(inner); j++)
                _mm512_storeu_si512(to + (k / 2 + j) * PANEL, (operand_vec)square[j]);
        }
    }
}

/* One row of a panel, from n columns of `first` and `second`, which follow each other along the
 * inner index; NULL is a row of zeros. */
static void pack_row(operand *to, const real *first, const real *second, int64_t n) {
    for (int64_t j = 0; j < PANEL; j += LANES)
        _mm512_storeu_si512(to + j, pairs_of(first ? load_some(first + j, n - j) : splat(0),
                                             second ? load_some(second + j, n - j) : splat(0)));
}
