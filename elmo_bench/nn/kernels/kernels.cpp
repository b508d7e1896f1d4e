// The frozen biLM: the token vectors of words, and the LSTMs; and recurrent layers in training. `library.py` and
// `recurrent.py` call them, `checked.py` compares them with torch.

#include "lstm.h"
#include "recurrent.h"
#include "words.h"

extern "C" {

int lanes() { return LANES; }
int panel() { return PANEL; }
// The fastest products of bfloat16 here; FLOATS if there are none.
int halves() { return !HALVES ? FLOATS : amx_permitted() ? AMX : PAIRS; }
// Floats between the blocks of an operand.
long distance(long factors, long rows) { return factors == AMX ? apart<AMX>(rows) : apart<FLOATS>(rows); }

// `factors`, FLOATS or what `halves` says, are what all of the following multiply. With bfloat16, "a multiple of LANES" is
// one of 2 * LANES, and the words of a panel are filled up with zeros to a multiple of LANES.

// Each gets a structure with its arguments.

// The token vectors of words.
void encode(const Words* all, long factors, long threads) {
  Team team;
  team.run(threads, [&](long member) { CALL(encode_, *all, team, member); });
}

// The floats that a thread of `encode` needs.
long room(long factors, long most, long columns, long size, long filled) { return CALL(room_, most, columns, size, filled); }

// The frozen biLM's LSTMs.
void lstm(const Directions* all, long factors, long threads) {
  Team team;
  team.run(threads, [&](long member) { CALL(lstm_, *all, team, member); });
}

// All steps of one direction of a recurrent layer, with gradients.
void recurrence(const Recurrence* all, long factors, long threads) {
  Team team;
  constexpr decltype(&run<GRU>) cells[] = {run<GRU>, run<HIGHWAY>, run<COUPLED>, run<PROJECTED>};
  team.run(threads, [&](long member) { cells[all->cell](*all, factors, Share(all->rows, team.size, member)); });
}
}
