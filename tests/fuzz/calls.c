/* Fuzzes the calls of the C library: bytes become a call with sizes, options and arrays that fit
 * each other exactly, so that a sanitizer sees every step beyond an array's end. What is kept for
 * the backward pass may not change a bit of the output. Calls whose sizes cannot be are refused.
 * Built by calls.py, as a libFuzzer target, or without clang with a driver of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anharmonic.h"

typedef struct {
    const uint8_t *bytes;
    size_t left;
    uint64_t state;
    void *held[256];
    int count;
} source;

static int64_t below(source *s, int64_t n) {
    if (!s->left) return 0;
    s->left--;
    return *s->bytes++ % n;
}

static void *hold(source *s, size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p || s->count == 256) abort();
    return s->held[s->count++] = p;
}

static double next(source *s) {
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(s->state >> 11) / (double)(1ll << 52) - 1;
}

/* Numbers between -1 and 1, now and then an odd one. */
static void *numbers(source *s, int64_t n, int64_t real_bytes, int positive, int odd) {
    static const double odd_ones[] = {0, 1e30, -1e30, 1e-42, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0};
    void *p = hold(s, (size_t)(n * real_bytes));
    for (int64_t i = 0; i < n; i++) {
        double v = next(s);
        if (odd && s->state % 61 == 0) v = odd_ones[(s->state >> 8) % 7];
        if (positive) v = v < 0 ? -v : v;
        if (real_bytes == 4)
            ((float *)p)[i] = (float)v;
        else
            ((double *)p)[i] = v;
    }
    return p;
}

static int64_t weight_size(int64_t model, int64_t which, int64_t H, int64_t F, int64_t skip_F) {
    const int64_t gates = model == AN_LEM_SINGLE_SCALE ? 2 : 4;
    switch (model) {
        case AN_CORNN_EXPLICIT:
        case AN_CORNN_IMPLICIT: return (int64_t[]){H * F, H * H, H * H, H, 0}[which];
        case AN_UNICORNN: return (int64_t[]){H * F, H, H, H, H * skip_F}[which];
        default: return (int64_t[]){gates * H * F, (gates - 1) * H * H, H * H, gates * H, 0}[which];
    }
}

