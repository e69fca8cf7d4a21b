// SPDX-License-Identifier: MIT
//
// From numbers to a name
// ======================
//
// A wrong attention output looks like noise: a dropped tile, a stale key and a rounded accumulator all give
// 512 plausible numbers. What tells them apart is that each is exactly reproducible. So the diagnosis asks,
// cheapest first:
//
//   1. the bytes: rows that still hold what was there before the launch, rows of NaN, rows of zeros, rows
//      that are bit for bit each other although their references differ;
//   2. imagined kernels (oracle/imagined.h): does a reference with this one defect give this result, within
//      its own bound? Tried in a fixed order on up to a dozen failing rows, and all of them must agree;
//   3. other rows: is it the right answer to another row?
//   4. estimates: a factor, a relative error of the softmax scale, one key that explains the error;
//   5. what is left: an error that is small and spread evenly is a kernel less precise than it declares.
//
// The same defect must get the same name in every case, or one bug becomes many findings. That is why the
// tests of 2. come in an order of decreasing specificity, why parameters (which tile, which split) go into
// the detail, and why NaN rows are set aside as long as other rows can speak: an over-read gives NaN on
// poison and a wrong number elsewhere.
#include "oracle/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "oracle/imagined.h"

namespace attest::oracle {
namespace {

using Eigen::Index;
using reference::kv_lora_rank;
constexpr int most_groups = 4, rows_per_group = 4, column_stride = 12;
constexpr int most_other_groups = 32;
constexpr std::size_t most_alternative_rows = 64;

struct RowAddress {
  int request = 0, position = 0, head = 0;
  int group = 0;
};

bool poisonous(cases::Poison p) {
  return p == cases::Poison::nan || p == cases::Poison::inf;
}

bool all_zero(std::span<const double> y) {
  return std::all_of(y.begin(), y.end(), [](double v) { return v == 0; });
}

class Examination {
 public:
  Examination(const MlaLaunch& launch, const std::vector<RowResult>& rows, const Rules& rules,
              const PrecisionProfile& profile)
      : launch_(launch), rows_(rows), rules_(rules), profile_(profile) {
    for (std::size_t g = 0; g < launch.problem.groups.size(); ++g) {
      const MlaGroup& group = launch.problem.groups[g];
      for (int p = 0; p < group.q_len; ++p)
        for (int h = 0; h < launch.problem.heads; ++h)
          address_.push_back({group.request, group.first_position + p, h, static_cast<int>(g)});
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].failed == Stage::none) continue;
      failing_.push_back(static_cast<Index>(r));
      (finite(static_cast<Index>(r)) ? finite_ : non_finite_).push_back(static_cast<Index>(r));
    }
  }

  Diagnosis diagnose() {
    if (auto found = unwritten()) return *found;
    std::optional<Diagnosis> named;
    const auto ask = [&](auto question) {
      if (!named) named = question();
    };
    if (!finite_.empty()) {
      call_witnesses();
      ask([&] { return lse_alone(); });
      ask([&] { return masked_positions(); });
      ask([&] { return identical_positions(); });
      if (launch_.has_lse()) {
        ask([&] { return imagined(true); });
        ask([&] { return identical_heads(); });
        ask([&] { return another_row(true); });
        ask([&] { return softmax_scale(); });
        ask([&] { return another_row(false); });
        ask([&] { return constant_factor(); });
        ask([&] { return imagined(false); });
      } else {
        ask([&] { return imagined(false); });
        ask([&] { return identical_heads(); });
        ask([&] { return another_row(false); });
        ask([&] { return softmax_scale(); });
        ask([&] { return constant_factor(); });
      }
      ask([&] { return one_key(); });
      ask([&] { return zeros(); });
      if (named) return *named;
    }
    if (!non_finite_.empty()) return not_a_number();
    if (auto found = aligned_run()) return *found;
    return remainder();
  }

