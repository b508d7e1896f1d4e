// Products of rows with packed weights, with their initial sums and the functions applied to their results.
//
// Weights come in panels of PANEL outputs, k-major: panel p holds w[p][k][PANEL]. A tile of up to ROWS rows by one panel
// stays in registers while it is summed up, DEPTH steps of k at a time, and the next weights are fetched meanwhile. The
// other factor, an operand, has the layout x[block][row][LANES]: block b has the values from b * LANES on of every row.
// A row's result does not depend on other rows.
//
// Factors can be bfloat16, with sums in float32. Two factors take the place of a float: all of the above holds for such
// pairs, so "word" below means a float or a pair. Everything that is not a factor of a product is float32.
#pragma once

#include <algorithm>
#include <type_traits>

#include "amx.h"
#include "vectors.h"

constexpr int ROWS = LANES == 16 ? 6 : LANES == 8 ? 3 : 4;  // as many as fit into the registers
#if defined(__AVX512BF16__)
constexpr bool HALVES = true;
#else
constexpr bool HALVES = false;
#endif
enum Factors { FLOATS, PAIRS, AMX };  // float32; pairs of bfloat16 multiplied as vectors; such pairs by AMX
template <Factors F>
struct Ready {};  // to multiply, while it exists
template <>
struct Ready<AMX> : Amx {};
constexpr long LINE = 16;  // floats that are fetched together

constexpr long up(long size, long step) { return (size + step - 1) / step * step; }

// sum + x w for words: one product, or those of two pairs.
template <Factors F>
INLINE V add_product(V sum, const float* x, V w) {
#if defined(__AVX512BF16__)
  if constexpr (F != FLOATS) {
    int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return (V)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(pair), (__m512bh)w);
  }
#endif
  return sum + same(*x) * w;
}

// Values j * LANES and following of a row into an operand.
template <Factors F>
INLINE void put(float* operand, long block, long row, long j, V v) {
  constexpr int per = F == FLOATS ? 1 : 2;  // vectors of a block's row
  store(operand + j / per * block + row * LANES, j % per * LANES, v, F != FLOATS);
}

// The distance between the blocks of an operand: an odd number of lines, so that a row's blocks do not evict each other.
// AMX reads, and ignores, rows beyond the last one.
template <Factors F>
INLINE long apart(long rows) { return ((F == AMX ? up(rows, AMX_ROWS) : rows) | 1) * LANES; }

// The first `size` columns, a multiple of LANES, of x (rows, stride) -> operand
template <Factors F>
static void pack(const float* x, long rows, long stride, long size, float* operand, long block) {
  for (long r = 0; r < rows; r++)
    for (long j = 0; j < size / LANES; j++) put<F>(operand, block, r, j, load(x + r * stride + j * LANES));
}

// name<F> for the value F of `factors`, if it can be compiled here.
#define CALL(name, ...)                                                   \
  factors == AMX && HAS_AMX     ? name<HAS_AMX ? AMX : FLOATS>(__VA_ARGS__) \
  : factors != FLOATS && HALVES ? name<HALVES ? PAIRS : FLOATS>(__VA_ARGS__) : name<FLOATS>(__VA_ARGS__)

template <Factors F>
constexpr long words(long size) { return F == FLOATS ? size : size / 2; }

// Calls run(R) with a constant R that equals r.
template <int R = ROWS, class Run>
INLINE void with_rows(long r, Run run) {
  if constexpr (R == 1) run(std::integral_constant<int, 1>{});
  else if (r == R) run(std::integral_constant<int, R>{});
  else with_rows<R - 1>(r, run);
}

// Calls run(R, first row, tile) for tiles of nearly equal numbers of rows R.
template <class Run>
INLINE void tiles(long rows, Run run) {
  const long count = (rows + ROWS - 1) / ROWS;
  for (long i = 0, done = 0; i < count; i++) {
    const long next = rows * (i + 1) / count;
    with_rows(next - done, [&](auto r) { run(r, done, i); });
    done = next;
  }
}

