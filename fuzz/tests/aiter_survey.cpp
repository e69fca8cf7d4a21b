// SPDX-License-Identifier: MIT
//
// Prints, for each kernel of the `aiter` contract, what the oracle says of every context length from 0 to
// 300, along each axis of its legal shapes: q_len; splits, more than there are chunks among them; lse; scales
// that are not 1; requests of unequal context and query; pages; folded heads. One axis leaves its plain value
// at a time. Output and scratch hold NaN, memory that nobody owns finite bits. The figures behind the table
// in cases/README.md.
//
//   ATTEST_AITER_HSA=DIR aiter_survey [part of a kernel's name [longest context [dense]]]
//
// With an @ in the part, variants (`_ps@paged`) in place of the plain kernels. The axes other than q_len and
// page size have every length up to 20 and those around multiples of 64; with `dense`, all.
//
//   aiter/mla_a16w16_qh16_m16x4_n16x1_coex0_mask1
//     0 nan from a fully masked tile; 1 causal bound one too far; 2..300 pass
//       16 heads, q_len 2, 2 splits
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cases/domain.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"

using namespace attest;

namespace {

enum class Batch { one, unequal_context, unequal_query };

struct Setting {
  int heads = 0, q_len = 1, splits = 1, page_size = 1;
  bool lse = false, scales = false;
  Batch batch = Batch::one;
  bool dense = false;

