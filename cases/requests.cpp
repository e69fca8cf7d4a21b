// SPDX-License-Identifier: MIT
#include "cases/requests.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace attest::cases {

void read_requests(const JsonObject& shape, std::vector<Request>& requests) {
  shape.each("requests", {"q_len", "kv_len"}, [&](const JsonObject& entry) {
    Request& request = requests.emplace_back();
    entry.read_required("q_len", request.q_len);
    entry.read_required("kv_len", request.kv_len);
  });
}

Json requests_json(const std::vector<Request>& requests) {
  Json array = Json::array();
  for (const Request& r : requests) array.push_back({{"q_len", r.q_len}, {"kv_len", r.kv_len}});
  return array;
}

void validate_requests(const std::vector<Request>& requests, int most_q_len, int most_kv_len) {
  if (requests.empty() || requests.size() > 512) {
    throw CaseError(fmt::format("shape.requests: {} entries, outside 1..512", requests.size()));
  }
  bool any_query = false;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    require_range(fmt::format("shape.requests[{}].q_len", i), requests[i].q_len, 0, most_q_len);
    require_range(fmt::format("shape.requests[{}].kv_len", i), requests[i].kv_len, 0, most_kv_len);
    any_query = any_query || requests[i].q_len > 0;
  }
  if (!any_query) throw CaseError("shape.requests: every q_len is 0; at least one request needs a query");
}

}  // namespace attest::cases
