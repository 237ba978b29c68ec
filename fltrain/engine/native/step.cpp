// The local training of one job: all its steps, on one thread. And the answers of a model, counted.
//
// A tensor is [groups][features][LANES] (products.h). A batch is worked off in blocks of up to 64
// examples; lanes without an example hold zeros and get no gradient. Layers before the first linear
// one run group by group, which keeps their tensors in the cache; those from there on run on all
// groups of a block at once. Weights and gradients lie flat, each tensor as torch has it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include "sums.h"
#include "updates.h"

namespace {

class Model {
    const Arguments& args;
    const bool trains;     // else there are no gradients, and no places for them
    const int64_t groups;  // of a block
    Memory memory;
    std::vector<Tensor> tensors;
    std::vector<Layer> layers;
    size_t flat = 0;  // the first layer that runs on all groups at once
    // gradients: of the parameters. turned, rest: see `linear_back`.
    float *gradients = nullptr, *turned = nullptr, *rest = nullptr;
    std::vector<char> blank;  // an example of zeros, for lanes without one

  public:
    Model(const Arguments& args, bool trains)
        : args(args),
          trains(trains),
          groups(std::min<int64_t>(GROUPS, parts_of(std::min(args.batch, args.per_epoch), LANES))) {
        chain_layers();
        place_tensors();
        prepare_layers();
        blank.resize(args.features * sizeof(float));
    }

    // The mean loss of each step, summed.
    double train() {
        const int64_t batches = parts_of(args.per_epoch, args.batch);
        const int64_t steps_per_epoch = parts_of(batches, args.accumulate);
        double loss = 0;
        for (int64_t s = 0; s < args.steps && !*args.stop; s++) {
            const int64_t* rows = args.order + s / steps_per_epoch * args.per_epoch;
            const int64_t first = s % steps_per_epoch * args.accumulate;
            const int64_t count = std::min(args.accumulate, batches - first);
            std::memset(gradients, 0, args.parameters * sizeof(float));
            double all = 0;
            for (int64_t b = first; b < first + count; b++) all += batch(rows, b, count);
            loss += all / count;
            step_weights(args, gradients, s);
        }
        return loss;
    }

    // The summed loss of the rows; `right` grows by how many of them have their label's number as
    // the largest.
    double score(int64_t& right) {
        double loss = 0;
        for (int64_t b = 0; b < args.per_epoch; b += groups * LANES) {
            const int64_t* rows = args.order + b;
            const int64_t size = std::min(groups * LANES, args.per_epoch - b);
            answer(rows, size);
            for (int64_t i = 0; i < size; i++) {
                const int64_t label = args.y[rows[i]];
                loss += entropy(i, label, 0);
                right += largest(logits(i), tensors.back().size) == label;
            }
        }
        return loss;
    }

  private:
    // ---- made once ----

    // The largest of four, cut off at 0, is the same as the largest of four that were cut off, and
    // so is who gets the gradient: the one that is largest, if it is above 0. Cutting off first
    // would take four times the work.
    static void pool_before_relu(std::vector<Op>& ops) {
        for (size_t i = 1; i < ops.size(); i++)
            if (ops[i - 1].kind == RELU && ops[i].kind == POOL) std::swap(ops[i - 1], ops[i]);
    }

    // Layers and the tensors between them; activations work in place.
    void chain_layers() {
        tensors.push_back({args.features});
        std::vector<Op> ops(args.ops, args.ops + args.n_ops);
        pool_before_relu(ops);
        for (const Op& o : ops) {
            const int64_t in = tensors.size() - 1;
            if (o.kind <= POOL) tensors.push_back({o.out * o.oh * o.ow});
            layers.push_back({o, in, (int64_t)tensors.size() - 1});
        }
        while (flat < layers.size() && layers[flat].op.kind != LINEAR) flat++;
    }

    // A tensor has a place for each group where somebody comes back to it, else one for all.
    void place_tensors() {
        // The tensor that the layers before `flat` hand to those from there on.
        const size_t handed = flat < layers.size() ? layers[flat].in : tensors.size() - 1;
        // Read by pooling alone, which remembers what it needs for the way back.
        std::vector<bool> pooled(tensors.size());
        for (size_t i = 0; i < flat; i++)
            pooled[layers[i].in] =
                layers[i].op.kind == POOL && (!i || layers[i - 1].op.kind == CONV);
        for (size_t i = 0; i < tensors.size(); i++) {
            const bool keeps_x = trains ? !pooled[i] : i >= handed, keeps_d = i >= handed;
            Tensor& t = tensors[i];
            const int64_t n = t.size * LANES;
            t.xstep = keeps_x ? n : 0;
            t.dstep = keeps_d ? n : 0;
            t.x = memory.take<float>(keeps_x ? n * groups : n);
            t.d = trains ? memory.take<float>(keeps_d ? n * groups : n) : nullptr;
        }
    }

