// SPDX-License-Identifier: MIT
//
// The judge against the software kernel: faithful variants pass in every family of inputs, planted faults do
// not, and are called by their names. What is asserted of the faults is less than what judge_survey prints,
// and not much less.
#include "oracle/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "oracle/tests/random_cases.h"
#include "oracle/tests/software_kernel.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;

namespace {

struct Variant {
  const char* profile;
  Model model;
};

std::vector<Variant> faithful_variants() {
  return {
      {"bf16", {}},
      {"bf16", {.tile = 64, .chunk = 4, .strided = true}},
      {"bf16-trunc", {.p = Model::P::bf16_truncated, .truncate_output = true}},
      {"bf16-any", {.tile = 16, .truncate_output = true}},
      {"bf16-sumrounded", {.tile = 16, .sum_of_rounded = true}},
      {"fp8p-fnuz", {.tile = 128, .p = Model::P::fp8_fnuz}},
      {"fp32p", {.p = Model::P::f32, .chunk = 1}},
      {"bf16+part16", {.partials_bf16 = true}},
  };
}

bool same_bytes(const cases::Outputs& a, const cases::Outputs& b) {
  for (std::size_t t = 0; t < a.tensors.size(); ++t)
    if (a.tensors[t].bytes != b.tensors[t].bytes) return false;
  return true;
}

struct Tally {
  int changed = 0, caught = 0;
  std::map<std::string, int> said;
  std::string missed;  // a case that was not caught
  [[nodiscard]] int named(std::initializer_list<const char*> names) const {
    int sum = 0;
    for (const char* n : names)
      if (const auto found = said.find(n); found != said.end()) sum += found->second;
    return sum;
  }
};

/// The fault on `per_family` random cases of every family; only cases whose result it changes count.
Tally try_fault(Fault fault, int per_family, const char* profile_name = "bf16") {
  Tally tally;
  for (const cases::Fill fill : all_fills)
    for (int i = 0; i < per_family; ++i) {
      const cases::Case c = random_case(static_cast<std::uint64_t>(i) + 5000, fill, 2500);
      const cases::Inputs in = cases::materialise(c);
      Model model;
      const cases::Outputs good = run(c, in, model);
      model.fault = fault;
      const cases::Outputs bad = run(c, in, model);
      if (same_bytes(good, bad)) continue;
      ++tally.changed;
      const Verdict verdict = judge(c, in, bad, profile(profile_name));
      if (verdict.kind != VerdictKind::fail) {
        tally.missed = cases::canonical_json(c);
        continue;
      }
      ++tally.caught;
      ++tally.said[verdict.diagnosis];
      CHECK(verdict.used_budget + (verdict.stage == "row" ? 1 : 0) > 1);
      CHECK_FALSE(verdict.worst.empty());
      CHECK(verdict.worst.size() <= 10);
      CHECK_FALSE(verdict.detail.empty());
      CHECK(verdict.diagnosis.find("request") == std::string::npos);  // coordinates belong to the detail
    }
  return tally;
}

cases::Case simple_case(int q_len, int kv_len, cases::Fill fill = cases::Fill::normal) {
  cases::Case c;
  c.seed = 0x2a;
  c.data.fill = fill;
  cases::MlaDecode p;
  p.heads = 2;
  p.page_size = 16;
  p.requests = {{q_len, kv_len}};
  c.problem = p;
  return c;
}

template <class T>
T& element(cases::Outputs& outputs, std::size_t tensor, std::size_t at) {
  return reinterpret_cast<T*>(outputs.tensors[tensor].bytes.data())[at];
}

}  // namespace

TEST_CASE("Faithful kernels pass in every family") {
  constexpr int per_family = 200;
  const auto variants = faithful_variants();
  std::string report;
  for (const cases::Fill fill : all_fills) {
    double used = 0;
    int proved = 0;
    for (int i = 0; i < per_family; ++i) {
      const cases::Case c = random_case(static_cast<std::uint64_t>(i), fill, 2000);
      const cases::Inputs in = cases::materialise(c);
      const Variant& v = variants[static_cast<std::size_t>(i) % variants.size()];
      const Verdict verdict = judge(c, in, run(c, in, v.model), profile(v.profile));
      INFO(v.profile << " " << verdict.stage << ": " << verdict.detail << "\n" << cases::canonical_json(c));
      REQUIRE((verdict.kind == VerdictKind::pass || verdict.kind == VerdictKind::mistrusted));
      proved += verdict.kind == VerdictKind::pass ? 1 : 0;
      used = std::max(used, verdict.used_budget);
    }
    report += fmt::format("{} {:.2f}  ", cases::name(fill), used);
    CHECK(proved > per_family * 9 / 10);
    CHECK(used > 0.01);  // a bound that is never approached would be no bound
    CHECK(used < 0.8);
  }
  WARN("largest used budget: " << report);
}

