// SPDX-License-Identifier: MIT
//
// op verify_attention: the attention of speculative verification over a paged cache. A request has a context
// and a tree of draft tokens whose keys follow the context in the cache; every node is a query that sees the
// context, its ancestors and itself, nothing else. A chain is the causal mask of plain verification; trees
// are EAGLE's (arXiv:2401.15077, section 3.2; SpecInfer, arXiv:2305.09781, section 4.2). Rows of 576, V of
// 512, as in mla_decode.
//
//   "shape": {"heads": 16, "page_size": 16, "fold": 1, "lead": 0, "return_lse": true,
//             "requests": [{"context_len": 37, "parents": [-1, 0, 0, 1]},
//                          {"context_len": 5, "parents": [-1]}]},
//   "formats": {"kv": "bf16"}, "scales": {"sm_scale": ..., "kv_scale": ...}
//
// Two ways in which engines bend a batch to a kernel that lacks its shape are part of the case, because they
// must not change any result:
//   lead   so many rows of garbage are put before the queries of every request (q_len 2 and 3 brought to 4
//          without moving a causal bound aligned to the right); what they give is dropped
//   fold   heads are passed as query positions: heads / fold of them, fold times as many rows per request
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases/ops/mla_decode.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct TreeRequest {
  int context_len = 0;       ///< 0..131072
  std::vector<int> parents;  ///< [nodes], 0..64 of them: -1 for node 0, else an earlier node
  bool operator==(const TreeRequest&) const = default;

  [[nodiscard]] int nodes() const { return static_cast<int>(parents.size()); }
};

struct VerifyAttention {
  static constexpr const char* op = "verify_attention";

  int heads = 16;     ///< 1..128
  int page_size = 1;  ///< 1..1024 tokens
  int fold = 1;       ///< 1..16, a divisor of heads
  int lead = 0;       ///< 0..15
  bool return_lse = true;
  std::vector<TreeRequest> requests;  ///< 1..512, at least one with a node
  Format kv_format = Format::bf16;    ///< bf16 or fp8_e4m3fnuz; q and out are bf16
  float sm_scale = 0.07216878F;
  float kv_scale = 1.0F;  ///< 1 for a bf16 cache
  bool operator==(const VerifyAttention&) const = default;
};

/// Bit j of entry i: node i sees node j. Ancestors and itself.
std::vector<std::uint64_t> tree_mask(const TreeRequest& request);

/// The mla_decode problem with the same cache and the same queries, every request's nodes as its last tokens.
MlaDecode decode_problem(const VerifyAttention& p);

struct VerifyAttentionInputs {
  MlaDecodeInputs decode;    ///< of decode_problem: cache, page table, q [total_nodes, heads, 576]
  std::vector<std::byte> q;  ///< [total_nodes + lead * batch, heads, 576] bf16, leading rows included
  std::vector<std::int32_t> q_indptr;     ///< [batch + 1] rows of q
  std::vector<std::int32_t> node_indptr;  ///< [batch + 1] entries of mask
  std::vector<std::uint64_t>
      mask;  ///< [total_nodes] as tree_mask; bits of nodes that do not exist are garbage
};

void read(const JsonObject& root, VerifyAttention& p);
void write(JsonWriter& writer, const VerifyAttention& p);
/// Throws CaseError: what mla_decode refuses of a cache, and parents that are no tree.
void validate(const Case& c, const VerifyAttention& p);
VerifyAttentionInputs materialise(const Case& c, const VerifyAttention& p);

}  // namespace attest::cases
