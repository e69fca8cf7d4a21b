// SPDX-License-Identifier: MIT
#include "oracle/mla_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "oracle/mla_bound.h"
#include "oracle/mla_launch.h"
#include "reference/paged_cache.h"

namespace attest::oracle {
namespace {

using cases::MlaDecode, cases::MlaDecodeInputs, cases::MlaSparse, cases::MlaSparseInputs;
using Eigen::Index;

/// A row of the first run and the row of the second that should be like it.
struct RowPair {
  std::size_t original = 0, changed = 0;
};
using RowPairs = std::vector<RowPair>;

RowPairs same_rows(std::size_t count) {
  RowPairs pairs;
  for (std::size_t r = 0; r < count; ++r) pairs.push_back({r, r});
  return pairs;
}

std::span<const std::byte> row_of(const cases::Outputs& outputs, const char* tensor, std::size_t row,
                                  std::size_t row_bytes) {
  const cases::Outputs::Tensor* found = outputs.find(tensor);
  if (found == nullptr || (row + 1) * row_bytes > found->bytes.size()) return {};
  return std::span(found->bytes).subspan(row * row_bytes, row_bytes);
}

Verdict differs(const std::string& diagnosis, std::string detail) {
  Verdict verdict;
  verdict.kind = VerdictKind::fail;
  verdict.diagnosis = diagnosis;
  verdict.detail = std::move(detail);
  verdict.lane = "relation";
  return verdict;
}

constexpr std::size_t out_row_bytes = std::size_t{reference::kv_lora_rank} * 2;

bool equal_bits(const RowPair& pair, bool with_lse, std::size_t out_bytes, const cases::Outputs& original,
                const cases::Outputs& changed) {
  const auto equal = [&](const char* tensor, std::size_t bytes) {
    const auto a = row_of(original, tensor, pair.original, bytes),
               b = row_of(changed, tensor, pair.changed, bytes);
    return a.size() == bytes && b.size() == bytes && std::memcmp(a.data(), b.data(), bytes) == 0;
  };
  return equal("out", out_bytes) && (!with_lse || equal("lse", sizeof(float)));
}

/// Bit for bit.
Verdict same_bits(const RowPairs& pairs, bool with_lse, const std::string& diagnosis,
                  const cases::Outputs& original, const cases::Outputs& changed) {
  std::size_t different = 0, first = 0;
  for (const RowPair& pair : pairs) {
    if (equal_bits(pair, with_lse, out_row_bytes, original, changed)) continue;
    if (different++ == 0) first = pair.original;
  }
  if (different == 0) return {};
  return differs(diagnosis, fmt::format("{} of {} rows differ in their bits, the first is row {}", different,
                                        pairs.size(), first));
}

/// Within E and a rounding of the exact result, both of them. Rows of equal bits are, whatever E is: most are,
/// and a request of nothing else needs no reference.
Verdict within_twice_the_bound(const RowPairs& pairs, const std::string& diagnosis, const cases::Case& c,
                               const cases::Inputs& inputs, const PrecisionProfile& profile,
                               const cases::Outputs& original, const cases::Outputs& changed) {
  std::string why;
  const std::optional<MlaLaunch> launch = open_launch(c, inputs, original, profile, why);
  if (!launch) return differs("outputs missing or of the wrong size", why);
  std::vector<std::size_t> partner(static_cast<std::size_t>(launch->out.rows()), SIZE_MAX);
  for (const RowPair& pair : pairs)
    if (!equal_bits(pair, launch->has_lse(), launch->row_bytes(), original, changed))
      partner[pair.original] = pair.changed;

  const double cells = profile.output == OutputRounding::nearest_even ? 1 : 2;
  const reference::Format format = to_reference(launch->problem.out_format);
  for (std::size_t g = 0; g < launch->problem.groups.size(); ++g) {
    const MlaGroup& group = launch->problem.groups[g];
    const Index rows = Index{group.q_len} * launch->problem.heads;
    bool wanted = false;
    for (Index r = 0; r < rows; ++r)
      wanted = wanted || partner[static_cast<std::size_t>(group.first_row + r)] != SIZE_MAX;
    if (!wanted) continue;
    const MlaRequest request = load_request(*launch, static_cast<int>(g));
    const MlaBound bound = bound_mla(request.for_bound(launch->scales), profile);
    for (Index r = 0; r < rows; ++r) {
      const auto in_launch = static_cast<std::size_t>(group.first_row + r);
      if (partner[in_launch] == SIZE_MAX || bound.row_class[static_cast<std::size_t>(r)] != RowClass::judged)
        continue;
      const auto bytes = row_of(changed, "out", partner[in_launch], launch->row_bytes());
      if (bytes.empty()) return differs(diagnosis, "the second run returned too few rows");
      const Matrix other = reference::decode_matrix(format, bytes, 1, reference::kv_lora_rank);
      for (Index d = 0; d < other.cols(); ++d) {
        const double a = launch->out(group.first_row + r, d), b = other(0, d);
        const double step = launch->grid.step(std::max(std::abs(a), std::abs(b)));
        const double limit = 2 * bound.element(r, d) + cells * step;
        if (std::abs(a - b) <= limit) continue;
        return differs(diagnosis,
                       fmt::format("request {}, position {}, head {}, column {}: {:.9g} and {:.9g}, "
                                   "apart by more than {:.3g}",
                                   group.request, request.position(r), request.head(r), d, a, b, limit));
      }
      if (!launch->has_lse()) continue;
      float lse = 0;
      const auto lse_bytes = row_of(changed, "lse", partner[in_launch], sizeof lse);
      if (lse_bytes.empty()) return differs(diagnosis, "the second run returned no lse");
      std::memcpy(&lse, lse_bytes.data(), sizeof lse);
      const double a = launch->lse[group.first_row + r];
      if (!(std::abs(a - double{lse}) <= 2 * bound.lse[r]))
        return differs(
            diagnosis,
            fmt::format("request {}, position {}, head {}: lse {:.9g} and {:.9g}, apart "
                        "by more than {:.3g}",
                        group.request, request.position(r), request.head(r), a, lse, 2 * bound.lse[r]));
    }
  }
  return {};
}

std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The pages of a pool that have content, as make_pool lays them out: the last extent.
struct ContentPages {
  std::int64_t first = 0, count = 0;
};
ContentPages content_pages(const cases::SparseBytes& pool, std::uint64_t page_stride) {
  const cases::SparseBytes::Extent& content = pool.extents.back();
  return {static_cast<std::int64_t>(content.offset / page_stride),
          static_cast<std::int64_t>(content.bytes.size() / page_stride)};
}

/// Moves every content page, by a rotation; returns where page p went.
std::function<std::int64_t(std::int64_t)> rotate_pages(cases::SparseBytes& pool, std::uint64_t page_stride,
                                                       std::uint64_t seed) {
  const ContentPages pages = content_pages(pool, page_stride);
  const std::int64_t by =
      pages.count < 2
          ? 0
          : 1 + static_cast<std::int64_t>(hash(seed) % static_cast<std::uint64_t>(pages.count - 1));
  std::vector<std::byte>& bytes = pool.extents.back().bytes;
  std::rotate(bytes.begin(),
              bytes.end() - static_cast<std::ptrdiff_t>(by) * static_cast<std::ptrdiff_t>(page_stride),
              bytes.end());
  return [pages, by](std::int64_t page) {
    const std::int64_t at = page - pages.first;
    return at < 0 || at >= pages.count ? page : pages.first + (at + by) % pages.count;
  };
}

/// Another poison of the same place. Finite stays finite: a kernel may be known to ask for that, and its
/// cases were drawn so.
cases::Poison other_poison(cases::Poison poison) {
  switch (poison) {
    case cases::Poison::nan:
    case cases::Poison::zero:
      return cases::Poison::large;
    case cases::Poison::inf:
      return cases::Poison::nan;
    case cases::Poison::large:
      return cases::Poison::stale;
    case cases::Poison::stale:
      return cases::Poison::zero;
  }
  return cases::Poison::large;
}

std::size_t element_bytes(cases::Format format) {
  return static_cast<std::size_t>(reference::bytes_per_element(to_reference(format)));
}

/// q with the heads of every token rotated: head h of the result is head h + 1 of the original.
std::vector<std::byte> rotated_heads(const std::vector<std::byte>& q, int heads, std::size_t row_bytes) {
  std::vector<std::byte> rotated = q;
  const std::size_t token_bytes = row_bytes * static_cast<std::size_t>(heads);
  for (auto token = rotated.begin(); token != rotated.end();
       token += static_cast<std::ptrdiff_t>(token_bytes))
    std::rotate(token, token + static_cast<std::ptrdiff_t>(row_bytes),
                token + static_cast<std::ptrdiff_t>(token_bytes));
  return rotated;
}

RowPairs rotated_rows(std::size_t tokens, int heads) {
  RowPairs pairs;
  const auto n = static_cast<std::size_t>(heads);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t h = 0; h < n; ++h) pairs.push_back({t * n + (h + 1) % n, t * n + h});
  return pairs;
}

Relation bits(std::string name, cases::Case c, cases::Inputs inputs, RowPairs pairs, bool with_lse,
              std::string diagnosis) {
  return {std::move(name), std::move(c), std::move(inputs),
          [pairs = std::move(pairs), with_lse, diagnosis = std::move(diagnosis)](
              const cases::Outputs& original, const cases::Outputs& changed) {
            return same_bits(pairs, with_lse, diagnosis, original, changed);
          }};
}

/// Refers to the original case and inputs, which outlive the relation.
Relation bounded(std::string name, cases::Case c, cases::Inputs inputs, RowPairs pairs, std::string diagnosis,
                 const cases::Case& original_case, const cases::Inputs& original_inputs,
                 const PrecisionProfile& profile) {
  return {std::move(name), std::move(c), std::move(inputs),
          [pairs = std::move(pairs), diagnosis = std::move(diagnosis), &original_case, &original_inputs,
           &profile](const cases::Outputs& original, const cases::Outputs& changed) {
            return within_twice_the_bound(pairs, diagnosis, original_case, original_inputs, profile, original,
                                          changed);
          }};
}

// What both ops do alike. A family gives the relation, or nothing where it does not apply.

template <typename P, typename In>
std::optional<Relation> unused_memory(const cases::Case& c, const P& p, std::size_t rows) {
  cases::Case other = c;
  other.memory.unused = other_poison(c.memory.unused);
  other.memory.output = other_poison(c.memory.output);
  other.memory.scratch = other_poison(c.memory.scratch);
  cases::Inputs changed = cases::materialise(other);
  return bits("unused memory", std::move(other), std::move(changed), same_rows(rows), p.return_lse,
              "depends on memory that is not in use");
}

template <typename P, typename In>
std::optional<Relation> head_permutation(const cases::Case& c, const cases::Inputs& inputs, const P& p,
                                         std::size_t tokens, const PrecisionProfile& profile) {
  if (p.heads < 2) return std::nullopt;
  In changed = std::get<In>(inputs);
  changed.q = rotated_heads(changed.q, p.heads, reference::row_width * element_bytes(p.q_format));
  return bounded("head permutation", c, std::move(changed), rotated_rows(tokens, p.heads),
                 "heads are not independent", c, inputs, profile);
}

class DecodeRelations {
 public:
  DecodeRelations(const cases::Case& c, const cases::Inputs& inputs, const PrecisionProfile& profile)
      : c_(c),
        inputs_(inputs),
        profile_(profile),
        p_(std::get<MlaDecode>(c.problem)),
        in_(std::get<MlaDecodeInputs>(inputs)) {}

