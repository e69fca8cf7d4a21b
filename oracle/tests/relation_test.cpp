// SPDX-License-Identifier: MIT
//
// Relations between runs: a faithful kernel has them all, and for each there is a kernel that breaks it.
#include "oracle/relation.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "oracle/mla_relation.h"
#include "oracle/tests/sparse_software_kernel.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;

namespace {

using KernelModel = std::function<cases::Outputs(const cases::Case&, const cases::Inputs&)>;

cases::Outputs faithful(const cases::Case& c, const cases::Inputs& in) {
  return std::holds_alternative<cases::MlaSparse>(c.problem) ? run_lists(c, in, {}) : run(c, in, {});
}

KernelModel with(Fault fault) {
  return [fault](const cases::Case& c, const cases::Inputs& in) {
    Model model;
    model.fault = fault;
    return run(c, in, model);
  };
}

/// Changes one element of the first row, where `when` says so.
KernelModel disturbed(const std::function<bool(const cases::Case&, const cases::Inputs&)>& when) {
  return [when](const cases::Case& c, const cases::Inputs& in) {
    cases::Outputs outputs = faithful(c, in);
    if (when(c, in)) outputs.tensors[0].bytes[1] ^= std::byte{0x40};  // the exponent of a bf16
    return outputs;
  };
}

struct Tally {
  std::map<std::string, int> tried, broken;
};

Tally tally(const std::vector<cases::Case>& some, const KernelModel& kernel) {
  Tally t;
  for (const cases::Case& c : some) {
    const cases::Inputs in = cases::materialise(c);
    const cases::Outputs original = kernel(c, in);
    for (const Relation& relation : all_mla_relations(c, in, profile("bf16"))) {
      ++t.tried[relation.name];
      const Verdict verdict = relation.compare(original, kernel(relation.c, relation.inputs));
      if (verdict.kind == VerdictKind::pass) continue;
      CHECK(verdict.kind == VerdictKind::fail);
      CHECK_FALSE(verdict.diagnosis.empty());
      ++t.broken[relation.name];
    }
  }
  return t;
}

std::vector<cases::Case> some_cases(bool sparse) {
  std::vector<cases::Case> all;
  for (const cases::Fill fill : all_fills)
    for (std::uint64_t i = 0; i < 8; ++i)
      all.push_back(sparse ? random_sparse_case(i + 70, fill) : random_case(i + 70, fill, 1500));
  return all;
}

const cases::MlaDecodeInputs& decode_inputs(const cases::Inputs& in) {
  return std::get<cases::MlaDecodeInputs>(in);
}

}  // namespace

TEST_CASE("A faithful kernel has every relation") {
  for (const bool sparse : {false, true}) {
    const Tally t = tally(some_cases(sparse), faithful);
    for (const auto& [name, times] : t.broken) {
      CAPTURE(name);
      CHECK(times == 0);
    }
    CHECK(t.tried.size() == 6);
    for (const auto& [name, times] : t.tried) {
      CAPTURE(name, times);
      CHECK(times >= 5);
    }
  }
}

TEST_CASE("Each relation of mla_decode is broken by a kernel that has no right to it") {
  const std::vector<cases::Case> some = some_cases(false);
  const auto broken = [&](const KernelModel& kernel, const std::string& relation) {
    return tally(some, kernel).broken[relation];
  };
  CHECK(broken(disturbed([](const cases::Case&, const cases::Inputs& in) {
                 return decode_inputs(in).kv_page_indices.front() % 2 == 0;
               }),
               "page permutation") >= 10);
  CHECK(broken(with(Fault::over_read), "unused memory") >= 10);
  CHECK(broken(with(Fault::causal_missing), "future keys") >= 10);
  CHECK(broken(disturbed([](const cases::Case& c, const cases::Inputs&) {
                 return std::get<cases::MlaDecode>(c.problem).requests.size() == 1;
               }),
               "batch neighbours") >= 10);
  CHECK(broken(disturbed([](const cases::Case&, const cases::Inputs&) { return true; }),
               "head permutation") >= 10);
  CHECK(broken(with(Fault::q_len_mask), "single queries") >= 10);
}

TEST_CASE("Each relation of mla_sparse is broken by a kernel that has no right to it") {
  const std::vector<cases::Case> some = some_cases(true);
  const auto broken = [&](const KernelModel& kernel, const std::string& relation) {
    return tally(some, kernel).broken[relation];
  };
  const auto of_lists = [](ListFault fault) -> KernelModel {
    return [fault](const cases::Case& c, const cases::Inputs& in) {
      return std::holds_alternative<cases::MlaSparse>(c.problem) ? run_lists(c, in, {}, fault)
                                                                 : run(c, in, {});
    };
  };
  CHECK(broken(of_lists(ListFault::padding_ignored), "page permutation") >= 2);
  CHECK(broken(of_lists(ListFault::trailing_ids), "unused memory") >= 10);
  CHECK(broken(of_lists(ListFault::last_dropped), "list order") >= 10);
  CHECK(broken(of_lists(ListFault::neighbour_list), "batch neighbours") >= 10);
  CHECK(broken(of_lists(ListFault::last_dropped), "dense") >= 3);
  CHECK(broken(disturbed([](const cases::Case&, const cases::Inputs&) { return true; }),
               "head permutation") >= 10);
}

TEST_CASE("One case in four has a relation, each as often as the others") {
  std::map<std::string, int> seen;
  cases::Case c = random_case(3, cases::Fill::normal, 1500);
  auto& p = std::get<cases::MlaDecode>(c.problem);
  p.causal = true;
  p.heads = 2;
  p.requests = {{2, 5}, {3, 7}};
  c.memory = {};
  for (std::uint64_t seed = 0; seed < 2400; ++seed) {
    c.seed = seed;
    const cases::Inputs in = cases::materialise(c);
    const std::vector<Relation> chosen = relations(c, in, profile("bf16"));
    REQUIRE(chosen.size() <= 1);
    if (!chosen.empty()) ++seen[chosen.front().name];
  }
  CHECK(seen.size() == 6);
  for (const auto& [name, times] : seen) {
    CAPTURE(name, times);
    CHECK(times > 60);
    CHECK(times < 150);
  }
}
