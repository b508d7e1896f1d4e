// The random numbers of dropout.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

// torch's generator, as `torch.get_rng_state` gives it: MT19937 after Matsumoto and Nishimura (1998)
struct Generator {
  uint64_t seed;
  int32_t left, seeded;  // numbers of this round that are left, plus one
  uint64_t next, state[624];
};

// Draws from a generator, and leaves it as torch would. In between the state has 32 bits a number: half the work.
struct Numbers {
  Generator* generator;
  long left, next;
  uint32_t s[624];

  explicit Numbers(Generator* g) : generator(g), left(g->left), next(long(g->next)) {
    for (int k = 0; k < 624; k++) s[k] = uint32_t(g->state[k]);
  }
  Numbers(const Numbers&) = delete;
  ~Numbers() {
    generator->left = int32_t(left), generator->next = uint64_t(next);
    for (int k = 0; k < 624; k++) generator->state[k] = s[k];
  }

  static inline uint32_t twist(uint32_t u, uint32_t v, uint32_t w) {
    const uint32_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
    return w ^ (mixed >> 1) ^ (0x9908b0dfu & -(v & 1u));
  }
  void renew() {
    for (int k = 0; k < 227; k++) s[k] = twist(s[k], s[k + 1], s[k + 397]);
    for (int k = 227; k < 623; k++) s[k] = twist(s[k], s[k + 1], s[k - 227]);
    s[623] = twist(s[623], s[0], s[396]);
    left = 624 + 1, next = 0;
  }
  static inline uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  // The next numbers, at most `most` and at least one; returns how many.
  long draw(long most, uint32_t* to) {
    if (left == 1) renew();
    const long n = std::min(most, left - 1);
    for (long k = 0; k < n; k++) to[k] = tempered(s[next + k]);
    left -= n, next += n;
    return n;
  }
};

// Calls run(k, whether it is a one) for n values that are one with probability p, from the numbers that torch's own
// `bernoulli_` takes: two for each value, the upper half first, whose last 53 bits are a number below 1.
template <class Run>
static void draw(Generator* generator, double p, long n, Run run) {
  constexpr long SOME = 512;
  constexpr uint64_t ONE = uint64_t(1) << 53;
  const uint64_t bound = uint64_t(std::ceil(p * ONE));
  Numbers drawn(generator);
  uint32_t numbers[2 * SOME];
  uint64_t halves[SOME];  // of which the lower one was drawn first: memory begins with it
  for (long done = 0; done < n;) {
    const long values = std::min(n - done, SOME);
    for (long got = 0; got < 2 * values;) got += drawn.draw(2 * values - got, numbers + got);
    std::memcpy(halves, numbers, values * sizeof *halves);
    for (long k = 0; k < values; k++) run(done + k, ((halves[k] << 32 | halves[k] >> 32) & (ONE - 1)) < bound);
    done += values;
  }
}
