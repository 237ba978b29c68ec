// Convolutions: one group of examples at a time, the groups of channels one after another.

#pragma once

#include <cstring>

#include "network.h"

namespace {

// to [n][h][w + 2 pad] = from [n][h][w] between zeros, which are there already; `from` itself where
// pad is 0.
const float* pad_image(float* to, const float* from, int64_t n, int64_t h, int64_t w, int64_t pad) {
    if (!pad) return from;
    for (int64_t r = 0; r < n * h; r++) {
        float* row = to + (r * (w + 2 * pad) + pad) * LANES;
        std::memcpy(row, from + r * w * LANES, w * LANES * sizeof(float));
    }
    return to;
}

// Numbers of an image of so many channels, of a plane of h x w places.
inline int64_t numbers(int64_t channels, int64_t h, int64_t w) { return channels * h * w * LANES; }

void convolve(const Network& net, Layer& l, const float* weights, int64_t g) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const float* from = pad_image(l.padded_x, x.at(g), all.c, o.h, o.w, o.pad_w);
    const Window window{{o.kh, o.stride_h, -o.pad_h, o.step_h},
                        {o.kw, o.stride_w, -o.pad_w, o.step_w}};
    const float* w = l.packed.empty() ? l.weight(weights) : l.packed[0].numbers;
    const float* b = l.bias(weights);
    for (int64_t p = 0; p < o.parts; p++) {
        const Places places{y.at(g) + p * numbers(o.out, o.oh, o.ow),
                            o.oh,
                            o.ow,
                            o.oh * o.ow * LANES,
                            o.ow * LANES,
                            LANES};
        const Image image{from + p * numbers(o.c, o.h, o.w + 2 * o.pad_w), o.c, o.h, o.w, o.pad_w};
        const int64_t am = o.c * o.kh * o.kw;
        correlate(places, o.out, image, window, w + p * o.out * am, am, b ? b + p * o.out : nullptr,
                  l.taps.data(), false);
    }
}

void convolve_gradient(Network& net, Layer& l, int64_t g) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const float* from = pad_image(l.padded_x, x.at(g), all.c, o.h, o.w, o.pad_w);
    float *dw = l.weight(net.gradients), *db = l.bias(net.gradients);
    for (int64_t p = 0; p < o.parts; p++)
        conv_gradient(dw + p * o.out * o.c * o.kh * o.kw, db ? db + p * o.out : nullptr,
                      y.grad(g) + p * numbers(o.out, o.oh, o.ow),
                      from + p * numbers(o.c, o.h, o.w + 2 * o.pad_w), o);
}

void convolve_back(const Network& net, Layer& l, const float* weights, int64_t g) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const int64_t pad = l.back_pad(), row = o.w * LANES;
    const float* dy = pad_image(l.padded_d, y.grad(g), all.out, o.oh, o.ow, pad);
    const float* w = l.weight(weights);
    for (int64_t p = 0; p < o.parts; p++) {
        const Image image{dy + p * numbers(o.out, o.oh, o.ow + 2 * pad), o.out, o.oh, o.ow, pad};
        float* dx = x.grad(g) + p * numbers(o.c, o.h, o.w);
        for (int64_t r = 0; r < o.stride_h * o.stride_w; r++) {
            const Reach rows = l.rows(r / o.stride_w), columns = l.columns(r % o.stride_w);
            const Places places{dx + rows.first * row + columns.first * LANES,
                                rows.places,
                                columns.places,
                                o.h * row,
                                o.stride_h * row,
                                o.stride_w * LANES};
            const Window window{{rows.count, 1, rows.offset, rows.step},
                                {columns.count, 1, columns.offset, columns.step}};
            const bool packs = !l.packed.empty();  // of one group alone
            const int64_t am = packs ? l.back[r].size() : o.kh * o.kw;
            const float* a = packs ? l.packed[r + 1].numbers : w + p * o.out * o.c * o.kh * o.kw;
            correlate(places, o.c, image, window, a, am, nullptr, l.back[r].data(), l.adds);
        }
    }
}

}  // namespace
