/* exp, the logistic function and tanh on vectors. NaN stays NaN, infinities give their limits.
 *
 * float:  tanh is a rational function of degree 9 over 8 (relative error 2.1e-8, fitted over
 *         [0, 9.02]; beyond, tanh rounds to 1).
 * double: tanh is a rational function below 0.625 and 1 - 2 / (exp(2x) + 1) above.
 * The logistic function keeps its relative precision for large negative arguments, where gates are
 * nearly closed: 1 / (1 + exp(-x)). tests/ops/test_native.py measures the errors in ulp.
 */
#ifndef AN_ELEMENTARY_H
#define AN_ELEMENTARY_H

#include "vector.h"

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2. Arguments are clamped so that 2^n is
 * a normal number; the result is then at its end of the range. */
AN_INLINE vec exp_of(vec x) {
#if AN_REAL_BYTES == 4
    const real limit = 87.0f;
    const real shifter = 12582912.0f; /* 1.5 * 2^23: its low bits count whole numbers */
    const real ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f, per_ln2 = 1.44269504f;
#else
    const real limit = 708.0, shifter = 6755399441055744.0;
    const real ln2_high = 0.69314718036912381649, ln2_low = 1.9082149292705877e-10;
    const real per_ln2 = 1.4426950408889634;
#endif
    x = most(splat(-limit), least(splat(limit), x));
    vec shifted = x * splat(per_ln2) + splat(shifter);
    vec n = shifted - splat(shifter);
    vec r = x - n * splat(ln2_high);
    r = r - n * splat(ln2_low);
#if AN_REAL_BYTES == 4
    vec p = splat(1.9891080e-4f);
    p = p * r + splat(1.3933731e-3f);
    p = p * r + splat(8.3333108e-3f);
    p = p * r + splat(4.1666464e-2f);
    p = p * r + splat(0.16666667f);
    p = p * r + splat(0.5f);
#else
    vec p = splat(2.09147553258932e-09);
    p = p * r + splat(2.5105312729622103e-08);
    p = p * r + splat(2.755727347871858e-07);
    p = p * r + splat(2.755725517000089e-06);
    p = p * r + splat(2.480158732567746e-05);
    p = p * r + splat(1.984126987500228e-04);
    p = p * r + splat(1.3888888888883711e-03);
    p = p * r + splat(8.333333333326084e-03);
    p = p * r + splat(0.04166666666666667);
    p = p * r + splat(0.1666666666666667);
    p = p * r + splat(0.5);
#endif
    p = p * (r * r) + r + splat(1);
    const natural_vec exponent = (natural_vec)shifted << (AN_REAL_BYTES == 4 ? 23 : 52);
    const vec scale = (vec)(exponent + (natural_vec)splat(1)); /* n added to the exponent of 1 */
    return p * scale;
}

AN_INLINE vec sigmoid_of(vec x) { return splat(1) / (splat(1) + exp_of(-x)); }

AN_INLINE vec tanh_of(vec x) {
#if AN_REAL_BYTES == 4
    const vec c = most(splat(-9.02f), least(splat(9.02f), x));
    vec s = c * c;
    vec p = splat(1.33190652e-8f);
    p = p * s + splat(2.05835827e-5f);
    p = p * s + splat(3.49404603e-3f);
    p = p * s + splat(0.133797295f);
    p = p * s + splat(1);
    vec q = splat(7.76204689e-7f);
    q = q * s + splat(3.28310773e-4f);
    q = q * s + splat(2.58711228e-2f);
    q = q * s + splat(0.467130448f);
    q = q * s + splat(1);
    return most(splat(-1), least(splat(1), c * p / q));
#else
    vec s = x * x;
    vec p = splat(-1.99178043586128699e-4);
    p = p * s + splat(-2.04987997084988726e-2);
    p = p * s + splat(-0.333333333333333327);
    vec q = splat(2.06533737487502497e-4);
    q = q * s + splat(2.32913318762988589e-2);
    q = q * s + splat(0.461496399125493144);
    q = q * s + splat(1);
    vec small = x * (splat(1) + s * p / q);
    vec large = splat(1) - splat(2) / (exp_of(x + x) + splat(1));
    whole_vec is_small = (s < splat(0.625 * 0.625));
    return choose(is_small, small, large);
#endif
}

#endif