  /// After diagnose(): how far the model goes that it found.
  [[nodiscard]] std::optional<Alternative> alternative() const {
    if (!model_ && !copies_) return std::nullopt;
    std::vector<Index> rows;
    const std::size_t wanted = std::min(most_alternative_rows, finite_.size());
    for (std::size_t i = 0; i < wanted; ++i)
      rows.push_back(finite_[wanted == 1 ? 0 : i * (finite_.size() - 1) / (wanted - 1)]);
    Alternative a;
    a.bit_for_bit = !model_;
    const FailedRequest* bound_to = nullptr;
    std::shared_ptr<const FailedRequest> home;
    std::vector<int> all_columns(kv_lora_rank);
    for (int d = 0; d < kv_lora_rank; ++d) all_columns[static_cast<std::size_t>(d)] = d;
    for (const Index r : rows) {
      ++a.rows;
      a.elements += kv_lora_rank;
      a.with_reference += kv_lora_rank - result(r).failing_elements;
      if (!model_) {
        int best = 0;
        for (const Index other : copies_(r)) best = std::max(best, equal_elements(r, other));
        a.with_alternative += best;
        continue;
      }
      if (bound_to == nullptr || home->request.index != address(r).group) {
        home = load_failed_request(launch_, address(r).group, all_columns);
        bound_to = home.get();
      }
      Witness w = witness(home, r, all_columns);
      w.failed_as_a_whole = true;  // elements are to be counted, whatever failed
      int best = 0;
      const auto count = [&](int variant) {
        Fit fit;
        model_->defect.matches(w, variant, false, &fit);
        best = std::max(best, fit.fitting);
      };
      count(model_->variant);
      for (int v = 0; v < model_->defect.variants(w) && best < kv_lora_rank; ++v)
        if (v != model_->variant) count(v);
      a.with_alternative += best;
    }
    return a;
  }

 private:
  struct Model {
    Defect defect;
    int variant = 0;
  };

  [[nodiscard]] int equal_elements(Index a, Index b) const {
    const std::size_t size = launch_.row_bytes() / kv_lora_rank;
    int equal = 0;
    for (std::size_t d = 0; d < kv_lora_rank; ++d)
      equal += std::memcmp(bytes(a).data() + d * size, bytes(b).data() + d * size, size) == 0 ? 1 : 0;
    return equal;
  }
  [[nodiscard]] Witness witness(const std::shared_ptr<const FailedRequest>& home, Index r,
                                const std::vector<int>& columns) const {
    Witness w;
    w.home = home;
    w.in_launch = r;
    w.row = r - home->request.first_row;
    w.columns = columns;
    for (const int d : columns) w.y.push_back(launch_.out(r, d));
    if (launch_.has_lse()) w.lse = &launch_.lse[r];
    w.failed_elements = result(r).used > 1;
    w.failed_lse = result(r).lse_used > 1;
    w.failed_as_a_whole = result(r).failed == Stage::row;
    w.dots = home->keys * home->request.q.row(w.row).transpose();
    return w;
  }

  [[nodiscard]] std::span<const double> y(Index row) const {
    return {&launch_.out(row, 0), static_cast<std::size_t>(launch_.out.cols())};
  }
  [[nodiscard]] std::span<const std::byte> bytes(Index row) const {
    return launch_.out_bytes.subspan(static_cast<std::size_t>(row) * launch_.row_bytes(),
                                     launch_.row_bytes());
  }
  [[nodiscard]] const RowResult& result(Index row) const { return rows_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] const RowAddress& address(Index row) const { return address_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] bool finite_out(Index row) const {
    const auto values = y(row);
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  }
  [[nodiscard]] bool finite(Index row) const {
    if (!finite_out(row)) return false;
    return !launch_.has_lse() || !std::isnan(launch_.lse[row]);
  }
  [[nodiscard]] const cases::Request& request_of(Index row) const {
    return launch_.problem.requests[static_cast<std::size_t>(address(row).request)];
  }
  [[nodiscard]] const MlaGroup& group_of(Index row) const {
    return launch_.problem.groups[static_cast<std::size_t>(address(row).group)];
  }
  [[nodiscard]] int visible(Index row) const {
    return group_of(row).visible(address(row).position - group_of(row).first_position);
  }
  [[nodiscard]] std::string where(Index row) const {
    const RowAddress& a = address(row);
    return fmt::format("request {}, position {}, head {}", a.request, a.position, a.head);
  }