  static constexpr int count = 6;
  std::optional<Relation> make(int which) const {
    switch (which) {
      case 0:
        return page_permutation();
      case 1:
        // Where a row without keys may hold anything, it may hold what was there.
        if (profile_.empty != EmptyOutput::zero && has_empty_row()) return std::nullopt;
        return unused_memory<MlaDecode, MlaDecodeInputs>(c_, p_, rows());
      case 2:
        return future_keys();
      case 3:
        return batch_neighbours();
      case 4:
        return head_permutation<MlaDecode, MlaDecodeInputs>(c_, inputs_, p_, tokens(), profile_);
      default:
        return single_queries();
    }
  }

 private:
  [[nodiscard]] std::size_t tokens() const { return static_cast<std::size_t>(in_.qo_indptr.back()); }
  [[nodiscard]] std::size_t rows() const { return tokens() * static_cast<std::size_t>(p_.heads); }
  [[nodiscard]] bool has_empty_row() const {
    return std::any_of(p_.requests.begin(), p_.requests.end(), [&](const cases::Request& r) {
      return r.q_len > 0 && r.kv_len < (p_.causal ? r.q_len : 1);
    });
  }
  [[nodiscard]] std::size_t first_row(std::size_t request) const {
    return static_cast<std::size_t>(in_.qo_indptr[request]) * static_cast<std::size_t>(p_.heads);
  }

