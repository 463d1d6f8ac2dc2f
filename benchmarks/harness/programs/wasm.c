#include "model.h"
static SAMPLE samples[MOST * MODEL_CHANNELS];
static VALUE outputs[MODEL_OUTPUTS];
SAMPLE *place(void) { return samples; }
VALUE *sequence(int steps) { model_sequence(samples, steps, outputs); return outputs; }
