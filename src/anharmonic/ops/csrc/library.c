/* Chooses the engine. AN_HAVE_AVX2 and AN_HAVE_AVX512 say which ones the build has. */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "cpu.h"
#include "engine.h"

typedef struct {
    const char *name;
    const an_engine *of_float, *of_double, *of_bfloat16; /* the last or NULL */
} instruction_set;

#if !defined(AN_BASELINE_NAME) && defined(__aarch64__)
#define AN_BASELINE_NAME "neon"
#elif !defined(AN_BASELINE_NAME)
#define AN_BASELINE_NAME "baseline"
#endif
static const instruction_set baseline = {AN_BASELINE_NAME, &an_engine_baseline_float,
                                         &an_engine_baseline_double, NULL};
#if defined(AN_HAVE_AVX2)
static const instruction_set avx2 = {"avx2", &an_engine_avx2_float, &an_engine_avx2_double, NULL};
#endif
#if defined(AN_HAVE_AVX512)
static instruction_set avx512 = {"avx512", &an_engine_avx512_float, &an_engine_avx512_double, NULL};
#endif

static const instruction_set *runnable[3]; /* the best one last */
static int count;
static char names[64];
static _Atomic(const instruction_set *) selected;

static void add(const instruction_set *set) {
    runnable[count++] = set;
    if (count > 1) strcat(names, " ");
    strcat(names, set->name);
    selected = set;
}

__attribute__((constructor)) static void find_instruction_sets(void) {
    add(&baseline);
#if defined(AN_HAVE_AVX2)
    if (an_cpu_has_avx2_fma()) add(&avx2);
#endif
#if defined(AN_HAVE_AVX512)
    if (an_cpu_has_avx512()) add(&avx512);
#if defined(AN_HAVE_AVX512_BF16)
    if (an_cpu_has_avx512_bf16()) avx512.of_bfloat16 = &an_engine_avx512_bfloat16;
#endif
#endif
}

static atomic_int amx_wanted = 1;

void an_use_amx(int use) { amx_wanted = use; }

int an_has_amx(void) {
#if defined(AN_HAVE_AMX)
    static atomic_int known = -1;
    if (known < 0) known = an_cpu_has_amx();
    return known;
#else
    return 0;
#endif
}

const char *an_available(void) { return names; }

const char *an_instruction_set(void) { return atomic_load(&selected)->name; }

int an_select(const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(runnable[i]->name, name) == 0) {
            atomic_store(&selected, runnable[i]);
            return 0;
        }
    }
    return 1;
}

static const an_engine *engine_for(int64_t real_bytes) {
    const instruction_set *set = atomic_load(&selected);
    return real_bytes == 4 ? set->of_float : real_bytes == 8 ? set->of_double : NULL;
}

/* Asks Linux for AMX's registers at the first product in bfloat16 only, for the whole process. */
static const an_engine *engine_for_bfloat16(void) {
    const an_engine *found = atomic_load(&selected)->of_bfloat16;
#if defined(AN_HAVE_AMX)
    if (found && amx_wanted && an_has_amx()) return &an_engine_amx_bfloat16;
#endif
    return found;
}

int an_has_bfloat16(void) { return atomic_load(&selected)->of_bfloat16 != NULL; }

static const an_engine *engine_of(const an_call *call) {
    if (call->bfloat16) return call->real_bytes == 4 ? engine_for_bfloat16() : NULL;
    return engine_for(call->real_bytes);
}

#define FIELD(type, name) {#name, offsetof(type, name)}

/* clang-format off */
const an_field *an_call_fields(void) {
    static const an_field fields[] = {
        FIELD(an_call, model), FIELD(an_call, real_bytes), FIELD(an_call, threads),
        FIELD(an_call, bfloat16),
        FIELD(an_call, steps), FIELD(an_call, batch), FIELD(an_call, inputs),
        FIELD(an_call, hidden), FIELD(an_call, layers), FIELD(an_call, skip),
        FIELD(an_call, block), FIELD(an_call, sum_rows), FIELD(an_call, tile), FIELD(an_call, keep),
        FIELD(an_call, checkpoint), FIELD(an_call, grid), FIELD(an_call, dt),
        FIELD(an_call, frequency), FIELD(an_call, damping), FIELD(an_call, gate_floor),
        FIELD(an_call, x), FIELD(an_call, x_time), FIELD(an_call, x_batch),
        FIELD(an_call, weights), FIELD(an_call, layer_dt), FIELD(an_call, y0), FIELD(an_call, z0),
        FIELD(an_call, elapsed), FIELD(an_call, lengths), FIELD(an_call, masks),
        FIELD(an_call, output), FIELD(an_call, output_time), FIELD(an_call, output_batch),
        FIELD(an_call, y_n), FIELD(an_call, z_n), FIELD(an_call, saved),
        FIELD(an_call, grad_output), FIELD(an_call, grad_output_time),
        FIELD(an_call, grad_output_batch), FIELD(an_call, grad_y_n), FIELD(an_call, grad_z_n),
        FIELD(an_call, grad_x), FIELD(an_call, grad_x_time), FIELD(an_call, grad_x_batch),
        FIELD(an_call, grad_weights), FIELD(an_call, grad_y0), FIELD(an_call, grad_z0),
        FIELD(an_call, grad_elapsed), FIELD(an_call, grad_scalars),
        {"", sizeof(an_call)},
    };
    return fields;
}