  // A buffer of zeros proves little, for a row of zeros may have been written. Its lse tells; without one,
  // all failing rows must be zero.
  std::optional<Diagnosis> unwritten() const {
    const cases::Poison poison = launch_.c.memory.output;
    const bool poison_of_zeros = poison == cases::Poison::zero;
    if (poison_of_zeros && !launch_.has_lse() &&
        !std::all_of(failing_.begin(), failing_.end(), [&](Index r) { return all_zero(y(r)); }))
      return std::nullopt;
    const auto rows = static_cast<std::size_t>(launch_.out.rows());
    const std::vector<std::byte> before =
        cases::poison_bytes(launch_.c, poison, launch_.problem.out_format, rows * kv_lora_rank, "out");
    const std::vector<std::byte> lse_before =
        cases::poison_bytes(launch_.c, poison, cases::Format::f32, rows, "lse");
    const auto lse_untouched = [&](Index r) {
      const auto at = static_cast<std::size_t>(r) * sizeof(float);
      return launch_.has_lse() &&
             std::memcmp(launch_.lse_bytes.data() + at, lse_before.data() + at, sizeof(float)) == 0;
    };
    Index whole = 0, partly = 0, lse_only = 0, first = -1;
    const auto element_bytes = launch_.row_bytes() / kv_lora_rank;
    for (const Index r : failing_) {
      const auto now = bytes(r);
      const std::byte* then = before.data() + static_cast<std::size_t>(r) * launch_.row_bytes();
      std::size_t same = 0;
      for (std::size_t d = 0; d < kv_lora_rank; ++d)
        same += std::memcmp(now.data() + d * element_bytes, then + d * element_bytes, element_bytes) == 0
                    ? 1U
                    : 0U;
      if (same == kv_lora_rank && (!poison_of_zeros || !launch_.has_lse() || lse_untouched(r)))
        ++whole;
      else if (same >= 8 && !poison_of_zeros)
        ++partly;
      else if (result(r).lse_used > 1 && !poison_of_zeros && lse_untouched(r) &&
               (poison != cases::Poison::nan || finite_out(r)))  // else NaN that was computed
        ++lse_only;
      if (first < 0 && whole + partly + lse_only > 0) first = r;
    }
    const auto found = [&](const char* text, Index count) {
      return Diagnosis{text,
                       fmt::format("{} rows still hold what the buffer held, {}; the first is {}", count,
                                   cases::name(poison), where(first < 0 ? failing_.front() : first))};
    };
    if (whole > 0) return found("rows unwritten", whole);
    if (partly > 0) return found("columns unwritten", partly);
    if (lse_only > 0) return found("lse unwritten", lse_only);
    if (poison_of_zeros && launch_.has_lse() && everyone_zero_lse())
      return found("lse unwritten", launch_.out.rows());
    return std::nullopt;
  }

  // One lse of 0 may have been written. A launch of nothing else, some of them wrong, was not.
  [[nodiscard]] bool everyone_zero_lse() const {
    for (Index r = 0; r < launch_.out.rows(); ++r)
      if (launch_.lse[r] != 0) return false;
    return std::any_of(failing_.begin(), failing_.end(), [&](Index r) { return result(r).lse_used > 1; });
  }

  Diagnosis not_a_number() const {
    Index empty = 0, partial_page = 0, shadowed = 0;
    const MlaKeys& keys = *launch_.problem.keys;
    for (const Index r : non_finite_) {
      if (visible(r) <= 0) ++empty;
      if (keys.ends_inside_page(address(r).group)) ++partial_page;
      if (visible(r) > 0 && keys.meets_masked_tile(address(r).group, visible(r))) ++shadowed;
    }
    const auto all = static_cast<Index>(non_finite_.size());
    const std::string first = fmt::format("{} rows, the first is {}", all, where(non_finite_.front()));
    // Rows that see all keys are clean, rows that end before the last tile or split are not.
    if (shadowed + empty == all)
      return {"nan from a fully masked tile",
              first + (empty == all ? "; every one sees no key"
                                    : "; every one may meet a tile of which it sees nothing")};
    if (auto found = high_pages()) return *found;
    if (poisonous(launch_.c.memory.unused))
      return {"nan from poison",
              first + (partial_page == all ? "; the keys of every one end inside a page" : "")};
    if (launch_.problem.num_splits > 1 && poisonous(launch_.c.memory.scratch))
      return {"nan from scratch", first};
    return {"not finite", first};
  }

  std::optional<Diagnosis> zeros() const {
    Index count = 0;
    for (const Index r : finite_) count += all_zero(y(r)) ? 1 : 0;
    if (count == 0) return std::nullopt;
    return Diagnosis{"rows of zeros", fmt::format("{} of {} failing rows", count, finite_.size())};
  }

  std::optional<Diagnosis> lse_alone() {
    if (!launch_.has_lse()) return std::nullopt;
    for (const Index r : finite_)
      if (result(r).used > 1 || result(r).failed == Stage::row) return std::nullopt;
    const auto all = [&](const auto& holds) { return std::all_of(finite_.begin(), finite_.end(), holds); };
    const auto times = [&](double factor) {
      return all_witnesses([&](const Witness& w) {
        const double lse = w.home->request.attention.lse[w.row];
        return std::isfinite(lse) && std::abs(*w.lse - lse * factor) < 1e-5 * (1 + std::abs(lse));
      });
    };
    if (all([&](Index r) { return visible(r) <= 0; }))
      return Diagnosis{"lse of empty rows",
                       fmt::format("{} rows hold {}", finite_.size(), launch_.lse[finite_.front()])};
    constexpr double log2_e = 1.4426950408889634;
    if (times(log2_e)) {
      // Where one split has all the weight a merge cannot go wrong: it hands the partial lse on.
      constexpr const char* merged = "lse base 2 merged as natural";
      return Diagnosis{imaginable(merged) ? merged : "lse in base 2",
                       "every failing lse is log2(e) times the natural one"};
    }
    if (times(1 / log2_e))
      return Diagnosis{"lse in base e twice", "every failing lse is ln(2) times the right one"};
    if (all_witnesses([](const Witness& w) {
          return std::abs(*w.lse - w.home->request.attention.row_max[w.row]) < 1e-5 * (1 + std::abs(*w.lse));
        }))
      return Diagnosis{"lse without the row sum", "every failing lse is the largest score"};
    return std::nullopt;
  }

