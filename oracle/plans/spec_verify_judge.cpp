// SPDX-License-Identifier: MIT
//
// Verification is discrete, but it is decided by fp32 arithmetic, and near a tie two correct kernels differ.
// So the judge does not compare with one answer; it walks the kernel's answer and asks at each position
// whether a correct kernel could have gone there. With u = 2^-24, the unit roundoff of fp32:
//
//   p/q >= u_i    the quotient of two fp32 numbers, correctly rounded, is off by u, through a reciprocal of
//                 one ulp by (1 + 2u)(1 + u) - 1 < 3.01 u. Both ways are right when |p/q - u_i| <= 3.01 u
//                 p/q. There is no error, and so no band, when q is a power of two (1 without draft
//                 probabilities) or p is 0: equality then means acceptance
//   sum of p      of a tree's children, summed in order: none while the fp32 sums are exact, else k u per k
//                 terms
//   argmax        of (p - q) / E: the difference is off by u, the reciprocal by 2u, the product by u,
//                 together e < (1 + u)^2 (1 + 2u) - 1. A token may win when its weight is at least
//                 (1 - e) / (1 + e) of the largest; below 2^-90 subnormal steps may decide (E >= 2^-34), and
//                 any token may win.
//                 When all weights are exactly 0, token 0 wins
//   NaN           in p(x) or q(x) rejects, since no comparison with it holds; which token then wins is
//                 undefined but for being one: 0 <= token < vocab
//
// Repeated cases are statistics as well, as a check of the method that no reference has a part in: over all
// repetitions, the tokens that row i emitted follow p_i. Cells with an expectation below 25 are pooled.
// For k degrees of freedom the statistic X exceeds k + 2 sqrt(k t) + 2 t with probability below e^-t (Laurent
// and Massart, Ann. Statist. 28 (2000), lemma 1, for the chi-square it tends to); t = ln 10^9: one false
// alarm in 10^9 rows.
//
// The causes that are named are the rules with one of them changed, under which the failed requests are
// right.
#include "oracle/plans/spec_verify_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "oracle/plans/integers.h"
#include "reference/speculative.h"

namespace attest::oracle {
namespace {

using cases::SpecVerify;
using cases::SpecVerifyInputs;
constexpr double roundoff = 0x1p-24;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// The rules, or one of them changed.
struct RuleSet {
  const char* diagnosis = nullptr;
  bool strict = false, draw_reused = false, from_target = false, bonus_always = false, siblings = false;
};
constexpr std::array<RuleSet, 5> imagined = {{
    {.diagnosis = "rejected at equality", .strict = true},
    {.diagnosis = "one draw used for two positions", .draw_reused = true},
    {.diagnosis = "recovered token drawn from the target", .from_target = true},
    {.diagnosis = "bonus token after a rejection", .bonus_always = true},
    {.diagnosis = "child of a sibling admitted", .siblings = true},
}};

enum class Call { accept, reject, either };

Call decide(double value, double band, double u, const RuleSet& rules) {
  if (std::isnan(value)) return Call::reject;
  if (std::isinf(value)) return Call::either;
  if (value - u > band) return Call::accept;
  if (u - value > band) return Call::reject;
  if (band > 0) return Call::either;
  return rules.strict ? Call::reject : Call::accept;
}

Call decide_ratio(float p, float q, double u, const RuleSet& rules) {
  if (!(q > 0)) return Call::reject;
  int exponent = 0;
  const double ratio = double{p} / double{q};
  const bool exact = p == 0 || std::frexp(q, &exponent) == 0.5F;
  return decide(ratio, exact ? 0.0 : 3.01 * roundoff * ratio, u, rules);
}

bool finite(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
}

/// Which tokens may win an argmax.
class Winners {
 public:
  static Winners any(int vocab) { return Winners(std::vector<bool>(at(vocab), true)); }
  static Winners of_weights(const std::vector<double>& weights) {
    const double most = *std::max_element(weights.begin(), weights.end());
    const double e = (1 + roundoff) * (1 + roundoff) * (1 + 2 * roundoff) - 1;
    std::vector<bool> may(weights.size());
    for (std::size_t v = 0; v < weights.size(); ++v)
      may[v] = most == 0 ? v == 0 : weights[v] >= most * (1 - e) / (1 + e) - 0x1p-90;
    return Winners(std::move(may));
  }
  /// Comparisons have no rounding; torch leaves open which of equals is taken.
  static Winners of_greedy(std::span<const float> p) {
    if (!finite(p)) return any(static_cast<int>(p.size()));
    const float most = *std::max_element(p.begin(), p.end());
    std::vector<bool> may(p.size());
    for (std::size_t v = 0; v < p.size(); ++v) may[v] = p[v] == most;
    return Winners(std::move(may));
  }
  [[nodiscard]] bool has(std::int32_t token) const {
    return token >= 0 && token < std::ssize(may_) && may_[at(token)];
  }

