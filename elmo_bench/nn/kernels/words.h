// The biLM's token vectors: characters, convolutions with their maxima, highways, projection.
#pragma once

#include <memory>

#include "windows.h"

// The arguments of `encode`.
struct Words {
  const int32_t *ids, *used;  // (words, columns) characters; (words) numbers of characters before the padding
  long count, columns;
  const float* table;  // (characters, size) embeddings
  long size;
  const long* filters;  // (widths, 2): width and number of each kind
  long widths, squash, features, filled, highways, projected;  // tanh, not relu; number of filters, also rounded up to a multiple of PANEL / 2
  // Of each kind of filter (number, width * size) and bias; of each highway (2 * filled, filled) and bias, in each panel two
  // vectors of transform, then two of carry; with `projected` panels of outputs (outputs, filled) and bias.
  const float* const* weights;
  long most;   // words that a thread encodes at once
  float* out;  // rows of `stride` floats, of which projected * PANEL, or `filled`, are written
  long stride;
};

// Floats that start at a cache line.
struct Space {
  explicit Space(long floats) : held(new V[(floats + LANES - 1) / LANES]) {}
  operator float*() const { return reinterpret_cast<float*>(held.get()); }
  std::unique_ptr<V[]> held;
};

// The words of one thread.
template <Factors F>
class Encoder {
 public:
  explicit Encoder(const Words& all) : all(all) {
    for (long i = 0; i < all.widths; i++) widest = std::max(widest, all.filters[2 * i]);
  }

  void encode(long first, long count) {
    const float* const* weights = all.weights;
    for (long n = 0; n < count; n++) std::fill(x + n * wide + all.features, x + n * wide + all.filled, 0.0f);
    read(first, count);
    long done = 0;
    for (long i = 0; i < all.widths; i++, weights += 2) {
      convolve(first, count, all.filters[2 * i], weights[0], weights[1], all.filters[2 * i + 1], x + done);
      done += all.filters[2 * i + 1];
    }
    for (long i = 0; i < all.highways; i++, weights += 2) highway(count, weights[0], weights[1]);
    if (all.projected) {
      pack<F>(x, count, wide, all.filled, operand, apart<F>(count));
      product<F>(operand, count, apart<F>(count), weights[0], 0, all.projected, words<F>(all.filled), partial,
                 starting(weights[1]),
                 [&](auto& acc, long p, long row) { keep(acc, out(first + row) + p * PANEL, all.stride); });
    } else for (long n = 0; n < count; n++) std::copy_n(x + n * wide, all.filled, out(first + n));
  }

 private:
  // The characters of a word that occur in any of its windows.
  long length(long word) const { return std::min(all.used[word] + widest, all.columns); }

  void read(long first, long count) {
    float* end = characters;
    for (long n = first; n < first + count; n++) {
      for (long k = 0; k < length(n); k++, end += all.size)
        std::memcpy(end, all.table + all.ids[n * all.columns + k] * all.size, all.size * sizeof(float));
      if (F != FLOATS) end = std::fill_n(end, LANES, 0.0f);  // factors for the padding of the weights
    }
  }

  // A word's windows start at every character and at the first position of padding.
  void convolve(long first, long count, long width, const float* w, const float* bias, long number, float* y) {
    const long depth = F == FLOATS ? width * all.size : up(width * all.size, LANES);
    for (long p = 0; p < up(number, PANEL) / PANEL; p++, w += depth * PANEL, bias += PANEL, y += PANEL) {
      const float* from = characters;
      for (long n = 0; n < count; n++) {
        const long word = first + n, windows = std::min<long>(all.used[word] + 1, all.columns - width + 1);
        V best[VECTORS], unused[VECTORS];
        maxima<F>(from, windows, all.size, w, depth, best, unused);
        for (int v = 0; v < VECTORS; v++) {
          const V sum = best[v] + load(bias + v * LANES);
          store(y + n * wide + v * LANES, all.squash ? tanh_of(sum) : most(sum, V{}));
        }
        from += length(word) * all.size + (F == FLOATS ? 0 : LANES);
      }
    }
  }

  // x += sigmoid(carry) (relu(transform) - x); a panel of w holds two vectors of transform, then two of carry.
  void highway(long count, const float* w, const float* bias) {
    constexpr int HALF_PANEL = PANEL / 2;
    pack<F>(x, count, wide, all.filled, operand, apart<F>(count));
    product<F>(operand, count, apart<F>(count), w, 0, all.filled / HALF_PANEL, words<F>(all.filled), partial, starting(bias),
               [&](auto& acc, long p, long row) {
                 for (auto& sums : acc) {
                   float* place = x + row++ * wide + p * HALF_PANEL;
                   for (int v = 0; v < VECTORS / 2; v++, place += LANES) {
                     const V old = load(place), transform = most(sums[v], V{});
                     store(place, old + (transform - old) * sigmoid_of(sums[v + VECTORS / 2]));
                   }
                 }
               });
  }

  float* out(long word) const { return all.out + word * all.stride; }

  [[maybe_unused]] const Ready<F> ready{};
  const Words& all;
  long widest = 0;  // filter
  const long wide = all.filled + PANEL;  // filters that do not fill a panel write beyond it
  const Space characters{all.most * (all.columns * all.size + LANES) + AMX_ROWS * all.size}, x{all.most * wide},
      operand{up(words<F>(all.filled), LANES) / LANES * apart<F>(all.most)}, partial{all.most * PANEL};
};

template <Factors F>
static void encode_(const Words& all, Team& team, long member) {
  const Share own(all.count, team.size, member);
  const long times = (own.last - own.first + all.most - 1) / all.most;
  Encoder<F> encoder(all);
  for (long i = 0; i < times; i++) {
    const Share now(own.last - own.first, times, i);  // nearly equal numbers at once
    encoder.encode(own.first + now.first, now.last - now.first);
  }
}
