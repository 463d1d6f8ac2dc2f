/* a^p for a >= 0 on vectors: 2^(p log2 a).
 *
 * With a = 2^e m, m in [sqrt(1/2), sqrt(2)), log2 m is an odd series in s = (m - 1) / (m + 1)
 * (fitted, relative error 7e-10 in float, 2e-18 in double). p e is added to it exactly: p comes in
 * two parts, of which the first has so few bits that its product with e is not rounded. So the
 * error does not grow with |log2 a|; it is p times that of log2 m <= 1/2, plus that of 2^r.
 * tests/ops/test_graph.py measures it: below 1.5 + p units of 2^-23 and 2^-52.
 */
#ifndef AN_POWER_H
#define AN_POWER_H

#include "vector.h"

typedef struct {
    vec high, low;   /* p = high + low */
    vec of_infinity; /* infinity^p */
} exponent;

AN_INLINE exponent exponent_of(double p) {
    const natural low_half = AN_REAL_BYTES == 4 ? 0xfff : 0x7ffffff;
    real high = (real)p;
    natural bits;
    memcpy(&bits, &high, sizeof bits);
    bits &= ~low_half;
    memcpy(&high, &bits, sizeof bits);
    return (exponent){splat(high), splat((real)(p - (double)high)),
                      splat(p < 0 ? 0 : (real)__builtin_inf())};
}

AN_INLINE natural_vec splat_bits(natural n) { return n - (natural_vec){0}; }

/* 2^n, where the low bits of `shifted` = n + shifter are the whole number n. */
AN_INLINE vec power_of_two(vec shifted) {
    return (vec)(((natural_vec)shifted << (AN_REAL_BYTES == 4 ? 23 : 52)) + (natural_vec)splat(1));
}

/* 0^p is 0 for every p, negative ones too; NaN stays NaN. */
AN_INLINE vec power_of(vec a, exponent p) {
#if AN_REAL_BYTES == 4
    enum { SHIFT = 23, BIAS = 127 };
    const natural root_of_half = 0x3f3504f3;
    const real least_normal = 0x1p-126f, up = 0x1p24f, raised = 24, shifter = 12582912.0f;
    const real limit = 250, infinity = __builtin_inff();
#else
    enum { SHIFT = 52, BIAS = 1023 };
    const natural root_of_half = 0x3fe6a09e667f3bcd;
    const real least_normal = 0x1p-1022, up = 0x1p54, raised = 54, shifter = 6755399441055744.0;
    const real limit = 2040, infinity = __builtin_inf();
#endif
    const whole_vec tiny = (whole_vec)(a < splat(least_normal));
    const natural_vec bits = (natural_vec)choose(tiny, a * splat(up), a);
    const natural one = (natural)BIAS << SHIFT;
    const natural_vec above = (bits + splat_bits(one - root_of_half)) >> SHIFT; /* e + BIAS */
    const vec m = (vec)(bits - (above << SHIFT) + splat_bits(one));
    vec e = (vec)(above + (natural_vec)splat(shifter)) - splat(shifter + BIAS);
    e -= choose(tiny, splat(raised), splat(0));

    const vec s = (m - splat(1)) / (m + splat(1)), z = s * s;
#if AN_REAL_BYTES == 4
    vec log2_m = splat(0.431739924f);
    log2_m = log2_m * z + splat(0.576714235f);
    log2_m = log2_m * z + splat(0.961798849f);
    log2_m = log2_m * z + splat(2.88539008f);
#else
    vec log2_m = splat(0.21367532621595935);
    log2_m = log2_m * z + splat(0.22091143152795924);
    log2_m = log2_m * z + splat(0.26233441802627498);
    log2_m = log2_m * z + splat(0.32059853362653373);
    log2_m = log2_m * z + splat(0.41219858585387857);
    log2_m = log2_m * z + splat(0.57707801634545797);
    log2_m = log2_m * z + splat(0.96179669392598984);
    log2_m = log2_m * z + splat(2.8853900817779268);
#endif
    log2_m *= s;

    /* 2^(n1 + n2 + r): two whole numbers, since 2^n need not be a normal number; within the limit
     * 2^n1 and 2^n2 are */
    const vec rest = p.low * e + (p.high + p.low) * log2_m;
    const vec y = most(splat(-limit), least(splat(limit), p.high * e + rest));
    const vec shifted1 = y * splat(0.5) + splat(shifter), n1 = shifted1 - splat(shifter);
    const vec shifted2 = (y - n1) + splat(shifter), n2 = shifted2 - splat(shifter);
    vec r = ((p.high * e - n1) - n2) + rest;
    r = most(splat(-1), least(splat(1), r)); /* beyond the limit */
#if AN_REAL_BYTES == 4
    vec q = splat(1.54535614e-4f);
    q = q * r + splat(1.33913235e-3f);
    q = q * r + splat(9.61808181e-3f);
    q = q * r + splat(5.55035625e-2f);
    q = q * r + splat(0.240226508f);
    q = q * r + splat(0.693147188f);
#else
    vec q = splat(4.4567654095366240e-10);
    q = q * r + splat(7.0727280073553168e-9);
    q = q * r + splat(1.0178051172067327e-7);
    q = q * r + splat(1.3215441874658298e-6);
    q = q * r + splat(1.5252733854483424e-5);
    q = q * r + splat(1.5403530442911215e-4);
    q = q * r + splat(1.3333558146394942e-3);
    q = q * r + splat(9.6181291076061860e-3);
    q = q * r + splat(5.5504108664821663e-2);
    q = q * r + splat(0.24022650695910099);
    q = q * r + splat(0.69314718055994531);
#endif
    q = q * r + splat(1);
    const vec found = q * power_of_two(shifted1) * power_of_two(shifted2);
    const vec finite = choose((whole_vec)(a > splat(0)), found, splat(0));
    const vec other = choose((whole_vec)(a == splat(infinity)), p.of_infinity, a);
    return choose((whole_vec)(a < splat(infinity)), finite, other);
}

#endif
