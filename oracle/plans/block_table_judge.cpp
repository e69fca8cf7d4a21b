// SPDX-License-Identifier: MIT
//
// The lists are integers without tolerance, so judging is comparing; the work is in saying what went wrong.
// Offsets are looked at before what they point to, since a wrong indptr displaces everything behind it.
#include "oracle/plans/block_table_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "oracle/plans/integers.h"
#include "reference/block_table.h"

namespace attest::oracle {
namespace {

using cases::BlockTableExpand;
using cases::BlockTableExpandInputs;
using Ints = std::vector<std::int32_t>;

struct StepLists {
  Ints qo_indptr, kv_indptr, last_page_len, kernel_block_table, kv_indices;
};

/// All that is known of one step.
struct StepView {
  const BlockTableExpand& problem;
  const BlockTableExpandInputs& inputs;
  std::size_t number;
  reference::TokenLists expected;
  StepLists got;

  [[nodiscard]] const BlockTableExpandInputs::Step& input() const { return inputs.steps[number]; }
  [[nodiscard]] std::size_t rows() const { return input().seq_lens.size(); }
  [[nodiscard]] std::int32_t queries(std::size_t row) const {
    return input().query_start_loc[row + 1] - input().query_start_loc[row];
  }
  [[nodiscard]] bool padded(std::size_t row) const { return queries(row) == 0 && input().seq_lens[row] == 0; }
  [[nodiscard]] int length(std::size_t row) const {
    return expected.kv_indptr[row + 1] - expected.kv_indptr[row];
  }
};

struct Complaint {
  std::string diagnosis, detail;
  Element element;
  std::int64_t failed = 0;
  MismatchGrid grid{"entry"};
};

Element element_at(const StepView& v, BlockTableList list, std::size_t row, std::int64_t position,
                   std::int32_t expected, std::int32_t got) {
  Element e;
  e.column = static_cast<int>(list);
  e.request = static_cast<int>(row);
  e.position = static_cast<int>(position);
  e.head = static_cast<int>(v.number);
  e.expected = expected;
  e.got = got;
  e.term = "exact integer";
  return e;
}

void note(MismatchGrid& grid, const StepView& v, std::size_t row, std::size_t entry, bool right) {
  grid.note(static_cast<int>(row), static_cast<int>(v.number), static_cast<int>(entry),
            right ? 0 : std::numeric_limits<double>::infinity());
}

/// An indptr as the contract wants it: its last value up to the end.
Ints continued(Ints indptr, std::size_t size) {
  indptr.resize(size, indptr.back());
  return indptr;
}

const char* name_of_offsets(const StepView& v, bool queries) {
  const Ints& got_q = v.got.qo_indptr;
  const Ints& got_k = v.got.kv_indptr;
  bool counts = true;
  for (std::size_t r = 0; r <= v.rows(); ++r) counts = counts && got_q[r] == static_cast<int>(r);
  bool run_on = false, no_keys = false, stay_empty = false;
  for (std::size_t r = 0; r < v.rows(); ++r) {
    if (!v.padded(r)) continue;
    const int q = got_q[r + 1] - got_q[r], k = got_k[r + 1] - got_k[r];
    const bool dummy = v.expected.qo_indptr[r + 1] > v.expected.qo_indptr[r];
    run_on = run_on || (!dummy && k > 0);
    no_keys = no_keys || (q > 0 && k == 0);
    stay_empty = stay_empty || (dummy && q == 0);
  }
  if (run_on) return "offsets run on after a padded request";
  if (queries && counts) return "qo_indptr counts requests, not queries";
  if (no_keys) return "padded requests have queries and no keys";
  if (stay_empty) return "padded requests of a verify batch stay empty";
  return queries ? "qo_indptr wrong" : "kv_indptr wrong";
}

std::optional<Complaint> check_offsets(const StepView& v, bool queries) {
  const Ints& got = queries ? v.got.qo_indptr : v.got.kv_indptr;
  const Ints expected = continued(queries ? v.expected.qo_indptr : v.expected.kv_indptr, got.size());
  const std::ptrdiff_t at = first_difference(expected, got);
  if (at < 0) return std::nullopt;
  const auto i = static_cast<std::size_t>(at);
  const bool tail = i > v.rows();
  Complaint complaint;
  complaint.diagnosis = tail ? "indptr does not go on with its last value" : name_of_offsets(v, queries);
  complaint.detail = fmt::format("step {}: {}[{}] is {}, expected {}", v.number,
                                 queries ? "qo_indptr" : "kv_indptr", i, got[i], expected[i]);
  complaint.element = element_at(v, queries ? BlockTableList::qo_indptr : BlockTableList::kv_indptr,
                                 i == 0 ? 0 : i - 1, at, expected[i], got[i]);
  for (std::size_t k = 0; k < got.size(); ++k) {
    complaint.failed += expected[k] != got[k] ? 1 : 0;
    note(complaint.grid, v, 0, k, expected[k] == got[k]);
  }
  return complaint;
}

std::optional<Complaint> check_last_page_len(const StepView& v) {
  const Ints& got = v.got.last_page_len;
  const Ints expected(got.size(), 1);
  const std::ptrdiff_t at = first_difference(expected, got);
  if (at < 0) return std::nullopt;
  bool of_blocks = true;
  for (std::size_t r = 0; r < v.rows(); ++r)
    of_blocks =
        of_blocks && got[r] == (v.length(r) == 0 ? 1 : (v.length(r) - 1) % v.problem.manager_block + 1);
  const auto i = static_cast<std::size_t>(at);
  Complaint complaint;
  complaint.diagnosis = of_blocks ? "last_page_len counts the engine's blocks" : "last_page_len is not 1";
  complaint.detail =
      fmt::format("step {}: last_page_len[{}] is {}; a page is one token", v.number, i, got[i]);
  complaint.element = element_at(v, BlockTableList::last_page_len, i, 0, 1, got[i]);
  for (std::size_t k = 0; k < got.size(); ++k) {
    complaint.failed += got[k] != 1 ? 1 : 0;
    note(complaint.grid, v, k, 0, got[k] == 1);
  }
  return complaint;
}

/// Row `row`, entry `entry` of a list that differs.
struct Difference {
  std::size_t row, entry;
  std::int32_t expected, got;
};

/// Whether every difference lies behind the length that the same row has in another batch: nobody wrote
/// there.
bool behind_another_batch(const StepView& v, const std::vector<Difference>& differences,
                          int tokens_per_entry) {
  if (!v.problem.interleaved) return false;
  for (std::size_t other = 0; other < v.inputs.steps.size(); ++other) {
    const Ints& lengths = v.inputs.steps[other].seq_lens;
    if (other == v.number) continue;
    if (std::all_of(differences.begin(), differences.end(), [&](const Difference& d) {
          const int length = d.row < lengths.size() ? lengths[d.row] : 0;
          return static_cast<std::int64_t>(d.entry) * tokens_per_entry + tokens_per_entry > length;
        }))
      return true;
  }
  return false;
}

/// @param entries of each row's list
Complaint complain(const StepView& v, BlockTableList list, const std::vector<std::size_t>& entries,
                   const std::vector<Difference>& differences, std::string diagnosis) {
  const Difference& d = differences.front();
  Complaint complaint;
  complaint.diagnosis = std::move(diagnosis);
  complaint.detail = fmt::format("step {}, request {}: entry {} of {} is {}, expected {}; {} entries differ",
                                 v.number, d.row, d.entry, name(list), d.got, d.expected, differences.size());
  complaint.element = element_at(v, list, d.row, static_cast<std::int64_t>(d.entry), d.expected, d.got);
  complaint.failed = std::ssize(differences);
  for (std::size_t r = 0; r < entries.size(); ++r)
    for (std::size_t i = 0; i < entries[r]; ++i) note(complaint.grid, v, r, i, true);
  for (const Difference& wrong : differences) note(complaint.grid, v, wrong.row, wrong.entry, false);
  return complaint;
}

std::optional<Complaint> check_blocks(const StepView& v) {
  const int ratio = v.problem.manager_block / v.problem.kernel_block;
  const std::size_t width = static_cast<std::size_t>(v.inputs.table_width) * static_cast<std::size_t>(ratio);
  std::vector<Difference> differences;
  std::vector<std::size_t> entries;
  for (std::size_t r = 0; r < v.rows(); ++r) {
    const Ints& expected = v.expected.kernel_blocks[r];
    entries.push_back(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::int32_t got = v.got.kernel_block_table[r * width + i];
      if (got != expected[i]) differences.push_back({r, i, expected[i], got});
    }
  }
  if (differences.empty()) return std::nullopt;
  const bool unscaled = std::all_of(differences.begin(), differences.end(), [&](const Difference& d) {
    const int part = static_cast<int>(d.entry) % ratio;
    return d.got == (d.expected - part) / ratio + part;
  });
  return complain(v, BlockTableList::kernel_block_table, entries, differences,
                  unscaled ? "manager block used as kernel block"
                  : behind_another_batch(v, differences, v.problem.kernel_block)
                      ? "lengths of another batch of the sequence"
                      : "kernel blocks wrong");
}

std::optional<Complaint> check_slots(const StepView& v) {
  std::vector<Difference> differences;
  std::vector<std::size_t> lengths;
  for (std::size_t r = 0; r < v.rows(); ++r) {
    lengths.push_back(static_cast<std::size_t>(v.length(r)));
    const auto first = static_cast<std::size_t>(v.expected.kv_indptr[r]);
    for (std::size_t t = 0; t < static_cast<std::size_t>(v.length(r)); ++t)
      if (v.got.kv_indices[first + t] != v.expected.kv_indices[first + t])
        differences.push_back({r, t, v.expected.kv_indices[first + t], v.got.kv_indices[first + t]});
  }
  if (!differences.empty()) {
    const int ratio = v.problem.manager_block / v.problem.kernel_block;
    const std::size_t width =
        static_cast<std::size_t>(v.inputs.table_width) * static_cast<std::size_t>(ratio);
    const auto in_table = [&](const Difference& d) { return d.entry < width; };
    const bool entries = std::any_of(differences.begin(), differences.end(), in_table) &&
                         std::all_of(differences.begin(), differences.end(), [&](const Difference& d) {
                           return !in_table(d) || d.got == v.got.kernel_block_table[d.row * width + d.entry];
                         });
    const bool minus_one =
        std::all_of(differences.begin(), differences.end(), [](const Difference& d) { return d.got == -1; });
    return complain(v, BlockTableList::kv_indices, lengths, differences,
                    entries                                   ? "entries of the block table taken for slots"
                    : behind_another_batch(v, differences, 1) ? "lengths of another batch of the sequence"
                    : minus_one                               ? "live entries are -1"
                                                              : "slots wrong");
  }
  for (std::size_t i = v.expected.kv_indices.size(); i < v.got.kv_indices.size(); ++i)
    if (v.got.kv_indices[i] != -1) differences.push_back({v.rows(), i, -1, v.got.kv_indices[i]});
  if (differences.empty()) return std::nullopt;
  return complain(v, BlockTableList::kv_indices, lengths, differences, "tail of the index list is not -1");
}

/// What must hold of right lists whoever computed them, so that a mistake of the reference does not pass
/// either: every row with a query has a key, every slot lies at its token's place in a block that its row of
/// the table names, and no slot of a request occurs twice where no block does.
std::string broken_invariant(const StepView& v) {
  const int block = v.problem.manager_block;
  for (std::size_t r = 0; r < v.rows(); ++r) {
    const int q = v.got.qo_indptr[r + 1] - v.got.qo_indptr[r];
    const auto first = static_cast<std::size_t>(v.got.kv_indptr[r]);
    const auto last = static_cast<std::size_t>(v.got.kv_indptr[r + 1]);
    if (q < 0 || last < first) return "offsets decrease";
    if (q > 0 && first == last) return "a request with a query has no key";
    const std::size_t row = r * static_cast<std::size_t>(v.inputs.table_width);
    for (std::size_t t = 0; t < last - first; ++t) {
      const std::int32_t slot = v.got.kv_indices[first + t];
      const std::int32_t named = v.input().block_table[row + t / static_cast<std::size_t>(block)];
      if (slot < 0 || slot / block != std::max(named, 0) || slot % block != static_cast<int>(t) % block)
        return "a slot outside of its block";
    }
  }
  return {};
}

std::optional<StepLists> fetch(const cases::Outputs& outputs, const StepView& v, std::string& why) {
  const BlockTableExpand& p = v.problem;
  const std::size_t rows = p.graph ? static_cast<std::size_t>(p.max_requests) : v.rows();
  const auto tokens =
      static_cast<std::size_t>(std::accumulate(v.input().seq_lens.begin(), v.input().seq_lens.end(), 0));
  const std::size_t width = static_cast<std::size_t>(v.inputs.table_width) *
                            static_cast<std::size_t>(p.manager_block / p.kernel_block);
  const auto get = [&](const char* list, std::size_t count) {
    return integers(outputs, fmt::format("step{}.{}", v.number, list), count, why);
  };
  auto qo = get("qo_indptr", rows + 1), kv = get("kv_indptr", rows + 1), last = get("last_page_len", rows),
       blocks = get("kernel_block_table", rows * width),
       indices = get("kv_indices", p.graph ? static_cast<std::size_t>(p.index_capacity) : tokens);
  if (!qo || !kv || !last || !blocks || !indices) return std::nullopt;
  return StepLists{*std::move(qo), *std::move(kv), *std::move(last), *std::move(blocks), *std::move(indices)};
}

reference::TokenLists expected_of(const BlockTableExpand& p, const BlockTableExpandInputs& in,
                                  std::size_t number) {
  const BlockTableExpandInputs::Step& step = in.steps[number];
  return reference::expand_block_table({p.manager_block, p.kernel_block, in.table_width, step.query_start_loc,
                                        step.seq_lens, step.block_table, step.num_tokens});
}

}  // namespace

const char* name(BlockTableList list) {
  switch (list) {
    case BlockTableList::kv_indices:
      return "kv_indices";
    case BlockTableList::kernel_block_table:
      return "kernel_block_table";
    case BlockTableList::kv_indptr:
      return "kv_indptr";
    case BlockTableList::qo_indptr:
      return "qo_indptr";
    case BlockTableList::last_page_len:
      break;
  }
  return "last_page_len";
}

Verdict judge_block_table_expand(const cases::Case& c, const cases::Inputs& inputs,
                                 const cases::Outputs& outputs) {
  const auto& p = std::get<BlockTableExpand>(c.problem);
  const auto& in = std::get<BlockTableExpandInputs>(inputs);
  Verdict verdict;
  verdict.lane = "exact";
  std::int64_t tokens = 0;
  for (std::size_t number = 0; number < in.steps.size(); ++number) {
    StepView v{p, in, number, expected_of(p, in, number), {}};
    std::string why;
    auto got = fetch(outputs, v, why);
    if (!got) return unreadable(why);
    v.got = *std::move(got);
    tokens += std::ssize(v.expected.kv_indices);
    verdict.elements_checked += std::ssize(v.got.qo_indptr) + std::ssize(v.got.kv_indptr) +
                                std::ssize(v.got.last_page_len) + std::ssize(v.got.kv_indices);

    std::optional<Complaint> complaint = check_offsets(v, true);
    if (!complaint) complaint = check_offsets(v, false);
    if (!complaint) complaint = check_last_page_len(v);
    if (!complaint) complaint = check_blocks(v);
    if (!complaint) complaint = check_slots(v);
    if (complaint) {
      verdict.kind = VerdictKind::fail;
      verdict.stage = "exact";
      verdict.mismatch = complaint->grid.map();
      verdict.diagnosis = std::move(complaint->diagnosis);
      verdict.detail = std::move(complaint->detail);
      verdict.elements_failed = complaint->failed;
      verdict.worst.push_back(std::move(complaint->element));
      return verdict;
    }
    if (const std::string broken = broken_invariant(v); !broken.empty()) {
      verdict.kind = VerdictKind::harness_error;
      verdict.stage = "exact";
      verdict.diagnosis = "the reference breaks an invariant";
      verdict.detail = fmt::format("step {}: {}", number, broken);
      return verdict;
    }
  }
  if (tokens == 0) {
    verdict.kind = VerdictKind::mistrusted;
    verdict.diagnosis = "nothing was proved";
    verdict.detail = "no batch of the sequence has a token";
  }
  return verdict;
}

std::vector<Relation> block_table_relations(const cases::Case& c, const cases::Inputs&) {
  const auto& p = std::get<BlockTableExpand>(c.problem);
  if (c.seed % 4 != 0 || p.manager_block == 1) return {};
  Relation relation;
  relation.name = "kernel block size";
  relation.c = c;
  auto& changed = std::get<BlockTableExpand>(relation.c.problem);
  changed.kernel_block = p.kernel_block == 1 ? p.manager_block : 1;
  relation.inputs = cases::materialise(relation.c);
  relation.compare = [steps = p.steps.size()](const cases::Outputs& original, const cases::Outputs& other) {
    Verdict verdict;
    for (std::size_t i = 0; i < steps; ++i) {
      const std::string name = fmt::format("step{}.kv_indices", i);
      const auto* a = original.find(name);
      const auto* b = other.find(name);
      if (a == nullptr || b == nullptr) return unreadable(fmt::format("output {} is missing", name));
      if (a->bytes == b->bytes) continue;
      verdict.kind = VerdictKind::fail;
      verdict.diagnosis = "slots depend on the kernel's block size";
      verdict.detail = name;
    }
    return verdict;
  };
  return {std::move(relation)};
}

}  // namespace attest::oracle
