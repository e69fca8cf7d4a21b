// SPDX-License-Identifier: MIT
//
// Both forms come down to rows of attention with a bound: the dense one head by head, over K of 192 and V of
// 128 columns; the sparse one token by token, over rows of 576 of which a head's 128 columns of the 512 are
// looked at. A wrong switch is then recognised by asking of the failing rows what else they would be right
// for.
#include "oracle/dense_switch_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/mla_bound.h"
#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"
#include "oracle/worst_first.h"
#include "reference/index_remap.h"
#include "reference/matrix_product.h"
#include "reference/paged_cache.h"
#include "reference/sparse_list.h"

namespace attest::oracle {
namespace {

using cases::DenseSwitch, cases::DenseSwitchInputs;
using Eigen::Index;
using reference::Format, reference::Matrix, reference::Vector;

constexpr std::size_t most_tokens_asked = 24;

/// Reference and bound of single rows of the output, 128 columns each.
struct ExpectedRows {
  std::vector<reference::RequestAttention> attention;  ///< per head; one row each
  std::vector<MlaBound> bound;
};

class Forms {
 public:
  Forms(const DenseSwitch& p, const DenseSwitchInputs& in, const PrecisionProfile& profile)
      : p_(p), in_(in), profile_(profile) {
    const bool fp8 = p.kv_format != cases::Format::bf16;
    sparse_scales_ = {p.sm_scale, 1.0, fp8 ? double{p.kv_scale} : 1.0};
    cache_.format = to_reference(p.kv_format);
    cache_.page_size = p.page_size;
    cache_.page_stride_bytes = in.page_stride_bytes;
    cache_.bytes = [&pool = in.kv_pool](std::uint64_t offset, std::size_t size) {
      return pool.at(offset, size);
    };
    for (std::size_t r = 0; r < p.requests.size(); ++r)
      for (int i = 0; i < p.requests[r].q_len; ++i) {
        request_.push_back(static_cast<int>(r));
        position_.push_back(i);
      }
  }

  [[nodiscard]] std::size_t tokens() const { return request_.size(); }
  [[nodiscard]] int request_of(std::size_t token) const { return request_[token]; }
  [[nodiscard]] int position_of(std::size_t token) const { return position_[token]; }
  [[nodiscard]] bool due_dense(std::size_t token) const {
    return request_[token] >= cases::decode_requests(p_) && cases::runs_dense(p_);
  }
  [[nodiscard]] const cases::Request& request(std::size_t token) const {
    return p_.requests[static_cast<std::size_t>(request_[token])];
  }

  [[nodiscard]] std::optional<ExpectedRows> dense(std::size_t token) const {
    if (request_[token] < cases::decode_requests(p_)) return std::nullopt;
    const cases::Request& r = request(token);
    const Index visible = r.kv_len - r.q_len + position_[token] + 1;
    const auto first = static_cast<Index>(in_.k_indptr[static_cast<std::size_t>(request_[token])]);
    ExpectedRows rows;
    for (int head = 0; head < p_.heads; ++head) {
      // 192 columns of the 576 that `attend` wants, then V by hand.
      Matrix q = Matrix::Zero(1, reference::row_width), k = Matrix::Zero(visible, reference::row_width);
      q.leftCols(cases::dense_width) =
          decode(in_.q, static_cast<Index>(token) * p_.heads + head, cases::dense_width);
      Matrix v(visible, cases::value_width);
      for (Index j = 0; j < visible; ++j) {
        const Index row = (first + j) * p_.heads + head;
        k.row(j).leftCols(cases::dense_width) = decode(in_.k, row, cases::dense_width);
        v.row(j) = decode(in_.v, row, cases::value_width);
      }
      const reference::AttentionScales scales{p_.sm_scale, 1.0, 1.0};
      reference::RequestAttention a = reference::attend(q, k, scales, 1, 1, false);
      a.out = Matrix::Zero(1, cases::value_width);
      reference::add_product(a.weights, v, a.out);
      const Vector q_norms = row_norms(q), k_norms = row_norms(k);
      rows.bound.push_back(bound_mla({a, v, q_norms, k_norms, scales}, profile_));
      rows.attention.push_back(std::move(a));
    }
    return rows;
  }

