// Products of small matrices whose sizes are known only at run time, and what arrays of any width need.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "vectors.h"

constexpr int ROWS = LANES == 16 ? 6 : LANES == 8 ? 2 : 4;  // as many as the registers hold

// The first `n` numbers of a vector, or all if it has fewer; the others are zero.
static inline V load(const float* p, long n) {
  if (n >= LANES) return load(p);
#if defined(__AVX512F__)
  return (V)_mm512_maskz_loadu_ps(__mmask16((1 << n) - 1), p);
#else
  V v{};
  std::memcpy(&v, p, n * sizeof(float));
  return v;
#endif
}
static inline void store(float* p, V v, long n) {
  if (n >= LANES) return store(p, v);
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, __mmask16((1 << n) - 1), (__m512)v);
#else
  std::memcpy(p, &v, n * sizeof(float));
#endif
}

// acc[r][v] += a[r][k] * w[k][v], over `depth` steps; `stride` and `next` are the distances of two r and two k in a,
// `across` that of two k in w.
template <int R, int N>
static inline void multiply(const float* a, long stride, long next, const float* w, long across, long depth,
                            V (&acc)[R][N]) {
  for (long k = 0; k < depth; k++, a += next, w += across) {
    V column[N];
    for (int v = 0; v < N; v++) column[v] = load(w + v * LANES);
    for (int r = 0; r < R; r++) {
      V x = same(a[r * stride]);
      for (int v = 0; v < N; v++) acc[r][v] += x * column[v];
    }
  }
}

// Calls run(first row, constant number of rows) for tiles of nearly equal numbers of rows.
template <int R, class Run>
static inline void tile(long row, int rows, Run& run) {
  if (rows == R) run(row, std::integral_constant<int, R>{});
  else if constexpr (R > 1) tile<R - 1>(row, rows, run);
}
template <int MOST = ROWS, class Run>
static inline void tiles(long rows, Run run) {
  const long count = (rows + MOST - 1) / MOST;
  for (long i = 0, done = 0; i < count; i++) {
    const long next = rows * (i + 1) / count;
    tile<MOST>(done, int(next - done), run);
    done = next;
  }
}

// y (rows of `out`) += x (rows of `stride`, depth) w, for N of a panel's vectors; w (depth, PANEL)
template <int N>
static void add_panel(const float* x, long stride, long rows, const float* w, long depth, float* y, long out) {
  for (long k = 0; k < depth; k += DEPTH)
    tiles(rows, [&](long row, auto count) {
      constexpr int R = decltype(count)::value;
      V acc[R][N];
      for (int r = 0; r < R; r++)
        for (int v = 0; v < N; v++) acc[r][v] = load(y + (row + r) * out + v * LANES);
      multiply<R, N>(x + row * stride + k, stride, 1, w + k * PANEL, PANEL, std::min(DEPTH, depth - k), acc);
      for (int r = 0; r < R; r++)
        for (int v = 0; v < N; v++) store(y + (row + r) * out + v * LANES, acc[r][v]);
    });
}

// The same for the number of vectors that are left of y, or a whole panel.
static void add_some(long left, const float* x, long stride, long rows, const float* w, long depth, float* y,
                     long out) {
  switch (left) {
    case 1: return add_panel<1>(x, stride, rows, w, depth, y, out);
    case 2: return add_panel<2>(x, stride, rows, w, depth, y, out);
    case 3: return add_panel<3>(x, stride, rows, w, depth, y, out);
    default: return add_panel<VECTORS>(x, stride, rows, w, depth, y, out);
  }
}

// y (rows, out) += x (rows, depth) w; w: panels of `depth` by PANEL, the last one filled up
static void add_product(const float* x, long rows, const float* w, long depth, float* y, long out) {
  for (long column = 0; column < out; column += PANEL, w += depth * PANEL)
    add_some((out - column) / LANES, x, depth, rows, w, depth, y + column, out);
}

// Zeros that begin at a cache line.
struct Space {
  float* data;
  explicit Space(long n) : data(static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) / 64 + 1) * 64))) {
    if (!data) throw std::bad_alloc();
    std::memset(data, 0, n * sizeof(float));
  }
  Space(const Space&) = delete;
  ~Space() { std::free(data); }
};

static inline long up(long size, long multiple) { return (size + multiple - 1) / multiple * multiple; }

// rows of `from` numbers -> rows of `to` numbers: cut, or filled up with what is there
static void copy_rows(const float* x, long rows, long from, float* y, long to) {
  for (long r = 0; r < rows; r++) std::memcpy(y + r * to, x + r * from, std::min(from, to) * sizeof(float));
}
