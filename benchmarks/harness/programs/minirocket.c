/* MiniRocket for one channel: a window of samples, then its features one by one into the scores.
 * A kernel has nine weights, three of them 2 and the others -1: minus the sum of nine samples, plus
 * three times the sum of three. */
#include <string.h>
#include "model.h"
#include "constants.h"
void model_start(model_state *s) { memset(s, 0, sizeof *s); }
static void classify(model_state *s) {
    const float *x = s->samples + 4 * FURTHEST, *bias = biases, *weight = weights;
    int d, i, j, o, t, a, b, c, kernel;
    memcpy(s->scores, intercept, sizeof s->scores);
    for (d = 0; d < DILATIONS; d++) {
        const int gap = dilations[d], number = features[d];
        for (t = 0; t < MODEL_STEPS; t++) {
            s->sums[t] = 0;
            for (i = -4; i <= 4; i++)
                s->sums[t] -= x[t + i * gap];
        }
        for (a = 0, kernel = d; a < 9; a++)
            for (b = a + 1; b < 9; b++)
                for (c = b + 1; c < 9; c++, kernel++) {
                    const int first = kernel % 2 ? 4 * gap : 0, last = MODEL_STEPS - first;
                    long above[MOST_FEATURES] = {0};
                    for (t = first; t < last; t++) {
                        const float three =
                            x[t + (a - 4) * gap] + x[t + (b - 4) * gap] + x[t + (c - 4) * gap];
                        const float response = s->sums[t] + 3 * three;
                        for (j = 0; j < number; j++)
                            above[j] += response > bias[j];
                    }
                    for (j = 0; j < number; j++) {
                        const float share = (float)above[j] / (last - first);
                        for (o = 0; o < MODEL_OUTPUTS; o++)
                            s->scores[o] += *weight++ * share;
                    }
                    bias += number;
                }
    }
}
void model_step(model_state *s, const float *x) {
    s->samples[4 * FURTHEST + s->steps++] = *x;
    if (s->steps == MODEL_STEPS)
        classify(s);
}
void model_output(const model_state *s, float *outputs) {
    memcpy(outputs, s->scores, sizeof s->scores);
}
void model_sequence(const float *x, long steps, float *outputs) {
    model_state s;
    model_start(&s);
    while (steps--)
        model_step(&s, x++);
    model_output(&s, outputs);
}
