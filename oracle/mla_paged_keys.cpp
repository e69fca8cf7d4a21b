// SPDX-License-Identifier: MIT
//
// The keys of mla_decode: a request's pages.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "oracle/mla_launch.h"
#include "reference/paged_cache.h"

namespace attest::oracle {
namespace {

using Eigen::Index;
using reference::row_width;

class PagedKeys final : public MlaKeys {
 public:
  PagedKeys(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in, reference::Restoring restoring)
      : p_(p), in_(in) {
    cache_.format = to_reference(p.kv_format);
    cache_.ds_page = p.kv_layout == cases::KvLayout::ds_page;
    cache_.restoring = restoring;
    cache_.page_size = p.page_size;
    cache_.page_stride_bytes = in.page_stride_bytes;
    cache_.columns = row_width;
    cache_.bytes = [&pool = in.kv_pool](std::uint64_t offset, std::size_t size) {
      return pool.at(offset, size);
    };
    row_bytes_ = cache_.ds_page ? std::uint64_t{reference::ds_row_bytes}
                                : std::uint64_t{row_width} *
                                      static_cast<std::uint64_t>(bytes_per_element(cache_.format));
  }

  [[nodiscard]] Matrix rows(int group) const override {
    return reference::gather_rows(cache_, pages(group), kv_len(group));
  }
  [[nodiscard]] int walk(int group) const override { return kv_len(group); }

  // First the rest of the last page, then the pages that follow in the index table: another request's, or the
  // garbage behind the live entries.
  [[nodiscard]] std::optional<Matrix> row_beyond(int group, int beyond) const override {
    return token(group, kv_len(group) + beyond);
  }

  [[nodiscard]] int first_key_past(int group, std::uint64_t bytes) const override {
    const auto of_group = pages(group);
    int first = std::numeric_limits<int>::max();
    for (std::size_t i = of_group.size(); i-- > 0;)
      if ((static_cast<std::uint64_t>(of_group[i]) + 1) * in_.page_stride_bytes > bytes)
        first = static_cast<int>(i) * p_.page_size;
    return first;
  }
  [[nodiscard]] bool ends_inside_page(int group) const override { return kv_len(group) % p_.page_size != 0; }
  [[nodiscard]] bool meets_masked_tile(int group, int visible) const override {
    return visible < kv_len(group);
  }