  bool imaginable(std::string_view text) const {
    for (const Defect& defect : imaginable_defects(launch_, rules_, profile_, false)) {
      if (text != defect.text) continue;
      return all_witnesses([&](const Witness& w) {
        for (int v = 0; v < defect.variants(w); ++v)
          if (defect.matches(w, v, true, nullptr)) return true;
        return false;
      });
    }
    return false;
  }

  // Most failing rows are bit for bit another one that is right. `candidates` gives the rows to look at.
  template <class Candidates, class Describe>
  std::optional<std::string> held_elsewhere(const Candidates& candidates, const Describe& describe) const {
    std::size_t explained = 0;
    std::string example;
    for (const Index r : finite_) {
      if (result(r).used <= 1 || all_zero(y(r))) continue;
      for (const Index other : candidates(r)) {
        if (other == r || !result(other).judged || result(other).failed != Stage::none) continue;
        if (std::memcmp(bytes(r).data(), bytes(other).data(), launch_.row_bytes()) != 0) continue;
        ++explained;
        if (example.empty()) example = describe(r, other);
        break;
      }
    }
    if (explained == 0 || 2 * explained < finite_.size()) return std::nullopt;
    return example;
  }

  // Every failing row is, with its lse, the right row of position i & (q_len - 1).
  std::optional<Diagnosis> masked_positions() {
    std::string example;
    for (const Index r : finite_) {
      const int p = address(r).position, q_len = request_of(r).q_len, source = p & (q_len - 1);
      const Index other = r - Index{p - source} * launch_.problem.heads;
      if (source == p || result(other).failed != Stage::none) return std::nullopt;
      if (std::memcmp(bytes(r).data(), bytes(other).data(), launch_.row_bytes()) != 0) return std::nullopt;
      if (launch_.has_lse() && launch_.lse[r] != launch_.lse[other]) return std::nullopt;
      if (example.empty())
        example = fmt::format("request {}: position {} holds the row of position {}, i & {} throughout",
                              address(r).request, p, source, q_len - 1);
    }
    copies_ = [this](Index r) {
      const int p = address(r).position, source = p & (request_of(r).q_len - 1);
      return std::vector<Index>{r - Index{p - source} * launch_.problem.heads};
    };
    return Diagnosis{"query rows identical", example};
  }

  // Only earlier positions: where all queries are equal, a row with the causal bound of a later one is that
  // row.
  std::optional<Diagnosis> identical_positions() {
    const auto earlier = [this](Index r) {
      std::vector<Index> others;
      others.reserve(static_cast<std::size_t>(address(r).position));
      for (int p = 0; p < address(r).position; ++p)
        others.push_back(r - Index{address(r).position - p} * launch_.problem.heads);
      return others;
    };
    const auto found = held_elsewhere(earlier, [&](Index r, Index other) {
      return fmt::format("request {}: position {} holds the row of position {}{}", address(r).request,
                         address(r).position, address(other).position, map_of(r));
    });
    if (!found) return std::nullopt;
    copies_ = earlier;
    return Diagnosis{"query rows identical", *found};
  }

  std::optional<Diagnosis> identical_heads() {
    const auto heads = [this](Index r) {
      std::vector<Index> others;
      others.reserve(static_cast<std::size_t>(launch_.problem.heads));
      for (int h = 0; h < launch_.problem.heads; ++h)
        if (h != address(r).head) others.push_back(r - address(r).head + h);
      return others;
    };
    const auto found = held_elsewhere(heads, [&](Index r, Index other) {
      return fmt::format("{}: holds the row of head {}", where(r), address(other).head);
    });
    if (!found) return std::nullopt;
    copies_ = heads;
    return Diagnosis{"heads identical", *found};
  }

  /// The map from positions to the positions whose row they hold, where it has a name.
  [[nodiscard]] std::string map_of(Index row) const {
    const int heads = launch_.problem.heads, q_len = request_of(row).q_len;
    const Index first = row - Index{address(row).position} * heads;
    const auto holds = [&](const auto& source) {
      for (int p = 0; p < q_len; ++p)
        if (std::memcmp(bytes(first + Index{p} * heads).data(),
                        bytes(first + Index{source(p)} * heads).data(), launch_.row_bytes()) != 0)
          return false;
      return true;
    };
    if (holds([](int) { return 0; })) return ", as all do";
    if (holds([&](int p) { return p & (q_len - 1); })) return fmt::format(", i & {} throughout", q_len - 1);
    int shift = 0;
    while ((2 << shift) <= q_len) ++shift;
    if (holds([&](int p) { return p >> shift; })) return fmt::format(", i >> {} throughout", shift);
    return "";
  }

