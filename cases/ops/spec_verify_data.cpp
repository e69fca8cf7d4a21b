// SPDX-License-Identifier: MIT
//
// Probabilities, drafts and draws. What decides is where things meet: a draft the draft model gave
// probability 0 (as after a mask), a draw exactly on p/q, a residual that is zero everywhere. With random
// numbers alone these never happen, so rows come in kinds (VerifyRows) and, in cases that are not repeated,
// drafts and draws are placed:
//
//   draft    a sample of q; the token with the largest p - q, which is always accepted and lets the
//            next position be reached; one with q = 0; for a greedy request mostly argmax p
//   draw     uniform; or, where p/q has no rounding (q a power of two, or no draft probabilities), p/q
//            itself and its neighbours in fp64; or 0
//
// Repeated cases use samples only: their statistics must be those of the method.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "cases/case.h"
#include "cases/ops/spec_verify.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

bool power_of_two(float x) {
  int exponent = 0;
  return std::isfinite(x) && x > 0 && std::frexp(x, &exponent) == 0.5F;
}

/// -ln((word + 1/2) / 2^32), a draw of Exp(1), in + - * / alone: the last bits of libm differ.
float exponential(std::uint32_t word) {
  int exponent = 0;
  double m = std::frexp((word + 0.5) * 0x1p-32, &exponent);  // [1/2, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return static_cast<float>(-(2 * s * series + exponent * 0.69314718055994531));
}

class Rows {
 public:
  explicit Rows(const Case& c) : seed_(c.seed), p_(std::get<SpecVerify>(c.problem)) {}

  /// Row `row` of a request, the same in every repetition.
  void make(std::uint32_t request, std::uint32_t row, std::span<float> p, std::span<float> q) const {
    const Counter draw(seed_, Draw::verify_row, request, row);
    VerifyRows kind = p_.rows;
    if (kind == VerifyRows::mixed) kind = static_cast<VerifyRows>(1 + draw.below(0, 5));
    const std::uint32_t shift = draw.below(1, static_cast<std::uint32_t>(p_.vocab));
    const std::uint32_t support = 1 + draw.below(2, 3);
    for (std::size_t v = 0; v < p.size(); ++v) {
      const auto token = static_cast<std::uint32_t>(v);
      switch (kind) {
        case VerifyRows::sparse:
          p[v] = draw.below(8 + 4 * token, 4) < support ? likely(draw, token, 0) : 0;
          q[v] = draw.below(9 + 4 * token, 4) < support ? likely(draw, token, 1) : 0;
          break;
        case VerifyRows::dyadic:
          p[v] = halves_from(token, 0);
          q[v] = halves_from(token, shift);
          break;
        case VerifyRows::equal:
          p[v] = q[v] = likely(draw, token, 0);
          break;
        case VerifyRows::disjoint:
          p[v] = (token + shift) % 2 == 0 ? likely(draw, token, 0) : 0;
          q[v] = (token + shift) % 2 == 0 ? 0 : likely(draw, token, 1);
          break;
        case VerifyRows::mixed:
        case VerifyRows::dense:
        case VerifyRows::non_finite:
          p[v] = likely(draw, token, 0);
          q[v] = likely(draw, token, 1);
          break;
      }
    }
    if (kind != VerifyRows::dyadic) {
      normalise(p, shift);
      normalise(q, shift / 2);
      if (kind == VerifyRows::equal) std::copy(p.begin(), p.end(), q.begin());
    }
    if (kind == VerifyRows::non_finite) spoil(draw, p, q);
  }

 private:
  /// Heavy-tailed: the likeliest of a hundred tokens holds most of the mass.
  static float likely(const Counter& draw, std::uint32_t token, std::uint32_t which) {
    const float x = static_cast<float>(draw.word(10 + 4 * token + which) >> 8) * 0x1p-24F;
    const float square = x * x;
    return square * square * square + 0x1p-12F;
  }
  /// 1/2, 1/4, ... from token `first` on, the last one twice, so that the sum is 1.
  [[nodiscard]] float halves_from(std::uint32_t token, std::uint32_t first) const {
    const auto vocab = static_cast<std::uint32_t>(p_.vocab);
    const std::uint32_t place = (token + vocab - first) % vocab;
    const std::uint32_t last = std::min(vocab - 1, 20U);
    if (place > last) return 0;
    return std::ldexp(1.0F, -static_cast<int>(std::min(place + 1, last)));
  }
  static void normalise(std::span<float> row, std::uint32_t otherwise) {
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    if (sum == 0) row[otherwise % row.size()] = 1;
    for (float& x : row) x = static_cast<float>(x / (sum == 0 ? 1 : sum));
  }
  static void spoil(const Counter& draw, std::span<float> p, std::span<float> q) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const std::uint32_t place = draw.below(4, static_cast<std::uint32_t>(p.size()));
    switch (draw.below(3, 6)) {
      case 0:
        std::fill(p.begin(), p.end(), nan);
        break;
      case 1:
        std::fill(q.begin(), q.end(), nan);
        break;
      case 2:
        p[place] = nan;
        break;
      case 3:
        q[place] = nan;
        break;
      case 4:
        p[place] = inf;
        break;
      default:
        break;  // a finite row among the others
    }
  }

  std::uint64_t seed_;
  const SpecVerify& p_;
};

