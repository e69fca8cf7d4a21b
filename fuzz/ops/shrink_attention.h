// SPDX-License-Identifier: MIT
//
// Simpler cases of ops that attend over a paged cache: the problem has `requests`, a `page_size`, formats and
// scales as mla_decode has them.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "fuzz/ops/shrink_requests.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {

template <typename P>
class AttentionShrinker {
 public:
  /// Appends to `candidates`.
  AttentionShrinker(const cases::Case& c, std::vector<cases::Case>& candidates)
      : case_(c), problem_(std::get<P>(c.problem)), candidates_(candidates) {}

  /// The case with a change to its problem.
  void with(const std::function<void(P&)>& change) {
    cases::Case s = case_;
    change(std::get<P>(s.problem));
    if (s != case_) candidates_.push_back(std::move(s));
  }

  /// Fewer and shorter ones.
  void requests() {
    for (std::vector<cases::Request>& simpler : simpler_requests(problem_.requests, problem_.page_size))
      with([&](P& p) { p.requests = std::move(simpler); });
  }

  /// One dimension, down to 1.
  void dimension(int P::* field, std::initializer_list<int> wanted) {
    for (const int v : smaller(wanted, 1, problem_.*field)) with([field, v](P& p) { p.*field = v; });
  }

  /// Towards bf16 and 1.
  void formats() {
    with([](P& p) {
      p.q_format = p.kv_format = cases::Format::bf16;
      p.q_scale = p.kv_scale = 1.0F;
    });
    with([](P& p) {
      p.q_format = cases::Format::bf16;
      p.q_scale = 1.0F;
    });
    with([](P& p) { p.q_scale = p.kv_scale = 1.0F; });
    with([](P& p) { p.q_scale = 1.0F; });
    with([](P& p) { p.kv_scale = 1.0F; });
    if (scale_rank(problem_.q_scale) == 2) with([](P& p) { p.q_scale = power_of_two_near(p.q_scale); });
    if (scale_rank(problem_.kv_scale) == 2) with([](P& p) { p.kv_scale = power_of_two_near(p.kv_scale); });
    with([](P& p) { p.sm_scale = P{}.sm_scale; });
  }

 private:
  const cases::Case& case_;
  const P& problem_;
  std::vector<cases::Case>& candidates_;
};

/// What AttentionShrinker::formats makes smaller.
template <typename P>
std::int64_t formats_complexity(const P& p) {
  return (p.q_format == cases::Format::bf16 ? 0 : 1) + (p.kv_format == cases::Format::bf16 ? 0 : 1) +
         (p.sm_scale == P{}.sm_scale ? 0 : 1) + scale_rank(p.q_scale) + scale_rank(p.kv_scale);
}

}  // namespace attest::fuzz
