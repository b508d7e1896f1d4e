// Vectors of float32 for the compiled functions. GCC's and Clang's vector types become AVX-512, AVX2 or NEON code by the
// compiler's flags.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
constexpr int VECTORS = 4, PANEL = VECTORS * LANES;  // outputs of a product that are summed up at once
constexpr long DEPTH = 128;  // steps of a panel that are multiplied at once: they stay in the first cache

#define INLINE static inline __attribute__((always_inline))

typedef float V __attribute__((vector_size(LANES * 4)));
typedef int32_t I __attribute__((vector_size(LANES * 4)));

INLINE V load(const float* p) { V v; std::memcpy(&v, p, sizeof v); return v; }
INLINE void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
INLINE V same(float x) { return x - V{}; }
INLINE V least(V a, V b) { return b < a ? b : a; }  // both keep an `a` that is not a number
INLINE V most(V a, V b) { return b > a ? b : a; }
INLINE V within(V x, V bound) { return least(most(x, -bound), bound); }

// 1 / x for the x that occur here, between 1 and 1e36.
INLINE V inverse(V x) {
#if defined(__AVX512F__)
  V y = (V)_mm512_rcp14_ps((__m512)x);
  return y * (2.0f - x * y);
#else
  return 1.0f / x;
#endif
}

// e^x for x in [-27, 27]; beyond, the nearest of both: 1 / (1 + e^27) is 2e-12. NaN stays NaN.
INLINE V exponential(V x) {
  x = within(x * 1.44269504f, same(39.0f));            // a power of two: its integer part n and the rest r
  const V n = (x + 12582912.0f) - 12582912.0f, r = x - n;
  V p = same(1.534580749e-4f);  // 2^r for r in [-0.5, 0.5], within 2e-9
  p = p * r + 1.339993118e-3f;
  p = p * r + 9.618488974e-3f;
  p = p * r + 5.550328777e-2f;
  p = p * r + 2.402264689e-1f;
  p = p * r + 6.931472057e-1f;
  p = p * r + 1.0f;
#if defined(__AVX512F__)
  return (V)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  I power = (__builtin_convertvector(n, I) + 127) << 23;
  V scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
#endif
}
