// SPDX-License-Identifier: MIT
//
// op indexer_logits: how much each query token wants each key (reference/indexer.h), 128 columns, fp8 q and
// k.
//
//   {"op": "indexer_logits",
//    "shape": {"form": "decode", "heads": 64, "page_size": 64, "scale_format": "f32",
//              "requests": [{"q_len": 2, "kv_len": 37}]}, "data": {"fill": "normal"}, ...}
//
// The result is [rows, width] f32, -inf where the row may not look:
//
//   prefill  keys of all requests gathered side by side; a row's range begins at the sum of the kv_len before
//            and ends kv_len - q_len + i + 1 further on. width is the sum of all kv_len.
//   decode   keys in a paged cache, every request with the same q_len (next_n, 1..8); a row's range is [0,
//            kv_len - q_len + i + 1) of its request's positions. width is the longest kv_len.
//
// A logit is k_scale[s] * sum over heads of weights[t, h] * q_scale[t, h] * relu(<q, k>).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cases/ops/cache_write.h"
#include "cases/ops/topk.h"
#include "cases/sparse_bytes.h"
#include "cases/vocabulary.h"

namespace attest::cases {

struct IndexerLogits {
  static constexpr const char* op = "indexer_logits";

  TopKForm form = TopKForm::decode;
  int heads = 64;                               ///< 1..128
  int page_size = 64;                           ///< 1..1024 tokens; decode
  ScaleFormat scale_format = ScaleFormat::f32;  ///< of q_scale and k_scale, which are f32 in memory
  std::vector<Request> requests;  ///< 1..512; q_len 0..4096 (decode: all the same, 1..8), kv_len 0..131072
  bool operator==(const IndexerLogits&) const = default;
};

struct IndexerLogitsInputs {
  std::vector<std::byte> q;                      ///< [rows, heads, 128] fp8_e4m3fnuz
  std::vector<float> q_scale;                    ///< [rows, heads] positive
  std::vector<float> weights;                    ///< [rows, heads] of either sign
  int width = 1;                                 ///< columns of the result
  std::vector<std::int32_t> row_begin, row_end;  ///< [rows] columns; the end may lie before the begin
  std::vector<std::int32_t> kv_lens;             ///< [requests]
  int next_n = 1;                                ///< decode: q_len of every request

  std::vector<std::byte> keys;  ///< prefill: [width, 128] fp8_e4m3fnuz
  std::vector<float> k_scale;   ///< prefill: [width]

  SparseBytes pool;  ///< decode: pages of page_size tokens, reference/indexer.h
  std::uint64_t page_stride_bytes = 0;
  std::vector<std::int32_t> block_table;  ///< decode: [requests, table_stride]
  int table_stride = 1;
};

void read(const JsonObject& root, IndexerLogits& p);
void write(JsonWriter& writer, const IndexerLogits& p);
/// Throws CaseError: a value out of range, unequal q_len in decode form, a fill that is not for it, too many
/// logits or too large a cache, or pages in the prefill form's memory recipe.
void validate(const Case& c, const IndexerLogits& p);
IndexerLogitsInputs materialise(const Case& c, const IndexerLogits& p);

}  // namespace attest::cases
