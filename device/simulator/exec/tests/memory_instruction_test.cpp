// SPDX-License-Identifier: MIT
//
// Every memory instruction, one at a time, against a model that knows nothing of the handlers: it takes the
// meaning of an instruction from the pieces of its name and moves single bytes, lane by lane.
#include <fmt/format.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/simulator/core/fault.h"
#include "device/simulator/core/memory.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/exec/memory_moves.h"

namespace attest::device::sim {
// Only DS, MUBUF, MTBUF and FLAT are tested here.
namespace {

constexpr std::uint32_t lds_bytes = 4096;
constexpr std::uint32_t scratch_bytes = 512;
constexpr std::uint32_t row_count = 64;
constexpr std::uint64_t region_bytes = 8192;

struct Random {
  std::uint64_t state;
  std::uint64_t operator()() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t x = state ^ state >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
  }
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>((*this)() % n); }
};

/// A wave with everything it can reach filled at random.
struct Machine {
  explicit Machine(std::uint64_t seed)
      : random{seed}, lds(lds_bytes), scratch(scratch_bytes / 4 * lanes), vgprs(row_count * lanes) {
    base = memory.allocate(region_bytes, "a").value();
    other = memory.allocate(region_bytes, "b").value();
    fill(memory.translate(base, region_bytes), region_bytes);
    fill(memory.translate(other, region_bytes), region_bytes);
    fill(lds.data(), lds.size());
    fill(reinterpret_cast<std::byte*>(scratch.data()), scratch.size() * 4);
    fill(reinterpret_cast<std::byte*>(vgprs.data()), vgprs.size() * 4);
    for (auto& s : wave.sgpr) s = static_cast<std::uint32_t>(random());
    group.lds = lds.data();
    group.lds_bytes = lds_bytes;
    wave.group = &group;
    wave.memory = &memory;
    wave.vgpr = vgprs.data();
    wave.vgpr_count = row_count;
    wave.scratch = scratch.data();
    wave.scratch_bytes = scratch_bytes;
    wave.mode = 0xf0;
    // Every SIMD level this machine has, in turn.
    (void)memory_handler(Instruction{});
    use_moves(static_cast<SimdLevel>(seed % (static_cast<std::uint64_t>(host_simd_level()) + 1)));
    set_exec(random.below(3) == 0 ? ~std::uint64_t{0} : random() & random());
  }
  void fill(std::byte* p, std::size_t bytes) {
    for (std::size_t k = 0; k < bytes; ++k) p[k] = static_cast<std::byte>(random());
  }
  void set_exec(std::uint64_t exec) { wave.set_s64(operand::exec, exec); }
  [[nodiscard]] bool active(int lane) const { return (wave.exec() >> lane & 1) != 0; }
  std::uint32_t& reg(std::uint32_t row, int lane) { return vgprs[row * lanes + static_cast<unsigned>(lane)]; }
  std::byte* global(std::uint64_t address) { return memory.translate(address, 1); }
  std::byte* private_byte(std::uint32_t offset, int lane) {
    return reinterpret_cast<std::byte*>(&scratch[offset / 4 * lanes + static_cast<unsigned>(lane)]) +
           offset % 4;
  }

  Random random;
  Memory memory{0};
  std::vector<std::byte> lds;
  std::vector<std::uint32_t> scratch;
  std::vector<std::uint32_t> vgprs;
  std::uint64_t base = 0, other = 0;
  Workgroup group;
  Wave wave;
};

using At = std::function<std::byte*(int lane, std::uint32_t byte)>;

/// What a load or store does, from its name.
struct Meaning {
  bool store = false, sign = false;
  std::uint32_t bytes = 4;
  int half = -1;  ///< D16: 0 low, 1 high
};

Meaning meaning(const std::string& name) {
  Meaning m;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  m.store = has("store") || has("write");
  m.sign = has("sbyte") || has("sshort") || has("_i8") || has("_i16");
  if (has("byte") || has("_u8") || has("_i8") || has("_b8")) m.bytes = 1;
  if (has("short") || has("_u16") || has("_i16") || has("_b16")) m.bytes = 2;
  if (has("x2") || has("b64")) m.bytes = 8;
  if (has("x3") || has("b96")) m.bytes = 12;
  if (has("x4") || has("b128")) m.bytes = 16;
  if (has("d16")) m.half = has("hi") ? 1 : 0;
  return m;
}

void model_move(Machine& machine, const Meaning& m, std::uint32_t row, const At& at) {
  for (int lane = 0; lane < lanes; ++lane) {
    if (!machine.active(lane)) continue;
    if (m.store) {
      for (std::uint32_t b = 0; b < m.bytes; ++b) {
        const std::uint32_t value = machine.reg(row + b / 4, lane);
        *at(lane, b) = static_cast<std::byte>(value >> (8 * (b % 4) + (m.half == 1 ? 16 : 0)));
      }
      continue;
    }
    std::vector<std::uint32_t> result((m.bytes + 3) / 4, 0);
    for (std::uint32_t b = 0; b < m.bytes; ++b) {
      result[b / 4] |= static_cast<std::uint32_t>(*at(lane, b)) << (8 * (b % 4));
    }
    if (m.sign && (result[0] >> (8 * m.bytes - 1) & 1) != 0) result[0] |= ~0u << (8 * m.bytes);
    for (std::uint32_t k = 0; k < result.size(); ++k) {
      std::uint32_t& target = machine.reg(row + k, lane);
      if (m.half == 0) {
        target = (target & 0xffff0000u) | (result[k] & 0xffff);
      } else if (m.half == 1) {
        target = (target & 0xffffu) | result[k] << 16;
      } else {
        target = result[k];
      }
    }
  }
}

std::uint16_t v(unsigned row) {
  return static_cast<std::uint16_t>(operand::vgpr0 + row);
}

Instruction make(const std::string& name, Encoding encoding) {
  Instruction i;
  i.op = find_op(name);
  REQUIRE(i.op != Op::invalid);
  i.encoding = encoding;
  i.size_bytes = 8;
  return i;
}

void execute(Machine& machine, const Instruction& i) {
  const Handler handler = memory_handler(i);
  REQUIRE(handler != nullptr);
  handler(machine.wave, i);
}

void compare(Machine& a, Machine& b) {
  CHECK(a.vgprs == b.vgprs);
  CHECK(a.lds == b.lds);
  CHECK(a.scratch == b.scratch);
  for (const std::uint64_t region : {a.base, a.other}) {
    CHECK(std::equal(a.global(region), a.global(region) + region_bytes, b.global(region)));
  }
}

const char* const move_suffixes[] = {
    "load_ubyte",        "load_sbyte",        "load_ushort",        "load_sshort",       "load_dword",
    "load_dwordx2",      "load_dwordx3",      "load_dwordx4",       "load_ubyte_d16",    "load_ubyte_d16_hi",
    "load_sbyte_d16",    "load_sbyte_d16_hi", "load_short_d16",     "load_short_d16_hi", "store_byte",
    "store_byte_d16_hi", "store_short",       "store_short_d16_hi", "store_dword",       "store_dwordx2",
    "store_dwordx3",     "store_dwordx4"};

