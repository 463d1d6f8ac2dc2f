/* cc -std=c99 model.c model_test.c -lm && ./a.out: 0 if the model does what Python says. */
#include <math.h>
#include <stdio.h>

#include "model.h"

#define MODEL_FLASH
#include "samples.h"

#if WHOLE_NUMBERS
/* Equal to the last bit. */
static int agrees(int32_t output, int32_t wanted) { return output == wanted; }
#else
#ifdef MODEL_DOUBLE
#define TOLERANCE DOUBLE_TOLERANCE
#else
#define TOLERANCE SINGLE_TOLERANCE
#endif

static double worst;

static int agrees(model_real output, double wanted) {
    double size = wanted < 0 ? -wanted : wanted, error = (double)output - wanted;
    error = (error < 0 ? -error : error) / (size > 1 ? size : 1);
    if (error > worst) worst = error;
    return error <= TOLERANCE;
}
#endif

int main(void) {
    int failed = 0;
    const model_sample *x = samples;
    for (int n = 0; n < SEQUENCES; n++) {
        model_value outputs[MODEL_OUTPUTS];
        model_sequence(x, lengths[n], outputs);
        x += lengths[n] * MODEL_CHANNELS;
        for (int i = 0; i < MODEL_OUTPUTS; i++) {
            double wanted = (double)expected[n * MODEL_OUTPUTS + i];
            if (agrees(outputs[i], expected[n * MODEL_OUTPUTS + i])) continue;
            printf("sequence %d, output %d: %g, expected %g\n", n, i, (double)outputs[i], wanted);
            failed = 1;
        }
    }
#if WHOLE_NUMBERS
    printf("%s: %d sequences, bit for bit\n", failed ? "DIFFERS" : "agrees", SEQUENCES);
#else
    printf("%s: %d sequences, largest error %.3g\n", failed ? "DIFFERS" : "agrees", SEQUENCES,
           worst);
#endif
    return failed;
}
