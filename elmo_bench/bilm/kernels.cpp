// The frozen biLM's products with what follows each of them in one go: character convolutions with their maxima, highways,
// a plain product, and the time loop of a projected LSTM with both clips. `kernels.py` compiles, checks and calls it.
//
// Weights come in panels of PANEL outputs, k-major: panel p holds w[p][k][PANEL]. A tile of up to ROWS rows by one panel
// stays in registers while it is summed up, DEPTH steps of k at a time, and the next weights are fetched meanwhile. What is
// multiplied with them, an operand, holds x[block][row][LANES]: block b has values b * LANES and following of every row.
// A row's result does not depend on the rows beside it.
//
// Factors can be bfloat16, with sums in float32. Two factors share the place of a float: all of the above holds for such
// pairs, so that "word" below means a float or a pair. Whatever is not a factor of a product is float32.

#include <algorithm>
#include <thread>
#include <type_traits>
#include <vector>

#include "amx.h"
#include "vectors.h"

constexpr int ROWS = LANES == 16 ? 6 : LANES == 8 ? 3 : 4;  // as many as the registers hold
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
#if defined(__AVX512BF16__)
  if constexpr (F != FLOATS) {
    __m256bh halves = _mm512_cvtneps_pbh((__m512)v);
    std::memcpy(operand + j / 2 * block + row * LANES + j % 2 * (LANES / 2), &halves, sizeof halves);
    return;
  }
#endif
  store(operand + j * block + row * LANES, v);
}

// The distance between the blocks of an operand: an odd number of lines, so that a row's do not push each other out.
// AMX reads, and ignores, rows beyond the last one.
template <Factors F>
INLINE long apart(long rows) { return ((F == AMX ? up(rows, AMX_ROWS) : rows) | 1) * LANES; }

// x (rows, stride), of which `size` columns, a multiple of LANES, are taken -> operand
template <Factors F>
static void pack(const float* x, long rows, long stride, long size, float* operand, long block) {
  for (long r = 0; r < rows; r++)
    for (long j = 0; j < size / LANES; j++) put<F>(operand, block, r, j, load(x + r * stride + j * LANES));
}

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

INLINE void fetch(const float* from, long floats) {
  for (long i = 0; i < floats; i += LINE) __builtin_prefetch(from + i, 0, 2);
}

// A tile from and to memory, its rows `stride` floats apart.
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

// An operand times panels `first` to `last` of w: `start` gives the sums of a tile their first values, `end` gets them.
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

// The start of a sum: the bias.
struct Bias {
  const float* bias;
  template <int R>
  void operator()(V (&acc)[R][VECTORS], long p, long) const { get(acc, bias + p * PANEL, 0); }
};

// y[panel][row][PANEL] = an operand times panels `first` to `last` of w, plus bias.
template <Factors F>
static void multiplied(const float* operand, long rows, long block, const float* w, long first, long last, long depth,
                       const float* bias, float* partial, float* y) {
  product<F>(operand, rows, block, w, first, last, depth, partial, Bias{bias},
             [&](auto& acc, long p, long row) { keep(acc, y + (p * rows + row) * PANEL, PANEL); });
}