TEST_CASE("Long contexts pass, and a lost key still shows") {
  for (const cases::Fill fill :
       {cases::Fill::normal, cases::Fill::constant_scores, cases::Fill::mean_shifted}) {
    cases::Case c = simple_case(1, 8192, fill);
    std::get<cases::MlaDecode>(c.problem).num_splits = 4;
    const cases::Inputs in = cases::materialise(c);
    Model model;
    const Verdict good = judge(c, in, run(c, in, model), profile("bf16"));
    INFO(cases::name(fill) << " " << good.detail);
    CHECK(good.kind == VerdictKind::pass);
    model.fault = Fault::one_key_missing;
    CHECK(judge(c, in, run(c, in, model), profile("bf16")).kind == VerdictKind::fail);
    model.fault = Fault::causal_too_short;
    const Verdict bad = judge(c, in, run(c, in, model), profile("bf16"));
    CHECK(bad.kind == VerdictKind::fail);
    CHECK(bad.diagnosis == "causal bound one too short");
  }
}

TEST_CASE("Planted faults are rejected and named") {
  struct Expected {
    Fault fault;
    std::initializer_list<const char*> names;  // equally true names of it
    int named_percent;
    int caught_percent = 95;
  };
  const Expected table[] = {
      {Fault::q_len_mask, {"query rows identical"}, 95},
      {Fault::q_len_shift, {"query rows identical"}, 95},
      {Fault::causal_too_far, {"causal bound one too far"}, 95},
      {Fault::causal_too_short, {"causal bound one too short"}, 85},
      {Fault::causal_missing, {"causal mask missing", "causal bound one too far"}, 90},
      {Fault::last_tile_dropped, {"last tile missing", "one split missing"}, 95},
      {Fault::middle_tile_dropped, {"one tile missing", "one split missing"}, 95},
      {Fault::tile_twice, {"one tile counted twice", "one split counted twice"}, 90},
      {Fault::split_forgotten, {"one split missing"}, 90},
      {Fault::lse_base2_merged, {"lse base 2 merged as natural"}, 95},
      {Fault::lse_base2_returned, {"lse in base 2", "lse base 2 merged as natural"}, 95},
      {Fault::kv_scale_missing, {"kv scale missing"}, 95},
      {Fault::page_size_one, {"first token of each page only"}, 95},
      {Fault::over_read, {"over-read past the end of the sequence", "nan from poison"}, 85},
      {Fault::zero_slots, {"zero-filled slots not masked", "over-read past the end of the sequence"}, 90},
      {Fault::inf_first_tile, {"nan from a fully masked tile"}, 95},
      {Fault::heads_rotated, {"heads permuted"}, 90},
      {Fault::rows_unwritten, {"rows unwritten"}, 95},
      {Fault::softmax_scale, {"softmax scale off"}, 75, 85},
      {Fault::p_in_fp8, {"less precise than declared"}, 70, 90},
      {Fault::one_key_missing, {"one key missing", "one key with a wrong weight"}, 50, 85},
      {Fault::unnormalised, {"row sum not divided out"}, 30, 90},
      {Fault::columns_shifted, {"an aligned run of columns wrong"}, 90},
      {Fault::offset_wraps, {"kv offset wraps", "nan from poison"}, 90},
      {Fault::front_rows_unmasked,
       {"rows in front of the first key not masked", "causal bound one too far"},
       90},
  };
  for (const Expected& e : table) {
    const Tally tally = try_fault(e.fault, 6);
    std::string said;
    for (const auto& [text, count] : tally.said) said += fmt::format(" {} x {}", count, text);
    INFO(name(e.fault) << ": caught " << tally.caught << " of " << tally.changed << ":" << said << "\nmissed "
                       << tally.missed);
    CHECK(tally.changed >= 5);
    CHECK(100 * tally.caught >= e.caught_percent * tally.changed);
    CHECK(100 * tally.named(e.names) >= e.named_percent * tally.caught);
  }
}