void set_address(Machine& machine, std::uint32_t row, int lane, std::uint64_t address) {
  machine.reg(row, lane) = static_cast<std::uint32_t>(address);
  machine.reg(row + 1, lane) = static_cast<std::uint32_t>(address >> 32);
}

}  // namespace

TEST_CASE("global loads and stores, both address forms, lanes in one region or two") {
  for (const char* suffix : move_suffixes) {
    const std::string name = std::string("global_") + suffix;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::global);
      const Meaning m = meaning(name);
      Random choose{seed};
      i.imm = static_cast<std::int32_t>(choose.below(200)) - 100;
      i.addr = v(10);
      (m.store ? i.data[0] : i.dst) =
          v(seed % 4 == 3 && !m.store ? 10 : 20);  // also: destination is the address
      const std::uint32_t row = seed % 4 == 3 && !m.store ? 10 : 20;
      const bool scalar_base = seed % 2 == 0;
      if (scalar_base) i.saddr = 4;
      std::vector<std::uint64_t> address(lanes);
      const bool two_regions = !scalar_base && choose.below(2) == 0;
      for (Machine* machine : {&a, &b}) {
        Random r{seed + 99};
        const std::uint64_t start = machine->base + 256;
        if (scalar_base) machine->wave.set_s64(4, start - 5000);
        for (int l = 0; l < lanes; ++l) {
          // Half of the cases contiguous, the others anywhere; unaligned now and then. Stores must not
          // overlap, or lane order would count.
          std::uint64_t offset =
              (m.store || seed % 3 == 0) ? static_cast<unsigned>(l) * m.bytes : r.below(6000);
          if (m.store && seed % 5 == 0) offset = static_cast<unsigned>(63 - l) * 17 + 1;
          std::uint64_t target = start + offset;
          if (two_regions && l % 3 == 1) target = machine->other + 256 + offset;
          address[static_cast<std::size_t>(l)] = target;
          const std::uint64_t in_register = target - static_cast<std::uint64_t>(std::int64_t{i.imm});
          if (scalar_base) {
            machine->reg(10, l) = static_cast<std::uint32_t>(in_register - machine->wave.s64(4));
          } else {
            set_address(*machine, 10, l, in_register);
          }
        }
      }
      execute(a, i);
      model_move(b, m, row,
                 [&](int l, std::uint32_t k) { return b.global(address[static_cast<std::size_t>(l)] + k); });
      compare(a, b);
    }
  }
}

TEST_CASE("flat loads and stores reach memory, LDS and scratch lane by lane") {
  for (const char* suffix : move_suffixes) {
    const std::string name = std::string("flat_") + suffix;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::flat);
      const Meaning m = meaning(name);
      i.imm = static_cast<std::int32_t>(seed * 3);
      i.addr = v(10);
      (m.store ? i.data[0] : i.dst) = v(20);
      std::vector<std::uint64_t> offset(lanes);
      std::vector<std::uint32_t> where(lanes);
      for (Machine* machine : {&a, &b}) {
        Random r{seed + 7};
        for (int l = 0; l < lanes; ++l) {
          const auto k = static_cast<std::size_t>(l);
          where[k] = seed % 4 == 0 ? 1 : seed % 4 == 1 ? 2 : r.below(3);
          offset[k] = where[k] == 2 ? r.below(scratch_bytes - 17) : static_cast<unsigned>(l) * 17 + 100;
          const std::uint64_t start = where[k] == 0   ? machine->base
                                      : where[k] == 1 ? aperture::shared_base
                                                      : aperture::private_base;
          set_address(*machine, 10, l, start + offset[k] - static_cast<std::uint64_t>(i.imm));
        }
      }
      execute(a, i);
      model_move(b, m, 20, [&](int l, std::uint32_t byte) {
        const auto k = static_cast<std::size_t>(l);
        if (where[k] == 0) return b.global(b.base + offset[k] + byte);
        if (where[k] == 1) return b.lds.data() + offset[k] + byte;
        return b.private_byte(static_cast<std::uint32_t>(offset[k]) + byte, l);
      });
      compare(a, b);
    }
  }
}

TEST_CASE("scratch loads and stores, in every address form") {
  for (const char* suffix : move_suffixes) {
    const std::string name = std::string("scratch_") + suffix;
    for (std::uint64_t seed = 0; seed < 32; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::scratch);
      const Meaning m = meaning(name);
      (m.store ? i.data[0] : i.dst) = v(20);
      const bool with_vgpr = seed % 2 == 0;
      const bool with_sgpr = seed / 2 % 2 == 0;
      if (with_vgpr) i.addr = v(10);
      if (with_sgpr) i.saddr = 33;
      std::vector<std::uint32_t> offset(lanes);
      for (Machine* machine : {&a, &b}) {
        Random r{seed + 7};
        const bool uniform = r.below(2) == 0;
        const std::uint32_t imm = r.below(2) == 0 ? r.below(100) * 4 : r.below(400);
        i.imm = static_cast<std::int32_t>(imm);
        machine->wave.sgpr[33] = 20;
        for (int l = 0; l < lanes; ++l) {
          machine->reg(10, l) = uniform ? 8 : r.below(40);
          offset[static_cast<std::size_t>(l)] =
              imm + (with_sgpr ? 20 : 0) + (with_vgpr ? machine->reg(10, l) : 0);
        }
      }
      execute(a, i);
      model_move(b, m, 20, [&](int l, std::uint32_t k) {
        return b.private_byte(offset[static_cast<std::size_t>(l)] + k, l);
      });
      compare(a, b);
    }
  }
}

TEST_CASE("scratch loads to LDS put a lane's element where global ones do") {
  for (const char* suffix : {"ubyte", "sbyte", "ushort", "sshort", "dword"}) {
    INFO(suffix);
    Machine a(3), b(3);
    Instruction to_register = make(std::string("scratch_load_") + suffix, Encoding::scratch);
    to_register.dst = v(20);
    to_register.addr = v(10);
    to_register.imm = 8;
    Instruction to_lds = make(std::string("scratch_load_lds_") + suffix, Encoding::scratch);
    to_lds.addr = v(10);
    to_lds.imm = 8;
    for (Machine* machine : {&a, &b}) {
      machine->wave.sgpr[operand::m0] = 16;
      for (int l = 0; l < lanes; ++l) machine->reg(10, l) = static_cast<std::uint32_t>(l * 3 % 40);
    }
    Machine c(3);
    for (int l = 0; l < lanes; ++l) c.reg(10, l) = static_cast<std::uint32_t>(l * 3 % 40);
    execute(c, to_register);
    execute(a, to_lds);
    for (int l = 0; l < lanes; ++l) {
      if ((b.wave.exec() >> l & 1) == 0) continue;
      const std::uint32_t value = c.reg(20, l);
      std::memcpy(b.lds.data() + 16 + 8 + 4 * l, &value, 4);
    }
    compare(a, b);
  }
}

