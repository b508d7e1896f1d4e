// Reductions of rows that belong together: of the windows of a word the largest, of the words of a span a weighted sum.
#pragma once

#include <cmath>

#include "products.h"

// y (parts, width): the largest of each part's rows of x (., width), which stand one after another; not a number, if one
// of them is not
static void largest(const float* x, const long* lengths, long parts, long width, float* y) {
  for (long p = 0; p < parts; x += lengths[p++] * width, y += width)
    for (long k = 0; k < width; k += LANES) {
      V found = same(-INFINITY);
      for (long r = 0; r < lengths[p]; r++) {
        const V row = load(x + r * width + k, width - k);
        found = (row > found) | (row != row) ? row : found;
      }
      store(y + k, found, width - k);
    }
}

// The gradient d_x of x from d, that of y: equal ones share it.
static void share_with_largest(const float* x, const float* y, const float* d, const long* lengths, long parts,
                               long width, float* d_x) {
  for (long p = 0; p < parts; x += lengths[p] * width, d_x += lengths[p++] * width, y += width, d += width)
    for (long k = 0; k < width; k += LANES) {
      const V found = load(y + k, width - k);
      V equal{};
      for (long r = 0; r < lengths[p]; r++) equal += load(x + r * width + k, width - k) == found ? same(1.0f) : V{};
      const V share = load(d + k, width - k) / equal;
      for (long r = 0; r < lengths[p]; r++) {
        const V row = load(x + r * width + k, width - k);
        store(d_x + r * width + k, row == found ? share : V{}, width - k);
      }
    }
}

// Adds to d_x (., size) the gradient of the words of spans, from that of their weighted sums, d (spans, size).
//   words, weights (spans, most): numbers of words, and their weights; order: of these pairs
static void add_weighted(const float* d, const long* words, const float* weights, const long* order, long pairs,
                         long most, long size, float* d_x) {
  for (const long* i = order; i < order + pairs; i++) {
    const float weight = weights[*i], *from = d + *i / most * size;
    float* to = d_x + words[*i] * size;
    for (long k = 0; weight != 0.0f && k < size; k += LANES)
      store(to + k, load(to + k, size - k) + weight * load(from + k, size - k), size - k);
  }
}
