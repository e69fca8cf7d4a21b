// SPDX-License-Identifier: MIT
//
// Simpler mla_decode cases. Requests and their lengths go first, which cost most to run; then the other
// dimensions; then what only changes the kind of the problem. Heads try every smaller value that differs in
// kind, not only halves.
#include "fuzz/ops/mla_decode_shrink.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "fuzz/ops/shrink_requests.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

class Shrinker {
 public:
  explicit Shrinker(const Case& c) : case_(c), problem_(std::get<MlaDecode>(c.problem)) {}

  std::vector<Case> run() {
    requests();
    dimensions();
    kinds();
    return std::move(candidates_);
  }

 private:
  void with(const std::function<void(MlaDecode&)>& change) {
    Case s = case_;
    change(std::get<MlaDecode>(s.problem));
    if (s != case_) candidates_.push_back(std::move(s));
  }

  void requests() {
    for (std::vector<Request>& simpler : simpler_requests(problem_.requests, problem_.page_size))
      with([&](MlaDecode& p) { p.requests = std::move(simpler); });
  }

  void dimensions() {
    const int heads = problem_.heads;
    for (const int v :
         smaller({1, 2, 3, 4, 8, 16, 17, 32, heads / 2, heads / 16 * 16, heads - 1}, 1, heads)) {
      with([v](MlaDecode& p) { p.heads = v; });
    }
    const int page = problem_.page_size;
    for (const int v : smaller({1, 2, 3, 16, page / 2, page / 16 * 16, page - 1}, 1, page)) {
      with([v](MlaDecode& p) { p.page_size = v; });
    }
    const int splits = problem_.num_splits;
    for (const int v : smaller({1, 2, 3, splits / 2, splits - 1}, 1, splits)) {
      with([v](MlaDecode& p) { p.num_splits = v; });
    }
  }

  void kinds() {
    with([](MlaDecode& p) {
      p.q_format = p.kv_format = Format::bf16;
      p.q_scale = p.kv_scale = 1.0F;
    });
    with([](MlaDecode& p) {
      p.q_format = Format::bf16;
      p.q_scale = 1.0F;
    });
    with([](MlaDecode& p) { p.q_scale = p.kv_scale = 1.0F; });
    with([](MlaDecode& p) { p.q_scale = 1.0F; });
    with([](MlaDecode& p) { p.kv_scale = 1.0F; });
    if (scale_rank(problem_.q_scale) == 2)
      with([](MlaDecode& p) { p.q_scale = power_of_two_near(p.q_scale); });
    if (scale_rank(problem_.kv_scale) == 2)
      with([](MlaDecode& p) { p.kv_scale = power_of_two_near(p.kv_scale); });
    with([](MlaDecode& p) { p.sm_scale = MlaDecode{}.sm_scale; });
    with([](MlaDecode& p) { p.causal = true; });
    with([](MlaDecode& p) { p.return_lse = true; });
  }

  const Case& case_;
  const MlaDecode& problem_;
  std::vector<Case> candidates_;
};

}  // namespace

std::vector<Case> shrink_mla_decode(const Case& c) {
  return Shrinker(c).run();
}

std::int64_t mla_decode_complexity(const Case& c) {
  const MlaDecode& p = std::get<MlaDecode>(c.problem);
  const std::int64_t sum =
      p.heads + p.page_size + p.num_splits + (p.causal ? 0 : 1) + (p.return_lse ? 0 : 1) +
      (p.q_format == Format::bf16 ? 0 : 1) + (p.kv_format == Format::bf16 ? 0 : 1) +
      (p.sm_scale == MlaDecode{}.sm_scale ? 0 : 1) + scale_rank(p.q_scale) + scale_rank(p.kv_scale);
  return sum + request_complexity(p.requests);
}

}  // namespace attest::fuzz