TEST_CASE("DS reads and writes") {
  const char* const names[] = {
      "ds_read_u8",         "ds_read_i8",     "ds_read_u16",         "ds_read_i16",     "ds_read_u8_d16",
      "ds_read_u8_d16_hi",  "ds_read_i8_d16", "ds_read_i8_d16_hi",   "ds_read_u16_d16", "ds_read_u16_d16_hi",
      "ds_read_b32",        "ds_read_b64",    "ds_read_b96",         "ds_read_b128",    "ds_write_b8",
      "ds_write_b8_d16_hi", "ds_write_b16",   "ds_write_b16_d16_hi", "ds_write_b32",    "ds_write_b64",
      "ds_write_b96",       "ds_write_b128"};
  for (const char* name : names) {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::ds);
      const Meaning m = meaning(name);
      i.imm = static_cast<std::int32_t>(seed * 5);
      i.addr = v(10);
      const std::uint32_t row = !m.store && seed % 4 == 1 ? 10 : 20;
      (m.store ? i.data[0] : i.dst) = v(row);
      std::vector<std::uint32_t> offset(lanes);
      for (Machine* machine : {&a, &b}) {
        Random r{seed + 7};
        for (int l = 0; l < lanes; ++l) {
          const auto k = static_cast<std::size_t>(l);
          offset[k] = m.store ? static_cast<unsigned>(l) * 17 + 200 : r.below(lds_bytes - 16);
          machine->reg(10, l) = offset[k] - static_cast<std::uint32_t>(i.imm);  // wraps at 32 bits
        }
      }
      execute(a, i);
      model_move(b, m, row, [&](int l, std::uint32_t k) {
        return b.lds.data() + offset[static_cast<std::size_t>(l)] + k;
      });
      compare(a, b);
    }
  }
}

TEST_CASE("DS two-address forms") {
  for (const char* name : {"ds_read2_b32", "ds_read2_b64", "ds_read2st64_b32", "ds_read2st64_b64",
                           "ds_write2_b32", "ds_write2_b64", "ds_write2st64_b32", "ds_write2st64_b64"}) {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::ds);
      Meaning m = meaning(name);
      const bool st64 = std::string(name).find("st64") != std::string::npos;
      m.bytes = std::string(name).ends_with("b64") ? 8 : 4;
      Random r{seed};
      i.imm = static_cast<std::int32_t>(r.below(4));
      i.offset1 = static_cast<std::uint8_t>(4 + r.below(3));
      i.addr = v(10);
      const std::uint32_t row = !m.store && seed % 3 == 1 ? 9 : 20;
      if (m.store) {
        i.data[0] = v(20);
        i.data[1] = v(30);
      } else {
        i.dst = v(row);
      }
      std::vector<std::uint32_t> offset(lanes);
      for (Machine* machine : {&a, &b}) {
        Random where{seed + 3};
        for (int l = 0; l < lanes; ++l) {
          offset[static_cast<std::size_t>(l)] =
              m.store ? static_cast<unsigned>(l) * (st64 ? 8 : 200) % 500 / 8 * 8 : where.below(400);
          machine->reg(10, l) = offset[static_cast<std::size_t>(l)];
        }
        if (m.store) {
          // Distinct places: the first 8 lanes only.
          machine->set_exec(st64 ? ~std::uint64_t{0} : 0x7);
          for (int l = 0; l < lanes; ++l) {
            offset[static_cast<std::size_t>(l)] = static_cast<unsigned>(l) * 8 * (st64 ? 1 : 16);
            machine->reg(10, l) = offset[static_cast<std::size_t>(l)];
          }
          if (st64 && m.bytes == 8) machine->set_exec(0x3f);
        }
      }
      execute(a, i);
      const std::uint32_t unit = m.bytes * (st64 ? 64 : 1);
      const std::uint32_t second_row = m.store ? 30 : row + m.bytes / 4;
      const auto first = [&](int l, std::uint32_t k) {
        return b.lds.data() + offset[static_cast<std::size_t>(l)] + static_cast<unsigned>(i.imm) * unit + k;
      };
      const auto second = [&](int l, std::uint32_t k) {
        return b.lds.data() + offset[static_cast<std::size_t>(l)] + i.offset1 * unit + k;
      };
      model_move(b, m, m.store ? 20 : row, first);
      model_move(b, m, second_row, second);
      compare(a, b);
    }
  }
}

// --- atomics
// -----------------------------------------------------------------------------------------------------------

namespace {

float as_float(std::uint64_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x));
}
double as_double(std::uint64_t x) {
  return std::bit_cast<double>(x);
}
std::uint64_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

/// new value = f(old, data, second data), width in bits: 32 or 64.
using Rule =
    std::function<std::uint64_t(std::uint64_t old, std::uint64_t data, std::uint64_t second, int width)>;

std::int64_t sign(std::uint64_t x, int width) {
  return width == 32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(x))
                     : static_cast<std::int64_t>(x);
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> table = {
      {"add", [](auto o, auto d, auto, int) { return o + d; }},
      {"sub", [](auto o, auto d, auto, int) { return o - d; }},
      {"rsub", [](auto o, auto d, auto, int) { return d - o; }},
      {"inc", [](auto o, auto d, auto, int) { return o >= d ? 0 : o + 1; }},
      {"dec", [](auto o, auto d, auto, int) { return o == 0 || o > d ? d : o - 1; }},
      {"smin", [](auto o, auto d, auto, int w) { return sign(o, w) < sign(d, w) ? o : d; }},
      {"smax", [](auto o, auto d, auto, int w) { return sign(o, w) > sign(d, w) ? o : d; }},
      {"umin", [](auto o, auto d, auto, int) { return std::min(o, d); }},
      {"umax", [](auto o, auto d, auto, int) { return std::max(o, d); }},
      {"and", [](auto o, auto d, auto, int) { return o & d; }},
      {"or", [](auto o, auto d, auto, int) { return o | d; }},
      {"xor", [](auto o, auto d, auto, int) { return o ^ d; }},
      {"swap", [](auto, auto d, auto, int) { return d; }},
      {"mskor", [](auto o, auto d, auto s, int) { return (o & ~d) | s; }},
      {"cmpst", [](auto o, auto d, auto s, int) { return o == d ? s : o; }},
      {"cmpswap", [](auto o, auto d, auto s, int) { return o == s ? d : o; }},
  };
  return table;
}

struct AtomicCase {
  const char* name;
  const char* rule;
  int width;
};

/// Small data, so that comparisons go both ways and equal values happen.
void small_words(Machine& machine, std::byte* p, std::size_t words, int width) {
  for (std::size_t k = 0; k < words; ++k) {
    std::uint64_t value = machine.random.below(5);
    if (machine.random.below(3) == 0) value = ~value;
    std::memcpy(p + k * static_cast<unsigned>(width) / 8, &value, static_cast<unsigned>(width) / 8);
  }
}

