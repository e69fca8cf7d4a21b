// SPDX-License-Identifier: MIT
//
// Simpler mla_decode cases. Requests go first, because each one taken away shortens everything after it; then
// lengths, which cost most to run; then the other dimensions; then what only changes the kind of the problem.
//
// Query lengths and heads try every smaller value that differs in kind, not only halves: 3 is simpler than 4
// to a reader and no fault of an odd length survives halving.
#include "fuzz/ops/mla_decode_shrink.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

std::vector<int> smaller_kv(int kv_len, int q_len, int page_size) {
  const int page_multiple = (kv_len - 1) / page_size * page_size;
  return smaller({0, 1, 2, q_len, kv_len / 4, kv_len / 2, kv_len - kv_len / 4, page_multiple,
                  page_multiple + 1, (kv_len - 1) / 16 * 16, (kv_len - 1) / 16 * 16 + 1, kv_len - 1},
                 0, kv_len);
}

bool any_query(const std::vector<Request>& requests) {
  return std::any_of(requests.begin(), requests.end(), [](const Request& r) { return r.q_len > 0; });
}

class Shrinker {
 public:
  explicit Shrinker(const Case& c) : case_(c), problem_(std::get<MlaDecode>(c.problem)) {}

  std::vector<Case> run() {
    drop_requests();
    shorten_all();
    shorten_each();
    dimensions();
    kinds();
    return std::move(candidates_);
  }

 private:
  void with(const std::function<void(MlaDecode&)>& change) {
    Case s = case_;
    change(std::get<MlaDecode>(s.problem));
    if (any_query(std::get<MlaDecode>(s.problem).requests) && s != case_) candidates_.push_back(std::move(s));
  }

  /// One half, one request alone, all but ever smaller chunks.
  void drop_requests() {
    const std::size_t n = problem_.requests.size();
    const auto keep = [&](std::size_t begin, std::size_t end) {
      with([&](MlaDecode& p) {
        const auto first = problem_.requests.begin();
        p.requests.assign(first + static_cast<std::ptrdiff_t>(begin),
                          first + static_cast<std::ptrdiff_t>(end));
      });
    };
    if (n < 2) return;
    keep(0, n / 2);
    keep(n / 2, n);
    for (std::size_t i = 0; n > 2 && i < n; ++i) keep(i, i + 1);
    for (std::size_t chunk = n / 4; n > 2; chunk = chunk / 2) {
      chunk = std::max<std::size_t>(chunk, 1);
      for (std::size_t begin = 0; begin < n; begin += chunk) {
        with([&](MlaDecode& p) {
          const auto from = p.requests.begin() + static_cast<std::ptrdiff_t>(begin);
          p.requests.erase(from, from + static_cast<std::ptrdiff_t>(std::min(chunk, n - begin)));
        });
      }
      if (chunk == 1) break;
    }
  }

  void shorten_all() {
    if (problem_.requests.size() < 2) return;
    const auto each = [&](const std::function<void(Request&)>& change) {
      with([&](MlaDecode& p) { std::for_each(p.requests.begin(), p.requests.end(), change); });
    };
    each([](Request& r) { r.q_len = std::min(r.q_len, 1); });
    each([](Request& r) { r.q_len = std::min(r.q_len, 2); });
    each([](Request& r) { r.q_len = std::min(r.q_len, 3); });
    for (const int cap : {1, 16, 64}) {
      each([cap](Request& r) { r.kv_len = std::min(r.kv_len, cap); });
    }
    each([](Request& r) { r.kv_len /= 2; });
    each([&](Request& r) { r.kv_len = r.kv_len / problem_.page_size * problem_.page_size; });
  }

  void shorten_each() {
    for (std::size_t i = 0; i < problem_.requests.size(); ++i) {
      const Request& r = problem_.requests[i];
      for (const int kv_len : smaller_kv(r.kv_len, r.q_len, problem_.page_size)) {
        with([&](MlaDecode& p) { p.requests[i].kv_len = kv_len; });
      }
      for (int q_len = 0; q_len < r.q_len; ++q_len) {
        with([&](MlaDecode& p) { p.requests[i].q_len = q_len; });
        // Both ends together: the first query row keeps what it sees.
        if (r.kv_len >= r.q_len - q_len) {
          with([&](MlaDecode& p) { p.requests[i] = {q_len, r.kv_len - (r.q_len - q_len)}; });
        }
      }
    }
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
  std::int64_t sum = p.heads + p.page_size + p.num_splits + (p.causal ? 0 : 1) + (p.return_lse ? 0 : 1) +
                     (p.q_format == Format::bf16 ? 0 : 1) + (p.kv_format == Format::bf16 ? 0 : 1) +
                     (p.sm_scale == MlaDecode{}.sm_scale ? 0 : 1) + scale_rank(p.q_scale) +
                     scale_rank(p.kv_scale);
  for (const Request& r : p.requests) sum += 1 + r.q_len + r.kv_len;
  return sum;
}

}  // namespace attest::fuzz