 private:
  explicit Winners(std::vector<bool> may) : may_(std::move(may)) {}
  std::vector<bool> may_;
};

bool all_minus_one(std::span<const std::int32_t> values) {
  return std::all_of(values.begin(), values.end(), [](std::int32_t v) { return v == -1; });
}

/// One request: its inputs, cut out.
struct RequestView {
  bool greedy;
  int vocab;
  std::span<const std::int32_t> drafts;
  std::span<const float> p, q;
  std::span<const double> u;
  std::span<const float> e;
  std::int32_t bonus;
  std::span<const std::uint32_t> ancestors;
  std::span<const std::int32_t> depth;

  RequestView(const SpecVerify& problem, const SpecVerifyInputs& in, std::size_t r)
      : greedy(in.greedy[r] != 0), vocab(problem.vocab), bonus(in.bonus[r]) {
    const std::size_t first = r == 0 ? 0 : at(in.cu_num_drafts[r - 1]);
    const std::size_t n = at(in.cu_num_drafts[r]) - first;
    const std::size_t row = problem.tree ? first + r : first, rows = problem.tree ? n + 1 : n;
    const std::size_t v = at(vocab);
    drafts = std::span(in.draft_tokens).subspan(first, n);
    p = std::span(in.target_probs).subspan(row * v, rows * v);
    if (problem.draft_probs) q = std::span(in.draft_probs).subspan(row * v, rows * v);
    u = std::span(in.uniforms).subspan(row, rows);
    e = std::span(in.exponentials).subspan(r * v, v);
    if (problem.tree) {
      ancestors = std::span(in.ancestors).subspan(first, n);
      depth = std::span(in.depth).subspan(first, n);
    }
  }
  [[nodiscard]] std::span<const float> p_row(std::int64_t i) const {
    return p.subspan(at(i) * at(vocab), at(vocab));
  }
  [[nodiscard]] std::span<const float> q_row(std::int64_t i) const {
    return q.empty() ? q : q.subspan(at(i) * at(vocab), at(vocab));
  }
};

using Row = std::span<const std::int32_t>;

Winners recovered(const RequestView& v, std::int64_t row, std::span<const std::int32_t> tried,
                  const RuleSet& rules) {
  const auto p = v.p_row(row), q = v.q_row(row);
  if (!finite(p) || !finite(q)) return Winners::any(v.vocab);
  return Winners::of_weights(rules.from_target ? reference::residual_weights(p, {}, {}, v.e)
                                               : reference::residual_weights(p, q, tried, v.e));
}

bool chain_admissible(const RequestView& v, Row out, const RuleSet& rules) {
  const std::size_t n = v.drafts.size();
  const auto ends_after = [&](std::size_t i) {
    if (!rules.bonus_always) return all_minus_one(out.subspan(i + 1));
    return all_minus_one(out.subspan(i + 1, n - i - 1)) && out[n] == v.bonus &&
           all_minus_one(out.subspan(n + 1));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t x = v.drafts[i];
    const auto row = static_cast<std::int64_t>(i);
    if (v.greedy) {
      if (!Winners::of_greedy(v.p_row(row)).has(out[i])) return false;
      if (out[i] != x) return ends_after(i);
      continue;
    }
    const float q = v.q.empty() ? 1.0F : v.q_row(row)[at(x)];
    const Call call = decide_ratio(v.p_row(row)[at(x)], q, v.u[rules.draw_reused && i == 1 ? 0 : i], rules);
    if (call != Call::accept && ends_after(i)) {
      const std::array<std::int32_t, 1> drafted = {x};
      if (recovered(v, row, v.q.empty() ? Row(drafted) : Row(), rules).has(out[i])) return true;
    }
    if (call == Call::reject || out[i] != x) return false;
  }
  return out[n] == v.bonus && all_minus_one(out.subspan(n + 1));
}

std::vector<int> children_of(const RequestView& v, int node, const RuleSet& rules) {
  if (!rules.siblings) return reference::children(v.ancestors, node);
  const int wanted = node < 0 ? 1 : v.depth[at(node)] + 1;
  std::vector<int> found;
  for (std::size_t k = 0; k < v.depth.size(); ++k)
    if (v.depth[k] == wanted) found.push_back(static_cast<int>(k));
  return found;
}

/// Whether a correct kernel at `node` may go to child `next` (-1: none) and emit `token`.
bool tree_step_admissible(const RequestView& v, int node, int next, std::int32_t token,
                          const RuleSet& rules) {
  const std::vector<int> children = children_of(v, node, rules);
  const auto p = v.p_row(node + 1);
  if (next >= 0 &&
      (std::find(children.begin(), children.end(), next) == children.end() || v.drafts[at(next)] != token))
    return false;
  if (v.greedy) {
    if (!Winners::of_greedy(p).has(token)) return false;
    const auto first =
        std::find_if(children.begin(), children.end(), [&](int k) { return v.drafts[at(k)] == token; });
    return first == children.end() ? next < 0 : *first == next;
  }
  double mass = 0;
  float mass32 = 0;
  std::vector<std::int32_t> tried;
  bool exact = true;
  for (const int child : children) {
    tried.push_back(v.drafts[at(child)]);
    mass += double{p[at(tried.back())]};
    mass32 += p[at(tried.back())];
    exact = exact && double{mass32} == mass;
    const double band = exact ? 0.0 : static_cast<double>(tried.size()) * roundoff * mass;
    const Call call = decide(mass, band, v.u[at(node + 1)], rules);
    if (child == next) return call != Call::reject;
    if (call == Call::accept) return false;
  }
  return recovered(v, node + 1, tried, rules).has(token);
}

bool tree_admissible(const RequestView& v, Row out, Row nodes, const RuleSet& rules) {
  int node = -1;
  for (std::size_t step = 0; step < out.size(); ++step) {
    const int next = step < nodes.size() ? nodes[step] : -1;
    if (next < -1 || next >= std::ssize(v.drafts)) return false;
    if (!tree_step_admissible(v, node, next, out[step], rules)) return false;
    if (next < 0)
      return all_minus_one(out.subspan(step + 1)) &&
             (step >= nodes.size() || all_minus_one(nodes.subspan(step)));
    node = next;
  }
  return false;
}

/// What the reference emits, as the outputs hold it.
void reference_row(const RequestView& v, bool tree, std::vector<std::int32_t>& out,
                   std::vector<std::int32_t>& nodes) {
  const auto put = [](const std::vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
    std::fill(to.begin(), to.end(), -1);
    std::copy(from.begin(), from.end(), to.begin());
  };
  if (tree) {
    const reference::TreePath path =
        reference::verify_tree({v.greedy, v.vocab, v.drafts, v.ancestors, v.p, v.u, v.e});
    put(path.tokens, out);
    put(path.nodes, nodes);
  } else {
    put(reference::verify_chain({v.greedy, v.vocab, v.drafts, v.p, v.q, v.u, v.e, v.bonus}), out);
    put({}, nodes);
  }
}

/// The launch as rows.
struct Launch {
  const SpecVerify& problem;
  const SpecVerifyInputs& inputs;
  std::vector<std::int32_t> tokens, nodes;

