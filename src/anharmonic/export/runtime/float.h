/* Floating point: functions and products. */
#define R(x) ((model_real)(x))
/* A constant with more digits than a float holds. */
#ifdef MODEL_DOUBLE
#define D(x) x
#else
#define D(x) x##f
#endif

#if TANH
#if TANH_TABLE
#include "table.h"

/* tanh by a table over [0, TABLE_END], with straight lines in between. */
static model_real MODEL_TANH(model_real x) {
    model_real size = x < 0 ? -x : x, at = size * R(TABLE_PER_ONE), y;
    int i;
    if (!(size < R(TABLE_END))) return x > 0 ? R(1) : x < 0 ? R(-1) : x;
    i = (int)at;
    y = tanh_table[i] + (at - (model_real)i) * (tanh_table[i + 1] - tanh_table[i]);
    return x < 0 ? -y : y;
}

#else
#include <math.h>
#ifdef MODEL_DOUBLE
#define MODEL_TANH tanh
#define MODEL_EXP exp
#else
#define MODEL_TANH tanhf
#define MODEL_EXP expf
#endif

#endif
#endif
#if SIGMOID
static model_real sigmoid(model_real x) {
#if TANH_TABLE
    return R(0.5f) + R(0.5f) * MODEL_TANH(R(0.5f) * x);
#else
    return 1 / (1 + MODEL_EXP(-x));
#endif
}

#endif
#if SQRT
#include <math.h>
#ifdef MODEL_DOUBLE
#define MODEL_SQRT sqrt
#else
#define MODEL_SQRT sqrtf
#endif

#endif
#if MATH
#include <math.h>
#ifdef MODEL_DOUBLE
#define MODEL_MATH(name) name
#else
#define MODEL_MATH(name) name##f
#endif

#endif
#if REMAINDER
/* With the sign of the divisor, as in Python. */
static model_real remainder_of(model_real a, model_real b) {
    model_real rest = MODEL_MATH(fmod)(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#endif
#if MATRICES
typedef struct {
    const MODEL_FLASH model_real *weight;
    int rows, columns;
} matrix;

/* result += m x */
static void add(const matrix *m, const model_real *x, model_real *result) {
    const MODEL_FLASH model_real *w = m->weight;
    for (int i = 0; i < m->rows; i++) {
        model_real sum = 0;
        for (int j = 0; j < m->columns; j++) sum += *w++ * x[j];
        result[i] += sum;
    }
}

static void set(model_real *result, const MODEL_FLASH model_real *x, int count) {
    for (int i = 0; i < count; i++) result[i] = x[i];
}

#endif