  std::optional<Relation> page_permutation() const {
    MlaDecodeInputs changed = in_;
    const auto moved = rotate_pages(changed.kv_pool, in_.page_stride_bytes, c_.seed);
    for (std::int32_t& page : changed.kv_page_indices) page = static_cast<std::int32_t>(moved(page));
    return bits("page permutation", c_, std::move(changed), same_rows(rows()), p_.return_lse,
                "depends on the order of pages");
  }

  // The last key of one request, negated; only where no other request reads that page.
  std::optional<Relation> future_keys() const {
    if (!p_.causal) return std::nullopt;
    for (std::size_t b = 0; b < p_.requests.size(); ++b) {
      const cases::Request& r = p_.requests[b];
      if (r.q_len < 2 || r.kv_len < 1) continue;
      const auto live = static_cast<std::ptrdiff_t>(in_.kv_indptr.back());
      const std::int32_t page = in_.kv_page_indices[static_cast<std::size_t>(in_.kv_indptr[b + 1] - 1)];
      if (std::count(in_.kv_page_indices.begin(), in_.kv_page_indices.begin() + live, page) != 1) continue;
      MlaDecodeInputs changed = in_;
      // Of a page in runs, what the row has in the first: its latents.
      const std::size_t row_bytes =
          (p_.kv_layout == cases::KvLayout::rows ? reference::row_width : reference::kv_lora_rank) *
          element_bytes(p_.kv_format);
      const std::uint64_t offset = static_cast<std::uint64_t>(page) * in_.page_stride_bytes +
                                   static_cast<std::uint64_t>((r.kv_len - 1) % p_.page_size) * row_bytes;
      cases::SparseBytes::Extent& content = changed.kv_pool.extents.back();
      negate(p_.kv_format, std::span(content.bytes).subspan(offset - content.offset, row_bytes));
      RowPairs pairs;
      for (std::size_t row = 0; row < rows(); ++row) {
        const bool last_position =
            row >= first_row(b + 1) - static_cast<std::size_t>(p_.heads) && row < first_row(b + 1);
        if (!last_position) pairs.push_back({row, row});
      }
      return bits("future keys", c_, std::move(changed), std::move(pairs), p_.return_lse,
                  "depends on keys behind the causal bound");
    }
    return std::nullopt;
  }

