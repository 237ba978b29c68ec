// The local training of one job: all its steps, on one thread. And the answers of a model, counted.
//
// A tensor is [groups][features][LANES] (kernels.h). A batch is worked off in blocks of up to 64 examples; lanes without an example hold zeros and
// get no gradient. Layers before the first linear one run group by group, which keeps their tensors in the cache; those from there on run on all
// groups of a block at once. Weights and gradients lie flat, each tensor as torch has it.

#include <memory>
#include <new>
#include <vector>

#include "kernels.h"

namespace {

// Values and gradients of what one layer hands to the next; a step of 0 means that the groups share the place, one after another.
struct Tensor {
    int64_t size = 0;  // features
    float *x = nullptr, *d = nullptr;
    int64_t xstep = 0, dstep = 0;
    float* at(int64_t g) const { return x + g * xstep; }
    float* grad(int64_t g) const { return d + g * dstep; }
};

struct Layer {
    Op op;
    int64_t in, out;  // tensors
    int8_t* which = nullptr;                         // of pooling: which of four was the largest
    float *padded_x = nullptr, *padded_d = nullptr;  // of a convolution: one group between zeros
    std::vector<Tap> taps{}, back{}, outer{};        // of y, of dx, of dW
};

struct Free {
    void operator()(void* block) const { ::operator delete(block, std::align_val_t(64)); }
};

// What Python hands over (`Asked` in call.py has the same fields). w, velocity are changed; start, add, after: null for none.
// x: n rows of bytes, told by `bytes` what they are worth, or of floats where that is null. order: rows of x, `per_epoch` of them for each epoch.
// Where answers are counted: x, y, order of `per_epoch` rows, `batch` of them at a time, and w, which is read alone.
struct Asked {
    const Op* ops;
    int64_t n_ops, features, parameters;
    float *w, *velocity;
    const float *start, *add, *after;
    float lr, momentum, decay, pull;
    const void* x;
    const float* bytes;
    const int64_t *y, *order;
    int64_t per_epoch, batch, steps;
    const volatile int32_t* stop;
};

class Model {
    const Asked& asked;
    const bool trains;     // else there are no gradients, and no places for them
    const int64_t groups;  // of a block
    std::vector<std::unique_ptr<void, Free>> memory;
    std::vector<Tensor> tensors;
    std::vector<Layer> layers;
    size_t flat = 0;  // the first layer that runs on all groups at once
    float *gradients = nullptr, *turned = nullptr, *rest = nullptr;
    std::vector<char> blank;

    template <class T>
    T* take(int64_t n) {
        memory.emplace_back(::operator new(n * sizeof(T) + 64, std::align_val_t(64)));
        return (T*)std::memset(memory.back().get(), 0, n * sizeof(T));
    }

    void place(Tensor& t, bool keep_x, bool keep_d) {
        const int64_t n = t.size * LANES;
        t.xstep = keep_x ? n : 0, t.dstep = keep_d ? n : 0;
        t.x = take<float>(keep_x ? n * groups : n), t.d = trains ? take<float>(keep_d ? n * groups : n) : nullptr;
    }

    static void conv_taps(Layer& l) {
        const Op& o = l.op;
        const int64_t row = o.w + 2 * o.pad, row_d = o.ow + 2 * (o.k - 1 - o.pad), end = o.k - 1;
        for (int64_t i = 0; i < o.k; i++)
            for (int64_t j = 0; j < o.k; j++) {
                for (int64_t c = 0; c < o.c; c++) l.taps.push_back({int32_t((c * o.k + i) * o.k + j), int32_t(((c * o.h + i) * row + j) * LANES)});
                for (int64_t m = 0; m < o.out; m++)  // the kernel turned round
                    l.back.push_back({int32_t((m * o.c * o.k + end - i) * o.k + end - j), int32_t(((m * o.oh + i) * row_d + j) * LANES)});
            }
    }

