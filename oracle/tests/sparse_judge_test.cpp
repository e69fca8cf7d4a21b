// SPDX-License-Identifier: MIT
//
// The judge on lists of slots, against the software kernel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "oracle/judge.h"
#include "oracle/tests/sparse_software_kernel.h"
#include "reference/index_remap.h"
#include "reference/indexer.h"
#include "reference/top_k.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;

namespace {

bool same_bytes(const cases::Outputs& a, const cases::Outputs& b) {
  for (std::size_t t = 0; t < a.tensors.size(); ++t)
    if (a.tensors[t].bytes != b.tensors[t].bytes) return false;
  return true;
}

/// Whether every key of a row weighs enough to show. In the others one key may take all, and another may
/// weigh e^-90: a kernel that drops it changes some bits and is right within any bound.
bool every_key_shows(cases::Fill fill) {
  using cases::Fill;
  return fill != Fill::needle && fill != Fill::outlier_channels && fill != Fill::wide_scores &&
         fill != Fill::negative_offset && fill != Fill::deep_offset;
}

struct Tally {
  int changed = 0, caught = 0, missed_where_it_shows = 0;
  std::map<std::string, int> said;
  std::string missed;
};

Tally try_fault(ListFault fault, int per_family) {
  Tally tally;
  for (const cases::Fill fill : all_fills)
    for (int i = 0; i < per_family; ++i) {
      const cases::Case c = random_sparse_case(static_cast<std::uint64_t>(i) + 900, fill);
      const cases::Inputs in = cases::materialise(c);
      const cases::Outputs good = run_lists(c, in, {}), bad = run_lists(c, in, {}, fault);
      if (same_bytes(good, bad)) continue;
      ++tally.changed;
      const Verdict verdict = judge(c, in, bad, profile("bf16"));
      if (verdict.kind != VerdictKind::fail) {
        tally.missed = cases::canonical_json(c);
        tally.missed_where_it_shows += every_key_shows(fill) ? 1 : 0;
        continue;
      }
      ++tally.caught;
      ++tally.said[verdict.diagnosis];
    }
  return tally;
}

}  // namespace

TEST_CASE("Faithful sparse kernels pass in every family") {
  const Model variants[] = {{}, {.tile = 64, .chunk = 4}, {.tile = 16, .p = Model::P::bf16}};
  std::map<std::string, double> used;
  int proved = 0, repeated = 0;
  for (const cases::Fill fill : all_fills)
    for (int i = 0; i < 40; ++i) {
      const cases::Case c = random_sparse_case(static_cast<std::uint64_t>(i), fill);
      const cases::Inputs in = cases::materialise(c);
      const Verdict verdict = judge(c, in, run_lists(c, in, variants[i % 3]), profile("bf16"));
      CAPTURE(cases::canonical_json(c), verdict.diagnosis, verdict.detail, verdict.stage);
      CHECK((verdict.kind == VerdictKind::pass || verdict.kind == VerdictKind::mistrusted));
      proved += verdict.kind == VerdictKind::pass ? 1 : 0;
      repeated += std::get<cases::MlaSparse>(c.problem).choice == cases::ListChoice::repeated ? 1 : 0;
      double& most = used[cases::name(fill)];
      most = std::max(most, verdict.used_budget);
    }
  for (const auto& [fill, most] : used) {
    CAPTURE(fill, most);
    CHECK(most < 0.9);
  }
  CHECK(proved > 440);
  CHECK(repeated > 60);
}

TEST_CASE("List faults are caught, and called by their names where the data allows") {
  struct Expected {
    ListFault fault;
    int least_changed;
    const char* name;
    int least_named;
  };
  const Expected all[] = {
      {ListFault::trailing_ids, 60, "ids behind the length attended to", 10},
      {ListFault::holes_are_zero, 30, "holes read as slot 0", 5},
      {ListFault::last_dropped, 100, "", 0},
      {ListFault::row_width, 20, "lists read at another width", 3},
      {ListFault::repeated_once, 20, "repeated ids counted once", 10},
      {ListFault::padding_ignored, 15, "page padding ignored", 2},
      {ListFault::ds_rope, 20, "ds rope read at the wrong offset", 3},
      {ListFault::ds_first_scale, 20, "ds scale of another tile", 10},
      {ListFault::ds_as_ocp, 20, "fp8 decoded with the other exponent bias", 8},
      {ListFault::neighbour_list, 60, "", 0},
  };
  for (const Expected& e : all) {
    const Tally tally = try_fault(e.fault, 16);
    std::string said;
    for (const auto& [name, times] : tally.said) said += name + ": " + std::to_string(times) + "; ";
    CAPTURE(static_cast<int>(e.fault), said, tally.missed, tally.changed, tally.caught);
    CHECK(tally.changed >= e.least_changed);
    CHECK(tally.missed_where_it_shows == 0);
    CHECK(20 * tally.caught >= 19 * tally.changed);
    if (e.least_named > 0) {
      const auto found = tally.said.find(e.name);
      CHECK((found == tally.said.end() ? 0 : found->second) >= e.least_named);
    }
  }
}

