// The frozen biLM: character convolutions with their maxima, highways, a plain product, and the LSTMs. `kernels.py` compiles,
// checks and calls it.

#include <algorithm>
#include <vector>

#include "lstm.h"
#include "products.h"

template <Factors F>
static void convolve_(const int32_t* ids, const int32_t* used, long count, long columns, const float* table, long size,
                      long width, const float* w, const float* bias, long panels, bool squash, float* y, long stride,
                      float* space) {
  [[maybe_unused]] const Ready<F> ready;
  const long depth = F == FLOATS ? width * size : up(width * size, LANES);
  std::vector<long> starts(count), lengths(count);
  float* end = space;
  for (long n = 0; n < count; n++) {
    starts[n] = end - space, lengths[n] = std::min(used[n] + width, columns);
    for (long k = 0; k < lengths[n]; k++, end += size)
      std::memcpy(end, table + ids[n * columns + k] * size, size * sizeof(float));
    if (F != FLOATS) end = std::fill_n(end, LANES, 0.0f);  // what the weights' last zeros are multiplied with
  }
  for (long p = 0; p < panels; p++)
    for (long n = 0; n < count; n++) {
      V best[VECTORS];
      for (int v = 0; v < VECTORS; v++) best[v] = same(-__builtin_inff());
      const auto compare = [&](auto& acc, long) {
        for (auto& sums : acc)
          for (int v = 0; v < VECTORS; v++) best[v] = most(best[v], sums[v]);
      };
      const float *x = space + starts[n], *filters = w + p * depth * PANEL;
      const long windows = lengths[n] - width + 1;
      if constexpr (F == AMX)
        product_amx(x, windows, size, LANES, filters, depth, [](auto& acc, long row) { zero(acc, 0, row); }, compare);
      else
        tiles(windows, [&](auto r, long row, long) {
          V acc[decltype(r)::value][VECTORS];
          zero(acc, 0, row);
          multiply<F>(x + row * size, size, LANES, filters, depth, nullptr, 0, acc);
          compare(acc, row);
        });
      for (int v = 0; v < VECTORS; v++) {
        const V sum = best[v] + load(bias + p * PANEL + v * LANES), e = exponential(2.0f * sum);
        store(y + n * stride + p * PANEL + v * LANES, squash ? (e - 1.0f) / (e + 1.0f) : most(sum, V{}));
      }
    }
}

template <Factors F>
static void highway_(float* x, long rows, long stride, long size, const float* w, const float* bias, float* operand,
                     float* partial) {
  constexpr int HALF_PANEL = PANEL / 2;
  const long block = apart<F>(rows);
  pack<F>(x, rows, stride, size, operand, block);
  product<F>(operand, rows, block, w, 0, size / HALF_PANEL, words<F>(size), partial, Bias{bias},
             [&](auto& acc, long p, long row) {
               for (auto& sums : acc) {
                 float* place = x + row++ * stride + p * HALF_PANEL;
                 for (int v = 0; v < VECTORS / 2; v++, place += LANES) {
                   const V old = load(place), transform = most(sums[v], V{}), carry = sums[v + VECTORS / 2];
                   store(place, old + (transform - old) * inverse(1.0f + exponential(-carry)));
                 }
               }
             });
}

template <Factors F>
static void linear_(const float* x, long rows, long stride, long size, const float* w, const float* bias, long panels,
                    float* operand, float* partial, float* y) {
  const long block = apart<F>(rows);
  pack<F>(x, rows, stride, size, operand, block);
  multiplied<F>(operand, rows, block, w, 0, panels, words<F>(size), bias, partial, y);
}

#define CALL(name, ...)                                                   \
  factors == AMX && HAS_AMX     ? name<HAS_AMX ? AMX : FLOATS>(__VA_ARGS__) \
  : factors != FLOATS && HALVES ? name<HALVES ? PAIRS : FLOATS>(__VA_ARGS__) : name<FLOATS>(__VA_ARGS__)

extern "C" {

int lanes() { return LANES; }
int panel() { return PANEL; }
// The fastest products of bfloat16 here; FLOATS if there are none.
int halves() { return !HALVES ? FLOATS : amx_permitted() ? AMX : PAIRS; }
// Floats between the blocks of an operand.
long distance(long factors, long rows) { return factors == AMX ? apart<AMX>(rows) : apart<FLOATS>(rows); }

// `factors`, FLOATS or what `halves` says, are what all of the following multiply. With bfloat16, "a multiple of LANES" is
// one of 2 * LANES, and the words of a panel are filled up with zeros to a multiple of LANES.

// Each filter's maximum over the windows of each word, with its bias, after relu or (`squash`) tanh.
//   ids (words, columns): characters; used (words): those before the padding; table (characters, size): words each
//   y: rows of `stride` floats, of which panels * PANEL are written; space: (words * (columns * size + LANES) + AMX_ROWS * size) words
// A word's windows start at every character and at the first position of padding.
void convolve(long factors, const int32_t* ids, const int32_t* used, long count, long columns, const float* table,
              long size, long width, const float* w, const float* bias, long panels, long squash, float* y, long stride,
              float* space) {
  CALL(convolve_, ids, used, count, columns, table, size, width, w, bias, panels, squash, y, stride, space);
}

// x += sigmoid(carry) (relu(transform) - x), in place; a panel of w holds two vectors of transform, then two of carry.
//   x (rows, stride), of which `size` columns, a multiple of PANEL / 2
void highway(long factors, float* x, long rows, long stride, long size, const float* w, const float* bias, float* operand,
             float* partial) {
  CALL(highway_, x, rows, stride, size, w, bias, operand, partial);
}

// y[panel][row][PANEL] = x w^T + bias, from the first `size` columns of x (rows, stride), a multiple of LANES
void linear(long factors, const float* x, long rows, long stride, long size, const float* w, const float* bias, long panels,
            float* operand, float* partial, float* y) {
  CALL(linear_, x, rows, stride, size, w, bias, panels, operand, partial, y);
}

// Both directions of all layers; with `skip`, every layer but the first adds its input to its output.
//   tokens (words, width), width a multiple of PANEL; order, places (2, words): for each packed word of a direction its token
//   and its place in `out`, or -1; sizes (steps): rows of each step, never increasing
//   weights: those of each direction's layers: input (4 * cells outputs, each LANES cells: i, f, o, j), bias (4 * cells),
//   recurrent (like input), projection (`width` outputs)
//   h (2, layers, sizes[0], width), c (2, layers, sizes[0], cells): states before, and at the end of each row after
//   out (places, layers + 1, 2, width), of which [:, 1:] are written
//   space: operand for `most_rows` inputs; before, hidden, cell for sizes[0] outputs, cells, and cells as floats;
//   outputs (2, words, width), partial (threads, most_rows, PANEL), gates (most_rows, 4 * cells); most_rows >= sizes[0]
void lstm(long factors, const float* tokens, const long* order, const long* places, long words, const long* sizes,
          long steps, const float* const* weights, long layers, long cells, long width, float cell_clip,
          float output_clip, long skip, float* h, float* c, float* out, float* operand, float* before, float* hidden,
          float* outputs, float* cell, float* partial, float* gates, long most_rows, long threads) {
  const Directions all{tokens, order, places, words, sizes, steps, weights, layers, cells, width, cell_clip, output_clip,
                       skip, h, c, out, operand, before, hidden, outputs, cell, partial, gates, most_rows};
  Team team;
  team.run(threads, [&](long member) { CALL(lstm_, all, team, member); });
}
}
