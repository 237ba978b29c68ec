// The compiled step with a watch in it, and the best product of its tile (native_step.py).

#include "../fltrain/engine/native/step.cpp"

#include <chrono>

namespace {

constexpr int64_t WAYS = 3;

// Takes the seconds between one thing done and the next, and keeps those of the quickest steps:
// least [layers + 1][WAYS] of each part, and behind them of a whole step.
class Stopwatch {
    using Clock = std::chrono::steady_clock;
    const int64_t n_layers;
    double* const least;
    std::vector<double> taken;  // in this step
    Clock::time_point last = Clock::now();

  public:
    Stopwatch(int64_t n_layers, double* least)
        : n_layers(n_layers), least(least), taken((n_layers + 1) * WAYS + 1) {}

    void note(int64_t layer, Way way) {
        const Clock::time_point now = Clock::now();
        taken[layer * WAYS + way] += std::chrono::duration<double>(now - last).count();
        last = now;
        if (layer == n_layers && way == BACK) end_step();
    }

  private:
    void end_step() {
        for (size_t i = 0; i + 1 < taken.size(); i++) taken.back() += taken[i];
        for (size_t i = 0; i < taken.size(); i++) least[i] = std::min(least[i], taken[i]);
        std::fill(taken.begin(), taken.end(), 0.0);
        last = Clock::now();
    }
};

}  // namespace

// fltrain_train, which notes where `least` is undercut: by the examples first, the loss and the
// step of the weights behind the layers. For models without batch norm, whose moments are no
// operation.
extern "C" void benchmark_train(const Arguments* arguments, double* least) {
    Stopwatch watch(arguments->n_ops + 1, least);
    Model(*arguments, true, watch).train();
}

// c [n][m] = a [m][k] times b [n][k], which are vectors, as often as `times` says. Returns the
// lanes of a vector; 0 times to learn them.
extern "C" int64_t benchmark_product(float* c, const float* a, const float* b, int64_t m, int64_t k,
                                     int64_t n, int64_t times) {
    std::vector<Tap> taps;
    for (int32_t t = 0; t < k; t++) taps.push_back({t, t * LANES});
    Tile tile{c, LANES, m * LANES, a, k, b, k * LANES, nullptr, false, taps.data(), 1, k, 0, k};
    for (int64_t i = 0; i < times; i++) product(tile, m, n);
    return LANES;
}