// The next cells c = sigmoid(f) c + sigmoid(i) tanh(j) and outputs sigmoid(o) tanh(c) of a tile, with one division each.
template <int R>
INLINE void next(V (&gates)[R][VECTORS], float* c, V clip, V (&output)[R]) {
  for (int r = 0; r < R; r++) {
    V part[VECTORS] = {-gates[r][0], -gates[r][1], -gates[r][2], 2.0f * gates[r][3]};
    exponentials(part);
    const V i = 1.0f + part[0], f = 1.0f + part[1], j = part[3], ij = i * (j + 1.0f);
    const V now = within((load(c + r * LANES) * ij + (j - 1.0f) * f) * inverse(f * ij), clip);
    store(c + r * LANES, now);
    gates[r][2] = 1.0f + part[2];
    output[r] = 2.0f * now;
  }
  exponentials(output);
  for (int r = 0; r < R; r++) output[r] = (output[r] - 1.0f) * inverse(gates[r][2] * (output[r] + 1.0f));
}

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
      const auto zero = [](auto& acc, long) { for (auto& sums : acc) std::fill_n(sums, VECTORS, V{}); };
      const auto compare = [&](auto& acc, long) {
        for (auto& sums : acc)
          for (int v = 0; v < VECTORS; v++) best[v] = most(best[v], sums[v]);
      };
      const float *x = space + starts[n], *filters = w + p * depth * PANEL;
      const long windows = lengths[n] - width + 1;
      if constexpr (F == AMX)
        product_amx(x, windows, size, LANES, filters, depth, zero, compare);
      else
        tiles(windows, [&](auto r, long row, long) {
          V acc[decltype(r)::value][VECTORS];
          zero(acc, row);
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

// The same from rows, the panels shared among threads.
template <Factors F>
static void linear_(const float* x, long rows, long stride, long size, const float* w, const float* bias, long panels,
                    float* operand, float* partial, float* y, long threads) {
  const long block = apart<F>(rows);
  pack<F>(x, rows, stride, size, operand, block);
  const auto part = [=](long number) {
    multiplied<F>(operand, rows, block, w, panels * number / threads, panels * (number + 1) / threads,
                  words<F>(size), bias, partial + number * rows * PANEL, y);
  };
  std::vector<std::thread> others;
  for (long number = 1; number < threads; number++) others.emplace_back(part, number);
  part(0);
  for (std::thread& other : others) other.join();
}

template <Factors F>
static void lstm_(const float* x, long size, const long* sizes, long steps, const float* input, const float* bias,
                  const float* recurrent, const float* projection, long cells, long width, float cell_clip,
                  float output_clip, float* h, float* c, float* operand, float* before, float* hidden, float* partial,
                  float* gates, long most_rows, long threads, float* y) {
  const long panels = cells / LANES, block = apart<F>(sizes[0]);
  const V cell_bound = same(cell_clip), output_bound = same(output_clip);
  const std::vector<float> none(width);
  std::vector<float> outputs(sizes[0] * width);
  pack<F>(h, sizes[0], width, width, before, block);
  for (long t = 0; t < steps;) {
    long until = t, rows = 0;
    while (until < steps && (until == t || rows + sizes[until] <= most_rows)) rows += sizes[until++];
    linear_<F>(x, rows, size, size, input, bias, panels, operand, partial, gates, threads);
    x += rows * size;
    for (long done = 0; t < until; done += sizes[t++]) {
      const long n = sizes[t];
      const bool back = t % 2 == 1;  // what was used last is used first: it may still be in the second cache
      product<F>(
          before, n, block, recurrent, 0, panels, words<F>(width), partial,
          [&](auto& acc, long p, long row) {
            const float* from = gates + (p * rows + done + row) * PANEL;
            get(acc, from, PANEL);
            // For the next panel: too far for the processor.
            fetch(from + (back ? -rows : rows) * PANEL, sizeof acc / sizeof(float));
          },
          [&](auto& acc, long p, long row) {
            V output[sizeof acc / sizeof *acc];
            next(acc, c + p * block + row * LANES, cell_bound, output);
            for (V values : output) put<F>(hidden, block, row++, p, values);
          },
          back);
      multiplied<F>(hidden, n, block, projection, 0, width / PANEL, words<F>(cells), none.data(), partial,
                    outputs.data());
      for (long k = 0; k < n * width; k += LANES) {
        const long p = k / (n * PANEL), row = k % (n * PANEL) / PANEL;
        store(h + row * width + p * PANEL + k % PANEL, within(load(outputs.data() + k), output_bound));
      }
      pack<F>(h, n, width, width, before, block);
      std::memcpy(y, h, n * width * sizeof(float));
      y += n * width;
    }
  }
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
  CALL(linear_, x, rows, stride, size, w, bias, panels, operand, partial, y, 1);
}

// One direction of one layer.
//   x (N, size): packed input, size a multiple of LANES; sizes (steps): rows of each step, never increasing
//   input, recurrent: 4 * cells outputs, each LANES cells: i, f, o, j; bias (4 * cells); projection: `width` outputs
//   h (sizes[0], width), cells as an operand c: states before, and at the end of each row after; y (N, width)
//   space: operand for `most_rows` inputs, before and hidden for sizes[0] outputs and cells,
//   partial (threads, most_rows, PANEL), gates (most_rows, 4 * cells), most_rows >= sizes[0]
void lstm(long factors, const float* x, long size, const long* sizes, long steps, const float* input, const float* bias,
          const float* recurrent, const float* projection, long cells, long width, float cell_clip, float output_clip,
          float* h, float* c, float* operand, float* before, float* hidden, float* partial, float* gates, long most_rows,
          long threads, float* y) {
  CALL(lstm_, x, size, sizes, steps, input, bias, recurrent, projection, cells, width, cell_clip, output_clip, h, c,
       operand, before, hidden, partial, gates, most_rows, threads, y);
}
}
