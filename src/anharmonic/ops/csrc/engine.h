/* One table of functions per instruction set and kind of real, filled by engine.c. */
#ifndef AN_ENGINE_H
#define AN_ENGINE_H

#include "anharmonic.h"

typedef struct {
    int (*forward)(const an_call *);
    int (*backward)(const an_call *);
    void (*neighbour_sum)(const an_graph_call *);
    void (*gate)(const an_graph_call *);
    void (*gate_backward)(const an_graph_call *);
    void (*resonate)(const an_resonator_call *);
    /* 0 tanh, 1 sigmoid, 2 exp */
    void (*elementary)(int which, const void *x, void *y, int64_t n);
} an_engine;

extern const an_engine an_engine_baseline_float, an_engine_baseline_double;
extern const an_engine an_engine_avx2_float, an_engine_avx2_double;
extern const an_engine an_engine_avx512_float, an_engine_avx512_double;
/* Recurrences whose products are in bfloat16. */
extern const an_engine an_engine_avx512_bfloat16, an_engine_amx_bfloat16;

#endif