  [[nodiscard]] std::vector<OtherKeys> other_keys() const override {
    std::vector<OtherKeys> others;
    const int page_size = p_.page_size;
    // As many rows as `count` says, each from row_of(group, t).
    const auto add = [&](const char* text, auto count, auto row_of, const char* detail) {
      others.push_back({text, detail, [count, row_of](int group, int visible) -> std::optional<Matrix> {
                          const Index n = std::max(0, count(group, visible));
                          Matrix keys(n, row_width);
                          for (Index t = 0; t < n; ++t) {
                            const std::optional<Matrix> row = row_of(group, static_cast<int>(t));
                            if (!row) return std::nullopt;
                            keys.row(t) = row->row(0);
                          }
                          return keys;
                        }});
    };
    const auto visible_keys = [](int, int visible) { return visible; };
    if (page_size > 1) {
      // The number of pages taken for the number of keys, with the causal bound that follows from it.
      const auto page_count = [this, page_size](int group, int visible) {
        return (kv_len(group) + page_size - 1) / page_size - (kv_len(group) - visible);
      };
      const auto first_of_page = [this](int group, int t) -> std::optional<Matrix> {
        const auto page = entry(group, t);
        if (!page) return std::nullopt;
        return row_at(static_cast<std::uint64_t>(*page) * in_.page_stride_bytes, 0);
      };
      const auto page_as_slot = [this](int group, int t) -> std::optional<Matrix> {
        const auto page = entry(group, t);
        if (!page) return std::nullopt;
        return row_at(static_cast<std::uint64_t>(*page) * row_bytes_, 0);
      };
      add("first token of each page only", page_count, first_of_page, "as many keys as pages");
      // The same where the bound in pages falls below the first and is compared without a sign, or where
      // there is none.
      const auto all_pages = [this, page_size](int group, int) {
        return (kv_len(group) + page_size - 1) / page_size;
      };
      add(
          "first token of each page only",
          [page_count, all_pages](int group, int visible) {
            const int count = page_count(group, visible);
            return count > 0 ? count : all_pages(group, visible);
          },
          first_of_page, "as many keys as pages, rows in front of the first page see all");
      others.back().after_bounds = true;
      add("first token of each page only", all_pages, first_of_page,
          "as many keys as pages, without a causal bound");
      others.back().after_bounds = true;
      add("page size treated as 1", visible_keys, first_of_page, "token t is the first row of page entry t");
      if (!cache_.ds_page) {
        add("page size treated as 1", visible_keys, page_as_slot, "page entries were taken for row numbers");
        add("page size treated as 1", page_count, page_as_slot, "page entries were taken for row numbers");
      }
      add(
          "pages of a request read in physical order", visible_keys,
          [this, page_size](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, 0);
            if (!page) return std::nullopt;
            return row_at(static_cast<std::uint64_t>(*page + t / page_size) * in_.page_stride_bytes,
                          t % page_size);
          },
          "the table was used for the first page only");
    }
    if (page_size > 1 && in_.page_stride_bytes != static_cast<std::uint64_t>(page_size) * row_bytes_)
      add(
          "page padding ignored", visible_keys,
          [this, page_size](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, t / page_size);
            if (!page) return std::nullopt;
            return row_at(
                static_cast<std::uint64_t>(*page) * static_cast<std::uint64_t>(page_size) * row_bytes_,
                t % page_size);
          },
          "pages were taken to follow each other without padding");
    if (in_.kv_pool.size > (std::uint64_t{1} << 32))
      add(
          "kv offset wraps", visible_keys,
          [this](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, t / p_.page_size);
            if (!page) return std::nullopt;
            const std::uint64_t begin = static_cast<std::uint64_t>(*page) * in_.page_stride_bytes;
            const auto in_page = static_cast<std::uint64_t>(t % p_.page_size);
            // In runs the page wraps as a whole; a row of its own may wrap behind the begin of its page.
            const std::optional<Matrix> row = cache_.ds_page
                                                  ? row_at(begin & 0xffffffffULL, t % p_.page_size)
                                                  : row_at((begin + in_page * row_bytes_) & 0xffffffffULL, 0);
            return row ? row : Matrix(Matrix::Zero(1, row_width));
          },
          "byte offsets modulo 2^32");
    if (cache_.ds_page) ds_defects(add);
    return others;
  }

 private:
  [[nodiscard]] int kv_len(int group) const { return p_.requests[static_cast<std::size_t>(group)].kv_len; }

  [[nodiscard]] std::span<const std::int32_t> pages(int group) const {
    const auto b = static_cast<std::size_t>(group);
    const auto first = static_cast<std::size_t>(in_.kv_indptr[b]),
               last = static_cast<std::size_t>(in_.kv_indptr[b + 1]);
    return std::span(in_.kv_page_indices).subspan(first, last - first);
  }

  /// Entry t of the group's page list, reading on behind its end.
  [[nodiscard]] std::optional<std::int64_t> entry(int group, int t) const {
    const auto at = static_cast<std::size_t>(in_.kv_indptr[static_cast<std::size_t>(group)]) +
                    static_cast<std::size_t>(t);
    if (at >= in_.kv_page_indices.size()) return std::nullopt;
    const std::int64_t page = in_.kv_page_indices[at];
    if (page < 0 || page >= in_.num_pages) return std::nullopt;
    return page;
  }

  [[nodiscard]] std::optional<Matrix> token(int group, int t) const {
    const auto page = entry(group, t / p_.page_size);
    if (!page) return std::nullopt;
    return row_at(static_cast<std::uint64_t>(*page) * in_.page_stride_bytes, t % p_.page_size);
  }

  /// The row in slot `slot` of a page that begins at byte `page` of the pool; nullopt where nothing was
  /// placed.
  [[nodiscard]] std::optional<Matrix> row_at(std::uint64_t page, int slot) const {
    try {
      if (cache_.ds_page) {
        const auto row = stored_row(page, slot);
        Matrix values(1, row_width);
        reference::decode_ds_row(cache_.format, row, values.data(), cache_.restoring);
        return values;
      }
      const std::uint64_t offset = page + static_cast<std::uint64_t>(slot) * row_bytes_;
      return reference::decode_matrix(cache_.format, cache_.bytes(offset, row_bytes_), 1, row_width);
    } catch (const std::out_of_range&) {
      return std::nullopt;
    }
  }

  using StoredRow = std::array<std::byte, reference::ds_row_bytes>;
  [[nodiscard]] StoredRow stored_row(std::uint64_t page, int slot) const {
    const std::size_t bytes = static_cast<std::size_t>(p_.page_size) * row_bytes_;
    return reference::ds_row_of_page(cache_.bytes(page, bytes), p_.page_size, slot);
  }

  template <typename Add>
  void ds_defects(const Add& add) const {
    const auto visible_keys = [](int, int visible) { return visible; };
    // Token t as stored, changed by change(row, its page, its slot), and restored as if that were right.
    const auto changed = [&](const char* text, const char* detail, auto change,
                             reference::Restoring restoring) {
      add(
          text, visible_keys,
          [this, change, restoring](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, t / p_.page_size);
            if (!page) return std::nullopt;
            const std::uint64_t begin = static_cast<std::uint64_t>(*page) * in_.page_stride_bytes;
            StoredRow row = stored_row(begin, t % p_.page_size);
            change(row, begin, t % p_.page_size);
            Matrix values(1, row_width);
            reference::decode_ds_row(cache_.format, row, values.data(), restoring);
            return values;
          },
          detail);
    };
    constexpr auto scales = static_cast<std::ptrdiff_t>(reference::ds_scale_at);
    using reference::Restoring;
    changed(
        "ds latents truncated to bf16", "latent times scale was cut to bf16, not rounded",
        [](StoredRow&, std::uint64_t, int) {},
        cache_.restoring == Restoring::truncated ? Restoring::nearest_even : Restoring::truncated);
    changed(
        "ds scale of another tile", "the first scale was used for all columns",
        [](StoredRow& row, std::uint64_t, int) {
          for (int tile = 1; tile < 4; ++tile)
            std::copy_n(row.begin() + scales, 4, row.begin() + scales + 4 * tile);
        },
        cache_.restoring);
    changed(
        "ds scale of another token", "the scales of the page's first token were used for all",
        [this](StoredRow& row, std::uint64_t page, int) {
          const StoredRow first = stored_row(page, 0);
          std::copy_n(first.begin() + scales, 16, row.begin() + scales);
        },
        cache_.restoring);
    for (const float factor : {2.0F, 0.5F})
      changed(
          "fp8 decoded with the other exponent bias", "what is fp8 in the cache is off by a factor of two",
          [factor](StoredRow& row, std::uint64_t, int) {
            for (int tile = 0; tile < 4; ++tile) {
              float scale = 0;
              std::memcpy(&scale, row.data() + scales + 4 * tile, sizeof scale);
              scale *= factor;
              std::memcpy(row.data() + scales + 4 * tile, &scale, sizeof scale);
            }
          },
          cache_.restoring);
  }

  const cases::MlaDecode& p_;
  const cases::MlaDecodeInputs& in_;
  reference::PagedCache cache_;
  std::uint64_t row_bytes_ = 0;
};

}  // namespace

MlaProblem mla_problem(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in,
                       reference::Restoring restoring) {
  MlaProblem problem;
  problem.requests = p.requests;
  problem.heads = p.heads;
  problem.num_splits = p.num_splits;
  problem.page_size = p.page_size;
  problem.return_lse = p.return_lse;
  problem.fp8_q = p.q_format != cases::Format::bf16;
  problem.fp8_cache = p.kv_format != cases::Format::bf16 && p.kv_layout == cases::KvLayout::rows;
  problem.q_format = p.q_format;
  problem.out_format = p.out_format;
  problem.scales = {p.sm_scale, p.q_scale, p.kv_scale};
  problem.q = in.q;
  for (std::size_t b = 0; b < p.requests.size(); ++b)
    problem.groups.push_back({static_cast<int>(b), 0, p.requests[b].q_len, p.requests[b].kv_len, p.causal,
                              Index{in.qo_indptr[b]} * p.heads});
  problem.keys = std::make_shared<PagedKeys>(p, in, restoring);
  return problem;
}

}  // namespace attest::oracle
