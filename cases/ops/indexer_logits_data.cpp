// SPDX-License-Identifier: MIT
//
// Queries, weights and keys of indexer_logits. Every token has its own scale, and neighbours differ: a scale
// read from the wrong place must show (https://github.com/vllm-project/vllm/issues/50576).
//
//   exact   q and k in -2..2, weights +-1, +-2, +-4, scales powers of two: every partial sum, in any order,
//           is a multiple of a power of two below 2^24 of them, so the logit is exact in f32
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cases/byte_pool.h"
#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/narrow.h"
#include "cases/ops/indexer_logits.h"
#include "cases/paging.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int width = 128;
using Values = std::array<float, width>;

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// 128 values of a token, as they are stored.
void draw_values(Fill fill, const Counter& draw, float* out) {
  std::array<std::uint16_t, width> halves;
  draw.halves(0, width, halves.data());
  Values normal;
  normals(halves.data(), width, normal.data());
  for (std::size_t i = 0; i < width; ++i) {
    switch (fill) {
      case Fill::exact:
        out[i] = static_cast<float>(static_cast<int>(halves[i] % 5U) - 2);
        break;
      case Fill::outlier_channels:
        out[i] = normal[i] * (i % 32 == 5 ? 30.0F : 1.0F);
        break;
      case Fill::saturating:
        out[i] = halves[i] % 5 == 0 ? (normal[i] < 0 ? -240.0F : 240.0F) : 40.0F * normal[i];
        break;
      default:
        out[i] = normal[i] * 4.0F;
        break;
    }
  }
}

/// A positive scale around 1/16; of powers of two when asked for, or when sums must be exact.
float draw_scale(const Case& c, ScaleFormat format, const Counter& draw, std::uint32_t i) {
  if (c.data.fill == Fill::exact) return power_of_two(static_cast<int>(draw.below(i, 4)) - 2);
  const int exponent = static_cast<int>(draw.below(2 * i, 6)) - 7;
  const auto fraction = static_cast<float>(draw.below(2 * i + 1, 65536)) / 65536.0F;
  return power_of_two(exponent) * (format == ScaleFormat::ue8m0 ? 1.0F : 1.0F + fraction);
}

struct Key {
  std::array<std::byte, width> values;
  float scale;
};

Key draw_key(const Case& c, const IndexerLogits& p, std::uint32_t request, std::uint32_t position) {
  Values values;
  draw_values(c.data.fill, Counter(c.seed, Draw::indexer_key, request, position), values.data());
  Key key;
  narrow(Format::fp8_e4m3fnuz, values.data(), width, key.values.data());
  key.scale = draw_scale(c, p.scale_format, Counter(c.seed, Draw::indexer_choice, request, position), 0);
  return key;
}

void draw_queries(const Case& c, const IndexerLogits& p, std::size_t rows, IndexerLogitsInputs& in) {
  const auto heads = static_cast<std::size_t>(p.heads);
  in.q.resize(rows * heads * width);
  for (std::size_t row = 0; row < rows; ++row) {
    const Counter choice(c.seed, Draw::indexer_choice, 0x80000000U, static_cast<std::uint32_t>(row));
    for (std::size_t h = 0; h < heads; ++h) {
      const auto at = static_cast<std::uint32_t>(h);
      Values values;
      draw_values(c.data.fill, Counter(c.seed, Draw::indexer_query, static_cast<std::uint32_t>(row), at),
                  values.data());
      narrow(Format::fp8_e4m3fnuz, values.data(), width, in.q.data() + (row * heads + h) * width);
      in.q_scale.push_back(draw_scale(c, p.scale_format, choice, at));
      const std::uint32_t word = choice.word(4096 + at);
      const auto half = static_cast<std::uint16_t>(word);
      float weight = 0;
      normals(&half, 1, &weight);
      if (c.data.fill == Fill::exact)
        weight = (weight < 0 ? -1.0F : 1.0F) * power_of_two(static_cast<int>(word >> 16) % 3);
      in.weights.push_back(weight);
    }
  }
}

void make_pages(const Case& c, const IndexerLogits& p, IndexerLogitsInputs& in) {
  const PagePlan plan = plan_pages(cache_shape(p), c.memory, c.seed);
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.pool = poisoned_pool(c, plan, c.memory.unused, Format::fp8_e4m3fnuz);
  in.table_stride = 1;
  for (std::size_t r = 0; r < p.requests.size(); ++r)
    in.table_stride = std::max(in.table_stride, plan.kv_indptr[r + 1] - plan.kv_indptr[r]);
  in.block_table = poison_integers(
      c, c.memory.unused, p.requests.size() * static_cast<std::size_t>(in.table_stride), "block_table");
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[r];
    std::copy(pages, plan.pages.data() + plan.kv_indptr[r + 1],
              in.block_table.begin() + static_cast<std::ptrdiff_t>(r) * in.table_stride);
    for (int position = 0; position < p.requests[r].kv_len; ++position) {
      const Key key = draw_key(c, p, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(position));
      const std::span<std::byte> page = page_of(in.pool, plan, pages[position / p.page_size]);
      const auto offset = static_cast<std::size_t>(position % p.page_size);
      std::copy(key.values.begin(), key.values.end(),
                page.begin() + static_cast<std::ptrdiff_t>(offset * width));
      const std::size_t scale_at = static_cast<std::size_t>(p.page_size) * width + 4 * offset;
      std::memcpy(page.data() + scale_at, &key.scale, 4);
    }
  }
}

}  // namespace

IndexerLogitsInputs materialise(const Case& c, const IndexerLogits& p) {
  const bool decode = p.form == TopKForm::decode;
  IndexerLogitsInputs in;
  in.next_n = p.requests.front().q_len;
  int keys_before = 0;
  int longest = 0;
  for (const Request& r : p.requests) {
    in.kv_lens.push_back(r.kv_len);
    longest = std::max(longest, r.kv_len);
    for (int i = 0; i < r.q_len; ++i) {
      const int begin = decode ? 0 : keys_before;
      in.row_begin.push_back(begin);
      in.row_end.push_back(begin + r.kv_len - r.q_len + i + 1);
    }
    keys_before += r.kv_len;
  }
  in.width = std::max(decode ? longest : keys_before, 1);
  draw_queries(c, p, in.row_begin.size(), in);
  if (decode) {
    make_pages(c, p, in);
    return in;
  }
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    for (int position = 0; position < p.requests[r].kv_len; ++position) {
      const Key key = draw_key(c, p, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(position));
      in.keys.insert(in.keys.end(), key.values.begin(), key.values.end());
      in.k_scale.push_back(key.scale);
    }
  }
  return in;
}

}  // namespace attest::cases
