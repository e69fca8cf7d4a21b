// SPDX-License-Identifier: MIT
//
// op mla_prefill: attention of prompts in the MHA form of MLA, every head with its own K of 192 and V of 128
// columns, and the context in chunks.
//
// The keys of a request are of two kinds. `context_len` of them come from a paged cache that holds K and V of
// every head, as the up-projection leaves them; all queries see them, in chunks of `chunk_len` whose partial
// results are merged by their lse (merge_states). `kv_len` more come with the call, contiguous; query i of
// q_len sees the first kv_len - q_len + i + 1 of them (bottom-right aligned; none when that is not positive).
// In a plain prefill kv_len equals q_len; more keys than queries tell the two corners of a causal mask apart.
//
//   "shape": {"heads": 2, "page_size": 16, "chunk_len": 64, "v_stride": 128, "return_lse": true,
//             "requests": [{"q_len": 5, "kv_len": 5, "context_len": 100}]},
//   "formats": {"qkv": "bf16", "cache": "bf16"}, "scales": {"sm_scale": ..., "kv_scale": ...}
//
// Sources: DeepSeek-V2 (arXiv:2405.04434) section 2.1; vllm/v1/attention/backends/mla/common.py for chunked
// context; ROCm/aiter's prefill with qk 192 and v 128.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases/sparse_bytes.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

inline constexpr int prefill_k_columns = 192;
inline constexpr int prefill_v_columns = 128;
inline constexpr int prefill_row_columns =
    prefill_k_columns + prefill_v_columns;  ///< of one head in the cache

struct PrefillRequest {
  int q_len = 1;        ///< 0..1024
  int kv_len = 1;       ///< 0..8192 keys that come with the call
  int context_len = 0;  ///< 0..65536 keys in the cache
  bool operator==(const PrefillRequest&) const = default;
};

struct MlaPrefill {
  static constexpr const char* op = "mla_prefill";

  int heads = 1;       ///< 1..128
  int page_size = 1;   ///< 1..1024 tokens of context
  int chunk_len = 64;  ///< 1..65536 tokens of context per chunk; at most 31 chunks
  int v_stride = 128;  ///< 128..512, a multiple of 8: elements from one head of v to the next
  bool return_lse = true;
  std::vector<PrefillRequest> requests;  ///< 1..512, at least one with a query
  Format qkv_format = Format::bf16;  ///< bf16 or fp8_e4m3fnuz, of q and of the keys of the call; out is bf16
  Format cache_format = Format::bf16;  ///< bf16 or fp8_e4m3fnuz
  float sm_scale = 0.07216878F;        ///< 2^-10..2^3; 192^-0.5
  float kv_scale = 1.0F;               ///< of the cache, 1/16..16; 1 for bf16
  bool operator==(const MlaPrefill&) const = default;

  /// As many as the longest context takes; shorter ones have empty chunks.
  [[nodiscard]] int chunks() const {
    int longest = 0;
    for (const PrefillRequest& r : requests) longest = longest < r.context_len ? r.context_len : longest;
    return (longest + chunk_len - 1) / chunk_len;
  }
};

struct MlaPrefillInputs {
  std::vector<std::byte> q;  ///< [total_q, heads, 192] in qkv_format
  std::vector<std::byte> k;  ///< [total_kv, heads, 192] in qkv_format
  std::vector<std::byte> v;  ///< [total_kv, heads, v_stride], 128 of each in use
  SparseBytes context_pool;  ///< pages of page_size tokens of [heads, 320], K then V, in cache_format
  std::uint64_t page_stride_bytes = 0;

  std::vector<std::int32_t> qo_indptr;     ///< [batch + 1] tokens of q
  std::vector<std::int32_t> kv_indptr;     ///< [batch + 1] tokens of k and v
  std::vector<std::int32_t> context_len;   ///< [batch]
  std::vector<std::int32_t> page_indptr;   ///< [batch + 1] entries of page_indices
  std::vector<std::int32_t> page_indices;  ///< [page_indptr[batch] + 64]; the rest is garbage
};

void read(const JsonObject& root, MlaPrefill& p);
void write(JsonWriter& writer, const MlaPrefill& p);
/// Throws CaseError: a fill other than normal, mean_shifted, position_coded, constant_scores, wide_scores and
/// negative_offset; constant_scores with a kv_scale that is no power of two; a placement other than ordered,
/// shuffled and reversed; more than 31 chunks; more than 1 GiB of cache; no query in the whole batch.
void validate(const Case& c, const MlaPrefill& p);
MlaPrefillInputs materialise(const Case& c, const MlaPrefill& p);

}  // namespace attest::cases
