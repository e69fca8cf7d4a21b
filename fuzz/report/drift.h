// SPDX-License-Identifier: MIT
//
// Has a kernel become less accurate, though every case still passes?
//
// What is compared is the used budget u of a case: the largest |error| / bound over its N judged elements.
// The question is which change of u is worth a person's time. Two things are not: chance, and what a mere
// change of the order of additions does to u.
//
// What re-rounding does. Let the errors of a case, in units of their bounds, be draws from a distribution
// with a Gaussian tail. The largest of N such draws follows, for large N, a Gumbel law with location sigma
// sqrt(2 ln N) and scale sigma / sqrt(2 ln N) (Leadbetter, Lindgren, Rootzen, Extremes and Related Properties
// of Random Sequences, 1983, theorem 1.5.3). So ln u has the scale beta = 1 / (2 ln N). When the same case is
// computed with its sums in another order, both results are such draws, and d = ln(u' / u) is the difference
// of two Gumbel variables of the same law: logistic with scale beta, hence symmetric, with standard deviation
//
//     tau(N) = pi / sqrt(3) * 1 / (2 ln N)          N = 10^4: 0.098, a change by 10 %
//
// A shift smaller than tau is less than what compilers do to a case by reordering its sums, and is let be.
//
// The same cases in both runs (same seed, or the same files): case by case. A case has moved when |d| >
// tau(N). If the kernel is neither better nor worse, each case that has moved is as likely to have moved up
// as down: that needs symmetry only, not that the errors be Gaussian or independent. So of n that moved, the
// number that went up is binomial(n, 1/2), and the kernel has drifted when
//
//     P(X >= ups) = sum over k >= ups of C(n, k) / 2^n  <=  alpha
//
// Cases that did not move, most of them bit-equal on the simulator, do not dilute it: ten cases that got
// worse among a thousand that did not change are seen. Nine are not, at alpha = 0.001.
//
// Other cases: by distribution. The cases with the same numbers were drawn by the same generator from other
// seeds, so the used budgets of an unchanged kernel are two samples, of n and m, of one distribution. By
// Smirnov's one-sided limit, the largest distance by which the earlier distribution function exceeds the
// later exceeds epsilon with probability exp(-2 epsilon^2 n m / (n + m)) at most. The later sample is first
// divided by exp(tau), of the median N, so that a shift below tau is let be here too. The kernel has drifted
// when
//
//     max over u of F(u) - F'(u exp(tau))  >=  epsilon = sqrt(ln(1 / alpha) (n + m) / (2 n m))
//
// alpha is false_alarms / (kernels compared): a nightly comparison of an unchanged kernel cries wolf in one
// night of a thousand, however many kernels it holds (Bonferroni).
//
// A kernel that got more accurate by the same rule is said to have improved; that is no drift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attest::fuzz::report {

inline constexpr double false_alarms = 1e-3;  ///< of a whole comparison

/// Of one case that passed: its used budget, and how many elements were judged.
struct Used {
  double budget = 0;
  std::int64_t elements = 0;
};
struct UsedTwice {
  Used before, after;
};

/// tau(N) above; of N < 2 as of 2.
double rerounding(std::int64_t elements);

/// P(X >= ups), X binomial(n, 1/2).
double chance_of_ups(std::size_t ups, std::size_t n);

struct Drift {
  enum class Verdict : std::uint8_t { none, worse, better };
  Verdict verdict = Verdict::none;
  bool case_by_case = false;
  std::size_t before = 0, after = 0;  ///< cases compared
  std::size_t ups = 0, downs = 0;     ///< case by case: that moved by more than tau
  double chance = 1;  ///< of so much, or more, in the direction of the verdict (or the likelier
                      ///< one), in an unchanged kernel
  double alpha = 0;   ///< that `chance` was held against
  double median_before = 0, median_after = 0, worst_before = 0, worst_after = 0;  ///< NaN without cases
};

Drift drift_case_by_case(const std::vector<UsedTwice>& cases, double alpha);
Drift drift_by_distribution(const std::vector<Used>& before, const std::vector<Used>& after, double alpha);

}  // namespace attest::fuzz::report
