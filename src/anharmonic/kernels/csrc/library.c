/* Chooses the engine. AN_HAVE_AVX2 and AN_HAVE_AVX512 say which ones the build has. */
#include <stdatomic.h>
#include <string.h>

#include "cpu.h"
#include "engine.h"

static const an_engine *runnable[3]; /* the best one last */
static int count;
static char names[64];
static _Atomic(const an_engine *) selected;

static void add(const an_engine *engine) {
    runnable[count++] = engine;
    if (count > 1) strcat(names, " ");
    strcat(names, engine->name);
    selected = engine;
}

__attribute__((constructor)) static void find_engines(void) {
    add(&an_engine_baseline);
#if defined(AN_HAVE_AVX2)
    if (an_cpu_has_avx2_fma()) add(&an_engine_avx2);
#endif
#if defined(AN_HAVE_AVX512)
    if (an_cpu_has_avx512()) add(&an_engine_avx512);
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

int an_forward(const an_call *call) { return atomic_load(&selected)->forward(call); }

int an_backward(const an_call *call) { return atomic_load(&selected)->backward(call); }
