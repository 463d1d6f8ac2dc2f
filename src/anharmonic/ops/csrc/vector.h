/* Short vectors of reals in GCC's and Clang's vector extension: one source for every instruction
 * set. AN_REAL is float or double; AN_VECTOR_BYTES follows from the compiler's flags. */
#ifndef AN_VECTOR_H
#define AN_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef AN_VECTOR_BYTES
#if defined(__AVX512F__)
#define AN_VECTOR_BYTES 64
#elif defined(__AVX__)
#define AN_VECTOR_BYTES 32
#else
#define AN_VECTOR_BYTES 16
#endif
#endif

#define AN_INLINE static inline __attribute__((always_inline))

typedef AN_REAL real;
typedef real vec __attribute__((vector_size(AN_VECTOR_BYTES)));
typedef real unaligned_vec
    __attribute__((vector_size(AN_VECTOR_BYTES), aligned(sizeof(AN_REAL)), may_alias));

#if AN_REAL_BYTES == 4
typedef int32_t whole;
typedef uint32_t natural;
#else
typedef int64_t whole;
typedef uint64_t natural;
#endif
typedef whole whole_vec __attribute__((vector_size(AN_VECTOR_BYTES)));
typedef natural natural_vec __attribute__((vector_size(AN_VECTOR_BYTES))); /* wraps around */

#define LANES (AN_VECTOR_BYTES / AN_REAL_BYTES)
/* States on the fixed-point grid are doubles, as many as a vector has lanes. */
typedef double grid_vec __attribute__((vector_size(LANES * 8)));
typedef double unaligned_grid_vec __attribute__((vector_size(LANES * 8), aligned(8), may_alias));

AN_INLINE vec load(const real *p) { return *(const unaligned_vec *)p; }
AN_INLINE void store(real *p, vec v) { *(unaligned_vec *)p = v; }

AN_INLINE vec splat(real s) {
#if LANES == 2
    return (vec){s, s};
#elif LANES == 4
    return (vec){s, s, s, s};
#elif LANES == 8
    return (vec){s, s, s, s, s, s, s, s};
#elif LANES == 16
    return (vec){s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
#endif
}

/* where ? a : b, lane by lane; `where` is the result of a comparison. */
AN_INLINE vec choose(whole_vec where, vec a, vec b) {
    return (vec)((where & (whole_vec)a) | (~where & (whole_vec)b));
}

/* a < b ? a : b and a > b ? a : b, so that a NaN in b stays; one instruction on x86. */
#if defined(__AVX512F__) && AN_VECTOR_BYTES == 64
#define AN_X86(name) _mm512_##name
#elif defined(__AVX__) && AN_VECTOR_BYTES == 32
#define AN_X86(name) _mm256_##name
#elif defined(__SSE2__) && AN_VECTOR_BYTES == 16
#define AN_X86(name) _mm_##name
#endif
#if defined(AN_X86) && AN_REAL_BYTES == 4
AN_INLINE vec least(vec a, vec b) { return AN_X86(min_ps)(a, b); }
AN_INLINE vec most(vec a, vec b) { return AN_X86(max_ps)(a, b); }
#elif defined(AN_X86)
AN_INLINE vec least(vec a, vec b) { return AN_X86(min_pd)(a, b); }
AN_INLINE vec most(vec a, vec b) { return AN_X86(max_pd)(a, b); }
#else
AN_INLINE vec least(vec a, vec b) { return choose((whole_vec)(a < b), a, b); }
AN_INLINE vec most(vec a, vec b) { return choose((whole_vec)(a > b), a, b); }
#endif

/* The lower and the upper half of a0 b0 a1 b1 ... */
#if LANES == 2
#define AN_LOW 0, 2
#define AN_HIGH 1, 3
#elif LANES == 4
#define AN_LOW 0, 4, 1, 5
#define AN_HIGH 2, 6, 3, 7
#elif LANES == 8
#define AN_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define AN_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define AN_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define AN_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif
#if defined(__clang__)
#define AN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define AN_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (whole_vec){__VA_ARGS__})
#endif

/* Transposes LANES rows of LANES: interleaving the halves turns the bits of (row, lane) by one. */
AN_INLINE void transpose(vec rows[LANES]) {
    vec next[LANES];
    for (int turn = 1; turn < LANES; turn *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            next[2 * i] = AN_SHUFFLE(rows[i], rows[i + LANES / 2], AN_LOW);
            next[2 * i + 1] = AN_SHUFFLE(rows[i], rows[i + LANES / 2], AN_HIGH);
        }
        for (int i = 0; i < LANES; i++) rows[i] = next[i];
    }
}

AN_INLINE real sum_of_lanes(vec v) {
    real s = 0;
    for (int i = 0; i < LANES; i++) s += v[i];
    return s;
}

#endif