void small_rows(Machine& machine, std::uint32_t row, int width) {
  for (int l = 0; l < lanes; ++l) {
    std::uint64_t value = machine.random.below(5);
    if (machine.random.below(3) == 0) value = ~value;
    machine.reg(row, l) = static_cast<std::uint32_t>(value);
    if (width == 64) machine.reg(row + 1, l) = static_cast<std::uint32_t>(value >> 32);
  }
}

std::uint64_t row_value(Machine& machine, std::uint32_t row, int l, int width) {
  return machine.reg(row, l) | (width == 64 ? std::uint64_t{machine.reg(row + 1, l)} << 32 : 0);
}

void model_atomic(Machine& machine, const Rule& rule, int width, std::uint32_t data, std::uint32_t second,
                  int result, const At& at) {
  const auto size = static_cast<unsigned>(width) / 8;
  for (int l = 0; l < lanes; ++l) {
    if (!machine.active(l)) continue;
    std::uint64_t old = 0;
    std::memcpy(&old, at(l, 0), size);
    const std::uint64_t value =
        rule(old, row_value(machine, data, l, width), row_value(machine, second, l, width), width);
    std::memcpy(at(l, 0), &value, size);
    if (result < 0) continue;
    machine.reg(static_cast<std::uint32_t>(result), l) = static_cast<std::uint32_t>(old);
    if (width == 64)
      machine.reg(static_cast<std::uint32_t>(result) + 1, l) = static_cast<std::uint32_t>(old >> 32);
  }
}

}  // namespace

TEST_CASE("global, flat and buffer atomics, with and without the old value, many lanes on one word") {
  for (const char* space : {"global", "flat", "buffer"}) {
    for (const char* op : {"swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or",
                           "xor", "inc", "dec"}) {
      for (const int width : {32, 64}) {
        const std::string name = fmt::format("{}_atomic_{}{}", space, op, width == 64 ? "_x2" : "");
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
          INFO(name << " seed " << seed);
          Machine a(seed), b(seed);
          const bool buffer = std::string(space) == "buffer";
          Instruction i = make(name, buffer                         ? Encoding::mubuf
                                     : std::string(space) == "flat" ? Encoding::flat
                                                                    : Encoding::global);
          i.addr = v(10);
          i.data[0] = v(20);
          i.sc0 = seed % 2 == 0;
          if (i.sc0) i.dst = v(buffer ? 20 : 40);
          i.saddr = buffer ? 8 : operand::none;
          i.soffset = buffer ? operand::zero : operand::none;
          i.offen = buffer;
          std::vector<std::uint32_t> word(lanes);
          const auto size = static_cast<unsigned>(width) / 8;
          for (Machine* machine : {&a, &b}) {
            small_words(*machine, machine->global(machine->base), 16, width);
            small_rows(*machine, 20, width);
            small_rows(*machine, 20 + size / 4, width);
            machine->wave.sgpr[8] = static_cast<std::uint32_t>(machine->base);
            machine->wave.sgpr[9] = static_cast<std::uint32_t>(machine->base >> 32);
            machine->wave.sgpr[10] = 16 * size;
            machine->wave.sgpr[11] = 0;
            Random r{seed};
            for (int l = 0; l < lanes; ++l) {
              word[static_cast<std::size_t>(l)] = r.below(16) * size;
              set_address(*machine, 10, l, (buffer ? 0 : machine->base) + word[static_cast<std::size_t>(l)]);
            }
          }
          execute(a, i);
          model_atomic(
              b, rules().at(op), width, 20, 20 + size / 4, i.sc0 ? (buffer ? 20 : 40) : -1,
              [&](int l, std::uint32_t) { return b.global(b.base + word[static_cast<std::size_t>(l)]); });
          compare(a, b);
        }
      }
    }
  }
}

TEST_CASE("DS atomics, with and without the old value") {
  const AtomicCase cases[] = {
      {"ds_add{}_u32", "add", 32},     {"ds_sub{}_u32", "sub", 32},     {"ds_rsub{}_u32", "rsub", 32},
      {"ds_inc{}_u32", "inc", 32},     {"ds_dec{}_u32", "dec", 32},     {"ds_min{}_i32", "smin", 32},
      {"ds_max{}_i32", "smax", 32},    {"ds_min{}_u32", "umin", 32},    {"ds_max{}_u32", "umax", 32},
      {"ds_and{}_b32", "and", 32},     {"ds_or{}_b32", "or", 32},       {"ds_xor{}_b32", "xor", 32},
      {"ds_mskor{}_b32", "mskor", 32}, {"ds_cmpst{}_b32", "cmpst", 32}, {"ds_add{}_u64", "add", 64},
      {"ds_sub{}_u64", "sub", 64},     {"ds_rsub{}_u64", "rsub", 64},   {"ds_inc{}_u64", "inc", 64},
      {"ds_dec{}_u64", "dec", 64},     {"ds_min{}_i64", "smin", 64},    {"ds_max{}_i64", "smax", 64},
      {"ds_min{}_u64", "umin", 64},    {"ds_max{}_u64", "umax", 64},    {"ds_and{}_b64", "and", 64},
      {"ds_or{}_b64", "or", 64},       {"ds_xor{}_b64", "xor", 64},     {"ds_mskor{}_b64", "mskor", 64},
      {"ds_cmpst{}_b64", "cmpst", 64}, {"ds_wrxchg{}_b32", "swap", 32}, {"ds_wrxchg{}_b64", "swap", 64}};
  for (const AtomicCase& c : cases) {
    for (const char* form : {"", "_rtn"}) {
      const std::string name = fmt::format(fmt::runtime(c.name), form);
      if (find_op(name) == Op::invalid && std::string(c.rule) == "swap")
        continue;  // exists only with the old value
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        INFO(name << " seed " << seed);
        Machine a(seed), b(seed);
        Instruction i = make(name, Encoding::ds);
        i.addr = v(10);
        i.imm = 64;
        i.data[0] = v(20);
        if (std::string(c.rule) == "mskor" || std::string(c.rule) == "cmpst") i.data[1] = v(30);
        if (*form != 0) i.dst = v(40);
        const auto size = static_cast<unsigned>(c.width) / 8;
        std::vector<std::uint32_t> word(lanes);
        for (Machine* machine : {&a, &b}) {
          small_words(*machine, machine->lds.data() + 64, 16, c.width);
          small_rows(*machine, 20, c.width);
          small_rows(*machine, 30, c.width);
          Random r{seed};
          for (int l = 0; l < lanes; ++l) {
            word[static_cast<std::size_t>(l)] = r.below(16) * size;
            machine->reg(10, l) = word[static_cast<std::size_t>(l)];
          }
        }
        execute(a, i);
        model_atomic(b, rules().at(c.rule), c.width, 20, 30, *form != 0 ? 40 : -1, [&](int l, std::uint32_t) {
          return b.lds.data() + 64 + word[static_cast<std::size_t>(l)];
        });
        compare(a, b);
      }
    }
  }
}

