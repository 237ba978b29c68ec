// What layers are made of: products, convolutions, pooling, activations. No memory is taken here.
//
// A tensor of one group of examples is [features][LANES]: as many examples as a register holds, side by side, so that every kernel is a loop over
// whole vectors whatever the number of channels. Vectors are the language extension of GCC and clang, which has no names of processors in it.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, MB = 6, NB = 4, KB = 4;  // 24 accumulators of 32 registers
#elif defined(__AVX__)
constexpr int LANES = 8, MB = 4, NB = 3, KB = 2;  // 12 of 16
#elif defined(__aarch64__)
constexpr int LANES = 4, MB = 6, NB = 4, KB = 4;
#else
constexpr int LANES = 4, MB = 4, NB = 3, KB = 2;
#endif
constexpr int GROUPS = 64 / LANES;
typedef float V __attribute__((vector_size(4 * LANES), may_alias));
typedef float Loose __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));  // where a row of weights begins anywhere
typedef int32_t I __attribute__((vector_size(4 * LANES), may_alias));
typedef int8_t Bytes __attribute__((vector_size(LANES), may_alias));

constexpr int JB = 5;  // taps of a row of a kernel at a time
constexpr int64_t L1 = 32 << 10;

enum Kind : int64_t { CONV, LINEAR, POOL, RELU, SIGMOID, TANH };

// A row of the table that Python makes. c, h, w: of the input ([c, 1, 1] where it is flat); out, oh, ow: of the output; k, pad: of a convolution;
// weight, bias: where they begin in the flat weights, -1 for none.
struct Op {
    int64_t kind, c, h, w, out, oh, ow, k, pad, weight, bias;
};

float sum(const V& v) {
    float s[LANES / 2];
    for (int i = 0; i < LANES / 2; i++) s[i] = v[i] + v[i + LANES / 2];
    for (int n = LANES / 4; n; n /= 2)
        for (int i = 0; i < n; i++) s[i] += s[i + n];
    return s[0];
}

// Part p of `parts` nearly equal parts of n begins here.
inline int64_t edge(int64_t n, int64_t p, int64_t parts) { return n * p / parts; }
inline int64_t parts_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

// ---- products: every one is a sum over taps of one number of A times one vector of B ----

struct Tap {
    int32_t a, b;  // where they stand, in floats
};

// C[m][n] = or += bias[m] + sum over taps A[m] B[n], for M numbers and N vectors. Taps lo..hi of each of `rows` rows of `width`.
struct Tile {
    float* c;
    int64_t cm, cn;
    const float* a;
    int64_t am;
    const float* b;
    int64_t bn;
    const float* bias;
    bool add;
    const Tap* taps;
    int64_t rows, width, lo, hi;
};

template <int M, int N>
void tile(const Tile& t) {
    V acc[M][N];
#pragma GCC unroll 8
    for (int m = 0; m < M; m++)
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) acc[m][n] = V{} + (t.bias ? t.bias[m] : 0.0f);
    const int64_t am = t.am, bn = t.bn;
    for (int64_t row = 0; row < t.rows; row++) {
        const Tap *tap = t.taps + row * t.width + t.lo, *end = t.taps + row * t.width + t.hi;
        for (; tap != end; tap++) {
            const float *a = t.a + tap->a, *b = t.b + tap->b;
            V x[N];
#pragma GCC unroll 8
            for (int n = 0; n < N; n++) x[n] = *(const Loose*)(b + n * bn);
#pragma GCC unroll 8
            for (int m = 0; m < M; m++)
#pragma GCC unroll 8
                for (int n = 0; n < N; n++) acc[m][n] += a[m * am] * x[n];
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; m++)
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) {
            Loose* c = (Loose*)(t.c + m * t.cm + n * t.cn);
            *c = t.add ? *c + acc[m][n] : acc[m][n];
        }
}

template <int... i>
constexpr auto tiles_of(std::integer_sequence<int, i...>) {
    return std::array{tile<i / NB + 1, i % NB + 1>...};
}
constexpr auto TILES = tiles_of(std::make_integer_sequence<int, MB * NB>{});

