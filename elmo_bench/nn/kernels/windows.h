// Convolutions over the characters of words: each filter's largest value, and in training its window, the only one through
// which gradients go back. The windows of a word are rows of a product, one character after another.
#pragma once

#include "products.h"
#include "team.h"

// The largest products of `windows` rows, `size` words apart, with a panel of w, and on request the first row of each.
template <Factors F, bool WHERE = false>
INLINE void maxima(const float* from, long windows, long size, const float* w, long depth, V (&best)[VECTORS],
                   V (&where)[VECTORS]) {
  for (V& values : best) values = same(-__builtin_inff());
  const auto compare = [&](auto& acc, long row) {
    for (auto& sums : acc) {
      for (int v = 0; v < VECTORS; v++) {
        if (WHERE) where[v] = sums[v] > best[v] ? same(row) : where[v];
        best[v] = most(best[v], sums[v]);
      }
      row++;
    }
  };
  if constexpr (F == AMX)
    product_amx(from, windows, size, LANES, w, depth, [](auto& acc, long row) { zero(acc, 0, row); }, compare);
  else
    tiles(windows, [&](auto r, long row, long) {
      V acc[decltype(r)::value][VECTORS];
      zero(acc, 0, row);
      multiply<F>(from + row * size, size, LANES, w, depth, nullptr, 0, acc);
      compare(acc, row);
    });
}

// The arguments of `windows` and `windows_back`, of filters of one width; words are `apart` floats of x apart.
struct Windows {
  const float *x, *w;      // characters; filters: packed, `depth` words each, or back: (number, depth)
  const long* windows;     // (count) of each word
  long count, apart, size, depth, number, row;
  float *out, *where;      // of each word `row`: the largest products, or back their gradients; their windows
  float *to_x, *to_w;      // back: as x, zeros at first; (number, depth up to a multiple of PANEL)
};

template <Factors F>
static void windows_(const Windows& all, Share words) {
  [[maybe_unused]] const Ready<F> ready;
  for (long k = 0; k < all.number; k += PANEL)
    for (long n = words.first; n < words.last; n++) {
      V tile[2][1][VECTORS] = {};
      maxima<F, true>(all.x + n * all.apart, all.windows[n], all.size, all.w + k * all.depth, all.depth, tile[0][0], tile[1][0]);
      keep(tile[0], all.out + n * all.row + k, PANEL), keep(tile[1], all.where + n * all.row + k, PANEL);
    }
}

// Each thread has some of the filters for `to_w`, and some of the words for `to_x`: results do not depend on their number.
static void windows_back_(const Windows& all, Share words, Share filters) {
  auto window = [&](long n, long f) { return n * all.apart + static_cast<long>(all.where[n * all.row + f]) * all.size; };
  for (long f = filters.first; f < filters.last; f++)
    for (long k = 0; k < all.depth; k += PANEL) {
      V sums[1][VECTORS] = {};
      for (long n = 0; n < all.count; n++)
        for (int v = 0; v < VECTORS; v++) sums[0][v] += all.out[n * all.row + f] * load(all.x + window(n, f) + k + v * LANES);
      keep(sums, all.to_w + f * up(all.depth, PANEL) + k, PANEL);
    }
  for (long n = words.first; n < words.last; n++)
    for (long f = 0; f < all.number; f++) {
      const float factor = all.out[n * all.row + f], *from = all.w + f * all.depth;
      float* to = all.to_x + window(n, f);
      for (long k = 0; factor != 0.0f && k < all.depth; k++) to[k] += factor * from[k];
    }
}
