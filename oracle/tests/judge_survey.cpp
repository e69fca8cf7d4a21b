// SPDX-License-Identifier: MIT
//
// Prints what the judge says of the software kernel and its faults, over random cases: used budget per
// family, hit rate and diagnoses per fault. The numbers behind the assertions of judge_test.cpp;
// `judge_survey [cases per family]`.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "oracle/judge.h"
#include "oracle/tests/random_cases.h"
#include "oracle/tests/software_kernel.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;

int main(int argc, char** argv) {
  const int per_family = argc > 1 ? std::atoi(argv[1]) : 40;
  const int fault_cases = argc > 2 ? std::atoi(argv[2]) : 10;
  struct Variant {
    const char* profile;
    Model model;
  };
  std::vector<Variant> variants;
  variants.push_back({"bf16", {}});
  variants.push_back({"bf16", {.tile = 64, .chunk = 4, .strided = true}});
  variants.push_back({"bf16-trunc", {.p = Model::P::bf16_truncated, .truncate_output = true}});
  variants.push_back({"bf16-any", {.tile = 16, .truncate_output = true}});
  variants.push_back({"bf16-sumrounded", {.tile = 16, .sum_of_rounded = true}});
  variants.push_back({"fp8p-fnuz", {.tile = 128, .p = Model::P::fp8_fnuz}});
  variants.push_back({"fp32p", {.p = Model::P::f32, .chunk = 1}});
  variants.push_back({"bf16+part16", {.partials_bf16 = true}});
  for (const cases::Fill fill : all_fills) {
    double used = 0;
    int failed = 0, mistrusted = 0, total = 0;
    std::string example;
    for (int i = 0; i < per_family; ++i) {
      const cases::Case c = random_case(static_cast<std::uint64_t>(i), fill);
      const cases::Inputs in = cases::materialise(c);
      const Variant& v = variants[static_cast<std::size_t>(i) % variants.size()];
      const Verdict verdict = judge(c, in, run(c, in, v.model), profile(v.profile));
      ++total;
      used = std::max(used, verdict.used_budget);
      if (verdict.kind == VerdictKind::mistrusted) ++mistrusted;
      if (verdict.kind == VerdictKind::fail) {
        ++failed;
        if (example.empty())
          example = fmt::format("{} {} [{}] {} | {} | {}", i, v.profile, verdict.stage, verdict.diagnosis,
                                verdict.detail, cases::canonical_json(c));
      }
    }
    fmt::print("{:18} used {:.3f}  failed {}/{}  mistrusted {}\n", cases::name(fill), used, failed, total,
               mistrusted);
    if (!example.empty()) fmt::print("    {}\n", example);
  }
  for (const Fault fault : all_faults()) {
    std::map<std::string, int> said;
    int caught = 0, changed = 0;
    for (const cases::Fill fill : all_fills)
      for (int i = 0; i < fault_cases; ++i) {
        const cases::Case c = random_case(static_cast<std::uint64_t>(i) + 1000, fill);
        const cases::Inputs in = cases::materialise(c);
        Model model;
        const cases::Outputs good = run(c, in, model);
        model.fault = fault;
        const cases::Outputs bad = run(c, in, model);
        bool same = true;
        for (std::size_t t = 0; t < good.tensors.size(); ++t)
          same = same && good.tensors[t].bytes == bad.tensors[t].bytes;
        if (same) continue;
        ++changed;
        const Verdict verdict = judge(c, in, bad, profile("bf16"));
        if (verdict.kind != VerdictKind::fail) continue;
        ++caught;
        ++said[verdict.diagnosis];
        if (argc > 3 && std::string(argv[3]) == name(fault))
          fmt::print("  {} | {} | {} | {}\n", verdict.diagnosis, verdict.stage, verdict.detail,
                     cases::canonical_json(c));
      }
    fmt::print("{:20} caught {:3} of {:3} changed:", name(fault), caught, changed);
    for (const auto& [text, count] : said) fmt::print("  {} x {}", count, text);
    fmt::print("\n");
  }
}
