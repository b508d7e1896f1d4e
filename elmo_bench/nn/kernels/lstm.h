// The biLM's LSTMs, projected and with both clips: all layers of both directions, by a team of threads.
#pragma once

#include "products.h"
#include "team.h"

// The arguments of `lstm`: both directions of all layers. Space is for `most_rows` >= sizes[0] rows.
struct Directions {
  const float* tokens;         // (words, width), width a multiple of PANEL
  const long *order, *places;  // (2, words): for each packed word of a direction its token, and its row in `out` or -1
  long words;
  const long* sizes;  // (steps): rows of each step, never increasing
  long steps;
  // Of each direction's layers: input (4 * cells outputs, each LANES cells: i, f, o, j), bias, recurrent, projection.
  const float* const* weights;
  long layers, cells, width;
  float cell_clip, output_clip;
  long skip;  // every layer but the first adds its input to its output
  float *h, *c;                       // (2, layers, sizes[0], width or cells): states before, and after each row
  float *out;                         // (places, layers + 1, 2, width), of which [:, 1:] are written
  float *operand, *before, *hidden;   // operands of most_rows inputs, and of sizes[0] outputs and cells
  float *outputs, *cell;              // (2, words, width); cells as floats
  float *partial, *gates;             // (threads, most_rows, PANEL); (most_rows, 4 * cells)
  long most_rows;
};

// The next cells c = sigmoid(f) c + sigmoid(i) tanh(j) and outputs sigmoid(o) tanh(c) of a tile.
template <int R>
INLINE void next_cells(V (&gates)[R][VECTORS], float* c, V clip, V (&output)[R]) {
  for (int r = 0; r < R; r++, c += LANES) {
    V x[] = {gates[r][3], gates[r][0], gates[r][1], gates[r][2]};
    activate<1>(x);
    output[r] = within(x[2] * load(c) + x[1] * x[0], clip);
    store(c, output[r]);
    gates[r][2] = x[3];
  }
  activate<R>(output);
  for (int r = 0; r < R; r++) output[r] *= gates[r][2];
}

// One team member's part of a layer: some of the cells and some of the outputs, so that their weights may stay in its
// second-level cache. The results do not depend on the number of members.
template <Factors F>
class Layer {
 public:
  Layer(const Directions& all, long direction, long layer, Team& team, long member)
      : all(all), direction(direction), layer(layer), team(team), member(member) {}

  void run() {
    load_states();
    for (long t = 0, word = 0; t < all.steps;) {
      long until = t, count = 0;
      while (until < all.steps && (until == t || count + all.sizes[until] <= all.most_rows)) count += all.sizes[until++];
      read(word, count);
      for (long row = 0; t < until; t++) {
        step_cells(all.sizes[t], row, count, t % 2 == 1);
        team.wait();
        step_outputs(all.sizes[t], word);
        team.wait();
        row += all.sizes[t], word += all.sizes[t];
      }
    }
    store_states();
  }

 private:
  void load_states() {
    for (long r = 0; r < rows; r++) {
      for (long p = panels.first; p < panels.last; p++) store(cell(p, r), load(c + r * all.cells + p * LANES));
      for (long j = columns.first * VECTORS; j < columns.last * VECTORS; j++)
        put<F>(all.before, block, r, j, load(h + r * all.width + j * LANES));
    }
  }

  // The products of the inputs of `count` words, which all members pack together.
  void read(long word, long count) {
    const long distance = apart<F>(count);
    const Share own(count, team.size, member);
    for (long r = own.first; r < own.last; r++) {
      const float* x = layer ? below + (word + r) * all.width : all.tokens + order[word + r] * all.width;
      pack<F>(x, 1, all.width, all.width, all.operand + r * LANES, distance);
    }
    team.wait();
    product<F>(all.operand, count, distance, input, panels.first, panels.last, words<F>(all.width), partial, starting(bias),
               [&](auto& acc, long p, long row) { keep(acc, all.gates + (p * count + row) * PANEL, PANEL); });
  }

  // The cells of n rows, whose input products start at `first` of `count`.
  void step_cells(long n, long first, long count, bool back) {
    product<F>(
        all.before, n, block, recurrent, panels.first, panels.last, words<F>(all.width), partial,
        [&](auto& acc, long p, long row) {
          const float* from = all.gates + (p * count + first + row) * PANEL;
          get(acc, from, PANEL);
          // For the next panel, which is too far for the processor's own prefetching.
          for (size_t i = 0; i < sizeof acc / sizeof(float); i += LINE)
            __builtin_prefetch(from + (back ? -count : count) * PANEL + i, 0, 2);
        },
        [&](auto& acc, long p, long row) {
          V output[sizeof acc / sizeof *acc];
          next_cells(acc, cell(p, row), same(all.cell_clip), output);
          for (V values : output) put<F>(all.hidden, block, row++, p, values);
        },
        back);  // weights used last are used first: they may still be in the second-level cache
  }

  // The outputs of n rows, from word `word` on.
  void step_outputs(long n, long word) {
    product<F>(all.hidden, n, block, projection, columns.first, columns.last, words<F>(all.cells), partial, zero,
               [&](auto& acc, long p, long row) {
                 for (auto& sums : acc) {
                   for (int v = 0; v < VECTORS; v++) write(row, word, p * VECTORS + v, within(sums[v], same(all.output_clip)));
                   row++;
                 }
               });
  }

  void write(long row, long first, long j, V output) {
    const long k = j * LANES, word = first + row, place = places[word];
    store(h + row * all.width + k, output);
    put<F>(all.before, block, row, j, output);
    if (layer && all.skip) output += load(below + word * all.width + k);
    store(above + word * all.width + k, output);
    if (place >= 0) store(all.out + ((place * (all.layers + 1) + layer + 1) * 2 + direction) * all.width + k, output);
  }

  void store_states() {
    for (long r = 0; r < rows; r++)
      for (long p = panels.first; p < panels.last; p++) store(c + r * all.cells + p * LANES, load(cell(p, r)));
  }

  float* cell(long p, long row) const { return all.cell + p * block + row * LANES; }

  const Directions& all;
  const long direction, layer;
  Team& team;
  const long member;
  const long number = direction * all.layers + layer, rows = all.sizes[0], block = apart<F>(rows);
  const float* const* weights = all.weights + 4 * number;
  const float *input = weights[0], *bias = weights[1], *recurrent = weights[2], *projection = weights[3];
  const long *order = all.order + direction * all.words, *places = all.places + direction * all.words;
  // Outputs of the layer below and of this one, plus the inputs if layers are skipped.
  const float* below = all.outputs + (layer + 1) % 2 * all.words * all.width;
  float* above = all.outputs + layer % 2 * all.words * all.width;
  float *h = all.h + number * rows * all.width, *c = all.c + number * rows * all.cells;
  float* partial = all.partial + member * all.most_rows * PANEL;
  const Share panels{all.cells / LANES, team.size, member}, columns{all.width / PANEL, team.size, member};
};

template <Factors F>
static void lstm_(const Directions& all, Team& team, long member) {
  for (long direction = 0; direction < 2; direction++)
    for (long layer = 0; layer < all.layers; layer++) Layer<F>(all, direction, layer, team, member).run();
}
