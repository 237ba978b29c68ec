// Norms: of the channels of a batch, and of groups of channels of each example.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops.h"
#include "products.h"

namespace {

// Mean of n vectors lane by lane, and the sum of squares around it.
struct Moments {
    V mean, squares;
};

// The sum of term(i) for i below n. In pieces, whose sums are added: one sum of thousands of floats
// would lose as many digits as thousands have. In four sums at once, since each addition waits for
// the one before.
template <class Term>
V sum_terms(int64_t n, Term term) {
    constexpr int64_t PIECE_OF_SUM = 64;
    V total{};
    for (int64_t begin = 0; begin < n; begin += PIECE_OF_SUM) {
        const int64_t end = std::min(n, begin + PIECE_OF_SUM);
        V some[4] = {};
        int64_t i = begin;
        for (; i + 4 <= end; i += 4)
            for (int k = 0; k < 4; k++) some[k] += term(i + k);
        for (; i < end; i++) some[0] += term(i);
        total += (some[0] + some[1]) + (some[2] + some[3]);
    }
    return total;
}

Moments moments_of(const V* x, int64_t n) {
    const V mean = sum_terms(n, [=](int64_t i) { return x[i]; }) / float(n);
    const V squares = sum_terms(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    return {mean, squares};
}

// ---- batch norm: what one layer knows of a batch ----

struct BatchNorm {
    std::vector<float> means, squares;    // [group][c][LANES], of each example by itself
    std::vector<float> mean, inverse;     // [c] of the batch; inverse: of the deviation
    std::vector<float> scale, shift;      // [c] y = x scale + shift
    std::vector<float> sum_dy, sum_dy_x;  // [c] of the batch; x as it is normalised

    void resize(int64_t groups, int64_t c) {
        means.resize(groups * c * LANES), squares.resize(groups * c * LANES);
        for (auto* of_channels : {&mean, &inverse, &scale, &shift, &sum_dy, &sum_dy_x})
            of_channels->resize(c);
    }
};

// What a group adds to the statistics.
void take_moments(BatchNorm& n, const Op& o, const float* x, int64_t group) {
    const int64_t plane = o.h * o.w;
    for (int64_t c = 0; c < o.c; c++) {
        const Moments m = moments_of((const V*)x + c * plane, plane);
        const int64_t at = (group * o.c + c) * LANES;
        *(Loose*)(&n.means[at]) = m.mean;
        *(Loose*)(&n.squares[at]) = m.squares;
    }
}

// w, b: scale and shift of the layer, null for none.
void set_scale(BatchNorm& n, int64_t c, const float* w, const float* b) {
    n.scale[c] = (w ? w[c] : 1) * n.inverse[c];
    n.shift[c] = (b ? b[c] : 0) - n.mean[c] * n.scale[c];
}

// The statistics of a batch of `size` examples, from those of each; running ones follow, unless
// null.
void settle_batch(BatchNorm& n, const Op& o, int64_t size, const float* w, const float* b,
                  float* running_mean, float* running_variance) {
    const int64_t plane = o.h * o.w, count = size * plane;
    for (int64_t c = 0; c < o.c; c++) {
        const auto at = [&](int64_t e) { return (e / LANES * o.c + c) * LANES + e % LANES; };
        double total = 0, squares = 0;
        for (int64_t e = 0; e < size; e++) total += n.means[at(e)];
        const double mean = total / size;
        for (int64_t e = 0; e < size; e++) {
            const double off = n.means[at(e)] - mean;
            squares += n.squares[at(e)] + plane * off * off;
        }
        n.mean[c] = mean;
        n.inverse[c] = 1 / std::sqrt(squares / count + o.value);
        set_scale(n, c, w, b);
        if (!running_mean) continue;
        running_mean[c] = o.keep * running_mean[c] + (1 - o.keep) * mean;
        const double unbiased = squares / (count - 1);
        running_variance[c] = o.keep * running_variance[c] + (1 - o.keep) * unbiased;
    }
}

// In place of a batch's statistics, those that training has left.
void use_running(BatchNorm& n, const Op& o, const float* w, const float* b,
                 const float* running_mean, const float* running_variance) {
    for (int64_t c = 0; c < o.c; c++) {
        n.mean[c] = running_mean[c];
        n.inverse[c] = 1 / std::sqrt(running_variance[c] + o.value);
        set_scale(n, c, w, b);
    }
}

void normalise_batch(const BatchNorm& n, const Op& o, const float* x, float* y) {
    const int64_t plane = o.h * o.w;
    for (int64_t c = 0; c < o.c; c++) {
        const float scale = n.scale[c], shift = n.shift[c];
        const V* from = (const V*)x + c * plane;
        V* to = (V*)y + c * plane;
        for (int64_t i = 0; i < plane; i++) to[i] = from[i] * scale + shift;
    }
}

// What a group adds to the sums over the batch.
void sum_gradients(BatchNorm& n, const Op& o, const float* x, const float* dy) {
    const int64_t plane = o.h * o.w;
    for (int64_t c = 0; c < o.c; c++) {
        const V *xs = (const V*)x + c * plane, *ds = (const V*)dy + c * plane;
        const float mean = n.mean[c];
        const V all = sum_terms(plane, [=](int64_t i) { return ds[i]; });
        const V all_x = sum_terms(plane, [=](int64_t i) { return ds[i] * (xs[i] - mean); });
        n.sum_dy[c] += sum(all);
        n.sum_dy_x[c] += sum(all_x) * n.inverse[c];
    }
}

// dx = or += scale (dy - mean of dy - x mean of dy x), x as it is normalised. is_example: 1 for
// lanes with one, else 0: the others get no gradient.
void derive_batch(const BatchNorm& n, const Op& o, int64_t count, const V& is_example,
                  const float* x, const float* dy, float* dx, bool add) {
    const int64_t plane = o.h * o.w;
    for (int64_t c = 0; c < o.c; c++) {
        const float mean_dy = n.sum_dy[c] / count;
        const float slope = n.sum_dy_x[c] / count * n.inverse[c], mean = n.mean[c];
        const V scale = n.scale[c] * is_example;
        const V *xs = (const V*)x + c * plane, *ds = (const V*)dy + c * plane;
        V* to = (V*)dx + c * plane;
        for (int64_t i = 0; i < plane; i++) {
            const V d = scale * (ds[i] - mean_dy - (xs[i] - mean) * slope);
            to[i] = add ? to[i] + d : d;
        }
    }
}

// ---- group and layer norm: each example by itself, so each lane ----

V inverse_deviation(const Moments& m, int64_t n, double eps) {
    V inverse;
    for (int l = 0; l < LANES; l++) inverse[l] = 1 / std::sqrt(m.squares[l] / n + float(eps));
    return inverse;
}

// w, b: of each `o.scaled` numbers, null for none.
void normalise_groups(const Op& o, const float* x, float* y, const float* w, const float* b) {
    const int64_t n = o.c * o.h * o.w / o.parts;
    for (int64_t p = 0; p < o.parts; p++) {
        const V* from = (const V*)x + p * n;
        const Moments m = moments_of(from, n);
        const V inverse = inverse_deviation(m, n, o.value);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (p * n + i) / o.scaled;
            const V one = (from[i] - m.mean) * inverse;
            ((V*)y)[p * n + i] = one * (w ? w[at] : 1.0f) + (b ? b[at] : 0.0f);
        }
    }
}

// dw, db += the gradients of scale and shift, null for none; dx = or += that of the input.
void derive_groups(const Op& o, const float* x, const float* dy, float* dx, const float* w,
                   float* dw, float* db, bool add) {
    const int64_t n = o.c * o.h * o.w / o.parts;
    for (int64_t p = 0; p < o.parts; p++) {
        const V *xs = (const V*)x + p * n, *ds = (const V*)dy + p * n;
        V* to = (V*)dx + p * n;
        const Moments m = moments_of(xs, n);
        const V inverse = inverse_deviation(m, n, o.value);
        V all{}, all_x{};
        for (int64_t begin = 0; begin < n; begin += o.scaled) {
            // numbers that have one scale
            const auto d = [=](int64_t i) { return ds[begin + i]; };
            const auto d_x = [=](int64_t i) { return d(i) * (xs[begin + i] - m.mean); };
            const V some = sum_terms(o.scaled, d);
            const V some_x = sum_terms(o.scaled, d_x) * inverse;
            const int64_t at = (p * n + begin) / o.scaled;
            if (dw) dw[at] += sum(some_x);
            if (db) db[at] += sum(some);
            all += some * (w ? w[at] : 1.0f);
            all_x += some_x * (w ? w[at] : 1.0f);
        }
        const V mean = all / float(n), slope = all_x / float(n) * inverse;
        for (int64_t i = 0; i < n; i++) {
            const V d = ds[i] * (w ? w[(p * n + i) / o.scaled] : 1.0f);
            const V one = (d - mean - (xs[i] - m.mean) * slope) * inverse;
            to[i] = add ? to[i] + one : one;
        }
    }
}

}  // namespace