static void recurrence(source *s) {
    static const int64_t activations[] = {1, 1, 0, 4, 4, 2};
    an_call c = {
        .model = below(s, 6), .real_bytes = below(s, 2) ? 4 : 8, .threads = 1 + below(s, 3)};
    const int64_t R = c.real_bytes, T = c.steps = 1 + below(s, 40), B = c.batch = 1 + below(s, 9);
    const int64_t F = c.inputs = 1 + below(s, 20), H = c.hidden = 1 + below(s, 36);
    const int64_t L = c.layers = 1 + below(s, 4), odd = below(s, 4) == 0;
    c.block = 1 + below(s, B), c.tile = 1 + below(s, T);
    c.sum_rows = c.block % 2 ? c.block : c.block / 2;
    c.keep = below(s, 4);
    const int unicornn = c.model == AN_UNICORNN;
    c.grid = unicornn && (c.keep == AN_KEEP_END || below(s, 2));
    if (!unicornn && c.keep == AN_KEEP_END) c.keep = AN_KEEP_ALL;
    c.checkpoint = c.keep == AN_KEEP_CHECKPOINTS ? c.tile * (1 + below(s, 4)) : c.tile;
    if (c.keep == AN_KEEP_END) c.checkpoint = T;
    c.skip = unicornn && L > 1 ? below(s, L) : 0;
    c.dt = 0.05 * (1 + below(s, 40)), c.frequency = below(s, 5), c.damping = below(s, 3);
    c.gate_floor = 0.1 * below(s, 5);

    const void **weights = hold(s, sizeof(void *) * (size_t)(L * AN_WEIGHTS));
    void **grads = hold(s, sizeof(void *) * (size_t)(L * AN_WEIGHTS));
    const int64_t bias = below(s, 4);
    for (int64_t l = 0; l < L; l++)
        for (int64_t i = 0; i < AN_WEIGHTS; i++) {
            const int64_t skip_F = !c.skip || l < c.skip ? 0 : l == c.skip ? F : H;
            const int64_t n = weight_size(c.model, i, H, l ? H : F, skip_F);
            const int absent = !n || (!bias && i == (unicornn ? 2 : 3));
            weights[l * AN_WEIGHTS + i] = absent ? NULL : numbers(s, n, R, 0, 0);
            grads[l * AN_WEIGHTS + i] = absent ? NULL : numbers(s, n, R, 0, 0);
        }
    c.weights = weights;
    if (unicornn) {
        double *dt = hold(s, sizeof(double) * (size_t)L);
        for (int64_t l = 0; l < L; l++) dt[l] = 0.02 * (1 + below(s, 9));
        c.layer_dt = dt;
    }
    /* Time first or batch first, and sometimes with room between the rows. */
    const int64_t room = below(s, 3), batch_first = below(s, 2), row = F + room;
    c.x_time = batch_first ? row : B * row, c.x_batch = batch_first ? T * row : row;
    c.x = numbers(s, T * B * row - room, R, 0, (int)odd);
    c.y0 = numbers(s, L * B * H, R, 0, 0), c.z0 = numbers(s, L * B * H, R, 0, 0);
    if (below(s, 2)) c.elapsed = numbers(s, T * B, R, 1, 0);
    if (below(s, 2)) {
        int64_t *lengths = hold(s, sizeof(int64_t) * (size_t)B);
        for (int64_t b = 0; b < B; b++) lengths[b] = below(s, T + 1);
        c.lengths = lengths;
    }
    if (below(s, 2) && L > 1) {
        const void **masks = hold(s, sizeof(void *) * (size_t)(L - 1));
        for (int64_t l = 0; l < L - 1; l++) masks[l] = numbers(s, B * H, R, 1, 0);
        c.masks = masks;
    }
    const int with_output = below(s, 4) > 0;
    const size_t out = (size_t)(T * B * H * R), end = (size_t)(L * B * H * R);
    if (with_output) {
        c.output = hold(s, out);
        c.output_time = batch_first ? H : B * H, c.output_batch = batch_first ? T * H : H;
    }
    c.y_n = hold(s, end), c.z_n = hold(s, end);
    const int64_t unit = (H + 15) / 16 * 16, states = 2 * L * B * unit * (c.grid ? 8 : R);
    int64_t saved = 0;
    if (c.keep == AN_KEEP_END) saved = states;
    if (c.keep == AN_KEEP_CHECKPOINTS) saved = (T + c.checkpoint - 1) / c.checkpoint * states;
    if (c.keep == AN_KEEP_ALL)
        saved = (T + c.tile - 1) / c.tile * states + T * L * B * unit * activations[c.model] * R;
    if (saved) c.saved = hold(s, (size_t)saved);
    const int status = an_forward(&c);
    if (status != AN_OK && status != AN_GRID_OVERFLOW) abort();
    if (status) return;

    an_call again = c;
    again.keep = AN_KEEP_NOTHING, again.saved = NULL, again.threads = 1;
    again.y_n = hold(s, end), again.z_n = hold(s, end);
    if (with_output) again.output = hold(s, out);
    if (an_forward(&again) != AN_OK) abort();
    if (memcmp(c.y_n, again.y_n, end) || memcmp(c.z_n, again.z_n, end)) abort();
    if (with_output && memcmp(c.output, again.output, out)) abort();
    if (c.keep == AN_KEEP_NOTHING) return;

    if (with_output) {
        c.grad_output = numbers(s, T * B * H, R, 0, 0);
        c.grad_output_time = B * H, c.grad_output_batch = H;
    }
    if (below(s, 2)) c.grad_y_n = numbers(s, L * B * H, R, 0, 0);
    if (below(s, 2)) c.grad_z_n = numbers(s, L * B * H, R, 0, 0);
    if (below(s, 2)) {
        c.grad_x = hold(s, (size_t)(T * B * F * R));
        c.grad_x_time = B * F, c.grad_x_batch = F;
    }
    c.grad_weights = grads;
    c.grad_y0 = hold(s, end), c.grad_z0 = hold(s, end);
    if (c.elapsed && below(s, 2)) c.grad_elapsed = numbers(s, T * B, R, 0, 0);
    double *scalars = hold(s, 3 * sizeof(double));
    if (c.model <= AN_CORNN_IMPLICIT && below(s, 2)) c.grad_scalars = scalars;
    if (an_backward(&c) != AN_OK) abort();
}

