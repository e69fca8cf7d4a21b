// SPDX-License-Identifier: MIT
//
// The bound needs no chunks. Merging partial states by their lse is one more way of rescaling what was summed
// before, which the bound of a split-KV kernel pays for already (oracle/mla_bound.cpp: th, T, and the merge
// of up to 32 splits), and a chunk is a split. What is new is the width of K, and that cache and call have
// scales of their own: keys are decoded to real values here, where fp8 times a scale is exact in fp64.
//
// Diagnosis is by imagined kernels as in oracle/imagined.h, in a simpler form: a defect is another set of
// weights on the same keys. On up to a dozen failing rows its result is computed and compared within its own
// bound, and all of them must agree.
#include "oracle/prefill_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oracle/mla_bound.h"
#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"
#include "oracle/worst_first.h"
#include "reference/paged_cache.h"

namespace attest::oracle {
namespace {

using cases::Fill;
using cases::MlaPrefill;
using cases::MlaPrefillInputs;
using Eigen::Index;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Index k_columns = cases::prefill_k_columns, v_columns = cases::prefill_v_columns;
constexpr std::size_t most_witnesses = 12;

/// One head of one request: query rows and all keys, the context's first, as real values.
struct Head {
  int request = 0, head = 0, context_len = 0, kv_len = 0, q_len = 0;
  Matrix q, k, v;
  Vector q_norms, k_norms;
  reference::RequestAttention attention;
};

struct Address {
  int request = 0, position = 0, head = 0;
};

class PrefillLaunch {
 public:
  PrefillLaunch(const cases::Case& c, const cases::Inputs& inputs, const PrecisionProfile& declared)
      : c_(c),
        p_(std::get<MlaPrefill>(c.problem)),
        in_(std::get<MlaPrefillInputs>(inputs)),
        scales_{p_.sm_scale, 1.0, 1.0},
        profile_(declared) {
    rules_.grid = RoundingGrid::of(cases::Format::bf16);
    rules_.rounding = declared.output;
    rules_.lse_empty = declared.lse_empty;
    rules_.empty = declared.empty;
    const bool equal_weights = c.data.fill == Fill::constant_scores;
    rules_.exact = equal_weights;
    rules_.statistics = !equal_weights;
    rules_.generic = !equal_weights && c.data.fill != Fill::position_coded;
    if (equal_weights) {  // P is 1 in every kernel and every format: its rounding is no excuse
      profile_.p_roundoff = 0x1p-24;
      profile_.p_floor = 0;
    }
  }

  std::string open(const cases::Outputs& outputs) {
    const auto rows = static_cast<std::size_t>(in_.qo_indptr.back()) * static_cast<std::size_t>(p_.heads);
    const auto bytes_of = [&](std::string_view name, std::size_t size,
                              std::span<const std::byte>& bytes) -> std::string {
      const cases::Outputs::Tensor* tensor = outputs.find(name);
      if (tensor == nullptr) return fmt::format("the device returned no tensor \"{}\"", name);
      if (tensor->bytes.size() != size)
        return fmt::format("tensor \"{}\" has {} bytes, the case asks for {}", name, tensor->bytes.size(),
                           size);
      bytes = tensor->bytes;
      return {};
    };
    if (std::string why = bytes_of("out", rows * v_columns * 2, out_bytes_); !why.empty()) return why;
    out_ = reference::decode_matrix(reference::Format::bf16, out_bytes_, static_cast<Index>(rows), v_columns);
    before_ = cases::poison_bytes(c_, c_.memory.output, cases::Format::bf16, rows * v_columns, "out");
    if (!p_.return_lse) return {};
    std::span<const std::byte> lse_bytes;
    if (std::string why = bytes_of("lse", rows * sizeof(float), lse_bytes); !why.empty()) return why;
    lse_ = reference::decode_matrix(reference::Format::f32, lse_bytes, static_cast<Index>(rows), 1);
    return {};
  }

