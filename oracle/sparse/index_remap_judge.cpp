// SPDX-License-Identifier: MIT
#include "oracle/sparse/index_remap_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "oracle/sparse/numbers.h"
#include "reference/index_remap.h"

namespace attest::oracle {
namespace {

using cases::IndexRemap;
using cases::IndexRemapInputs;

/// One wrong entry and what it may have come from.
struct Wrong {
  std::size_t row = 0, entry = 0;
  std::int32_t position = 0, expected = 0, got = 0, unwritten = 0;
};

std::span<const std::int32_t> table_of(const IndexRemapInputs& in, std::int64_t request) {
  return std::span(in.block_table)
      .subspan(static_cast<std::size_t>(request * in.table_stride), static_cast<std::size_t>(in.table_width));
}

bool another_request(const IndexRemap& p, const IndexRemapInputs& in, const Wrong& w) {
  for (std::int64_t r = 0; r < std::ssize(p.requests); ++r) {
    if (r != in.request_of_row[w.row] && reference::global_slot(w.position, table_of(in, r), p.page_size,
                                                                reference::InvalidSlot::minus_one) == w.got)
      return true;
  }
  return false;
}

/// The pattern that all wrong entries share, most specific first.
std::string diagnose(const IndexRemap& p, const IndexRemapInputs& in, const std::vector<Wrong>& wrong) {
  const auto all = [&](auto is) { return std::all_of(wrong.begin(), wrong.end(), is); };
  const auto valid = [&](const Wrong& w) {
    return w.position >= 0 && w.position / p.page_size < in.table_width;
  };
  if (all([&](const Wrong& w) { return !valid(w) && w.got == 0; }))
    return "entry without a key became slot 0";
  if (all([&](const Wrong& w) { return !valid(w) && w.got == -1; })) return "entry without a key stayed -1";
  if (all([](const Wrong& w) { return w.got == w.unwritten; })) return "entries not written";
  if (all([](const Wrong& w) { return w.got == w.position; })) return "positions taken for slots";
  if (all([&](const Wrong& w) { return !valid(w); })) return "entry without a key became a slot";
  if (all([&](const Wrong& w) { return valid(w) && w.got == w.expected - w.position % p.page_size; }))
    return "offset in the page lost";
  if (all([&](const Wrong& w) { return valid(w) && another_request(p, in, w); }))
    return "block table of another request";
  return "wrong slots";
}

}  // namespace

Verdict judge_index_remap(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs) {
  const auto& p = std::get<IndexRemap>(c.problem);
  const auto& in = std::get<IndexRemapInputs>(inputs);
  const auto count = static_cast<std::size_t>(in.slot_indptr.back());
  Verdict verdict;
  verdict.lane = "exact";
  std::vector<std::int32_t> slots;
  if (!read_output(outputs, "slots", count, slots, verdict)) return verdict;
  const std::vector<std::int32_t> before = cases::poison_integers(c, c.memory.output, count, "slots");

  const auto invalid = p.invalid == cases::InvalidEntry::minus_one ? reference::InvalidSlot::minus_one
                                                                   : reference::InvalidSlot::zero;
  std::vector<Wrong> wrong;
  MismatchGrid grid("entry");
  std::int64_t telling = 0;
  for (std::size_t row = 0; row < in.request_of_row.size(); ++row) {
    const auto begin = static_cast<std::size_t>(in.slot_indptr[row]);
    const auto end = static_cast<std::size_t>(in.slot_indptr[row + 1]);
    const std::size_t wrong_before = wrong.size();
    for (std::size_t at = begin; at < end; ++at) {
      const std::int32_t position = in.indices[row * static_cast<std::size_t>(p.k) + at - begin];
      const std::int32_t expected =
          reference::global_slot(position, table_of(in, in.request_of_row[row]), p.page_size, invalid);
      telling += expected > 0 ? 1 : 0;
      grid.note(in.request_of_row[row], static_cast<int>(row), static_cast<int>(at - begin),
                slots[at] == expected ? 0 : std::numeric_limits<double>::infinity());
      if (slots[at] != expected)
        wrong.push_back({row, at - begin, position, expected, slots[at], before[at]});
    }
    verdict.rows_failed += wrong.size() > wrong_before ? 1 : 0;
  }
  verdict.elements_checked = static_cast<std::int64_t>(count);
  verdict.elements_failed = std::ssize(wrong);

  if (wrong.empty()) {
    if (telling > 0) return verdict;
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "no entry names a slot other than 0";
    return verdict;
  }
  verdict.kind = VerdictKind::fail;
  verdict.stage = "exact";
  verdict.mismatch = grid.map();
  verdict.used_budget = 2;
  verdict.diagnosis = diagnose(p, in, wrong);
  const Wrong& first = wrong.front();
  verdict.detail = fmt::format(
      "{} of {} entries differ; first at row {} (request {}), entry {}: position {} became {}, expected {}",
      wrong.size(), count, first.row, in.request_of_row[first.row], first.entry, first.position, first.got,
      first.expected);
  for (const Wrong& w : std::span(wrong).first(std::min<std::size_t>(wrong.size(), 10))) {
    verdict.worst.push_back({.request = in.request_of_row[w.row],
                             .position = static_cast<int>(w.row),
                             .column = static_cast<int>(w.entry),
                             .expected = static_cast<double>(w.expected),
                             .got = static_cast<double>(w.got),
                             .bound = 0,
                             .term = "exact"});
  }
  return verdict;
}

}  // namespace attest::oracle
