// SPDX-License-Identifier: MIT
//
// Shapes of every memory operation against what its handler does to memory, and addresses of each addressing
// form.
#include "device/simulator/detect/access.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "device/simulator/core/memory.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/handlers.h"

namespace attest::device::sim::detect {
namespace {

struct Machine {
  Machine() {
    group.lds = lds.data();
    group.lds_bytes = static_cast<std::uint32_t>(lds.size());
    wave.vgpr = vgprs.data();
    wave.vgpr_count = 64;
    wave.group = &group;
    wave.memory = &memory;
    wave.scratch = scratch.data();
    wave.scratch_bytes = 256;
    wave.set_s64(126, ~std::uint64_t{0});
    buffer = memory.allocate(65536, "buffer").value();
  }
  Access at(const Instruction& i) {
    Access access;
    locate(wave, i, access_shape(i), access);
    return access;
  }

  Memory memory{0};
  std::vector<std::byte> lds = std::vector<std::byte>(65536);
  std::vector<std::uint32_t> vgprs = std::vector<std::uint32_t>(64 * 64);
  std::vector<std::uint32_t> scratch = std::vector<std::uint32_t>(64 * 64);
  Workgroup group;
  Wave wave;
  std::uint64_t buffer = 0;
};

Instruction instruction(const char* mnemonic, Encoding encoding) {
  Instruction i;
  i.op = find_op(mnemonic);
  REQUIRE(i.op != Op::invalid);
  i.encoding = encoding;
  return i;
}

std::uint16_t v(unsigned row) {
  return static_cast<std::uint16_t>(operand::vgpr0 + row);
}

/// Fills what an operation of this encoding needs so that it runs on the machine: lane l at byte 16 * l.
Instruction runnable(Machine& m, Op op, Encoding encoding) {
  Instruction i;
  i.op = op;
  i.encoding = encoding;
  i.dst = v(20);
  i.data[0] = v(30);
  i.data[1] = v(40);
  i.sc0 = true;
  for (unsigned l = 0; l < 64; ++l) {
    m.vgprs[l] = 32 * l;
    for (unsigned r = 30; r < 48; ++r) m.vgprs[r * 64 + l] = 0x01010101u * (l + 1);
  }
  i.addr = v(0);
  if (encoding == Encoding::global || encoding == Encoding::flat) {
    i.saddr = 8;
    m.wave.set_s64(8, m.buffer);
    if (encoding == Encoding::flat) {
      i.saddr = operand::none;
      for (unsigned l = 0; l < 64; ++l) {
        const std::uint64_t address = m.buffer + 32 * l;
        m.vgprs[l] = static_cast<std::uint32_t>(address);
        m.vgprs[64 + l] = static_cast<std::uint32_t>(address >> 32);
      }
    }
  }
  if (encoding == Encoding::mubuf) {
    i.offen = true;
    i.saddr = 8;
    i.soffset = 128;
    m.wave.set_s64(8, m.buffer);
    m.wave.sgpr[10] = 65536;
    m.wave.sgpr[11] = 0x00027000;
  }
  if (encoding == Encoding::scratch) {
    for (unsigned l = 0; l < 64; ++l) m.vgprs[l] = 16;
  }
  return i;
}

}  // namespace

// A store through the handler changes exactly the bytes that the access names, of the lanes it names.
TEST_CASE("the bytes an access names are those the handler writes") {
  unsigned checked = 0;
  for (std::size_t number = 1; number < op_count; ++number) {
    const auto op = static_cast<Op>(number);
    const OpInfo& shape = info(op);
    if (!shape.has(op_flag::store) || shape.name.starts_with("ds_gws")) continue;  // barriers, not memory
    Encoding encoding;
    if (shape.name.starts_with("ds_")) {
      encoding = Encoding::ds;
    } else if (shape.name.starts_with("global_")) {
      encoding = Encoding::global;
    } else if (shape.name.starts_with("flat_")) {
      encoding = Encoding::flat;
    } else if (shape.name.starts_with("buffer_")) {
      encoding = Encoding::mubuf;
    } else {
      continue;
    }
    if (shape.name.find("format") != std::string_view::npos) continue;  // below
    Machine m;
    Instruction i = runnable(m, op, encoding);
    const Handler handler = memory_handler(i);
    if (handler == nullptr) continue;
    if (shape.has(op_flag::atomic)) {
      // Something that changes whatever the operation: all data bits differ from memory's.
      i.sc0 = false;
    }
    m.wave.sgpr[operand::m0] = 64;
    i.offset1 = 1;
    m.wave.set_s64(126, 0xf0f0'0000'ffff'0003);
    INFO(shape.name);
    const Access a = m.at(i);
    REQUIRE(a.shape.kind == (shape.has(op_flag::atomic) ? AccessKind::atomic : AccessKind::store));
    const bool in_lds = encoding == Encoding::ds;
    std::byte* memory = in_lds ? m.lds.data() : m.memory.translate(m.buffer, 65536);
    std::vector<bool> named(65536);
    const std::uint64_t base = in_lds ? 0 : m.buffer;
    for (int part = 0; part < a.shape.parts; ++part) {
      for (int l = 0; l < lanes; ++l) {
        if ((a.touched() >> l & 1) == 0) continue;
        for (unsigned b = 0; b < a.bytes_of(l); ++b) named[a.address[part][l] - base + b] = true;
      }
    }
    // Whatever an operation makes of one filling, it changes each byte it owns for one of these.
    std::vector<bool> changed(65536);
    for (const int filling : {0x00, 0xff, 0x5a, 0x3c, 0x81}) {
      std::memset(memory, filling, 65536);
      handler(m.wave, i);
      for (std::size_t b = 0; b < changed.size(); ++b)
        if (memory[b] != static_cast<std::byte>(filling)) changed[b] = true;
    }
    std::size_t outside = 0, never = 0, touched = 0;
    for (std::size_t b = 0; b < changed.size(); ++b) {
      outside += changed[b] && !named[b];
      never += named[b] && !changed[b];
      touched += named[b];
    }
    CHECK(outside == 0);
    if (!shape.has(op_flag::atomic)) CHECK(never == 0);
    CHECK(touched != 0);
    if (shape.name.find("cmp") == std::string_view::npos) {
      CHECK(never < touched);
    } else {
      // The comparison never succeeds here.
      const bool wide = shape.name.ends_with("x2") || shape.name.ends_with("64");
      CHECK(a.bytes == (wide ? 8 : 4));
    }
    ++checked;
  }
  CHECK(checked > 120);
}

// A load reads exactly the bytes named: changing any other byte changes nothing, changing a named one does.
TEST_CASE("the bytes an access names are those the handler reads") {
  unsigned checked = 0;
  for (std::size_t number = 1; number < op_count; ++number) {
    const auto op = static_cast<Op>(number);
    const OpInfo& shape = info(op);
    if (!shape.has(op_flag::load) || shape.has(op_flag::atomic | op_flag::lds_dma)) continue;
    Encoding encoding;
    if (shape.name.starts_with("ds_read")) {
      encoding = Encoding::ds;
    } else if (shape.name.starts_with("global_load")) {
      encoding = Encoding::global;
    } else if (shape.name.starts_with("flat_load")) {
      encoding = Encoding::flat;
    } else if (shape.name.starts_with("buffer_load")) {
      encoding = Encoding::mubuf;
    } else {
      continue;
    }
    if (shape.name.find("format") != std::string_view::npos) continue;
    Machine m;
    const Instruction i = [&] {
      Instruction made = runnable(m, op, encoding);
      made.offset1 = 1;
      return made;
    }();
    const Handler handler = memory_handler(i);
    if (handler == nullptr) continue;
    m.wave.sgpr[operand::m0] = 64;
    m.wave.set_s64(126, 1);
    INFO(shape.name);
    const Access a = m.at(i);
    REQUIRE(a.shape.kind == AccessKind::load);
    const bool in_lds = encoding == Encoding::ds;
    std::byte* memory = in_lds ? m.lds.data() : m.memory.translate(m.buffer, 65536);
    const std::uint64_t base = in_lds ? 0 : m.buffer;
    const auto result = [&] {
      for (unsigned r = 20; r < 30; ++r) m.vgprs[r * 64] = 0;
      handler(m.wave, i);
      std::vector<std::uint32_t> values;
      for (unsigned r = 20; r < 30; ++r) values.push_back(m.vgprs[r * 64]);
      return values;
    };
    std::memset(memory, 0, 65536);
    const auto before = result();
    const std::uint64_t first = a.address[0][0] - base;
    for (std::uint64_t b = first < 8 ? 0 : first - 8; b < first + 1100; ++b) {
      bool named = false;
      for (int part = 0; part < a.shape.parts; ++part)
        named = named || b - (a.address[part][0] - base) < a.bytes_of(0);
      memory[b] = std::byte{0x7f};
      if ((result() != before) != named) FAIL_CHECK("byte " << b << " named " << named);
      memory[b] = std::byte{0};
    }
    ++checked;
  }
  CHECK(checked > 40);
}

TEST_CASE("a descriptor clips whole lanes and the tail of a lane") {
  Machine m;
  Instruction i = runnable(m, find_op("buffer_load_dwordx4"), Encoding::mubuf);
  m.wave.sgpr[10] = 32 * 3 + 8;  // lanes 0..2 whole, 8 bytes of lane 3
  const Access a = m.at(i);
  CHECK(a.global == 0xf);
  CHECK(a.shortened == 0x8);
  CHECK(a.clipped == ~std::uint64_t{0x7});
  CHECK(a.bytes_of(2) == 16);
  CHECK(a.bytes_of(3) == 8);
  CHECK(a.address[0][3] == m.buffer + 96);
}

TEST_CASE("loads to LDS have two sides") {
  Machine m;
  Instruction i = runnable(m, find_op("buffer_load_dword"), Encoding::mubuf);
  i.lds = true;
  i.imm = 4;
  m.wave.sgpr[operand::m0] = 512;
  m.wave.sgpr[10] = 32 * 60;
  m.wave.set_s64(126, 0xffff'ffff'ffff'fff0);
  const Access a = m.at(i);
  CHECK(a.shape.lds_dma);
  CHECK(a.global == 0x0fff'ffff'ffff'fff0);
  CHECK(a.dma == 0xffff'ffff'ffff'fff0);
  CHECK(a.address[0][5] == m.buffer + 164);
  CHECK(a.address[1][5] == 512 + 4 + 20);
}

TEST_CASE("where loads to LDS go when M0 is no multiple of 4") {
  Machine m;
  m.wave.sgpr[operand::m0] = 0x503;
  Instruction buffer = runnable(m, find_op("buffer_load_dword"), Encoding::mubuf);
  buffer.lds = true;
  CHECK(m.at(buffer).address[1][5] == 0x503 + 20);
  CHECK(m.at(runnable(m, find_op("global_load_lds_dword"), Encoding::global)).address[1][5] == 0x500 + 20);
  CHECK(m.at(runnable(m, find_op("scratch_load_lds_dword"), Encoding::scratch)).address[1][5] == 0x500 + 20);
}

TEST_CASE("flat addresses go three ways") {
  Machine m;
  Instruction i = runnable(m, find_op("flat_load_dword"), Encoding::flat);
  m.vgprs[0] = 40;
  m.vgprs[64] = static_cast<std::uint32_t>(aperture::shared_base >> 32);
  m.vgprs[1] = 24;
  m.vgprs[65] = static_cast<std::uint32_t>(aperture::private_base >> 32);
  const Access a = m.at(i);
  CHECK(a.lds == 1);
  CHECK(a.scratch == 2);
  CHECK(a.global == ~std::uint64_t{3});
  CHECK(a.address[0][0] == 40);
  CHECK(a.address[0][1] == 24);
  CHECK(a.address[0][2] == m.buffer + 64);
}

TEST_CASE("scratch addresses are offsets of the lane, scalar loads are one access") {
  Machine m;
  Instruction i = runnable(m, find_op("scratch_store_dwordx2"), Encoding::scratch);
  i.imm = 8;
  const Access a = m.at(i);
  CHECK(a.scratch == ~std::uint64_t{0});
  CHECK(a.address[0][63] == 24);
  CHECK(a.bytes == 8);

  Instruction s = instruction("s_load_dwordx8", Encoding::smem);
  s.saddr = 8;
  s.imm = 0x40;
  m.wave.set_s64(8, m.buffer);
  const Access scalar = m.at(s);
  CHECK(scalar.global == 1);
  CHECK(scalar.address[0][0] == m.buffer + 0x40);
  CHECK(scalar.bytes_of(0) == 32);

  Instruction b = instruction("s_buffer_load_dwordx4", Encoding::smem);
  b.saddr = 8;
  m.wave.sgpr[10] = 8;
  const Access clipped = m.at(b);
  CHECK(clipped.clipped == 1);
  CHECK(clipped.bytes_of(0) == 8);
}

// Against the definition, lane by lane, on addresses that are nearly in order.
TEST_CASE("the layout of an access says how its lanes follow each other") {
  Machine m;
  Instruction i = instruction("global_load_dwordx2", Encoding::global);
  i.dst = v(20);
  i.addr = v(0);
  i.saddr = 8;
  m.wave.set_s64(8, m.buffer);
  std::uint32_t state = 1;
  const auto random = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
  unsigned met[3] = {};
  for (int trial = 0; trial < 4000; ++trial) {
    const std::uint64_t exec = trial % 4 == 0 ? ~std::uint64_t{0}
                               : trial % 4 == 1
                                   ? ~std::uint64_t{0} >> random() % 64 << random() % 64
                                   : (std::uint64_t{random()} << 40 | random()) & ~std::uint64_t{0};
    m.wave.set_s64(126, exec);
    const std::uint32_t step = random() % 3 == 0 ? 0 : 8;
    std::uint32_t at = 256;
    for (unsigned l = 0; l < 64; ++l) {
      m.vgprs[l] = (exec >> l & 1) != 0 ? at : random();
      if ((exec >> l & 1) != 0) at += step;
    }
    if (random() % 2 == 0) m.vgprs[random() % 64] += 8;
    std::vector<std::uint64_t> touched;
    for (unsigned l = 0; l < 64; ++l)
      if ((exec >> l & 1) != 0) touched.push_back(m.buffer + m.vgprs[l]);
    bool same = touched.size() > 1, consecutive = !touched.empty();
    for (std::size_t k = 1; k < touched.size(); ++k) {
      same = same && touched[k] == touched[0];
      consecutive = consecutive && touched[k] == touched[k - 1] + 8;
    }
    const Access access = m.at(i);
    REQUIRE(access.layout[0] == (same          ? Layout::same
                                 : consecutive ? Layout::consecutive
                                               : Layout::scattered));
    if (same) REQUIRE(access.extent(0) == 8);
    if (consecutive) REQUIRE(access.extent(0) == 8 * touched.size());
    ++met[static_cast<int>(access.layout[0])];
  }
  for (const unsigned times : met) CHECK(times > 200);
}

TEST_CASE("what touches no memory has no access") {
  for (const char* name : {"ds_bpermute_b32", "ds_swizzle_b32", "s_waitcnt", "v_add_f32", "buffer_inv"}) {
    INFO(name);
    CHECK_FALSE(access_shape(instruction(name, Encoding::sopp)).touches_memory());
  }
}

}  // namespace attest::device::sim::detect
