#include "cpu.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Not by __builtin_cpu_supports: where Zig links, it always says no. */
enum { OSXSAVE = 1 << 27, AVX = 1 << 28, FMA = 1 << 12 };                          /* leaf 1, ecx */
enum { AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30 }; /* leaf 7, ebx */
#define AVX512VL (1u << 31)
enum { AVX512_BF16 = 1 << 5 };                    /* leaf 7, subleaf 1, eax */
enum { AMX_BF16 = 1 << 22, AMX_TILES = 1 << 24 }; /* leaf 7, edx */

static int has(unsigned word, unsigned bits) { return (word & bits) == bits; }

/* Whether the system saves all registers of these kinds. */
static int saves(unsigned kinds) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return has(low, kinds);
}

static int features(unsigned *found) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, OSXSAVE | AVX | FMA) || !saves(0x6)) return 0;
    return __get_cpuid_count(7, 0, &a, found, &c, &d);
}

int an_cpu_has_avx2_fma(void) {
    unsigned found;
    return features(&found) && has(found, AVX2);
}

int an_cpu_has_avx512(void) {
    unsigned found;
    return features(&found) && saves(0xe6) &&
           has(found, AVX2 | AVX512F | AVX512DQ | AVX512BW | AVX512VL);
}

int an_cpu_has_avx512_bf16(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, AVX512_BF16);
}

#if defined(__linux__)

/* Linux gives a process the tiles' registers when it asks for them. */
int an_cpu_has_amx(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    return an_cpu_has_avx512() && an_cpu_has_avx512_bf16() && saves(3u << 17) &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && has(d, AMX_BF16 | AMX_TILES) &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

#else

int an_cpu_has_amx(void) { return 0; }

#endif

#else

int an_cpu_has_avx2_fma(void) { return 0; }

int an_cpu_has_avx512(void) { return 0; }

int an_cpu_has_avx512_bf16(void) { return 0; }

int an_cpu_has_amx(void) { return 0; }

#endif
