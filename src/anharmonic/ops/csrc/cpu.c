#include "cpu.h"

#if defined(__x86_64__) || defined(__i386__)

/* The compiler's own detection also asks whether the system saves the wide registers. */
int an_cpu_has_avx2_fma(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

int an_cpu_has_avx512(void) {
    return an_cpu_has_avx2_fma() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

#else

int an_cpu_has_avx2_fma(void) { return 0; }

int an_cpu_has_avx512(void) { return 0; }

#endif
