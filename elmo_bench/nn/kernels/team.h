// Threads that compute one thing together, step by step.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <thread>
#include <vector>

static inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// OpenMP's threads of this process, torch's: after each of torch's operations they spin on their cores for a while, ready for
// the next, and additional threads would have to share these cores.
struct OpenMP {
  void (*parallel)(void (*part)(void*), void* data, unsigned threads, unsigned flags);
  int (*number)();
  int (*size)();
  bool usable;

  static const OpenMP& here() { static const OpenMP found = search(); return found; }

 private:
  // A process may have loaded OpenMP twice: all three come from the first library.
  static OpenMP search() {
    Dl_info info;
    void* const first = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    void* const library = first && dladdr(first, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (!library) return {};
    return {reinterpret_cast<decltype(parallel)>(first), reinterpret_cast<decltype(number)>(dlsym(library, "omp_get_thread_num")),
            reinterpret_cast<decltype(size)>(dlsym(library, "omp_get_num_threads")), true};
  }
};

// The threads wait for each other thousands of times a second, mostly too briefly to block in the system: they spin, and
// yield their core after a while, because the thread they wait for may need it.
class Team {
 public:
  long size = 1;

  // Returns when every thread of the team has called it.
  void wait() {
    if (size == 1) return;
    const long here = round.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < size) return until([&] { return round.load() != here; });
    arrived.store(0, std::memory_order_relaxed);
    round.store(here + 1);
  }

  // Runs part(number) on up to `wanted` threads; `size` is their number when it starts.
  template <class Part>
  void run(long wanted, Part part) {
    if (wanted == 1) return part(0);
    const OpenMP& openmp = OpenMP::here();
    if (!openmp.usable) return start(wanted, part);
    auto one = [&] { member(openmp.number(), openmp.size(), part); };
    openmp.parallel([](void* data) { (*static_cast<decltype(one)*>(data))(); }, &one, static_cast<unsigned>(wanted), 0);
  }

 private:
  static constexpr int PAUSES = 1000;  // some tens of microseconds

  template <class Part>
  void start(long wanted, Part& part) {
    std::vector<std::thread> others;
    try {
      others.reserve(wanted - 1);
      for (long number = 1; number < wanted; number++) others.emplace_back([&, number] { member(number, 0, part); });
    } catch (const std::exception&) {  // the started threads do the work
    }
    member(0, static_cast<long>(others.size()) + 1, part);
    for (std::thread& other : others) other.join();
  }

  // The first thread knows the number of threads.
  template <class Part>
  void member(long number, long all, Part& part) {
    if (number == 0) size = all, complete.store(true);
    else until([&] { return complete.load(); });
    part(number);
  }

  template <class Condition>
  void until(Condition condition) {
    for (int asked = 0; !condition(); asked++) asked < PAUSES ? pause_briefly() : std::this_thread::yield();
  }

  std::atomic<bool> complete{false};
  std::atomic<long> arrived{0}, round{0};
};

// The share `first` to `last` of `all` items, divided nearly equally into `parts`.
struct Share {
  const long first, last;
  Share(long all, long parts, long number) : first(all * number / parts), last(all * (number + 1) / parts) {}
};
