// SPDX-License-Identifier: MIT
//
// Prints, for each kernel of the `aiter` contract, what the oracle says of every context length from 0 to
// 300: one request, the shortest and the longest query of the kernel's range, few splits and more splits than
// chunks. The figures behind the table in cases/README.md.
//
//   ATTEST_AITER_HSA=DIR aiter_survey [part of a kernel's name]
//
//   aiter/mla_a16w16_qh16_m16x4_n16x1_coex0_mask1
//     16 heads, q_len 2, 2 splits    0 nan from a fully masked tile; 1 causal bound one too far; 2..300 pass
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "cases/domain.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"

using namespace attest;

namespace {

constexpr int longest_context = 300;

std::string verdict_on(device::Device& device, const device::Kernel& kernel, const cases::Case& c) {
  const auto why = kernel.refuses(c);
  if (why) return "refused: " + *why;
  const fuzz::Evaluation e = fuzz::evaluate(device, kernel, c);
  return e.verdict.diagnosis.empty() ? oracle::name(e.verdict.kind) : e.verdict.diagnosis;
}

void survey(device::Device& device, const device::Kernel& kernel) {
  const cases::MlaDecodeDomain domain = *kernel.domain();
  fmt::print("{}\n", kernel.name());
  for (const int q_len : std::set{domain.longest_q_len_min, domain.longest_q_len_max})
    for (const int splits : std::set{std::min(2, domain.num_splits_max), domain.num_splits_max}) {
      std::string line, current;
      int first = 0;
      const auto close = [&](int end) {
        if (end == first) return;
        line += fmt::format("{}{}{} {}", line.empty() ? "" : "; ", first,
                            end - 1 == first ? "" : fmt::format("..{}", end - 1), current);
      };
      for (int kv_len = 0; kv_len <= longest_context; ++kv_len) {
        cases::MlaDecode p;
        p.heads = domain.heads.front();
        p.q_format = domain.q_format;
        p.kv_format = domain.kv_format;
        p.num_splits = splits;
        p.return_lse = domain.return_lse;
        p.requests = {{q_len, kv_len}};
        if (!domain.page_sizes.empty()) p.page_size = domain.page_sizes.front();
        cases::Case c;
        c.seed = static_cast<std::uint64_t>(kv_len);
        c.problem = p;
        c.memory.unused = cases::Poison::stale;
        std::string verdict = verdict_on(device, kernel, c);
        if (verdict == current) continue;
        close(kv_len);
        first = kv_len;
        current = std::move(verdict);
      }
      close(longest_context + 1);
      fmt::print("  {} heads, q_len {}, {} split{}    {}\n", domain.heads.front(), q_len, splits,
                 splits == 1 ? "" : "s", line);
      std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  const auto device = device::open_device("sim", 0);
  int surveyed = 0;
  for (const device::Kernel* kernel : device::kernels()) {
    if (kernel->contract() != "aiter" || kernel->by_hand() || kernel->domain()->heads.empty()) continue;
    if (kernel->name().find(part) == std::string::npos) continue;
    survey(*device, *kernel);
    ++surveyed;
  }
  if (surveyed == 0) {
    fmt::print(stderr,
               "aiter_survey: nothing was run: ATTEST_AITER_HSA names no folder with such a kernel\n");
    return 3;
  }
  return 0;
}
