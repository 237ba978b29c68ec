// The operations of a model, as Python lists them.

#pragma once

#include <cstdint>

namespace {

enum Kind : int64_t {
    CONV,
    LINEAR,
    POOL,
    AVERAGE,
    RELU,
    SIGMOID,
    TANH,
    ADD,
    DROPOUT,
    GROUP_NORM,
    BATCH_NORM,
    TAP,      // what a term of the loss reads
    MOMENTS,  // of batch norm: what a group adds to the statistics of its batch
    INPUT,    // the examples
};

inline bool is_activation(int64_t kind) { return kind >= RELU && kind <= TANH; }

// A row of the table that Python makes (`Op` in ops.py has the same fields).
// from, also, to: numbers of tensors, `also` the second one that is added; -1 for none. An
// activation has `from` = `to`: it works in place. So has a TAP, which changes nothing.
// c, h, w: of the input ([c, 1, 1] where it is flat); out, oh, ow: of the output.
// kh, kw, stride_h, ...: of a convolution or pooling, step_h and step_w the distance of two numbers
// of the kernel (dilation); kh = 0: the image is parted evenly.
// parts: groups of group norm or of a convolution; of dropout the numbers of an example that are
// drawn.
// weight, bias: where they begin in the flat weights, mean, variance in the flat buffers.
// scaled: numbers that have one scale in common (norms). with_zeros: whether zeros around an image
// count in a mean. number, call: of a dropout's draws.
// value: the share that is dropped, or eps; keep: how much of the old statistics is kept.
struct Op {
    int64_t kind, from, also, to;
    int64_t c, h, w, out, oh, ow;
    int64_t kh, kw, stride_h, stride_w, pad_h, pad_w, step_h, step_w, parts;
    int64_t weight, bias, mean, variance;
    int64_t scaled, with_zeros, number, call;
    double value, keep;
};

// One of the two axes of a convolution or pooling: of the image, of the output, of the kernel.
struct Axis {
    int64_t size, outputs, k, stride, pad, step;
};

inline Axis rows_of(const Op& o) { return {o.h, o.oh, o.kh, o.stride_h, o.pad_h, o.step_h}; }
inline Axis columns_of(const Op& o) { return {o.w, o.ow, o.kw, o.stride_w, o.pad_w, o.step_w}; }

// A convolution of one of the groups: each has channels, outputs and weights of its own.
inline Op part_of(Op o) {
    o.c /= o.parts;
    o.out /= o.parts;
    return o;
}

}  // namespace