  void call_witnesses() {
    if (!witnesses_.empty()) return;
    std::vector<int> groups;
    for (const Index r : finite_)
      if (std::find(groups.begin(), groups.end(), address(r).group) == groups.end() &&
          static_cast<int>(groups.size()) < most_groups)
        groups.push_back(address(r).group);
    for (const int b : groups) {
      std::vector<Index> failing, chosen;
      for (const Index r : finite_)
        if (address(r).group == b) failing.push_back(r);
      const std::size_t wanted = std::min<std::size_t>(rows_per_group, failing.size());
      for (std::size_t i = 0; i < wanted; ++i)
        chosen.push_back(failing[wanted == 1 ? 0 : i * (failing.size() - 1) / (wanted - 1)]);
      std::set<int> columns;
      for (int d = 0; d < kv_lora_rank; d += column_stride) columns.insert(d);
      for (const Index r : chosen)
        if (result(r).column >= 0) columns.insert(result(r).column);
      const std::vector<int> sampled(columns.begin(), columns.end());
      const auto home = load_failed_request(launch_, b, sampled);
      for (const Index r : chosen) witnesses_.push_back(witness(home, r, sampled));
    }
    call_bystanders();
  }

  /// Rows of the same groups that are right.
  void call_bystanders() {
    const FailedRequest* home = nullptr;
    for (std::size_t i = 0; i < witnesses_.size(); ++i) {
      if (witnesses_[i].home.get() == home) continue;
      home = witnesses_[i].home.get();
      std::vector<Index> right;
      for (Index r = 0; r < home->request.rows(); ++r) {
        const RowResult& here = result(home->request.first_row + r);
        if (here.judged && here.telling && here.failed == Stage::none) right.push_back(r);
      }
      const std::size_t wanted = std::min<std::size_t>(rows_per_group, right.size());
      for (std::size_t k = 0; k < wanted; ++k) {
        Witness w;
        w.home = witnesses_[i].home;
        w.row = right[wanted == 1 ? 0 : k * (right.size() - 1) / (wanted - 1)];
        w.in_launch = home->request.first_row + w.row;
        w.columns = witnesses_[i].columns;
        for (const int d : w.columns) w.y.push_back(launch_.out(w.in_launch, d));
        if (launch_.has_lse()) w.lse = &launch_.lse[w.in_launch];
        w.failed_as_a_whole = true;  // asked about the row as it is
        w.dots = home->keys * home->request.q.row(w.row).transpose();
        bystanders_.push_back(std::move(w));
      }
    }
  }

  template <class Predicate>
  bool all_witnesses(const Predicate& holds) const {
    return !witnesses_.empty() && std::all_of(witnesses_.begin(), witnesses_.end(), holds);
  }

  // An lse may be wrong for a reason of its own: a later round looks at the output alone.
  std::optional<Diagnosis> imagined(bool with_lse) {
    if (with_lse && !launch_.has_lse()) return std::nullopt;
    const bool over_reads = poisonous(launch_.c.memory.unused) &&
                            std::any_of(non_finite_.begin(), non_finite_.end(), [&](Index r) {
                              return visible(r) > 0 && visible(r) == group_of(r).kv_len;
                            });
    for (const Defect& defect : imaginable_defects(launch_, rules_, profile_, over_reads)) {
      int last = -1;
      const auto explained = [&](const Witness& w) {
        if (!with_lse && !w.failed_elements && !w.failed_as_a_whole) return true;
        const int variants = defect.variants(w);
        if (last >= 0 && last < variants && defect.matches(w, last, with_lse, nullptr)) return true;
        for (int v = 0; v < variants; ++v)
          if (v != last && defect.matches(w, v, with_lse, nullptr)) {
            last = v;
            return true;
          }
        return false;
      };
      if (!all_witnesses(explained) || last < 0) continue;
      if (defect.refuted_by && std::any_of(bystanders_.begin(), bystanders_.end(), [&](const Witness& right) {
            return defect.refuted_by(right, with_lse);
          }))
        continue;
      model_ = Model{defect, last};
      Diagnosis d{defect.text, defect.detail(witnesses_.back(), last)};
      if (!with_lse && launch_.has_lse()) d.detail += "; the lse does not follow";
      return d;
    }
    return std::nullopt;
  }

