/* One step of a recurrent layer: A and B hold affine maps of the input u and the state. */

#if defined(__AVR__) && MODEL_LAYERS > 1
__attribute__((noinline)) /* inlined into the loop over layers it takes more flash */
#endif
static void layer(model_state *state, int k, const model_sample *x);

/* What layer k reads: x is the input of the first. */
static const model_sample *below(const model_state *state, int k, const model_sample *x) {
    return k == 0 ? x : state->output[k - 1];
}
