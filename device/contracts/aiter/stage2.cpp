// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/stage2.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace attest::device::aiter {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void merge_splits(const SplitMerge& m) {
  const std::size_t batch = m.qo_indptr.size() - 1;
  const bool copy = m.may_copy_final && m.num_kv_splits_indptr[batch] == static_cast<std::int32_t>(batch);
  const auto partial_at = [&](std::size_t element) {
    float value;
    std::memcpy(&value, m.partial.data() + element * sizeof value, sizeof value);
    return value;
  };
  for (std::size_t b = 0; b < batch; ++b) {
    int kv_len = m.kv_indptr[b + 1] - m.kv_indptr[b];
    if (m.page_size > 1) kv_len = (kv_len - 1) * m.page_size + m.kv_last_page_lens[b];
    const int chunks = (kv_len + m.split_granularity - 1) / m.split_granularity;
    const int valid = std::min(m.num_kv_splits_indptr[b + 1] - m.num_kv_splits_indptr[b], chunks);
    for (int row = m.qo_indptr[b]; row < m.qo_indptr[b + 1]; ++row) {
      for (int head = 0; head < m.heads; ++head) {
        const std::size_t out_row = static_cast<std::size_t>(row) * m.heads + head;
        std::uint16_t* out = m.out.data() + out_row * v_head_dim;
        if (copy) {
          // R holds bf16 rows without a split dimension; the kernel addresses it as [row][head] all the same.
          std::memcpy(out, m.partial.data() + out_row * v_head_dim * 2, v_head_dim * 2);
          continue;
        }
        float acc[v_head_dim] = {};
        float sum = 0, top = -infinity;
        for (int split = 0; split < valid; ++split) {
          const std::size_t entry = (static_cast<std::size_t>(row) * m.splits + split) * m.heads + head;
          const float lse = m.partial_lse[entry];
          const float new_top = std::fmax(lse, top);
          const float rescale = std::exp(top - new_top), weight = std::exp(lse - new_top);
          for (int d = 0; d < v_head_dim; ++d)
            acc[d] = acc[d] * rescale + weight * partial_at(entry * v_head_dim + static_cast<std::size_t>(d));
          sum = sum * rescale + weight;
          top = new_top;
        }
        for (int d = 0; d < v_head_dim; ++d) out[d] = to_bf16(acc[d] / sum);
        if (!m.lse.empty()) m.lse[out_row] = top + std::log(sum);
      }
    }
  }
}

void reduce_partials(const PersistentReduce& r) {
  const std::size_t tiles = r.reduce_indptr.size() - 1;
  const auto heads = static_cast<std::size_t>(r.heads);
  std::vector<float> weights;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const int begin = r.reduce_indptr[tile], end = r.reduce_indptr[tile + 1];
    if (begin == r.reduce_indptr[tiles]) break;
    if (end - begin < 2) continue;  // one piece has written the output itself
    const int q_begin = r.reduce_final_map[2 * tile], q_end = r.reduce_final_map[2 * tile + 1];
    for (int row = q_begin; row < q_end; ++row) {
      for (std::size_t head = 0; head < heads; ++head) {
        const auto entry = [&](int piece) {
          const auto partial_row = static_cast<std::size_t>(
              r.reduce_partial_map[static_cast<std::size_t>(piece)] + (row - q_begin));
          return partial_row * heads + head;
        };
        float acc[v_head_dim] = {};
        float lse = 0;
        if (end - begin < 4) {
          float top = -infinity, sum = 0;
          for (int piece = begin; piece < end; ++piece) {
            const float piece_lse = r.partial_lse[entry(piece)];
            const float new_top = std::fmax(top, piece_lse);
            const float rescale = std::exp(top - new_top), weight = std::exp(piece_lse - new_top);
            for (int d = 0; d < v_head_dim; ++d)
              acc[d] = acc[d] * rescale +
                       weight * r.partial[entry(piece) * v_head_dim + static_cast<std::size_t>(d)];
            sum = sum * rescale + weight;
            top = new_top;
          }
          for (float& value : acc) value /= sum;
          lse = sum == 0 || std::isnan(sum) ? infinity : top + std::log(sum);
        } else {
          float top = -infinity, sum = 0;
          for (int piece = begin; piece < end; ++piece) top = std::fmax(top, r.partial_lse[entry(piece)]);
          for (int piece = begin; piece < end; ++piece) sum += std::exp(r.partial_lse[entry(piece)] - top);
          lse = sum == 0 || std::isnan(sum) ? infinity : top + std::log(sum);
          for (int piece = begin; piece < end; ++piece) {
            const float weight = std::exp(r.partial_lse[entry(piece)] - lse);
            for (int d = 0; d < v_head_dim; ++d)
              acc[d] += weight * r.partial[entry(piece) * v_head_dim + static_cast<std::size_t>(d)];
          }
        }
        const std::size_t out_row = static_cast<std::size_t>(row) * heads + head;
        for (int d = 0; d < v_head_dim; ++d)
          r.out[out_row * v_head_dim + static_cast<std::size_t>(d)] = to_bf16(acc[d]);
        if (!r.lse.empty()) r.lse[out_row] = lse;
      }
    }
  }
}

}  // namespace attest::device::aiter