    static void linear_taps(Layer& l, int64_t groups, int64_t dstep, int64_t width) {
        for (int32_t t = 0; t < l.op.c; t++) l.taps.push_back({t, t * LANES});
        for (int32_t t = 0; t < l.op.out; t++) l.back.push_back({int32_t(t * l.op.c), t * LANES});
        for (int32_t t = 0; t < groups * LANES; t++) l.outer.push_back({int32_t(t / LANES * dstep + t % LANES), int32_t(t * width)});
    }

  public:
    Model(const Asked& asked, bool trains)
        : asked(asked), trains(trains), groups(std::min<int64_t>(GROUPS, parts_of(asked.batch, LANES))) {
        tensors.push_back({asked.features});
        for (int64_t i = 0; i < asked.n_ops; i++) {
            const Op& o = asked.ops[i];
            const int64_t in = tensors.size() - 1;
            if (o.kind <= POOL) tensors.push_back({o.out * o.oh * o.ow});
            layers.push_back({o, in, (int64_t)tensors.size() - 1});
        }
        while (flat < layers.size() && layers[flat].op.kind != LINEAR) flat++;
        const size_t handed = flat < layers.size() ? layers[flat].in : tensors.size() - 1;  // from the one part to the other
        std::vector<bool> pooled(tensors.size());  // read by pooling alone, which remembers what it needs
        for (size_t i = 0; i < flat; i++) pooled[layers[i].in] = layers[i].op.kind == POOL && (!i || layers[i - 1].op.kind == CONV);
        for (size_t i = 0; i < tensors.size(); i++) place(tensors[i], trains ? !pooled[i] : i >= handed, i >= handed);
        int64_t widest = 0, most = 0;
        for (Layer& l : layers) {
            const Op& o = l.op;
            const int64_t width = parts_of(o.c, LANES) * LANES;
            if (o.kind == POOL) l.which = take<int8_t>(groups * o.out * o.oh * o.ow * LANES);
            if (o.kind == CONV) {
                conv_taps(l);
                l.padded_x = o.pad ? take<float>(o.c * o.h * (o.w + 2 * o.pad) * LANES) : nullptr;
                l.padded_d = trains ? take<float>(o.out * o.oh * (o.ow + 2 * (o.k - 1 - o.pad)) * LANES) : nullptr;
            }
            if (o.kind == LINEAR) {
                linear_taps(l, groups, tensors[l.out].dstep, width);
                widest = std::max(widest, width), most = std::max(most, o.out);
            }
        }
        blank.resize(asked.features * sizeof(float));
        if (!trains) return;
        turned = take<float>(groups * LANES * widest), rest = take<float>(most * LANES), gradients = take<float>(asked.parameters);
    }

    // The mean loss of each step, summed.
    double train() {
        const int64_t per_epoch = parts_of(asked.per_epoch, asked.batch);
        double loss = 0;
        for (int64_t s = 0; s < asked.steps && !*asked.stop; s++) {
            const int64_t first = s % per_epoch * asked.batch, n = std::min(asked.batch, asked.per_epoch - first);
            const int64_t* rows = asked.order + s / per_epoch * asked.per_epoch + first;
            std::memset(gradients, 0, asked.parameters * sizeof(float));
            double all = 0;
            for (int64_t b = 0; b < n; b += groups * LANES) all += block(rows + b, std::min(groups * LANES, n - b), n);
            loss += all / n;
            update();
        }
        return loss;
    }

    // The summed loss of the rows; `right` grows by how many of them have their label's number as the largest.
    double score(int64_t& right) {
        double loss = 0;
        for (int64_t b = 0; b < asked.per_epoch; b += groups * LANES) {
            const int64_t* rows = asked.order + b;
            const int64_t size = std::min(groups * LANES, asked.per_epoch - b);
            answer(rows, size);
            for (int64_t i = 0; i < size; i++) {
                const int64_t label = asked.y[rows[i]];
                loss += entropy(i, label, 0);
                right += largest(i) == label;
            }
        }
        return loss;
    }

