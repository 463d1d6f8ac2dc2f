/* The recurrent layers in floating point. */

#include "layer.h"
#if TRACED
#include "steps.h"

#else
/* A step: the longer, the longer ago the sample before is. */
#if TIME_STEP
#define STEP(dt) ((dt) * state->elapsed)
#else
#define STEP(dt) (dt)
#endif

#endif
#if LEM
static model_real gate(model_real a, model_real dt) {
    model_real g = dt * sigmoid(a);
#if CLIPPED_GATES
    g = g < R(GATE_FLOOR) ? R(GATE_FLOOR) : g > 1 ? 1 : g;
#endif
    return g;
}

static void layer(model_state *state, int k, const model_real *x) {
    const model_real *u = below(state, k, x);
    model_real *y = state->output[k], *z = state->variables[0][k];
    model_real A[3 * MODEL_WIDTH], B[MODEL_WIDTH];
    set(A, bias + k * 3 * MODEL_WIDTH, 3 * MODEL_WIDTH);
    add(&ih[k], u, A);
    add(&hh[k], y, A);
    for (int i = 0; i < MODEL_WIDTH; i++)
        z[i] += gate(A[i], STEP(R(DT))) * (MODEL_TANH(A[2 * MODEL_WIDTH + i]) - z[i]);
    set(B, bias_y + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih_y[k], u, B);
    add(&zh[k], z, B);
    for (int i = 0; i < MODEL_WIDTH; i++)
        y[i] += gate(A[MODEL_WIDTH + i], STEP(R(DT))) * (MODEL_TANH(B[i]) - y[i]);
}

#endif
#if LEM_ONE_SCALE
static void layer(model_state *state, int k, const model_real *x) {
    const model_real *u = below(state, k, x);
    model_real *y = state->output[k], *z = state->variables[0][k], A[MODEL_WIDTH];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih[k], u, A);
    add(&hh[k], y, A);
    for (int i = 0; i < MODEL_WIDTH; i++) z[i] += STEP(R(DT)) * (MODEL_TANH(A[i]) - z[i]);
    set(A, bias_y + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih_y[k], u, A);
    add(&zh[k], z, A);
    for (int i = 0; i < MODEL_WIDTH; i++) y[i] += STEP(R(DT)) * (MODEL_TANH(A[i]) - y[i]);
}

#endif
#if CORNN
static void layer(model_state *state, int k, const model_real *x) {
    model_real *y = state->output[k], *z = state->variables[0][k], A[MODEL_WIDTH];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih[k], below(state, k, x), A);
    add(&hy[k], y, A);
    add(&hz[k], z, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        model_real force = MODEL_TANH(A[i]) - R(FREQUENCY) * y[i];
#if IMPLICIT
        z[i] = (z[i] + STEP(R(DT)) * force) / (1 + STEP(R(DT)) * R(DAMPING));
#else
        z[i] = z[i] + STEP(R(DT)) * (force - R(DAMPING) * z[i]);
#endif
        y[i] += STEP(R(DT)) * z[i];
    }
}

#endif
#if UNICORNN
static void layer(model_state *state, int k, const model_real *x) {
    const MODEL_FLASH model_real *w = hh + k * MODEL_WIDTH, *dt = step + k * MODEL_WIDTH;
    model_real *y = state->output[k], *z = state->variables[0][k], A[MODEL_WIDTH];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih[k], below(state, k, x), A);
#if SKIPS
    if (k >= SKIPPED) add(&skip[k - SKIPPED], below(state, k - SKIPPED, x), A);
#endif
    for (int i = 0; i < MODEL_WIDTH; i++) {
        z[i] -= STEP(dt[i]) * (MODEL_TANH(w[i] * y[i] + A[i]) + R(FREQUENCY) * y[i]);
        y[i] += STEP(dt[i]) * z[i];
    }
}

#endif
#if LSTM
static void layer(model_state *state, int k, const model_real *x) {
    model_real *h = state->output[k], *c = state->variables[0][k], A[4 * MODEL_WIDTH];
    set(A, bias + k * 4 * MODEL_WIDTH, 4 * MODEL_WIDTH);
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], h, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        model_real fresh = sigmoid(A[i]) * MODEL_TANH(A[2 * MODEL_WIDTH + i]);
        c[i] = sigmoid(A[MODEL_WIDTH + i]) * c[i] + fresh;
        h[i] = sigmoid(A[3 * MODEL_WIDTH + i]) * MODEL_TANH(c[i]);
    }
}

#endif
#if GRU
static void layer(model_state *state, int k, const model_real *x) {
    model_real *h = state->output[k], A[3 * MODEL_WIDTH], B[MODEL_WIDTH];
    set(A, bias + k * 3 * MODEL_WIDTH, 3 * MODEL_WIDTH);
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], h, A);
    set(B, bias_n + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&hn[k], h, B);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        model_real n = MODEL_TANH(A[2 * MODEL_WIDTH + i] + sigmoid(A[i]) * B[i]);
        h[i] = n + sigmoid(A[MODEL_WIDTH + i]) * (h[i] - n);
    }
}

#endif
#if FASTGRNN
static void layer(model_state *state, int k, const model_real *x) {
    model_real *h = state->output[k], A[MODEL_WIDTH];
    for (int i = 0; i < MODEL_WIDTH; i++) A[i] = 0;
    add(&ih[k], below(state, k, x), A);
    add(&hh[k], h, A);
    for (int i = 0; i < MODEL_WIDTH; i++) {
        model_real g = sigmoid(A[i] + bias[k * MODEL_WIDTH + i]);
        model_real fresh = MODEL_TANH(A[i] + bias_h[k * MODEL_WIDTH + i]);
        h[i] = (zeta[k] * (1 - g) + nu[k]) * fresh + g * h[i];
    }
}

#endif
#if RESONATOR_BANK
#if TIME_STEP
#include <math.h>

/* The exact step over tau radians: see ops/resonator.py. In double, as 1 - C has to keep digits. */
static void exact_step(double tau, double damping, double step[3]) {
    double x = (1 - damping * damping) * tau * tau, decay = exp(-damping * tau), C, S;
    if (x < 1e-3 && x > -1e-3) {
        C = decay * (1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56))));
        S = decay * (1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72))));
    } else if (x > 0) {
        double root = sqrt(x);
        C = decay * cos(root);
        S = decay * sin(root) / root;
    } else { /* overdamped */
        double root = sqrt(-x), slow = exp(root - damping * tau), fast = exp(-root - damping * tau);
        C = (slow + fast) / 2;
        S = (slow - fast) / 2 / root;
    }
    S *= tau;
    step[0] = 1 - C - damping * S;
    step[1] = S;
    step[2] = 1 - C + damping * S;
}

#endif
static void layer(model_state *state, int k, const model_real *x) {
    model_real *y = state->output[k], *z = state->variables[0][k], A[MODEL_WIDTH];
    set(A, bias + k * MODEL_WIDTH, MODEL_WIDTH);
    add(&ih[k], below(state, k, x), A);
    for (int i = 0, n = k * MODEL_WIDTH; i < MODEL_WIDTH; i++, n++) {
        model_real e = A[i] - y[i];
#if TIME_STEP
        double step[3];
        exact_step((double)omega[n] * (double)state->elapsed, (double)zeta[n], step);
        model_real a = R(step[0]), b = R(step[1]), c = R(step[2]);
#else
        model_real a = step_a[n], b = step_b[n], c = step_c[n];
#endif
        y[i] += a * e + b * z[i];
        z[i] += b * e - c * z[i];
    }
}

#endif
