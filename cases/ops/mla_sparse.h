// SPDX-License-Identifier: MIT
//
// op mla_sparse: its problem, the bytes it becomes, and what the case reader needs to know of it.
//
// Every query token has a list of cache slots and attends to those; its causal limit is in the choice of the
// list. Lists hold global slots: translating a request's own token numbers is op index_remap, as in vLLM's
// ROCm backend (vllm/v1/attention/backends/mla/rocm_aiter_mla_sparse.py). What a list means, holes and
// repetitions included, is in reference/sparse_list.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cases/ops/mla_decode.h"
#include "cases/sparse_bytes.h"
#include "cases/vocabulary.h"

namespace attest::cases {

/// Which of the tokens that a query may see are in its list. There are n = kv_len - q_len + position + 1.
enum class ListChoice : std::uint8_t {
  newest,    ///< the last min(n, topk), oldest first; all of them when n <= topk
  shuffled,  ///< the same in random order
  random,    ///< min(n, topk) different ones, any order
  repeated,  ///< min(n, topk) drawn with replacement
};

/// How much of its row a list fills.
enum class ListLength : std::uint8_t {
  full,    ///< all that were chosen
  ragged,  ///< of some rows all, of some none, of some a part
};

/// Where the list has entries that are no slots.
enum class ListHoles : std::uint8_t {
  none,
  end,
  middle,
  front,
  scattered,
  tile,  ///< at the front, a multiple of 16, 32 or 64 of them
  row,   ///< some lists have nothing else
};

/// What a hole holds.
enum class HoleValue : std::uint8_t {
  minus_one,
  any,  ///< -1, -123456, INT_MIN, num_slots, num_slots + 7, INT_MAX
};

/// op "mla_sparse": absorbed MLA attention of each query token over its list of cache rows.
///
///   {"op": "mla_sparse",
///    "shape": {"heads": 16, "page_size": 64, "topk": 64, "list": "random", "list_length": "ragged",
///              "holes": "front", "hole_value": "any", "requests": [{"q_len": 3, "kv_len": 300}]},
///    "formats": {"kv": "fp8_e4m3fnuz", "kv_layout": "ds"}, ...}
struct MlaSparse {
  static constexpr const char* op = "mla_sparse";

  int heads = 16;      ///< 1..128
  int page_size = 1;   ///< 1..1024 slots
  int topk = 64;       ///< 1..2048 entries in the row of a list
  int num_splits = 1;  ///< 1..32, of the list
  bool return_lse = true;
  ListChoice choice = ListChoice::newest;
  ListLength length = ListLength::full;
  ListHoles holes = ListHoles::none;
  HoleValue hole_value = HoleValue::minus_one;
  std::vector<Request> requests;    ///< 1..512, q_len 0..1024, at least one with a query
  Format q_format = Format::bf16;   ///< bf16, or fp8_e4m3fnuz when the cache is rows of that
  Format kv_format = Format::bf16;  ///< bf16 or fp8_e4m3fnuz; ds: fp8_e4m3fnuz
  Format out_format = Format::bf16;
  KvLayout kv_layout = KvLayout::rows;  ///< rows or ds
  float sm_scale = 0.07216878F;         ///< 2^-10..2^3; 192^-0.5
  float q_scale = 1.0F;                 ///< 2^-7..2^7, per tensor; 1 for bf16 q
  float kv_scale = 1.0F;                ///< 2^-7..2^7, per tensor; 1 for a bf16 cache and for ds
  bool operator==(const MlaSparse&) const = default;
};

struct MlaSparseInputs {
  std::vector<std::byte> q;  ///< [total_q, heads, 576] in q_format
  SparseBytes kv_pool;       ///< pages of page_size rows
  std::uint64_t page_stride_bytes = 0;
  std::int64_t num_slots = 0;         ///< of the pool: slots 0..num_slots - 1
  std::vector<std::int32_t> indices;  ///< [total_q, topk] slots; behind its length a row holds garbage
  std::vector<std::int32_t> lengths;  ///< [total_q] 0..topk leading entries that count, holes included
};

std::span<const char* const> names(ListChoice);
std::span<const char* const> names(ListLength);
std::span<const char* const> names(ListHoles);
std::span<const char* const> names(HoleValue);

void read(const JsonObject& root, MlaSparse& p);
void write(JsonWriter& writer, const MlaSparse& p);
/// Throws CaseError: see validate in cases/case.h.
void validate(const Case& c, const MlaSparse& p);
MlaSparseInputs materialise(const Case& c, const MlaSparse& p);

/// The mla_decode problem with the same queries and cache rows.
MlaDecode as_decode(const MlaSparse& p);

}  // namespace attest::cases
