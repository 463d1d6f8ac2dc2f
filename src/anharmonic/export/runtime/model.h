/* How to use it:
 *
 *   model_state state;
 *   model_start(&state);
#if WHOLE_NUMBERS
 *   for every sample:  model_quantise(x, sample); model_step(&state, sample);
#else
 *   for every sample:  model_step(&state, x);
#endif
#if WHOLE_NUMBERS
 *   after any sample:  model_output(&state, outputs); model_values(outputs, values);
#else
 *   after any sample:  model_output(&state, outputs);
#endif
 *
 * A sample x holds, in the units of the training data:
#include "inputs.txt"
 *
#if FILLS_GAPS
#if WHOLE_NUMBERS
 * A missing value is NaN in x, and MODEL_MISSING in whole numbers.
#else
 * A missing value is NaN.
#if UNEVEN
 * The time must be known.
#endif
#endif
#else
 * No value may be missing. Replace NaN yourself, for example by the last known value.
#if !WHOLE_NUMBERS
 * After a NaN all outputs are NaN until the next model_start.
#endif
#endif
 *
 * Standard C99. The caller holds all memory.
 */
#ifndef MODEL_H
#define MODEL_H

#include "config.h"

#if WHOLE_NUMBERS
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if WHOLE_NUMBERS
#define MODEL_MISSING (-32768) /* what model_quantise makes of NaN */
#define MODEL_ONE 65536        /* the output that means 1: see model_values */
typedef int16_t model_sample;
typedef int32_t model_value, model_variable;
typedef int64_t model_sum;
#else
/* Compile model.c and what includes this file with -DMODEL_DOUBLE for double precision. */
#ifdef MODEL_DOUBLE
typedef double model_real;
#else
typedef float model_real;
#endif
typedef model_real model_sample, model_value, model_variable, model_sum;
#endif

typedef struct {
#if RESONATORS
    long steps;
    model_real before[MODEL_CHANNELS]; /* the last sample */
    model_real response[2 * MODEL_OSCILLATORS];
#if RUNNING_SCALE
    model_real first[MODEL_CHANNELS], mean[MODEL_CHANNELS], square_sum[MODEL_CHANNELS];
#endif
#if POOL_SHARE
    long above[2 * MODEL_OSCILLATORS * MODEL_BIASES];
#endif
#if POOL_EXCESS
    model_real excess[2 * MODEL_OSCILLATORS * MODEL_BIASES];
#endif
#if RUNS
    /* Samples in a row above a level up to now; negative: below it. */
    long run[2 * MODEL_OSCILLATORS * MODEL_RUNS];
#endif
#if LONGEST
    long longest[2 * MODEL_OSCILLATORS * MODEL_RUNS];
#endif
#if POOL_STRETCHES
    long longest_below[2 * MODEL_OSCILLATORS * MODEL_RUNS];
#endif
#if POOL_CROSSINGS
    long crossings[2 * MODEL_OSCILLATORS * MODEL_RUNS];
#endif
#if POOL_POSITION
    long count[2 * MODEL_OSCILLATORS];
    model_real position[2 * MODEL_OSCILLATORS];
#endif
#if POOL_LARGEST
    model_real largest[2 * MODEL_OSCILLATORS];
#endif
#if POOL_SMALLEST
    model_real smallest[2 * MODEL_OSCILLATORS];
#endif
#if POOL_COMPETITION
    long most[2 * MODEL_OSCILLATORS], least[2 * MODEL_OSCILLATORS];
#endif
#if POOL_RMS
    model_real square[2 * MODEL_OSCILLATORS];
#endif
#else
#if MEAN_READOUT
    long count;
    model_sum sum[MODEL_WIDTH]; /* of the outputs of the last layer */
#endif
#if VARIABLES
    model_variable variables[MODEL_VARIABLES][MODEL_LAYERS][MODEL_WIDTH];
#endif
    model_sample output[MODEL_LAYERS][MODEL_WIDTH];
#if FILLS_FORWARD
    model_sample known[MODEL_CHANNELS]; /* the last known values, scaled */
#endif
#if DIFFERENCES
    model_sample before[MODEL_CHANNELS]; /* the last sample */
#endif
#if STARTS
    int is_first;
#endif
#if TIME_STEP
    model_real elapsed; /* nominal steps since the sample before */
#endif
#if FORECASTS
    model_real last[MODEL_AIMS]; /* the last known values of what is forecast */
#endif
#if PATCHES
    model_sample patch[MODEL_PATCH * MODEL_PREPARED];
    int filled;
#endif
#endif
} model_state;

