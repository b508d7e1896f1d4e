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
constexpr int VECTORS = 4, PANEL = VECTORS * LANES;  // outputs of a product summed at once
constexpr long DEPTH = 128;  // steps of a panel multiplied at once: they stay in the first-level cache

#define INLINE static inline __attribute__((always_inline))

typedef float V __attribute__((vector_size(LANES * 4)));
typedef int32_t I __attribute__((vector_size(LANES * 4)));

INLINE V load(const float* p) { V v; std::memcpy(&v, p, sizeof v); return v; }
INLINE void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
// Loads float32 or bfloat16 from index i on; bfloat16 only if the processor has instructions for it.
INLINE V load(const void* p, long i, bool halves) {
  if (!halves) return load((const float*)p + i);
  uint16_t v __attribute__((vector_size(LANES * 2)));
  std::memcpy(&v, (const uint16_t*)p + i, sizeof v);
  return (V)(__builtin_convertvector(v, I) << 16);
}
INLINE void store(void* p, long i, V v, bool halves) {
  if (!halves) return store((float*)p + i, v);
#if defined(__AVX512BF16__)
  _mm256_storeu_si256((__m256i*)((uint16_t*)p + i), (__m256i)_mm512_cvtneps_pbh((__m512)v));
#endif
}
INLINE V same(float x) { return x - V{}; }
INLINE V least(V a, V b) { return b < a ? b : a; }  // both keep `a` if it is NaN
INLINE V most(V a, V b) { return b > a ? b : a; }
INLINE V within(V x, V bound) { return least(most(x, -bound), bound); }

// 1 / x for x between 1 and 1e36.
INLINE V inverse(V x) {
#if defined(__AVX512F__)
  V y = (V)_mm512_rcp14_ps((__m512)x);
  return y * (2.0f - x * y);
#else
  return 1.0f / x;
#endif
}

// x = e^x for x in [-27, 27], clipped beyond: 1 / (1 + e^27) is 2e-12. NaN stays NaN. Computes several vectors together,
// because the steps of one vector wait for each other.
template <int N>
INLINE void exponentials(V (&x)[N]) {
  constexpr float POWERS[] = {1.339993118e-3f, 9.618488974e-3f, 5.550328777e-2f, 2.402264689e-1f, 6.931472057e-1f, 1.0f};
  V n[N], p[N];
  for (int i = 0; i < N; i++) {
    x[i] = within(x[i] * 1.44269504f, same(39.0f));  // a power of two: its integer part n and the rest r
    n[i] = (x[i] + 12582912.0f) - 12582912.0f;
    x[i] = x[i] - n[i];
    p[i] = same(1.534580749e-4f);  // 2^r for r in [-0.5, 0.5], within 2e-9
  }
  for (float power : POWERS)
    for (int i = 0; i < N; i++) p[i] = p[i] * x[i] + power;
  for (int i = 0; i < N; i++) {
#if defined(__AVX512F__)
    x[i] = (V)_mm512_scalef_ps((__m512)p[i], (__m512)n[i]);
#else
    I power = (__builtin_convertvector(n[i], I) + 127) << 23;
    V scale;
    std::memcpy(&scale, &power, sizeof scale);
    x[i] = p[i] * scale;
#endif
  }
}

// x = tanh of the first T, sigmoid of the others.
template <int T, int N>
INLINE void activate(V (&x)[N]) {
  for (int i = 0; i < N; i++) x[i] *= i < T ? 2.0f : -1.0f;
  exponentials(x);
  for (int i = 0; i < N; i++) x[i] = (i < T ? x[i] - 1.0f : same(1.0f)) * inverse(1.0f + x[i]);
}
INLINE V tanh_of(V x) { V only[] = {x}; activate<1>(only); return only[0]; }
INLINE V sigmoid_of(V x) { V only[] = {x}; activate<0>(only); return only[0]; }