  [[nodiscard]] std::size_t requests() const { return inputs.greedy.size(); }
  [[nodiscard]] Row out(std::size_t r) const {
    const std::size_t width = at(problem.max_spec_len) + 1;
    return Row(tokens).subspan(r * width, width);
  }
  [[nodiscard]] Row path(std::size_t r) const {
    const std::size_t width = at(problem.max_spec_len);
    return Row(nodes).subspan(r * width, width);
  }
  [[nodiscard]] bool admissible(std::size_t r, const RuleSet& rules) const {
    const RequestView v(problem, inputs, r);
    return problem.tree ? tree_admissible(v, out(r), path(r), rules)
                        : chain_admissible(v, out(r), rules) && all_minus_one(path(r));
  }
};

std::string shown(Row row) {
  std::string text;
  for (const std::int32_t v : row) text += fmt::format("{}{}", text.empty() ? "" : " ", v);
  return text;
}

const char* diagnose(const Launch& launch, const std::vector<std::size_t>& failed) {
  for (const RuleSet& rules : imagined)
    if (std::all_of(failed.begin(), failed.end(), [&](std::size_t r) { return launch.admissible(r, rules); }))
      return rules.diagnosis;
  const auto outside = [&](std::size_t r) {
    const Row out = launch.out(r);
    return std::any_of(out.begin(), out.end(),
                       [&](std::int32_t v) { return v < -1 || v >= launch.problem.vocab; });
  };
  if (std::all_of(failed.begin(), failed.end(), outside)) return "token outside the vocabulary";
  return "wrong token";
}

Verdict failure(const Launch& launch, const std::vector<std::size_t>& failed) {
  Verdict verdict;
  verdict.kind = VerdictKind::fail;
  verdict.stage = "exact";
  verdict.lane = "exact";
  verdict.rows_failed = std::ssize(failed);
  verdict.elements_failed = std::ssize(failed);
  const std::size_t r = failed.front();
  verdict.diagnosis = diagnose(launch, failed);
  MismatchGrid grid("row");
  for (std::size_t i = 0; i < launch.requests(); ++i) grid.note(static_cast<int>(i), 0, 0, 0);
  for (const std::size_t i : failed)
    grid.note(static_cast<int>(i), 0, 0, std::numeric_limits<double>::infinity());
  verdict.mismatch = grid.map();
  const RequestView v(launch.problem, launch.inputs, r);
  std::vector<std::int32_t> out(at(launch.problem.max_spec_len) + 1), nodes(at(launch.problem.max_spec_len));
  reference_row(v, launch.problem.tree, out, nodes);
  verdict.detail = fmt::format("request {} ({}, {} drafts): emitted {}, expected {}; {} of {} requests fail",
                               r, v.greedy ? "greedy" : "random", v.drafts.size(), shown(launch.out(r)),
                               shown(out), failed.size(), launch.requests());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == launch.out(r)[i]) continue;
    Element e;
    e.request = static_cast<int>(r);
    e.position = static_cast<int>(i);
    e.expected = out[i];
    e.got = launch.out(r)[i];
    e.term = "token";
    verdict.worst.push_back(e);
    break;
  }
  return verdict;
}

