// SPDX-License-Identifier: MIT
#include "oracle/verify_relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace attest::oracle {
namespace {

using cases::VerifyAttention;
using cases::VerifyAttentionInputs;

/// Well mixed bits of the seed: neighbours in a campaign get different relations.
std::uint64_t mixed(std::uint64_t seed) {
  seed ^= seed >> 33;
  seed *= 0xff51afd7ed558ccdULL;
  return seed ^ (seed >> 33);
}

struct Node {
  int request = 0, node = 0;
};

std::vector<Node> nodes_of(const VerifyAttention& p) {
  std::vector<Node> nodes;
  for (int r = 0; r < static_cast<int>(p.requests.size()); ++r)
    for (int n = 0; n < p.requests[static_cast<std::size_t>(r)].nodes(); ++n) nodes.push_back({r, n});
  return nodes;
}

/// The bytes of the cache row of a node.
std::span<std::byte> cache_row(const VerifyAttention& p, VerifyAttentionInputs& in, const Node& n) {
  const auto r = static_cast<std::size_t>(n.request);
  const int token = p.requests[r].context_len + n.node;
  const std::int32_t page =
      in.decode.kv_page_indices[static_cast<std::size_t>(in.decode.kv_indptr[r] + token / p.page_size)];
  const std::size_t row_bytes = p.kv_format == cases::Format::bf16 ? 1152 : 576;
  const std::uint64_t offset = static_cast<std::uint64_t>(page) * in.decode.page_stride_bytes +
                               static_cast<std::uint64_t>(token % p.page_size) * row_bytes;
  for (cases::SparseBytes::Extent& extent : in.decode.kv_pool.extents)
    if (offset >= extent.offset && offset + row_bytes <= extent.offset + extent.bytes.size())
      return std::span(extent.bytes).subspan(static_cast<std::size_t>(offset - extent.offset), row_bytes);
  return {};
}

/// Pass when both runs gave the same bytes for all rows that `must` be the same.
template <typename Must>
Verdict same_rows(const cases::Outputs& original, const cases::Outputs& changed, const VerifyAttention& p,
                  const Must& must, const char* diagnosis) {
  Verdict verdict;
  verdict.lane = "exact";
  const std::vector<Node> nodes = nodes_of(p);
  for (const cases::Outputs::Tensor& before : original.tensors) {
    const cases::Outputs::Tensor* after = changed.find(before.name);
    if (after == nullptr || after->bytes.size() != before.bytes.size() || nodes.empty()) {
      verdict.kind = VerdictKind::harness_error;
      verdict.diagnosis = "outputs missing or of the wrong size";
      return verdict;
    }
    const std::size_t row = before.bytes.size() / nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!must(nodes[i])) continue;
      ++verdict.elements_checked;
      if (std::memcmp(before.bytes.data() + i * row, after->bytes.data() + i * row, row) == 0) continue;
      ++verdict.rows_failed;
      if (verdict.kind == VerdictKind::fail) continue;
      verdict.kind = VerdictKind::fail;
      verdict.diagnosis = diagnosis;
      verdict.detail =
          fmt::format("{} of request {}, node {} changed", before.name, nodes[i].request, nodes[i].node);
    }
  }
  return verdict;
}

std::vector<Relation> future_kv(const cases::Case& c, const VerifyAttention& p,
                                const VerifyAttentionInputs& in, std::uint64_t choice) {
  std::vector<Node> later;  // that some row does not see
  for (const Node& n : nodes_of(p))
    if (n.node > 0) later.push_back(n);
  // Where requests share pages a changed row may be another request's too.
  if (later.empty() || c.memory.prefix_sharing) return {};
  const Node target = later[choice % later.size()];
  VerifyAttentionInputs changed = in;
  const std::span<std::byte> row = cache_row(p, changed, target);
  const std::size_t element = p.kv_format == cases::Format::bf16 ? 2 : 1;
  // Valid values, every column another one's.
  for (std::size_t i = 0, j = row.size() / element; i + 1 < j; ++i) {
    --j;
    std::swap_ranges(row.begin() + static_cast<std::ptrdiff_t>(i * element),
                     row.begin() + static_cast<std::ptrdiff_t>((i + 1) * element),
                     row.begin() + static_cast<std::ptrdiff_t>(j * element));
  }
  const std::vector<std::uint64_t> seen =
      cases::tree_mask(p.requests[static_cast<std::size_t>(target.request)]);
  return {{"future kv", c, std::move(changed),
           [p, target, seen](const cases::Outputs& original, const cases::Outputs& other) {
             return same_rows(
                 original, other, p,
                 [&](const Node& n) {
                   return n.request != target.request ||
                          (seen[static_cast<std::size_t>(n.node)] >> target.node & 1) == 0;
                 },
                 "a row depends on a node that it does not see");
           }}};
}

std::vector<Relation> padded_or_folded(const cases::Case& c, const VerifyAttention& p, std::uint64_t choice) {
  cases::Case other = c;
  VerifyAttention& q = std::get<VerifyAttention>(other.problem);
  if (p.lead > 0 || p.fold > 1) {
    q.lead = 0;
    q.fold = 1;
  } else {
    q.lead = 1 + static_cast<int>(choice % 3);
    if (p.heads % 2 == 0) q.fold = 2;
  }
  cases::Inputs inputs = cases::materialise(other);
  return {{"padded, folded", std::move(other), std::move(inputs),
           [p](const cases::Outputs& original, const cases::Outputs& changed) {
             return same_rows(
                 original, changed, p, [](const Node&) { return true; },
                 "leading rows or folded heads change a result");
           }}};
}

}  // namespace

std::vector<Relation> verify_relations(const cases::Case& c, const cases::Inputs& inputs) {
  const auto& p = std::get<VerifyAttention>(c.problem);
  const std::uint64_t choice = mixed(c.seed);
  if (choice % 8 == 0) return future_kv(c, p, std::get<VerifyAttentionInputs>(inputs), choice / 8);
  if (choice % 8 == 1) return padded_or_folded(c, p, choice / 8);
  return {};
}

}  // namespace attest::oracle