  [[nodiscard]] const MlaPrefill& problem() const { return p_; }
  [[nodiscard]] const cases::Case& c() const { return c_; }
  [[nodiscard]] const Rules& rules() const { return rules_; }
  [[nodiscard]] const PrecisionProfile& profile() const { return profile_; }
  [[nodiscard]] const reference::AttentionScales& scales() const { return scales_; }
  [[nodiscard]] Index rows() const { return out_.rows(); }

  [[nodiscard]] Index row_of(const Address& a) const {
    return (Index{in_.qo_indptr[static_cast<std::size_t>(a.request)]} + a.position) * p_.heads + a.head;
  }
  [[nodiscard]] std::span<const double> result(Index row) const {
    return {&out_(row, 0), static_cast<std::size_t>(v_columns)};
  }
  [[nodiscard]] const double* lse(Index row) const { return p_.return_lse ? &lse_[row] : nullptr; }
  [[nodiscard]] bool untouched(Index row) const {
    const std::size_t bytes = std::size_t{v_columns} * 2, at = static_cast<std::size_t>(row) * bytes;
    return std::memcmp(out_bytes_.data() + at, before_.data() + at, bytes) == 0;
  }

  [[nodiscard]] Head load(int request, int head) const {
    const auto r = static_cast<std::size_t>(request);
    const cases::PrefillRequest& wanted = p_.requests[r];
    Head h;
    h.request = request;
    h.head = head;
    h.context_len = wanted.context_len;
    h.kv_len = wanted.kv_len;
    h.q_len = wanted.q_len;
    h.q = rows_of_head(in_.q, in_.qo_indptr[r], wanted.q_len, head, k_columns, k_columns);
    h.k.resize(wanted.context_len + wanted.kv_len, k_columns);
    h.v.resize(h.k.rows(), v_columns);
    context(request, head, h);
    h.k.bottomRows(wanted.kv_len) =
        rows_of_head(in_.k, in_.kv_indptr[r], wanted.kv_len, head, k_columns, k_columns);
    h.v.bottomRows(wanted.kv_len) =
        rows_of_head(in_.v, in_.kv_indptr[r], wanted.kv_len, head, v_columns, p_.v_stride);
    h.q_norms = row_norms(h.q);
    h.k_norms = row_norms(h.k);
    std::vector<int> visible;
    for (int i = 0; i < wanted.q_len; ++i)
      visible.push_back(wanted.context_len + std::max(0, wanted.kv_len - wanted.q_len + i + 1));
    h.attention = reference::attend_visible(h.q, h.k, h.v, scales_, std::move(visible));
    return h;
  }

  /// V of the call's keys as a kernel reads it that takes the head stride for `stride`; nullopt where it
  /// would read outside.
  [[nodiscard]] std::optional<Matrix> values_by_stride(const Head& h, int stride) const {
    const auto first = static_cast<std::size_t>(in_.kv_indptr[static_cast<std::size_t>(h.request)]);
    const std::size_t last_row =
        (first + static_cast<std::size_t>(h.kv_len)) * static_cast<std::size_t>(p_.heads);
    const auto element = static_cast<std::size_t>(reference::bytes_per_element(to_reference(p_.qkv_format)));
    if (last_row * static_cast<std::size_t>(stride) * element > in_.v.size()) return std::nullopt;
    Matrix values = h.v;
    values.bottomRows(h.kv_len) =
        rows_of_head(in_.v, static_cast<int>(first), h.kv_len, h.head, v_columns, stride);
    return values;
  }

  [[nodiscard]] BoundRequest for_bound(const Head& h) const {
    return {h.attention, h.v, h.q_norms, h.k_norms, scales_, static_cast<int>(k_columns)};
  }

