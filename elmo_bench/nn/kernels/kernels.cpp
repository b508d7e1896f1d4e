// The frozen biLM: the token vectors of words, and the LSTMs; convolutions and recurrent layers in training. The Python
// modules that call these functions check them against torch.

#include "lstm.h"
#include "recurrent.h"
#include "words.h"

// A team of threads runs a function, which gets a structure with its arguments.
template <class Part>
static void shared(long threads, Part part) {
  Team team;
  team.run(threads, [&](long member) { part(team, member); });
}

extern "C" {

int lanes() { return LANES; }
int panel() { return PANEL; }
// The fastest products of bfloat16 here; FLOATS if there are none.
int halves() { return !HALVES ? FLOATS : amx_permitted() ? AMX : PAIRS; }
// Floats between the blocks of an operand.
long distance(long factors, long rows) { return factors == AMX ? apart<AMX>(rows) : apart<FLOATS>(rows); }

// All of the following multiply `factors`: FLOATS, or the result of `halves`. With bfloat16, "a multiple of LANES" means
// one of 2 * LANES, and the words of a panel are padded with zeros to a multiple of LANES.

// The token vectors of words.
void encode(const Words* all, long factors, long threads) {
  shared(threads, [&](Team& team, long member) { CALL(encode_, *all, team, member); });
}

// The frozen biLM's LSTMs.
void lstm(const Directions* all, long factors, long threads) {
  shared(threads, [&](Team& team, long member) { CALL(lstm_, *all, team, member); });
}

// The convolutions of words in training, and their gradients.
void windows(const Windows* all, long factors, long threads) {
  shared(threads, [&](Team& team, long member) { CALL(windows_, *all, Share(all->count, team.size, member)); });
}
void windows_back(const Windows* all, long, long threads) {
  shared(threads, [&](Team& team, long member) {
    windows_back_(*all, Share(all->count, team.size, member), Share(all->number, team.size, member));
  });
}

// All steps of one direction of a recurrent layer, with gradients.
void recurrence(const Recurrence* all, long factors, long threads) {
  constexpr decltype(&run<GRU>) cells[] = {run<GRU>, run<HIGHWAY>, run<COUPLED>, run<PROJECTED>};
  shared(threads, [&](Team& team, long member) { cells[all->cell](*all, factors, Share(all->rows, team.size, member)); });
}
}
