// Linear layers: all groups of a block at once.

#pragma once

#include <algorithm>

#include "network.h"

namespace {

// y [out] = bias + W x [c]. used: groups that have an example.
void linear(const Network& net, const Layer& l, const float* w, int64_t used) {
    const Op& o = l.op;
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    product({y.x, LANES, y.xstep, w + o.weight, o.c, x.x, x.xstep, l.bias(w), false, l.taps.data(),
             1, o.c, 0, o.c},
            o.out, used);
}

// dW [out][c] += dy x', so many examples being what is summed over; db += dy.
void linear_gradient(Network& net, const Layer& l, int64_t examples) {
    const Op& o = l.op;
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    const int64_t width = parts_of(o.c, LANES) * LANES, whole = o.c / LANES, n = examples;
    const int64_t used = parts_of(examples, LANES);
    // turned: x with the features of an example side by side, as the vectors of B
    for (int64_t g = 0; g < used; g++)
        for (int64_t f = 0; f < o.c; f += LANES)
            turn_features(net.turned + g * LANES * width + f, width, (const V*)x.at(g) + f,
                          std::min<int64_t>(LANES, o.c - f));
    Tile t{net.gradients + o.weight, o.c, LANES, y.d, LANES, net.turned, LANES, nullptr, true,
           l.outer.data(),           1,   n,     0,   n};
    product(t, o.out, whole);
    if (o.c % LANES) {
        // The features behind the last whole vector, by way of `rest`: written in place, a
        // vector would reach into the next row of dW.
        t.c = net.rest, t.cm = LANES, t.b += whole * LANES, t.add = false;
        product(t, o.out, 1);
        for (int64_t m = 0; m < o.out; m++)
            for (int64_t f = whole * LANES; f < o.c; f++)
                net.gradients[o.weight + m * o.c + f] += net.rest[m * LANES + f % LANES];
    }
    for (int64_t m = 0; m < o.out && o.bias >= 0; m += LANES) {
        const int64_t n = std::min<int64_t>(LANES, o.out - m);
        V all[LANES] = {};
        for (int64_t i = 0; i < n; i++)
            for (int64_t g = 0; g < used; g++) all[i] += ((const V*)y.grad(g))[m + i];
        const V sums = sum_each(all);
        for (int64_t i = 0; i < n; i++) net.gradients[o.bias + m + i] += sums[i];
    }
}

// dx [c] = or += W' dy.
void linear_back(const Network& net, const Layer& l, const float* w, int64_t used) {
    const Op& o = l.op;
    const Tensor &x = net.tensors[o.from], &y = net.tensors[o.to];
    product({x.d, LANES, x.dstep, w + o.weight, 1, y.d, y.dstep, nullptr, l.adds, l.back.data(), 1,
             o.out, 0, o.out},
            o.c, used);
}

}  // namespace
