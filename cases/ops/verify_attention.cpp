// SPDX-License-Identifier: MIT
#include "cases/ops/verify_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/case.h"
#include "cases/json_object.h"

namespace attest::cases {
namespace {

constexpr int most_nodes = 64;

void validate_tree(std::size_t index, const TreeRequest& request) {
  const std::string path = fmt::format("shape.requests[{}]", index);
  require_range(path + ".context_len", request.context_len, 0, 131072);
  if (request.nodes() > most_nodes)
    throw CaseError(fmt::format("{}.parents: {} nodes, more than {}", path, request.nodes(), most_nodes));
  for (int node = 0; node < request.nodes(); ++node) {
    const int parent = request.parents[static_cast<std::size_t>(node)];
    const int low = node == 0 ? -1 : 0, high = node - 1;
    if (parent < low || parent > high)
      throw CaseError(
          fmt::format("{}.parents[{}]: {} is outside {}..{}; node 0 has parent -1, others an earlier node",
                      path, node, parent, low, high));
  }
}

}  // namespace

std::vector<std::uint64_t> tree_mask(const TreeRequest& request) {
  std::vector<std::uint64_t> mask;
  for (int node = 0; node < request.nodes(); ++node) {
    const int parent = request.parents[static_cast<std::size_t>(node)];
    const std::uint64_t ancestors = parent < 0 ? 0 : mask[static_cast<std::size_t>(parent)];
    mask.push_back(ancestors | std::uint64_t{1} << node);
  }
  return mask;
}

MlaDecode decode_problem(const VerifyAttention& p) {
  MlaDecode d;
  d.heads = p.heads;
  d.page_size = p.page_size;
  d.return_lse = p.return_lse;
  d.kv_format = p.kv_format;
  d.sm_scale = p.sm_scale;
  d.kv_scale = p.kv_scale;
  for (const TreeRequest& r : p.requests) d.requests.push_back({r.nodes(), r.context_len + r.nodes()});
  return d;
}

void read(const JsonObject& root, VerifyAttention& p) {
  const JsonObject shape(root.required("shape"), "shape",
                         {"heads", "page_size", "fold", "lead", "return_lse", "requests"});
  shape.read("heads", p.heads);
  shape.read("page_size", p.page_size);
  shape.read("fold", p.fold);
  shape.read("lead", p.lead);
  shape.read("return_lse", p.return_lse);
  shape.each("requests", {"context_len", "parents"}, [&](const JsonObject& entry) {
    TreeRequest& request = p.requests.emplace_back();
    entry.read_required("context_len", request.context_len);
    (void)entry.required("parents");
    entry.read("parents", request.parents);
  });
  root.section("formats", {"kv"}).read("kv", p.kv_format);
  const JsonObject scales =
      root.section("scales", {"sm_scale", "sm_scale_value", "kv_scale", "kv_scale_value"});
  scales.read_scale("sm_scale", p.sm_scale);
  scales.read_scale("kv_scale", p.kv_scale);
}

void write(JsonWriter& writer, const VerifyAttention& p) {
  Json requests = Json::array();
  for (const TreeRequest& r : p.requests)
    requests.push_back({{"context_len", r.context_len}, {"parents", r.parents}});
  writer.section("shape") = {
      {"heads", p.heads}, {"page_size", p.page_size},   {"fold", p.fold},
      {"lead", p.lead},   {"return_lse", p.return_lse}, {"requests", std::move(requests)}};
  writer.section("formats") = {{"kv", name(p.kv_format)}};
  writer.scale("scales", "sm_scale", p.sm_scale);
  writer.scale("scales", "kv_scale", p.kv_scale);
}

void validate(const Case& c, const VerifyAttention& p) {
  require_range("shape.heads", p.heads, 1, 128);
  require_range("shape.fold", p.fold, 1, 16);
  if (p.heads % p.fold != 0)
    throw CaseError(fmt::format("shape.fold: {} does not divide {} heads", p.fold, p.heads));
  require_range("shape.lead", p.lead, 0, 15);
  for (std::size_t i = 0; i < p.requests.size(); ++i) validate_tree(i, p.requests[i]);
  if (c.data.fill > Fill::exact)
    throw CaseError(fmt::format("data.fill: {} is none of mla_decode's", name(c.data.fill)));
  // The cache is mla_decode's; its limit on q_len is not ours.
  Case with_same_cache = c;
  MlaDecode d = decode_problem(p);
  for (Request& r : d.requests) {
    r.kv_len = std::min(r.kv_len, 131072);
    r.q_len = std::min(r.q_len, 16);
  }
  with_same_cache.problem = d;
  validate(with_same_cache, d);
}

}  // namespace attest::cases