  // The right answer to another row.
  std::optional<Diagnosis> another_row(bool with_lse) const {
    if (with_lse && !launch_.has_lse()) return std::nullopt;
    Rules rules = rules_;
    rules.statistics = false;
    int heads_moved = 0, positions_moved = 0, requests_moved = 0;
    std::string example;
    const auto find = [&](const Witness& w, const MlaRequest& request, const MlaBound& bound) {
      for (Index r = 0; r < request.rows(); ++r) {
        if (request.index == w.home->request.index && r == w.row) continue;
        if (bound.row_class[static_cast<std::size_t>(r)] != RowClass::judged) continue;
        const double* lse = with_lse ? w.lse : nullptr;
        if (compare_row(y(w.in_launch), lse, request.attention, bound, r, rules).failed != Stage::none)
          continue;
        const RowAddress& here = address(w.in_launch);
        if (request.group.request != here.request)
          ++requests_moved;
        else if (request.position(r) != here.position)
          ++positions_moved;
        else
          ++heads_moved;
        if (example.empty())
          example = fmt::format("{} holds request {}, position {}, head {}", where(w.in_launch),
                                request.group.request, request.position(r), request.head(r));
        return true;
      }
      return false;
    };
    std::vector<const Witness*> lost;
    MlaBound bound;
    const FailedRequest* bound_of = nullptr;
    for (const Witness& w : witnesses_) {
      if (!with_lse && !w.failed_elements && !w.failed_as_a_whole) continue;
      if (bound_of != w.home.get()) {
        bound = bound_mla(w.home->request.for_bound(launch_.scales), profile_);
        bound_of = w.home.get();
      }
      if (!find(w, w.home->request, bound)) lost.push_back(&w);
    }
    if (!lost.empty()) {
      int looked = 0;
      for (int b = 0; b < static_cast<int>(launch_.problem.groups.size()) && looked < most_other_groups;
           ++b) {
        if (launch_.problem.groups[static_cast<std::size_t>(b)].q_len == 0) continue;
        ++looked;
        const MlaRequest other = load_request(launch_, b);
        const MlaBound other_bound = bound_mla(other.for_bound(launch_.scales), profile_);
        std::erase_if(lost, [&](const Witness* w) {
          return w->home->request.index != b && find(*w, other, other_bound);
        });
        if (lost.empty()) break;
      }
    }
    if (!lost.empty() || example.empty()) return std::nullopt;
    if (requests_moved > 0) return Diagnosis{"rows of another request", example};
    if (positions_moved > 0 && heads_moved > 0) return Diagnosis{"rows permuted", example};
    return Diagnosis{positions_moved > 0 ? "query rows permuted" : "heads permuted", example};
  }

  std::optional<Diagnosis> constant_factor() const {
    std::optional<double> common;
    bool unnormalised = true;
    for (const Witness& w : witnesses_) {
      if (!w.failed_elements && !w.failed_as_a_whole) continue;
      const MlaRequest& request = w.home->request;
      const auto o = request.attention.out.row(w.row).array();
      const Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>> got(y(w.in_launch).data(),
                                                                          kv_lora_rank);
      const double norm = o.square().sum();
      if (!(norm > 0)) return std::nullopt;
      const double factor = (got * o).sum() / norm;
      const double rest = (got - factor * o).square().sum(), all = got.square().sum();
      if (!(rest < 4e-4 * all)) return std::nullopt;  // 2 % of the row is as much as roundings leave
      unnormalised = unnormalised && request.attention.row_sum[w.row] > 1.05 &&
                     std::abs(factor / request.attention.row_sum[w.row] - 1) < 0.02;
      if (!common) common = factor;
      if (std::abs(factor / *common - 1) > 0.02) common = std::nan("");
    }
    if (!common) return std::nullopt;
    if (unnormalised)
      return Diagnosis{"row sum not divided out", "every failing row is its row sum too large"};
    if (!(std::abs(*common - 1) > 0.01)) return std::nullopt;
    const double kv = launch_.scales.kv_scale, q = launch_.scales.q_scale;
    const auto is = [&](double f) { return f != 1 && std::abs(*common / f - 1) < 0.01; };
    const std::string detail = fmt::format("every failing row is {:.5g} times the right one", *common);
    if (is(1 / kv)) return Diagnosis{"kv scale missing", detail};
    if (is(kv)) return Diagnosis{"kv scale applied twice", detail};
    if (is(q) || is(1 / q) || is(q * kv) || is(1 / (q * kv)))
      return Diagnosis{"constant factor: q scale", detail};
    if (is(2) || is(0.5)) return Diagnosis{"constant factor: 2", detail};
    return Diagnosis{"constant factor", detail};
  }