  static void negate(cases::Format format, std::span<std::byte> row) {
    const bool fp8 = format != cases::Format::bf16;
    for (std::size_t at = fp8 ? 0 : 1; at < row.size(); at += fp8 ? 1 : 2)
      if (!fp8 || (row[at] & std::byte{0x7f}) != std::byte{0}) row[at] ^= std::byte{0x80};  // FNUZ has no -0
  }

  /// The case with these requests in place of its own; what they are made of comes from the original.
  struct Part {
    cases::Request request;
    std::size_t of = 0;   ///< request of the original
    int first_query = 0;  ///< of it
  };
  [[nodiscard]] std::pair<cases::Case, MlaDecodeInputs> assemble(const std::vector<Part>& parts) const {
    cases::Case c = c_;
    MlaDecode p = p_;
    MlaDecodeInputs in = in_;
    p.requests.clear();
    in.q.clear();
    in.kv_page_indices.clear();
    in.kv_last_page_len.clear();
    in.qo_indptr = {0};
    in.kv_indptr = {0};
    const std::size_t token_bytes =
        static_cast<std::size_t>(p_.heads) * reference::row_width * element_bytes(p_.q_format);
    for (const Part& part : parts) {
      const int pages = (part.request.kv_len + p_.page_size - 1) / p_.page_size;
      const auto first_page = in_.kv_page_indices.begin() + in_.kv_indptr[part.of];
      const auto first_token = in_.q.begin() + static_cast<std::ptrdiff_t>(token_bytes) *
                                                   (in_.qo_indptr[part.of] + part.first_query);
      p.requests.push_back(part.request);
      in.kv_page_indices.insert(in.kv_page_indices.end(), first_page, first_page + pages);
      in.q.insert(in.q.end(), first_token,
                  first_token + static_cast<std::ptrdiff_t>(token_bytes) * part.request.q_len);
      in.kv_last_page_len.push_back(part.request.kv_len == 0 ? 0
                                                             : (part.request.kv_len - 1) % p_.page_size + 1);
      in.qo_indptr.push_back(in.qo_indptr.back() + part.request.q_len);
      in.kv_indptr.push_back(static_cast<std::int32_t>(in.kv_page_indices.size()));
    }
    in.kv_page_indices.insert(in.kv_page_indices.end(), in_.kv_page_indices.end() - cases::index_slack,
                              in_.kv_page_indices.end());
    c.problem = std::move(p);
    return {std::move(c), std::move(in)};
  }