TEST_CASE("floating-point atomics round once, in lane order") {
  struct Case {
    const char* name;
    Encoding encoding;
    int width;
    Rule rule;
  };
  const auto flush = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; };
  const Rule add_flushed = [&](auto o, auto d, auto, int) {
    return bits(flush(flush(as_float(o)) + flush(as_float(d))));
  };
  const Rule add_kept = [](auto o, auto d, auto, int) { return bits(as_float(o) + as_float(d)); };
  const Rule add_double = [](auto o, auto d, auto, int) { return bits(as_double(o) + as_double(d)); };
  const Rule min_double = [](auto o, auto d, auto, int) { return as_double(d) < as_double(o) ? d : o; };
  const Rule max_double = [](auto o, auto d, auto, int) { return as_double(d) > as_double(o) ? d : o; };
  const Case cases[] = {{"global_atomic_add_f32", Encoding::global, 32, add_flushed},
                        {"flat_atomic_add_f32", Encoding::flat, 32, add_flushed},
                        {"ds_add_rtn_f32", Encoding::ds, 32, add_kept},
                        {"global_atomic_add_f64", Encoding::global, 64, add_double},
                        {"global_atomic_min_f64", Encoding::global, 64, min_double},
                        {"global_atomic_max_f64", Encoding::global, 64, max_double},
                        {"ds_add_rtn_f64", Encoding::ds, 64, add_double},
                        {"ds_min_rtn_f64", Encoding::ds, 64, min_double},
                        {"ds_max_rtn_f64", Encoding::ds, 64, max_double}};
  for (const Case& c : cases) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      INFO(c.name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(c.name, c.encoding);
      i.addr = v(10);
      i.data[0] = v(20);
      i.dst = v(40);
      i.sc0 = true;
      const bool in_lds = c.encoding == Encoding::ds;
      const auto size = static_cast<unsigned>(c.width) / 8;
      std::vector<std::uint32_t> word(lanes);
      for (Machine* machine : {&a, &b}) {
        Random r{seed};
        const auto value = [&](int k) -> std::uint64_t {
          const double x = std::ldexp(static_cast<double>(r.below(1u << 24)) - (1 << 23),
                                      c.width == 32 ? (k % 5 == 0 ? -150 : -20) : (k % 5 == 0 ? -1080 : -40));
          return c.width == 32 ? bits(static_cast<float>(x)) : bits(x);
        };
        std::byte* words = in_lds ? machine->lds.data() : machine->global(machine->base);
        for (int k = 0; k < 4; ++k) {
          const std::uint64_t x = value(k);
          std::memcpy(words + static_cast<unsigned>(k) * size, &x, size);
        }
        for (int l = 0; l < lanes; ++l) {
          const std::uint64_t x = value(l);
          machine->reg(20, l) = static_cast<std::uint32_t>(x);
          if (c.width == 64) machine->reg(21, l) = static_cast<std::uint32_t>(x >> 32);
          word[static_cast<std::size_t>(l)] = r.below(4) * size;
          set_address(*machine, 10, l, (in_lds ? 0 : machine->base) + word[static_cast<std::size_t>(l)]);
        }
      }
      execute(a, i);
      model_atomic(b, c.rule, c.width, 20, 20, 40, [&](int l, std::uint32_t) {
        return (in_lds ? b.lds.data() : b.global(b.base)) + word[static_cast<std::size_t>(l)];
      });
      compare(a, b);
    }
  }
}

namespace {

/// f16 and bf16 by search: the double nearest to x among all values, ties to the even encoding.
double small_value(std::uint32_t h, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(h >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(h) & ((1 << mantissa_bits) - 1);
  const double s = (h >> 15) != 0 ? -1 : 1;
  if (exponent == 0) return s * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return s * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

std::uint32_t nearest(double x, int exponent_bits, int mantissa_bits) {
  const std::uint32_t sign_bit = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  std::uint32_t low = 0;
  std::uint32_t high = ((1u << exponent_bits) - 1)
                       << mantissa_bits;  // infinity's encoding, as the next value
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (small_value(middle, exponent_bits, mantissa_bits) <= x ? low : high) = middle;
  }
  const double below = x - small_value(low, exponent_bits, mantissa_bits);
  const double above = small_value(high, exponent_bits, mantissa_bits) - x;
  if (above < below || (above == below && low % 2 == 1)) ++low;
  return sign_bit | low;
}

}  // namespace

TEST_CASE("packed half and bf16 atomics round to nearest even") {
  for (const auto& [name, exponent_bits, mantissa_bits] :
       {std::tuple{"global_atomic_pk_add_f16", 5, 10}, std::tuple{"global_atomic_pk_add_bf16", 8, 7}}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::global);
      i.addr = v(10);
      i.data[0] = v(20);
      const std::uint32_t finite = exponent_bits == 5 ? 0x7bff : 0x7f00;
      for (Machine* machine : {&a, &b}) {
        Random r{seed};
        const auto half = [&] {
          // Neighbouring exponents, so that sums are rounded; subnormals in every fourth case.
          std::uint32_t h = r.below(finite);
          if (seed % 4 != 0) h = (h & 0x07ff) + 0x3000;
          if (seed % 4 == 0) h &= 0x0fff;
          return h | r.below(2) << 15;
        };
        for (int l = 0; l < lanes; ++l) {
          const std::uint32_t word = half() | half() << 16;
          std::memcpy(machine->global(machine->base) + 4 * l, &word, 4);
          machine->reg(20, l) = half() | half() << 16;
          set_address(*machine, 10, l, machine->base + 4u * static_cast<unsigned>(l));
        }
      }
      execute(a, i);
      const int e = exponent_bits, m = mantissa_bits;
      model_atomic(
          b,
          [e, m](auto o, auto d, auto, int) {
            std::uint64_t result = 0;
            for (int k = 0; k < 2; ++k) {
              const double x = small_value(static_cast<std::uint32_t>(o >> (16 * k)) & 0xffff, e, m) +
                               small_value(static_cast<std::uint32_t>(d >> (16 * k)) & 0xffff, e, m);
              result |= std::uint64_t{nearest(x, e, m)} << (16 * k);
            }
            return result;
          },
          32, 20, 20, -1, [&](int l, std::uint32_t) { return b.global(b.base) + 4 * l; });
      compare(a, b);
    }
  }
}