// The same for m numbers and n vectors, any number of them.
void product(const Tile& t, int64_t m, int64_t n) {
    const int64_t ms = parts_of(m, MB), ns = parts_of(n, NB);
    for (int64_t q = 0; q < ns; q++) {
        const int64_t n0 = edge(n, q, ns), n1 = edge(n, q + 1, ns);
        for (int64_t p = 0; p < ms; p++) {
            const int64_t m0 = edge(m, p, ms), m1 = edge(m, p + 1, ms);
            Tile u = t;
            u.c += m0 * t.cm + n0 * t.cn, u.a += m0 * t.am, u.b += n0 * t.bn;
            if (t.bias) u.bias += m0;
            TILES[(m1 - m0 - 1) * NB + n1 - n0 - 1](u);
        }
    }
}

// ---- convolutions, one group at a time ----

// dst [m][dh][dw] = bias + sum over (k, i, j) of A * src [k][y + i - pad][x + j - pad]; src [.][sh][sw + 2 pad] with zeros at both sides.
// taps: in the order i, j, k, made for this src.
void correlate(float* dst, int64_t m, int64_t dh, int64_t dw, const float* src, int64_t n, int64_t sh, int64_t sw, int64_t k, int64_t pad,
               const float* a, int64_t am, const float* bias, const Tap* taps) {
    const int64_t row = sw + 2 * pad, blocks = parts_of(dw, NB);
    for (int64_t y = 0; y < dh; y++) {
        const int64_t i0 = std::max<int64_t>(0, pad - y), i1 = std::min(k, sh + pad - y);  // rows of the kernel that meet src
        for (int64_t q = 0; q < blocks; q++) {
            const int64_t x = edge(dw, q, blocks), x1 = edge(dw, q + 1, blocks);
            const int64_t j0 = std::max<int64_t>(0, pad - x1 + 1), j1 = std::min(k, sw + pad - x);
            Tile t{dst + (y * dw + x) * LANES, dh * dw * LANES, LANES, a, am, src + ((y - pad) * row + x) * LANES, LANES, bias, false,
                   taps + i0 * k * n, std::max<int64_t>(0, i1 - i0), k * n, j0 * n, std::max(j0, j1) * n};
            product(t, m, x1 - x);
        }
    }
}

// dw [K][J] += sum over rows, columns and lanes of g [k][row][column] x [row][column + j].
template <int K, int J>
void gradient(float* dw, int64_t dwk, const float* g, int64_t gk, int64_t grow, const float* x, int64_t xrow, int64_t rows, int64_t columns) {
    V acc[K][J] = {};
    for (int64_t r = 0; r < rows; r++) {
        const V *gs = (const V*)(g + r * grow), *xs = (const V*)(x + r * xrow);
        for (int64_t i = 0; i < columns; i++, gs++, xs++) {
            V near[J];
#pragma GCC unroll 8
            for (int j = 0; j < J; j++) near[j] = xs[j];
#pragma GCC unroll 8
            for (int k = 0; k < K; k++) {
                const V one = gs[k * gk / LANES];
#pragma GCC unroll 8
                for (int j = 0; j < J; j++) acc[k][j] += one * near[j];
            }
        }
    }
    for (int k = 0; k < K; k++)
        for (int j = 0; j < J; j++) dw[k * dwk + j] += sum(acc[k][j]);
}

template <int... i>
constexpr auto gradients_of(std::integer_sequence<int, i...>) {
    return std::array{gradient<i / JB + 1, i % JB + 1>...};
}
constexpr auto GRADIENTS = gradients_of(std::make_integer_sequence<int, KB * JB>{});