/// Inverse of the cumulative sum.
std::int32_t sample(std::span<const float> q, double u) {
  double left = u * std::accumulate(q.begin(), q.end(), 0.0);
  std::int32_t last = 0;
  for (std::size_t v = 0; v < q.size(); ++v) {
    if (!(q[v] > 0)) continue;
    last = static_cast<std::int32_t>(v);
    left -= double{q[v]};
    if (left < 0) break;
  }
  return last;
}

double uniform(const Counter& draw, std::uint32_t i) {
  const std::uint64_t bits = (std::uint64_t{draw.word(i)} << 21) ^ (draw.word(i + 1) >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

std::int32_t largest_excess(std::span<const float> p, std::span<const float> q) {
  std::size_t best = 0;
  for (std::size_t v = 1; v < p.size(); ++v)
    if (p[v] - q[v] > p[best] - q[best]) best = v;
  return static_cast<std::int32_t>(best);
}

std::int32_t place_draft(const Counter& draw, bool greedy, std::span<const float> p,
                         std::span<const float> q) {
  const auto vocab = static_cast<std::uint32_t>(p.size());
  const std::uint32_t choice = draw.below(2, 8);
  if (greedy && choice < 6)
    return static_cast<std::int32_t>(std::max_element(p.begin(), p.end()) - p.begin());
  if (choice < 3) return largest_excess(p, q);
  if (choice == 3) {
    for (std::uint32_t k = 0; k < vocab; ++k)
      if (const std::uint32_t v = (k + draw.below(3, vocab)) % vocab; q[v] == 0)
        return static_cast<std::int32_t>(v);
  }
  if (choice == 4) return static_cast<std::int32_t>(draw.below(3, vocab));
  return sample(q, uniform(draw, 4));
}

double place_uniform(const Counter& draw, float p, float q) {
  const double u = uniform(draw, 8);
  const std::uint32_t choice = draw.below(10, 8);
  if (choice == 0) return 0;
  if (choice > 4 || !power_of_two(q) || !std::isfinite(p) || p < 0) return u;
  const double ratio = double{p} / double{q};
  // Next to 0 are only numbers that no generator draws.
  if (ratio == 0) return choice <= 2 ? 0 : u;
  const double placed = choice <= 2 ? ratio : std::nextafter(ratio, choice == 3 ? 2.0 : 0.0);
  return placed < 1 && placed >= 0 ? placed : u;
}

/// A random tree, at most max_spec_len deep. Siblings have different tokens; with at most `vocab` nodes the
/// root always has room for one more.
void make_tree(const Case& c, const SpecVerify& p, std::uint32_t request, int nodes, SpecVerifyInputs& in) {
  const std::size_t first = in.ancestors.size();
  const Counter draw(c.seed, Draw::verify_draft, request, 0x10000);
  std::vector<std::vector<std::int32_t>> taken(at(nodes) + 1);
  const std::uint32_t shape = draw.below(0, 3);  // any, narrow, wide
  for (int k = 0; k < nodes; ++k) {
    const auto i = static_cast<std::uint32_t>(k);
    int parent = static_cast<int>(draw.below(8 + 4 * i, i + 1)) - 1;
    if (shape == 1) parent = std::max(parent, k - 2);
    if (shape == 2) parent = static_cast<int>(draw.below(9 + 4 * i, std::min(i, 2U) + 1)) - 1;
    const auto depth_of = [&](int node) { return node < 0 ? 0 : in.depth[first + at(node)]; };
    const auto full = [&](int node) {
      return depth_of(node) >= p.max_spec_len || std::ssize(taken[at(node + 1)]) >= p.vocab;
    };
    for (int tries = 0; full(parent) && tries <= k; ++tries) parent = parent + 1 < k ? parent + 1 : -1;
    auto& siblings = taken[at(parent + 1)];
    auto token = static_cast<std::int32_t>(draw.below(10 + 4 * i, static_cast<std::uint32_t>(p.vocab)));
    for (int tries = 0;
         tries < p.vocab && std::find(siblings.begin(), siblings.end(), token) != siblings.end(); ++tries)
      token = (token + 1) % p.vocab;
    siblings.push_back(token);
    in.draft_tokens.push_back(token);
    in.depth.push_back(depth_of(parent) + 1);
    in.ancestors.push_back((parent < 0 ? 0U : in.ancestors[first + at(parent)]) | std::uint32_t{1} << i);
  }
}

}  // namespace

SpecVerifyInputs materialise(const Case& c, const SpecVerify& p) {
  SpecVerifyInputs in;
  const Rows rows(c);
  const std::size_t vocab = at(p.vocab);
  std::vector<float> target(vocab), draft(vocab);
  std::int32_t drafts = 0;
  for (int repeat = 0; repeat < p.repeats; ++repeat) {
    for (std::size_t r = 0; r < p.requests.size(); ++r) {
      const VerifyRequest& request = p.requests[r];
      const auto base = static_cast<std::uint32_t>(r);
      const auto number = static_cast<std::uint32_t>(at(repeat) * p.requests.size() + r);
      drafts += request.drafts;
      in.cu_num_drafts.push_back(drafts);
      in.greedy.push_back(request.greedy ? 1 : 0);
      const Counter draw(c.seed, Draw::verify_draft, number, 0x20000);
      in.bonus.push_back(static_cast<std::int32_t>(draw.below(0, static_cast<std::uint32_t>(p.vocab))));
      const std::size_t first = in.draft_tokens.size();
      // The tree is part of the request: repetitions share it.
      if (p.tree) make_tree(c, p, base, request.drafts, in);
      const int own_rows = request.drafts + (p.tree ? 1 : 0);
      for (int row = 0; row < own_rows; ++row) {
        const auto i = static_cast<std::uint32_t>(row);
        rows.make(base, i, target, draft);
        in.target_probs.insert(in.target_probs.end(), target.begin(), target.end());
        if (p.draft_probs) in.draft_probs.insert(in.draft_probs.end(), draft.begin(), draft.end());
        const Counter of_row(c.seed, Draw::verify_draft, number, i);
        if (!p.tree) {
          // A draft without probabilities is no sample: it may be any token, the same one in every
          // repetition.
          const bool sampled = p.repeats > 1 && !request.greedy;
          const Counter of_draft(c.seed, Draw::verify_draft, sampled && p.draft_probs ? number : base, i);
          in.draft_tokens.push_back(sampled && p.draft_probs
                                        ? sample(draft, uniform(of_draft, 4))
                                        : place_draft(of_draft, request.greedy, target, draft));
        }
        if (p.repeats > 1) {
          in.uniforms.push_back(uniform(of_row, 8));
        } else if (p.tree) {
          // The first child of a node, by its ancestors, is where the sum of probabilities starts.
          float px = 0;
          const std::uint32_t above = row == 0 ? 0 : in.ancestors[first + at(row - 1)];
          for (int k = request.drafts - 1; k >= 0; --k)
            if ((in.ancestors[first + at(k)] & ~(std::uint32_t{1} << k)) == above)
              px = target[at(in.draft_tokens[first + at(k)])];
          in.uniforms.push_back(place_uniform(of_row, px, 1));
        } else {
          const auto x = at(in.draft_tokens.back());
          in.uniforms.push_back(place_uniform(of_row, target[x], p.draft_probs ? draft[x] : 1.0F));
        }
      }
      const Counter noise(c.seed, Draw::verify_noise, number, 0);
      for (std::uint32_t v = 0; v < vocab; ++v) in.exponentials.push_back(exponential(noise.word(v)));
      if (p.tree && p.repeats == 1 && request.greedy) {
        // A greedy tree of random tokens is left at once: let one of the root's children be the argmax, and
        // so on down.
        for (int row = 0; row < own_rows; ++row) {
          const std::uint32_t above = row == 0 ? 0 : in.ancestors[first + at(row - 1)];
          std::vector<std::size_t> kids;
          for (int k = 0; k < request.drafts; ++k)
            if ((in.ancestors[first + at(k)] & ~(std::uint32_t{1} << k)) == above)
              kids.push_back(first + at(k));
          if (kids.empty() || draw.below(4 + static_cast<std::uint32_t>(row), 4) == 0) continue;
          const auto p_row = std::span(in.target_probs).last(at(own_rows - row) * vocab).first(vocab);
          const auto wanted =
              static_cast<std::int32_t>(std::max_element(p_row.begin(), p_row.end()) - p_row.begin());
          const bool there = std::any_of(kids.begin(), kids.end(),
                                         [&](std::size_t k) { return in.draft_tokens[k] == wanted; });
          if (!there)
            in.draft_tokens[kids[draw.below(64 + static_cast<std::uint32_t>(row),
                                            static_cast<std::uint32_t>(kids.size()))]] = wanted;
        }
      }
    }
  }
  return in;
}

}  // namespace attest::cases
