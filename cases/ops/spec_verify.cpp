// SPDX-License-Identifier: MIT
#include "cases/ops/spec_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {

std::span<const char* const> names(VerifyRows) {
  static constexpr std::array all = {"mixed", "dense", "sparse", "dyadic", "equal", "disjoint", "non_finite"};
  return all;
}

void read(const JsonObject& root, SpecVerify& p) {
  const JsonObject shape(
      root.required("shape"), "shape",
      {"vocab", "max_spec_len", "draft_probs", "tree", "rows", "padded_requests", "repeats", "requests"});
  shape.read("vocab", p.vocab);
  shape.read("max_spec_len", p.max_spec_len);
  shape.read("draft_probs", p.draft_probs);
  shape.read("tree", p.tree);
  shape.read("rows", p.rows);
  shape.read("padded_requests", p.padded_requests);
  shape.read("repeats", p.repeats);
  shape.each("requests", {"drafts", "greedy"}, [&](const JsonObject& entry) {
    VerifyRequest& request = p.requests.emplace_back();
    entry.read_required("drafts", request.drafts);
    entry.read("greedy", request.greedy);
  });
}

void write(JsonWriter& writer, const SpecVerify& p) {
  Json requests = Json::array();
  for (const VerifyRequest& r : p.requests) requests.push_back({{"drafts", r.drafts}, {"greedy", r.greedy}});
  writer.section("shape") = {
      {"vocab", p.vocab},     {"max_spec_len", p.max_spec_len}, {"draft_probs", p.draft_probs},
      {"tree", p.tree},       {"rows", name(p.rows)},           {"padded_requests", p.padded_requests},
      {"repeats", p.repeats}, {"requests", std::move(requests)}};
}

void validate(const Case& c, const SpecVerify& p) {
  require_range("shape.vocab", p.vocab, 2, 8192);
  require_range("shape.max_spec_len", p.max_spec_len, 1, 16);
  require_range("shape.padded_requests", p.padded_requests, 0, 64);
  require_range("shape.repeats", p.repeats, 1, 4096);
  if (p.tree && p.draft_probs)
    throw CaseError("shape.draft_probs: a tree is verified by the target's probabilities alone; use false");
  if (p.requests.empty() || p.requests.size() > 256)
    throw CaseError(fmt::format("shape.requests: {} entries, outside 1..256", p.requests.size()));
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    require_range(fmt::format("shape.requests[{}].drafts", i), p.requests[i].drafts, 0,
                  p.tree ? std::min(31, p.vocab) : p.max_spec_len);
    rows += p.requests[i].drafts + 1;
  }
  if (rows * p.vocab * p.repeats > 4 << 20)
    throw CaseError(
        fmt::format("shape.requests: {} probabilities, more than {}; a smaller vocab or fewer repeats",
                    rows * p.vocab * p.repeats, 4 << 20));
  if (c.data.fill != Fill::normal)
    throw CaseError(fmt::format(
        "data.fill: {} means nothing to spec_verify, which has shape.rows; use normal", name(c.data.fill)));
  if (c.memory.page_padding_bytes != 0 || c.memory.prefix_sharing)
    throw CaseError(
        "memory: spec_verify touches no page; page_padding_bytes must be 0, prefix_sharing false");
}

}  // namespace attest::cases