TEST_CASE(
    "Unmasked rows in front of the first key are not taken for a bound one too far, nor the other way "
    "round") {
  const auto diagnosis = [](int q_len, int kv_len, Fault fault) {
    const cases::Case c = simple_case(q_len, kv_len, cases::Fill::normal);
    const cases::Inputs in = cases::materialise(c);
    Model model;
    model.fault = fault;
    return judge(c, in, run(c, in, model), profile("bf16")).diagnosis;
  };
  for (const int kv_len : {1, 2, 3})
    CHECK(diagnosis(5, kv_len, Fault::front_rows_unmasked) == "rows in front of the first key not masked");
  for (const int kv_len : {2, 5, 9})
    CHECK(diagnosis(5, kv_len, Fault::causal_too_far) == "causal bound one too far");
}

TEST_CASE("An lse of zeros in a buffer of zeros was not written, one zero may have been") {
  cases::Case c = simple_case(2, 40, cases::Fill::normal);
  c.memory.output = cases::Poison::zero;
  const cases::Inputs in = cases::materialise(c);
  cases::Outputs outputs = run(c, in, Model{});
  std::vector<std::byte>& lse = outputs.tensors.at(1).bytes;
  std::fill_n(lse.begin(), sizeof(float), std::byte{0});
  CHECK(judge(c, in, outputs, profile("bf16")).diagnosis != "lse unwritten");
  std::fill(lse.begin(), lse.end(), std::byte{0});
  CHECK(judge(c, in, outputs, profile("bf16")).diagnosis == "lse unwritten");
}

TEST_CASE("A NaN lse beside a NaN row was computed, not left over") {
  cases::Case c = simple_case(2, 40, cases::Fill::normal);
  c.memory.output = cases::Poison::nan;
  const cases::Inputs in = cases::materialise(c);
  cases::Outputs outputs = run(c, in, Model{});
  std::vector<std::byte>& lse = outputs.tensors.at(1).bytes;
  const auto before =
      cases::poison_bytes(c, cases::Poison::nan, cases::Format::f32, lse.size() / sizeof(float), "lse");
  std::copy(before.begin(), before.end(), lse.begin());
  CHECK(judge(c, in, outputs, profile("bf16")).diagnosis == "lse unwritten");
  // A bf16 NaN that is not the poison's.
  std::vector<std::byte>& out = outputs.tensors.at(0).bytes;
  for (std::size_t i = 0; i < out.size(); i += 2) out[i] = std::byte{0xff}, out[i + 1] = std::byte{0x7f};
  CHECK(judge(c, in, outputs, profile("bf16")).diagnosis != "lse unwritten");
}

TEST_CASE("A wrong profile shows") {
  const auto failing = [](const Model& model, const char* profile_name, cases::Fill fill) {
    int failed = 0;
    for (int i = 0; i < 20; ++i) {
      const cases::Case c = random_case(static_cast<std::uint64_t>(i) + 900, fill, 2000);
      const cases::Inputs in = cases::materialise(c);
      failed += judge(c, in, run(c, in, model), profile(profile_name)).kind == VerdictKind::fail ? 1 : 0;
    }
    return failed;
  };
  CHECK(failing({.p = Model::P::fp8_fnuz}, "bf16", cases::Fill::normal) >= 15);
  CHECK(failing({.p = Model::P::fp8_fnuz}, "fp8p-fnuz", cases::Fill::normal) == 0);
  CHECK(failing({.sum_of_rounded = true}, "bf16", cases::Fill::normal) >= 5);
  CHECK(failing({.truncate_output = true}, "bf16", cases::Fill::constant_scores) >= 10);
  CHECK(failing({}, "fp32p", cases::Fill::normal) >= 15);
}

TEST_CASE("bf16 accumulation over many tiles is caught") {
  const cases::Case c = simple_case(1, 2048);
  const cases::Inputs in = cases::materialise(c);
  Model model;
  model.fault = Fault::accumulate_bf16;
  const Verdict verdict = judge(c, in, run(c, in, model), profile("bf16"));
  CHECK(verdict.kind == VerdictKind::fail);
  CHECK(verdict.diagnosis == "less precise than declared");
}