    void prepare_layers() {
        int64_t widest = 0, most = 0;  // of all linear layers: a row of the input, outputs
        for (Layer& l : layers) {
            const Op& o = l.op;
            if (o.kind == POOL) l.which = memory.take<int8_t>(groups * o.out * o.oh * o.ow * LANES);
            if (o.kind == CONV) {
                l.set_conv_taps();
                const int64_t row = o.w + 2 * o.pad, row_d = o.ow + 2 * l.back_pad();
                l.padded_x = o.pad ? memory.take<float>(o.c * o.h * row * LANES) : nullptr;
                l.padded_d = trains ? memory.take<float>(o.out * o.oh * row_d * LANES) : nullptr;
            }
            if (o.kind == LINEAR) {
                const int64_t width = parts_of(o.c, LANES) * LANES;
                l.set_linear_taps(groups, tensors[l.out].dstep, width);
                widest = std::max(widest, width);
                most = std::max(most, o.out);
            }
        }
        if (!trains) return;
        turned = memory.take<float>(groups * LANES * widest);
        rest = memory.take<float>(most * LANES);
        gradients = memory.take<float>(args.parameters);
    }

    // ---- forward and back ----

    // All layers on some rows; how many groups they are.
    int64_t answer(const int64_t* rows, int64_t size) {
        const int64_t used = parts_of(size, LANES);
        for (int64_t g = 0; g < used; g++) {
            const int64_t count = std::min<int64_t>(LANES, size - g * LANES);
            if (args.bytes)
                gather<uint8_t>(rows + g * LANES, count, g);
            else
                gather<float>(rows + g * LANES, count, g);
            for (size_t i = 0; i < flat; i++) forward(layers[i], g);
        }
        for (size_t i = flat; i < layers.size(); i++)
            if (layers[i].op.kind == LINEAR)
                linear(layers[i], used);
            else
                for (int64_t g = 0; g < used; g++) forward(layers[i], g);
        return used;
    }

    // Adds the gradient of a batch of an epoch's rows, one of `count` that make a step; its mean
    // loss.
    double batch(const int64_t* rows, int64_t number, int64_t count) {
        const int64_t first = number * args.batch;
        const int64_t n = std::min(args.batch, args.per_epoch - first);
        const float share = 1.0f / (n * count);
        double loss = 0;
        for (int64_t b = 0; b < n; b += groups * LANES)
            loss += block(rows + first + b, std::min(groups * LANES, n - b), share);
        return loss / n;
    }

    // Adds the gradient of some rows, each weighted by `share`; their summed loss.
    double block(const int64_t* rows, int64_t size, float share) {
        const int64_t used = answer(rows, size);
        double loss = 0;
        for (int64_t i = 0; i < used * LANES; i++)
            loss += entropy(i, i < size ? args.y[rows[i]] : -1, share);
        for (size_t i = layers.size(); i-- > flat;)
            if (layers[i].op.kind == LINEAR)
                linear_back(layers[i], used, i == 0);
            else
                for (int64_t g = 0; g < used; g++) backward(layers[i], g, false);
        for (int64_t g = 0; g < used; g++)
            for (size_t i = flat; i-- > 0;) backward(layers[i], g, i == 0);
        return loss;
    }

    // [features][LANES] of up to so many rows; lanes without one are 0.
    template <class T>
    void gather(const int64_t* rows, int64_t count, int64_t group) {
        const int64_t features = args.features;
        const T* from[LANES];
        for (int l = 0; l < LANES; l++)
            from[l] = l < count ? (const T*)args.x + rows[l] * features : (const T*)blank.data();
        V* to = (V*)tensors[0].at(group);
        int64_t f = 0;
        for (; f + LANES <= features; f += LANES) {
            V square[LANES];
            for (int l = 0; l < LANES; l++) square[l] = widen(from[l] + f);
            turn(square);
            for (int i = 0; i < LANES; i++) to[f + i] = square[i];
        }
        for (; f < features; f++)
            for (int l = 0; l < LANES; l++) to[f][l] = widen_one(from[l][f]);
    }

