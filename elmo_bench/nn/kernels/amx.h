// Products of bfloat16 by AMX's tiles of registers, if the processor has them and the system permits their use.
#pragma once

#include "vectors.h"

constexpr long AMX_ROWS = 16;  // of a tile, each with LANES words

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
constexpr bool HAS_AMX = true;

// Whether this process may use the tiles: Linux requires a request, since they enlarge a thread's saved state.
static bool amx_permitted() {
  constexpr long REQUEST = 0x1023, TILE_DATA = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool permitted = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
  return permitted;
}

struct alignas(64) TileLayout {
  uint8_t palette, other[15];
  uint16_t bytes[16];  // of a row
  uint8_t rows[16];
};
static const TileLayout EIGHT_FULL = {1, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

// Before this point, all writes are in memory: GCC's intrinsics declare only the first bytes of an array, or none.
INLINE void settle(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// While it exists, the thread's eight tiles have AMX_ROWS rows of LANES words; then their old layout is restored.
struct Amx {
  TileLayout before;
  Amx() { settle(&before), _tile_storeconfig(&before), settle(&EIGHT_FULL), _tile_loadconfig(&EIGHT_FULL); }
  Amx(const Amx&) = delete;
  ~Amx() {
    settle(&before);
    if (before.palette) _tile_loadconfig(&before);
    else _tile_release();
  }
};

// sums (AMX_ROWS, PANEL), or with `twice` (2 * AMX_ROWS, PANEL) = x w for pairs of bfloat16, with sums in float32.
//   x: rows `row` floats apart, of LANES words in each of the blocks, which are `block` floats apart
//   w: a panel of `depth` words, a multiple of LANES
INLINE void multiply_amx(const float* x, long row, long block, const float* w, long depth, bool twice, float* sums) {
  constexpr long WIDE = PANEL * sizeof(float);
  const long high = row * sizeof(float);
  settle(x);
  for (long v = 0; v < VECTORS; v += twice ? 2 : 4, w += 2 * LANES, sums += 2 * LANES) {
    _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
    const float *upper = x, *weights = w;
    for (long k = 0; k < depth; k += LANES, upper += block, weights += LANES * PANEL) {
      _tile_loadd(4, upper, high);
      _tile_loadd(6, weights, WIDE);
      _tile_loadd(7, weights + LANES, WIDE);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if (twice) {
        _tile_loadd(5, upper + AMX_ROWS * row, high);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      } else {
        _tile_loadd(6, weights + 2 * LANES, WIDE);
        _tile_loadd(7, weights + 3 * LANES, WIDE);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 7);
      }
    }
    float* others = sums + (twice ? AMX_ROWS * PANEL : 2 * LANES);
    _tile_stored(0, sums, WIDE);
    _tile_stored(1, sums + LANES, WIDE);
    _tile_stored(2, others, WIDE);
    _tile_stored(3, others + LANES, WIDE);
  }
}
#else
constexpr bool HAS_AMX = false;
static bool amx_permitted() { return false; }
struct Amx { Amx() {} };
INLINE void multiply_amx(const float*, long, long, const float*, long, bool, float*) {}
#endif
