// What torch has no fused operation for: character convolutions with their maxima, the highway's gate, and the time loop
// of a projected LSTM with both clips; float32, one thread each. `kernels.py` compiles, checks and calls it.
//
// Weights come in panels of PANEL output columns, k-major: panel p holds w[p][k][PANEL]. A tile of up to ROWS rows by one
// panel stays in registers; GCC's and Clang's vector types make it AVX-512, AVX2 or NEON code by the compiler's flags. A
// row's result does not depend on the rows beside it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 6;
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 2;
#else
constexpr int LANES = 4, ROWS = 4;
#endif
constexpr int VECTORS = 4, PANEL = VECTORS * LANES;
constexpr long DEPTH = 128;           // k steps of a panel that stay in the first cache
constexpr long AHEAD = 4;             // panels fetched ahead of their use

typedef float V __attribute__((vector_size(LANES * 4)));
typedef int32_t I __attribute__((vector_size(LANES * 4)));

static inline V load(const float* p) { V v; std::memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
static inline V same(float x) { return x - V{}; }
static inline V least(V a, V b) { return b < a ? b : a; }
static inline V most(V a, V b) { return b > a ? b : a; }

// e^x for x in [-27, 27]; beyond, the nearest of both: 1 / (1 + e^27) is 2e-12. NaN stays NaN.
static inline V exponential(V x) {
  x = least(most(x, same(-27.0f)), same(27.0f));
  V n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // rounded to an integer
  V r = x - n * 0.693359375f + n * 2.12194440e-4f;
  V p = same(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  I power = (__builtin_convertvector(n, I) + 127) << 23;
  V scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
}

// acc[r][v] += a[r][k] * w[k][v], over `depth` steps.
template <int R>
static inline void multiply(const float* a, long stride, const float* w, long depth, V (&acc)[R][VECTORS]) {
  for (long k = 0; k < depth; k++, w += PANEL) {
    V column[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
      column[v] = load(w + v * LANES);
      __builtin_prefetch(w + AHEAD * depth * PANEL + v * LANES, 0, 2);
    }
    for (int r = 0; r < R; r++) {
      V x = same(a[r * stride + k]);
      for (int v = 0; v < VECTORS; v++) acc[r][v] += x * column[v];
    }
  }
}

// Calls run<R>(first row) for tiles of nearly equal numbers of rows.
template <class Run>
static inline void tiles(long rows, Run run) {
  long count = (rows + ROWS - 1) / ROWS;
  for (long i = 0, done = 0; i < count; i++) {
    long next = rows * (i + 1) / count;
    run(done, int(next - done));
    done = next;
  }
}

#if defined(__AVX512F__)
#define BY_ROWS(r, CALL) \
  switch (r) { case 1: CALL(1); break; case 2: CALL(2); break; case 3: CALL(3); break; \
               case 4: CALL(4); break; case 5: CALL(5); break; default: CALL(6); }
#elif defined(__AVX__)
#define BY_ROWS(r, CALL) switch (r) { case 1: CALL(1); break; default: CALL(2); }
#else
#define BY_ROWS(r, CALL) \
  switch (r) { case 1: CALL(1); break; case 2: CALL(2); break; case 3: CALL(3); break; default: CALL(4); }
#endif

template <int R>
static inline void linear_tile(const float* x, long stride, const float* w, long depth, bool first, float* y,
                               long out) {
  V acc[R][VECTORS] = {};
  if (!first)
    for (int r = 0; r < R; r++)
      for (int v = 0; v < VECTORS; v++) acc[r][v] = load(y + r * out + v * LANES);
  multiply<R>(x, stride, w, depth, acc);
  for (int r = 0; r < R; r++)
    for (int v = 0; v < VECTORS; v++) store(y + r * out + v * LANES, acc[r][v]);
}

// y (rows, panels * PANEL) = x (rows, depth) w^T
static void product(const float* x, long rows, const float* w, long panels, long depth, float* y) {
  const long out = panels * PANEL;
  for (long p = 0; p < panels; p++)
    for (long k = 0; k < depth; k += DEPTH) {
      const long steps = std::min(DEPTH, depth - k);
      tiles(rows, [&](long row, int r) {
#define CALL(R) linear_tile<R>(x + row * depth + k, depth, w + (p * depth + k) * PANEL, steps, k == 0, \
                               y + row * out + p * PANEL, out)
        BY_ROWS(r, CALL)
#undef CALL
      });
    }
}

template <int R>
static inline void windows_tile(const float* x, long stride, const float* w, long depth, V (&best)[VECTORS]) {
  V acc[R][VECTORS] = {};
  multiply<R>(x, stride, w, depth, acc);
  for (int r = 0; r < R; r++)
    for (int v = 0; v < VECTORS; v++) best[v] = most(best[v], acc[r][v]);
}

template <int R>
static inline void cell_tile(const float* h, long width, const float* w, const float* gates, long all, float* c,
                             float* hidden, long cells, float clip) {
  V acc[R][VECTORS];
  for (int r = 0; r < R; r++)
    for (int v = 0; v < VECTORS; v++) acc[r][v] = load(gates + r * all + v * LANES);
  multiply<R>(h, width, w, width, acc);
  const V bound = same(clip);
  for (int r = 0; r < R; r++) {
    // sigmoid(f) c + sigmoid(i) tanh(j), and sigmoid(o) tanh(c), with one division each
    V i = 1.0f + exponential(-acc[r][0]), f = 1.0f + exponential(-acc[r][1]), o = 1.0f + exponential(-acc[r][2]);
    V j = exponential(2.0f * acc[r][3]), ij = i * (j + 1.0f);
    V cell = (load(c + r * cells) * ij + (j - 1.0f) * f) / (f * ij);
    cell = least(most(cell, -bound), bound);
    V e = exponential(2.0f * cell);
    store(c + r * cells, cell);
    store(hidden + r * cells, (e - 1.0f) / (o * (e + 1.0f)));
  }
}

extern "C" {

int lanes() { return LANES; }
int panel() { return PANEL; }

// x += sigmoid(carry) (relu(transform) - x), in place; `both` is (rows, 2 * size): transform, then carry.
void highway(float* x, const float* both, long rows, long size) {
  for (long r = 0; r < rows; r++, x += size, both += 2 * size)
    for (long k = 0; k < size; k += LANES) {
      V old = load(x + k), transform = most(load(both + k), V{});
      store(x + k, old + (transform - old) / (1.0f + exponential(-load(both + size + k))));
    }
}

// Each filter's maximum over the windows of each word, plus its bias.
//   ids (words, columns): characters; used (words): those before the padding; table (characters, size)
//   y (words, stride), of which panels * PANEL columns are written; space: (columns * size) floats
// A word's windows start at every character and at the first position of padding.
void convolve(const int32_t* ids, const int32_t* used, long words, long columns, const float* table, long size,
              long width, const float* w, const float* bias, long panels, float* y, long stride, float* space) {
  for (long n = 0; n < words; n++) {
    const long length = std::min(used[n] + width, columns), places = length - width + 1;
    for (long k = 0; k < length; k++)
      std::memcpy(space + k * size, table + ids[n * columns + k] * size, size * sizeof(float));
    for (long p = 0; p < panels; p++) {
      V best[VECTORS];
      for (int v = 0; v < VECTORS; v++) best[v] = same(-__builtin_inff());
      tiles(places, [&](long first, int r) {
#define CALL(R) windows_tile<R>(space + first * size, size, w + p * width * size * PANEL, width * size, best)
        BY_ROWS(r, CALL)
#undef CALL
      });
      for (int v = 0; v < VECTORS; v++)
        store(y + n * stride + p * PANEL + v * LANES, best[v] + load(bias + p * PANEL + v * LANES));
    }
  }
}

// The time loop of one direction of one layer.
//   gates (N, 4 * cells): products of the input, with biases; each LANES cells: i, f, o, j
//   sizes (steps): rows of each step, never increasing
//   recurrent: panels of gates by `width` steps; projection: panels of outputs by `cells` steps
//   h (sizes[0], width), c (sizes[0], cells): states before, and at the end of each row after
//   hidden (sizes[0], cells): space; y (N, width)
void lstm(const float* gates, const long* sizes, long steps, const float* recurrent, const float* projection, long cells,
          long width, float cell_clip, float output_clip, float* h, float* c, float* hidden, float* y) {
  const V bound = same(output_clip);
  const long all = 4 * cells;
  for (long t = 0; t < steps; t++) {
    const long n = sizes[t];
    for (long p = 0; p < cells / LANES; p++)
      tiles(n, [&](long row, int r) {
#define CALL(R) cell_tile<R>(h + row * width, width, recurrent + p * width * PANEL, gates + row * all + p * PANEL, all, \
                             c + row * cells + p * LANES, hidden + row * cells + p * LANES, cells, cell_clip)
        BY_ROWS(r, CALL)
#undef CALL
      });
    product(hidden, n, projection, width / PANEL, cells, h);
    for (long k = 0; k < n * width; k += LANES) store(h + k, least(most(load(h + k), -bound), bound));
    std::memcpy(y, h, n * width * sizeof(float));
    gates += n * all, y += n * width;
  }
}
}
