// What torch has no fast operation for in training on a CPU: the time loops of recurrent layers, products of pairs, the
// largest or the sum of rows, the steps of a CRF and the random numbers of dropout; float32 but for the CRF, one thread
// each. `kernels.py` compiles, checks and calls it.

#include "chain.h"
#include "loops.h"
#include "pairs.h"
#include "random.h"
#include "reductions.h"

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

int pairs_ahead(const float* g, const float* w, const float* a, const float* b, long size, long hidden, long most,
                long first, long last, float* y) {
  return tried([&] { multiply_pairs(g, w, a, b, size, hidden, most, first, last, y); });
}
int pairs_back(const float* g, const float* w, const float* d, long size, long hidden, long most, long first, long last,
               float* to_a, float* to_b, float* to_g, float* to_w) {
  return tried([&] { multiply_pairs_back(g, w, d, size, hidden, most, first, last, to_a, to_b, to_g, to_w); });
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

// The same if d is the gradient of y's products with w (size): d (rows) times w.
int relu_dropout_score_back(const float* y, const float* d, const float* w, float scale, long rows, long size,
                            float* out) {
  for (long r = 0; r < rows; r++, y += size, out += size)
    for (long k = 0; k < size; k += LANES) {
      const V there = load(y + k, size - k), through = d[r] * load(w + k, size - k) * scale;
      store(out + k, there <= 0.0f ? V{} : through, size - k);
    }
  return 0;
}

int largest_ahead(const float* x, const long* lengths, long parts, long width, float* y) {
  largest(x, lengths, parts, width, y);
  return 0;
}
int largest_back(const float* x, const float* y, const float* d, const long* lengths, long parts, long width,
                 float* d_x) {
  share_with_largest(x, y, d, lengths, parts, width, d_x);
  return 0;
}

int weighted_back(const float* d, const long* words, const float* weights, const long* order, long pairs, long most,
                  long size, float* d_x) {
  add_weighted(d, words, weights, order, pairs, most, size, d_x);
  return 0;
}

int chain_ahead(const double* start, const double* moves, const double* weights, long steps, long rows, long tags,
                double* alphas, double* totals) {
  follow(start, moves, weights, steps, rows, tags, alphas, totals);
  return 0;
}
int chain_back(const double* back, const double* weights, long steps, long rows, long tags, double* betas,
               double* moved) {
  follow_back(back, weights, steps, rows, tags, betas, moved);
  return 0;
}
}
