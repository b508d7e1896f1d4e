// Recurrent layers in training: all steps of a cell, forward and backward. Torch computes gradients of weights, which are
// products over all steps. A row's numbers depend neither on other rows nor on the number of threads.
#pragma once

#include "products.h"
#include "team.h"

enum Cell { GRU, HIGHWAY, COUPLED, PROJECTED };  // the cells of `recurrent.py`

// The arguments of `recurrence`. All arrays have rows: of words, step after step, or of sentences, longest first. `size` and
// `width` are the sizes of a row's c and h, multiples of 2 * LANES. `base` and `to_base` are bfloat16 if products are.
struct Recurrence {
  const long* starts;  // (steps + 1): of each step's words
  const float *base, *extra, *recurrent, *projection;  // added to the gates, beside them; packed weights, back: transposed
  const float *h, *c, *mask, *gradient;  // of sentences: before the first step, factors or null; of words: of `out`
  float *before, *state, *hidden, *out;  // of words: factors of `recurrent`, kept values, factors of `projection`
  float *to_base, *to_extra, *to_out, *to_h, *to_c;  // gradients; of what is clipped to be `out`; of sentences, zeros at first
  float cell_clip, output_clip;
  long cell, backward, steps, rows, size, width, gates, others, kept, base_row, extra_row;  // floats from row to row
};

// y (rows, up(outputs, PANEL)) = x (rows, inputs) times packed weights.
template <Factors F>
static void times(const float* x, long rows, long inputs, const float* w, long outputs, std::vector<float>& space, float* y) {
  const long block = apart<F>(rows), row = up(outputs, PANEL), partial = words<F>(inputs) / LANES * block;
  space.resize(std::max<size_t>(space.size(), partial + rows * PANEL));
  pack<F>(x, rows, inputs, inputs, space.data(), block);
  product<F>(space.data(), rows, block, w, 0, row / PANEL, words<F>(inputs), space.data() + partial, zero,
             [&](auto& acc, long p, long r) { keep(acc, y + r * row + p * PANEL, row); });
}

INLINE V of_sigmoid(V gradient, V y) { return gradient * y * (1.0f - y); }
INLINE V of_tanh(V gradient, V y) { return gradient * (1.0f - y * y); }
INLINE V of_clip(V gradient, V y, float bound) { return (V)((I)gradient & (I)((y < bound) & (y > -bound))); }

// LANES numbers of a word: from its arrays, `size` apart for each gate.
struct Place {
  long word, halves;  // row of `base`, and whether `base` is bfloat16
  const float *base, *extra, *sums, *before, *c, *gradient;
  float *state, *out, *to_base, *to_extra, *to_h, *to_c;
};

template <Cell C>
INLINE void ahead(const Place& at, long size, float clip) {
  auto gate = [&](long g) { return load(at.base, at.word + g * size, at.halves) + load(at.sums + g * size); };
  auto keep = [&](long k, V v) { store(at.state + k * size, v); };
  if constexpr (C == GRU) {
    V rz[] = {gate(0) + load(at.extra), gate(1) + load(at.extra + size)}, own = gate(2);
    activate<0>(rz);
    const V n = tanh_of(load(at.extra + 2 * size) + rz[0] * own);
    store(at.out, n + rz[1] * (load(at.before) - n));
    keep(0, rz[0]), keep(1, rz[1]), keep(2, n), keep(3, own);
  } else {
    constexpr int O = C == PROJECTED ? 3 : 2, J = C == HIGHWAY ? 4 : 1;
    V x[] = {gate(J), gate(0), gate(O), C == HIGHWAY ? gate(1) : C == PROJECTED ? gate(2) + 1.0f : V{},
             C == HIGHWAY ? gate(3) : V{}};
    activate<1>(x);
    const auto& [j, i, o, f, r] = x;
    const V before = load(at.c), next = C == COUPLED ? before + i * (j - before) : f * before + i * j;
    const V c = C == PROJECTED ? within(next, same(clip)) : next, h = o * tanh_of(c);
    if constexpr (C == HIGHWAY) {
      const V highway = load(at.extra);
      store(at.out, highway + r * (h - highway));
    } else store(at.out, h);
    keep(0, c);
    for (int k = 0; k < (C == HIGHWAY ? 5 : C == PROJECTED ? 4 : 3); k++) keep(k + 1, x[k]);
  }
}

