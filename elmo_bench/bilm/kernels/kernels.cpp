// The frozen biLM: the token vectors of words, and the LSTMs. `library.py` compiles and calls it, `checked.py` checks it.

#include "lstm.h"
#include "products.h"
#include "words.h"

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

// The token vectors of words.
//   ids (words, columns): characters; used (words): those before the padding; table (characters, size): words each
//   filters (widths, 2): width and number of each kind; squash: tanh after their maxima, not relu; features: all filters,
//   filled: the same, up to a multiple of PANEL / 2
//   weights: for each kind of filter (number, width * size) and bias; for each highway (2 * filled, filled) and bias, in each
//   panel two vectors of transform, then two of carry; with `projected` panels of outputs (outputs, filled) and bias
//   most: words that a thread encodes at once; space (threads, room(...))
//   out: rows of `stride` floats, of which projected * PANEL, or else `filled`, are written
void encode(long factors, const int32_t* ids, const int32_t* used, long count, long columns, const float* table, long size,
            const long* filters, long widths, long squash, long features, long filled, long highways, long projected,
            const float* const* weights, long most, float* space, float* out, long stride, long threads) {
  const Words all{ids, used, columns, table, size, filters, widths, squash, features, filled, highways, projected,
                  weights, most, space, out, stride};
  Team team;
  team.run(threads, [&](long member) { CALL(encode_, all, count, team, member); });
}

// The floats that a thread of `encode` needs.
long room(long factors, long most, long columns, long size, long filled) {
  return CALL(room_, most, columns, size, filled);
}

// Both directions of all layers; with `skip`, every layer but the first adds its input to its output.
//   tokens (words, width), width a multiple of PANEL; order, places (2, words): for each packed word of a direction its token
//   and its place in `out`, or -1; sizes (steps): rows of each step, never increasing
//   weights: those of each direction's layers: input (4 * cells outputs, each LANES cells: i, f, o, j), bias (4 * cells),
//   recurrent (like input), projection (`width` outputs)
//   h (2, layers, sizes[0], width), c (2, layers, sizes[0], cells): states before, and at the end of each row after
//   out (places, layers + 1, 2, width), of which [:, 1:] are written
//   space: operand for `most_rows` inputs; before, hidden, cell for sizes[0] outputs, cells, and cells as floats;
//   outputs (2, words, width), partial (threads, most_rows, PANEL), gates (most_rows, 4 * cells); most_rows >= sizes[0]
void lstm(long factors, const float* tokens, const long* order, const long* places, long words, const long* sizes,
          long steps, const float* const* weights, long layers, long cells, long width, float cell_clip,
          float output_clip, long skip, float* h, float* c, float* out, float* operand, float* before, float* hidden,
          float* outputs, float* cell, float* partial, float* gates, long most_rows, long threads) {
  const Directions all{tokens, order, places, words, sizes, steps, weights, layers, cells, width, cell_clip, output_clip,
                       skip, h, c, out, operand, before, hidden, outputs, cell, partial, gates, most_rows};
  Team team;
  team.run(threads, [&](long member) { CALL(lstm_, all, team, member); });
}
}
