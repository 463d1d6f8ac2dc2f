/* Products in bfloat16 by AMX: what bfloat16.h does, with tiles of 16 by 16 sums.
 *
 * Operands are those of bfloat16.h; their number along the inner index is a multiple of AMX_TILE.
 * The processor sums the products of the first and of the second factors of a tile's pairs
 * separately, so the last bits differ from those of AVX512-BF16. Even a single row uses tiles,
 * because its result must not depend on the rows beside it. Included by bfloat16.h. */
_Static_assert(AMX_TILE == LANES, "transpose() turns squares of LANES");

enum {
    ROWS = 2 * AMX_TILE, /* of sums that are held in tiles together, with one panel of columns */
    OUTER_PAIRS = 64, /* of rows, and columns beside them, whose outer product is added at once */
    OUTER_PITCH = OUTER_PAIRS + AMX_TILE,
    OUTER_LEFT = OUTER_COLUMNS * OUTER_PITCH
};

/* Prepares eight whole tiles, until give_tiles(). */
static void take_tiles(void) {
    struct {
        uint8_t palette, start, unused[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } wanted = {.palette = 1};
    for (int i = 0; i < 8; i++) wanted.bytes[i] = 4 * AMX_TILE, wanted.rows[i] = AMX_TILE;
    /* The intrinsic of GCC 12 says that it reads 8 bytes only. */
    __asm__ volatile("ldtilecfg %0" : : "m"(wanted));
}

AN_INLINE void give_tiles(void) { _tile_release(); }

/* c[r][0:PANEL] = start + sum_k a(r, k) b(k, 0:PANEL) for r < m <= ROWS; start NULL is 0, and with
 * `add` it is c. a is [ROWS, a_row], of which rows from m on may hold anything. */
AN_INLINE void tiles(const operand *a, int64_t a_row, int64_t m, const operand *b, int64_t pairs,
                     real *c, int64_t c_row, int add, const real *start) {
    _Alignas(64) real sums[ROWS * PANEL];
    const int64_t a_bytes = a_row * (int64_t)sizeof *a, b_bytes = PANEL * (int64_t)sizeof *b;
    __asm__ volatile("" : : : "memory"); /* GCC 12 does not know that tiles read the operands */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t k = 0; k < pairs; k += AMX_TILE) {
        _tile_loadd(4, a + k, a_bytes);
        _tile_loadd(6, b + k * PANEL, b_bytes);
        _tile_loadd(7, b + k * PANEL + AMX_TILE, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (m > AMX_TILE) {
            _tile_loadd(5, a + AMX_TILE * a_row + k, a_bytes);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, b_bytes);
    _tile_stored(1, sums + AMX_TILE, b_bytes);
    if (m > AMX_TILE) {
        _tile_stored(2, sums + AMX_TILE * PANEL, b_bytes);
        _tile_stored(3, sums + AMX_TILE * PANEL + AMX_TILE, b_bytes);
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t n = 0; n < PANEL; n += LANES) {
            real *to = c + r * c_row + n;
            const vec sum = load(sums + r * PANEL + n);
            store(to, add ? load(to) + sum : start ? load(start + n) + sum : sum);
        }
}

/* c [rows, columns] = start + a [rows, inner] B, or c += a B where `add`; columns a multiple of
 * PANEL, B packed. */
static void product(const real *a, int64_t a_row, int64_t rows, const operand *packed,
                    int64_t inner, int64_t columns, real *c, int64_t c_row, int add,
                    const real *start) {
    _Alignas(64) operand pairs[ROWS * PAIR_PITCH];
    take_tiles();
    for (int64_t r = 0; r < rows; r += ROWS) {
        const int64_t m = rows - r < ROWS ? rows - r : ROWS;
        for (int64_t k = 0; k < inner; k += 2 * PAIRS) {
            const int64_t here = inner - k < 2 * PAIRS ? inner - k : 2 * PAIRS;
            round_rows(pairs, PAIR_PITCH, a + r * a_row + k, a_row, m, here);
            for (int64_t n = 0; n < columns; n += PANEL)
                tiles(pairs, PAIR_PITCH, m, packed + n * operands(inner) + k / 2 * PANEL,
                      operands(here), c + r * c_row + n, c_row, add || k, start ? start + n : 0);
        }
    }
    give_tiles();
}

/* Rounds the pairs of rows that `at` names, `wide` <= OUTER_COLUMNS columns of them, and transposes
 * them. */
AN_INLINE void pack_left(operand *left, const real *a, int64_t a_row, const int64_t *at,
                         int64_t pairs, int64_t wide) {
    for (int64_t i = 0; i < pairs; i += AMX_TILE)
        for (int64_t j = 0; j < wide; j += AMX_TILE) {
            vec square[AMX_TILE];
            for (int64_t r = 0; r < AMX_TILE; r++)
                square[r] = (vec)pair_of_rows(a + j, a_row, at + 2 * (i + r), wide - j);
            transpose(square);
            for (int64_t r = 0; r < AMX_TILE; r++)
                _mm512_storeu_si512(left + (j + r) * OUTER_PITCH + i, (operand_vec)square[r]);
        }
}

/* c[k][0:PANEL] += sum_i left(k, i) right(i, 0:PANEL) for k < wide. */
AN_INLINE void add_panel(const operand *left, int64_t wide, const operand *right, int64_t pairs,
                         real *c, int64_t c_row) {
    for (int64_t k = 0; k < wide; k += ROWS)
        tiles(left + k * OUTER_PITCH, OUTER_PITCH, wide - k < ROWS ? wide - k : ROWS, right, pairs,
              c + k * c_row, c_row, 1, 0);
}
