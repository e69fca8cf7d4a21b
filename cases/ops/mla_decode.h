// SPDX-License-Identifier: MIT
//
// op mla_decode: its problem, the bytes it becomes, and what the case reader needs to know of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cases/sparse_bytes.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

enum class KvLayout : std::uint8_t {
  rows,     ///< 576 elements of formats.kv
  ds,       ///< 656 bytes: 512 of formats.kv, 4 f32 scales, 64 bf16 (reference/ds_layout.h)
  ds_page,  ///< the same 656 bytes a token, in three runs per page: all latents, all scales, all rope
};
std::span<const char* const> names(KvLayout);

/// op "mla_decode": absorbed MLA attention over a paged cache (reference/attention.h), rows of 576, V of 512.
struct MlaDecode {
  static constexpr const char* op = "mla_decode";

  int heads = 16;      ///< 1..128
  int page_size = 1;   ///< 1..1024 tokens
  int num_splits = 1;  ///< 1..32, of the KV range
  bool causal = true;  ///< bottom-right aligned
  bool return_lse = true;
  std::vector<Request> requests;    ///< 1..512, at least one with a query
  Format q_format = Format::bf16;   ///< bf16, or fp8_e4m3fnuz when kv_format is
  Format kv_format = Format::bf16;  ///< bf16 or fp8_e4m3fnuz
  Format out_format = Format::bf16;
  KvLayout kv_layout = KvLayout::rows;  ///< rows, or ds_page with kv_format fp8_e4m3fnuz and q_format bf16
  float sm_scale = 0.07216878F;         ///< 2^-10..2^3; 192^-0.5
  float q_scale = 1.0F;                 ///< 2^-7..2^7, per tensor; 1 for bf16 q
  float kv_scale = 1.0F;                ///< 2^-7..2^7, per tensor; 1 for a bf16 cache and for ds_page
  bool operator==(const MlaDecode&) const = default;
};

/// Entries of kv_page_indices past the live ones: page ids that hold poison, or (poison `inf`) ids outside
/// the pool.
inline constexpr int index_slack = 64;

struct MlaDecodeInputs {
  std::vector<std::byte> q;  ///< [total_q, heads, 576] in q_format
  SparseBytes kv_pool;       ///< pages of page_size tokens in kv_layout
  std::uint64_t page_stride_bytes = 0;
  std::int64_t num_pages = 0;  ///< of the pool

  std::vector<std::int32_t> qo_indptr;         ///< [batch + 1] rows of q
  std::vector<std::int32_t> kv_indptr;         ///< [batch + 1] entries of kv_page_indices
  std::vector<std::int32_t> kv_page_indices;   ///< [kv_indptr[batch] + index_slack]; the slack is garbage
  std::vector<std::int32_t> kv_last_page_len;  ///< [batch] 1..page_size; 0 for kv_len 0
};

void read(const JsonObject& root, MlaDecode& p);
void write(JsonWriter& writer, const MlaDecode& p);
/// Throws CaseError: see validate in cases/case.h.
void validate(const Case& c, const MlaDecode& p);
MlaDecodeInputs materialise(const Case& c, const MlaDecode& p);

}  // namespace attest::cases
