// Activations, on one group of examples at a time, and what answers are worth. No memory is taken
// here.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "elementary.h"
#include "examples.h"
#include "ops.h"

namespace {

// ---- activations ----

// A function of each number. A plain loop: the compiler makes vectors of it.
template <float (&function)(float)>
inline V each(const V& x) {
    alignas(4 * LANES) float from[LANES], to[LANES];
    *(V*)from = x;
    for (int l = 0; l < LANES; l++) to[l] = function(from[l]);
    return *(const V*)to;
}

// x [n] vectors, in place.
void activate(Kind kind, V* x, int64_t n) {
    if (kind == RELU)
        for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0 ? V{} : x[i];  // a NaN stays
    else if (kind == TANH)
        for (int64_t i = 0; i < n; i++) x[i] = each<hyperbolic_tangent>(x[i]);
    else
        for (int64_t i = 0; i < n; i++) x[i] = each<sigmoid>(x[i]);
}

// d [n] vectors, in place: the derivative at the outputs y, times d.
void derive(Kind kind, V* d, const V* y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        d[i] = kind == RELU ? (y[i] <= 0 ? V{} : d[i])
                            : d[i] * (kind == TANH ? 1 - y[i] * y[i] : y[i] * (1 - y[i]));
}

// ---- answers: x [n] are the numbers of one example, LANES apart ----

// The place of the largest number, of equal ones the first; a NaN is larger than any number, as
// torch has it.
int64_t largest(const float* x, int64_t n) {
    int64_t at = 0;
    for (int64_t k = 1; k < n; k++) {
        const float one = x[k * LANES], best = x[at * LANES];
        if (one > best || (std::isnan(one) && !std::isnan(best))) at = k;
    }
    return at;
}

// share: what the gradient of an example is multiplied by; smoothing: of the labels.
struct Weighting {
    float share, smoothing;
};

// Cross entropy of LANES examples, x [n], into `losses`, and, where d [n] is given, its gradient. A
// lane without an example has the label -1 and gets 0.
void cross_entropy(const V* x, V* d, int64_t n, const int32_t (&labels)[LANES], const Weighting& by,
                   double (&losses)[LANES]) {
    V most = x[0], all{};
    for (int64_t k = 1; k < n; k++) most = most < x[k] ? x[k] : most;
    for (int64_t k = 0; k < n; k++) {
        const V one = each<exponential>(x[k] - most);
        all += one;
        if (d) d[k] = one;
    }
    const float other = by.smoothing / n, own = 1 - by.smoothing + other;  // of the smoothed label
    I label;
    std::memcpy(&label, labels, sizeof label);
    for (int64_t k = 0; d && k < n; k++) {
        const V target = label == int32_t(k) ? V{} + own : V{} + other;
        d[k] = label < 0 ? V{} : (d[k] / all - target) * by.share;
    }
    for (int l = 0; l < LANES; l++) {
        if (labels[l] < 0) {
            losses[l] = 0;
            continue;
        }
        const double height = double(most[l]) + logarithm(all[l]);
        double answer = x[labels[l]][l];
        if (by.smoothing) {
            answer *= 1.0 - by.smoothing;
            for (int64_t k = 0; k < n; k++) answer += double(other) * x[k][l];
        }
        losses[l] = height - answer;
    }
}

// The mean squared error of s(x), s the sigmoid, to the one-hot label, and its gradient in d; a
// lane without an example (label -1) gets 0.
double squared_error(const float* x, float* d, int64_t n, int64_t label, float share) {
    double total = 0;
    for (int64_t k = 0; k < n; k++) {
        const float one = sigmoid(x[k * LANES]), off = one - (k == label);
        total += double(off) * off;
        d[k * LANES] = label < 0 ? 0 : 2 * off * one * (1 - one) * share / n;
    }
    return label < 0 ? 0.0 : total / n;
}

}  // namespace
