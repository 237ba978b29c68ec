// What a call is handed, and the layers and tensors that are made of it.

#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "kernels.h"

namespace {

// What Python hands over (`StepArguments` in arguments.py has the same fields).
struct Arguments {
    const Op* ops;
    int64_t n_ops, features, parameters;
    // Flat. w and what the optimiser holds (SGD's velocity, Adam's mean and square) are changed;
    // all but w: null for none.
    float *w, *velocity, *mean, *square;
    const float *start, *add, *after;
    const double* rates;  // of each step
    double beta1, beta2, eps;
    float momentum, decay, pull, smoothing;
    float clip_norm, clip_value;  // 0 for none
    // taken: steps that the optimiser's state is made of; decoupled: decay is taken off the
    // weights.
    int64_t taken, nesterov, decoupled;
    // n rows of bytes or of floats; bytes: whether they are bytes.
    const void* x;
    int64_t bytes;
    // order: rows of x, `per_epoch` of them for each epoch. Where answers are counted, `per_epoch`
    // rows in all.
    const int64_t *y, *order;
    // accumulate: batches that make a step.
    int64_t per_epoch, batch, accumulate, steps;
    const volatile int32_t* stop;  // looked at before each step
};

// Values and gradients of what one layer hands to the next. A step of 0 from group to group means
// that the groups share the place, one after another.
struct Tensor {
    int64_t size = 0;  // features
    float *x = nullptr, *d = nullptr;
    int64_t xstep = 0, dstep = 0;
    float* at(int64_t g) const { return x + g * xstep; }
    float* grad(int64_t g) const { return d + g * dstep; }
};

struct Layer {
    Op op;
    int64_t in, out;                                 // tensors
    int8_t* which = nullptr;                         // of pooling: which of four was the largest
    float *padded_x = nullptr, *padded_d = nullptr;  // of a convolution: one group between zeros
    std::vector<Tap> taps{}, back{}, outer{};        // of y, of dx, of dW

    const float* bias(const float* w) const { return op.bias < 0 ? nullptr : w + op.bias; }
    float* bias(float* w) const { return op.bias < 0 ? nullptr : w + op.bias; }
    int64_t back_pad() const { return op.k - 1 - op.pad; }  // zeros around dy for dx

    // The gradient of the input is a convolution too, with the kernel turned round.
    void set_conv_taps() {
        const Op& o = op;
        const int64_t row = o.w + 2 * o.pad, row_d = o.ow + 2 * back_pad(), end = o.k - 1;
        for (int64_t i = 0; i < o.k; i++)
            for (int64_t j = 0; j < o.k; j++) {
                for (int64_t c = 0; c < o.c; c++)
                    taps.push_back({int32_t((c * o.k + i) * o.k + j),
                                    int32_t(((c * o.h + i) * row + j) * LANES)});
                for (int64_t m = 0; m < o.out; m++)
                    back.push_back({int32_t((m * o.c * o.k + end - i) * o.k + end - j),
                                    int32_t(((m * o.oh + i) * row_d + j) * LANES)});
            }
    }

    // dstep: of the output's gradient; width: of a row of the turned input (`linear_back`).
    void set_linear_taps(int64_t groups, int64_t dstep, int64_t width) {
        for (int32_t t = 0; t < op.c; t++) taps.push_back({t, t * LANES});
        for (int32_t t = 0; t < op.out; t++) back.push_back({int32_t(t * op.c), t * LANES});
        for (int32_t t = 0; t < groups * LANES; t++)
            outer.push_back({int32_t(t / LANES * dstep + t % LANES), int32_t(t * width)});
    }
};

// Memory that is zero at first, aligned for vectors, and given back with its owner.
class Memory {
    struct Free {
        void operator()(void* block) const { ::operator delete(block, std::align_val_t(64)); }
    };
    std::vector<std::unique_ptr<void, Free>> blocks;

  public:
    template <class T>
    T* take(int64_t n) {
        // 64 bytes more: the last vector of a row may reach beyond its end
        blocks.emplace_back(::operator new(n * sizeof(T) + 64, std::align_val_t(64)));
        return (T*)std::memset(blocks.back().get(), 0, n * sizeof(T));
    }
};

}  // namespace