  private:
    // All layers on some rows; how many groups they are.
    int64_t answer(const int64_t* rows, int64_t size) {
        const int64_t used = parts_of(size, LANES);
        for (int64_t g = 0; g < used; g++) {
            const int64_t count = std::min<int64_t>(LANES, size - g * LANES);
            asked.bytes ? gather<uint8_t>(rows + g * LANES, count, g) : gather<float>(rows + g * LANES, count, g);
            for (size_t i = 0; i < flat; i++) forward(layers[i], g);
        }
        for (size_t i = flat; i < layers.size(); i++)
            if (layers[i].op.kind == LINEAR)
                linear(layers[i], used);
            else
                for (int64_t g = 0; g < used; g++) forward(layers[i], g);
        return used;
    }

    // Adds the gradient of some rows of a batch of n; their summed loss.
    double block(const int64_t* rows, int64_t size, int64_t n) {
        const int64_t used = answer(rows, size);
        double loss = 0;
        for (int64_t i = 0; i < used * LANES; i++) loss += entropy(i, i < size ? asked.y[rows[i]] : -1, 1.0f / n);
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
        const int64_t features = asked.features;
        const T* from[LANES];
        for (int l = 0; l < LANES; l++) from[l] = l < count ? (const T*)asked.x + rows[l] * features : (const T*)blank.data();
        float* to = tensors[0].at(group);
        for (int64_t f = 0; f < features; f++)
            for (int l = 0; l < LANES; l++) {
                if constexpr (sizeof(T) == 1)
                    to[f * LANES + l] = asked.bytes[from[l][f]];
                else
                    to[f * LANES + l] = from[l][f];
            }
    }

    void forward(Layer& l, int64_t g) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        if (o.kind == CONV)
            correlate(y.at(g), o.out, o.oh, o.ow, padded(l.padded_x, x.at(g), o.c, o.h, o.w, o.pad), o.c, o.h, o.w, o.k, o.pad, asked.w + o.weight,
                      o.c * o.k * o.k, o.bias < 0 ? nullptr : asked.w + o.bias, l.taps.data());
        else if (o.kind == POOL)
            pool(o, x.at(g), y.at(g), l.which + g * y.size * LANES);
        else
            activate(Kind(o.kind), (V*)y.at(g), y.size);
    }

