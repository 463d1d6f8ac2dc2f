/* One table per instruction set, each from its own compilation of engine.c. */
#ifndef AN_ENGINE_H
#define AN_ENGINE_H

#include "anharmonic.h"

#ifndef AN_ENGINE
#define AN_ENGINE an_engine_baseline
#endif
#ifndef AN_ENGINE_NAME
#if defined(__aarch64__)
#define AN_ENGINE_NAME "neon"
#else
#define AN_ENGINE_NAME "baseline"
#endif
#endif

typedef struct {
    const char *name;
    int (*forward)(const an_call *call);
    int (*backward)(const an_call *call);
} an_engine;

extern const an_engine an_engine_baseline, an_engine_avx2, an_engine_avx512;

#endif
