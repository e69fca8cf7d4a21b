// SPDX-License-Identifier: MIT
//
// op dense_switch: the attention of a batch on a sparse-attention model, with the switch that runs short
// prefills densely (vllm-project/vllm#47327; for ROCm #49263, open).
//
//   requests with q_len <= 1 are decodes and come first; the others are prefills
//   longest = the largest kv_len of a prefill
//   longest <= topk    prefills run the dense form: 192/128-wide heads, causal. Decodes run the sparse form
//   else               everything runs the sparse form: 576-wide rows, over lists of topk tokens
//
// With kv_len <= topk a list holds every key, so both forms agree at the boundary; they differ in what they
// read. The dense form takes K and V of this step's tokens as they were computed, the sparse form takes
// everything from the cache; and for prefills that run densely the indexer is skipped, so that their lists
// hold whatever was there (vllm-project/vllm#52512).
//
// Absorption without rounding. The forms share a projection, and its rounding would blur what is compared. So
// a head's W_UK and W_UV are selections: head h takes column (k_step * p + k_first) mod 512 of a latent as
// its nope column p, and (v_step * v + v_first) mod 512 as its V column v. K and V of the dense form, the
// absorbed query of the sparse form and its way back to 128 columns are then copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases/ops/mla_decode.h"
#include "cases/sparse_bytes.h"
#include "cases/vocabulary.h"

namespace attest::cases {

/// op "dense_switch".
///
///   {"op": "dense_switch",
///    "shape": {"heads": 4, "page_size": 16, "topk": 32, "previous_kv_lens": [52, 32],
///              "requests": [{"q_len": 1, "kv_len": 52}, {"q_len": 6, "kv_len": 32}]}, ...}
struct DenseSwitch {
  static constexpr const char* op = "dense_switch";

  int heads = 16;                 ///< 1..128
  int page_size = 64;             ///< 1..1024
  int topk = 128;                 ///< 1..2048
  std::vector<Request> requests;  ///< 1..64, q_len 1..1024 and at most kv_len; decodes (q_len 1) first
  /// kv_len of the same requests in the batch that ran before on the same metadata buffers; empty: none did.
  std::vector<int> previous_kv_lens;
  Format kv_format = Format::bf16;  ///< bf16 ("auto") or fp8_e4m3fnuz
  float sm_scale = 0.07216878F;     ///< 2^-10..2^3
  float q_scale = 1.0F;   ///< 2^-7..2^7; q is bf16, so it has no effect: engines hand it over all the same
  float kv_scale = 1.0F;  ///< 2^-7..2^7; of the cache when it is fp8, no effect on bf16
  bool operator==(const DenseSwitch&) const = default;
};

inline constexpr int nope_width = 128;   ///< of a head's q and k, dense form
inline constexpr int rope_columns = 64;  ///< behind them, shared by the heads
inline constexpr int dense_width = nope_width + rope_columns;
inline constexpr int value_width = 128;  ///< of a head's v and of the output

struct DenseSwitchInputs {
  std::vector<std::byte> q;             ///< [total_q, heads, 192] bf16
  std::vector<std::byte> absorbed;      ///< [total_q, heads, 576] bf16
  std::vector<std::byte> k;             ///< [prefill_tokens, heads, 192] bf16: every token of every prefill
  std::vector<std::byte> v;             ///< [prefill_tokens, heads, 128] bf16
  std::vector<std::int32_t> v_columns;  ///< [heads, 128] of the 512
  SparseBytes kv_pool;                  ///< pages of page_size rows of 576 in kv_format
  std::uint64_t page_stride_bytes = 0;
  std::int64_t num_pages = 0;  ///< of the pool
  int table_width = 0;
  std::vector<std::int32_t> block_table;  ///< [requests, table_width] page ids; behind the live ones garbage
  std::vector<std::int32_t> qo_indptr;    ///< [requests + 1]
  std::vector<std::int32_t> kv_lens;      ///< [requests]
  std::vector<std::int32_t> previous_kv_lens;  ///< [requests], or empty
  std::vector<std::int32_t> k_indptr;          ///< [requests + 1] rows of k and v; decodes have none
  std::vector<std::int32_t> topk_ids;          ///< [total_q, topk] tokens of the row's own request
};

/// Requests that are decodes: they come first.
int decode_requests(const DenseSwitch& p);
/// Whether prefills run the dense form.
bool runs_dense(const DenseSwitch& p);
/// Which tokens the list of a query holds that runs the sparse form: min(position + 1, topk) of the context
/// and itself.
int list_length(const DenseSwitch& p, int request, int position);

void read(const JsonObject& root, DenseSwitch& p);
void write(JsonWriter& writer, const DenseSwitch& p);
/// Throws CaseError: see validate in cases/case.h.
void validate(const Case& c, const DenseSwitch& p);
DenseSwitchInputs materialise(const Case& c, const DenseSwitch& p);

}  // namespace attest::cases