// `gradient` and `to_c` belong to h and c after the step; `to_h` gets the part that bypasses the product.
template <Cell C>
INLINE void back(const Place& at, long size, float clip) {
  auto kept = [&](long k) { return load(at.state + k * size); };
  auto give = [&](float* to, long g, V v) { store(to + g * size, v); };
  V h = load(at.gradient);
  if constexpr (C == GRU) {
    const V r = kept(0), z = kept(1), n = kept(2), to_n = of_tanh(h * (1.0f - z), n), to_r = of_sigmoid(to_n * kept(3), r);
    const V to_z = of_sigmoid(h * (load(at.before) - n), z);
    give(at.to_base, 0, to_r), give(at.to_base, 1, to_z), give(at.to_base, 2, to_n * r);
    give(at.to_extra, 0, to_r), give(at.to_extra, 1, to_z), give(at.to_extra, 2, to_n);
    give(at.to_h, 0, h * z);
  } else {
    const V c = kept(0), j = kept(1), i = kept(2), o = kept(3), before = load(at.c), squashed = tanh_of(c);
    if constexpr (C == HIGHWAY) {
      const V r = kept(5), highway = load(at.extra);
      give(at.to_base, 3, of_sigmoid(h * (o * squashed - highway), r));
      give(at.to_extra, 0, h * (1.0f - r));
      h *= r;
    }
    V to_c = load(at.to_c) + of_tanh(h * o, squashed);
    if (C == PROJECTED) to_c = of_clip(to_c, c, clip);
    give(at.to_base, C == PROJECTED ? 3 : 2, of_sigmoid(h * squashed, o));
    give(at.to_base, 0, of_sigmoid(to_c * (C == COUPLED ? j - before : j), i));
    give(at.to_base, C == HIGHWAY ? 4 : 1, of_tanh(to_c * i, j));
    if (C != COUPLED) give(at.to_base, C == HIGHWAY ? 1 : 2, of_sigmoid(to_c * before, kept(4)));
    give(at.to_c, 0, to_c * (C == COUPLED ? 1.0f - i : kept(4)));
    if (C != PROJECTED) give(at.to_h, 0, V{});
  }
}

// Some of the sentences, which are independent of the others.
template <Cell C>
static void run(const Recurrence& all, long factors, Share own) {
  const long size = all.size, width = all.width, most = own.last - own.first, backward = all.backward, halves = factors != FLOATS;
  const long row = up(size, PANEL), wide = up(width, PANEL), gates = all.gates * size, many = up(gates, PANEL);
  std::vector<float> space, sums(most * std::max(many, wide)), outputs(most * std::max(row, wide));
  auto each = [&](long number, long columns, auto run) {
    for (long r = 0; r < number; r++)
      for (long k = 0; k < columns; k += LANES) run(r, k);
  };
  auto multiply = [&](const float* x, long n, long in, const float* w, long out, std::vector<float>& y) {
    CALL(times, x, n, in, w, out, space, y.data());
  };
  for (long s = 0; s < all.steps; s++) {
    const long t = backward ? all.steps - 1 - s : s, here = all.starts[t] + own.first;
    const long n = std::min(all.starts[t + 1] - all.starts[t], own.last) - own.first;
    const long earlier = all.starts[t ? t - 1 : 0] + own.first;
    if (n <= 0) continue;
    auto masked = [&](V v, long r, long k) { return all.mask ? v * load(all.mask + (own.first + r) * size + k) : v; };
    float* const to_base = halves ? sums.data() : all.to_base + here * gates;
    auto cell = [&](long r, long k) {
      const long word = here + r, sentence = (own.first + r) * size + k, kept = all.kept * size;
      const Place at{
          word * all.base_row + k, halves, all.base, all.extra + word * all.extra_row + k,
          sums.data() + r * many + k, all.before + word * width + k,
          t ? all.state + (earlier + r) * kept + k : all.c + sentence, outputs.data() + r * row + k, all.state + word * kept + k,
          (C == PROJECTED ? all.hidden : all.out) + word * size + k, to_base + r * gates + k,
          all.to_extra + word * all.others * size + k, all.to_h + sentence, all.to_c + sentence};
      backward ? back<C>(at, size, all.cell_clip) : ahead<C>(at, size, all.cell_clip);
    };
    float* const h = (backward ? all.to_h : const_cast<float*>(all.h)) + own.first * width;
    if (backward) {
      each(n, width, [&](long r, long k) {
        const long to = (here + r) * width + k;
        const V sum = load(all.gradient + to) + load(h + r * width + k);
        if (C == PROJECTED) store(all.to_out + to, of_clip(sum, load(all.out + to), all.output_clip));
        else store(outputs.data() + r * row + k, sum);
      });
      if (C == PROJECTED) multiply(all.to_out + here * width, n, width, all.projection, size, outputs);
      each(n, size, cell);
      for (long k = 0; halves && k < n * gates; k += LANES) store(all.to_base, here * gates + k, load(to_base + k), true);
      multiply(to_base, n, gates, all.recurrent, width, sums);  // which copies the rows before it writes sums
      each(n, width, [&](long r, long k) {
        const V sum = masked(load(sums.data() + r * wide + k), r, k);
        store(h + r * width + k, C == PROJECTED ? sum : sum + load(h + r * width + k));
      });
    } else {
      each(n, width, [&](long r, long k) {
        store(all.before + (here + r) * width + k, masked(load((t ? all.out + earlier * width : h) + r * width + k), r, k));
      });
      multiply(all.before + here * width, n, width, all.recurrent, gates, sums);
      each(n, size, cell);
      if (C != PROJECTED) continue;
      multiply(all.hidden + here * size, n, size, all.projection, width, outputs);
      each(n, width, [&](long r, long k) {
        store(all.out + (here + r) * width + k, within(load(outputs.data() + r * wide + k), same(all.output_clip)));
      });
    }
  }
}
