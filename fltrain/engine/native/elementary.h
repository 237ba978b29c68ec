// exp, tanh, log and powers of our own. Those of the system's library differ in last bits from one
// version of it to the next, so that one build would not give the same bits on every machine.

// None of them branches, so that a loop over them is calculated side by side.

#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr double LN2 = 0.6931471805599453;
// 1 / k! for k of 0 and on.
constexpr double OF_FACTORIAL[] = {1.0,       1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,
                                   1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880};

// exp(x) to a relative 1e-11, for x within -104 and 89: beyond, a float is 0 or infinite anyhow.
inline double exp_of_float(float x) {
    const double within = x > 89 ? 89 : x < -104 ? -104 : x;  // a NaN stays
    const double t = within * (1 / LN2);
    // exp(x) = 2^n exp(r), with r within half of LN2 of 0
    const int64_t n = t == t ? int64_t(t < 0 ? t - 0.5 : t + 0.5) : 0;
    const double r = (t - n) * LN2;
    double sum = OF_FACTORIAL[9];
#pragma GCC unroll 9
    for (int k = 8; k >= 0; k--) sum = OF_FACTORIAL[k] + r * sum;
    const int64_t bits = (n + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return sum * power;
}

inline float exponential(float x) { return float(exp_of_float(x)); }

inline float sigmoid(float x) { return float(1 / (1 + exp_of_float(-x))); }

// Near 0 by its series, since 1 - 1 has no digits.
inline float hyperbolic_tangent(float x) {
    const double square = double(x) * x;
    const double near = x * (1 - square * (1.0 / 3 - square * (2.0 / 15)));
    const double size = 1 - 2 / (exp_of_float(2 * std::fabs(x)) + 1);
    const double away = x < 0 ? -size : size;  // a NaN stays
    return float(square < 4e-4 ? near : away);
}

// The logarithm of a positive number that is no subnormal; infinity and NaN stay.
inline double logarithm(double x) {
    if (!(x <= DBL_MAX)) return x;
    int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    // x = 2^e m, with m between the roots of 1/2 and of 2
    constexpr int64_t ROOT_OF_HALF = 0x3fe6a09e667f3bcd;
    const int64_t e = (bits - ROOT_OF_HALF) >> 52;
    const int64_t of_m = bits - e * (int64_t(1) << 52);
    double m;
    std::memcpy(&m, &of_m, sizeof m);
    // log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...)
    const double s = (m - 1) / (m + 1);
    double sum = 0;
    for (int k = 21; k > 0; k -= 2) sum = 1.0 / k + s * s * sum;
    return e * LN2 + 2 * s * sum;
}

// base^n, n >= 0, by squares.
inline double power_of(double base, int64_t n) {
    double power = 1;
    for (; n; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return power;
}

}  // namespace