/* The edges of a random graph, sorted by one end. */
static void sorted(source *s, int64_t N, int64_t E, const int64_t *from, const int64_t *to,
                   const int64_t **start, const int64_t **other) {
    int64_t *first = hold(s, sizeof(int64_t) * (size_t)(N + 1));
    int64_t *ends = hold(s, sizeof(int64_t) * (size_t)E), n = 0;
    for (int64_t i = 0; i < N; i++) {
        first[i] = n;
        for (int64_t e = 0; e < E; e++)
            if (from[e] == i) ends[n++] = to[e];
    }
    first[N] = n;
    *start = first, *other = ends;
}

static void graph(source *s) {
    static const double powers[] = {1, 2, 3, 4, 5, 2.5, 0.5, 7};
    an_graph_call c = {.real_bytes = below(s, 2) ? 4 : 8, .threads = 1 + below(s, 3)};
    const int64_t N = c.nodes = below(s, 30), F = c.features = 1 + below(s, 40), R = c.real_bytes;
    const int64_t E = N ? below(s, 90) : 0, odd = below(s, 4) == 0;
    c.mean = below(s, 2), c.single = below(s, 2), c.power = powers[below(s, 8)];
    int64_t *from = hold(s, sizeof(int64_t) * (size_t)E),
            *to = hold(s, sizeof(int64_t) * (size_t)E);
    for (int64_t e = 0; e < E; e++) from[e] = below(s, N), to[e] = below(s, N);
    sorted(s, N, E, from, to, &c.start, &c.other);
    sorted(s, N, E, to, from, &c.back_start, &c.back_other);
    c.x = numbers(s, N * F, R, 0, (int)odd);
    if (below(s, 2)) c.weight = numbers(s, E, R, 0, 0);
    c.result = hold(s, (size_t)(N * F * R));
    if (an_neighbour_sum(&c) != AN_OK) abort();
    c.result = hold(s, (size_t)(N * (c.single ? 1 : F) * R));
    if (an_gate(&c) != AN_OK) abort();
    c.grad = numbers(s, N * (c.single ? 1 : F), R, 0, 0);
    c.result = hold(s, (size_t)(N * F * R));
    if (an_gate_backward(&c) != AN_OK) abort();
}

static void resonators(source *s) {
    an_resonator_call c = {.real_bytes = below(s, 2) ? 4 : 8, .threads = 1 + below(s, 3)};
    const int64_t N = c.sequences = below(s, 6), F = c.inputs = 1 + below(s, 5), R = c.real_bytes;
    const int64_t K = c.oscillators = 1 + below(s, 40), B = c.biases = below(s, AN_MOST_BIASES + 1);
    int64_t *offsets = hold(s, sizeof(int64_t) * (size_t)(N + 1)), S = 0;
    int64_t *before = hold(s, sizeof(int64_t) * (size_t)N);
    for (int64_t n = 0; n < N; n++) {
        offsets[n] = S, before[n] = below(s, 50);
        S += below(s, 20);
    }
    offsets[N] = S;
    c.offsets = offsets, c.before = before;
    c.x = numbers(s, S * F, R, 0, below(s, 4) == 0), c.weight = numbers(s, F * K, R, 0, 0);
    c.steps = numbers(s, 3 * K, R, 1, 0), c.bias = numbers(s, 2 * B * K, R, 0, 0);
    c.frequency = numbers(s, K, 8, 1, 0), c.q = numbers(s, K, 8, 1, 0);
    if (below(s, 2)) c.elapsed = numbers(s, S, 8, 1, 0);
    c.state = numbers(s, N * 2 * K, R, 0, 0);
    if (below(s, 2)) c.scale = numbers(s, 2 * K, R, 0, 0);
    if (below(s, 2)) c.pools = numbers(s, N * 2 * (6 * B + 6) * K, R, 0, 0);
    if (below(s, 2)) c.output = hold(s, (size_t)(S * 2 * K * R));
    if (an_resonate(&c) != AN_OK) abort();
}

