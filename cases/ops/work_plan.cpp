// SPDX-License-Identifier: MIT
#include "cases/ops/work_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "cases/case.h"
#include "cases/json_object.h"
#include "cases/random.h"

namespace attest::cases {

int most_tiles(const WorkPlan& p) {
  int most = 0;
  for (const WorkPlanStep& step : p.steps) {
    int tiles = 0;
    for (const Request& r : step.requests) tiles += (r.q_len + p.tile_tokens - 1) / p.tile_tokens;
    most = std::max(most, tiles);
  }
  return most;
}

void read(const JsonObject& root, WorkPlan& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"slots", "granularity", "tile_tokens", "persistent_q_len", "causal", "steps"});
  shape.read("slots", p.slots);
  shape.read("granularity", p.granularity);
  shape.read("tile_tokens", p.tile_tokens);
  shape.read("persistent_q_len", p.persistent_q_len);
  shape.read("causal", p.causal);
  shape.each("steps", {"freed", "requests"}, [&](const JsonObject& entry) {
    WorkPlanStep& step = p.steps.emplace_back();
    entry.read("freed", step.freed);
    entry.each("requests", {"q_len", "kv_len"}, [&](const JsonObject& r) {
      Request& request = step.requests.emplace_back();
      r.read_required("q_len", request.q_len);
      r.read_required("kv_len", request.kv_len);
    });
  });
}

void write(JsonWriter& writer, const WorkPlan& p) {
  Json steps = Json::array();
  for (const WorkPlanStep& step : p.steps) {
    Json requests = Json::array();
    for (const Request& r : step.requests) requests.push_back({{"q_len", r.q_len}, {"kv_len", r.kv_len}});
    steps.push_back({{"freed", step.freed}, {"requests", std::move(requests)}});
  }
  writer.section("shape") = {{"slots", p.slots},
                             {"granularity", p.granularity},
                             {"tile_tokens", p.tile_tokens},
                             {"persistent_q_len", p.persistent_q_len},
                             {"causal", p.causal},
                             {"steps", std::move(steps)}};
}

void validate(const Case& c, const WorkPlan& p) {
  require_range("shape.slots", p.slots, 1, 304);
  require_range("shape.granularity", p.granularity, 1, 256);
  if (!std::has_single_bit(static_cast<unsigned>(p.granularity)))
    throw CaseError(fmt::format("shape.granularity: {} is no power of two", p.granularity));
  require_range("shape.tile_tokens", p.tile_tokens, 1, 16);
  require_range("shape.persistent_q_len", p.persistent_q_len, 1, 16);
  if (p.steps.empty() || p.steps.size() > 8)
    throw CaseError(fmt::format("shape.steps: {} entries, outside 1..8", p.steps.size()));
  bool any_query = false;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const auto& requests = p.steps[s].requests;
    if (requests.empty() || requests.size() > 64)
      throw CaseError(fmt::format("shape.steps[{}].requests: {} entries, outside 1..64", s, requests.size()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      require_range(fmt::format("shape.steps[{}].requests[{}].q_len", s, i), requests[i].q_len, 0, 16);
      require_range(fmt::format("shape.steps[{}].requests[{}].kv_len", s, i), requests[i].kv_len, 0, 4096);
      any_query = any_query || requests[i].q_len > 0;
    }
  }
  if (!any_query) throw CaseError("shape.steps: every q_len is 0; at least one request needs a query");
  if (c.data.fill != Fill::normal)
    throw CaseError(fmt::format("data.fill: {} means nothing to work_plan; use normal", name(c.data.fill)));
  if (c.memory.page_padding_bytes != 0 || c.memory.prefix_sharing)
    throw CaseError("memory: work_plan has no pages; page_padding_bytes must be 0, prefix_sharing false");
}

WorkPlanInputs materialise(const Case& c, const WorkPlan& p) {
  WorkPlanInputs in;
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    WorkPlanInputs::Step& step = in.steps.emplace_back();
    step.qo_indptr = step.kv_indptr = {0};
    for (std::uint32_t r = 0; r < p.steps[s].requests.size(); ++r) {
      const Request& request = p.steps[s].requests[r];
      step.qo_indptr.push_back(step.qo_indptr.back() + request.q_len);
      step.kv_indptr.push_back(step.kv_indptr.back() + request.kv_len);
      for (int t = 0; t < request.kv_len; ++t) {
        const Counter draw(c.seed, Draw::plan_value, s << 16 | r, static_cast<std::uint32_t>(t));
        step.scores.push_back(static_cast<std::int32_t>(draw.below(64, WorkPlanInputs::most_score + 1)));
        for (std::uint32_t column = 0; column < WorkPlanInputs::columns; ++column)
          step.values.push_back(
              static_cast<float>(static_cast<int>(draw.below(column, 2 * WorkPlanInputs::most_value + 1)) -
                                 WorkPlanInputs::most_value));
      }
    }
  }
  return in;
}

}  // namespace attest::cases
