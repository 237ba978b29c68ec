// Exact sums of uploads: what engine/sums.py says, in one pass.

#pragma once

#include <cstdint>

namespace {

// Adds value [n] to the pairs: high is rounded, low takes what that lost. The compiler may not
// reorder sums, and there is no product that it could fuse with them.
void two_sum(double* __restrict high, double* __restrict low, const double* __restrict value,
             int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double total = high[i] + value[i];
        const double added = total - high[i];
        low[i] += (high[i] - (total - added)) + (value[i] - added);
        high[i] = total;
    }
}

}  // namespace