#if NAMED_CLASSES
extern const char *const model_classes[MODEL_CLASSES];
#endif

/* Begins a recording: forgets the samples before.
#if WINDOWS
 * The model learned from windows of MODEL_WINDOW samples: begin again for each.
#else
 * In an endless stream begin again after about as many samples as a training recording had.
#endif
 */
void model_start(model_state *state);

#if UNEVEN
/* Takes one sample. */
#else
/* Takes one sample. Samples must come at the rate of the training data. */
#endif
void model_step(model_state *state, const model_sample x[MODEL_CHANNELS]);

/* Gives the outputs.
#if EACH_STEP
 * They answer for the last sample: call it after each.
#else
 * They answer for all samples since model_start, of which there must be one.
#endif
#if WHOLE_NUMBERS
 * They are integers; model_values converts them to floating point.
#endif
#if CLASS_SCORES
#if WHOLE_NUMBERS
 * They are scores of the classes. A softmax of what model_values gives is their probabilities.
#else
 * They are scores of the classes. A softmax of the scores gives the probabilities.
#endif
#endif
#if LABEL_SCORES
 * They are scores of the labels. A label applies if its score is above 0, and has the probability
 * 1 / (1 + exp(-score)).
#endif
#if TARGET_VALUES
#if WHOLE_NUMBERS
 * Converted, they are values in the units of the training data.
#else
 * They are values in the units of the training data.
#endif
#endif
#if FORECASTS
 * They are forecasts in the units of the samples.
#if QUANTILES
 * outputs[(q * MODEL_HORIZON + t) * MODEL_AIMS + i] is value i, t + 1 steps ahead, at quantile q:
#else
 * outputs[t * MODEL_AIMS + i] is value i, t + 1 steps ahead:
#endif
#endif
#if ANY_OUTPUTS
#if WHOLE_NUMBERS
 * For classes they are scores. A softmax of what model_values gives is their probabilities.
#else
 * For classes they are scores. A softmax of the scores gives the probabilities.
#endif
#endif
#include "outputs.txt"
 */
void model_output(const model_state *state, model_value outputs[MODEL_OUTPUTS]);

/* The index of the largest output: for scores of classes, that of the likeliest class. */
int model_largest(const model_value outputs[MODEL_OUTPUTS]);

/* A whole recording: start, all steps, output. Value i of sample t is x[t * MODEL_CHANNELS + i]. */
void model_sequence(const model_sample *x, long steps, model_value outputs[MODEL_OUTPUTS]);

#if WHOLE_NUMBERS
#ifndef MODEL_NO_FLOAT
#if MEAN_REST
/* Scales x to whole numbers: (x - offset - offset_rest) * gain of model.c, rounded. Values far
 * outside of the calibration data are clipped. */
#else
/* Scales x to whole numbers: (x - offset) * gain of model.c, rounded. Values far outside of the
 * calibration data are clipped. */
#endif
void model_quantise(const float x[MODEL_CHANNELS], int16_t sample[MODEL_CHANNELS]);

/* Converts outputs: target_shift + target_scale * output / MODEL_ONE of model.c. */
void model_values(const int32_t outputs[MODEL_OUTPUTS], float values[MODEL_OUTPUTS]);
#endif

#endif
#ifdef __cplusplus
}
#endif

#endif