 private:
  /// [count, columns] of one head, tokens [first, first + count) of a tensor [tokens, heads, stride].
  [[nodiscard]] Matrix rows_of_head(std::span<const std::byte> tensor, int first, int count, int head,
                                    Index columns, Index stride) const {
    const reference::Format format = to_reference(p_.qkv_format);
    const auto element = static_cast<std::size_t>(reference::bytes_per_element(format));
    Matrix rows(count, columns);
    for (int t = 0; t < count; ++t) {
      const auto at = static_cast<std::size_t>((Index{first + t} * p_.heads + head) * stride) * element;
      reference::decode(format, tensor.subspan(at, static_cast<std::size_t>(columns) * element),
                        {&rows(t, 0), static_cast<std::size_t>(columns)});
    }
    return rows;
  }

  void context(int request, int head, Head& h) const {
    const reference::Format format = to_reference(p_.cache_format);
    const auto row_bytes = static_cast<std::size_t>(cases::prefill_row_columns) *
                           static_cast<std::size_t>(reference::bytes_per_element(format));
    std::vector<double> row(cases::prefill_row_columns);
    for (int t = 0; t < h.context_len; ++t) {
      const auto entry =
          static_cast<std::size_t>(in_.page_indptr[static_cast<std::size_t>(request)] + t / p_.page_size);
      const std::uint64_t at = static_cast<std::uint64_t>(in_.page_indices[entry]) * in_.page_stride_bytes +
                               static_cast<std::uint64_t>((t % p_.page_size) * p_.heads + head) * row_bytes;
      reference::decode(format, in_.context_pool.at(at, row_bytes), row);
      for (Index d = 0; d < k_columns; ++d)
        h.k(t, d) = row[static_cast<std::size_t>(d)] * double{p_.kv_scale};
      for (Index d = 0; d < v_columns; ++d)
        h.v(t, d) = row[static_cast<std::size_t>(k_columns + d)] * double{p_.kv_scale};
    }
  }

