typedef struct {
    int steps;
    float samples[MODEL_STEPS + 8 * FURTHEST], sums[MODEL_STEPS], scores[MODEL_OUTPUTS];
} model_state;
void model_start(model_state *s);
void model_step(model_state *s, const float *x);
void model_output(const model_state *s, float *outputs);