  std::optional<Relation> batch_neighbours() const {
    if (p_.requests.size() < 2) return std::nullopt;
    for (std::size_t step = 0; step < p_.requests.size(); ++step) {
      const std::size_t b = (hash(c_.seed) + step) % p_.requests.size();
      if (p_.requests[b].q_len == 0 || p_.requests[b].kv_len == 0) continue;
      auto [c, in] = assemble({{p_.requests[b], b, 0}});
      RowPairs pairs;
      for (std::size_t row = first_row(b); row < first_row(b + 1); ++row)
        pairs.push_back({row, row - first_row(b)});
      return bounded("batch neighbours", std::move(c), std::move(in), std::move(pairs),
                     "depends on other requests of the batch", c_, inputs_, profile_);
    }
    return std::nullopt;
  }

  std::optional<Relation> single_queries() const {
    std::vector<Part> parts;
    bool several = false;
    for (std::size_t b = 0; b < p_.requests.size(); ++b) {
      const cases::Request& r = p_.requests[b];
      several = several || r.q_len > 1;
      for (int position = 0; position < r.q_len; ++position) {
        const int visible = p_.causal ? std::max(0, r.kv_len - r.q_len + position + 1) : r.kv_len;
        parts.push_back({{1, visible}, b, position});
      }
    }
    if (!several) return std::nullopt;
    auto [c, in] = assemble(parts);
    return bounded("single queries", std::move(c), std::move(in), same_rows(rows()),
                   "differs from its queries one by one", c_, inputs_, profile_);
  }

  const cases::Case& c_;
  const cases::Inputs& inputs_;
  const PrecisionProfile& profile_;
  const MlaDecode& p_;
  const MlaDecodeInputs& in_;
};

class SparseRelations {
 public:
  SparseRelations(const cases::Case& c, const cases::Inputs& inputs, const PrecisionProfile& profile)
      : c_(c),
        inputs_(inputs),
        profile_(profile),
        p_(std::get<MlaSparse>(c.problem)),
        in_(std::get<MlaSparseInputs>(inputs)) {}

  static constexpr int count = 6;
  std::optional<Relation> make(int which) const {
    switch (which) {
      case 0:
        return page_permutation();
      case 1:
        return unused_memory<MlaSparse, MlaSparseInputs>(c_, p_, rows());
      case 2:
        return list_order();
      case 3:
        return batch_neighbours();
      case 4:
        return head_permutation<MlaSparse, MlaSparseInputs>(c_, inputs_, p_, in_.lengths.size(), profile_);
      default:
        return dense();
    }
  }

 private:
  [[nodiscard]] std::size_t rows() const { return in_.lengths.size() * static_cast<std::size_t>(p_.heads); }

  // Scores are equal, P is 1 and sums of small integers are exact in any order. Splits divide before they
  // merge and round there.
  [[nodiscard]] bool exact_sums() const {
    return (c_.data.fill == cases::Fill::exact || c_.data.fill == cases::Fill::constant_scores) &&
           p_.num_splits == 1;
  }
  [[nodiscard]] Relation as_exact_as_possible(std::string name, cases::Case c, cases::Inputs in,
                                              std::string diagnosis) const {
    if (exact_sums())
      return bits(std::move(name), std::move(c), std::move(in), same_rows(rows()), p_.return_lse,
                  std::move(diagnosis));
    return bounded(std::move(name), std::move(c), std::move(in), same_rows(rows()), std::move(diagnosis), c_,
                   inputs_, profile_);
  }

  std::optional<Relation> page_permutation() const {
    MlaSparseInputs changed = in_;
    const auto moved = rotate_pages(changed.kv_pool, in_.page_stride_bytes, c_.seed);
    for (std::int32_t& slot : changed.indices)
      if (slot >= 0 && slot < in_.num_slots)
        slot = static_cast<std::int32_t>(moved(slot / p_.page_size)) * p_.page_size + slot % p_.page_size;
    return bits("page permutation", c_, std::move(changed), same_rows(rows()), p_.return_lse,
                "depends on the order of pages");
  }

  std::optional<Relation> list_order() const {
    MlaSparseInputs changed = in_;
    for (std::size_t t = 0; t < in_.lengths.size(); ++t) {
      const auto list = changed.indices.begin() + static_cast<std::ptrdiff_t>(t) * p_.topk;
      std::reverse(list, list + in_.lengths[t]);
    }
    return as_exact_as_possible("list order", c_, std::move(changed), "depends on the order of its lists");
  }

