// Threads that compute one thing together, step by step.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

static inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// OpenMP's threads of this process, torch's: after each of torch's operations they stay at their cores for a while, ready for
// the next, and threads besides them would have to share these cores.
struct OpenMP {
  void (*parallel)(void (*part)(void*), void* data, unsigned threads, unsigned flags);
  int (*number)();
  int (*size)();
  bool usable;

  static const OpenMP& here() { static const OpenMP found = search(); return found; }

 private:
  static OpenMP search() {
    void* const found[] = {dlsym(RTLD_DEFAULT, "GOMP_parallel"), dlsym(RTLD_DEFAULT, "omp_get_thread_num"),
                           dlsym(RTLD_DEFAULT, "omp_get_num_threads")};
    return {reinterpret_cast<decltype(parallel)>(found[0]), reinterpret_cast<decltype(number)>(found[1]),
            reinterpret_cast<decltype(size)>(found[2]),
            found[0] && library(found[0]) == library(found[1]) && library(found[0]) == library(found[2])};
  }
  // A process may have loaded OpenMP twice.
  static void* library(void* function) {
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : nullptr;
  }
};

// The threads wait for each other thousands of times a second, mostly too short for the system's way of waiting: they ask
// again and again, and sleep when it takes longer, because the core may be needed for what they wait for.
class Team {
 public:
  long size = 1;

  // Returns when every thread of the team has called it.
  void wait() {
    if (size == 1) return;
    const long here = round.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
      arrived.store(0, std::memory_order_relaxed);
      announce([&] { round.store(here + 1); });
    } else {
      until([&] { return round.load() != here; });
    }
  }

  // part(number) by as many of `wanted` threads as can be had; `size` is their number when it starts.
  template <class Part>
  void run(long wanted, Part part) {
    if (wanted == 1) return part(0);
    const OpenMP& openmp = OpenMP::here();
    if (openmp.usable) {
      auto one = [&] { member(openmp.number(), openmp.size(), part); };
      openmp.parallel([](void* data) { (*static_cast<decltype(one)*>(data))(); }, &one, static_cast<unsigned>(wanted), 0);
    } else {
      start(wanted, part);
    }
  }

 private:
  static constexpr int PAUSES = 1000;  // some tens of microseconds

  template <class Part>
  void start(long wanted, Part& part) {
    std::vector<std::thread> others;
    try {
      others.reserve(wanted - 1);
      for (long number = 1; number < wanted; number++) others.emplace_back([&, number] { member(number, 0, part); });
    } catch (const std::exception&) {  // those that could be started do the work
    }
    member(0, static_cast<long>(others.size()) + 1, part);
    for (std::thread& other : others) other.join();
  }

  // The first knows how many there are.
  template <class Part>
  void member(long number, long all, Part& part) {
    if (number == 0) {
      size = all;
      announce([&] { complete.store(true); });
    } else {
      until([&] { return complete.load(); });
    }
    part(number);
  }

  template <class Condition>
  void until(Condition condition) {
    for (int asked = 0; asked < PAUSES; asked++) {
      if (condition()) return;
      pause_briefly();
    }
    std::unique_lock<std::mutex> lock(mutex);
    sleepers++;
    changed.wait(lock, condition);
    sleepers--;
  }

  // A sleeper counts itself before it asks once more, and a change is made before sleepers are counted: none is missed.
  template <class Change>
  void announce(Change change) {
    change();
    if (sleepers.load() == 0) return;
    std::lock_guard<std::mutex> lock(mutex);
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<long> sleepers{0};
  std::atomic<bool> complete{false};
  std::atomic<long> arrived{0}, round{0};
};

// The part `first` to `last` of `all` things that are shared in `parts`, nearly equally.
struct Share {
  const long first, last;
  Share(long all, long parts, long number) : first(all * number / parts), last(all * (number + 1) / parts) {}
};
