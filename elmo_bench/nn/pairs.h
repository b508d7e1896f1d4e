// Products of pairs of spans, forward and backward.
#pragma once

#include "products.h"

// a[i] + b[j] + sum_d g_i[d] g_j[d] w[:, d] for the targets i from `first` to before `last`, each with the `most` spans
// j before it, the farthest first.
//   g (., size), w (hidden, size), a, b (., hidden); y (pairs, hidden)
static void multiply_pairs(const float* g, const float* w, const float* a, const float* b, long size, long hidden,
                           long most, long first, long last, float* y) {
  const long filled = up(hidden, LANES);
  Space packed(size * up(hidden, PANEL)), scaled(DEPTH * PANEL), sums(std::min(most, last) * filled);
  for (long h = 0; h < hidden; h++)
    for (long k = 0; k < size; k++) packed.data[(h / PANEL * size + k) * PANEL + h % PANEL] = w[h * size + k];
  for (long i = first; i < last; i++) {
    const long lowest = std::max(i - most, 0L), r = i - lowest;
    std::memset(sums.data, 0, r * filled * sizeof(float));
    for (long column = 0; column < filled; column += PANEL)
      for (long k = 0; k < size; k += DEPTH) {
        const long steps = std::min(DEPTH, size - k), left = std::min<long>(PANEL, filled - column);
        const float* from = packed.data + column * size + k * PANEL;
        for (long s = 0; s < steps; s++)
          for (long v = 0; v < left; v += LANES)
            store(scaled.data + s * PANEL + v, load(from + s * PANEL + v) * g[i * size + k + s]);
        const float* rows = g + lowest * size + k;
        add_some(left / LANES, rows, size, r, scaled.data, steps, sums.data + column, filled);
      }
    for (long j = 0; j < r; j++, y += hidden)
      for (long h = 0; h < hidden; h++)
        y[h] = sums.data[j * filled + h] + a[i * hidden + h] + b[(lowest + j) * hidden + h];
  }
}

// One target of `multiply_pairs_back` with its r antecedents, the first of which is `lowest`.
struct Target {
  long i, lowest, r;
  const float* d;  // (r, hidden), the gradients of its pairs
};
constexpr long TOGETHER = 4;  // targets that read a panel of w, and add to its gradient, while it is in the second cache

// One target's part of the gradients of all vectors and of w, for a panel's columns: all but `block` point to the first.
//   g, to_g (., wide); w, to_w (hidden, wide); block: space for max(hidden, r) by PANEL
static void pair_gradients(const Target& t, long hidden, long wide, const float* g, const float* w, float* to_g,
                           float* to_w, float* block) {
  V own[VECTORS], sum[VECTORS] = {};
  for (int v = 0; v < VECTORS; v++) own[v] = load(g + t.i * wide + v * LANES);
  for (long h = 0; h < hidden; h++)
    for (int v = 0; v < VECTORS; v++) store(block + h * PANEL + v * LANES, load(w + h * wide + v * LANES) * own[v]);
  add_panel<VECTORS>(t.d, hidden, t.r, block, hidden, to_g + t.lowest * wide, wide);
  for (long j = 0; j < t.r; j++) std::memcpy(block + j * PANEL, g + (t.lowest + j) * wide, PANEL * sizeof(float));
  tiles(hidden, [&](long first, auto count) {
    constexpr int R = decltype(count)::value;
    V acc[R][VECTORS] = {};
    multiply<R, VECTORS>(t.d + first, 1, hidden, block, PANEL, t.r, acc);
    for (int h = 0; h < R; h++)
      for (int v = 0; v < VECTORS; v++) {
        const long place = (first + h) * wide + v * LANES;
        sum[v] += acc[h][v] * load(w + place);
        store(to_w + place, load(to_w + place) + acc[h][v] * own[v]);
      }
  });
  float* to_own = to_g + t.i * wide;
  for (int v = 0; v < VECTORS; v++) store(to_own + v * LANES, load(to_own + v * LANES) + sum[v]);
}

// The gradients of all four from those of y, d; the arrays they are added to hold zeros.
static void multiply_pairs_back(const float* g, const float* w, const float* d, long size, long hidden, long most,
                                long first, long last, float* to_a, float* to_b, float* to_g, float* to_w) {
  const long wide = up(size, PANEL), widest = std::min(most, last);
  Space all_g(last * wide), all_w(hidden * wide), sum_g(last * wide), sum_w(hidden * wide);
  Space block(std::max(hidden, widest) * PANEL);
  copy_rows(g, last, size, all_g.data, wide), copy_rows(w, hidden, size, all_w.data, wide);
  for (long i = first; i < last;) {
    Target some[TOGETHER];
    long n = 0;
    for (; n < TOGETHER && i < last; n++, i++) {
      const long lowest = std::max(i - most, 0L), r = i - lowest;
      some[n] = {i, lowest, r, d};
      for (long j = 0; j < r; j++, d += hidden) {
        for (long h = 0; h < hidden; h++) to_a[i * hidden + h] += d[h];
        for (long h = 0; h < hidden; h++) to_b[(lowest + j) * hidden + h] += d[h];
      }
    }
    for (long column = 0; column < wide; column += PANEL)
      for (long k = 0; k < n; k++)
        pair_gradients(some[k], hidden, wide, all_g.data + column, all_w.data + column, sum_g.data + column,
                       sum_w.data + column, block.data);
  }
  copy_rows(sum_g.data, last, wide, to_g, size), copy_rows(sum_w.data, hidden, wide, to_w, size);
}
