// The steps of a linear-chain conditional random field over (steps, rows, tags), float64.
#pragma once

#include <algorithm>

// to[r][j] += sum_i from[r][i] by[i][j]
static void add_step(const double* from, const double* by, long rows, long tags, double* to) {
  for (long r = 0; r < rows; r++, from += tags, to += tags)
    for (long i = 0; i < tags; i++)
      for (long j = 0; j < tags; j++) to[j] += from[i] * by[i * tags + j];
}

// alphas: how probable each tag is, given the words so far; totals (steps, rows): their sums, before they are made to
// sum to 1.
//   start (tags), moves (tags, tags): exponentials of scores; weights: those of the emissions
static void follow(const double* start, const double* moves, const double* weights, long steps, long rows, long tags,
                   double* alphas, double* totals) {
  const long all = rows * tags;
  for (long t = 0; t < steps; t++, weights += all, alphas += all, totals += rows) {
    std::fill(alphas, alphas + all, 0.0);
    if (t) add_step(alphas - all, moves, rows, tags, alphas);
    for (long r = 0; r < rows; r++) {
      double* alpha = alphas + r * tags;
      double total = 0.0;
      for (long j = 0; j < tags; j++) alpha[j] = (t ? alpha[j] : start[j]) * weights[r * tags + j], total += alpha[j];
      for (long j = 0; j < tags; j++) alpha[j] /= total;
      totals[r] = total;
    }
  }
}

// Adds to betas, which hold the gradient of each sentence's last step, those of the steps before; moved: the gradients of
// the products with the moves.
//   back (tags, tags): moves, transposed; weights: divided by totals
static void follow_back(const double* back, const double* weights, long steps, long rows, long tags, double* betas,
                        double* moved) {
  const long all = rows * tags;
  for (long t = steps - 1; t > 0; t--) {
    double* here = moved + t * all;
    for (long k = 0; k < all; k++) here[k] = weights[t * all + k] * betas[t * all + k];
    add_step(here, back, rows, tags, betas + (t - 1) * all);
  }
}