  [[nodiscard]] std::string text() const {
    std::string said =
        fmt::format("{} heads, q_len {}, {} split{}", heads, q_len, splits, splits == 1 ? "" : "s");
    if (page_size != 1) said += fmt::format(", pages of {}", page_size);
    if (lse) said += ", lse";
    if (scales) said += ", q_scale 2, kv_scale 0.5";
    if (batch == Batch::unequal_context) said += ", beside longer and shorter contexts";
    if (batch == Batch::unequal_query) said += ", beside other q_len";
    return said;
  }
};

std::vector<Setting> settings_of(const cases::MlaDecodeDomain& d) {
  const int plain_splits = std::min(2, d.num_splits_max), heads = d.heads.front();
  const int q_min = d.longest_q_len_min, q_max = std::min(d.longest_q_len_max, heads >= 64 ? 4 : 16);
  const int page = d.page_sizes.empty() ? 1 : d.page_sizes.front();
  const Setting plain{.heads = heads, .splits = plain_splits, .page_size = page};
  std::vector<Setting> all;
  for (const int q : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
    if (q >= q_min && q <= q_max) {
      all.push_back(plain);
      all.back().q_len = q;
      all.back().dense = true;
    }
  for (const int q : std::set{q_min, q_max}) {
    const auto with = [&](const auto& change) {
      Setting s = plain;
      s.q_len = q;
      change(s);
      all.push_back(s);
    };
    for (const int splits : std::set{1, 3, 7, d.num_splits_max})
      if (splits != plain_splits && splits <= d.num_splits_max) with([&](Setting& s) { s.splits = splits; });
    if (d.return_lse)
      for (const int splits : std::set{1, plain_splits})
        with([&](Setting& s) { s.lse = true, s.splits = splits; });
    if (d.kv_format != cases::Format::bf16 && d.kv_layout == cases::KvLayout::rows)
      with([](Setting& s) { s.scales = true; });
    with([](Setting& s) { s.batch = Batch::unequal_context; });
    with([](Setting& s) { s.batch = Batch::unequal_query; });
    if (d.page_sizes.empty()) with([](Setting& s) { s.page_size = 16; });
    for (std::size_t n = 1; n < d.page_sizes.size(); ++n)
      with([&](Setting& s) { s.page_size = d.page_sizes[n], s.dense = true; });
    for (std::size_t h = 1; h < d.heads.size(); ++h) with([&](Setting& s) { s.heads = d.heads[h]; });
  }
  return all;
}

cases::Case case_of(const Setting& s, const cases::MlaDecodeDomain& domain, int kv_len, int longest) {
  cases::MlaDecode p;
  p.heads = s.heads;
  p.q_format = domain.q_format;
  p.kv_format = domain.kv_format;
  p.kv_layout = domain.kv_layout;
  p.num_splits = s.splits;
  p.return_lse = s.lse;
  p.page_size = s.page_size;
  p.requests = {{s.q_len, kv_len}};
  if (s.scales) p.q_scale = p.q_format == cases::Format::bf16 ? 1.0F : 2.0F, p.kv_scale = 0.5F;
  // The neighbours are never shorter than their query: what they add is being neighbours.
  if (s.batch == Batch::unequal_context)
    p.requests = {{s.q_len, std::max(s.q_len, longest - kv_len)}, {s.q_len, kv_len}, {s.q_len, s.q_len}};
  if (s.batch == Batch::unequal_query)
    p.requests = {{std::max(1, s.q_len - 1), longest / 2}, {s.q_len, kv_len}, {1, longest / 3}};
  cases::Case c;
  c.seed = static_cast<std::uint64_t>(kv_len);
  c.problem = p;
  c.memory.unused = cases::Poison::stale;
  c.memory.placement = cases::Placement::shuffled;
  return c;
}

std::string verdict_on(device::Device& device, const device::Kernel& kernel, const cases::Case& c) {
  const auto why = kernel.refuses(c);
  if (why) return "refused: " + *why;
  const fuzz::Evaluation e = fuzz::evaluate(device, kernel, c);
  return e.verdict.diagnosis.empty() ? oracle::name(e.verdict.kind) : e.verdict.diagnosis;
}

/// "0 nan from a fully masked tile; 1..300 pass"
std::string line_of(device::Device& device, const device::Kernel& kernel, const Setting& s, int longest,
                    bool every_length) {
  const cases::MlaDecodeDomain domain = *kernel.domain();
  std::string line, current;
  int first = 0, last = 0;
  const auto close = [&] {
    if (current.empty()) return;
    line += fmt::format("{}{}{} {}", line.empty() ? "" : "; ", first,
                        last == first ? "" : fmt::format("..{}", last), current);
  };
  for (int kv_len = 0; kv_len <= longest; ++kv_len) {
    if (!s.dense && !every_length && kv_len > 20 && kv_len != longest && (kv_len + 1) % 64 > 2) continue;
    std::string verdict = verdict_on(device, kernel, case_of(s, domain, kv_len, longest));
    if (verdict != current) {
      close();
      first = kv_len;
      current = std::move(verdict);
    }
    last = kv_len;
  }
  close();
  return line;
}

void survey(device::Device& device, const device::Kernel& kernel, int longest, bool every_length) {
  fmt::print("{}\n", kernel.name());
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  // alike ones together
  for (const Setting& s : settings_of(*kernel.domain())) {
    std::string line = line_of(device, kernel, s, longest, every_length);
    auto it = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == line; });
    if (it == lines.end()) it = lines.emplace(lines.end(), std::move(line), std::vector<std::string>{});
    it->second.push_back(s.text());
  }
  for (const auto& [line, settings] : lines)
    fmt::print("  {}\n      {}\n", line, fmt::join(settings, "\n      "));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  const int longest = argc > 2 ? std::atoi(argv[2]) : 300;
  const bool every_length = argc > 3 && std::string_view(argv[3]) == "dense";
  const bool variants = part.find('@') != std::string_view::npos;
  const auto device = device::open_device("sim", 0);
  int surveyed = 0;
  for (const device::Kernel* kernel : device::kernels()) {
    if (kernel->contract() != "aiter" || (kernel->name().find('@') != std::string::npos) != variants ||
        kernel->domain()->heads.empty() || kernel->name().find(part) == std::string::npos)
      continue;
    survey(*device, *kernel, longest, every_length);
    ++surveyed;
  }
  if (surveyed == 0) {
    fmt::print(stderr,
               "aiter_survey: nothing was run: ATTEST_AITER_HSA names no folder with such a kernel\n");
    return 3;
  }
  return 0;
}
