// SPDX-License-Identifier: MIT
//
// The keys of mla_decode: a request's pages.
#include <algorithm>
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
  PagedKeys(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) : p_(p), in_(in) {
    cache_.format = to_reference(p.kv_format);
    cache_.page_size = p.page_size;
    cache_.page_stride_bytes = in.page_stride_bytes;
    cache_.columns = row_width;
    cache_.bytes = [&pool = in.kv_pool](std::uint64_t offset, std::size_t size) {
      return pool.at(offset, size);
    };
    row_bytes_ = std::uint64_t{row_width} * static_cast<std::uint64_t>(bytes_per_element(cache_.format));
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
        return row_at(static_cast<std::uint64_t>(*page) * in_.page_stride_bytes);
      };
      const auto page_as_slot = [this](int group, int t) -> std::optional<Matrix> {
        const auto page = entry(group, t);
        if (!page) return std::nullopt;
        return row_at(static_cast<std::uint64_t>(*page) * row_bytes_);
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
      add("page size treated as 1", visible_keys, page_as_slot, "page entries were taken for row numbers");
      add("page size treated as 1", page_count, page_as_slot, "page entries were taken for row numbers");
      add(
          "pages of a request read in physical order", visible_keys,
          [this, page_size](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, 0);
            if (!page) return std::nullopt;
            return row_at(static_cast<std::uint64_t>(*page + t / page_size) * in_.page_stride_bytes +
                          static_cast<std::uint64_t>(t % page_size) * row_bytes_);
          },
          "the table was used for the first page only");
    }
    if (page_size > 1 && in_.page_stride_bytes != static_cast<std::uint64_t>(page_size) * row_bytes_)
      add(
          "page padding ignored", visible_keys,
          [this, page_size](int group, int t) -> std::optional<Matrix> {
            const auto page = entry(group, t / page_size);
            if (!page) return std::nullopt;
            return row_at((static_cast<std::uint64_t>(*page) * static_cast<std::uint64_t>(page_size) +
                           static_cast<std::uint64_t>(t % page_size)) *
                          row_bytes_);
          },
          "pages were taken to follow each other without padding");
    if (in_.kv_pool.size > (std::uint64_t{1} << 32))
      add(
          "kv offset wraps", visible_keys,
          [this](int group, int t) -> std::optional<Matrix> {
            const auto offset = offset_of(group, t);
            if (!offset) return std::nullopt;
            const std::optional<Matrix> row = row_at(*offset & 0xffffffffULL);
            return row ? row : Matrix(Matrix::Zero(1, row_width));
          },
          "byte offsets modulo 2^32");
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

  [[nodiscard]] std::optional<std::uint64_t> offset_of(int group, int t) const {
    const auto page = entry(group, t / p_.page_size);
    if (!page) return std::nullopt;
    return static_cast<std::uint64_t>(*page) * in_.page_stride_bytes +
           static_cast<std::uint64_t>(t % p_.page_size) * row_bytes_;
  }

  [[nodiscard]] std::optional<Matrix> token(int group, int t) const {
    const auto offset = offset_of(group, t);
    return offset ? row_at(*offset) : std::nullopt;
  }

  /// One cache row at a byte offset of the pool; nullopt where nothing was placed.
  [[nodiscard]] std::optional<Matrix> row_at(std::uint64_t offset) const {
    try {
      return reference::decode_matrix(cache_.format, cache_.bytes(offset, row_bytes_), 1, row_width);
    } catch (const std::out_of_range&) {
      return std::nullopt;
    }
  }

  const cases::MlaDecode& p_;
  const cases::MlaDecodeInputs& in_;
  reference::PagedCache cache_;
  std::uint64_t row_bytes_ = 0;
};

}  // namespace

MlaProblem mla_problem(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
  MlaProblem problem;
  problem.requests = p.requests;
  problem.heads = p.heads;
  problem.num_splits = p.num_splits;
  problem.page_size = p.page_size;
  problem.return_lse = p.return_lse;
  problem.fp8_q = p.q_format != cases::Format::bf16;
  problem.fp8_cache = p.kv_format != cases::Format::bf16;
  problem.q_format = p.q_format;
  problem.out_format = p.out_format;
  problem.scales = {p.sm_scale, p.q_scale, p.kv_scale};
  problem.q = in.q;
  for (std::size_t b = 0; b < p.requests.size(); ++b)
    problem.groups.push_back({static_cast<int>(b), 0, p.requests[b].q_len, p.requests[b].kv_len, p.causal,
                              Index{in.qo_indptr[b]} * p.heads});
  problem.keys = std::make_shared<PagedKeys>(p, in);
  return problem;
}

}  // namespace attest::oracle
