// SPDX-License-Identifier: MIT
//
// Requests go first, because each one taken away shortens everything after it; then lengths. Short query
// lengths try every smaller value, not only halves: 3 is simpler than 4 to a reader and no fault of an odd
// length survives halving.
#include "fuzz/ops/shrink_requests.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using cases::Request;
using Requests = std::vector<Request>;

std::vector<int> smaller_kv(int kv_len, int q_len, int page_size) {
  const int page_multiple = (kv_len - 1) / page_size * page_size;
  return smaller({0, 1, 2, q_len, kv_len / 4, kv_len / 2, kv_len - kv_len / 4, page_multiple,
                  page_multiple + 1, (kv_len - 1) / 16 * 16, (kv_len - 1) / 16 * 16 + 1, kv_len - 1},
                 0, kv_len);
}

std::vector<int> smaller_q(int q_len) {
  std::vector<int> lengths;
  if (q_len <= 16) {
    for (int q = 0; q < q_len; ++q) lengths.push_back(q);
    return lengths;
  }
  return smaller(
      {0, 1, 2, 3, q_len / 4, q_len / 2, q_len - q_len / 4, q_len - q_len / 16, q_len - 16, q_len - 1}, 0,
      q_len);
}

class Simpler {
 public:
  Simpler(const Requests& requests, int page_size) : requests_(requests), page_size_(page_size) {}

  std::vector<Requests> run() {
    drop();
    shorten_all();
    shorten_each();
    return std::move(candidates_);
  }

 private:
  void with(const std::function<void(Requests&)>& change) {
    Requests simpler = requests_;
    change(simpler);
    const bool any_query =
        std::any_of(simpler.begin(), simpler.end(), [](const Request& r) { return r.q_len > 0; });
    if (any_query && simpler != requests_) candidates_.push_back(std::move(simpler));
  }

  /// One half, one request alone, all but ever smaller chunks.
  void drop() {
    const std::size_t n = requests_.size();
    const auto keep = [&](std::size_t begin, std::size_t end) {
      with([&](Requests& r) {
        r.assign(requests_.begin() + static_cast<std::ptrdiff_t>(begin),
                 requests_.begin() + static_cast<std::ptrdiff_t>(end));
      });
    };
    if (n < 2) return;
    keep(0, n / 2);
    keep(n / 2, n);
    for (std::size_t i = 0; n > 2 && i < n; ++i) keep(i, i + 1);
    for (std::size_t chunk = n / 4; n > 2; chunk = chunk / 2) {
      chunk = std::max<std::size_t>(chunk, 1);
      for (std::size_t begin = 0; begin < n; begin += chunk) {
        with([&](Requests& r) {
          const auto from = r.begin() + static_cast<std::ptrdiff_t>(begin);
          r.erase(from, from + static_cast<std::ptrdiff_t>(std::min(chunk, n - begin)));
        });
      }
      if (chunk == 1) break;
    }
  }

  void shorten_all() {
    if (requests_.size() < 2) return;
    const auto each = [&](const std::function<void(Request&)>& change) {
      with([&](Requests& r) { std::for_each(r.begin(), r.end(), change); });
    };
    each([](Request& r) { r.q_len = std::min(r.q_len, 1); });
    each([](Request& r) { r.q_len = std::min(r.q_len, 2); });
    each([](Request& r) { r.q_len = std::min(r.q_len, 3); });
    for (const int cap : {1, 16, 64}) {
      each([cap](Request& r) { r.kv_len = std::min(r.kv_len, cap); });
    }
    each([](Request& r) { r.kv_len /= 2; });
    each([&](Request& r) { r.kv_len = r.kv_len / page_size_ * page_size_; });
  }

  void shorten_each() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Request& one = requests_[i];
      for (const int kv_len : smaller_kv(one.kv_len, one.q_len, page_size_)) {
        with([&](Requests& r) { r[i].kv_len = kv_len; });
      }
      for (const int q_len : smaller_q(one.q_len)) {
        with([&](Requests& r) { r[i].q_len = q_len; });
        // Both ends together: the first query row keeps what it sees.
        if (one.kv_len >= one.q_len - q_len) {
          with([&](Requests& r) { r[i] = {q_len, one.kv_len - (one.q_len - q_len)}; });
        }
      }
    }
  }

  const Requests& requests_;
  int page_size_;
  std::vector<Requests> candidates_;
};

}  // namespace

std::vector<Requests> simpler_requests(const Requests& requests, int page_size) {
  return Simpler(requests, page_size).run();
}

std::int64_t request_complexity(const Requests& requests) {
  std::int64_t sum = 0;
  for (const Request& r : requests) sum += std::int64_t{1} + r.q_len + r.kv_len;
  return sum;
}

}  // namespace attest::fuzz