// --- buffers
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("buffer loads and stores clip per dword and address as the descriptor says") {
  for (const char* suffix : move_suffixes) {
    const std::string name = std::string("buffer_") + suffix;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      Instruction i = make(name, Encoding::mubuf);
      const Meaning m = meaning(name);
      Random r{seed};
      i.offen = r.below(4) != 0;
      i.idxen = r.below(3) == 0;
      i.imm = static_cast<std::int32_t>(r.below(64));
      i.saddr = 12;
      i.soffset = r.below(2) == 0 ? 40 : operand::zero;
      if (i.offen || i.idxen) i.addr = v(10);
      (m.store ? i.data[0] : i.dst) = v(20);
      const std::uint32_t stride = r.below(2) == 0 ? 0 : 32;
      const bool swizzle = stride != 0 && r.below(3) == 0;
      const bool by_record = i.idxen && stride != 0;
      const bool add_tid = swizzle;
      const std::uint32_t records = by_record ? 40 : 1000 + r.below(8);
      const std::uint32_t soffset = i.soffset == 40 ? 24 : 0;
      std::vector<std::uint64_t> place(lanes);
      std::vector<std::uint32_t> inside(lanes);  // bytes
      for (Machine* machine : {&a, &b}) {
        Random q{seed + 5};
        machine->wave.sgpr[12] = static_cast<std::uint32_t>(machine->base);
        machine->wave.sgpr[13] =
            static_cast<std::uint32_t>(machine->base >> 32) | stride << 16 | (swizzle ? 1u << 31 : 0);
        machine->wave.sgpr[14] = records;
        machine->wave.sgpr[15] = add_tid ? 1u << 23 : 0;
        machine->wave.sgpr[40] = 24;
        // Stores of several lanes to one byte would depend on their order.
        if (m.store && !i.offen && !i.idxen && !add_tid) machine->set_exec(std::uint64_t{1} << q.below(64));
        for (int l = 0; l < lanes; ++l) {
          const std::uint32_t index = i.idxen ? (m.store ? static_cast<unsigned>(l) : q.below(60)) : 0;
          std::uint32_t offset = 0;
          if (i.offen)
            offset = m.store ? (i.idxen && stride != 0 ? 0u : static_cast<unsigned>(l) * 17) : q.below(1100);
          if (by_record && i.offen && !m.store) offset = q.below(16);
          if (add_tid) offset %= 200;
          if (i.idxen) machine->reg(10, l) = index;
          if (i.offen) machine->reg(i.idxen ? 11 : 10, l) = offset;
          const std::uint32_t o = offset + static_cast<unsigned>(i.imm);
          const std::uint64_t record = index + (add_tid ? static_cast<unsigned>(l) : 0);
          const auto k = static_cast<std::size_t>(l);
          if (add_tid) {
            place[k] =
                machine->base + soffset + (record / 8 * stride + o / 4 * 4) * 8 + record % 8 * 4 + o % 4;
          } else {
            place[k] = machine->base + soffset + record * stride + o;
          }
          if (add_tid && !i.idxen) {
            inside[k] = m.bytes;
          } else if (by_record) {
            inside[k] = index < records ? m.bytes : 0;
          } else {
            const std::uint32_t end = o + soffset;
            const std::uint32_t room = end < records ? records - end : 0;
            inside[k] = m.bytes <= 4 ? (room >= m.bytes ? m.bytes : 0) : std::min(m.bytes, room / 4 * 4);
          }
        }
        if (m.store && add_tid) machine->set_exec(1);
        if (m.store && i.idxen && !i.offen && stride == 0) machine->set_exec(2);
      }
      execute(a, i);
      std::byte sink[16] = {};
      const std::byte zero{0};
      std::byte nothing = zero;
      model_move(b, m, 20, [&](int l, std::uint32_t k) -> std::byte* {
        const auto lane = static_cast<std::size_t>(l);
        if (k >= inside[lane]) return m.store ? &sink[k] : &(nothing = zero);
        return b.global(place[lane] + k);
      });
      compare(a, b);
    }
  }
}

TEST_CASE(
    "loads into LDS put lane l at M0 + offset + 4 l, offset on both sides; what the descriptor clips is "
    "zero; buffer loads take M0 as it is, others without the low bits") {
  for (const char* name :
       {"buffer_load_dword", "buffer_load_ubyte", "buffer_load_sbyte", "buffer_load_ushort",
        "buffer_load_sshort", "global_load_lds_dword", "global_load_lds_ubyte", "global_load_lds_sbyte",
        "global_load_lds_ushort", "global_load_lds_sshort"}) {
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
      INFO(name << " seed " << seed);
      Machine a(seed), b(seed);
      const bool buffer = std::string(name).starts_with("buffer");
      Instruction i = make(name, buffer ? Encoding::mubuf : Encoding::global);
      const Meaning m = meaning(name);
      i.imm = 256;
      i.addr = v(10);
      i.offen = i.lds = buffer;
      i.saddr = buffer ? 12 : operand::none;
      i.soffset = operand::zero;
      std::vector<std::uint32_t> offset(lanes);
      const auto low = static_cast<std::uint32_t>(seed % 4);
      for (Machine* machine : {&a, &b}) {
        Random r{seed};
        machine->wave.sgpr[operand::m0] = (buffer ? 0xabcd0400 : 0xabcc0400) | low;
        machine->wave.sgpr[12] = static_cast<std::uint32_t>(machine->base);
        machine->wave.sgpr[13] = static_cast<std::uint32_t>(machine->base >> 32);
        machine->wave.sgpr[14] = 2048;
        machine->wave.sgpr[15] = 0;
        for (int l = 0; l < lanes; ++l) {
          offset[static_cast<std::size_t>(l)] = r.below(2500) / 4 * 4;
          set_address(*machine, 10, l, (buffer ? 0 : machine->base) + offset[static_cast<std::size_t>(l)]);
        }
      }
      execute(a, i);
      for (int l = 0; l < lanes; ++l) {
        if (!b.active(l)) continue;
        const std::uint64_t from = offset[static_cast<std::size_t>(l)] + 256;
        std::uint32_t value = 0;
        if (!buffer || from + m.bytes <= 2048) std::memcpy(&value, b.global(b.base + from), m.bytes);
        if (m.sign && (value >> (8 * m.bytes - 1) & 1) != 0) value |= ~0u << (8 * m.bytes);
        std::memcpy(b.lds.data() + 0x400 + (buffer ? low : 0) + 256 + 4 * l, &value, 4);
      }
      compare(a, b);
    }
  }
}

TEST_CASE("M0 of a load into LDS has 16 bits for buffer loads, 18 for others: those may lie past its end") {
  for (const bool buffer : {true, false}) {
    Machine m(1);
    Instruction i = make(buffer ? "buffer_load_dword" : "global_load_lds_dword",
                         buffer ? Encoding::mubuf : Encoding::global);
    i.addr = v(10);
    i.offen = i.lds = buffer;
    i.saddr = buffer ? 12 : operand::none;
    i.soffset = operand::zero;
    m.wave.sgpr[operand::m0] = 0x10000;
    m.wave.sgpr[12] = static_cast<std::uint32_t>(m.base);
    m.wave.sgpr[13] = static_cast<std::uint32_t>(m.base >> 32);
    m.wave.sgpr[14] = 2048;
    m.wave.sgpr[15] = 0;
    for (int l = 0; l < lanes; ++l) set_address(m, 10, l, buffer ? 0 : m.base);
    if (buffer)
      CHECK_NOTHROW(execute(m, i));
    else
      CHECK_THROWS_WITH(execute(m, i), Catch::Contains("LDS"));
  }
}

