// SPDX-License-Identifier: MIT
//
// The short cuts of taint against the transfer functions, which know no short cuts: random instructions of
// every operation on random taint leave the same behind either way. And the registers that are live at the
// entry of small programs.
#include <bit>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "device/simulator/core/program.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/live_in.h"
#include "device/simulator/detect/taint_clean.h"
#include "device/simulator/detect/taint_scalar.h"
#include "device/simulator/detect/taint_vector.h"
#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"
#include "device/simulator/tests/random_words.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;

constexpr u64 all_sgprs = ~u64{0};
constexpr std::uint32_t vgprs = 512;
constexpr std::uint32_t endpgm = 0xbf810000;

Program program_of(const std::vector<std::uint32_t>& words) {
  ProgramSource source;
  source.text = std::as_bytes(std::span(words));
  return {source, SimdLevel::baseline};
}

u64 random64(Random& random) {
  return u64{random()} << 32 | random();
}

/// Bits that are often none, often all.
u64 random_mask(Random& random) {
  switch (random.below(4)) {
    case 0:
      return 0;
    case 1:
      return ~u64{0};
    default:
      return random64(random);
  }
}

struct Machine {
  explicit Machine(Random& random) : registers(std::size_t{vgprs} * lanes) {
    wave.vgpr = registers.data();
    wave.vgpr_count = vgprs;
    wave.group = &group;
    const float values[] = {0.0F, -0.0F, 1.0F, 1.0000001F, -2.5F, 1e30F, 3e38F * 10, -1.0F};
    for (std::uint32_t& r : registers)
      r = random.below(2) == 0 ? random() : std::bit_cast<std::uint32_t>(values[random.below(8)]);
    draw_scalars(random);
  }
  void draw_scalars(Random& random) {
    for (std::uint32_t& s : wave.sgpr) s = random.below(2) == 0 ? random() : random.below(64);
    wave.set_s64(operand::exec, random_mask(random));
    wave.scc = random.below(2);
  }
  std::vector<std::uint32_t> registers;
  Workgroup group;
  Wave wave;
};

LaneTaint random_lanes(Random& random, bool undefined) {
  LaneTaint t;
  for (u64& b : t.undefined) b = undefined ? random_mask(random) : 0;
  t.inexact = random_mask(random);
  t.undefined_from = origin::vector + random.below(100);
  t.inexact_from = origin::instruction(random.below(100));
  return t;
}
BitTaint random_bits(Random& random) {
  return {random_mask(random) & 0xffffffffu, random_mask(random) & 0xffffffffu,
          origin::scalar + random.below(100), origin::instruction(random.below(100))};
}

/// The first register of which two waves' taint differs, an origin counting where there is taint; "" for none.
std::string difference(const WaveTaint& a, const WaveTaint& b) {
  for (std::uint32_t r = 0; r < vgprs; ++r) {
    const LaneTaint &x = a.row(r), &y = b.row(r);
    if (x.undefined != y.undefined || x.inexact != y.inexact) return "row " + std::to_string(r);
    if (x.undefined_lanes() != 0 && x.undefined_from != y.undefined_from)
      return "origin " + std::to_string(r);
    if (x.inexact != 0 && x.inexact_from != y.inexact_from) return "inexact origin " + std::to_string(r);
  }
  for (std::uint32_t code = 0; code <= scalar::scc; ++code) {
    const BitTaint x = a.scalar32(code), y = b.scalar32(code);
    if (x.undefined != y.undefined || x.inexact != y.inexact) return "scalar " + std::to_string(code);
    if (x.undefined != 0 && x.undefined_from != y.undefined_from) return "origin s" + std::to_string(code);
    if (x.inexact != 0 && x.inexact_from != y.inexact_from) return "inexact origin s" + std::to_string(code);
  }
  if (a.row_signature() != b.row_signature() || a.scalar_signature() != b.scalar_signature())
    return "signature";
  return "";
}

/// Calls use(instruction, effects, is_vector, machine, random) for many instructions of the ALUs and the matrix unit.
template <typename Use>
void for_instructions(unsigned trials, Use&& use) {
  Random random(11);
  for (const Format& format : formats()) {
    Machine machine(random);
    for (std::uint32_t number = 0; number < 1u << format.number_bits; ++number) {
      for (unsigned trial = 0; trial < trials; ++trial) {
        const Words words = draw(random, format, number);
        if (!decode(words)) continue;
        const Program program = program_of({words[0], words[1], words[2], endpgm});
        const Instruction& i = program.code()[0].instruction;
        if (i.op == Op::invalid || info(i.op).has(op_flag::branch) || i.gds) continue;
        const Effects e = effects_of(i);
        const bool vector = is_vector(i);
        if (!vector && (e.unit != Unit::salu || e.scalar_writes.empty())) continue;
        machine.draw_scalars(random);
        use(i, e, vector, machine, random);
      }
    }
  }
}

bool names_scalar(const Effects& e, unsigned code) {
  const bool masked = e.exec_masked && (code == operand::exec || code == operand::exec + 1u);
  bool named = masked;
  for (const Registers& r : e.scalar_reads)
    named = named || r.overlaps({static_cast<std::uint16_t>(code), 1});
  return named;
}

}  // namespace

