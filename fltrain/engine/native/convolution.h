// Convolutions: one group of examples at a time, the groups of channels one after another.

#pragma once

#include <cstring>

#include "network.h"

namespace {

// to [n][h][w + 2 pad] = from [n][h][w] between zeros, which are there already; `from` itself where
// there is nothing to change. pitch: of a place of `to`.
const float* lay_image(float* to, const float* from, int64_t n, int64_t h, int64_t w, int64_t pad,
                       int64_t pitch) {
    if (pitch == LANES && !pad) return from;
    const int64_t row = row_of(w, pad, pitch);
    for (int64_t r = 0; r < n * h; r++, from += w * LANES) {
        float* places = to + r * row + row_of(pad, pitch);
        if (pitch == LANES) {
            std::memcpy(places, from, w * LANES * sizeof(float));
            continue;
        }
        // Each vector reaches into the next place, which is written after it, the last into zeros.
        for (int64_t i = 0; i < w; i++) *(Loose*)(places + i * pitch) = ((const V*)from)[i];
        *(Loose*)(places + w * pitch) = V{};
    }
    return to;
}

// to [n rows][w] = or += the narrow rows, each in whole vectors; lanes without an example get 0.
void take_places(float* to, const float* from, int64_t n, int64_t w, int64_t pitch, bool add) {
    I is_example;
    for (int l = 0; l < LANES; l++) is_example[l] = l < pitch ? -1 : 0;
    for (int64_t r = 0; r < n; r++, from += row_of(w, pitch))
        for (int64_t i = 0; i < w; i++, to += LANES) {
            const V one = is_example ? V(*(const Loose*)(from + i * pitch)) : V{};
            *(V*)to = add ? *(V*)to + one : one;
        }
}

// Numbers of an image in its tensor, of so many channels of h x w places.
inline int64_t numbers(int64_t channels, int64_t h, int64_t w) { return channels * h * w * LANES; }

void convolve(const Network& net, const Layer& l, const float* weights, int64_t g,
              const ImageLayout& by) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const float* from = lay_image(by.x, x.at(g), all.c, o.h, o.w, o.pad_w, by.pitch);
    const Window window{{o.kh, o.stride_h, -o.pad_h, o.step_h},
                        {o.kw, o.stride_w, -o.pad_w, o.step_w}};
    const float* w = l.packed.empty() ? l.weight(weights) : l.packed[0].numbers;
    const float* b = l.bias(weights);
    const int64_t row = row_of(o.ow, by.pitch), am = o.c * o.kh * o.kw;
    float* to = by.is_narrow() ? by.out : y.at(g);
    for (int64_t p = 0; p < o.parts; p++) {
        const Places places{to + p * o.out * o.oh * row, o.oh, row / LANES, o.oh * row, row, LANES};
        Image image{from, o.c, o.h, o.w, o.pad_w, by.pitch};
        image.x += p * o.c * o.h * image.row();
        correlate(places, o.out, image, window, w + p * o.out * am, am, b ? b + p * o.out : nullptr,
                  by.taps.data(), false);
    }
    if (by.is_narrow()) take_places(y.at(g), to, all.out * o.oh, o.ow, by.pitch, false);
}

// Of a narrow image by what `convolve` has laid; the gradient of the answers is laid here.
void convolve_gradient(Network& net, const Layer& l, int64_t g, const ImageLayout& by) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const bool is_narrow = by.is_narrow();
    const int64_t pad = is_narrow ? l.back_pad() : 0;
    const float* from =
        is_narrow ? by.x : lay_image(by.x, x.at(g), all.c, o.h, o.w, o.pad_w, by.pitch);
    const float* dy = lay_image(by.d, y.grad(g), all.out, o.oh, o.ow, pad, by.pitch);
    const Walk walk{row_of(pad, by.pitch),
                    row_of(o.pad_w, by.pitch) - o.pad_w * by.pitch,
                    row_of(o.ow, pad, by.pitch),
                    row_of(o.w, o.pad_w, by.pitch),
                    row_of(o.ow, by.pitch) / LANES,
                    o.stride_w * LANES,
                    o.step_w * by.pitch};
    float *dw = l.weight(net.gradients), *db = l.bias(net.gradients);
    for (int64_t p = 0; p < o.parts; p++)
        conv_gradient(dw + p * o.out * o.c * o.kh * o.kw, db ? db + p * o.out : nullptr,
                      dy + p * o.out * o.oh * walk.g_row, from + p * o.c * o.h * walk.x_row, o,
                      walk);
}

// Of a narrow image by what `convolve_gradient` has laid.
void convolve_back(const Network& net, const Layer& l, const float* weights, int64_t g,
                   const ImageLayout& by) {
    const Op all = l.op, o = part_of(all);
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const int64_t pad = l.back_pad(), row = row_of(o.w, by.pitch);
    const bool is_narrow = by.is_narrow();
    const float* dy =
        is_narrow ? by.d : lay_image(by.d, y.grad(g), all.out, o.oh, o.ow, pad, by.pitch);
    const float* w = l.weight(weights);
    float* to = is_narrow ? by.out : x.grad(g);
    for (int64_t p = 0; p < o.parts; p++) {
        Image image{dy, o.out, o.oh, o.ow, pad, by.pitch};
        image.x += p * o.out * o.oh * image.row();
        float* dx = to + p * o.c * o.h * row;
        for (int64_t r = 0; r < o.stride_h * o.stride_w; r++) {
            const Reach rows = l.rows(r / o.stride_w), columns = l.columns(r % o.stride_w);
            const Places places{dx + rows.first * row + columns.first * LANES,
                                rows.places,
                                is_narrow ? row / LANES : columns.places,
                                o.h * row,
                                o.stride_h * row,
                                o.stride_w * LANES};
            const Window window{{rows.count, 1, rows.offset, rows.step},
                                {columns.count, 1, columns.offset, columns.step}};
            const bool packs = !l.packed.empty();  // of one group alone
            const int64_t am = packs ? by.back[r].size() : o.kh * o.kw;
            const float* a = packs ? l.packed[r + 1].numbers : w + p * o.out * o.c * o.kh * o.kw;
            correlate(places, o.c, image, window, a, am, nullptr, by.back[r].data(),
                      l.adds && !is_narrow);
        }
    }
    if (is_narrow) take_places(x.grad(g), to, all.c * o.h, o.w, by.pitch, l.adds);
}

}  // namespace
