// SPDX-License-Identifier: MIT
//
// What of the instruction set executes: every operation in every encoding it has, but for a list kept here.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "device/simulator/exec/fidelity.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"
#include "device/simulator/isa/encodings.h"
#include "device/simulator/tests/random_words.h"

using namespace attest::device::sim;

namespace {

Handler any_handler(const Instruction& i) {
  if (const Handler h = scalar_handler(i)) return h;
  if (const Handler h = vector_handler(i, SimdLevel::baseline)) return h;
  if (const Handler h = matrix_handler(i, SimdLevel::baseline)) return h;
  return memory_handler(i);
}

}  // namespace

TEST_CASE("every operation of gfx942 executes, but for those named here") {
  Random random(942);
  std::set<std::string> all, executed, stopped;
  for (const Format& format : formats())
    for (std::uint32_t number = 0; number < 1u << format.number_bits; ++number)
      for (unsigned trial = 0; trial < format.trials; ++trial) {
        const Decoded decoded = decode(draw(random, format, number));
        if (!decoded) continue;
        const std::string name(info(decoded.instruction.op).name);
        all.insert(name);
        (any_handler(decoded.instruction) != nullptr ? executed : stopped).insert(name);
      }
  CHECK(all.size() == op_count - 1);
  // What fidelity() calls not modelled stops a kernel by name; the rest executes.
  std::set<std::string> not_modelled;
  for (std::size_t op = 1; op < op_count; ++op)
    if (fidelity(static_cast<Op>(op)).exactness == Exactness::not_modelled)
      not_modelled.emplace(info(static_cast<Op>(op)).name);
  std::set<std::string> never = stopped;
  for (const std::string& name : executed) never.erase(name);
  CHECK(never == not_modelled);
  CHECK(not_modelled.size() == 16);
  // Some forms of the others: GDS, which this part does not have, typed loads through LDS, messages to
  // nobody.
  for (const std::string& name : stopped) {
    if (executed.count(name) == 0) continue;
    INFO(name);
    CHECK((name.starts_with("ds_") || name == "buffer_load_format_x" || name == "s_sendmsg"));
  }
}
