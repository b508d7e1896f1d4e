// What torch has no fast operation for in training on a CPU: the time loops of recurrent layers, forward and backward,
// products of pairs, and the random numbers of dropout; float32, one thread each. `kernels.py` compiles, checks and
// calls it.
//
// Arrays have torch's order of gates. Rows are words; `rows` and `places` say where those of each step stand, the
// longest sentences first. In the space of a loop the `size` cells are filled up to whole vectors.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

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

static inline V sigmoid(V x) { return 1.0f / (1.0f + exponential(-x)); }
static inline V tanh(V x) { V e = exponential(2.0f * x); return (e - 1.0f) / (e + 1.0f); }

// acc[r][v] += a[r][k] * w[k][v], over `depth` steps; `across` is the distance of two k in w.
template <int R, int N>
static inline void multiply(const float* a, long stride, const float* w, long across, long depth, V (&acc)[R][N]) {
  for (long k = 0; k < depth; k++, w += across) {
    V column[N];
    for (int v = 0; v < N; v++) column[v] = load(w + v * LANES);
    for (int r = 0; r < R; r++) {
      V x = same(a[r * stride + k]);
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
      multiply<R, N>(x + row * stride + k, stride, w + k * PANEL, PANEL, std::min(DEPTH, depth - k), acc);
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

// w (gates * size, size) -> for each vector of cells `size` by `gates` vectors
static void pack_gates(const float* w, long gates, long size, float* to) {
  for (long k = 0; k < size; k += LANES)
    for (long g = 0; g < gates; g++)
      for (long lane = 0; lane < LANES && k + lane < size; lane++)
        for (long j = 0; j < size; j++)
          to[(k * size / LANES * gates + j * gates + g) * LANES + lane] = w[(g * size + k + lane) * size + j];
}

// w (depth, size) -> panels of `depth` by PANEL
static void pack_panels(const float* w, long depth, long size, float* to) {
  for (long column = 0; column < size; column += PANEL)
    for (long k = 0; k < depth; k++, to += PANEL)
      std::memcpy(to, w + k * size + column, std::min<long>(PANEL, size - column) * sizeof(float));
}

// A cell: from the recurrent product, with the pre-activations already added, to the activations and the output, and
// back from the output's gradient to those of the pre-activations (d), the recurrent product (d_product) and the state
// that is kept (carried); `back` returns the part of the gradient of h that does not go through the product. INPUTS are
// the gates and what else the layer's input gives. A dropout mask falls on the output (MASKED) or only on the h that
// the next step reads.
struct Lstm {  // gates i, f, j, o; keeps its cell
  static constexpr int GATES = 4, INPUTS = GATES;
  static constexpr bool MASKED = false;
  static V first(const V* gates, V, int gate) { return gates[gate]; }
  static V ahead(const V* product, V* gates, V, V before, V& cell) {
    for (int g : {0, 1, 3}) gates[g] = sigmoid(product[g]);
    gates[2] = tanh(product[2]);
    cell = gates[1] * before + gates[0] * gates[2];
    return gates[3] * tanh(cell);
  }
  static V back(const V* gates, V, V before, V cell, V d_h, V& carried, V* d, V* d_product) {
    const V i = gates[0], f = gates[1], j = gates[2], o = gates[3], squashed = tanh(cell);
    const V d_cell = carried + d_h * o * (1.0f - squashed * squashed);
    d[0] = d_cell * j * i * (1.0f - i);
    d[1] = d_cell * before * f * (1.0f - f);
    d[2] = d_cell * i * (1.0f - j * j);
    d[3] = d_h * squashed * o * (1.0f - o);
    for (int g = 0; g < GATES; g++) d_product[g] = d[g];
    carried = d_cell * f;
    return V{};
  }
};
struct Gru {  // gates r, z, n; keeps the recurrent product of n
  static constexpr int GATES = 3, INPUTS = GATES;
  static constexpr bool MASKED = false;
  static V first(const V* gates, V own, int gate) { return gate < 2 ? gates[gate] : own; }
  static V ahead(const V* product, V* gates, V h, V, V& of_n) {
    of_n = product[2];
    for (int g : {0, 1}) gates[g] = sigmoid(product[g]);
    gates[2] = tanh(gates[2] + gates[0] * of_n);
    return gates[2] + gates[1] * (h - gates[2]);
  }
  static V back(const V* gates, V h, V, V of_n, V d_h, V&, V* d, V* d_product) {
    const V r = gates[0], z = gates[1], n = gates[2];
    d[2] = d_h * (1.0f - z) * (1.0f - n * n);
    d[1] = d_product[1] = d_h * (h - n) * z * (1.0f - z);
    d[0] = d_product[0] = d[2] * of_n * r * (1.0f - r);
    d_product[2] = d[2] * r;
    return d_h * z;
  }
};
struct Coupled {  // gates i, j, o; keeps its cell, whose forget gate is 1 - i
  static constexpr int GATES = 3, INPUTS = GATES;
  static constexpr bool MASKED = false;
  static V first(const V* gates, V, int gate) { return gates[gate]; }
  static V ahead(const V* product, V* gates, V, V before, V& cell) {
    for (int g : {0, 2}) gates[g] = sigmoid(product[g]);
    gates[1] = tanh(product[1]);
    cell = before + gates[0] * (gates[1] - before);
    return tanh(cell) * gates[2];
  }
  static V back(const V* gates, V, V before, V cell, V d_h, V& carried, V* d, V* d_product) {
    const V i = gates[0], j = gates[1], o = gates[2], squashed = tanh(cell);
    const V d_cell = carried + d_h * o * (1.0f - squashed * squashed);
    d[0] = d_cell * (j - before) * i * (1.0f - i);
    d[1] = d_cell * i * (1.0f - j * j);
    d[2] = d_h * squashed * o * (1.0f - o);
    for (int g = 0; g < GATES; g++) d_product[g] = d[g];
    carried = d_cell * (1.0f - i);
    return V{};
  }
};
struct Highway {  // gates i, f, o, r, j, then the highway's input; keeps its cell
  static constexpr int GATES = 5, INPUTS = 6;
  static constexpr bool MASKED = true;
  static V first(const V* gates, V, int gate) { return gates[gate]; }
  static V ahead(const V* product, V* gates, V, V before, V& cell) {
    for (int g = 0; g < 4; g++) gates[g] = sigmoid(product[g]);
    gates[4] = tanh(product[4]);
    cell = gates[1] * before + gates[0] * gates[4];
    return gates[5] + gates[3] * (gates[2] * tanh(cell) - gates[5]);
  }
  static V back(const V* gates, V, V before, V cell, V d_h, V& carried, V* d, V* d_product) {
    const V i = gates[0], f = gates[1], o = gates[2], r = gates[3], j = gates[4], squashed = tanh(cell);
    const V d_hidden = d_h * r, d_cell = carried + d_hidden * o * (1.0f - squashed * squashed);
    d[0] = d_cell * j * i * (1.0f - i);
    d[1] = d_cell * before * f * (1.0f - f);
    d[2] = d_hidden * squashed * o * (1.0f - o);
    d[3] = d_hidden * (o * squashed - gates[5]) * (1.0f - r);
    d[4] = d_cell * i * (1.0f - j * j);
    d[5] = d_h - d_hidden;
    for (int g = 0; g < GATES; g++) d_product[g] = d[g];
    carried = d_cell * f;
    return V{};
  }
};

// One direction of a layer.
//   rows (N) of gates, kept and before; places (N) of y; sizes (steps): never increasing
//   mask (sizes[0], size): of dropout; initial (2, size): the state that is kept, and h; both may be null: ones, zeros
//   weight (GATES * size, size); own (size): the bias of the last gate's recurrent product, or null
//   gates (., wide), of which INPUTS * size: pre-activations, replaced by activations
//   kept, before (., size): the cell's own state, and the h that each step reads; y (., across): outputs
template <class Cell>
static void ahead(const long* rows, const long* places, const long* sizes, long steps, const float* mask,
                  const float* initial, const float* weight, const float* own, long size, float* gates, long wide,
                  float* kept, float* before, float* y, long across) {
  constexpr int G = Cell::GATES, TILE = LANES == 16 ? std::min(ROWS, 30 / G - 1) : ROWS;
  const long cells = up(size, LANES), all = sizes[0] * cells;
  Space packed(cells * size * G), states(3 * all), bias(cells);
  pack_gates(weight, G, size, packed.data);
  if (own) std::memcpy(bias.data, own, size * sizeof(float));
  float *h = states.data, *next = h + all, *state = next + all;
  for (long r = 0; initial && r < sizes[0]; r++)
    for (long k = 0; k < size; k++) {
      state[r * cells + k] = initial[k];
      h[r * cells + k] = initial[size + k] * (mask ? mask[r * size + k] : 1.0f);
    }
  for (long t = 0; t < steps; rows += sizes[t], places += sizes[t++]) {
    for (long k = 0; k < size; k += LANES)
      tiles<TILE>(sizes[t], [&](long first, auto count) {
        constexpr int R = decltype(count)::value, INPUTS = Cell::INPUTS;
        const long some = size - k;
        V gate[R][INPUTS], product[R][G];
        for (int r = 0; r < R; r++)
          for (int g = 0; g < INPUTS; g++) gate[r][g] = load(gates + rows[first + r] * wide + g * size + k, some);
        for (int r = 0; r < R; r++)
          for (int g = 0; g < G; g++) product[r][g] = Cell::first(gate[r], load(bias.data + k), g);
        multiply<R, G>(h + first * cells, cells, packed.data + k * size * G, G * LANES, size, product);
        for (int r = 0; r < R; r++) {
          const long here = (first + r) * cells + k, row = rows[first + r];
          const V old = load(h + here);
          V keep;
          const V out = Cell::ahead(product[r], gate[r], old, load(state + here), keep);
          const V passed = mask ? out * load(mask + (first + r) * size + k, some) : out;
          for (int g = 0; g < G; g++) store(gates + row * wide + g * size + k, gate[r][g], some);
          store(before + row * size + k, old, some), store(kept + row * size + k, keep, some);
          store(y + places[first + r] * across + k, Cell::MASKED ? passed : out, some);
          store(next + here, passed), store(state + here, keep);
        }
      });
    std::swap(h, next);
  }
}

// The gradients d (., wide) of the pre-activations and d_product of the recurrent product, which may be the same array,
// and those of the initial states, d_initial (2, size), if that is not null, from those of the outputs, d_y (., across).
template <class Cell>
static void back(const long* rows, const long* places, const long* sizes, long steps, const float* mask,
                 const float* initial, const float* weight, long size, const float* gates, long wide, const float* kept,
                 const float* before, const float* d_y, long across, float* d, float* d_product, float* d_initial) {
  constexpr int G = Cell::GATES, INPUTS = Cell::INPUTS;
  const long cells = up(size, LANES), all = sizes[0] * cells;
  Space packed(G * size * up(size, PANEL)), states(2 * all), products(sizes[0] * G * size);
  pack_panels(weight, G * size, size, packed.data);
  float *d_h = states.data, *carried = d_h + all;
  for (long t = 0; t < steps; t++) rows += sizes[t], places += sizes[t];
  for (long t = steps - 1; t >= 0; t--) {
    rows -= sizes[t], places -= sizes[t];
    const long* earlier = t ? rows - sizes[t - 1] : nullptr;
    for (long r = 0; r < sizes[t]; r++)
      for (long k = 0; k < size; k += LANES) {
        const long here = r * cells + k, row = rows[r] * size + k, some = size - k;
        V gate[INPUTS], of_input[INPUTS], of_product[G], of_kept = load(carried + here);
        for (int g = 0; g < INPUTS; g++) gate[g] = load(gates + rows[r] * wide + g * size + k, some);
        const float* start = earlier ? kept + earlier[r] * size : initial;
        const V old = start ? load(start + k, some) : V{};
        const V of_y = load(d_y + places[r] * across + k, some), of_next = load(d_h + here);
        const V factor = mask ? load(mask + r * size + k, some) : same(1.0f);
        const V d_out = Cell::MASKED ? (of_y + of_next) * factor : of_y + of_next * factor;
        store(d_h + here, Cell::back(gate, load(before + row, some), old, load(kept + row, some), d_out, of_kept,
                                     of_input, of_product));
        store(carried + here, of_kept);
        for (int g = 0; g < INPUTS; g++) store(d + rows[r] * wide + g * size + k, of_input[g], some);
        for (int g = 0; g < G; g++) {
          store(d_product + rows[r] * wide + g * size + k, of_product[g], some);
          store(products.data + (r * G + g) * size + k, of_product[g], some);
        }
      }
    if (t || d_initial) add_product(products.data, sizes[t], packed.data, G * size, d_h, cells);
  }
  for (long r = 0; d_initial && r < sizes[0]; r++)
    for (long k = 0; k < size; k++) {
      d_initial[k] += carried[r * cells + k];
      d_initial[size + k] += d_h[r * cells + k] * (mask ? mask[r * size + k] : 1.0f);
    }
}

// rows of `from` numbers -> rows of `to` numbers: cut, or filled up with what is there
static void copy_rows(const float* x, long rows, long from, float* y, long to) {
  for (long r = 0; r < rows; r++) std::memcpy(y + r * to, x + r * from, std::min(from, to) * sizeof(float));
}

// One target of `pairs_back` with its r antecedents, the first of which is `lowest`.
struct Target {
  long i, lowest, r;
  const float* d;  // (r, hidden), the gradients of its pairs
  float* turned;   // (hidden, r), the same
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
    multiply<R, VECTORS>(t.turned + first * t.r, t.r, block, PANEL, t.r, acc);
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

// torch's generator, as `torch.get_rng_state` gives it: MT19937 after Matsumoto and Nishimura (1998)
struct Generator {
  uint64_t seed;
  int32_t left, seeded;  // numbers of this round that are left, plus one
  uint64_t next, state[624];
};

static inline uint32_t twist(uint64_t u, uint64_t v, uint64_t w) {
  const uint32_t mixed = (uint32_t(u) & 0x80000000u) | (uint32_t(v) & 0x7fffffffu);
  return uint32_t(w) ^ (mixed >> 1) ^ ((uint32_t(v) & 1u) ? 0x9908b0dfu : 0u);
}

static void renew(Generator* g) {
  uint64_t* s = g->state;
  for (int k = 0; k < 227; k++) s[k] = twist(s[k], s[k + 1], s[k + 397]);
  for (int k = 227; k < 623; k++) s[k] = twist(s[k], s[k + 1], s[k - 227]);
  s[623] = twist(s[623], s[0], s[396]);
  g->left = 624 + 1, g->next = 0;
}

static inline uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

// The next numbers of the generator, at most `most` and at least one; returns how many.
static long drawn(Generator* g, long most, uint32_t* to) {
  if (g->left == 1) renew(g);
  const long n = std::min<long>(most, g->left - 1);
  for (long k = 0; k < n; k++) to[k] = tempered(uint32_t(g->state[g->next + k]));
  g->left -= n, g->next += n;
  return n;
}

// Calls run(k, whether it is a one) for n values that are one with probability p, from the numbers that torch's own
// `bernoulli_` takes: two for each value, whose last 53 bits are a number below 1.
template <class Run>
static void draw(Generator* generator, double p, long n, Run run) {
  constexpr uint64_t ONE = uint64_t(1) << 53;
  const uint64_t bound = uint64_t(std::ceil(p * ONE));
  uint32_t numbers[1024];
  for (long done = 0; done < n;) {
    const long values = std::min<long>(n - done, 512);
    for (long got = 0; got < 2 * values;) got += drawn(generator, 2 * values - got, numbers + got);
    for (long k = 0; k < values; k++) {
      const uint64_t number = (uint64_t(numbers[2 * k]) << 32 | numbers[2 * k + 1]) & (ONE - 1);
      run(done + k, number < bound);
    }
    done += values;
  }
}

// 0, or 1 if there is no memory.
template <class Run>
static int tried(Run run) {
  try {
    run();
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

// What Python calls: each returns 0, or 1 if there is no memory.
extern "C" {

#define BOTH_WAYS(name, Cell)                                                                                          \
  int name##_ahead(const long* rows, const long* places, const long* sizes, long steps, const float* mask,             \
                   const float* initial, const float* weight, const float* own, long size, float* gates, long wide,    \
                   float* kept, float* before, float* y, long across) {                                                \
    return tried([&] {                                                                                                 \
      ahead<Cell>(rows, places, sizes, steps, mask, initial, weight, own, size, gates, wide, kept, before, y, across); \
    });                                                                                                                \
  }                                                                                                                    \
  int name##_back(const long* rows, const long* places, const long* sizes, long steps, const float* mask,              \
                  const float* initial, const float* weight, long size, const float* gates, long wide,                 \
                  const float* kept, const float* before, const float* d_y, long across, float* d, float* d_product,   \
                  float* d_initial) {                                                                                  \
    return tried([&] {                                                                                                 \
      back<Cell>(rows, places, sizes, steps, mask, initial, weight, size, gates, wide, kept, before, d_y, across, d,   \
                 d_product, d_initial);                                                                                \
    });                                                                                                                \
  }
BOTH_WAYS(lstm, Lstm)
BOTH_WAYS(gru, Gru)
BOTH_WAYS(coupled, Coupled)
BOTH_WAYS(highway, Highway)

// a[i] + b[j] + sum_d g_i[d] g_j[d] w[:, d] for the targets i from `first` to before `last`, each with the `most` spans
// j before it, the farthest first.
//   g (., size), w (hidden, size), a, b (., hidden); y (pairs, hidden)
int pairs_ahead(const float* g, const float* w, const float* a, const float* b, long size, long hidden, long most,
                long first, long last, float* y) {
  return tried([&] {
    const long filled = up(hidden, LANES);
    Space packed(size * up(hidden, PANEL)), scaled(DEPTH * PANEL), sums(std::min(most, last) * filled);
    for (long h = 0; h < hidden; h++)
      for (long k = 0; k < size; k++) packed.data[(h / PANEL * size + k) * PANEL + h % PANEL] = w[h * size + k];
    for (long i = first; i < last; i++) {
      const long lowest = std::max(i - most, 0L), r = i - lowest;
      std::memset(sums.data, 0, r * filled * sizeof(float));
      for (long column = 0; column < filled; column += PANEL)
        for (long k = 0; k < size; k += DEPTH) {
          const long steps = std::min(DEPTH, size - k);
          const float* from = packed.data + column * size + k * PANEL;
          for (long s = 0; s < steps; s++)
            for (long v = 0; v < PANEL; v += LANES)
              store(scaled.data + s * PANEL + v, load(from + s * PANEL + v) * g[i * size + k + s]);
          const float* rows = g + lowest * size + k;
          add_some((filled - column) / LANES, rows, size, r, scaled.data, steps, sums.data + column, filled);
        }
      for (long j = 0; j < r; j++, y += hidden)
        for (long h = 0; h < hidden; h++)
          y[h] = sums.data[j * filled + h] + a[i * hidden + h] + b[(lowest + j) * hidden + h];
    }
  });
}

// The gradients of all four from those of y, d; the arrays they are added to hold zeros.
int pairs_back(const float* g, const float* w, const float* d, long size, long hidden, long most, long first, long last,
               float* to_a, float* to_b, float* to_g, float* to_w) {
  return tried([&] {
    const long wide = up(size, PANEL), widest = std::min(most, last);
    Space all_g(last * wide), all_w(hidden * wide), sum_g(last * wide), sum_w(hidden * wide);
    Space turned(TOGETHER * hidden * widest), block(std::max(hidden, widest) * PANEL);
    copy_rows(g, last, size, all_g.data, wide), copy_rows(w, hidden, size, all_w.data, wide);
    for (long i = first; i < last;) {
      Target some[TOGETHER];
      long n = 0;
      for (; n < TOGETHER && i < last; n++, i++) {
        const long lowest = std::max(i - most, 0L), r = i - lowest;
        float* turned_here = turned.data + n * hidden * widest;
        some[n] = {i, lowest, r, d, turned_here};
        for (long j = 0; j < r; j++, d += hidden)
          for (long h = 0; h < hidden; h++) {
            const float here = d[h];
            to_a[i * hidden + h] += here, to_b[(lowest + j) * hidden + h] += here, turned_here[h * r + j] = here;
          }
      }
      for (long column = 0; column < wide; column += PANEL)
        for (long k = 0; k < n; k++)
          pair_gradients(some[k], hidden, wide, all_g.data + column, all_w.data + column, sum_g.data + column,
                         sum_w.data + column, block.data);
    }
    copy_rows(sum_g.data, last, wide, to_g, size), copy_rows(sum_w.data, hidden, wide, to_w, size);
  });
}

// `scale` with probability p, else 0.
int bernoulli(Generator* generator, double p, float scale, long n, float* out) {
  draw(generator, p, n, [=](long k, bool one) { out[k] = one ? scale : 0.0f; });
  return 0;
}

// x, if it is above 0, times `scale` with probability p, else 0.
int relu_dropout(Generator* generator, double p, float scale, long n, float* x) {
  draw(generator, p, n, [=](long k, bool one) { x[k] = (x[k] < 0.0f ? 0.0f : x[k]) * (one ? scale : 0.0f); });
  return 0;
}

// The gradient of that, from its result y and the gradient d of y.
int relu_dropout_back(const float* y, const float* d, float scale, long n, float* out) {
  for (long k = 0; k < n; k += LANES) {
    const V there = load(y + k, n - k), through = load(d + k, n - k) * scale;
    store(out + k, there <= 0.0f ? V{} : through, n - k);
  }
  return 0;
}
}