/* Calls without arrays and with one size that cannot be: refused before anything is read. */
static void refused(source *s) {
    static const int64_t odd_ones[] = {0, -1, INT64_MIN, -1000};
    const int64_t odd = odd_ones[below(s, 4)], negative = odd ? odd : -7;
    an_call c = {.real_bytes = 4, .threads = 1, .steps = 3, .batch = 2, .inputs = 2, .hidden = 4};
    c.layers = 1, c.block = c.sum_rows = 2, c.tile = 2;
    int64_t *const sizes[] = {&c.steps, &c.batch,    &c.inputs, &c.hidden,    &c.layers,
                              &c.block, &c.sum_rows, &c.tile,   &c.real_bytes};
    const int64_t which = below(s, 13);
    if (which < 9) *sizes[which] = odd;
    if (which == 9) c.model = below(s, 2) ? 6 + below(s, 100) : negative;
    if (which == 10) c.keep = below(s, 2) ? 4 + below(s, 100) : negative;
    if (which == 11) c.skip = negative;
    if (which == 12) c.keep = AN_KEEP_ALL, c.checkpoint = odd;
    if (an_forward(&c) != AN_BAD_CALL || an_backward(&c) != AN_BAD_CALL) abort();

    an_graph_call g = {.real_bytes = 4, .threads = 1, .nodes = 3, .features = 2, .power = 1};
    const int64_t place = below(s, 4);
    if (place == 0) g.nodes = negative;
    if (place == 1) g.features = negative;
    if (place == 2) g.real_bytes = odd;
    if (place == 3) {
        g.power = (double)odd;
        if (an_gate(&g) != AN_BAD_CALL || an_gate_backward(&g) != AN_BAD_CALL) abort();
    } else if (an_neighbour_sum(&g) != AN_BAD_CALL || an_gate(&g) != AN_BAD_CALL ||
               an_gate_backward(&g) != AN_BAD_CALL)
        abort();

    an_resonator_call r = {.real_bytes = 4, .threads = 1, .sequences = 1, .inputs = 1};
    r.oscillators = 1;
    int64_t *const counts[] = {&r.sequences, &r.inputs, &r.oscillators, &r.biases};
    const int64_t one = below(s, 6);
    if (one < 4) *counts[one] = negative;
    if (one == 4) r.biases = AN_MOST_BIASES + 1 + below(s, 100);
    if (one == 5) r.real_bytes = odd;
    if (an_resonate(&r) != AN_BAD_CALL) abort();
}

static void elementary(source *s) {
    static const char *const functions[] = {"tanh", "sigmoid", "exp", "", "tan", "exponential"};
    const int64_t which = below(s, 6), R = below(s, 2) ? 4 : 8, n = below(s, 70);
    void *x = numbers(s, n, R, 0, (int)below(s, 2)), *y = hold(s, (size_t)(n * R));
    if (an_elementary(functions[which], R, x, y, n) != (which < 3 ? AN_OK : AN_BAD_CALL)) abort();
    if (an_elementary("tanh", 2, x, y, n) != AN_BAD_CALL) abort();
    if (an_select(functions[which]) != 1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    source s = {.bytes = data, .left = size, .state = 88172645463325252u + size};
    for (size_t i = 0; i < size; i++) s.state = s.state * 31 + data[i];
    switch (below(&s, 8)) {
        case 0: graph(&s); break;
        case 1: resonators(&s); break;
        case 2: refused(&s); break;
        case 3: elementary(&s); break;
        default: recurrence(&s);
    }
    while (s.count) free(s.held[--s.count]);
    return 0;
}

#if defined(AN_OWN_DRIVER) /* SECONDS SEED FINDING, or an input: random bytes, no coverage */
#include <signal.h>
#include <time.h>

static uint8_t input[400];
static size_t length;
static const char *finding;

static void store(int number) {
    FILE *file = fopen(finding, "wb");
    if (file) fwrite(input, 1, length, file), fclose(file);
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv) {
    if (argc == 2) {
        FILE *file = fopen(argv[1], "rb");
        if (!file) return 2;
        length = fread(input, 1, sizeof input, file), fclose(file);
        return LLVMFuzzerTestOneInput(input, length);
    }
    if (argc != 4) return 2;
    const time_t end = time(NULL) + atol(argv[1]);
    source s = {.state = strtoull(argv[2], NULL, 10)};
    finding = argv[3];
    signal(SIGABRT, store);
    long runs = 0;
    for (; time(NULL) < end; runs++) {
        next(&s);
        length = (s.state >> 33) % (sizeof input + 1);
        for (size_t i = 0; i < length; i++) next(&s), input[i] = (uint8_t)(s.state >> 40);
        LLVMFuzzerTestOneInput(input, length);
    }
    printf("%ld calls, none fails\n", runs);
    return 0;
}
#endif