  const cases::Case& c_;
  const MlaPrefill& p_;
  const MlaPrefillInputs& in_;
  reference::AttentionScales scales_;
  PrecisionProfile profile_;
  Rules rules_;
  std::span<const std::byte> out_bytes_;
  std::vector<std::byte> before_;
  Matrix out_;
  Vector lse_;
};

/// Another attention over the same keys.
struct Imagined {
  std::function<double(Index key)> offset;  ///< added to the score; -inf leaves the key out
  std::optional<Matrix> values;             ///< in place of V
  double extra_states = 0;                  ///< empty states that enter as 0 with an lse of 0
};

struct Defect {
  const char* text;
  int variants;
  std::function<std::optional<Imagined>(const Head& h, int position, int variant)> make;
};

class Examination {
 public:
  Examination(const PrefillLaunch& launch, std::vector<Address> failing)
      : launch_(launch), failing_(std::move(failing)) {
    for (const Address& a : failing_) {
      const Index row = launch.row_of(a);
      const auto y = launch.result(row);
      const double* lse = launch.lse(row);
      const bool finite = std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); }) &&
                          (lse == nullptr || !std::isnan(*lse));
      (finite ? finite_ : non_finite_).push_back(a);
    }
  }

  [[nodiscard]] Named diagnose() {
    const auto untouched = std::count_if(failing_.begin(), failing_.end(), [&](const Address& a) {
      return launch_.untouched(launch_.row_of(a));
    });
    if (untouched > 0 && launch_.c().memory.output != cases::Poison::zero)
      return {"rows unwritten", fmt::format("{} rows hold what the buffer held", untouched)};
    if (finite_.empty()) {
      const bool poisonous =
          launch_.c().memory.unused == cases::Poison::nan || launch_.c().memory.unused == cases::Poison::inf;
      return {poisonous ? "nan from poison" : "not finite", fmt::format("{} rows", non_finite_.size())};
    }
    call_witnesses();
    const std::vector<Defect> all = catalogue();
    for (const bool with_lse : {true, false}) {
      if (with_lse && !launch_.problem().return_lse) continue;
      for (const Defect& defect : all)
        for (int v = 0; v < defect.variants; ++v)
          if (std::all_of(witnesses_.begin(), witnesses_.end(),
                          [&](const Witness& w) { return explains(w, defect, v, with_lse); }))
            return {defect.text, defect.variants > 1 ? fmt::format("chunk {}", v) : std::string()};
    }
    return {"unexplained difference", {}};
  }

 private:
  struct Witness {
    std::size_t head = 0;  ///< of heads_
    int position = 0;
  };

  void call_witnesses() {
    const std::size_t step = std::max<std::size_t>(1, finite_.size() / most_witnesses);
    for (std::size_t i = 0; i < finite_.size() && witnesses_.size() < most_witnesses; i += step) {
      const Address& a = finite_[i];
      std::size_t at = 0;
      while (at < heads_.size() && (heads_[at].request != a.request || heads_[at].head != a.head)) ++at;
      if (at == heads_.size()) heads_.push_back(launch_.load(a.request, a.head));
      witnesses_.push_back({at, a.position});
    }
  }

  [[nodiscard]] bool explains(const Witness& w, const Defect& defect, int variant, bool with_lse) const {
    const Head& h = heads_[w.head];
    const std::optional<Imagined> imagined = defect.make(h, w.position, variant);
    if (!imagined) return false;
    const Index keys = h.k.rows();
    const Matrix& values = imagined->values ? *imagined->values : h.v;
    reference::RequestAttention a;
    a.visible = {static_cast<int>(keys)};
    a.scores.resize(1, keys);
    double max = -infinity;
    for (Index j = 0; j < keys; ++j) {
      const double offset = imagined->offset ? imagined->offset(j) : 0.0;
      a.scores(0, j) = offset == -infinity
                           ? -infinity
                           : launch_.scales().sm_scale * h.q.row(w.position).dot(h.k.row(j)) + offset;
      max = std::max(max, a.scores(0, j));
    }
    const Index row = launch_.row_of({h.request, w.position, h.head});
    const auto y = launch_.result(row);
    const double* lse = with_lse ? launch_.lse(row) : nullptr;
    if (max == -infinity) {
      return std::all_of(y.begin(), y.end(), [](double v) { return v == 0; }) &&
             (lse == nullptr || *lse == -infinity);
    }
    a.row_max = Vector::Constant(1, max);
    a.weights = (a.scores.array() - max).exp().matrix();
    a.row_sum = Vector::Constant(1, a.weights.sum());
    a.weights /= a.row_sum[0];
    a.lse = Vector::Constant(1, max + std::log(a.row_sum[0]));
    a.out = a.weights * values;
    if (imagined->extra_states > 0) {
      const double larger = std::max(a.lse[0], 0.0);
      const double together =
          larger + std::log(std::exp(a.lse[0] - larger) + imagined->extra_states * std::exp(-larger));
      a.out *= std::exp(a.lse[0] - together);
      a.lse[0] = together;
    }
    if (!a.out.allFinite()) return false;
    const Vector q_norm = Vector::Constant(1, h.q_norms[w.position]);
    const MlaBound bound = bound_mla(
        {a, values, q_norm, h.k_norms, launch_.scales(), static_cast<int>(k_columns)}, launch_.profile());
    Rules rules = launch_.rules();
    rules.statistics = false;
    return compare_row(y, lse, a, bound, 0, rules).failed == Stage::none;
  }

  [[nodiscard]] std::vector<Defect> catalogue() const {
    const MlaPrefill& p = launch_.problem();
    const int chunk = p.chunk_len, chunks = p.chunks();
    const auto visible_of_call = [](const Head& h, int position) {
      return std::max(0, h.kv_len - h.q_len + position + 1);
    };
    // The first `seen(h, position)` keys of the call in place of the right number.
    const auto other_bound = [&](const char* text,
                                 const std::function<int(const Head&, int)>& seen) -> Defect {
      return {text, 1, [=](const Head& h, int position, int) -> std::optional<Imagined> {
                const int now = std::clamp(seen(h, position), 0, h.kv_len);
                if (now == visible_of_call(h, position)) return std::nullopt;
                const Index end = Index{h.context_len} + now;
                return Imagined{[end](Index j) { return j < end ? 0.0 : -infinity; }, std::nullopt, 0};
              }};
    };
    // Keys of the context with another weight.
    const auto context_keys = [&](const char* text, int variants, double offset,
                                  const std::function<bool(const Head&, Index, int)>& which) -> Defect {
      return {text, variants, [=](const Head& h, int position, int variant) -> std::optional<Imagined> {
                const Index end = Index{h.context_len} + visible_of_call(h, position);
                bool any = false;
                for (Index j = 0; j < h.context_len; ++j) any = any || which(h, j, variant);
                if (!any) return std::nullopt;
                return Imagined{[=, &h](Index j) {
                                  if (j >= end) return -infinity;
                                  return j < h.context_len && which(h, j, variant) ? offset : 0.0;
                                },
                                std::nullopt, 0};
              }};
    };
    std::vector<Defect> all;
    all.push_back(context_keys("chunk boundary keys counted twice", 1, std::log(2.0),
                               [chunk](const Head&, Index j, int) { return j > 0 && j % chunk == 0; }));
    all.push_back(context_keys(
        "chunk boundary keys missing", 1, -infinity,
        [chunk](const Head& h, Index j, int) { return j % chunk == chunk - 1 && j + 1 < h.context_len; }));
    all.push_back(other_bound("causal mask aligned to the top left",
                              [](const Head&, int position) { return position + 1; }));
    all.push_back(other_bound("every row has the window of the first",
                              [](const Head& h, int) { return h.kv_len - h.q_len + 1; }));
    all.push_back(other_bound("causal mask missing", [](const Head& h, int) { return h.kv_len; }));
    all.push_back(other_bound("causal bound one too far",
                              [=](const Head& h, int i) { return visible_of_call(h, i) + 1; }));
    all.push_back(other_bound("causal bound one too short",
                              [=](const Head& h, int i) { return visible_of_call(h, i) - 1; }));
    all.push_back({"states without keys take weight", 1,
                   [=](const Head& h, int position, int) -> std::optional<Imagined> {
                     const int own = (h.context_len + chunk - 1) / chunk;
                     const int visible = visible_of_call(h, position);
                     const int empty = chunks - own + (visible == 0 ? 1 : 0);
                     if (empty == 0) return std::nullopt;
                     const Index end = Index{h.context_len} + visible;
                     return Imagined{[end](Index j) { return j < end ? 0.0 : -infinity; }, std::nullopt,
                                     static_cast<double>(empty)};
                   }});
    all.push_back(
        context_keys("context missing", 1, -infinity, [](const Head&, Index, int) { return true; }));
    if (chunks > 1)
      all.push_back(context_keys("one chunk missing", chunks, -infinity,
                                 [chunk](const Head&, Index j, int v) { return j / chunk == v; }));
    for (const int stride : {static_cast<int>(v_columns), static_cast<int>(k_columns)})
      if (stride != p.v_stride)
        all.push_back({"v read with another stride", 1,
                       [=, this](const Head& h, int position, int) -> std::optional<Imagined> {
                         std::optional<Matrix> values = launch_.values_by_stride(h, stride);
                         if (!values) return std::nullopt;
                         const Index end = Index{h.context_len} + visible_of_call(h, position);
                         return Imagined{[end](Index j) { return j < end ? 0.0 : -infinity; },
                                         std::move(values), 0};
                       }});
    return all;
  }

  const PrefillLaunch& launch_;
  std::vector<Address> failing_, finite_, non_finite_;
  std::vector<Head> heads_;
  std::vector<Witness> witnesses_;
};

}  // namespace

