/* What is around the layers: preparation of samples, patches and readout. */

#if WHOLE_NUMBERS
#define SCALED(x, i) (x) /* model_quantise scaled it */
#define GAP(i) middle[i]
#define MARK 16384
#else
#include "scale.h"
#define MARK 1
#if STANDARDISES
#define SCALED(x, i) scaled(x, i)
#define GAP(i) 0
#else
#define SCALED(x, i) (x)
#define GAP(i) mean[i]
#endif
#endif

#if FILLS_GAPS
#if WHOLE_NUMBERS
static int is_missing(int16_t x) { return x == MODEL_MISSING; }
#else
static int is_missing(model_real x) { return x != x; }
#endif

#endif
/* Prepares a sample as in training: channels, marks of gaps, differences, times. */
static void prepare(model_state *state, const model_sample *x, model_sample *result) {
    (void)state; /* not every preparation has a memory */
#if FORECASTS
    for (int i = 0; i < AIMS; i++)
        if (x[aims[i]] == x[aims[i]]) state->last[i] = x[aims[i]];
#endif
    for (int i = 0; i < VALUES; i++) {
#if FILLS_FORWARD
        if (!is_missing(x[i])) state->known[i] = SCALED(x[i], i);
        result[i] = state->known[i];
#else
#if FILLS_GAPS
        result[i] = is_missing(x[i]) ? GAP(i) : SCALED(x[i], i);
#else
        result[i] = SCALED(x[i], i);
#endif
#endif
    }
#if MARKS_GAPS
    for (int i = 0; i < MARKED; i++) result[VALUES + i] = is_missing(x[marked[i]]) ? MARK : 0;
#endif
#if DIFFERENCES
    for (int i = 0; i < VALUES; i++) {
#if WHOLE_NUMBERS
        int32_t change = (int32_t)result[i] - state->before[i];
        change = clipped(shifted(change * change_factor[i], change_shift[i]));
        result[CHANGES + i] = state->is_first ? 0 : (int16_t)change;
#else
        result[CHANGES + i] =
            state->is_first ? 0 : (result[i] - state->before[i]) * change_scale[i];
#endif
        state->before[i] = result[i];
    }
#endif
#if UNEVEN
    model_real steps = x[VALUES] * R(PER_UNIT); /* since the sample before */
    if (state->is_first && steps == 0) steps = 1;
#if TIME_CHANNEL
    result[TIMES] = steps;
#else
    state->elapsed = steps;
#endif
#endif
#if STARTS
    state->is_first = 0;
#endif
}

void model_start(model_state *state) {
    static const model_state zero;
    *state = zero;
#if FILLS_FORWARD
    for (int i = 0; i < VALUES; i++) state->known[i] = GAP(i);
#endif
#if FORECASTS
    for (int i = 0; i < AIMS; i++) state->last[i] = aim_mean[i];
#endif
#if STARTS
    state->is_first = 1;
#endif
}

/* One step of all layers. */
static void run(model_state *state, const model_sample *x) {
    for (int k = 0; k < MODEL_LAYERS; k++) layer(state, k, x);
#if MEAN_READOUT
    for (int i = 0; i < MODEL_WIDTH; i++) state->sum[i] += state->output[MODEL_LAYERS - 1][i];
    state->count++;
#endif
}

void model_step(model_state *state, const model_sample x[MODEL_CHANNELS]) {
#if PATCHES
    prepare(state, x, state->patch + state->filled * MODEL_PREPARED);
    if (++state->filled == MODEL_PATCH) {
        run(state, state->patch);
        state->filled = 0;
    }
#else
    model_sample prepared[MODEL_PREPARED];
    prepare(state, x, prepared);
    run(state, prepared);
#endif
}

void model_output(const model_state *state, model_value outputs[MODEL_OUTPUTS]) {
#if PATCHES
    model_state rest;
    if (state->filled > 0) { /* a patch that has begun ends with zeros */
        rest = *state;
        for (int j = state->filled * MODEL_PREPARED; j < MODEL_PATCH * MODEL_PREPARED; j++)
            rest.patch[j] = 0;
        run(&rest, rest.patch);
        state = &rest;
    }
#endif
#if MEAN_READOUT
    model_sample features[MODEL_WIDTH];
    for (int i = 0; i < MODEL_WIDTH; i++)
        features[i] = (model_sample)(state->sum[i] / (model_sum)(state->count ? state->count : 1));
#else
    const model_sample *features = state->output[MODEL_LAYERS - 1];
#endif
#if WHOLE_NUMBERS
    set(outputs, readout_bias, MODEL_OUTPUTS, READOUT_SHIFT);
#else
    set(outputs, readout_bias, MODEL_OUTPUTS);
#endif
    add(&readout[0], features, outputs);
#if SCALES_TARGETS
    for (int i = 0; i < MODEL_OUTPUTS; i++)
        outputs[i] = target_shift[i] + target_scale[i] * outputs[i];
#endif
#if FORECASTS
    for (int i = 0; i < MODEL_OUTPUTS; i++) outputs[i] += state->last[i % AIMS];
#if QUANTILES
    /* A larger quantile is never below a smaller one. */
    for (int i = AHEAD; i < MODEL_OUTPUTS; i++)
        for (int j = i; j >= AHEAD && outputs[j - AHEAD] > outputs[j]; j -= AHEAD) {
            model_value larger = outputs[j - AHEAD];
            outputs[j - AHEAD] = outputs[j];
            outputs[j] = larger;
        }
#endif
#endif
}

#if WHOLE_NUMBERS
#ifndef MODEL_NO_FLOAT
void model_quantise(const float x[MODEL_CHANNELS], int16_t sample[MODEL_CHANNELS]) {
    for (int i = 0; i < MODEL_CHANNELS; i++) {
#if MEAN_REST
        float v = (x[i] - offset[i] - offset_rest[i]) * gain[i];
#else
        float v = (x[i] - offset[i]) * gain[i];
#endif
        if (v != v)
            sample[i] = MODEL_MISSING;
        else
            sample[i] = (int16_t)(v > MOST ? MOST : v < -MOST ? -MOST : v + (v < 0 ? -0.5f : 0.5f));
    }
}

void model_values(const int32_t outputs[MODEL_OUTPUTS], float values[MODEL_OUTPUTS]) {
    for (int i = 0; i < MODEL_OUTPUTS; i++)
        values[i] = target_shift[i] + target_scale[i] * ((float)outputs[i] / MODEL_ONE);
}
#endif

#endif
