/* The recurrent layers in whole numbers: what the package's export/fixed_cells.py does, to the last
 * bit. Of a constant c, c_m is the integer and c_s the shift of what was multiplied with it. */

#include "layer.h"
#if LEM
static int32_t gate(int32_t a) {
    int32_t g = shifted(DT * sigmoid16(a), 15);
#if CLIPPED_GATES
    g = g<GATE_FLOOR ? GATE_FLOOR : g>(1 << HIDDEN) ? (1 << HIDDEN) : g;
#endif
    return g;
}

static void layer(model_state *state, int k, const int16_t *x) {
    const int16_t *u = below(state, k, x);
    int32_t *y = state->variables[0][k], *z = state->variables[1][k];
    int16_t *output = state->output[k], z16[MODEL_WIDTH];
    int32_t A[3 * MODEL_WIDTH], B[MODEL_WIDTH];
    set(A, bias + k * 3 * MODEL_WIDTH, 3 * MODEL_WIDTH, bias_s[k]);
    add(&ih[k], u, A);
    add(&hh[k], output, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t away = shifted(tanh16(A[2 * MODEL_WIDTH + i]), target_z[k]) - upper(z[i]);
        z[i] = limited(z[i] + shifted(gate(A[i]) * away, DT_SPARE));
        z16[i] = upper(z[i]);
    }
    set(B, bias_y + k * MODEL_WIDTH, MODEL_WIDTH, bias_y_s[k]);
    add(&ih_y[k], u, B);
    add(&zh[k], z16, B);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t away = shifted(tanh16(B[i]), target_y[k]) - output[i];
        y[i] = limited(y[i] + shifted(gate(A[MODEL_WIDTH + i]) * away, DT_SPARE));
        output[i] = upper(y[i]);
    }
}

#endif
#if CORNN
static void layer(model_state *state, int k, const int16_t *x) {
    int32_t *y = state->variables[0][k], *z = state->variables[1][k], A[MODEL_WIDTH];
    int16_t *output = state->output[k], z16[MODEL_WIDTH];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH, bias_s[k]);
    add(&ih[k], below(state, k, x), A);
    for (int i = 0; i < MODEL_WIDTH; i++) z16[i] = upper(z[i]);
    add(&hy[k], output, A);
    add(&hz[k], z16, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t pull = shifted((int32_t)pull_m[k] * output[i], pull_s[k]);
        int32_t force = clipped(shifted(tanh16(A[i]), target[k]) - pull);
        z[i] = limited(z[i] + shifted(step_m[k] * force, step_s[k]) -
                       shifted((int32_t)leak_m[k] * z16[i], leak_s[k]));
        y[i] = limited(y[i] + shifted((int32_t)dt_m[k] * upper(z[i]), dt_s[k]));
        output[i] = upper(y[i]);
    }
}

#endif
#if UNICORNN
static void layer(model_state *state, int k, const int16_t *x) {
    const MODEL_FLASH int16_t *w = hh + k * MODEL_WIDTH, *dt = step + k * MODEL_WIDTH;
    int32_t *y = state->variables[0][k], *z = state->variables[1][k], A[MODEL_WIDTH];
    int16_t *output = state->output[k];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH, bias_s[k]);
    add(&ih[k], below(state, k, x), A);
#if SKIPS
    if (k >= SKIPPED) add(&skip[k - SKIPPED], below(state, k - SKIPPED, x), A);
#endif
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t argument = A[i] + shifted((int32_t)w[i] * output[i], hh_s[k]);
        int32_t pull = shifted((int32_t)pull_m[k] * output[i], pull_s[k]);
        int32_t force = clipped(shifted(tanh16(argument), target[k]) + pull);
        z[i] = limited(z[i] - shifted(dt[i] * force, step_s[k]));
        y[i] = limited(y[i] + shifted((int32_t)dt[i] * upper(z[i]), move_s[k]));
        output[i] = upper(y[i]);
    }
}

#endif
#if LSTM
static void layer(model_state *state, int k, const int16_t *x) {
    int32_t *c = state->variables[0][k], A[4 * MODEL_WIDTH];
    int16_t *output = state->output[k];
    set(A, bias + k * 4 * MODEL_WIDTH, 4 * MODEL_WIDTH, bias_s[k]);
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], output, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t fresh = shifted(sigmoid16(A[i]) * tanh16(A[2 * MODEL_WIDTH + i]), fresh_s[k]);
        int32_t lost = shifted((32768 - sigmoid16(A[MODEL_WIDTH + i])) * upper(c[i]), 1);
        int32_t open = sigmoid16(A[3 * MODEL_WIDTH + i]);
        c[i] = limited(c[i] - lost + fresh);
        output[i] = (int16_t)shifted(open * tanh16(shifted(c[i], inside_s[k])), 15);
    }
}

#endif
#if GRU
static void layer(model_state *state, int k, const int16_t *x) {
    int32_t *h = state->variables[0][k], A[3 * MODEL_WIDTH], B[MODEL_WIDTH];
    int16_t *output = state->output[k];
    set(A, bias + k * 3 * MODEL_WIDTH, 3 * MODEL_WIDTH, bias_s[k]);
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], output, A);
    set(B, bias_n + k * MODEL_WIDTH, MODEL_WIDTH, bias_n_s[k]);
    add(&hn[k], output, B);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        int32_t reset = (int32_t)(((int64_t)sigmoid16(A[i]) * B[i] + 16384) >> 15);
        int32_t away = shifted(tanh16(A[2 * MODEL_WIDTH + i] + reset), 1) - output[i];
        h[i] = limited(h[i] + shifted((32768 - sigmoid16(A[MODEL_WIDTH + i])) * away, 1));
    }
    for (int i = 0; i < MODEL_WIDTH; i++) output[i] = upper(h[i]);
}

#endif
#if FASTGRNN
static void layer(model_state *state, int k, const int16_t *x) {
    int32_t *h = state->variables[0][k], A[MODEL_WIDTH];
    int16_t *output = state->output[k];
    for (int i = 0; i < MODEL_WIDTH; i++) A[i] = 0;
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], output, A);
    for (int i = 0, n = k * MODEL_WIDTH; i < MODEL_WIDTH; i++, n++) {
        int32_t open = 32768 - sigmoid16(A[i] + bias[n] * ((int32_t)1 << bias_s[k]));
        int32_t share = shifted(zeta_m[k] * open, 15) + nu_m[k];
        int32_t fresh = tanh16(A[i] + bias_h[n] * ((int32_t)1 << bias_h_s[k]));
        h[i] = limited(h[i] - shifted(open * output[i], 1) + shifted(share * fresh, fresh_s[k]));
        output[i] = upper(h[i]);
    }
}

#endif
