// SPDX-License-Identifier: MIT
//
// Verification batches. Vocabularies of a handful of tokens, where ties and exhausted residuals occur, and
// around multiples of the kernel's width, where padded lanes take part (vllm-project/vllm#50183); greedy and
// random requests in one batch; requests without drafts among others; chains, n-gram drafts and trees; one
// case in a dozen asks the same thing hundreds of times, for its statistics (sgl-project/sglang#7207).
#include <algorithm>
#include <utility>
#include <vector>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

std::int64_t rows_of(const SpecVerify& p) {
  std::int64_t rows = 0;
  for (const VerifyRequest& r : p.requests) rows += r.drafts + 1;
  return rows * p.repeats;
}

Case draw_case() {
  SpecVerify p;
  p.tree = chance(1, 3);
  p.draft_probs = !p.tree && chance(3, 4);
  p.rows = any_of<VerifyRows>({VerifyRows::mixed, VerifyRows::mixed, VerifyRows::dense, VerifyRows::sparse,
                               VerifyRows::dyadic, VerifyRows::dyadic, VerifyRows::equal,
                               VerifyRows::disjoint, VerifyRows::non_finite});
  const bool statistics = chance(1, 12);
  const bool small_vocab = statistics || chance(2, 3);
  p.vocab = small_vocab ? any_of<int>({2, 3, 4, 5, 8, 13, 31})
                        : any_of<int>({64, 255, 256, 257, 511, 513, 1000, 1025, 2049, 5000});
  p.max_spec_len = any_of<int>({1, 2, 3, 4, 4, 5, 7, 8, 16});
  const int most_drafts = p.tree ? std::min(any_of<int>({3, 7, 15, 31}), p.vocab) : p.max_spec_len;
  const int batch = statistics ? 1 : any_of<int>({1, 1, 2, 3, 5, 9, 20});
  const bool uniform = coin();
  const int drafts = between(1, most_drafts);
  const int greedy_of_4 = any_of<int>({0, 0, 1, 2, 4});
  for (int i = 0; i < batch; ++i) {
    VerifyRequest r;
    r.drafts = uniform ? drafts : between(0, most_drafts);
    r.greedy = !statistics && chance(greedy_of_4, 4);
    p.requests.push_back(r);
  }
  if (statistics) {
    p.requests[0].drafts = std::min(p.requests[0].drafts, 4);
    p.repeats = any_of<int>({300, 600, 1500});
    if (p.rows == VerifyRows::non_finite) p.rows = VerifyRows::mixed;
  }
  while (rows_of(p) * p.vocab > 60000 && p.vocab > 31) p.vocab /= 2;
  if (p.tree)
    for (VerifyRequest& r : p.requests) r.drafts = std::min(r.drafts, p.vocab);
  if (chance(1, 3)) p.padded_requests = any_of<int>({1, 2, 7});

  Case c;
  const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale, Poison::zero};
  if (coin()) {
    c.memory.output = any_of(poisons);
    if (chance(1, 8)) c.memory.guard_bytes = any_of<int>({256, 512, 65536});
  }
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

class Shrinker {
 public:
  explicit Shrinker(const Case& c) : case_(c), problem_(std::get<SpecVerify>(c.problem)) {}

  std::vector<Case> run() {
    const std::size_t n = problem_.requests.size();
    const auto keep = [&](std::size_t begin, std::size_t end) {
      with([&](SpecVerify& p) {
        const auto first = problem_.requests.begin();
        p.requests.assign(first + static_cast<std::ptrdiff_t>(begin),
                          first + static_cast<std::ptrdiff_t>(end));
      });
    };
    for (const int v : smaller({1, 2, 16, 64, problem_.repeats / 2}, 1, problem_.repeats))
      with([v](SpecVerify& p) { p.repeats = v; });
    if (n > 1) {
      keep(0, n / 2);
      keep(n / 2, n);
      for (std::size_t i = 0; n > 2 && i < n; ++i) {
        keep(i, i + 1);
        with([i](SpecVerify& p) { p.requests.erase(p.requests.begin() + static_cast<std::ptrdiff_t>(i)); });
      }
    }
    const int vocab = problem_.vocab;
    for (const int v : smaller({2, 3, 4, 8, 255, 257, vocab / 2, vocab - 1}, 2, vocab)) {
      with([v](SpecVerify& p) {
        p.vocab = v;
        if (p.tree)
          for (VerifyRequest& r : p.requests) r.drafts = std::min(r.drafts, v);
      });
    }
    for (std::size_t i = 0; i < n; ++i) {
      const VerifyRequest& r = problem_.requests[i];
      for (const int v : smaller({0, 1, 2, 3, r.drafts / 2, r.drafts - 1}, 0, r.drafts))
        with([&](SpecVerify& p) { p.requests[i].drafts = v; });
      with([i](SpecVerify& p) { p.requests[i].greedy = false; });
    }
    int longest = 1;
    for (const VerifyRequest& r : problem_.requests)
      longest = std::max(longest, problem_.tree ? 1 : r.drafts);
    for (const int v : smaller({longest, 2, 3, problem_.max_spec_len - 1}, longest, problem_.max_spec_len))
      with([v](SpecVerify& p) { p.max_spec_len = v; });
    for (const int v : smaller({0, 1}, 0, problem_.padded_requests))
      with([v](SpecVerify& p) { p.padded_requests = v; });
    for (const VerifyRows rows : {VerifyRows::dyadic, VerifyRows::dense})
      if (rank(rows) < rank(problem_.rows)) with([rows](SpecVerify& p) { p.rows = rows; });
    return std::move(candidates_);
  }

  /// Dyadic rows can be checked by hand; then dense ones, without surprises.
  static int rank(VerifyRows rows) {
    return rows == VerifyRows::dyadic ? 0 : rows == VerifyRows::dense ? 1 : 2 + static_cast<int>(rows);
  }

 private:
  template <typename Change>
  void with(const Change& change) {
    Case s = case_;
    change(std::get<SpecVerify>(s.problem));
    if (s != case_) candidates_.push_back(std::move(s));
  }

  const Case& case_;
  const SpecVerify& problem_;
  std::vector<Case> candidates_;
};

std::vector<Case> shrink(const Case& c) {
  return Shrinker(c).run();
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<SpecVerify>(c.problem);
  std::int64_t sum = p.vocab + p.max_spec_len + p.padded_requests + p.repeats + Shrinker::rank(p.rows) +
                     (p.draft_probs ? 0 : 1) + (p.tree ? 1 : 0);
  for (const VerifyRequest& r : p.requests) sum += 1 + r.drafts + (r.greedy ? 1 : 0);
  return sum;
}

/// A search is some 500 instructions in each of four waves and a few more per 256 tokens.
std::int64_t work_of(const Case& c) {
  const auto& p = std::get<SpecVerify>(c.problem);
  return 2 + rows_of(p) * (1 + p.vocab / 2048) / 2;
}

}  // namespace

const OpGenerator spec_verify_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
