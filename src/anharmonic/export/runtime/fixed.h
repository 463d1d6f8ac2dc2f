/* Whole numbers: shifts, functions and products. A number v stands as the integer v * 2^f, f its
 * format. Arguments of tanh have f = 16, its values f = 15. Numbers below 0 are shifted to the
 * right towards minus infinity, as all known compilers do. */
#define MOST 32767
#define HIDDEN 14 /* bits of a variable below the 16 that products see */
#define LIMIT ((int32_t)MOST * (1 << HIDDEN))

/* v / 2^s, rounded; v * 2^-s for s < 0 */
static int32_t shifted(int32_t v, int s) {
    return s > 0 ? (v >> s) + ((v >> (s - 1)) & 1) : v * ((int32_t)1 << -s);
}

static int32_t limited(int32_t v) { return v > LIMIT ? LIMIT : v < -LIMIT ? -LIMIT : v; }

#if CLIPS
static int32_t clipped(int32_t v) { return v > MOST ? MOST : v < -MOST ? -MOST : v; }

#endif
/* What products see of a variable. */
static int16_t upper(int32_t v) { return (int16_t)shifted(v, HIDDEN); }

#include "table.h"

static int32_t tanh16(int32_t x) {
    int32_t size = x < 0 ? -x : x, rest = size & 2047, y = MOST;
    if (size < 524288) { /* 8 */
        int i = (int)(size >> 11);
        int32_t low = tanh_table[i];
        y = low + (((tanh_table[i + 1] - low) * rest + 1024) >> 11);
    }
    return x < 0 ? -y : y;
}

#if SIGMOID
static int32_t sigmoid16(int32_t x) { return (32768 + tanh16(x >> 1)) >> 1; }

#endif
#if INT8
typedef int8_t model_weight;
#else
typedef int16_t model_weight;
#endif
typedef struct {
    const MODEL_FLASH model_weight *weight;
    const MODEL_FLASH int8_t *shift; /* of each row */
    int rows, columns;
} matrix;

/* result += m x; the weights are such that no sum overflows */
static void add(const matrix *m, const int16_t *x, int32_t *result) {
    const MODEL_FLASH model_weight *w = m->weight;
    for (int i = 0; i < m->rows; i++) {
        int32_t sum = 0;
        for (int j = 0; j < m->columns; j++) sum += (int32_t)*w++ * x[j];
        result[i] += shifted(sum, m->shift[i]);
    }
}

static void set(int32_t *result, const MODEL_FLASH int16_t *x, int count, int shift) {
    for (int i = 0; i < count; i++) result[i] = x[i] * ((int32_t)1 << shift);
}