/// Tokens that one row of probabilities emitted, over the repetitions.
using Histogram = std::vector<std::int64_t>;

struct Misfit {
  double statistic = 0, limit = 0;
};
/// nullopt: it fits, or there are too few draws to say.
std::optional<Misfit> misfit(const Histogram& counts, std::span<const float> p) {
  double total = 0, mass = 0;
  for (const std::int64_t n : counts) total += static_cast<double>(n);
  for (const float x : p) mass += double{x};
  double statistic = 0, pooled_expected = 0, pooled = 0;
  int cells = 0;
  const auto cell = [&](double seen, double expected) {
    statistic += (seen - expected) * (seen - expected) / expected;
    ++cells;
  };
  for (std::size_t v = 0; v < p.size(); ++v) {
    const double expected = total * double{p[v]} / mass;
    if (expected >= 25) {
      cell(static_cast<double>(counts[v]), expected);
    } else {
      pooled_expected += expected;
      pooled += static_cast<double>(counts[v]);
    }
  }
  if (pooled_expected >= 25) cell(pooled, pooled_expected);
  if (cells < 2) return std::nullopt;
  const double k = cells - 1, t = std::log(1e9);
  const double limit = k + 2 * std::sqrt(k * t) + 2 * t;
  if (statistic <= limit) return std::nullopt;
  return Misfit{statistic, limit};
}