// --- lane exchanges
// ----------------------------------------------------------------------------------------------------

TEST_CASE("ds_bpermute pulls, ds_permute pushes, and lanes that are off give zero") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    for (const bool push : {false, true}) {
      Machine a(seed), b(seed);
      Instruction i = make(push ? "ds_permute_b32" : "ds_bpermute_b32", Encoding::ds);
      i.addr = v(10);
      i.data[0] = v(20);
      i.dst = v(seed % 3 == 0 ? 20 : seed % 3 == 1 ? 10 : 30);
      i.imm = static_cast<std::int32_t>(seed % 4 * 4);
      execute(a, i);
      std::vector<std::uint32_t> result(lanes, 0);
      for (int l = 0; l < lanes; ++l) {
        if (!b.active(l)) continue;
        const auto other = static_cast<int>((b.reg(10, l) + static_cast<std::uint32_t>(i.imm)) >> 2 & 63);
        if (push) {
          result[static_cast<std::size_t>(other)] = b.reg(20, l);
        } else {
          result[static_cast<std::size_t>(l)] = b.active(other) ? b.reg(20, other) : 0;
        }
      }
      for (int l = 0; l < lanes; ++l) {
        if (b.active(l)) b.reg(i.dst - operand::vgpr0, l) = result[static_cast<std::size_t>(l)];
      }
      compare(a, b);
    }
  }
}

TEST_CASE("ds_swizzle: the patterns the compiler uses") {
  struct Pattern {
    int offset;
    std::function<int(int)> source;
  };
  const Pattern patterns[] = {
      {0x041f, [](int l) { return l ^ 1; }},                // and 31, xor 1
      {0x7c1f, [](int l) { return l ^ 31; }},               // reverse in 32
      {0x001c, [](int l) { return l & ~3; }},               // broadcast the first of each four
      {0x0070 | 0x1c, [](int l) { return (l & ~3) | 3; }},  // the last of each four
      {0x801b, [](int l) { return (l & ~3) | (3 - l % 4); }},
      {0x8000, [](int l) { return l & ~3; }},
      {0xc000 | 5 << 5, [](int l) { return (l & 32) | (l + 5) % 32; }},
      {0xc400 | 5 << 5, [](int l) { return (l & 32) | (l + 27) % 32; }},
  };
  for (const Pattern& p : patterns) {
    INFO(fmt::format("offset {:#x}", p.offset));
    Machine a(1), b(1);
    Instruction i = make("ds_swizzle_b32", Encoding::ds);
    i.addr = v(10);
    i.dst = v(30);
    i.imm = p.offset;
    execute(a, i);
    for (int l = 0; l < lanes; ++l) {
      if (b.active(l)) b.reg(30, l) = b.active(p.source(l)) ? b.reg(10, p.source(l)) : 0;
    }
    compare(a, b);
  }
}

TEST_CASE("ds_append and ds_consume count the active lanes") {
  Machine a(3);
  a.set_exec(0xff00f);
  a.wave.sgpr[operand::m0] = 128;
  const std::uint32_t start = 1000;
  std::memcpy(a.lds.data() + 136, &start, 4);
  Instruction i = make("ds_append", Encoding::ds);
  i.imm = 8;
  i.dst = v(5);
  execute(a, i);
  std::uint32_t now = 0;
  std::memcpy(&now, a.lds.data() + 136, 4);
  CHECK(now == 1012);
  CHECK(a.reg(5, 0) == 1000);
  CHECK(a.reg(5, 19) == 1000);
  Instruction c = make("ds_consume", Encoding::ds);
  c.imm = 8;
  c.dst = v(6);
  execute(a, c);
  std::memcpy(&now, a.lds.data() + 136, 4);
  CHECK(now == 1000);
  CHECK(a.reg(6, 3) == 1012);
}

// --- formats
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("typed buffer loads convert components") {
  Machine a(1);
  a.set_exec(1);
  const std::uint32_t words[] = {0xff800140, 0x3c00bc00, 0x42280000, 7};
  std::memcpy(a.global(a.base), words, sizeof words);
  a.wave.sgpr[12] = static_cast<std::uint32_t>(a.base);
  a.wave.sgpr[13] = static_cast<std::uint32_t>(a.base >> 32);
  a.wave.sgpr[14] = 16;
  a.wave.sgpr[15] = 0;
  const auto load = [&](const char* name, unsigned data_format, unsigned number_format, int offset) {
    Instruction i = make(name, Encoding::mtbuf);
    i.saddr = 12;
    i.soffset = operand::zero;
    i.dst = v(20);
    i.imm = offset;
    i.format = static_cast<std::uint8_t>(data_format | number_format << 4);
    execute(a, i);
  };
  const auto f = [&](std::uint32_t row) { return std::bit_cast<float>(a.reg(row, 0)); };
  load("tbuffer_load_format_xyzw", 10, 0, 0);  // 8_8_8_8 unorm
  CHECK(f(20) == 64.0f / 255);
  CHECK(f(21) == 1.0f / 255);
  CHECK(f(22) == 128.0f / 255);
  CHECK(f(23) == 1.0f);
  load("tbuffer_load_format_xyzw", 10, 1, 0);  // snorm
  CHECK(f(20) == 64.0f / 127);
  CHECK(f(22) == -1.0f);
  CHECK(f(23) == -1.0f / 127);
  load("tbuffer_load_format_xyzw", 5, 7, 4);  // 16_16 float; z 0, w 1
  CHECK(f(20) == -1.0f);
  CHECK(f(21) == 1.0f);
  CHECK(f(22) == 0.0f);
  CHECK(f(23) == 1.0f);
  load("tbuffer_load_format_x", 4, 7, 8);  // 32 float
  CHECK(f(20) == 42.0f);
  load("tbuffer_load_format_xy", 4, 4, 12);  // 32 uint
  CHECK(a.reg(20, 0) == 7);
  CHECK(a.reg(21, 0) == 0);
  load("tbuffer_load_format_x", 2, 5, 6);  // 16 sint
  CHECK(a.reg(20, 0) == 0x3c00);
  load("tbuffer_load_format_d16_xy", 4, 7, 8);  // 42.0 as half; y 0
  CHECK(a.reg(20, 0) == 0x5140);
  load("tbuffer_load_format_x", 4, 7, 16);  // clipped
  CHECK(a.reg(20, 0) == 0);

  Instruction s = make("tbuffer_store_format_xyzw", Encoding::mtbuf);
  s.saddr = 12;
  s.soffset = operand::zero;
  s.data[0] = v(30);
  s.format = 10;  // 8_8_8_8 unorm
  a.reg(30, 0) = std::bit_cast<std::uint32_t>(0.5f);
  a.reg(31, 0) = std::bit_cast<std::uint32_t>(2.0f);
  a.reg(32, 0) = std::bit_cast<std::uint32_t>(-1.0f);
  a.reg(33, 0) = std::bit_cast<std::uint32_t>(1.0f / 255);
  execute(a, s);
  std::uint32_t stored = 0;
  std::memcpy(&stored, a.global(a.base), 4);
  CHECK(stored == 0x0100ff80);
}

