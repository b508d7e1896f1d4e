// The time loops of recurrent layers, forward and backward.
//
// Arrays have torch's order of gates. Rows are words; `rows` and `places` say where those of each step stand, the
// longest sentences first. In the space of a loop the `size` cells are filled up to whole vectors.
#pragma once

#include <utility>

#include "products.h"

static inline V sigmoid(V x) { return 1.0f / (1.0f + exponential(-x)); }
static inline V tanh(V x) { V e = exponential(2.0f * x); return (e - 1.0f) / (e + 1.0f); }
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
        multiply<R, G>(h + first * cells, cells, 1, packed.data + k * size * G, G * LANES, size, product);
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
