/* Chooses the engine. AN_HAVE_AVX2 and AN_HAVE_AVX512 say which ones the build has. */
#include <stdatomic.h>
#include <string.h>

#include "cpu.h"
#include "engine.h"

typedef struct {
    const char *name;
    const an_engine *of_float, *of_double;
} instruction_set;

#if defined(__aarch64__)
static const instruction_set baseline = {"neon", &an_engine_baseline_float,
                                         &an_engine_baseline_double};
#else
static const instruction_set baseline = {"baseline", &an_engine_baseline_float,
                                         &an_engine_baseline_double};
#endif
#if defined(AN_HAVE_AVX2)
static const instruction_set avx2 = {"avx2", &an_engine_avx2_float, &an_engine_avx2_double};
#endif
#if defined(AN_HAVE_AVX512)
static const instruction_set avx512 = {"avx512", &an_engine_avx512_float,
                                       &an_engine_avx512_double};
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

int64_t an_call_bytes(void) { return sizeof(an_call); }

int an_forward(const an_call *call) {
    const an_engine *engine = engine_for(call->real_bytes);
    return engine ? engine->forward(call) : AN_BAD_CALL;
}

int an_backward(const an_call *call) {
    const an_engine *engine = engine_for(call->real_bytes);
    return engine ? engine->backward(call) : AN_BAD_CALL;
}

int64_t an_graph_call_bytes(void) { return sizeof(an_graph_call); }

#define AN_GRAPH_FUNCTION(name, valid)                                                             \
    int an_##name(const an_graph_call *call) {                                                     \
        const an_engine *engine = engine_for(call->real_bytes);                                    \
        if (!engine || !(valid)) return AN_BAD_CALL;                                               \
        engine->name(call);                                                                        \
        return AN_OK;                                                                              \
    }

AN_GRAPH_FUNCTION(neighbour_sum, 1)
AN_GRAPH_FUNCTION(gate, call->power > 0)
AN_GRAPH_FUNCTION(gate_backward, call->power > 0)

int64_t an_resonator_call_bytes(void) { return sizeof(an_resonator_call); }

int an_resonate(const an_resonator_call *call) {
    const an_engine *engine = engine_for(call->real_bytes);
    if (!engine || call->biases < 0 || call->biases > AN_MOST_BIASES) return AN_BAD_CALL;
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