// --- faults
// ------------------------------------------------------------------------------------------------------------

namespace {

Fault fault_of(Machine& machine, const Instruction& i) {
  try {
    execute(machine, i);
  } catch (const Fault& fault) {
    return fault;
  }
  FAIL("no fault");
  return {FaultKind::trap, ""};
}

}  // namespace

TEST_CASE("an access that leaves its buffer by one byte is a fault that names buffer, distance and lane") {
  Machine a(1);
  a.set_exec(~std::uint64_t{0});
  for (int l = 0; l < lanes; ++l) set_address(a, 10, l, a.base);
  Instruction load = make("global_load_dwordx4", Encoding::global);
  load.addr = v(10);
  load.dst = v(20);
  set_address(a, 10, 37, a.base + region_bytes - 15);
  const Fault over = fault_of(a, load);
  CHECK(over.kind == FaultKind::memory_read);
  CHECK(over.lane == 37);
  CHECK(over.address == a.base + region_bytes - 15);
  CHECK(over.message ==
        fmt::format(
            "global_load_dwordx4 reads 16 bytes at {:#x}, 1 bytes over the end of a ({} bytes at {:#x})",
            over.address, region_bytes, a.base));
  set_address(a, 10, 37, a.base - 1);
  CHECK(fault_of(a, load).message.find("1 bytes before a") != std::string::npos);
  set_address(a, 10, 37, 0);
  CHECK(fault_of(a, load).message.find("near the null address") != std::string::npos);
  set_address(a, 10, 37, a.base + region_bytes - 16);
  execute(a, load);
}

TEST_CASE("a store that faults in one lane has written nothing") {
  Machine a(1), b(1);
  a.set_exec(~std::uint64_t{0});
  Instruction store = make("global_store_dword", Encoding::global);
  store.addr = v(10);
  store.data[0] = v(20);
  for (Machine* m : {&a, &b}) {
    for (int l = 0; l < lanes; ++l)
      set_address(*m, 10, l, l == 63 ? m->base + region_bytes : m->base + 4u * static_cast<unsigned>(l));
  }
  CHECK(fault_of(a, store).kind == FaultKind::memory_write);
  compare(a, b);
}

TEST_CASE("freed and read-only memory") {
  Machine a(1);
  a.set_exec(1);
  const std::uint64_t code = a.memory.allocate_image(4096, 2048, "code").value();
  Instruction store = make("global_store_dword", Encoding::global);
  store.addr = v(10);
  store.data[0] = v(20);
  set_address(a, 10, 0, code + 2044);
  CHECK(fault_of(a, store).message.find("read-only, at byte 2044 of code") != std::string::npos);
  set_address(a, 10, 0, code + 2048);
  execute(a, store);
  a.memory.release(a.other);
  set_address(a, 10, 0, a.other + 8);
  CHECK(fault_of(a, store).message.find("in freed buffer b") != std::string::npos);
}

TEST_CASE("LDS and scratch end where the launch says") {
  Machine a(1);
  a.set_exec(1);
  Instruction read = make("ds_read_b64", Encoding::ds);
  read.addr = v(10);
  read.dst = v(20);
  a.reg(10, 0) = lds_bytes - 8;
  execute(a, read);
  a.reg(10, 0) = lds_bytes - 7;
  CHECK(fault_of(a, read).message ==
        fmt::format("ds_read_b64 reads 8 bytes at LDS {:#x}, the workgroup has 4096 bytes", lds_bytes - 7));
  a.reg(10, 0) = 0xfffffffc;  // wraps into range only through the offset
  CHECK(fault_of(a, read).kind == FaultKind::memory_read);
  Instruction store = make("scratch_store_dwordx2", Encoding::scratch);
  store.data[0] = v(20);
  store.imm = scratch_bytes - 8;
  execute(a, store);
  store.imm = scratch_bytes - 4;
  CHECK(fault_of(a, store).message.find("512 bytes of scratch") != std::string::npos);
  Instruction flat = make("flat_load_dword", Encoding::flat);
  flat.addr = v(10);
  flat.dst = v(20);
  set_address(a, 10, 0, aperture::shared_base + lds_bytes - 2);
  CHECK(fault_of(a, flat).message.find("LDS") != std::string::npos);
  set_address(a, 10, 0, aperture::private_base + scratch_bytes - 2);
  CHECK(fault_of(a, flat).message.find("scratch") != std::string::npos);
}

TEST_CASE("a descriptor without bounds does not excuse an address outside every buffer") {
  Machine a(1);
  a.set_exec(1);
  Instruction load = make("buffer_load_dword", Encoding::mubuf);
  load.saddr = 12;
  load.soffset = operand::zero;
  load.offen = true;
  load.addr = v(10);
  load.dst = v(20);
  a.wave.sgpr[12] = static_cast<std::uint32_t>(a.base);
  a.wave.sgpr[13] = static_cast<std::uint32_t>(a.base >> 32);
  a.wave.sgpr[14] = 0xfffffff0;
  a.wave.sgpr[15] = 0;
  a.reg(10, 0) = region_bytes;
  CHECK(fault_of(a, load).message.find("0 bytes after the end of a") != std::string::npos);
}

TEST_CASE("misaligned atomics are refused, misaligned loads are not") {
  Machine a(1);
  a.set_exec(1);
  set_address(a, 10, 0, a.base + 2);
  Instruction add = make("global_atomic_add", Encoding::global);
  add.addr = v(10);
  add.data[0] = v(20);
  CHECK(fault_of(a, add).kind == FaultKind::misaligned);
  Instruction ds = make("ds_add_u32", Encoding::ds);
  ds.addr = v(10);
  ds.data[0] = v(20);
  a.reg(10, 0) = 2;
  CHECK(fault_of(a, ds).kind == FaultKind::misaligned);
}

TEST_CASE("with no lane active nothing happens, whatever the addresses") {
  for (const char* name : {"global_load_dword", "global_store_dwordx4", "flat_load_dword",
                           "scratch_load_dword", "ds_read_b128", "ds_write_b32", "buffer_load_dword",
                           "buffer_store_dword", "global_atomic_add", "ds_add_u32", "ds_bpermute_b32"}) {
    INFO(name);
    Machine a(1), b(1);
    a.set_exec(0);
    const std::string n = name;
    Instruction i = make(name, n.starts_with("ds")        ? Encoding::ds
                               : n.starts_with("buffer")  ? Encoding::mubuf
                               : n.starts_with("flat")    ? Encoding::flat
                               : n.starts_with("scratch") ? Encoding::scratch
                                                          : Encoding::global);
    i.addr = v(10);
    i.dst = v(20);
    i.data[0] = v(20);
    if (i.encoding == Encoding::mubuf) {
      i.saddr = 12;
      i.soffset = operand::zero;
      i.offen = true;
    }
    execute(a, i);
    compare(a, b);
  }
}

}  // namespace attest::device::sim
