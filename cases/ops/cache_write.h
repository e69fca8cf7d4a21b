// SPDX-License-Identifier: MIT
//
// op cache_write: new tokens into the slots of a paged cache.
//
//   {"op": "cache_write",
//    "shape": {"layout": "ds_mla", "page_size": 16, "convention": "divide", "scale_format": "f32",
//              "ceiling": 224, "padding_tokens": 2, "skip_tokens": false,
//              "requests": [{"q_len": 3, "kv_len": 37}]},
//    "formats": {"fp8": "fp8_e4m3fnuz"}, "scales": {"kv_scale": "0x3f800000"}, ...}
//
// Request r brings q_len tokens at its positions kv_len - q_len .. kv_len - 1; position p lies in slot
// page * page_size + p % page_size of its page. A token whose slot is -1 is not written: `padding_tokens` of
// them end the batch, as in a padded graph, and `skip_tokens` puts some in between. The rows of all four
// layouts are in reference/cache_write.h; nothing else in the pool may change.
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

enum class CacheLayout : std::uint8_t { bf16, fp8, ds_mla, indexer };
/// How x / scale is formed, where there is a scale.
enum class ScaleConvention : std::uint8_t {
  divide,
  reciprocal,  ///< x * (1 / scale)
  either,      ///< the kernel's choice: bytes are judged by the quantiser's half step
};
enum class ScaleFormat : std::uint8_t { f32, ue8m0 };
std::span<const char* const> names(CacheLayout);
std::span<const char* const> names(ScaleConvention);
std::span<const char* const> names(ScaleFormat);

struct CacheWrite {
  static constexpr const char* op = "cache_write";

  CacheLayout layout = CacheLayout::bf16;
  int page_size = 16;  ///< 1..1024 tokens
  ScaleConvention convention = ScaleConvention::divide;
  ScaleFormat scale_format = ScaleFormat::f32;  ///< of ds_mla and indexer
  int ceiling = 224;              ///< ds_mla and indexer: what amax becomes; 224 or 240, or 448 for e4m3fn
  int padding_tokens = 0;         ///< 0..64
  bool skip_tokens = false;       ///< a fifth of the tokens has no slot
  std::vector<Request> requests;  ///< 1..512; q_len 0..256 and at most kv_len, kv_len 0..131072
  Format fp8_format = Format::fp8_e4m3fnuz;  ///< or fp8_e4m3fn
  float kv_scale = 1.0F;                     ///< layout fp8: 2^-7..2^7; else 1
  bool operator==(const CacheWrite&) const = default;
};

/// Bytes of a token in the pool, its scale included.
int cache_token_bytes(CacheLayout layout);

struct CacheWriteInputs {
  std::vector<std::byte> latent;           ///< [tokens, 512] bf16; indexer: [tokens, 128]
  std::vector<std::byte> rope;             ///< [tokens, 64] bf16; indexer: empty
  std::vector<std::int64_t> slot_mapping;  ///< [tokens] slots, -1 for none
  SparseBytes pool;                        ///< before the write: memory.output everywhere
  std::uint64_t page_stride_bytes = 0;
};

void read(const JsonObject& root, CacheWrite& p);
void write(JsonWriter& writer, const CacheWrite& p);
/// Throws CaseError: a value out of range or one that the layout has no use for, more new tokens than a
/// request has, a shared prefix (two writers of one slot), or a pool that is too large.
void validate(const Case& c, const CacheWrite& p);
CacheWriteInputs materialise(const Case& c, const CacheWrite& p);

}  // namespace attest::cases