  // One query token alone.
  std::optional<Relation> batch_neighbours() const {
    const std::size_t tokens = in_.lengths.size();
    if (tokens < 2) return std::nullopt;
    const std::size_t t = hash(c_.seed) % tokens;
    cases::Case c = c_;
    MlaSparse p = p_;
    std::size_t before = t, b = 0;
    while (before >= static_cast<std::size_t>(p_.requests[b].q_len))
      before -= static_cast<std::size_t>(p_.requests[b++].q_len);
    const int visible = p_.requests[b].kv_len - p_.requests[b].q_len + static_cast<int>(before) + 1;
    p.requests = {{1, std::max(0, visible)}};
    c.problem = std::move(p);
    MlaSparseInputs in = in_;
    const std::size_t token_bytes = in_.q.size() / tokens;
    const auto q = in_.q.begin() + static_cast<std::ptrdiff_t>(t * token_bytes);
    in.q.assign(q, q + static_cast<std::ptrdiff_t>(token_bytes));
    const auto list = in_.indices.begin() + static_cast<std::ptrdiff_t>(t) * p_.topk;
    in.indices.assign(list, list + p_.topk);
    in.lengths = {in_.lengths[t]};
    RowPairs pairs;
    const auto heads = static_cast<std::size_t>(p_.heads);
    for (std::size_t h = 0; h < heads; ++h) pairs.push_back({t * heads + h, h});
    return bounded("batch neighbours", std::move(c), std::move(in), std::move(pairs),
                   "depends on other query tokens of the batch", c_, inputs_, profile_);
  }

  // Lists that hold every visible key, in order, are what mla_decode does.
  std::optional<Relation> dense() const {
    if (p_.choice != cases::ListChoice::newest || p_.length != cases::ListLength::full ||
        p_.holes != cases::ListHoles::none || p_.kv_layout != cases::KvLayout::rows)
      return std::nullopt;
    for (const cases::Request& r : p_.requests)
      if (r.kv_len > p_.topk || r.q_len > 16) return std::nullopt;
    cases::Case c = c_;
    c.problem = cases::as_decode(p_);
    cases::Inputs in = cases::materialise(c);
    return as_exact_as_possible("dense", std::move(c), std::move(in),
                                "differs from dense attention over the same keys");
  }

  const cases::Case& c_;
  const cases::Inputs& inputs_;
  const PrecisionProfile& profile_;
  const MlaSparse& p_;
  const MlaSparseInputs& in_;
};

/// Of 24 cases, one for each family and 18 without.
constexpr std::uint64_t one_in = 24;

template <typename Relations>
std::vector<Relation> chosen_by_seed(const cases::Case& c, const cases::Inputs& inputs,
                                     const PrecisionProfile& profile) {
  std::vector<Relation> chosen;
  const std::uint64_t which = hash(c.seed ^ 0x6d6c61ULL) % one_in;
  if (which >= Relations::count) return chosen;
  if (auto made = Relations(c, inputs, profile).make(static_cast<int>(which)))
    chosen.push_back(*std::move(made));
  return chosen;
}

template <typename Relations>
std::vector<Relation> every(const cases::Case& c, const cases::Inputs& inputs,
                            const PrecisionProfile& profile) {
  std::vector<Relation> all;
  for (int which = 0; which < Relations::count; ++which)
    if (auto made = Relations(c, inputs, profile).make(which)) all.push_back(*std::move(made));
  return all;
}

}  // namespace

std::vector<Relation> mla_decode_relations(const cases::Case& c, const cases::Inputs& inputs,
                                           const PrecisionProfile& profile) {
  return chosen_by_seed<DecodeRelations>(c, inputs, profile);
}
std::vector<Relation> mla_sparse_relations(const cases::Case& c, const cases::Inputs& inputs,
                                           const PrecisionProfile& profile) {
  return chosen_by_seed<SparseRelations>(c, inputs, profile);
}
std::vector<Relation> all_mla_relations(const cases::Case& c, const cases::Inputs& inputs,
                                        const PrecisionProfile& profile) {
  if (std::holds_alternative<MlaSparse>(c.problem)) return every<SparseRelations>(c, inputs, profile);
  return every<DecodeRelations>(c, inputs, profile);
}

}  // namespace attest::oracle
