// SPDX-License-Identifier: MIT
#include "cases/ops/block_table_expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {
namespace {

int queries_of(const BlockTableStep& step) {
  return std::accumulate(step.requests.begin(), step.requests.end(), 0,
                         [](int sum, const Request& r) { return sum + r.q_len; });
}

void validate_step(const BlockTableExpand& p, const BlockTableStep& step, const std::string& field) {
  if (step.requests.empty() || step.requests.size() > 512)
    throw CaseError(fmt::format("{}.requests: {} entries, outside 1..512", field, step.requests.size()));
  for (std::size_t i = 0; i < step.requests.size(); ++i) {
    const Request& r = step.requests[i];
    const std::string of = fmt::format("{}.requests[{}]", field, i);
    require_range(of + ".q_len", r.q_len, 0, 16);
    require_range(of + ".kv_len", r.kv_len, 0, 131072);
    if (r.kv_len < r.q_len)
      throw CaseError(
          fmt::format("{}.kv_len: {} is less than its q_len {}; new tokens are part of the context", of,
                      r.kv_len, r.q_len));
    if (step.num_tokens > 0 && r.q_len == 0 && r.kv_len > 0)
      throw CaseError(
          fmt::format("{}.kv_len: {} of a request without a query; padded requests have 0", of, r.kv_len));
  }
  require_range(field + ".num_tokens", step.num_tokens, 0, 8192);
  if (step.num_tokens > 0 && step.num_tokens < queries_of(step))
    throw CaseError(fmt::format("{}.num_tokens: {} is less than the {} queries of the step", field,
                                step.num_tokens, queries_of(step)));
  if (!p.graph) {
    if (step.num_tokens > 0)
      throw CaseError(fmt::format("{}.num_tokens: {} without shape.graph; only graphs are padded", field,
                                  step.num_tokens));
    return;
  }
  if (static_cast<int>(step.requests.size()) > p.max_requests)
    throw CaseError(fmt::format("{}.requests: {} entries, more than shape.max_requests {}", field,
                                step.requests.size(), p.max_requests));
  if (most_tokens(step) > p.index_capacity)
    throw CaseError(fmt::format("{}: may need {} entries, more than shape.index_capacity {}", field,
                                most_tokens(step), p.index_capacity));
}

}  // namespace

std::int64_t most_tokens(const BlockTableStep& step) {
  const int dummy = step.num_tokens / std::max(static_cast<int>(step.requests.size()), 1);
  std::int64_t sum = 0;
  for (const Request& r : step.requests) sum += r.q_len == 0 ? std::max(r.kv_len, dummy) : r.kv_len;
  return sum;
}

void read(const JsonObject& root, BlockTableExpand& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"manager_block", "kernel_block", "graph", "interleaved", "max_requests",
                          "index_capacity", "spare_columns", "steps"});
  shape.read("manager_block", p.manager_block);
  shape.read("kernel_block", p.kernel_block);
  shape.read("graph", p.graph);
  shape.read("interleaved", p.interleaved);
  shape.read("max_requests", p.max_requests);
  shape.read("index_capacity", p.index_capacity);
  shape.read("spare_columns", p.spare_columns);
  shape.each("steps", {"num_tokens", "requests"}, [&](const JsonObject& entry) {
    BlockTableStep& step = p.steps.emplace_back();
    entry.read("num_tokens", step.num_tokens);
    entry.each("requests", {"q_len", "kv_len"}, [&](const JsonObject& r) {
      Request& request = step.requests.emplace_back();
      r.read_required("q_len", request.q_len);
      r.read_required("kv_len", request.kv_len);
    });
  });
}

void write(JsonWriter& writer, const BlockTableExpand& p) {
  Json steps = Json::array();
  for (const BlockTableStep& step : p.steps) {
    Json requests = Json::array();
    for (const Request& r : step.requests) requests.push_back({{"q_len", r.q_len}, {"kv_len", r.kv_len}});
    steps.push_back({{"num_tokens", step.num_tokens}, {"requests", std::move(requests)}});
  }
  writer.section("shape") = {{"manager_block", p.manager_block},
                             {"kernel_block", p.kernel_block},
                             {"graph", p.graph},
                             {"interleaved", p.interleaved},
                             {"max_requests", p.max_requests},
                             {"index_capacity", p.index_capacity},
                             {"spare_columns", p.spare_columns},
                             {"steps", std::move(steps)}};
}

void validate(const Case& c, const BlockTableExpand& p) {
  require_range("shape.manager_block", p.manager_block, 1, 1024);
  require_range("shape.kernel_block", p.kernel_block, 1, 1024);
  require_multiple("shape.manager_block", p.manager_block, p.kernel_block);
  require_range("shape.spare_columns", p.spare_columns, 0, 64);
  require_range("shape.max_requests", p.max_requests, p.graph ? 1 : 0, p.graph ? 512 : 0);
  require_range("shape.index_capacity", p.index_capacity, p.graph ? 1 : 0, p.graph ? 1048576 : 0);
  if (p.interleaved && p.graph)
    throw CaseError(
        "shape.interleaved: batches of one captured graph cannot be interleaved; they share its lists");
  if (p.steps.empty() || p.steps.size() > 8)
    throw CaseError(fmt::format("shape.steps: {} entries, outside 1..8", p.steps.size()));
  for (std::size_t i = 0; i < p.steps.size(); ++i)
    validate_step(p, p.steps[i], fmt::format("shape.steps[{}]", i));
  if (c.data.fill != Fill::normal)
    throw CaseError(
        fmt::format("data.fill: {} means nothing to block_table_expand; use normal", name(c.data.fill)));
  if (c.memory.page_padding_bytes != 0)
    throw CaseError("memory.page_padding_bytes: block_table_expand touches no page; use 0");
}

}  // namespace attest::cases
