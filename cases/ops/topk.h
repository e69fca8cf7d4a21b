// SPDX-License-Identifier: MIT
//
// op topk: the positions of the k largest scores of each row, as the indexer of sparse attention wants them.
//
//   {"op": "topk",
//    "shape": {"k": 64, "form": "prefill", "order": "any", "nan": "unspecified", "coordinates": "local",
//              "row_padding": 0, "requests": [{"q_len": 3, "kv_len": 300}]}, ...}
//
// A row is one query position of one request and has a range [begin, end) of the columns of the logits:
//
//   prefill  the requests' keys lie side by side: begin is the sum of the kv_len before, end = begin + kv_len
//            - q_len + i + 1. What a row has outside its range belongs to nobody.
//   decode   every request has the same q_len (next_n), begin is 0, end = kv_len - q_len + i + 1.
//
// An end before its begin is an empty row (https://github.com/vllm-project/vllm/pull/56464). The result is
// [rows, k]: min(end - begin, k) different positions, then -1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

enum class TopKForm : std::uint8_t { prefill, decode };
enum class TopKOrder : std::uint8_t {
  any,        ///< of the result, and among equal scores
  ascending,  ///< by position; of equal scores the first positions
};
enum class NanOrder : std::uint8_t {
  unspecified,  ///< a row with a NaN has some min(n, k) different positions
  ordered,      ///< +NaN above +inf, -NaN below -inf (reference/top_k.h)
};
enum class Coordinates : std::uint8_t {
  local,     ///< a row's first column is 0
  absolute,  ///< columns of the logits
};
std::span<const char* const> names(TopKForm);
std::span<const char* const> names(TopKOrder);
std::span<const char* const> names(NanOrder);
std::span<const char* const> names(Coordinates);

struct TopK {
  static constexpr const char* op = "topk";

  int k = 64;  ///< 1..2048
  TopKForm form = TopKForm::prefill;
  TopKOrder order = TopKOrder::any;
  NanOrder nan = NanOrder::unspecified;
  Coordinates coordinates = Coordinates::local;
  int row_padding = 0;            ///< 0..4096 columns from the end of a row of the logits to the next
  std::vector<Request> requests;  ///< 1..512; q_len 0..131072, kv_len 0..1048576
  bool operator==(const TopK&) const = default;
};

struct TopKInputs {
  std::vector<float> logits;            ///< [rows, row_stride]; garbage outside of the ranges
  std::vector<std::int32_t> row_begin;  ///< [rows] first column
  std::vector<std::int32_t> row_end;    ///< [rows] may lie before row_begin
  std::vector<std::int32_t> kv_lens;    ///< [requests]
  int next_n = 1;                       ///< decode: q_len of every request
  int width = 1;                        ///< columns of the logits
  int row_stride = 1;                   ///< width + row_padding
};

void read(const JsonObject& root, TopK& p);
void write(JsonWriter& writer, const TopK& p);
/// Throws CaseError: a value out of range, a fill that makes no scores, unequal q_len in decode form, more
/// than 16 Mi logits or results, or a memory recipe that speaks of pages.
void validate(const Case& c, const TopK& p);
TopKInputs materialise(const Case& c, const TopK& p);

}  // namespace attest::cases
