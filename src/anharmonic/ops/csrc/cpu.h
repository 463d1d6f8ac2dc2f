/* What this processor, and the system that runs on it, can do. Nonzero is yes. */
#ifndef AN_CPU_H
#define AN_CPU_H

int an_cpu_has_avx2_fma(void);

/* AVX-512 F, DQ, BW and VL, and all of the above. */
int an_cpu_has_avx512(void);
int an_cpu_has_avx512_bf16(void); /* beside AVX-512 */
int an_cpu_has_amx(void); /* all of the above; asks Linux for the registers, for the process */

#endif