  // A relative error of the softmax scale moves the lse by epsilon * mean score and the output along
  // kv_scale sum w (s - mean score) v. The lse is the finer instrument: solved for epsilon on the row where
  // it says most, by Newton steps, and confirmed on all rows.
  std::optional<Diagnosis> softmax_scale() const {
    constexpr double most = 0.3;
    const Witness* by_lse = nullptr;
    double largest_mean = 0, along_sum = 0;
    int measured = 0, evidence = 0;
    for (const Witness& w : witnesses_) {
      const auto& a = w.home->request.attention;
      const Index n = w.visible();
      if (n < 2) continue;
      const auto weights = a.weights.row(w.row).head(n).array();
      const auto scores = a.scores.row(w.row).head(n).array();
      const double mean = (weights * scores).sum();
      if (w.lse != nullptr && std::isfinite(*w.lse) && std::abs(mean) > largest_mean) {
        largest_mean = std::abs(mean);
        by_lse = &w;
      }
      ++evidence;
      if (!w.failed_elements) continue;
      const Eigen::RowVectorXd tilt = (weights * (scores - mean)).matrix();
      const Eigen::RowVectorXd direction =
          launch_.scales.kv_scale * (tilt * w.home->request.k.topLeftCorner(n, kv_lora_rank));
      const Eigen::Map<const Eigen::RowVectorXd> got(y(w.in_launch).data(), kv_lora_rank);
      const Eigen::RowVectorXd error = got - a.out.row(w.row);
      if (!(direction.squaredNorm() > 0)) continue;
      along_sum += error.dot(direction) / direction.squaredNorm();
      ++measured;
      ++evidence;
    }
    double epsilon = measured > 0 ? along_sum / measured : 0;
    if (by_lse != nullptr && largest_mean > 0.01) {
      const Witness& w = *by_lse;
      epsilon = 0;
      for (int step = 0; step < 6; ++step) {
        Imagined here = faithful(w, launch_.scales);
        const double slope_step = 1e-4;
        here.score_scale *= 1 + epsilon;
        const double value = imagined_lse(w, here);
        here.score_scale *= (1 + epsilon + slope_step) / (1 + epsilon);
        const double slope = (imagined_lse(w, here) - value) / slope_step;
        if (slope == 0) return std::nullopt;
        epsilon += (*w.lse - value) / slope;
        if (!(std::abs(epsilon) < most)) return std::nullopt;
      }
    }
    // One number fitted to one number proves nothing.
    if (evidence < 2 || !(std::abs(epsilon) > 1e-5 && std::abs(epsilon) < most)) return std::nullopt;
    Rules rules = rules_;
    rules.statistics = false;
    const bool confirmed = all_witnesses([&](const Witness& w) {
      if (w.visible() <= 0) return false;
      Imagined imagined = faithful(w, launch_.scales);
      imagined.score_scale *= 1 + epsilon;
      return explains(w, imagined, rules, profile_, w.lse != nullptr);
    });
    if (!confirmed) return std::nullopt;
    return Diagnosis{"softmax scale off", fmt::format("the scores are {:+.4g} % off", 100 * epsilon)};
  }

  // The key whose direction v_j - o explains most of the error.
  std::optional<Diagnosis> one_key() const {
    std::optional<const char*> text;
    std::string example;
    for (const Witness& w : witnesses_) {
      if (!w.failed_elements) continue;
      const auto& a = w.home->request.attention;
      const Index n = w.visible();
      const Eigen::RowVectorXd o = a.out.row(w.row);
      const Eigen::RowVectorXd error =
          Eigen::Map<const Eigen::RowVectorXd>(y(w.in_launch).data(), kv_lora_rank) - o;
      const double error2 = error.squaredNorm();
      double best = 0, best_change = 0;
      Index key = -1;
      for (Index j = 0; j < w.home->keys.rows(); ++j) {
        const Eigen::RowVectorXd direction =
            launch_.scales.kv_scale * w.home->keys.row(j).head(kv_lora_rank) - o;
        const double along = error.dot(direction), length = direction.squaredNorm();
        const double share = length > 0 ? along * along / (length * error2) : 0;
        if (share > best) {
          best = share;
          best_change = along / length;
          key = j;
        }
      }
      if (best < 0.7) return std::nullopt;
      const double weight = key < n ? a.weights(w.row, key) : 0;
      const char* kind = "one key with a wrong weight";
      if (key >= n)
        kind = "over-read past the end of the sequence";
      else if (std::abs(best_change * (1 - weight) / -weight - 1) < 0.25)
        kind = "one key missing";
      else if (std::abs(best_change * (1 + weight) / weight - 1) < 0.25)
        kind = "one key counted twice";
      if (!text) text = kind;
      if (std::strcmp(*text, kind) != 0) text = "one key with a wrong weight";
      if (example.empty())
        example =
            fmt::format("{}: key {} explains {:.0f} % of the error, its weight {:.4g} is off by {:+.4g}",
                        where(w.in_launch), key, 100 * best, weight, best_change);
    }
    if (!text) return std::nullopt;
    return Diagnosis{*text, example};
  }

