// The compiled step with a watch in it, and the best product of its tile (native_step.py).

#include "../fltrain/engine/native/step.cpp"

#include <chrono>

namespace {

constexpr int64_t WAYS = 3;

// Adds up the seconds between one thing done and the next: [layers + 1][WAYS].
class Stopwatch {
    using Clock = std::chrono::steady_clock;
    double* seconds;
    Clock::time_point last = Clock::now();

  public:
    explicit Stopwatch(double* seconds) : seconds(seconds) {}
    void note(int64_t layer, Way way) {
        const Clock::time_point now = Clock::now();
        seconds[layer * WAYS + way] += std::chrono::duration<double>(now - last).count();
        last = now;
    }
};

}  // namespace

// fltrain_train, with the seconds of each layer added: the examples first, the loss and the step of
// the weights last.
extern "C" void benchmark_train(const Arguments* arguments, double* seconds) {
    Stopwatch watch(seconds);
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
