// SPDX-License-Identifier: MIT
//
// The keys of mla_sparse: the slots of a query token's list.
//
// The keys of a row are the valid entries of its list; holes are no keys, but a kernel walks over them, so
// key j keeps its place in the list for whatever is cut into tiles and splits.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "oracle/mla_launch.h"
#include "reference/sparse_list.h"

namespace attest::oracle {
namespace {

using Eigen::Index;
using reference::kv_lora_rank;
using reference::qk_rope_head_dim;
using reference::row_width;

class ListedKeys final : public MlaKeys {
 public:
  ListedKeys(const cases::MlaSparse& p, const cases::MlaSparseInputs& in) : p_(p), in_(in) {
    cache_.ds_layout = p.kv_layout == cases::KvLayout::ds;
    cache_.format = to_reference(p.kv_format);
    cache_.page_size = p.page_size;
    cache_.page_stride_bytes = in.page_stride_bytes;
    cache_.bytes = [&pool = in.kv_pool](std::uint64_t offset, std::size_t size) {
      return pool.at(offset, size);
    };
    for (std::size_t t = 0; t < in.lengths.size(); ++t)
      places_.push_back(reference::valid_places(list(t), in.lengths[t], in.num_slots));
  }

  [[nodiscard]] int kv_len(std::size_t token) const { return static_cast<int>(places_[token].size()); }

  [[nodiscard]] Matrix rows(int group) const override {
    const auto token = static_cast<std::size_t>(group);
    Matrix keys(kv_len(token), row_width);
    for (Index j = 0; j < keys.rows(); ++j)
      cache_.row(slot(token, places_[token][static_cast<std::size_t>(j)]), keys.row(j).data());
    return keys;
  }
  [[nodiscard]] std::vector<int> places(int group) const override {
    return places_[static_cast<std::size_t>(group)];
  }
  [[nodiscard]] int walk(int group) const override { return in_.lengths[static_cast<std::size_t>(group)]; }

  [[nodiscard]] std::vector<int> repetitions(int group) const override {
    const auto token = static_cast<std::size_t>(group);
    std::map<std::int32_t, int> times;
    for (const int place : places_[token]) ++times[slot(token, place)];
    if (times.size() == places_[token].size()) return {};
    std::vector<int> repeated;
    for (const int place : places_[token]) repeated.push_back(times[slot(token, place)]);
    return repeated;
  }

  /// What lies behind a list is among `other_keys`.
  [[nodiscard]] std::optional<Matrix> row_beyond(int, int) const override { return std::nullopt; }

  [[nodiscard]] int first_key_past(int group, std::uint64_t bytes) const override {
    const auto token = static_cast<std::size_t>(group);
    for (std::size_t j = 0; j < places_[token].size(); ++j)
      if (cache_.offset(slot(token, places_[token][j])) + cache_.row_bytes() > bytes)
        return static_cast<int>(j);
    return std::numeric_limits<int>::max();
  }
  [[nodiscard]] bool ends_inside_page(int) const override { return false; }