  /// @param slots of the cache; nullopt when one of them holds nothing
  [[nodiscard]] std::optional<ExpectedRows> sparse(std::size_t token,
                                                   const std::vector<std::int64_t>& slots) const {
    Matrix q(p_.heads, reference::row_width), k(std::ssize(slots), reference::row_width);
    for (int head = 0; head < p_.heads; ++head)
      q.row(head) = decode(in_.absorbed, static_cast<Index>(token) * p_.heads + head, reference::row_width);
    try {
      for (std::size_t j = 0; j < slots.size(); ++j)
        cache_.row(slots[j], k.row(static_cast<Index>(j)).data());
    } catch (const std::out_of_range&) {
      return std::nullopt;
    }
    const reference::RequestAttention all = reference::attend(q, k, sparse_scales_, 1, p_.heads, false);
    const Vector q_norms = row_norms(q), k_norms = row_norms(k);
    const MlaBound bound =
        bound_mla({all, k.leftCols(reference::kv_lora_rank), q_norms, k_norms, sparse_scales_}, profile_);
    ExpectedRows rows;
    for (Index head = 0; head < p_.heads; ++head) {
      reference::RequestAttention a;
      MlaBound b;
      a.visible = {static_cast<int>(slots.size())};
      a.row_max = all.row_max.segment(head, 1);
      a.row_sum = all.row_sum.segment(head, 1);
      a.lse = all.lse.segment(head, 1);
      a.out.resize(1, cases::value_width);
      b.row_class = {bound.row_class[static_cast<std::size_t>(head)]};
      b.element.resize(1, cases::value_width);
      b.deviation.resize(1, cases::value_width);
      for (Index d = 0; d < cases::value_width; ++d) {
        const Index column = in_.v_columns[static_cast<std::size_t>(head * cases::value_width + d)];
        a.out(0, d) = all.out(head, column);
        b.element(0, d) = bound.element(head, column);
        b.deviation(0, d) = bound.deviation(head, column);
      }
      b.lse = bound.lse.segment(head, 1);
      b.scale = bound.scale.segment(head, 1);
      b.n_eff = bound.n_eff.segment(head, 1);
      b.flushed = bound.flushed.segment(head, 1);
      rows.attention.push_back(std::move(a));
      rows.bound.push_back(std::move(b));
    }
    return rows;
  }

  /// The first `length` ids of a token's list, as slots; what is no token is left out.
  [[nodiscard]] std::vector<std::int64_t> slots(std::size_t token, int length, bool remapped = true) const {
    const auto width = static_cast<std::size_t>(in_.table_width);
    const auto table =
        std::span(in_.block_table).subspan(static_cast<std::size_t>(request_[token]) * width, width);
    std::vector<std::int64_t> found;
    for (int e = 0; e < std::min(length, p_.topk); ++e) {
      const std::int32_t id =
          in_.topk_ids[token * static_cast<std::size_t>(p_.topk) + static_cast<std::size_t>(e)];
      const std::int32_t slot =
          remapped ? reference::global_slot(id, table, p_.page_size, reference::InvalidSlot::minus_one) : id;
      if (slot >= 0) found.push_back(slot);
    }
    return found;
  }

  [[nodiscard]] int length(std::size_t token) const {
    return cases::list_length(p_, request_[token], position_[token]);
  }
  /// The token by the plan and the list lengths of the batch before.
  [[nodiscard]] std::optional<ExpectedRows> by_previous(std::size_t token) const {
    if (in_.previous_kv_lens.empty()) return std::nullopt;
    DenseSwitch before = p_;
    for (std::size_t r = 0; r < before.requests.size(); ++r)
      before.requests[r].kv_len = in_.previous_kv_lens[r];
    if (request_[token] >= cases::decode_requests(before) && cases::runs_dense(before)) return dense(token);
    return sparse(token, slots(token, cases::list_length(before, request_[token], position_[token])));
  }