    // first: nobody wants the gradient of its input.
    void backward(Layer& l, int64_t g, bool first) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        if (o.kind == CONV) {
            conv_gradient(gradients + o.weight, o.bias < 0 ? nullptr : gradients + o.bias, y.grad(g),
                          padded(l.padded_x, x.at(g), o.c, o.h, o.w, o.pad), o);
            if (first) return;
            const int64_t back = o.k - 1 - o.pad;
            correlate(x.grad(g), o.c, o.h, o.w, padded(l.padded_d, y.grad(g), o.out, o.oh, o.ow, back), o.out, o.oh, o.ow, o.k, back,
                      asked.w + o.weight, o.k * o.k, nullptr, l.back.data());
        } else if (o.kind == POOL)
            unpool(o, y.grad(g), l.which + g * y.size * LANES, x.grad(g));
        else
            derive(Kind(o.kind), (V*)y.grad(g), (const V*)y.at(g), y.size);
    }

    // y [out] = bias + W x [c], for all groups at once.
    void linear(const Layer& l, int64_t used) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        const float* bias = o.bias < 0 ? nullptr : asked.w + o.bias;
        product({y.x, LANES, y.xstep, asked.w + o.weight, o.c, x.x, x.xstep, bias, false, l.taps.data(), 1, o.c, 0, o.c}, o.out, used);
    }

    // dW [out][c] += dy x', the examples being what is summed over; db += dy; dx = W' dy.
    void linear_back(const Layer& l, int64_t used, bool first) {
        const Op& o = l.op;
        const Tensor &x = tensors[l.in], &y = tensors[l.out];
        const int64_t width = parts_of(o.c, LANES) * LANES, whole = o.c / LANES, n = used * LANES;
        for (int64_t g = 0; g < used; g++)  // x with the features side by side
            for (int64_t f = 0; f < o.c; f++)
                for (int64_t e = 0; e < LANES; e++) turned[(g * LANES + e) * width + f] = x.at(g)[f * LANES + e];
        Tile t{gradients + o.weight, o.c, LANES, y.d, LANES, turned, LANES, nullptr, true, l.outer.data(), 1, n, 0, n};
        product(t, o.out, whole);
        if (o.c % LANES) {
            t.c = rest, t.cm = LANES, t.b += whole * LANES, t.add = false;
            product(t, o.out, 1);
            for (int64_t m = 0; m < o.out; m++)
                for (int64_t f = whole * LANES; f < o.c; f++) gradients[o.weight + m * o.c + f] += rest[m * LANES + f % LANES];
        }
        for (int64_t g = 0; g < used && o.bias >= 0; g++)
            for (int64_t m = 0; m < o.out; m++) gradients[o.bias + m] += sum(((const V*)y.grad(g))[m]);
        if (!first)
            product({x.d, LANES, x.dstep, asked.w + o.weight, 1, y.d, y.dstep, nullptr, false, l.back.data(), 1, o.out, 0, o.out}, o.c, used);
    }

    // The place of an example's largest number, of equal ones the first; a NaN is larger than any number, as torch has it.
    int64_t largest(int64_t example) const {
        const Tensor& t = tensors.back();
        const float* x = t.at(example / LANES) + example % LANES;
        int64_t at = 0;
        for (int64_t k = 1; k < t.size; k++)
            if (x[k * LANES] > x[at * LANES] || (std::isnan(x[k * LANES]) && !std::isnan(x[at * LANES]))) at = k;
        return at;
    }

    // Cross entropy of one example, and in training its gradient times `share`; a lane without an example (label -1) gets 0.
    double entropy(int64_t example, int64_t label, float share) {
        const Tensor& t = tensors.back();
        const float* x = t.at(example / LANES) + example % LANES;
        float* d = trains ? t.grad(example / LANES) + example % LANES : nullptr;
        float most = x[0], all = 0;
        for (int64_t k = 1; k < t.size; k++) most = std::max(most, x[k * LANES]);
        for (int64_t k = 0; k < t.size; k++) all += std::exp(x[k * LANES] - most);
        for (int64_t k = 0; trains && k < t.size; k++) d[k * LANES] = label < 0 ? 0 : (std::exp(x[k * LANES] - most) / all - (k == label)) * share;
        return label < 0 ? 0.0 : double(most) + std::log(double(all)) - x[label * LANES];
    }

    // SGD with momentum, as fltrain's looped executor has it.
    void update() {
        const Asked& a = asked;
        for (int64_t i = 0; i < a.parameters; i++) {
            float step = gradients[i];
            if (a.start) step += a.pull * (a.w[i] - a.start[i]);
            if (a.add) step += a.add[i];
            step += a.decay * a.w[i];
            if (a.velocity) step = a.velocity[i] = a.momentum * a.velocity[i] + step;
            if (a.after) step += a.after[i];
            a.w[i] -= a.lr * step;
        }
    }
};

}  // namespace

// 0, and the summed loss; 1 where memory ran out.
extern "C" int fltrain_train(const Asked* asked, double* loss) {
    try {
        *loss = Model(*asked, true).train();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

// 0, how many answers are right, and the summed loss; 1 where memory ran out.
extern "C" int fltrain_score(const Asked* asked, int64_t* right, double* loss) {
    try {
        *right = 0;
        *loss = Model(*asked, false).score(*right);
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}
