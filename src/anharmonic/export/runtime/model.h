/* How to use it:
 *
 *   model_state state;
 *   model_start(&state);
#if WHOLE_NUMBERS
 *   for every sample:  model_quantise(x, sample); model_step(&state, sample);
#else
 *   for every sample:  model_step(&state, sample);
#endif
 *   at any time:       model_output(&state, outputs);
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

#if FILLS_GAPS
/* A value of a sample may be missing: NaN, or MODEL_MISSING in whole numbers. */
#else
/* Every value of a sample must be there: training had no gaps. */
#endif
#if WHOLE_NUMBERS
#if FILLS_GAPS
#define MODEL_MISSING (-32768) /* what NaN becomes */
#else
#define MODEL_MISSING (-32768) /* what NaN becomes; do not pass it, as training had no gaps */
#endif
#define MODEL_ONE 65536 /* what an output of 1 is */
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
    model_real mean[MODEL_CHANNELS], square_sum[MODEL_CHANNELS];
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
    model_sample known[MODEL_CHANNELS]; /* the last known values */
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

/* Begins a sequence. */
#if WINDOWS
/* The model learned from windows of MODEL_WINDOW samples: begin again for each. */
#endif
void model_start(model_state *state);

/* Takes one sample. */
#if UNEVEN
/* Its last value is the time since the sample before, in the unit of training; 0 if unknown. */
#endif
void model_step(model_state *state, const model_sample x[MODEL_CHANNELS]);

/* The outputs for the samples so far, at least one: the values of a regression, or a score for
 * each class. A softmax of the scores gives the probabilities. */
#if FORECASTS
/* Of a forecast all MODEL_AIMS channels of the first of MODEL_HORIZON steps, then of the second. */
#if QUANTILES
/* These are of the first quantile; those of the others follow. */
#endif
#endif
void model_output(const model_state *state, model_value outputs[MODEL_OUTPUTS]);

/* The number of the largest output: the likeliest class. */
int model_largest(const model_value outputs[MODEL_OUTPUTS]);

/* A whole sequence, samples one after another: start, all steps, output. */
void model_sequence(const model_sample *x, long steps, model_value outputs[MODEL_OUTPUTS]);

#if WHOLE_NUMBERS
#ifndef MODEL_NO_FLOAT
/* Samples as they come, in whole numbers: (x - offset) * gain, rounded. */
void model_quantise(const float x[MODEL_CHANNELS], int16_t sample[MODEL_CHANNELS]);

/* Outputs as numbers. */
void model_values(const int32_t outputs[MODEL_OUTPUTS], float values[MODEL_OUTPUTS]);
#endif

#endif
#ifdef __cplusplus
}
#endif

#endif
