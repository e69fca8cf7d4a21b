// SPDX-License-Identifier: MIT
//
// Attention of one query row in f32, key by key: the core of the small software kernels that the judges of
// verify_attention and mla_prefill are tested with. Shares no code with device/ or reference/attention.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "cases/vocabulary.h"
#include "reference/formats.h"

namespace attest::oracle::testing {

using Row = std::vector<float>;

inline Row row_of(cases::Format format, std::span<const std::byte> bytes) {
  const auto f = format == cases::Format::bf16 ? reference::Format::bf16 : reference::Format::fp8_e4m3fnuz;
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(reference::bytes_per_element(f)));
  reference::decode(f, bytes, values);
  return {values.begin(), values.end()};
}

/// One row's state; further keys may follow, other states may be merged in.
struct RowState {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  Row out;

  /// V is the first `columns` elements of `value`.
  void take(const Row& q, const Row& k, std::span<const float> value, float scale) {
    float dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot += q[d] * k[d];
    const float score = dot * scale, now = std::max(max, score);
    const float rescale = std::exp(max - now), weight = std::exp(score - now);
    out.resize(value.size(), 0.0F);
    for (std::size_t d = 0; d < value.size(); ++d) out[d] = out[d] * rescale + weight * value[d];
    sum = sum * rescale + weight;
    max = now;
  }
  [[nodiscard]] float lse() const {
    return sum == 0 ? -std::numeric_limits<float>::infinity() : max + std::log(sum);
  }
};

inline void put_bf16(std::vector<std::byte>& bytes, float value) {
  const std::uint32_t code =
      reference::encode(reference::Format::bf16, double{value}, reference::Overflow::to_special);
  bytes.push_back(static_cast<std::byte>(code & 0xffU));
  bytes.push_back(static_cast<std::byte>(code >> 8));
}

inline void put_f32(std::vector<std::byte>& bytes, float value) {
  std::byte code[4];
  std::memcpy(code, &value, 4);
  bytes.insert(bytes.end(), code, code + 4);
}

}  // namespace attest::oracle::testing