 private:
  [[nodiscard]] static Matrix decode(const std::vector<std::byte>& bytes, Index row, Index columns) {
    const auto row_bytes = static_cast<std::size_t>(columns) * 2;
    return reference::decode_matrix(
        Format::bf16, std::span(bytes).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes), 1,
        columns);
  }

  const DenseSwitch& p_;
  const DenseSwitchInputs& in_;
  const PrecisionProfile& profile_;
  reference::AttentionScales sparse_scales_;
  reference::SlotCache cache_;
  std::vector<int> request_, position_;
};

struct Failing {
  std::size_t token = 0;
  int head = 0;
};

/// Whether every failing token (a sample) is right for other reasons.
bool explained(const std::vector<Failing>& failing, const Matrix& out, int heads, const Rules& rules,
               const std::function<std::optional<ExpectedRows>(std::size_t token)>& otherwise) {
  std::size_t asked = 0;
  std::size_t last = SIZE_MAX;
  for (const Failing& f : failing) {
    if (f.token == last) continue;
    last = f.token;
    if (++asked > most_tokens_asked) break;
    const std::optional<ExpectedRows> rows = otherwise(f.token);
    if (!rows) return false;
    for (int head = 0; head < heads; ++head) {
      const auto h = static_cast<std::size_t>(head);
      const Index row = static_cast<Index>(f.token) * heads + head;
      if (compare_row({&out(row, 0), static_cast<std::size_t>(out.cols())}, nullptr, rows->attention[h],
                      rows->bound[h], 0, rules)
              .failed != Stage::none)
        return false;
    }
  }
  return true;
}

/// Rows that still hold what the buffer held.
std::size_t unwritten(const cases::Case& c, const std::vector<Failing>& failing, int heads,
                      const std::vector<std::byte>& out) {
  constexpr std::size_t row_bytes = std::size_t{cases::value_width} * 2;
  const std::vector<std::byte> before =
      cases::poison_bytes(c, c.memory.output, cases::Format::bf16, out.size() / 2, "out");
  std::size_t count = 0;
  for (const Failing& f : failing) {
    const std::size_t at =
        (f.token * static_cast<std::size_t>(heads) + static_cast<std::size_t>(f.head)) * row_bytes;
    count += std::memcmp(out.data() + at, before.data() + at, row_bytes) == 0 ? 1U : 0U;
  }
  return count;
}

}  // namespace