std::optional<Verdict> check_distribution(const Launch& launch) {
  const SpecVerify& p = launch.problem;
  const std::size_t base = p.requests.size();
  for (std::size_t r = 0; r < base; ++r) {
    if (p.requests[r].greedy) continue;
    std::map<std::int64_t, Histogram> rows;
    for (std::size_t i = r; i < launch.requests(); i += base) {
      const Row out = launch.out(i), path = launch.path(i);
      std::int64_t row = 0;
      for (std::size_t step = 0; step < out.size() && out[step] >= 0; ++step) {
        if (!p.tree && row >= p.requests[r].drafts) break;  // the bonus is not drawn here
        auto [histogram, fresh] = rows.try_emplace(row, at(p.vocab), 0);
        ++histogram->second[at(out[step])];
        row = p.tree ? (step < path.size() ? path[step] + 1 : 0) : row + 1;
      }
    }
    const RequestView v(p, launch.inputs, r);
    for (const auto& [row, histogram] : rows) {
      if (!finite(v.p_row(row)) || (!v.q.empty() && !finite(v.q_row(row)))) continue;
      if (const auto off = misfit(histogram, v.p_row(row))) {
        Verdict verdict;
        verdict.kind = VerdictKind::fail;
        verdict.stage = "distribution";
        verdict.lane = "distribution";
        verdict.diagnosis = "emitted tokens do not follow the target";
        verdict.detail = fmt::format("request {}, row {}: chi-square {:.1f}, limit {:.1f}", r, row,
                                     off->statistic, off->limit);
        verdict.used_budget = off->statistic / off->limit;
        return verdict;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Verdict judge_spec_verify(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs) {
  const auto& p = std::get<SpecVerify>(c.problem);
  const auto& in = std::get<SpecVerifyInputs>(inputs);
  const std::size_t rows = in.greedy.size() + at(p.padded_requests);
  std::string why;
  auto tokens = integers(outputs, "tokens", rows * (at(p.max_spec_len) + 1), why);
  auto nodes = integers(outputs, "nodes", rows * at(p.max_spec_len), why);
  if (!tokens || !nodes) return unreadable(why);
  const Launch launch{p, in, *std::move(tokens), *std::move(nodes)};

  std::vector<std::size_t> failed;
  std::vector<std::int32_t> out(at(p.max_spec_len) + 1), path(at(p.max_spec_len));
  for (std::size_t r = 0; r < launch.requests(); ++r) {
    if (!launch.admissible(r, {})) failed.push_back(r);
    const RequestView v(p, in, r);
    reference_row(v, p.tree, out, path);
    const bool sound = p.tree ? tree_admissible(v, out, path, {}) : chain_admissible(v, out, {});
    if (!sound) {
      Verdict verdict;
      verdict.kind = VerdictKind::harness_error;
      verdict.stage = "exact";
      verdict.diagnosis = "the reference is not admissible";
      verdict.detail = fmt::format("request {}: {}", r, shown(out));
      return verdict;
    }
  }
  if (!failed.empty()) return failure(launch, failed);

  Verdict verdict;
  verdict.lane = "exact";
  verdict.elements_checked = static_cast<std::int64_t>(launch.tokens.size() + launch.nodes.size());
  for (std::size_t r = launch.requests(); r < rows; ++r) {
    if (all_minus_one(launch.out(r)) && all_minus_one(launch.path(r))) continue;
    verdict.kind = VerdictKind::fail;
    verdict.stage = "exact";
    verdict.diagnosis = "row of a padded request is not -1";
    verdict.detail = fmt::format("row {}: {}", r, shown(launch.out(r)));
    return verdict;
  }
  if (p.repeats > 1)
    if (auto off = check_distribution(launch)) return *std::move(off);
  return verdict;
}

}  // namespace attest::oracle