Verdict judge_mla_prefill(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
                          const PrecisionProfile& declared) {
  PrefillLaunch launch(c, inputs, declared);
  Verdict verdict;
  if (std::string why = launch.open(outputs); !why.empty()) {
    verdict.kind = VerdictKind::harness_error;
    verdict.diagnosis = "outputs missing or of the wrong size";
    verdict.detail = std::move(why);
    return verdict;
  }
  const MlaPrefill& p = launch.problem();
  std::vector<Address> failing;
  MismatchGrid grid("head");
  WorstFirst worst;
  bool telling = false;
  Stage first_failed = Stage::none;
  for (int r = 0; r < static_cast<int>(p.requests.size()); ++r) {
    if (p.requests[static_cast<std::size_t>(r)].q_len == 0) continue;
    for (int head = 0; head < p.heads; ++head) {
      const Head h = launch.load(r, head);
      const MlaBound bound = bound_mla(launch.for_bound(h), launch.profile());
      for (int position = 0; position < h.q_len; ++position) {
        const Index row = launch.row_of({r, position, head});
        const double* lse = launch.lse(row);
        const RowResult result =
            compare_row(launch.result(row), lse, h.attention, bound, position, launch.rules());
        grid.note(r, position, head, used_budget(result, launch.result(row), lse));
        if (!result.judged) continue;
        verdict.elements_checked += v_columns + (lse != nullptr ? 1 : 0);
        verdict.elements_failed += result.failing_elements + (result.lse_used > 1 ? 1 : 0);
        verdict.used_budget = std::max({verdict.used_budget, result.used, result.lse_used});
        telling = telling || result.telling;
        if (result.failed == Stage::none) continue;
        ++verdict.rows_failed;
        if (first_failed == Stage::none || result.failed < first_failed) first_failed = result.failed;
        failing.push_back({r, position, head});
        const bool of_lse = result.lse_used > result.used || result.column < 0;
        Element e;
        e.request = r;
        e.position = position;
        e.head = head;
        e.column = of_lse ? -1 : result.column;
        e.expected = of_lse ? h.attention.lse[position] : h.attention.out(position, result.column);
        e.got = of_lse ? (lse != nullptr ? *lse : 0.0)
                       : launch.result(row)[static_cast<std::size_t>(result.column)];
        e.bound = of_lse ? bound.lse[position] : bound.element(position, result.column);
        const bool judged = bound.row_class[static_cast<std::size_t>(position)] == RowClass::judged;
        e.term = !judged  ? "class"
                 : of_lse ? "lse"
                          : dominating_term(launch.for_bound(h), launch.profile(), position, result.column);
        worst.offer(std::max(result.used, result.lse_used), std::move(e));
      }
    }
  }

  verdict.lane = launch.rules().exact ? "exact" : "element";
  if (!failing.empty()) {
    verdict.kind = VerdictKind::fail;
    verdict.mismatch = grid.map();
    verdict.stage = name(first_failed);
    if (first_failed == Stage::row || first_failed == Stage::lse) verdict.lane = "row";
    verdict.worst = worst.take();
    const Named named = Examination(launch, std::move(failing)).diagnose();
    verdict.diagnosis = named.text;
    const Element& e = verdict.worst.front();
    verdict.detail = fmt::format(
        "{}{}{} of {} rows fail; worst at request {}, position {}, head {}, {}: {:.9g}, expected {:.9g} "
        "within {:.3g} ({})",
        named.detail, named.detail.empty() ? "" : "; ", verdict.rows_failed, launch.rows(), e.request,
        e.position, e.head, e.column < 0 ? "lse" : fmt::format("column {}", e.column), e.got, e.expected,
        e.bound, e.term);
    return verdict;
  }
  if (!telling) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "a result of zeros would have passed";
  }
  return verdict;
}

}  // namespace attest::oracle