Verdict judge_dense_switch(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                           const PrecisionProfile& profile) {
  const auto& p = std::get<DenseSwitch>(c.problem);
  const auto& in = std::get<DenseSwitchInputs>(inputs);
  Verdict verdict;
  const Forms forms(p, in, profile);
  const auto rows = static_cast<Index>(forms.tokens()) * p.heads;
  const cases::Outputs::Tensor* tensor = outputs.find("out");
  const auto wanted = static_cast<std::size_t>(rows) * cases::value_width * 2;
  if (tensor == nullptr || tensor->bytes.size() != wanted) {
    verdict.kind = VerdictKind::harness_error;
    verdict.diagnosis = "outputs missing or of the wrong size";
    verdict.detail = tensor == nullptr ? "the device returned no tensor \"out\""
                                       : fmt::format("tensor \"out\" has {} bytes, the case asks for {}",
                                                     tensor->bytes.size(), wanted);
    return verdict;
  }
  const Matrix out = reference::decode_matrix(Format::bf16, tensor->bytes, rows, cases::value_width);

  Rules rules;
  rules.grid = RoundingGrid::of(cases::Format::bf16);
  rules.rounding = profile.output;
  rules.lse_empty = profile.lse_empty;
  rules.empty = profile.empty;

  std::vector<Failing> failing;
  MismatchGrid grid("head");
  Stage first_failed = Stage::none;
  bool telling = false, finite = true;
  for (std::size_t token = 0; token < forms.tokens(); ++token) {
    const std::optional<ExpectedRows> expected =
        forms.due_dense(token) ? forms.dense(token)
                               : forms.sparse(token, forms.slots(token, forms.length(token)));
    if (!expected) {
      verdict.kind = VerdictKind::harness_error;
      verdict.diagnosis = "a list leads outside of the cache";
      verdict.detail = fmt::format("query token {}", token);
      return verdict;
    }
    for (int head = 0; head < p.heads; ++head) {
      const auto h = static_cast<std::size_t>(head);
      const Index row = static_cast<Index>(token) * p.heads + head;
      const RowResult result = compare_row({&out(row, 0), static_cast<std::size_t>(out.cols())}, nullptr,
                                           expected->attention[h], expected->bound[h], 0, rules);
      grid.note(forms.request_of(token), forms.position_of(token), head,
                used_budget(result, {&out(row, 0), static_cast<std::size_t>(out.cols())}, nullptr));
      if (!result.judged) continue;
      verdict.elements_checked += out.cols();
      verdict.elements_failed += result.failing_elements;
      verdict.used_budget = std::max(verdict.used_budget, result.used);
      telling = telling || result.telling;
      if (result.failed == Stage::none) continue;
      ++verdict.rows_failed;
      failing.push_back({token, head});
      finite = finite && out.row(row).allFinite();
      if (first_failed == Stage::none || result.failed < first_failed) first_failed = result.failed;
      if (verdict.worst.size() < most_elements && result.column >= 0)
        verdict.worst.push_back({forms.request_of(token), forms.position_of(token), head, result.column,
                                 expected->attention[h].out(0, result.column), out(row, result.column),
                                 expected->bound[h].element(0, result.column), "scores"});
    }
  }

  verdict.lane = "element";
  if (first_failed == Stage::none) {
    if (!telling) {
      verdict.kind = VerdictKind::mistrusted;
      verdict.diagnosis = "nothing was proved";
      verdict.detail = "a result of zeros would have passed";
    }
    return verdict;
  }

  verdict.kind = VerdictKind::fail;
  verdict.stage = name(first_failed);
  verdict.mismatch = grid.map();
  const auto right_for = [&](const std::function<std::optional<ExpectedRows>(std::size_t)>& otherwise) {
    return explained(failing, out, p.heads, rules, otherwise);
  };
  if (unwritten(c, failing, p.heads, tensor->bytes) == failing.size()) {
    verdict.diagnosis = "rows unwritten";
  } else if (right_for([&](std::size_t token) -> std::optional<ExpectedRows> {
               if (!forms.due_dense(token)) return std::nullopt;
               return forms.sparse(token, forms.slots(token, forms.length(token)));
             })) {
    verdict.diagnosis = "sparse form where the dense one is due";
  } else if (right_for([&](std::size_t token) -> std::optional<ExpectedRows> {
               if (forms.due_dense(token)) return std::nullopt;
               return forms.dense(token);
             })) {
    verdict.diagnosis = "dense form where the sparse one is due";
  } else if (right_for([&](std::size_t token) -> std::optional<ExpectedRows> {
               if (forms.due_dense(token)) return std::nullopt;
               return forms.sparse(token, forms.slots(token, forms.length(token), false));
             })) {
    verdict.diagnosis = "ids of a request used as slots";
  } else if (right_for([&](std::size_t token) { return forms.by_previous(token); })) {
    verdict.diagnosis = "metadata of the previous batch";
  } else if (!finite) {
    verdict.diagnosis = "nan from poison";
  } else {
    verdict.diagnosis = "unexplained";
  }
  const Failing& f = failing.front();
  verdict.detail = fmt::format("{} of {} rows fail, {} due; the first is request {}, position {}, head {}",
                               verdict.rows_failed, rows, forms.due_dense(f.token) ? "dense" : "sparse",
                               forms.request_of(f.token), forms.position_of(f.token), f.head);
  return verdict;
}

}  // namespace attest::oracle