TEST_CASE("The exact lane allows no neighbour of the right number") {
  const cases::Case c = simple_case(2, 64, cases::Fill::exact);
  const cases::Inputs in = cases::materialise(c);
  cases::Outputs outputs = run(c, in, {});
  const Verdict good = judge(c, in, outputs, profile("bf16"));
  CHECK(good.kind == VerdictKind::pass);
  CHECK(good.lane == "exact");
  for (const int step : {1, -1}) {
    cases::Outputs off = outputs;
    auto& code = element<std::uint16_t>(off, 0, 700);
    code = static_cast<std::uint16_t>(code + step);
    const Verdict bad = judge(c, in, off, profile("bf16"));
    CHECK(bad.kind == VerdictKind::fail);
    CHECK(bad.stage == "exact");
    CHECK(bad.elements_failed == 1);
    CHECK(bad.worst.front().column == 700 - 512);
    CHECK(bad.worst.front().head == 1);
  }
}

TEST_CASE("One element, one lse, one row: nothing is averaged away") {
  const cases::Case c = simple_case(4, 300);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs good = run(c, in, {});
  REQUIRE(judge(c, in, good, profile("bf16")).kind == VerdictKind::pass);

  cases::Outputs element_off = good;
  auto& code = element<std::uint16_t>(element_off, 0, 5 * 512 + 40);
  code = static_cast<std::uint16_t>(code ^ 0x40U);  // a significand bit: 25 to 50 %
  Verdict verdict = judge(c, in, element_off, profile("bf16"));
  CHECK(verdict.stage == "element");
  CHECK(verdict.rows_failed == 1);
  CHECK(verdict.worst.front().position == 2);
  CHECK(verdict.worst.front().head == 1);
  CHECK(verdict.worst.front().column == 40);
  CHECK(verdict.worst.front().term == "P rounding");

  cases::Outputs lse_off = good;
  element<float>(lse_off, 1, 3) += 1e-3F;  // less than the weight of one of 300 keys
  verdict = judge(c, in, lse_off, profile("bf16"));
  CHECK(verdict.stage == "lse");
  CHECK(verdict.lane == "row");
  CHECK(verdict.rows_failed == 1);
  CHECK(verdict.worst.front().column == -1);

  cases::Outputs row_off = good;  // every element one unit up: half of them within their own bounds
  const auto from = static_cast<std::size_t>(2 * 512);
  for (std::size_t d = from; d < from + 512; ++d) {
    auto& bits = element<std::uint16_t>(row_off, 0, d);
    bits = static_cast<std::uint16_t>(bits + 2);
  }
  verdict = judge(c, in, row_off, profile("bf16"));
  CHECK(verdict.kind == VerdictKind::fail);
  CHECK(verdict.rows_failed == 1);
}

TEST_CASE("The row rules see what no element shows") {
  cases::Case c = simple_case(1, 1024);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs good = run(c, in, {});
  // Alternating errors of a few deviations: every element within its bound, the row is not.
  cases::Outputs bad = good;
  for (std::size_t d = 0; d < 512; ++d) {
    auto& bits = element<std::uint16_t>(bad, 0, d);
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    const float moved = value + (d % 2 == 0 ? 6e-4F : -6e-4F);
    bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(moved) >> 16);
  }
  const Verdict verdict = judge(c, in, bad, profile("bf16"));
  INFO(verdict.detail);
  CHECK(verdict.kind == VerdictKind::fail);
  CHECK(verdict.stage == "row");
  CHECK(verdict.used_budget < 1);
  // The whole row 1.5 % too large.
  cases::Outputs scaled = good;
  for (std::size_t d = 0; d < 512; ++d) {
    auto& bits = element<std::uint16_t>(scaled, 0, d);
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) * 1.015F;
    bits = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16);
  }
  CHECK(judge(c, in, scaled, profile("bf16")).kind == VerdictKind::fail);
}

