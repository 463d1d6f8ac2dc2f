#include "model.h"

#if FILLS_GAPS
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ && !defined(MODEL_NO_FLOAT)
#error "A missing value is NaN, so compile this file without -ffast-math and -Ofast."
#endif
#endif

/* Constants stay in flash memory where it has addresses of its own (AVR, with -std=gnu99). */
#if defined(__AVR__) && !defined(__STRICT_ANSI__)
#define MODEL_FLASH __flash
#else
#define MODEL_FLASH
#endif

#if WHOLE_NUMBERS
#include "fixed.h"
#else
#include "float.h"
#endif
#include "weights.h"

#if RESONATORS
#include "resonators.h"
#else
#if WHOLE_NUMBERS
#include "cells_fixed.h"
#else
#include "cells.h"
#endif
#include "frame.h"
#endif

int model_largest(const model_value outputs[MODEL_OUTPUTS]) {
    int best = 0;
    for (int i = 1; i < MODEL_OUTPUTS; i++)
        if (outputs[i] > outputs[best]) best = i;
    return best;
}

void model_sequence(const model_sample *x, long steps, model_value outputs[MODEL_OUTPUTS]) {
    model_state state;
    model_start(&state);
    for (; steps > 0; steps--, x += MODEL_CHANNELS) model_step(&state, x);
    model_output(&state, outputs);
}
