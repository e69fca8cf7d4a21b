// SPDX-License-Identifier: MIT
//
// One latent and rope row per token, as RowMaker makes them, seen three ways: in the cache (rounded to its
// format), as a head's K and V (a token of this step as computed, one of the context as the cache has it),
// and through the absorbed query. Only the selections of dense_switch.h stand between them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "cases/cache_pool.h"
#include "cases/case.h"
#include "cases/fills.h"
#include "cases/narrow.h"
#include "cases/ops/dense_switch.h"
#include "cases/poison.h"
#include "cases/random.h"
#include "reference/formats.h"

namespace attest::cases {
namespace {

constexpr int latent_width = RowMaker::v_width;

/// Column `i` of a selection: an odd step runs through all 512.
struct Selection {
  int step = 1, first = 0;
  [[nodiscard]] std::size_t operator()(int i) const {
    return static_cast<std::size_t>((step * i + first) % latent_width);
  }
};

Selection selection(const Case& c, int head, std::uint32_t which) {
  const Counter draw(c.seed, Draw::projection, static_cast<std::uint32_t>(head), which);
  return {static_cast<int>(2 * draw.below(0, latent_width / 2) + 1),
          static_cast<int>(draw.below(1, latent_width))};
}

/// Queries and cache rows are those of this mla_decode problem. A bf16 cache has no scale, whatever is handed
/// over.
MlaDecode as_decode(const DenseSwitch& p) {
  MlaDecode d;
  d.heads = p.heads;
  d.page_size = p.page_size;
  d.requests = p.requests;
  d.kv_format = p.kv_format;
  d.sm_scale = p.sm_scale;
  d.kv_scale = p.kv_format == Format::bf16 ? 1.0F : p.kv_scale;
  return d;
}

void append(std::vector<std::byte>& bytes, const float* values, int count) {
  const std::size_t at = bytes.size();
  bytes.resize(at + 2 * static_cast<std::size_t>(count));
  narrow(Format::bf16, values, count, bytes.data() + at);
}

/// What the engine finds in the cache, dequantised to bf16.
void through_cache(const MlaDecode& p, float* row) {
  std::array<std::byte, std::size_t{2} * RowMaker::width> stored;
  narrow(p.kv_format, row, RowMaker::width, stored.data());
  const std::size_t element = element_bytes(p.kv_format);
  for (std::size_t d = 0; d < RowMaker::width; ++d) {
    std::uint32_t code = 0;
    std::memcpy(&code, stored.data() + d * element, element);
    row[d] = static_cast<float>(reference::decode(reference_format(p.kv_format), code));
  }
}

std::vector<std::int32_t> list_of(const Case& c, const DenseSwitch& p, int request, int position,
                                  int table_tokens) {
  const Counter draw(c.seed, Draw::index_list, static_cast<std::uint32_t>(request),
                     static_cast<std::uint32_t>(position));
  std::uint32_t drawn = 0;
  const auto below = [&](int bound) {
    return static_cast<std::int32_t>(draw.below(drawn++, static_cast<std::uint32_t>(std::max(bound, 1))));
  };
  const Request& r = p.requests[static_cast<std::size_t>(request)];
  std::vector<std::int32_t> ids;
  const bool skipped = request >= decode_requests(p) && runs_dense(p);
  if (!skipped) {
    // As an indexer leaves them: all in order when they fit, else topk different ones in any order.
    const int n = r.kv_len - r.q_len + position + 1;
    ids.resize(static_cast<std::size_t>(n));
    std::iota(ids.begin(), ids.end(), 0);
    if (n > p.topk) {
      for (int i = 0; i < p.topk; ++i)
        std::swap(ids[static_cast<std::size_t>(i)], ids[static_cast<std::size_t>(i + below(n - i))]);
      ids.resize(static_cast<std::size_t>(p.topk));
    }
  }
  while (ids.size() < static_cast<std::size_t>(p.topk)) {
    switch (c.memory.unused) {
      case Poison::nan:
      case Poison::inf:
        ids.push_back(-1);
        break;
      case Poison::zero:
        ids.push_back(0);
        break;
      case Poison::stale:
      case Poison::large:
        ids.push_back(below(table_tokens));
        break;
    }
  }
  return ids;
}

}  // namespace

DenseSwitchInputs materialise(const Case& c, const DenseSwitch& p) {
  const MlaDecode like = as_decode(p);
  const RowMaker rows(like, c);
  const CacheShape shape = cache_shape(p);
  const PagePlan plan = plan_pages(shape, c.memory, c.seed);

  DenseSwitchInputs in;
  in.kv_pool = make_pool(c, rows, {.format = p.kv_format}, shape, plan);
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.num_pages = plan.footprint.first_page + plan.footprint.content_pages;

  std::vector<Selection> k_of, v_of;
  for (int head = 0; head < p.heads; ++head) {
    k_of.push_back(selection(c, head, 0));
    v_of.push_back(selection(c, head, 1));
    for (int d = 0; d < value_width; ++d) in.v_columns.push_back(static_cast<std::int32_t>(v_of.back()(d)));
  }

  for (std::size_t i = 0; i < p.requests.size(); ++i)
    in.table_width = std::max(in.table_width, plan.kv_indptr[i + 1] - plan.kv_indptr[i]);
  in.table_width += 1;
  in.qo_indptr = {0};
  in.k_indptr = {0};
  in.previous_kv_lens.assign(p.previous_kv_lens.begin(), p.previous_kv_lens.end());
  const int decodes = decode_requests(p);
  std::array<float, RowMaker::width> row;
  std::array<float, RowMaker::width> absorbed;
  std::array<float, dense_width> narrow_row;
  std::array<float, value_width> value;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    const auto request = static_cast<int>(i);
    for (int entry = 0; entry < in.table_width; ++entry) {
      const int live = plan.kv_indptr[i + 1] - plan.kv_indptr[i];
      const auto unowned = plan.unowned_pages[static_cast<std::size_t>(entry) % plan.unowned_pages.size()];
      in.block_table.push_back(entry < live ? plan.pages[static_cast<std::size_t>(plan.kv_indptr[i] + entry)]
                                            : unowned);
    }
    in.qo_indptr.push_back(in.qo_indptr.back() + r.q_len);
    in.k_indptr.push_back(in.k_indptr.back() + (request < decodes ? 0 : r.kv_len));
    in.kv_lens.push_back(r.kv_len);

    for (int position = 0; position < r.q_len; ++position) {
      for (int head = 0; head < p.heads; ++head) {
        // A head's 128 nope columns, spread over the latents by its W_UK.
        rows.q_row(request, position, head, row.data());
        absorbed.fill(0.0F);
        for (int d = 0; d < nope_width; ++d) {
          narrow_row[static_cast<std::size_t>(d)] = row[static_cast<std::size_t>(d)];
          absorbed[k_of[static_cast<std::size_t>(head)](d)] = row[static_cast<std::size_t>(d)];
        }
        for (int d = 0; d < rope_columns; ++d) {
          const float x = row[static_cast<std::size_t>(latent_width + d)];
          narrow_row[static_cast<std::size_t>(nope_width + d)] = x;
          absorbed[static_cast<std::size_t>(latent_width + d)] = x;
        }
        append(in.q, narrow_row.data(), dense_width);
        append(in.absorbed, absorbed.data(), RowMaker::width);
      }
      const std::vector<std::int32_t> ids = list_of(c, p, request, position, in.table_width * p.page_size);
      in.topk_ids.insert(in.topk_ids.end(), ids.begin(), ids.end());
    }

    for (int token = 0; request >= decodes && token < r.kv_len; ++token) {
      rows.kv_row(request, token, row.data());
      if (token < r.kv_len - r.q_len) through_cache(like, row.data());
      for (float& x : row) x *= like.kv_scale;
      for (std::size_t head = 0; head < k_of.size(); ++head) {
        for (int d = 0; d < nope_width; ++d) narrow_row[static_cast<std::size_t>(d)] = row[k_of[head](d)];
        for (int d = 0; d < rope_columns; ++d)
          narrow_row[static_cast<std::size_t>(nope_width + d)] =
              row[static_cast<std::size_t>(latent_width + d)];
        for (int d = 0; d < value_width; ++d) value[static_cast<std::size_t>(d)] = row[v_of[head](d)];
        append(in.k, narrow_row.data(), dense_width);
        append(in.v, value.data(), value_width);
      }
    }
  }
  return in;
}

}  // namespace attest::cases