TEST_CASE("What reads nothing tainted leaves what its transfer function leaves") {
  std::set<Op> met;
  for_instructions(
      12, [&](const Instruction& i, const Effects& e, bool vector, Machine& machine, Random& random) {
        if (!clean_in_clean_out(i, e)) return;
        WaveTaint taint(vgprs, all_sgprs, {});
        for (std::uint32_t r = 0; r < vgprs; ++r) taint.set_row(r, LaneTaint());
        for (const Registers& r : e.vector_writes)
          for (unsigned k = 0; k < r.count; ++k) taint.set_row(r.first + k, random_lanes(random, true));
        for (std::uint32_t code = 0; code <= scalar::scc; ++code)
          if (!names_scalar(e, code))
            taint.set_scalar32(code, code == scalar::scc ? BitTaint() : random_bits(random));
        for (const Registers& r : e.vector_reads)
          for (unsigned k = 0; k < r.count; ++k) taint.set_row(r.first + k, LaneTaint());
        WaveTaint whole = taint;
        const Step step{machine.wave, 0, i, 0, 0, e, nullptr};
        write_clean(taint, step);
        if (vector)
          transfer_vector(whole, step, false);
        else
          transfer_scalar(whole, step);
        INFO(disassemble(i));
        REQUIRE(difference(taint, whole) == "");
        met.insert(i.op);
      });
  CHECK(met.size() > 600);
}

TEST_CASE("The short cut for results that are not exact leaves what the transfer function leaves") {
  std::set<Op> met;
  unsigned comparisons = 0, selections = 0;
  for_instructions(
      12, [&](const Instruction& i, const Effects& e, bool vector, Machine& machine, Random& random) {
        if (!vector) return;
        const auto inflow = inflow_of(i, e);
        if (!inflow) return;
        WaveTaint taint(vgprs, all_sgprs, {});
        for (std::uint32_t r = 0; r < vgprs; ++r) taint.set_row(r, LaneTaint());
        const auto soil = [&](const auto& list) {
          for (const Registers& r : list)
            for (unsigned k = 0; k < r.count; ++k)
              if (random.below(4) != 0) taint.set_row(r.first + k, random_lanes(random, false));
        };
        soil(e.vector_reads);
        soil(e.vector_writes);
        WaveTaint whole = taint;
        const Step step{machine.wave, 0, i, 0, 0, e, nullptr};
        const bool approximate = inflow->kind == Inflow::Kind::value && random.below(2) == 0;
        INFO(disassemble(i) << (approximate ? ", approximate" : ""));
        REQUIRE(transfer_inexact(taint, step, *inflow, approximate));
        transfer_vector(whole, step, approximate);
        REQUIRE(difference(taint, whole) == "");
        met.insert(i.op);
        comparisons += inflow->kind == Inflow::Kind::comparison ? 1 : 0;
        selections += inflow->kind == Inflow::Kind::selection ? 1 : 0;
      });
  CHECK(met.size() > 300);
  CHECK(comparisons > 200);
  CHECK(selections > 5);
}

TEST_CASE("A row that nobody wrote is none for the short cut") {
  // v_max_f32 v1, v2, v3; v_cmp_lt_f32 vcc, v2, v3; v_cndmask_b32 v1, v2, v3, vcc
  for (const std::uint32_t word : {0x16020702u, 0x7c820702u, 0x00020702u}) {
    const Program program = program_of({word, endpgm});
    const Instruction& i = program.code()[0].instruction;
    const Effects e = effects_of(i);
    const auto inflow = inflow_of(i, e);
    INFO(disassemble(i));
    REQUIRE(inflow);
    Random random(1);
    Machine machine(random);
    WaveTaint taint(vgprs, all_sgprs, {});  // v2 and v3 are never written
    const WaveTaint before = taint;
    const Step step{machine.wave, 0, i, 0, 0, e, nullptr};
    CHECK_FALSE(transfer_inexact(taint, step, *inflow, false));
    CHECK(difference(taint, before) == "");
  }
}

TEST_CASE("A scalar is live at entry when some path reads it before it is written") {
  const auto live = [](const std::vector<std::uint32_t>& words, unsigned code) {
    const Program program = program_of(words);
    std::vector<Effects> effects;
    for (std::uint32_t k = 0; k < program.size(); ++k)
      effects.push_back(effects_of(program.code()[k].instruction));
    return (live_in(program, effects)[code / 64] >> (code % 64) & 1) != 0;
  };
  constexpr std::uint32_t set_s4 = 0xbe840080, use_s4 = 0xbe850004;      // s_mov_b32 s4, 0; s_mov_b32 s5, s4
  constexpr std::uint32_t compare = 0xbf068006;                          // s_cmp_eq_u32 s6, 0
  constexpr std::uint32_t over_one = 0xbf850001, back_two = 0xbf85fffd;  // s_cbranch_scc1
  CHECK_FALSE(live({set_s4, use_s4, endpgm}, 4));
  CHECK(live({use_s4, set_s4, endpgm}, 4));
  CHECK_FALSE(live({use_s4, set_s4, endpgm}, 5));
  CHECK(live({compare, over_one, set_s4, use_s4, endpgm}, 4));  // the branch passes the write
  CHECK_FALSE(live({compare, set_s4, over_one, set_s4, use_s4, endpgm}, 4));
  CHECK(live({compare, use_s4, set_s4, back_two, endpgm}, 4));  // a loop that reads first
  CHECK_FALSE(live({compare, set_s4, use_s4, back_two, endpgm}, 4));
  CHECK_FALSE(live({endpgm, use_s4}, 4));
  CHECK(live({set_s4, 0xbe801d08, endpgm}, 7));  // s_setpc_b64 s[8:9]: anything may follow
  CHECK_FALSE(live({set_s4, 0xbe801d08, endpgm}, 4));
  CHECK(live({0xbe852a06, endpgm}, 40));  // s_movrels_b32 s5, s6
  CHECK(live({0xbe840206, endpgm}, 4));   // s_cmov_b32 s4, s6 may keep it
  CHECK(live({0xbf850001, endpgm, endpgm}, scalar::scc));
}

}  // namespace attest::device::sim::detect
