// Examples as vectors: what their numbers are worth, and rows of a table turned to columns.

#pragma once

#include <cstdint>
#include <cstring>

#include "products.h"

namespace {

// What a number of an example is worth to the network: of bytes, as `PartyExamples.inputs` has it.
inline float widen_one(float x) { return x; }
inline float widen_one(uint8_t x) { return x / 255.0f; }

// LANES numbers side by side. Plain loops: of `__builtin_convertvector` GCC 12 makes code that
// takes one number after the other.
inline V widen(const float* x) { return *(const Loose*)x; }
inline V widen(const uint8_t* x) {
    alignas(4 * LANES) float worth[LANES];
    for (int l = 0; l < LANES; l++) worth[l] = widen_one(x[l]);
    return *(const V*)worth;
}

inline I widen(const int8_t* x) {
    alignas(4 * LANES) int32_t whole[LANES];
    for (int l = 0; l < LANES; l++) whole[l] = x[l];
    return *(const I*)whole;
}

// to [features][LANES] = the rows, each of so many features, from feature f on.
template <class T>
void gather_from(int64_t f, V* to, const T* (&rows)[LANES], int64_t features) {
    for (; f + LANES <= features; f += LANES) {
        V square[LANES];
        for (int l = 0; l < LANES; l++) square[l] = widen(rows[l] + f);
        turn(square);
        for (int i = 0; i < LANES; i++) to[f + i] = square[i];
    }
    for (; f < features; f++)
        for (int l = 0; l < LANES; l++) to[f][l] = widen_one(rows[l][f]);
}

void gather(V* to, const float* (&rows)[LANES], int64_t features) {
    gather_from(0, to, rows, features);
}

// Bytes are turned four at a time, as numbers of 32 bits, of which the lowest byte is the first.
void gather(V* to, const uint8_t* (&rows)[LANES], int64_t features) {
    int64_t f = 0;
    for (; f + 4 * LANES <= features; f += 4 * LANES) {
        V square[LANES];
        for (int l = 0; l < LANES; l++) std::memcpy(&square[l], rows[l] + f, sizeof(V));
        turn(square);
        for (int i = 0; i < 4 * LANES; i++) {
            const I byte = I(square[i / 4]) >> (i % 4 * 8) & 255;
            to[f + i] = __builtin_convertvector(byte, V) / 255.0f;
        }
    }
    gather_from(f, to, rows, features);
}

// to [LANES examples][width] = from [n features][LANES], n <= LANES, and zeros behind them.
void turn_features(float* to, int64_t width, const V* from, int64_t n) {
    V rows[LANES];
    for (int i = 0; i < LANES; i++) rows[i] = i < n ? from[i] : V{};
    turn(rows);
    for (int e = 0; e < LANES; e++) *(Loose*)(to + e * width) = rows[e];
}

}  // namespace