TEST_CASE("Classes: NaN, infinity, empty rows") {
  const cases::Case c = simple_case(3, 2);  // the first position sees no key
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs good = run(c, in, {});
  REQUIRE(judge(c, in, good, profile("bf16")).kind == VerdictKind::pass);
  const auto verdict_with = [&](auto change, const char* profile_name = "bf16") {
    cases::Outputs outputs = good;
    change(outputs);
    return judge(c, in, outputs, profile(profile_name));
  };
  const float infinity = std::numeric_limits<float>::infinity();
  Verdict v = verdict_with([](cases::Outputs& o) { element<std::uint16_t>(o, 0, 2000) = 0x7fc0; });
  CHECK(v.stage == "class");
  CHECK(std::isinf(v.used_budget));
  CHECK(verdict_with([](cases::Outputs& o) { element<std::uint16_t>(o, 0, 2000) = 0x7f80; }).stage ==
        "class");
  CHECK(verdict_with([](cases::Outputs& o) { element<std::uint16_t>(o, 0, 5) = 0x0001; }).stage == "class");
  v = verdict_with([](cases::Outputs& o) {
    for (std::size_t d = 0; d < 512; ++d) element<std::uint16_t>(o, 0, d) = 0x7fc0;
  });
  CHECK(v.stage == "class");
  CHECK(v.diagnosis == "nan from a fully masked tile");
  CHECK(v.rows_failed == 1);
  v = verdict_with([&](cases::Outputs& o) { element<float>(o, 1, 0) = infinity; });
  CHECK(v.stage == "class");
  CHECK(v.diagnosis == "lse of empty rows");
  CHECK(verdict_with(
            [&](cases::Outputs& o) {
              element<float>(o, 1, 0) = infinity;
              element<float>(o, 1, 1) = infinity;
            },
            "bf16+emptyinf")
            .kind == VerdictKind::pass);
  CHECK(verdict_with([&](cases::Outputs& o) { element<std::uint16_t>(o, 0, 5) = 0x7fc0; }, "bf16+emptyany")
            .kind == VerdictKind::pass);
  CHECK(verdict_with([&](cases::Outputs& o) { element<float>(o, 1, 3) = infinity; }).stage == "class");
  CHECK(verdict_with([&](cases::Outputs& o) { element<float>(o, 1, 3) = std::nanf(""); }).stage == "class");
}

TEST_CASE("Outputs that are not there, guards, and checks that prove nothing") {
  const cases::Case c = simple_case(1, 20);
  const cases::Inputs in = cases::materialise(c);
  const cases::Outputs good = run(c, in, {});

  cases::Outputs missing = good;
  missing.tensors.erase(missing.tensors.begin());
  Verdict v = judge(c, in, missing, profile("bf16"));
  CHECK(v.kind == VerdictKind::harness_error);
  CHECK(v.detail == "the device returned no tensor \"out\"");
  cases::Outputs wrong_size = good;
  wrong_size.tensors[1].bytes.resize(4);
  CHECK(judge(c, in, wrong_size, profile("bf16")).detail ==
        "tensor \"lse\" has 4 bytes, the case asks for 8");

  cases::Outputs damaged = good;
  damaged.guard_damage = {"guard after out, +12 bytes", "guard before lse, -4 bytes"};
  v = judge(c, in, damaged, profile("bf16"));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.stage == "guard");
  CHECK(v.detail == "guard after out, +12 bytes and 1 more");

  const cases::Case empty = simple_case(2, 0);
  const cases::Inputs empty_in = cases::materialise(empty);
  CHECK(judge(empty, empty_in, run(empty, empty_in, {}), profile("bf16")).kind == VerdictKind::mistrusted);
}

TEST_CASE("Unwritten results are told from wrong ones, for every poison") {
  for (const cases::Poison poison : {cases::Poison::nan, cases::Poison::inf, cases::Poison::large,
                                     cases::Poison::stale, cases::Poison::zero}) {
    cases::Case c = simple_case(3, 50);
    c.memory.output = poison;
    const cases::Inputs in = cases::materialise(c);
    Model model;
    model.fault = Fault::rows_unwritten;
    const Verdict v = judge(c, in, run(c, in, model), profile("bf16"));
    INFO(cases::name(poison) << " " << v.diagnosis);
    CHECK(v.kind == VerdictKind::fail);
    CHECK(v.diagnosis == "rows unwritten");
    CHECK(v.detail.find(cases::name(poison)) != std::string::npos);
  }
}

TEST_CASE("The same result gets the same verdict") {
  const cases::Case c = random_case(77, cases::Fill::normal);
  const cases::Inputs in = cases::materialise(c);
  Model model;
  model.fault = Fault::softmax_scale;
  const cases::Outputs outputs = run(c, in, model);
  const Verdict a = judge(c, in, outputs, profile("bf16")), b = judge(c, in, outputs, profile("bf16"));
  CHECK(a.detail == b.detail);
  CHECK(a.used_budget == b.used_budget);
}