const an_field *an_graph_call_fields(void) {
    static const an_field fields[] = {
        FIELD(an_graph_call, real_bytes), FIELD(an_graph_call, threads),
        FIELD(an_graph_call, nodes), FIELD(an_graph_call, features), FIELD(an_graph_call, mean),
        FIELD(an_graph_call, single), FIELD(an_graph_call, power), FIELD(an_graph_call, start),
        FIELD(an_graph_call, other), FIELD(an_graph_call, back_start),
        FIELD(an_graph_call, back_other), FIELD(an_graph_call, weight), FIELD(an_graph_call, x),
        FIELD(an_graph_call, grad), FIELD(an_graph_call, result),
        {"", sizeof(an_graph_call)},
    };
    return fields;
}

const an_field *an_resonator_call_fields(void) {
    static const an_field fields[] = {
        FIELD(an_resonator_call, real_bytes), FIELD(an_resonator_call, threads),
        FIELD(an_resonator_call, sequences), FIELD(an_resonator_call, inputs),
        FIELD(an_resonator_call, oscillators), FIELD(an_resonator_call, biases),
        FIELD(an_resonator_call, offsets), FIELD(an_resonator_call, before),
        FIELD(an_resonator_call, x), FIELD(an_resonator_call, weight),
        FIELD(an_resonator_call, steps), FIELD(an_resonator_call, elapsed),
        FIELD(an_resonator_call, frequency), FIELD(an_resonator_call, q),
        FIELD(an_resonator_call, bias), FIELD(an_resonator_call, scale),
        FIELD(an_resonator_call, state), FIELD(an_resonator_call, pools),
        FIELD(an_resonator_call, output),
        {"", sizeof(an_resonator_call)},
    };
    return fields;
}
/* clang-format on */

int an_forward(const an_call *call) {
    const an_engine *engine = engine_of(call);
    return engine ? engine->forward(call) : AN_BAD_CALL;
}

int an_backward(const an_call *call) {
    const an_engine *engine = engine_of(call);
    return engine ? engine->backward(call) : AN_BAD_CALL;
}

#define AN_GRAPH_FUNCTION(name, valid)                                                             \
    int an_##name(const an_graph_call *call) {                                                     \
        const an_engine *engine = engine_for(call->real_bytes);                                    \
        if (!engine || call->nodes < 0 || call->features < 0 || !(valid)) return AN_BAD_CALL;      \
        engine->name(call);                                                                        \
        return AN_OK;                                                                              \
    }

AN_GRAPH_FUNCTION(neighbour_sum, 1)
AN_GRAPH_FUNCTION(gate, call->power > 0)
AN_GRAPH_FUNCTION(gate_backward, call->power > 0)

int an_resonate(const an_resonator_call *call) {
    const an_engine *engine = engine_for(call->real_bytes);
    if (!engine || call->sequences < 0 || call->inputs < 0 || call->oscillators < 0 ||
        call->biases < 0 || call->biases > AN_MOST_BIASES)
        return AN_BAD_CALL;
    engine->resonate(call);
    return AN_OK;
}

int an_elementary(const char *name, int64_t real_bytes, const void *x, void *y, int64_t n) {
    static const char *const functions[] = {"tanh", "sigmoid", "exp"};
    const an_engine *engine = engine_for(real_bytes);
    for (int i = 0; engine && i < 3; i++) {
        if (strcmp(functions[i], name) == 0) {
            engine->elementary(i, x, y, n);
            return AN_OK;
        }
    }
    return AN_BAD_CALL;
}
