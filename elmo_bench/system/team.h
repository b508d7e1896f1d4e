// Threads that compute one thing together, step by step.
#pragma once

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
static inline void pause_briefly() { _mm_pause(); }
#else
static inline void pause_briefly() {}
#endif

// The threads wait for each other thousands of times a second, too short for the system's ways of waiting: they ask again and
// again, and when it takes longer, let others run meanwhile.
class Team {
 public:
  long size = 1;

  // Returns when every thread of the team has called it.
  void wait() {
    if (size == 1) return;
    const long here = round.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
      arrived.store(0, std::memory_order_relaxed);
      round.store(here + 1, std::memory_order_release);
    } else {
      until([&] { return round.load(std::memory_order_acquire) != here; });
    }
  }

  // part(number) by as many of `wanted` threads as can be had; `size` is their number when it starts.
  template <class Part>
  void run(long wanted, Part part) {
    std::vector<std::thread> others;
    std::atomic<bool> complete{false};
    try {
      others.reserve(wanted - 1);
      for (long number = 1; number < wanted; number++)
        others.emplace_back([&, number] {
          until([&] { return complete.load(std::memory_order_acquire); });
          part(number);
        });
    } catch (const std::exception&) {  // those that could be started do the work
    }
    size = static_cast<long>(others.size()) + 1;
    complete.store(true, std::memory_order_release);
    part(0);
    for (std::thread& other : others) other.join();
  }

 private:
  static constexpr int PAUSES = 200;  // about ten microseconds

  template <class Condition>
  static void until(Condition condition) {
    for (int asked = 0; !condition(); asked++) asked < PAUSES ? pause_briefly() : std::this_thread::yield();
  }

  std::atomic<long> arrived{0}, round{0};
};

// The part `first` to `last` of `all` things that a member of a team does.
struct Share {
  const long first, last;
  Share(long all, const Team& team, long number) : first(all * number / team.size), last(all * (number + 1) / team.size) {}
};