  // Exactly the rows that see a key beyond 2^32 bytes (or 2^31) are not finite. When all rows are of that
  // kind, a kernel that reads the rest of a last page looks the same; then one of them must end with its
  // page.
  std::optional<Diagnosis> high_pages() const {
    for (const int bits : {32, 31}) {
      const std::uint64_t limit = std::uint64_t{1} << bits;
      std::vector<int> first_high;
      for (std::size_t g = 0; g < launch_.problem.groups.size(); ++g)
        first_high.push_back(launch_.problem.keys->first_key_past(static_cast<int>(g), limit));
      bool whole_pages = false, high_good = false, high_bad = false, low_good = false, low_bad = false;
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const bool high =
            visible(static_cast<Index>(r)) > first_high[static_cast<std::size_t>(address_[r].group)];
        const bool bad = rows_[r].failed != Stage::none;
        high_bad = high_bad || (high && bad);
        low_bad = low_bad || (!high && bad);
        high_good = high_good || (high && !bad && rows_[r].telling);
        low_good = low_good || (!high && !bad && rows_[r].telling);
        whole_pages = whole_pages || (high && !launch_.problem.keys->ends_inside_page(address_[r].group));
      }
      if (high_bad && !high_good && !low_bad && (low_good || (bits == 32 && whole_pages)))
        return Diagnosis{"kv offset wraps",
                         fmt::format("all rows that see keys beyond 2^{} bytes fail", bits)};
    }
    return std::nullopt;
  }

  std::optional<Diagnosis> aligned_run() const {
    int low = kv_lora_rank, high = -1;
    for (const Witness& w : witnesses_) {
      const MlaRequest& request = w.home->request;
      const MlaBound bound = bound_mla(request.for_bound(launch_.scales), profile_);
      for (int d = 0; d < kv_lora_rank; ++d) {
        const double o = request.attention.out(w.row, d), got = launch_.out(w.in_launch, d);
        if (std::abs(got - o) >
            bound.element(w.row, d) + rules_.grid.step(std::max(std::abs(got), std::abs(o)))) {
          low = std::min(low, d);
          high = std::max(high, d);
        }
      }
    }
    if (high < 0) return std::nullopt;
    for (const int width : {8, 16, 32, 64, 128, 256})
      if (low / width == high / width && high - low >= width / 2)
        return Diagnosis{
            "an aligned run of columns wrong",
            fmt::format("columns {} to {}", low / width * width, low / width * width + width - 1)};
    return std::nullopt;
  }

  Diagnosis remainder() const {
    double error = 0, size = 0;
    bool elements = false;
    for (const Witness& w : witnesses_) {
      const auto o = w.home->request.attention.out.row(w.row).array();
      const Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>> got(y(w.in_launch).data(),
                                                                          kv_lora_rank);
      error += (got - o).square().sum();
      size += o.square().sum();
      elements = elements || w.failed_elements || w.failed_as_a_whole;
    }
    const double relative = size > 0 ? std::sqrt(error / size) : 1;
    const std::string detail = fmt::format("relative error of the failing rows {:.3g}", relative);
    if (!elements) return {"lse wrong, output right", detail};
    if (relative < 0.1) return {"less precise than declared", detail};
    return {"unexplained", detail};
  }

  const MlaLaunch& launch_;
  const std::vector<RowResult>& rows_;
  const Rules& rules_;
  const PrecisionProfile& profile_;
  std::vector<RowAddress> address_;
  std::vector<Index> failing_, finite_, non_finite_;
  std::vector<Witness> witnesses_, bystanders_;
  std::optional<Model> model_;                           ///< what the diagnosis rests on, one of the two:
  std::function<std::vector<Index>(Index row)> copies_;  ///< rows whose bytes a failing one may hold
};

}  // namespace

Diagnosis diagnose(const MlaLaunch& launch, const std::vector<RowResult>& rows, const Rules& rules,
                   const PrecisionProfile& profile) {
  return Examination(launch, rows, rules, profile).diagnose();
}

std::optional<Alternative> alternative(const MlaLaunch& launch, const std::vector<RowResult>& rows,
                                       const Rules& rules, const PrecisionProfile& profile) {
  Examination examination(launch, rows, rules, profile);
  const Diagnosis diagnosis = examination.diagnose();
  std::optional<Alternative> found = examination.alternative();
  if (found) found->model = diagnosis.text;
  return found;
}

}  // namespace attest::oracle