TEST_CASE("Indexer, top-k, remap and attention in a row: ties do not matter, one key too few does") {
  // Tokens 2 i and 2 i + 1 are twins: equal indexer keys, so equal logits, and equal cache rows, so that
  // whichever of them a selection takes, attention is the same. The exact selection takes the first twin, as
  // the reference does; the kernel's f32 logits are sorted from the other end. k is odd: a pair of twins is
  // split.
  constexpr int tokens = 60, k = 15, heads = 4;
  cases::Case c;
  c.seed = 12;
  cases::MlaSparse p;
  p.heads = 2;
  p.page_size = 4;
  p.topk = tokens;
  p.requests = {{3, tokens}};
  c.problem = p;
  cases::Inputs all = cases::materialise(c);
  auto& in = std::get<cases::MlaSparseInputs>(all);
  // The last query sees everything: its list gives the slots of all tokens.
  const std::vector<std::int32_t> slots(in.indices.end() - tokens, in.indices.end());
  std::vector<std::int32_t> table;
  for (std::size_t t = 0; t < slots.size(); t += 4) table.push_back(slots[t] / 4);
  cases::SparseBytes::Extent& pool = in.kv_pool.extents.back();
  const auto row = [&](int t) {
    const auto slot = static_cast<std::uint64_t>(slots[static_cast<std::size_t>(t)]);
    return pool.bytes.data() + (slot / 4 * in.page_stride_bytes + slot % 4 * 1152 - pool.offset);
  };
  for (int t = 0; t < tokens; t += 2) std::memcpy(row(t + 1), row(t), 1152);

  Dice dice(4);
  const auto fp8_like = [&] { return static_cast<double>(dice.between(-15, 15)) / 4; };
  reference::Matrix keys(tokens, reference::indexer_width);
  std::vector<double> k_scale(tokens);
  for (int t = 0; t < tokens; t += 2) {
    for (int d = 0; d < reference::indexer_width; ++d) keys(t, d) = keys(t + 1, d) = fp8_like();
    k_scale[static_cast<std::size_t>(t)] = k_scale[static_cast<std::size_t>(t) + 1] =
        0.01 * dice.between(1, 9);
  }
  cases::Case selected = c;
  std::get<cases::MlaSparse>(selected.problem).topk = k;
  cases::MlaSparseInputs exact = in, kernel = in;
  exact.indices.clear();
  kernel.indices.clear();
  exact.lengths = kernel.lengths = {k, k, k};
  int different = 0;
  for (int position = 0; position < 3; ++position) {
    const int n = tokens - 3 + position + 1;
    reference::Matrix q(heads, reference::indexer_width);
    std::vector<double> weights;
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < reference::indexer_width; ++d) q(h, d) = fp8_like();
      weights.push_back(0.1 * dice.between(-3, 9));
    }
    const reference::IndexerLogits logits = reference::indexer_logits(
        q, weights, keys.topRows(n), std::span<const double>(k_scale).first(static_cast<std::size_t>(n)));
    const std::vector<std::int32_t> best =
        reference::top_k({logits.logits.data(), static_cast<std::size_t>(n)}, k);
    std::vector<std::int32_t> other(static_cast<std::size_t>(n));
    std::iota(other.begin(), other.end(), 0);
    std::sort(other.begin(), other.end(), [&](std::int32_t a, std::int32_t b) {
      const float x = static_cast<float>(logits.logits[a]), y = static_cast<float>(logits.logits[b]);
      return x != y ? x > y : a > b;
    });
    other.resize(k);
    std::vector<double> errors(static_cast<std::size_t>(n));
    for (int t = 0; t < n; ++t) errors[static_cast<std::size_t>(t)] = 0x1p-23 * (1 + logits.positive[t]);
    CHECK(reference::check_top_k({logits.logits.data(), static_cast<std::size_t>(n)}, errors, k, other, false)
              .fault == reference::Selection::Fault::none);
    different += std::is_permutation(best.begin(), best.end(), other.begin()) ? 0 : 1;
    const auto append = [&](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& ids) {
      for (const std::int32_t id : ids)
        to.push_back(reference::global_slot(id, table, 4, reference::InvalidSlot::minus_one));
    };
    append(exact.indices, best);
    append(kernel.indices, other);
  }
  CHECK(different >= 2);  // the middle query sees a token without its twin
  const auto judged = [&](const cases::MlaSparseInputs& lists) {
    return judge(selected, exact, run_lists(selected, lists, {}), profile("bf16"));
  };
  CHECK(judged(exact).kind == VerdictKind::pass);
  CHECK(judged(kernel).kind == VerdictKind::pass);
  cases::MlaSparseInputs short_of_one = kernel;
  short_of_one.lengths = {k, k - 1, k};
  CHECK(judged(short_of_one).kind == VerdictKind::fail);
}