// acc[r] += x[r] w over `depth` words; `lines` of those ahead are fetched with each block.
template <Factors F, int R>
INLINE void multiply(const float* x, long row, long block, const float* w, long depth, const float* ahead, long lines,
                     V (&acc)[R][VECTORS]) {
  for (long k = 0; k < depth; k += LANES, x += block) {
    for (long i = 0; i < lines; i++, ahead += LINE) __builtin_prefetch(ahead, 0, 2);
    const long steps = std::min<long>(LANES, depth - k);
    for (long s = 0; s < steps; s++, w += PANEL)
      for (int v = 0; v < VECTORS; v++) {
        const V column = load(w + v * LANES);
        for (int r = 0; r < R; r++) acc[r][v] = add_product<F>(acc[r][v], x + r * row + s, column);
      }
  }
}

// Loads and stores a tile, with rows `stride` floats apart.
template <int R>
INLINE void get(V (&acc)[R][VECTORS], const float* from, long stride) {
  for (int r = 0; r < R; r++)
    for (int v = 0; v < VECTORS; v++) acc[r][v] = load(from + r * stride + v * LANES);
}
template <int R>
INLINE void keep(const V (&acc)[R][VECTORS], float* to, long stride) {
  for (int r = 0; r < R; r++)
    for (int v = 0; v < VECTORS; v++) store(to + r * stride + v * LANES, acc[r][v]);
}

// `depth` words of each row of x times a panel of w by AMX; `start` and `end` as for `product`.
template <class Start, class End>
INLINE void product_amx(const float* x, long rows, long row, long block, const float* w, long depth, Start start,
                        End end) {
  alignas(64) float sums[2 * AMX_ROWS * PANEL];
  for (long top = 0; top < rows; top += 2 * AMX_ROWS) {
    const long high = std::min(rows - top, 2 * AMX_ROWS);
    multiply_amx(x + top * row, row, block, w, depth, high > AMX_ROWS, sums);
    tiles(high, [&](auto r, long at, long) {
      constexpr int R = decltype(r)::value;
      V acc[R][VECTORS];
      start(acc, top + at);
      for (int i = 0; i < R; i++)
        for (int v = 0; v < VECTORS; v++) acc[i][v] += load(sums + (at + i) * PANEL + v * LANES);
      end(acc, top + at);
    });
  }
}

// An operand times panels `first` to `last` of w: `start` initialises the sums of a tile, `end` receives them.
//   partial (rows, PANEL): space; back: the last panel comes first
template <Factors F, class Start, class End>
INLINE void product(const float* x, long rows, long block, const float* w, long first, long last, long depth,
                    float* partial, Start start, End end, bool back = false) {
  [[maybe_unused]] const Ready<F> ready;
  const long count = (rows + ROWS - 1) / ROWS, step = back ? -1 : 1;
  for (long p = back ? last - 1 : first; p >= first && p < last; p += step) {
    const float* panel = w + p * depth * PANEL;
    if constexpr (F == AMX) {
      product_amx(
          x, rows, LANES, block, panel, depth, [&](auto& acc, long row) { start(acc, p, row); },
          [&](auto& acc, long row) { end(acc, p, row); });
      continue;
    }
    for (long k = 0; k < depth; k += DEPTH) {
      const long steps = std::min(DEPTH, depth - k), blocks = (steps + LANES - 1) / LANES;
      const float* here = panel + k * PANEL;
      const float* ahead = k + steps < depth ? here + steps * PANEL : panel + step * depth * PANEL;
      const long lines = (steps * PANEL / LINE + count * blocks - 1) / (count * blocks);
      tiles(rows, [&](auto r, long row, long tile) {
        constexpr int R = decltype(r)::value;
        V acc[R][VECTORS];
        if (k == 0) start(acc, p, row);
        else get(acc, partial + row * PANEL, PANEL);
        multiply<F>(x + k / LANES * block + row * LANES, LANES, block, here, steps,
                    ahead + tile * blocks * lines * LINE, lines, acc);
        if (k + steps == depth) end(acc, p, row);
        else keep(acc, partial + row * PANEL, PANEL);
      });
    }
  }
}

// Initial sums: a bias, or zero.
INLINE auto starting(const float* bias) { return [=](auto& acc, long p, long) { get(acc, bias + p * PANEL, 0); }; }
constexpr auto zero = [](auto& acc, long, long) { for (auto& sums : acc) std::fill_n(sums, VECTORS, V{}); };
