// Pooling: the largest or the mean of each window of an image, on one group of examples.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels.h"

namespace {

// The places begin..end of an axis that an output sees, those beyond the axis left out. with_zeros:
// how many it sees with the zeros around the image.
struct Seen {
    int64_t begin, end, with_zeros;
};

Seen seen_by(const Axis& a, int64_t i) {
    if (!a.k) return {i * a.size / a.outputs, parts_of((i + 1) * a.size, a.outputs), 0};
    const int64_t begin = i * a.stride - a.pad, end = begin + a.k;
    // behind the zeros there is nothing, where a size is rounded up
    const int64_t with_zeros = std::min(end, a.size + a.pad) - begin;
    return {std::max<int64_t>(0, begin), std::min(a.size, end), with_zeros};
}

// y [c][oh][ow] = the first largest, else the last NaN, of each window of x [c][h][w]; which: its
// place in the window.
void pool(const Op& o, const float* x, float* y, int8_t* which) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const Seen rows = seen_by(rows_of(o), r % o.oh);
        const V* plane = (const V*)x + r / o.oh * o.h * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            const Seen columns = seen_by(columns_of(o), i);
            V best = plane[rows.begin * o.w + columns.begin];
            I at{};
            int p = 0;
            for (int64_t a = rows.begin; a < rows.end; a++)
                for (int64_t b = columns.begin; b < columns.end; b++, p++) {
                    const V next = plane[a * o.w + b];
                    const I more = next > best | next != next;  // as torch: a NaN wins
                    best = more ? next : best;
                    at = more ? I{} + p : at;
                }
            ((V*)y)[r * o.ow + i] = best;
            ((Bytes*)which)[r * o.ow + i] = __builtin_convertvector(at, Bytes);
        }
    }
}

// dx [c][h][w] += dy [c][oh][ow] where its example's largest was.
void unpool(const Op& o, const float* dy, const int8_t* which, float* dx) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const Seen rows = seen_by(rows_of(o), r % o.oh);
        V* plane = (V*)dx + r / o.oh * o.h * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            const Seen columns = seen_by(columns_of(o), i);
            const V d = ((const V*)dy)[r * o.ow + i];
            const I at = widen(which + (r * o.ow + i) * LANES);
            int p = 0;
            for (int64_t a = rows.begin; a < rows.end; a++)
                for (int64_t b = columns.begin; b < columns.end; b++, p++)
                    plane[a * o.w + b] += at == p ? d : V{};
        }
    }
}

// ---- windows of 2 x 2 that do not overlap: most of all pooling ----

bool is_halving(const Axis& a) {
    return a.k == 2 && a.stride == 2 && !a.pad && a.outputs == a.size / 2;
}
bool is_halving(const Op& o) { return is_halving(rows_of(o)) && is_halving(columns_of(o)); }

bool has_nan(const V& x) {
    const I is_nan = x != x;
    uint64_t words[sizeof(I) / sizeof(uint64_t)], any = 0;
    std::memcpy(words, &is_nan, sizeof words);
    for (const uint64_t word : words) any |= word;
    return any;
}

// The first largest of four, else the last NaN, as torch has it; at: which one.
template <bool WITH_NANS>
INLINE V largest_of(const V& x0, const V& x1, const V& x2, const V& x3, I& at) {
    const auto is_more = [](const V& next, const V& best) {
        return WITH_NANS ? next > best | next != next : next > best;
    };
    const I right = is_more(x1, x0), below = is_more(x3, x2);
    const V above = right ? x1 : x0, under = below ? x3 : x2;
    const I is_under = is_more(under, above);
    at = is_under ? (below ? I{} + 3 : I{} + 2) : (right ? I{} + 1 : I{});
    return is_under ? under : above;
}

// dx [2][w] is written, whatever it holds. Of an odd w the last place belongs to no 2 x 2.
void unpool_pair(V* dx, int64_t w, const V* dy, const int8_t* which, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const I at = widen(which + i * LANES);
        for (int p = 0; p < 4; p++) dx[p / 2 * w + 2 * i + p % 2] = at == p ? dy[i] : V{};
    }
    if (w % 2) dx[w - 1] = dx[2 * w - 1] = V{};
}

void pool_halves(const Op& o, const float* x, float* y, int8_t* which) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const V* from = (const V*)x + (r / o.oh * o.h + r % o.oh * 2) * o.w;
        for (int64_t i = 0; i < o.ow; i++, from += 2) {
            I at;
            ((V*)y)[r * o.ow + i] =
                largest_of<true>(from[0], from[1], from[o.w], from[o.w + 1], at);
            ((Bytes*)which)[r * o.ow + i] = __builtin_convertvector(at, Bytes);
        }
    }
}

// dx is written, whatever it holds.
void unpool_halves(const Op& o, const float* dy, const int8_t* which, float* dx) {
    // of an odd height the last row belongs to no 2 x 2
    if (o.h % 2) std::memset(dx, 0, o.c * o.h * o.w * LANES * sizeof(float));
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        V* to = (V*)dx + (r / o.oh * o.h + r % o.oh * 2) * o.w;
        unpool_pair(to, o.w, (const V*)dy + r * o.ow, which + r * o.ow * LANES, o.ow);
    }
}

// ---- means ----

// What a window's sum is multiplied by: zeros around the image count where `o.with_zeros` says so.
float share_of(const Op& o, const Seen& rows, const Seen& columns) {
    const int64_t real = (rows.end - rows.begin) * (columns.end - columns.begin);
    return 1.0f / (o.with_zeros ? rows.with_zeros * columns.with_zeros : real);
}

// y [c][oh][ow] = the mean of each window of x [c][h][w].
void average(const Op& o, const float* x, float* y) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const Seen rows = seen_by(rows_of(o), r % o.oh);
        const V* plane = (const V*)x + r / o.oh * o.h * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            const Seen columns = seen_by(columns_of(o), i);
            V total{};
            for (int64_t a = rows.begin; a < rows.end; a++)
                for (int64_t b = columns.begin; b < columns.end; b++) total += plane[a * o.w + b];
            ((V*)y)[r * o.ow + i] = total * share_of(o, rows, columns);
        }
    }
}

// dx [c][h][w] += each place's share of dy [c][oh][ow].
void spread(const Op& o, const float* dy, float* dx) {
    for (int64_t r = 0; r < o.c * o.oh; r++) {
        const Seen rows = seen_by(rows_of(o), r % o.oh);
        V* plane = (V*)dx + r / o.oh * o.h * o.w;
        for (int64_t i = 0; i < o.ow; i++) {
            const Seen columns = seen_by(columns_of(o), i);
            const V d = ((const V*)dy)[r * o.ow + i] * share_of(o, rows, columns);
            for (int64_t a = rows.begin; a < rows.end; a++)
                for (int64_t b = columns.begin; b < columns.end; b++) plane[a * o.w + b] += d;
        }
    }
}

}  // namespace
