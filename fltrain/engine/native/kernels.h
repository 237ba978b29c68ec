// What layers are made of: convolutions and activations, on one group of examples at a time, and
// what answers are worth. No memory is taken here.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "elementary.h"
#include "examples.h"
#include "ops.h"
#include "products.h"

namespace {

constexpr int JB = 5;             // taps of a row of a kernel at a time
constexpr int64_t L1 = 32 << 10;  // bytes of the first cache

// ---- convolutions ----

// An image between zeros at both sides: [n][h][w + 2 pad].
struct Image {
    const float* x;
    int64_t n, h, w, pad;
};

// Where a kernel is laid on one axis: its number i at place y of the output meets place
// y stride + first + i step of the image.
struct Laid {
    int64_t k, stride, first, step;
    // Numbers begin..end of the kernel that meet an image of that size somewhere between the
    // places that number 0 meets.
    int64_t begin(int64_t last) const { return last < 0 ? parts_of(-last, step) : 0; }
    int64_t end(int64_t first, int64_t size) const {
        return first < size ? std::min(k, parts_of(size - first, step)) : 0;
    }
};

struct Window {
    Laid rows, columns;
};

// Places of an output, [m][rows][columns]: `x` the first, and the steps from one to the next.
struct Places {
    float* x;
    int64_t rows, columns, plane_step, row_step, column_step;
};

// dst [m] = or += bias [m] + sum over (i, j, k) of A * src [k] where the window meets it.
// taps: in the order j, i, k, made for this src. am: from one m to the next in A.
void correlate(const Places& dst, int64_t m, const Image& src, const Window& by, const float* a,
               int64_t am, const float* bias, const Tap* taps, bool add) {
    const int64_t row = src.w + 2 * src.pad;
    const Parts blocks(dst.columns, NB);
    for (int64_t y = 0; y < dst.rows; y++) {
        // Rows of the kernel that meet the image: above and below it there are no zeros in memory.
        const int64_t top = y * by.rows.stride + by.rows.first;
        const int64_t i0 = by.rows.begin(top), i1 = by.rows.end(top, src.h);
        const Laid& across = by.columns;
        for (int64_t q = 0, x = 0, x1; q < blocks.count; q++, x = x1) {
            x1 = x + blocks.size_of(q);
            const int64_t left = x * across.stride + across.first;
            const int64_t last = (x1 - 1) * across.stride + across.first;
            // Columns of the kernel of which some place of this block meets more than zeros.
            const int64_t j0 = across.begin(last), j1 = across.end(left, src.w);
            Tile t;
            t.c = dst.x + y * dst.row_step + x * dst.column_step;
            t.cm = dst.plane_step;
            t.cn = dst.column_step;
            t.a = a;
            t.am = am;
            t.b = src.x + (top * row + src.pad + left) * LANES;
            t.bn = across.stride * LANES;
            t.bias = bias;
            t.add = add;
            t.taps = taps + j0 * by.rows.k * src.n;
            t.columns = std::max<int64_t>(0, j1 - j0);
            t.width = by.rows.k * src.n;
            t.lo = i0 * src.n;
            t.hi = std::max(i0, i1) * src.n;
            // In the columns before this one and from that one on not all places meet the image.
            const int64_t whole0 = std::max<int64_t>(0, -left);
            const int64_t whole1 = std::min(across.k, src.w - last);
            if (across.stride == 1 && across.step == 1 && whole0 <= whole1) {
                t.rising = whole0 - j0;
                t.falling = j1 - whole1;
            }
            product(t, m, x1 - x);
        }
    }
}

// dw [K][J] += sum over rows, columns and lanes of g [k][row][column] x [row][column xstep + j].
template <int K, int J>
void gradient(float* dw, int64_t dwk, const float* g, int64_t gk, int64_t grow, const float* x,
              int64_t xrow, int64_t xstep, int64_t rows, int64_t columns) {
    V acc[K][J] = {};
    for (int64_t r = 0; r < rows; r++) {
        const V *gs = (const V*)(g + r * grow), *xs = (const V*)(x + r * xrow);
        for (int64_t i = 0; i < columns; i++, gs++, xs += xstep) {
            V near[J];
#pragma GCC unroll 8
            for (int j = 0; j < J; j++) {
                near[j] = xs[j];
                HOLD(near[j]);
            }
#pragma GCC unroll 8
            for (int k = 0; k < K; k++) {
                const V one = gs[k * gk / LANES];
#pragma GCC unroll 8
                for (int j = 0; j < J; j++) acc[k][j] += one * near[j];
            }
        }
    }
    // Some at once: one after the other, they would take a tenth of the time of all this.
#pragma GCC unroll 8
    for (int first = 0; first < K * J; first += LANES) {
        V rows[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            const int at = first + i;
            rows[i] = at < K * J ? acc[at / J][at % J] : V{};
        }
        const V sums = sum_each(rows);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            const int at = first + i;
            if (at < K * J) dw[at / J * dwk + at % J] += sums[i];
        }
    }
}

