// A training step's bfloat16 products, and what is computed between them, on processors with AMX: the time loop of one
// direction of a layer, the sampled softmax of one direction, and products that sum over rows. One thread each;
// `amx.py` compiles, checks and calls them. Arrays are contiguous; numbers of rows and columns are multiples of 32.
//
// A tile register has 16 rows of 64 bytes. Left factors are read as they lie, 16 rows by 32 columns; right factors are
// packed into tiles of 16 columns by 32 rows, of which two lie beside each other.

#if !defined(__AMX_BF16__) || !defined(__AVX512BF16__) || !defined(__linux__)
#error "no AMX"
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "amx.h"

typedef uint16_t Half;  // bfloat16
constexpr long SIDE = 16, DEEP = 32, TILE = SIDE * DEEP, PAIR = 2 * SIDE;

INLINE V widen(const Half* p) {
  __m256i half;
  std::memcpy(&half, p, sizeof half);
  return (V)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
INLINE void narrow(Half* p, V x) {
  const __m256bh half = _mm512_cvtneps_pbh((__m512)x);
  std::memcpy(p, &half, sizeof half);
}
INLINE V sigmoid(V x) { return inverse(1.0f + exponential(-x)); }
INLINE V tanh(V x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }
INLINE V magnitude(V x) { return (V)_mm512_abs_ps((__m512)x); }
INLINE V where(__mmask16 mask, V x) { return (V)_mm512_maskz_mov_ps(mask, (__m512)x); }
INLINE __mmask16 below(V x, float bound) { return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(bound), _CMP_LT_OQ); }

// Memory that begins at a cache line.
template <class T>
struct Space {
  T* data;
  explicit Space(long n) : data(static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) / 64 + 1) * 64))) {
    if (!data) throw std::bad_alloc();
  }
  Space(const Space&) = delete;
  ~Space() { std::free(data); }
};

// 16 numbers of each of two rows, in turn
INLINE void pair(const Half* first, const Half* second, Half* to) {
  __m256i a, b;
  std::memcpy(&a, first, sizeof a), std::memcpy(&b, second, sizeof b);
  const __m512i low = _mm512_cvtepu16_epi32(a), high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16);
  _mm512_storeu_si512(to, _mm512_or_si512(low, high));
}

// x (depth, columns) -> tiles, those of the same columns one after another
static void pack(const Half* x, long depth, long columns, Half* to) {
  for (long n = 0; n < columns; n += SIDE)
    for (long k = 0; k < depth; k += 2, to += PAIR) pair(x + k * columns + n, x + (k + 1) * columns + n, to);
}

// A tile of pairs, 16 by 16, with rows and columns exchanged; `across` is the distance of the rows of x.
static void turn(const uint32_t* x, long across, uint32_t* to) {
  const __m512i places = _mm512_mullo_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(int(across)));
  for (long i = 0; i < SIDE; i++) _mm512_storeu_si512(to + i * SIDE, _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), __mmask16(-1), places, x + i, 4));
}

// The same tiles from x (columns, depth)
static void pack_turned(const Half* x, long depth, long columns, Half* to) {
  for (long n = 0; n < columns; n += SIDE)
    for (long k = 0; k < depth; k += DEEP, to += TILE)
      turn(reinterpret_cast<const uint32_t*>(x + n * depth + k), depth / 2, reinterpret_cast<uint32_t*>(to));
}

// y (32, 32) = x (32, depth) times two columns of tiles
INLINE void multiply(const Half* x, long stride, const Half* left, const Half* right, long depth, float* y,
                     long across, bool onto = false) {
  settle(x);
  if (onto) {
    _tile_loadd(0, y, across * 4); _tile_loadd(1, y + SIDE, across * 4);
    _tile_loadd(2, y + SIDE * across, across * 4); _tile_loadd(3, y + SIDE * across + SIDE, across * 4);
  } else {
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  }
  for (long k = 0; k < depth; k += DEEP, left += TILE, right += TILE) {
    _tile_loadd(4, x + k, stride * 2); _tile_loadd(6, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right, 64); _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, x + SIDE * stride + k, stride * 2); _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, y, across * 4); _tile_stored(1, y + SIDE, across * 4);
  _tile_stored(2, y + SIDE * across, across * 4); _tile_stored(3, y + SIDE * across + SIDE, across * 4);
}

