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
// k, stride, pad: of a convolution or pooling; k = 0: the image is parted evenly.
// parts: groups of group norm; of dropout the numbers of an example that are drawn.
// weight, bias: where they begin in the flat weights, mean, variance in the flat buffers.
// scaled: numbers that have one scale in common (norms). with_zeros: whether zeros around an image
// count in a mean. number, call: of a dropout's draws.
// value: the share that is dropped, or eps; keep: how much of the old statistics is kept.
struct Op {
    int64_t kind, from, also, to;
    int64_t c, h, w, out, oh, ow;
    int64_t k, stride, pad, parts;
    int64_t weight, bias, mean, variance;
    int64_t scaled, with_zeros, number, call;
    double value, keep;
};

}  // namespace