// dw [out][c][k][k] and db [out] += those of g [out][oh][ow] and x [c][h][w + 2 pad], by strips of rows that fit the first cache.
void conv_gradient(float* dw, float* db, const float* g, const float* x, const Op& o) {
    const int64_t row = o.w + 2 * o.pad, plane = o.oh * o.ow * LANES, taps = o.k * o.k;
    const int64_t strip = std::max<int64_t>(1, L1 / (4 * LANES * (KB * o.ow + row))), ks = parts_of(o.out, KB), js = parts_of(o.k, JB);
    for (int64_t y = 0; y < o.oh; y += strip)
        for (int64_t q = 0; q < ks; q++) {
            const int64_t k0 = edge(o.out, q, ks), k1 = edge(o.out, q + 1, ks);
            for (int64_t c = 0; c < o.c; c++)
                for (int64_t i = 0; i < o.k; i++) {
                    const int64_t y0 = std::max(y, o.pad - i), y1 = std::min({y + strip, o.oh, o.h + o.pad - i});
                    for (int64_t p = 0; p < js && y0 < y1; p++) {
                        const int64_t j0 = edge(o.k, p, js), j1 = edge(o.k, p + 1, js);
                        GRADIENTS[(k1 - k0 - 1) * JB + j1 - j0 - 1](
                            dw + (k0 * o.c + c) * taps + i * o.k + j0, o.c * taps, g + k0 * plane + y0 * o.ow * LANES, plane, o.ow * LANES,
                            x + ((c * o.h + y0 + i - o.pad) * row + j0) * LANES, row * LANES, y1 - y0, o.ow);
                    }
                }
        }
    for (int64_t k = 0; db && k < o.out; k++) {
        V all{};
        for (int64_t i = 0; i < o.oh * o.ow; i++) all += ((const V*)(g + k * plane))[i];
        db[k] += sum(all);
    }
}

// to [n][h][w + 2 pad] = from [n][h][w] between zeros, which are there already; `from` itself where pad is 0.
const float* padded(float* to, const float* from, int64_t n, int64_t h, int64_t w, int64_t pad) {
    if (!pad) return from;
    for (int64_t r = 0; r < n * h; r++) std::memcpy(to + (r * (w + 2 * pad) + pad) * LANES, from + r * w * LANES, w * LANES * sizeof(float));
    return to;
}

// ---- pooling and activations, one group at a time ----

// y [c][h / 2][w / 2] = the first largest of each 2 x 2 of x [c][h][w]; which: its place, 0..3.
void pool(const Op& o, const float* x, float* y, int8_t* which) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const V* from = (const V*)x + (r / o.oh * o.h + r % o.oh * 2) * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            V best = from[2 * i];
            I at{};
            for (int p = 1; p < 4; p++) {
                const V next = from[p / 2 * o.w + 2 * i + p % 2];
                const I more = next > best;
                best = more ? next : best, at = more ? I{} + p : at;
            }
            ((V*)y)[r * o.ow + i] = best;
            ((Bytes*)which)[r * o.ow + i] = __builtin_convertvector(at, Bytes);
        }
    }
}

// dx [c][h][w]: dy [c][h / 2][w / 2] where its example's largest was, else 0.
void unpool(const Op& o, const float* dy, const int8_t* which, float* dx) {
    if (o.h % 2 || o.w % 2) std::memset(dx, 0, o.c * o.h * o.w * LANES * sizeof(float));
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        V* to = (V*)dx + (r / o.oh * o.h + r % o.oh * 2) * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            const V d = ((const V*)dy)[r * o.ow + i];
            const I at = __builtin_convertvector(((const Bytes*)which)[r * o.ow + i], I);
            for (int p = 0; p < 4; p++) to[p / 2 * o.w + 2 * i + p % 2] = at == p ? d : V{};
        }
    }
}

// x [n] vectors, in place.
void activate(Kind kind, V* x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (kind == RELU)
            x[i] = x[i] < 0 ? V{} : x[i];  // a NaN stays
        else
            for (int l = 0; l < LANES; l++) x[i][l] = kind == TANH ? std::tanh(x[i][l]) : 1 / (1 + std::exp(-x[i][l]));
}

// d [n] vectors, in place: the derivative at the outputs y, times d.
void derive(Kind kind, V* d, const V* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) d[i] = kind == RELU ? (y[i] <= 0 ? V{} : d[i]) : d[i] * (kind == TANH ? 1 - y[i] * y[i] : y[i] * (1 - y[i]));
}

}  // namespace