// One function for each size, as for tiles: [k - 1][j - 1].
template <int... i>
constexpr auto gradients_of(std::integer_sequence<int, i...>) {
    return std::array{gradient<i / JB + 1, i % JB + 1>...};
}
constexpr auto GRADIENTS = gradients_of(std::make_integer_sequence<int, KB * JB>{});

// db [K] += sum over g [k][plane]. One channel alone would wait for each of its additions.
template <int K>
void bias_gradient(float* db, const float* g, int64_t plane) {
    V all[K] = {};
    for (int64_t i = 0; i < plane; i += LANES)
#pragma GCC unroll 8
        for (int k = 0; k < K; k++) all[k] += *(const V*)(g + k * plane + i);
    for (int k = 0; k < K; k++) db[k] += sum(all[k]);
}

template <int... i>
constexpr auto bias_gradients_of(std::integer_sequence<int, i...>) {
    return std::array{bias_gradient<i + 1>...};
}
constexpr auto BIAS_GRADIENTS = bias_gradients_of(std::make_integer_sequence<int, KB>{});

// dw of the output channels k0..k1, by the rows y..y + strip of g.
void conv_gradient_strip(float* dw, const float* g, const float* x, const Op& o, int64_t y,
                         int64_t strip, int64_t k0, int64_t k1) {
    const int64_t row = o.w + 2 * o.pad_w, plane = o.oh * o.ow * LANES, taps = o.kh * o.kw;
    // several taps at a time where they meet places side by side
    const int64_t js = o.step_w == 1 ? parts_of(o.kw, JB) : o.kw;
    for (int64_t c = 0; c < o.c; c++)
        for (int64_t i = 0; i < o.kh; i++) {
            // Rows of g whose row i of the kernel lies within the image.
            const int64_t above = o.pad_h - i * o.step_h, below = o.h + above;
            const int64_t y0 = std::max(y, parts_of(std::max<int64_t>(0, above), o.stride_h));
            const int64_t y1 = std::min({y + strip, o.oh, parts_of(below, o.stride_h)});
            for (int64_t p = 0; p < js && y0 < y1; p++) {
                const int64_t j0 = edge(o.kw, p, js), j1 = edge(o.kw, p + 1, js);
                GRADIENTS[(k1 - k0 - 1) * JB + j1 - j0 - 1](
                    dw + (k0 * o.c + c) * taps + i * o.kw + j0, o.c * taps,
                    g + k0 * plane + y0 * o.ow * LANES, plane, o.ow * LANES,
                    x + ((c * o.h + y0 * o.stride_h - above) * row + j0 * o.step_w) * LANES,
                    o.stride_h * row * LANES, o.stride_w, y1 - y0, o.ow);
            }
        }
}

// dw [out][c][kh][kw] and db [out] += those of g [out][oh][ow] and x [c][h][w + 2 pad], by strips
// of rows that fit the first cache.
void conv_gradient(float* dw, float* db, const float* g, const float* x, const Op& o) {
    const int64_t row = o.w + 2 * o.pad_w, plane = o.oh * o.ow * LANES;
    const int64_t floats = LANES * (KB * o.ow + o.stride_h * row);  // of a row
    const int64_t strip = std::max<int64_t>(1, L1 / (4 * floats));
    const int64_t ks = parts_of(o.out, KB);
    for (int64_t y = 0; y < o.oh; y += strip)
        for (int64_t q = 0; q < ks; q++)
            conv_gradient_strip(dw, g, x, o, y, strip, edge(o.out, q, ks), edge(o.out, q + 1, ks));
    for (int64_t q = 0; db && q < ks; q++) {
        const int64_t k0 = edge(o.out, q, ks), k1 = edge(o.out, q + 1, ks);
        BIAS_GRADIENTS[k1 - k0 - 1](db + k0, g + k0 * plane, plane);
    }
}

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
