// SPDX-License-Identifier: MIT
//
// Values of q, K and V. N is a fresh N(0,1); stored values of the cache are divided by kv_scale.
//
//   fill             K            V                  q               scores
//   normal           N            N                  N               N(0, 192 sm^2)
//   mean_shifted     mu_d + N/2   mu_d + N/2         N               a common offset per row
//   position_coded   N            e_pi(token)        2 N             N(0, (2 sm)^2 192)
//   constant_scores  N            +-1                0               0
//   wide_scores      N            N                  N x 20..200     mostly one key takes all
//   negative_offset  -h b         N                  h a             -40..-20: an empty slot of score 0 would
//   win
//
// h are signs per column and a b = 30 / (192 sm_scale); a and b each vary by 10 % with the row.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/narrow.h"
#include "cases/ops/mla_prefill.h"
#include "cases/poison.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int k_columns = prefill_k_columns, v_columns = prefill_v_columns;
constexpr int slack = 64;

class PrefillRows {
 public:
  PrefillRows(const Case& c, const MlaPrefill& p) : seed_(c.seed), fill_(c.data.fill) {
    std::array<std::uint16_t, prefill_row_columns> halves;
    Counter(seed_, Draw::prefill_mean, 0, 0).halves(0, prefill_row_columns, halves.data());
    normals(halves.data(), prefill_row_columns, mean_.data());
    magnitude_ = std::sqrt(30.0F / (static_cast<float>(k_columns) * p.sm_scale));
  }

  /// K then V of a head, real values. Tokens of the context come first, those of the call after them.
  void key(int request, int token, int head, float* out) const {
    std::array<std::uint16_t, prefill_row_columns> halves;
    Counter(seed_, Draw::prefill_kv, static_cast<std::uint32_t>(request),
            static_cast<std::uint32_t>(token * 128 + head))
        .halves(0, prefill_row_columns, halves.data());
    normals(halves.data(), prefill_row_columns, out);
    float* v = out + k_columns;
    switch (fill_) {
      case Fill::mean_shifted:
        for (std::size_t d = 0; d < prefill_row_columns; ++d) out[d] = mean_[d] + 0.5F * out[d];
        break;
      case Fill::position_coded:
        std::fill(v, v + v_columns, 0.0F);
        v[(static_cast<std::uint32_t>(token) * 37U + static_cast<std::uint32_t>(head)) % v_columns] = 1.0F;
        break;
      case Fill::constant_scores:
        for (int d = 0; d < v_columns; ++d) v[d] = std::copysign(1.0F, v[d]);
        break;
      case Fill::negative_offset: {
        const float of_row = 0.9F + 0.2F * static_cast<float>(halves[0]) * 0x1p-16F;
        for (std::size_t d = 0; d < k_columns; ++d)
          out[d] = -std::copysign(magnitude_, mean_[d]) * (of_row + 0.02F * out[d]);
        break;
      }
      default:
        break;
    }
  }

  void query(int request, int position, int head, float* out) const {
    const auto row = static_cast<std::uint32_t>(position * 128 + head);
    std::array<std::uint16_t, k_columns> halves;
    Counter(seed_, Draw::prefill_q, static_cast<std::uint32_t>(request), row)
        .halves(0, k_columns, halves.data());
    normals(halves.data(), k_columns, out);
    float factor = 1;
    switch (fill_) {
      case Fill::position_coded:
        factor = 2;
        break;
      case Fill::constant_scores:
        std::fill(out, out + k_columns, 0.0F);
        return;
      case Fill::wide_scores: {
        constexpr std::array<float, 6> factors = {20, 32, 50, 80, 126, 200};
        factor = factors[halves[0] % factors.size()];
        break;
      }
      case Fill::negative_offset: {
        const float of_row = 0.9F + 0.2F * static_cast<float>(halves[0]) * 0x1p-16F;
        for (std::size_t d = 0; d < k_columns; ++d)
          out[d] = std::copysign(magnitude_, mean_[d]) * (of_row + 0.02F * out[d]);
        return;
      }
      default:
        break;
    }
    for (int d = 0; d < k_columns; ++d) out[d] *= factor;
  }

 private:
  std::uint64_t seed_;
  Fill fill_;
  std::array<float, prefill_row_columns> mean_{};
  float magnitude_ = 1;
};

/// Page ids of all requests, then those that nobody owns.
std::vector<std::int32_t> order_pages(const Case& c, std::size_t count) {
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (c.memory.placement == Placement::reversed) std::reverse(order.begin(), order.end());
  if (c.memory.placement == Placement::shuffled) {
    const Counter draw(c.seed, Draw::page_order, 0, 0);
    for (std::size_t i = count - 1; i > 0; --i)
      std::swap(order[i],
                order[draw.below(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + 1))]);
  }
  return order;
}