  [[nodiscard]] bool meets_masked_tile(int group, int) const override {
    constexpr int smallest_tile = 16;
    const std::vector<int>& places = places_[static_cast<std::size_t>(group)];
    for (int first = 0; first < walk(group); first += smallest_tile) {
      const auto found = std::lower_bound(places.begin(), places.end(), first);
      if (found == places.end() || *found >= first + smallest_tile) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<OtherKeys> other_keys() const override {
    std::vector<OtherKeys> others;
    const auto add = [&](const char* text, const char* detail, auto rows_of) {
      others.push_back({text, detail, [rows_of](int group, int) -> std::optional<Matrix> {
                          return rows_of(static_cast<std::size_t>(group));
                        }});
    };
    // Lists that go on, up to a multiple of a tile or to the end of the row.
    for (const int unit : {16, 32, 64, 128, p_.topk})
      add("ids behind the length attended to", "entries behind the end of a list were taken for a part of it",
          [this, unit](std::size_t token) -> std::optional<Matrix> {
            const int length = in_.lengths[token];
            const int longer = std::min(p_.topk, (std::max(length, 1) + unit - 1) / unit * unit);
            if (longer == length) return std::nullopt;
            return gather(token, longer, [this](std::int64_t s) { return row_at(cache_.offset(s)); });
          });
    add("holes read as slot 0", "entries that are no slots were attended to",
        [this](std::size_t token) -> std::optional<Matrix> {
          const int length = in_.lengths[token];
          if (kv_len(token) == length) return std::nullopt;
          Matrix keys(length, row_width);
          for (int e = 0; e < length; ++e) {
            const std::int32_t s = slot(token, e);
            keys.row(e) = row_at(cache_.offset(s >= 0 && s < in_.num_slots ? s : 0)).row(0);
          }
          return keys;
        });
    const int longest = *std::max_element(in_.lengths.begin(), in_.lengths.end());
    if (longest < p_.topk && in_.lengths.size() > 1)
      add("lists read at another width", "row t was taken to begin t times the longest list",
          [this, longest](std::size_t token) -> std::optional<Matrix> {
            std::vector<std::int32_t> slots;
            for (int e = 0; e < in_.lengths[token]; ++e) {
              const std::int32_t s =
                  in_.indices[token * static_cast<std::size_t>(longest) + static_cast<std::size_t>(e)];
              if (s >= 0 && s < in_.num_slots) slots.push_back(s);
            }
            Matrix keys(std::ssize(slots), row_width);
            for (std::size_t j = 0; j < slots.size(); ++j)
              keys.row(static_cast<Index>(j)) = row_at(cache_.offset(slots[j])).row(0);
            return keys;
          });
    add("repeated ids counted once", "every slot of the list was attended to once",
        [this](std::size_t token) -> std::optional<Matrix> {
          if (repetitions(static_cast<int>(token)).empty()) return std::nullopt;
          std::set<std::int32_t> seen;
          std::vector<Index> first;
          for (std::size_t j = 0; j < places_[token].size(); ++j)
            if (seen.insert(slot(token, places_[token][j])).second) first.push_back(static_cast<Index>(j));
          const Matrix all = rows(static_cast<int>(token));
          Matrix keys(std::ssize(first), row_width);
          for (std::size_t j = 0; j < first.size(); ++j) keys.row(static_cast<Index>(j)) = all.row(first[j]);
          return keys;
        });
    if (in_.page_stride_bytes != static_cast<std::uint64_t>(p_.page_size) * cache_.row_bytes())
      add("page padding ignored", "pages were taken to follow each other without padding",
          [this](std::size_t token) {
            return gather(token, in_.lengths[token], [this](std::int64_t s) {
              return row_at(static_cast<std::uint64_t>(s) * cache_.row_bytes());
            });
          });
    if (in_.kv_pool.size > (std::uint64_t{1} << 32))
      add("kv offset wraps", "byte offsets modulo 2^32", [this](std::size_t token) {
        return gather(token, in_.lengths[token],
                      [this](std::int64_t s) { return row_at(cache_.offset(s) & 0xffffffffULL); });
      });
    if (cache_.ds_layout) ds_defects(add);
    if (p_.kv_format != cases::Format::bf16)
      for (const double factor : {2.0, 0.5})
        add("fp8 decoded with the other exponent bias", "what is fp8 in the cache is off by a factor of two",
            [this, factor](std::size_t t) -> std::optional<Matrix> {
              Matrix keys = rows(static_cast<int>(t));
              keys.leftCols(cache_.ds_layout ? kv_lora_rank : row_width) *= factor;
              return keys;
            });
    return others;
  }

 private:
  [[nodiscard]] std::span<const std::int32_t> list(std::size_t token) const {
    const auto width = static_cast<std::size_t>(p_.topk);
    return std::span(in_.indices).subspan(token * width, width);
  }
  [[nodiscard]] std::int32_t slot(std::size_t token, int place) const {
    return list(token)[static_cast<std::size_t>(place)];
  }

  /// The row at a byte offset. Where nothing was placed the pool holds zeros.
  [[nodiscard]] Matrix row_at(std::uint64_t offset) const {
    Matrix row = Matrix::Zero(1, row_width);
    try {
      const auto bytes = in_.kv_pool.at(offset, static_cast<std::size_t>(cache_.row_bytes()));
      if (cache_.ds_layout)
        reference::decode_ds_row(cache_.format, bytes, row.data());
      else
        reference::decode(cache_.format, bytes, {row.data(), static_cast<std::size_t>(row_width)});
    } catch (const std::out_of_range&) {
      row.setZero();
    }
    return row;
  }

  /// row_of(slot) for the valid ones among the first `length` entries.
  template <typename RowOf>
  [[nodiscard]] std::optional<Matrix> gather(std::size_t token, int length, const RowOf& row_of) const {
    const std::vector<int> places = reference::valid_places(list(token), length, in_.num_slots);
    Matrix keys(std::ssize(places), row_width);
    for (std::size_t j = 0; j < places.size(); ++j)
      keys.row(static_cast<Index>(j)) = row_of(slot(token, places[j])).row(0);
    return keys;
  }

  template <typename Add>
  void ds_defects(const Add& add) const {
    // The row as stored, changed, and decoded as if that were right.
    const auto changed = [this](std::size_t token, const auto& change) {
      return gather(token, in_.lengths[token], [&](std::int64_t s) {
        const auto stored = in_.kv_pool.at(cache_.offset(s), reference::ds_row_bytes);
        std::vector<std::byte> bytes(stored.begin(), stored.end());
        change(bytes);
        Matrix row(1, row_width);
        reference::decode_ds_row(cache_.format, bytes, row.data());
        return row;
      });
    };
    constexpr auto scales = static_cast<std::ptrdiff_t>(reference::ds_scale_at);
    add("ds rope read at the wrong offset", "rope was taken to follow the latents", [changed](std::size_t t) {
      return changed(t, [](std::vector<std::byte>& b) {
        std::copy_backward(b.begin() + scales, b.begin() + scales + 2 * qk_rope_head_dim, b.end());
      });
    });
    add("ds scale of another tile", "the first scale was used for all columns", [changed](std::size_t t) {
      return changed(t, [](std::vector<std::byte>& b) {
        for (int tile = 1; tile < 4; ++tile)
          std::copy(b.begin() + scales, b.begin() + scales + 4, b.begin() + scales + 4 * tile);
      });
    });
  }

  const cases::MlaSparse& p_;
  const cases::MlaSparseInputs& in_;
  reference::SlotCache cache_;
  std::vector<std::vector<int>> places_;  ///< per query token
};

}  // namespace

MlaProblem mla_problem(const cases::MlaSparse& p, const cases::MlaSparseInputs& in) {
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
  const auto keys = std::make_shared<ListedKeys>(p, in);
  for (std::size_t b = 0; b < p.requests.size(); ++b)
    for (int position = 0; position < p.requests[b].q_len; ++position) {
      const std::size_t token = problem.groups.size();
      problem.groups.push_back({static_cast<int>(b), position, 1, keys->kv_len(token), false,
                                static_cast<Index>(token) * p.heads});
    }
  problem.keys = keys;
  return problem;
}

}  // namespace attest::oracle