template <class Run>
static int tried(Run run) {
  try {
    Amx tiles;
    run();
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

// Sizes of a layer: steps, rows, cells, width of the projection.
struct Sizes {
  long steps, rows, cells, width;
};

struct Gates {
  V i, j, f, o;
  Gates(const V* x, const float* bias, long cells)
      : i(sigmoid(x[0] + load(bias))), j(tanh(x[1] + load(bias + cells))),
        f(sigmoid(x[2] + load(bias + 2 * cells) + 1.0f)), o(sigmoid(x[3] + load(bias + 3 * cells))) {}
};

static void run_ahead(const Half* recurrent, const Half* projection, const float* bias, Sizes n, float cell_clip,
                      float clip, Half* gates, float* cs, Half* hidden, Half* hs) {
  const auto [steps, rows, cells, width] = n;
  const long wide = 4 * cells;
  Space<Half> across(wide * width), down(cells * width);
  pack_turned(recurrent, width, wide, across.data), pack_turned(projection, cells, width, down.data);
  alignas(64) float sums[PAIR * 4 * SIDE];
  for (long t = 0; t < steps; t++, gates += rows * wide, cs += rows * cells, hidden += rows * cells, hs += rows * width) {
    for (long k = 0; k < cells; k += SIDE)
      for (long row = 0; row < rows; row += PAIR) {
        for (long g = 0; g < 4; g += 2)
          multiply(hs + row * width, width, across.data + (g * cells + k) * width,
                   across.data + ((g + 1) * cells + k) * width, width, sums + g * SIDE, 4 * SIDE);
        for (long r = 0; r < PAIR; r++) {
          Half* gate = gates + (row + r) * wide + k;
          V x[4];
          for (long g = 0; g < 4; g++) {
            narrow(gate + g * cells, load(sums + (4 * r + g) * SIDE) + widen(gate + g * cells));
            x[g] = widen(gate + g * cells);
          }
          const Gates s(x, bias + k, cells);
          const long at = (row + r) * cells + k;
          const V c = within(s.f * load(cs + at) + s.i * s.j, same(cell_clip));
          store(cs + rows * cells + at, c), narrow(hidden + at, s.o * tanh(c));
        }
      }
    for (long column = 0; column < width; column += PAIR)
      for (long row = 0; row < rows; row += PAIR) {
        const Half* tiles = down.data + column * cells;
        multiply(hidden + row * cells, cells, tiles, tiles + SIDE * cells, cells, sums, PAIR);
        for (long r = 0; r < PAIR; r++)
          for (long v = 0; v < PAIR; v += SIDE)
            narrow(hs + (rows + row + r) * width + column + v, within(load(sums + r * PAIR + v), same(clip)));
      }
  }
}

static void run_back(const Half* recurrent, const Half* projection, const float* bias, Sizes n, float cell_clip,
                     float clip, Half* gates, const float* cs, const Half* hs, Half* d_h, float* d_bias) {
  const auto [steps, rows, cells, width] = n;
  const long wide = 4 * cells;
  Space<Half> across(wide * width), down(cells * width);
  Space<float> carried(rows * cells);
  pack(recurrent, wide, width, across.data), pack(projection, width, cells, down.data);
  std::memset(carried.data, 0, rows * cells * sizeof(float)), std::memset(d_bias, 0, wide * sizeof(float));
  alignas(64) float sums[PAIR * PAIR];
  for (long t = steps; t-- > 0;) {
    Half *gate_t = gates + t * rows * wide, *d_t = d_h + t * rows * width;
    const Half* h_t = hs + (t + 1) * rows * width;
    for (long column = 0; column < width; column += PAIR)
      for (long row = 0; row < rows; row += PAIR) {
        const Half* tiles = across.data + column * wide;
        if (t + 1 < steps)
          multiply(gate_t + (rows + row) * wide, wide, tiles, tiles + SIDE * wide, wide, sums, PAIR);
        else
          std::memset(sums, 0, sizeof sums);
        for (long r = 0; r < PAIR; r++)
          for (long v = 0; v < PAIR; v += SIDE) {
            const long at = (row + r) * width + column + v;
            const V d = widen(d_t + at) + load(sums + r * PAIR + v);
            narrow(d_t + at, where(below(magnitude(widen(h_t + at)), clip), d));
          }
      }
    const float *before = cs + t * rows * cells, *after = before + rows * cells;
    for (long column = 0; column < cells; column += PAIR) {
      V total[2][4] = {};
      for (long row = 0; row < rows; row += PAIR) {
        const Half* tiles = down.data + column * width;
        multiply(d_t + row * width, width, tiles, tiles + SIDE * width, width, sums, PAIR);
        for (long v = 0; v < 2; v++)
          for (long r = 0; r < PAIR; r++) {
            const long k = column + v * SIDE, at = (row + r) * cells + k;
            Half* gate = gate_t + (row + r) * wide + k;
            V x[4];
            for (long g = 0; g < 4; g++) x[g] = widen(gate + g * cells);
            const Gates s(x, bias + k, cells);
            const V c = load(after + at), squashed = tanh(c), d_hidden = load(sums + r * PAIR + v * SIDE);
            V d_c = load(carried.data + at) + d_hidden * s.o * (1.0f - squashed * squashed);
            d_c = where(below(magnitude(c), cell_clip), d_c);
            const V d[4] = {d_c * s.j * s.i * (1.0f - s.i), d_c * s.i * (1.0f - s.j * s.j),
                            d_c * load(before + at) * s.f * (1.0f - s.f), d_hidden * squashed * s.o * (1.0f - s.o)};
            for (long g = 0; g < 4; g++) narrow(gate + g * cells, d[g]), total[v][g] += d[g];
            store(carried.data + at, d_c * s.f);
          }
      }
      for (long v = 0; v < 2; v++)
        for (long g = 0; g < 4; g++) {
          float* bias_at = d_bias + g * cells + column + v * SIDE;
          store(bias_at, load(bias_at) + total[v][g]);
        }
    }
  }
}

// y (m, n) = the transpose of x (depth, m) times z (depth, n)
static void product_of_columns(const Half* x, const Half* z, long depth, long m, long n, float* y) {
  constexpr long BLOCK = 256;  // rows whose tiles stay in the second cache
  Space<Half> tiles(BLOCK * n), left(PAIR * BLOCK), pairs(BLOCK * PAIR);
  for (long k = 0; k < depth; k += BLOCK) {
    const long some = std::min(BLOCK, depth - k);
    pack(z + k * n, some, n, tiles.data);
    for (long i = 0; i < m; i += PAIR) {
      for (long half = 0; half < 2; half++)  // 16 columns of x, each as a row
        for (long j = 0; j < some; j += 2) {
          const Half* from = x + (k + j) * m + i + half * SIDE;
          pair(from, from + m, pairs.data + (half * some + j) * SIDE);
        }
      const uint32_t* from = reinterpret_cast<const uint32_t*>(pairs.data);
      uint32_t* to = reinterpret_cast<uint32_t*>(left.data);
      for (long half = 0; half < 2; half++)
        for (long j = 0; j < some / 2; j += SIDE) {
          alignas(64) uint32_t tile[SIDE * SIDE];
          turn(from + (half * some / 2 + j) * SIDE, SIDE, tile);
          for (long c = 0; c < SIDE; c++) std::memcpy(to + (half * SIDE + c) * some / 2 + j, tile + c * SIDE, 64);
        }
      for (long column = 0; column < n; column += PAIR)
        multiply(left.data, some, tiles.data + column * some, tiles.data + (column + SIDE) * some, some,
                 y + i * n + column, n, k > 0);
    }
  }
}

INLINE float sum(V x) { return _mm512_reduce_add_ps((__m512)x); }

static void run_softmax(const Half* h, const Half* weight, const float* correction, const float* true_logits,
                        const long* hit_rows, const long* hit_columns, long hits, long rows, long number, long width,
                        Half* g, float* normaliser, float* d_h, float* d_correction) {
  Space<Half> logit_tiles(number * width), back_tiles(number * width);
  Space<float> logits(PAIR * number);
  pack_turned(weight, width, number, logit_tiles.data), pack(weight, number, width, back_tiles.data);
  std::memset(d_correction, 0, number * sizeof(float));
  for (long row = 0, hit = 0; row < rows; row += PAIR, g += PAIR * number) {
    for (long k = 0; k < number; k += PAIR) {
      const Half* tiles = logit_tiles.data + k * width;
      multiply(h + row * width, width, tiles, tiles + SIDE * width, width, logits.data + k, number);
    }
    for (; hit < hits && hit_rows[hit] < row + PAIR; hit++)
      logits.data[(hit_rows[hit] - row) * number + hit_columns[hit]] = -std::numeric_limits<float>::infinity();
    float scales[PAIR];
    for (long r = 0; r < PAIR; r++) {
      float* x = logits.data + r * number;
      V highest = same(-std::numeric_limits<float>::max()), total{};
      for (long k = 0; k < number; k += SIDE) {
        const V here = load(x + k) + load(correction + k);
        highest = most(highest, here), store(x + k, here);
      }
      const float top = _mm512_reduce_max_ps((__m512)highest);
      for (long k = 0; k < number; k += SIDE) {
        const V e = exponential(load(x + k) - top);
        total += e, store(x + k, e);
      }
      const float others = top + std::log(sum(total)), own = true_logits[row + r], larger = std::max(others, own);
      normaliser[row + r] = larger + std::log1p(std::exp(-std::fabs(others - own)));
      scales[r] = std::exp(top - normaliser[row + r]) / rows;
    }
    for (long k = 0; k < number; k += SIDE) {
      V total{};
      for (long r = 0; r < PAIR; r++) {
        const V gradient = load(logits.data + r * number + k) * scales[r];
        total += gradient, narrow(g + r * number + k, gradient);
      }
      store(d_correction + k, load(d_correction + k) + total);
    }
    for (long column = 0; column < width; column += PAIR) {
      const Half* tiles = back_tiles.data + column * number;
      multiply(g, number, tiles, tiles + SIDE * number, number, d_h + row * width + column, width);
    }
  }
}

extern "C" {
// Asks the system for the tile registers; 0: they may be used.
int permitted() { return amx_permitted() ? 0 : 1; }

// The layer's steps forward. recurrent (4C, P), projection (P, C), bias (4C); gates (T, B, 4C): what the input gives,
// replaced by pre-activations without bias; cs (T + 1, B, C), hs (T + 1, B, P): the first of each is given; hidden (T, B, C)
int recurrence_ahead(const Half* recurrent, const Half* projection, const float* bias, long steps, long rows, long cells,
                     long width, float cell_clip, float clip, Half* gates, float* cs, Half* hidden, Half* hs) {
  return tried([&] {
    run_ahead(recurrent, projection, bias, {steps, rows, cells, width}, cell_clip, clip, gates, cs, hidden, hs);
  });
}

// And back. d_h (T, B, P): the gradients of the outputs, replaced by those before the clip; gates: replaced by their
// gradients; d_bias (4C)
int recurrence_back(const Half* recurrent, const Half* projection, const float* bias, long steps, long rows, long cells,
                    long width, float cell_clip, float clip, Half* gates, const float* cs, const Half* hs, Half* d_h,
                    float* d_bias) {
  return tried([&] {
    run_back(recurrent, projection, bias, {steps, rows, cells, width}, cell_clip, clip, gates, cs, hs, d_h, d_bias);
  });
}

// y (m, n) = the transpose of x (depth, m) times z (depth, n)
int columns_product(const Half* x, const Half* z, long depth, long m, long n, float* y) {
  return tried([&] { product_of_columns(x, z, depth, m, n, y); });
}

// The sampled softmax. h (N, P), weight (K, P), correction (K), true_logits (N); hits: rows, increasing, and columns of
// logits to leave out. To the normalisers (N), log of the sum of all exponentials, and for the mean of the rows the
// gradients of the logits, g (N, K), and without the true logits' part those of h, d_h (N, P), weight, d_weight (K, P),
// and correction, d_correction (K).
int softmax(const Half* h, const Half* weight, const float* correction, const float* true_logits, const long* hit_rows,
            const long* hit_columns, long hits, long rows, long number, long width, Half* g, float* normaliser,
            float* d_h, float* d_weight, float* d_correction) {
  return tried([&] {
    run_softmax(h, weight, correction, true_logits, hit_rows, hit_columns, hits, rows, number, width, g, normaliser,
                d_h, d_correction);
    product_of_columns(g, h, rows, number, width, d_weight);
  });
}
}