void fill_cache(const Case& c, const MlaPrefill& p, const PrefillRows& rows, MlaPrefillInputs& in) {
  constexpr std::size_t unowned = 3;
  const std::size_t row_bytes = prefill_row_columns * element_bytes(p.cache_format);
  const std::size_t token_bytes = static_cast<std::size_t>(p.heads) * row_bytes;
  in.page_stride_bytes = static_cast<std::uint64_t>(p.page_size) * token_bytes +
                         static_cast<std::uint64_t>(c.memory.page_padding_bytes);
  in.page_indptr.push_back(0);
  for (const PrefillRequest& r : p.requests)
    in.page_indptr.push_back(in.page_indptr.back() + (r.context_len + p.page_size - 1) / p.page_size);
  const auto used = static_cast<std::size_t>(in.page_indptr.back());
  const std::vector<std::int32_t> order = order_pages(c, used + unowned);

  in.context_pool.size = (used + unowned) * in.page_stride_bytes;
  SparseBytes::Extent& content = in.context_pool.extents.emplace_back();
  content.bytes =
      poison_bytes(c, c.memory.unused, p.cache_format,
                   static_cast<std::size_t>(in.context_pool.size) / element_bytes(p.cache_format), "context");
  std::array<float, prefill_row_columns> values;
  for (std::size_t i = 0; i < p.requests.size(); ++i)
    for (int token = 0; token < p.requests[i].context_len; ++token) {
      const auto entry = static_cast<std::size_t>(in.page_indptr[i] + token / p.page_size);
      std::byte* at =
          content.bytes.data() +
          static_cast<std::size_t>(order[entry]) * static_cast<std::size_t>(in.page_stride_bytes) +
          static_cast<std::size_t>(token % p.page_size) * token_bytes;
      for (int head = 0; head < p.heads; ++head, at += row_bytes) {
        rows.key(static_cast<int>(i), token, head, values.data());
        for (float& value : values) value /= p.kv_scale;
        narrow(p.cache_format, values.data(), prefill_row_columns, at);
      }
    }

  in.page_indices.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(used));
  const Counter draw(c.seed, Draw::garbage_index, 0, 0);
  for (std::uint32_t i = 0; i < slack; ++i)
    in.page_indices.push_back(c.memory.unused == Poison::inf ? (i % 2 == 0 ? -1 : 2147480000)
                                                             : order[used + draw.below(i, unowned)]);
}

}  // namespace

MlaPrefillInputs materialise(const Case& c, const MlaPrefill& p) {
  const PrefillRows rows(c, p);
  MlaPrefillInputs in;
  fill_cache(c, p, rows, in);

  in.qo_indptr.push_back(0);
  in.kv_indptr.push_back(0);
  for (const PrefillRequest& r : p.requests) {
    in.qo_indptr.push_back(in.qo_indptr.back() + r.q_len);
    in.kv_indptr.push_back(in.kv_indptr.back() + r.kv_len);
    in.context_len.push_back(r.context_len);
  }
  const std::size_t element = element_bytes(p.qkv_format);
  const auto heads = static_cast<std::size_t>(p.heads);
  const auto total_q = static_cast<std::size_t>(in.qo_indptr.back());
  const auto total_kv = static_cast<std::size_t>(in.kv_indptr.back());
  in.q.resize(total_q * heads * k_columns * element);
  in.k.resize(total_kv * heads * k_columns * element);
  in.v = poison_bytes(c, c.memory.unused, p.qkv_format,
                      total_kv * heads * static_cast<std::size_t>(p.v_stride), "v");
  std::array<float, prefill_row_columns> values;
  std::byte* q = in.q.data();
  std::byte* k = in.k.data();
  std::byte* v = in.v.data();
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const PrefillRequest& r = p.requests[i];
    const int request = static_cast<int>(i);
    for (int position = 0; position < r.q_len; ++position)
      for (int head = 0; head < p.heads; ++head, q += k_columns * element) {
        rows.query(request, position, head, values.data());
        narrow(p.qkv_format, values.data(), k_columns, q);
      }
    for (int token = 0; token < r.kv_len; ++token)
      for (int head = 0; head < p.heads; ++head) {
        rows.key(request, r.context_len + token, head, values.data());
        narrow(p.qkv_format, values.data(), k_columns, k);
        narrow(p.qkv_format, values.data() + k_columns, v_columns, v);
        k += k_columns * element;
        v += static_cast<std::size_t>(p.v_stride) * element;
      }
  }
  return in;
}

}  // namespace attest::cases