    void forward(Layer& l, int64_t g) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        if (o.kind == CONV) {
            const float* from = pad_image(l.padded_x, x.at(g), o.c, o.h, o.w, o.pad);
            correlate(y.at(g), o.out, o.oh, o.ow, {from, o.c, o.h, o.w, o.pad}, o.k,
                      args.w + o.weight, o.c * o.k * o.k, l.bias(args.w), l.taps.data());
        } else if (o.kind == POOL)
            pool(o, x.at(g), y.at(g), l.which + g * y.size * LANES);
        else
            activate(Kind(o.kind), (V*)y.at(g), y.size);
    }

    // first: nobody wants the gradient of its input.
    void backward(Layer& l, int64_t g, bool first) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        if (o.kind == CONV) {
            const float* from = pad_image(l.padded_x, x.at(g), o.c, o.h, o.w, o.pad);
            conv_gradient(gradients + o.weight, l.bias(gradients), y.grad(g), from, o);
            if (first) return;
            const int64_t pad = l.back_pad();
            const float* dy = pad_image(l.padded_d, y.grad(g), o.out, o.oh, o.ow, pad);
            correlate(x.grad(g), o.c, o.h, o.w, {dy, o.out, o.oh, o.ow, pad}, o.k,
                      args.w + o.weight, o.k * o.k, nullptr, l.back.data());
        } else if (o.kind == POOL)
            unpool(o, y.grad(g), l.which + g * y.size * LANES, x.grad(g));
        else
            derive(Kind(o.kind), (V*)y.grad(g), (const V*)y.at(g), y.size);
    }

    // y [out] = bias + W x [c], for all groups at once.
    void linear(const Layer& l, int64_t used) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        product({y.x, LANES, y.xstep, args.w + o.weight, o.c, x.x, x.xstep, l.bias(args.w), false,
                 l.taps.data(), 1, o.c, 0, o.c},
                o.out, used);
    }

    // dW [out][c] += dy x', the examples being what is summed over; db += dy; dx = W' dy.
    void linear_back(const Layer& l, int64_t used, bool first) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        const int64_t width = parts_of(o.c, LANES) * LANES, whole = o.c / LANES, n = used * LANES;
        // turned: x with the features of an example side by side, as the vectors of B
        for (int64_t g = 0; g < used; g++)
            for (int64_t f = 0; f < o.c; f += LANES)
                turn_features(turned + g * LANES * width + f, width, (const V*)x.at(g) + f,
                              std::min<int64_t>(LANES, o.c - f));
        Tile t{gradients + o.weight, o.c, LANES, y.d, LANES, turned, LANES, nullptr, true,
               l.outer.data(),       1,   n,     0,   n};
        product(t, o.out, whole);
        if (o.c % LANES) {
            // The features behind the last whole vector, by way of `rest`: written in place, a
            // vector would reach into the next row of dW.
            t.c = rest, t.cm = LANES, t.b += whole * LANES, t.add = false;
            product(t, o.out, 1);
            for (int64_t m = 0; m < o.out; m++)
                for (int64_t f = whole * LANES; f < o.c; f++)
                    gradients[o.weight + m * o.c + f] += rest[m * LANES + f % LANES];
        }
        for (int64_t g = 0; g < used && o.bias >= 0; g++)
            for (int64_t m = 0; m < o.out; m++)
                gradients[o.bias + m] += sum(((const V*)y.grad(g))[m]);
        if (!first)
            product({x.d, LANES, x.dstep, args.w + o.weight, 1, y.d, y.dstep, nullptr, false,
                     l.back.data(), 1, o.out, 0, o.out},
                    o.c, used);
    }

    // ---- answers and weights ----

    // Where the first of an example's logits stands; the others follow LANES apart.
    const float* logits(int64_t example) const {
        return tensors.back().at(example / LANES) + example % LANES;
    }

    double entropy(int64_t example, int64_t label, float share) {
        const Tensor& t = tensors.back();
        float* d = trains ? t.grad(example / LANES) + example % LANES : nullptr;
        return cross_entropy(logits(example), d, t.size, label, {share, args.smoothing});
    }
};

}  // namespace

// 0, and the summed loss; 1 where memory ran out.
extern "C" int fltrain_train(const Arguments* arguments, double* loss) {
    try {
        *loss = Model(*arguments, true).train();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

// 0, how many answers are right, and the summed loss; 1 where memory ran out.
extern "C" int fltrain_score(const Arguments* arguments, int64_t* right, double* loss) {
    try {
        *right = 0;
        *loss = Model(*arguments, false).score(*right);
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

// Adds value [n] to the pairs high, low [n], none of which overlap.
extern "C" void fltrain_two_sum(double* high, double* low, const double* value, int64_t n) {
    two_sum(high, low, value, n);
}
