// SPDX-License-Identifier: MIT
//
// Scalar memory: loads into SGPRs, and the clock.
//
// s_load: address = base + imm + SGPR, low two bits ignored. s_buffer_load: the base is a buffer descriptor
// (base address in bits 47:0, stride in 61:48, NUM_RECORDS in the third dword); dwords behind NUM_RECORDS *
// max(stride, 1) bytes read 0. Stores and atomics: scalar_store.cpp.
#include "device/simulator/exec/scalar_memory.h"

#include <cstring>

#include "device/simulator/core/memory.h"
#include "device/simulator/exec/memory_lanes.h"
#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::scalar {
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

u64 offset_of(const Wave& w, const Instruction& i) {
  u64 offset = static_cast<u64>(std::int64_t{i.imm});
  if (i.soffset != operand::none) offset += w.sgpr[i.soffset];
  return offset;
}

}  // namespace

u64 address_of(const Wave& w, const Instruction& i) {
  return (w.s64(i.saddr) + offset_of(w, i)) & ~u64{3};
}

BufferPlace buffer_place(const Wave& w, const Instruction& i) {
  const u64 low = w.s64(i.saddr);
  const u64 base = low & 0xffffffffffffu, stride = low >> 48 & 0x3fff;
  const u64 size = (stride == 0 ? 1 : stride) * w.sgpr[i.saddr + 2u];
  const u64 offset = static_cast<u32>(offset_of(w, i)) & ~u64{3};
  const u64 inside = offset + 4 > size ? 0 : (size - offset) / 4;
  return {(base + offset) & ~u64{3}, static_cast<u32>(inside < 16 ? inside : 16)};
}

void read_dwords(const Wave& w, const Instruction& i, u64 address, u32* to, u32 count) {
  const std::byte* from = w.memory->translate(address, count * 4);
  if (from == nullptr)
    throw_access(i, "", address, count * 4, false, -1, w.memory->explain(address, count * 4));
  std::memcpy(to, from, count * 4);
}

namespace {

template <u32 count>
void load(Wave& w, const Instruction& i) {
  read_dwords(w, i, address_of(w, i), &w.sgpr[i.dst], count);
}

template <u32 count>
void buffer_load(Wave& w, const Instruction& i) {
  const BufferPlace place = buffer_place(w, i);
  u32 data[count] = {};
  if (place.dwords != 0) read_dwords(w, i, place.address, data, place.dwords < count ? place.dwords : count);
  std::memcpy(&w.sgpr[i.dst], data, sizeof data);
}

// Time that repeats: four cycles per instruction of this wave, and a 100 MHz clock beside 2100 MHz.
u64 cycles(const Wave& w) {
  return w.instructions * 4;
}
void memtime(Wave& w, const Instruction& i) {
  w.set_s64(i.dst, cycles(w));
}
void memrealtime(Wave& w, const Instruction& i) {
  w.set_s64(i.dst, cycles(w) / 21);
}

void nothing(Wave&, const Instruction&) {}

}  // namespace

Handler memory_handler(const Instruction& i) {
  switch (i.op) {
    case Op::s_load_dword:
      return load<1>;
    case Op::s_load_dwordx2:
      return load<2>;
    case Op::s_load_dwordx4:
      return load<4>;
    case Op::s_load_dwordx8:
      return load<8>;
    case Op::s_load_dwordx16:
      return load<16>;
    case Op::s_buffer_load_dword:
      return buffer_load<1>;
    case Op::s_buffer_load_dwordx2:
      return buffer_load<2>;
    case Op::s_buffer_load_dwordx4:
      return buffer_load<4>;
    case Op::s_buffer_load_dwordx8:
      return buffer_load<8>;
    case Op::s_buffer_load_dwordx16:
      return buffer_load<16>;
    case Op::s_memtime:
      return memtime;
    case Op::s_memrealtime:
      return memrealtime;
    case Op::s_dcache_inv:
    case Op::s_dcache_inv_vol:
    case Op::s_dcache_wb:
    case Op::s_dcache_wb_vol:
    case Op::s_dcache_discard:  // what it may discard has been written through
    case Op::s_dcache_discard_x2:
    case Op::s_atc_probe:  // prefetches a translation
    case Op::s_atc_probe_buffer:
      return nothing;
    default:
      return store_handler(i);
  }
}

}  // namespace attest::device::sim::scalar
