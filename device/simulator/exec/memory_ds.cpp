// SPDX-License-Identifier: MIT
//
// DS: the workgroup's LDS, and the lane exchanges that go through its crossbar without touching it.
//
// A workgroup runs in one thread, so LDS atomics are plain reads and writes in lane order. An address past
// the LDS the launch asked for is a Fault; hardware would return 0 and drop the write, which hides the bug
// this program looks for.
#include "device/simulator/exec/memory_atomic.h"
#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim {
namespace {

using namespace element;

/// Byte addresses of one access of every lane: VGPR + offset, modulo 2^32. Throws when an active lane leaves
/// the LDS.
struct LdsLanes {
  LdsLanes(Wave& w, const Instruction& i, std::uint32_t constant, std::uint32_t bytes, bool write)
      : base(w.group->lds), addresses(rows(w, i.addr)), offset(constant) {
    const std::uint64_t exec = w.exec();
    if (exec == all_lanes && bytes <= w.group->lds_bytes &&
        moves().inside(addresses, offset, w.group->lds_bytes - bytes)) {
      return;
    }
    for_each_lane(exec, [&](int l) { (void)lds_at(w, i, addresses[l] + offset, bytes, write, l); });
  }
  std::byte* operator()(int lane) const { return base + std::uint32_t{addresses[lane] + offset}; }

  std::byte* base;
  const std::uint32_t* addresses;
  std::uint32_t offset;
};

// A lane's address is read before the lane is written: the destination may be the address register.
template <typename E>
void load_near(std::uint32_t* out, std::uint64_t exec, const LdsLanes& at) {
  if constexpr (E::bytes % 4 == 0) {
    if (exec == all_lanes) return moves().load_near[E::count - 1](out, at.base, at.addresses, at.offset);
  }
  load_lanes<E>(out, exec, at);
}
template <typename E>
void store_near(const std::uint32_t* in, std::uint64_t exec, const LdsLanes& at) {
  if constexpr (E::bytes % 4 == 0) {
    if (exec == all_lanes) return moves().store_near[E::count - 1](in, at.base, at.addresses, at.offset);
  }
  store_lanes<E>(in, exec, at);
}

template <typename E>
void read(Wave& w, const Instruction& i) {
  const LdsLanes at(w, i, static_cast<std::uint32_t>(i.imm), E::bytes, false);
  load_near<E>(rows(w, i.dst), w.exec(), at);
}

template <typename E>
void write(Wave& w, const Instruction& i) {
  const LdsLanes at(w, i, static_cast<std::uint32_t>(i.imm), E::bytes, true);
  store_near<E>(rows(w, i.data[0]), w.exec(), at);
}

template <typename E, std::uint32_t scale>
void read2(Wave& w, const Instruction& i) {
  const LdsLanes first(w, i, static_cast<std::uint32_t>(i.imm) * E::bytes * scale, E::bytes, false);
  const LdsLanes second(w, i, i.offset1 * E::bytes * scale, E::bytes, false);
  const std::uint64_t exec = w.exec();
  std::uint32_t* out = rows(w, i.dst);
  const bool overwrites_address = i.dst <= i.addr && i.addr < i.dst + E::count;
  if (!overwrites_address) {
    load_near<E>(out, exec, first);
    load_near<E>(out + E::count * lanes, exec, second);
    return;
  }
  std::uint32_t result[E::count * lanes];
  load_near<E>(result, exec, first);
  load_near<E>(out + E::count * lanes, exec, second);
  for (std::uint32_t k = 0; k < E::count; ++k) {
    for_each_lane(exec, [&](int l) { out[k * lanes + l] = result[k * lanes + l]; });
  }
}

template <typename E, std::uint32_t scale>
void write2(Wave& w, const Instruction& i) {
  const LdsLanes first(w, i, static_cast<std::uint32_t>(i.imm) * E::bytes * scale, E::bytes, true);
  const LdsLanes second(w, i, i.offset1 * E::bytes * scale, E::bytes, true);
  store_near<E>(rows(w, i.data[0]), w.exec(), first);
  store_near<E>(rows(w, i.data[1]), w.exec(), second);
}

template <typename T>
T read_rows(const std::uint32_t* row, int lane) {
  if constexpr (sizeof(T) == 4) {
    return row[lane];
  } else {
    return row[lane] | static_cast<T>(row[lanes + lane]) << 32;
  }
}

template <typename T>
void write_rows(std::uint32_t* row, int lane, T value) {
  row[lane] = static_cast<std::uint32_t>(value);
  if constexpr (sizeof(T) == 8) row[lanes + lane] = static_cast<std::uint32_t>(value >> 32);
}

template <typename T>
T atomic_step(Wave& w, const Instruction& i, std::uint32_t address, int lane, auto&& operation) {
  std::byte* p = lds_at(w, i, address, sizeof(T), true, lane);
  if (address % sizeof(T) != 0) throw_misaligned(i, address, sizeof(T), lane);
  const T old = load_bytes<T>(p);
  const T value = operation(old);
  std::memcpy(p, &value, sizeof value);
  return old;
}

template <typename T, typename Operation>
void atomic_op(Wave& w, const Instruction& i) {
  const std::uint32_t* address = rows(w, i.addr);
  const std::uint32_t* data = rows(w, i.data[0]);
  const std::uint32_t* second = i.data[1] != operand::none ? rows(w, i.data[1]) : data;
  std::uint32_t* out = i.dst != operand::none ? rows(w, i.dst) : nullptr;
  const LdsLanes check(w, i, static_cast<std::uint32_t>(i.imm), sizeof(T), true);
  T old[lanes];
  const std::uint64_t exec = w.exec();
  for_each_lane(exec, [&](int l) {
    old[l] = atomic_step<T>(w, i, address[l] + static_cast<std::uint32_t>(i.imm), l, [&](T found) {
      return Operation::apply(found, read_rows<T>(data, l), read_rows<T>(second, l));
    });
  });
  if (out != nullptr) for_each_lane(exec, [&](int l) { write_rows<T>(out, l, old[l]); });
}

/// f32 add: MODE's denormal bits decide.
void add_float(Wave& w, const Instruction& i) {
  const bool keep = (w.mode & (mode::denorm32_in | mode::denorm32_out)) != 0;
  if (keep) {
    atomic_op<std::uint32_t, atomic::AddFloat>(w, i);
  } else {
    atomic_op<std::uint32_t, atomic::AddFloatFlushed>(w, i);
  }
}

template <typename T, std::uint32_t scale>
void exchange2(Wave& w, const Instruction& i) {
  constexpr std::uint32_t unit = sizeof(T) * scale;
  const std::uint32_t offsets[2] = {static_cast<std::uint32_t>(i.imm) * unit, i.offset1 * unit};
  const LdsLanes check0(w, i, offsets[0], sizeof(T), true);
  const LdsLanes check1(w, i, offsets[1], sizeof(T), true);
  const std::uint32_t* address = rows(w, i.addr);
  T old[2][lanes];
  const std::uint64_t exec = w.exec();
  for_each_lane(exec, [&](int l) {
    for (int k = 0; k < 2; ++k) {
      old[k][l] = atomic_step<T>(w, i, address[l] + offsets[k], l,
                                 [&](T) { return read_rows<T>(rows(w, i.data[k]), l); });
    }
  });
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) {
    write_rows<T>(out, l, old[0][l]);
    write_rows<T>(out + sizeof(T) / 4 * lanes, l, old[1][l]);
  });
}

/// One counter for the whole wave: adds or subtracts the number of active lanes, every lane gets the old
/// value.
template <bool append>
void counter(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const auto active = static_cast<std::uint32_t>(std::popcount(exec));
  const std::uint32_t address = (w.sgpr[operand::m0] & 0xffffu) + static_cast<std::uint32_t>(i.imm);
  const std::uint32_t old = atomic_step<std::uint32_t>(
      w, i, address, std::countr_zero(exec),
      [&](std::uint32_t found) { return append ? found + active : found - active; });
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) { out[l] = old; });
}

/// Address M0 + offset + 4 * lane.
template <bool is_write>
void addtid(Wave& w, const Instruction& i) {
  std::uint32_t* row = rows(w, is_write ? i.data[0] : i.dst);
  const std::uint32_t start = (w.sgpr[operand::m0] & 0xffffu) + static_cast<std::uint32_t>(i.imm);
  const std::uint64_t exec = w.exec();
  for_each_lane(exec,
                [&](int l) { (void)lds_at(w, i, start + 4u * static_cast<unsigned>(l), 4, is_write, l); });
  for_each_lane(exec, [&](int l) {
    std::byte* p = w.group->lds + start + 4u * static_cast<unsigned>(l);
    if (is_write) {
      std::memcpy(p, row + l, 4);
    } else {
      std::memcpy(row + l, p, 4);
    }
  });
}

/// Every active lane pulls from the lane it names; a lane that is off gives 0.
template <typename Source>
void pull(Wave& w, const Instruction& i, std::uint16_t data, Source&& source) {
  std::uint32_t in[lanes];
  const std::uint64_t exec = w.exec();
  const std::uint32_t* row = rows(w, data);
  for (int l = 0; l < lanes; ++l) in[l] = (exec >> l & 1) != 0 ? row[l] : 0;
  std::uint32_t from[lanes];
  for_each_lane(exec, [&](int l) { from[l] = source(static_cast<std::uint32_t>(l)); });
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) { out[l] = in[from[l]]; });
}

void bpermute(Wave& w, const Instruction& i) {
  const std::uint32_t* address = rows(w, i.addr);
  const auto offset = static_cast<std::uint32_t>(i.imm);
  pull(w, i, i.data[0], [&](std::uint32_t l) { return (address[l] + offset) / 4 % lanes; });
}

/// Push: the highest lane that names a target wins; targets nobody names get 0.
void permute(Wave& w, const Instruction& i) {
  std::uint32_t result[lanes] = {};
  const std::uint32_t* address = rows(w, i.addr);
  const std::uint32_t* data = rows(w, i.data[0]);
  const std::uint64_t exec = w.exec();
  for_each_lane(
      exec, [&](int l) { result[(address[l] + static_cast<std::uint32_t>(i.imm)) / 4 % lanes] = data[l]; });
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) { out[l] = result[l]; });
}

std::uint32_t reverse5(std::uint32_t x) {
  return (x & 1) << 4 | (x & 2) << 2 | (x & 4) | (x & 8) >> 2 | (x & 16) >> 4;
}

/// The pattern is the offset field: FFT from 0xe000, rotation from 0xc000, quads from 0x8000, else and/or/xor
/// masks.
void swizzle(Wave& w, const Instruction& i) {
  const auto pattern = static_cast<std::uint32_t>(i.imm);
  const std::uint32_t low = pattern & 0x1f, middle = pattern >> 5 & 0x1f, high = pattern >> 10 & 0x1f;
  const auto source = [&](std::uint32_t l) -> std::uint32_t {
    const std::uint32_t group = l & 32, k = l & 31;
    if (pattern >= 0xe000) return group | reverse5(k) >> std::popcount(low) | (k & low);
    if (pattern >= 0xc000) {
      const std::uint32_t turned = (pattern & 0x400) != 0 ? k - middle : k + middle;
      return group | (k & low) | (turned & 31 & ~low);
    }
    if (pattern >= 0x8000) return (l & ~3u) | (pattern >> (2 * (l & 3)) & 3);
    return group | (((k & low) | middle) ^ high);
  };
  pull(w, i, i.addr, source);
}

void nothing(Wave&, const Instruction&) {}

/// Global wave sync as grid barriers use it (ROCm-Device-Libs, ockl/src/cg.cl): one wave of each workgroup
/// comes, with the number of workgroups less one in the first active lane. A wave that is early stays at the
/// instruction.
void global_barrier(Wave& w, const Instruction& i) {
  if (w.exec() == 0) return;
  GlobalBarrier& barrier = *w.group->global_barrier;
  if (w.global_barrier == 0) {
    w.global_barrier = barrier.generation + 1;
    if (barrier.arrived++ == rows(w, i.addr)[std::countr_zero(w.exec())]) {
      barrier.arrived = 0;
      ++barrier.generation;
    }
  }
  if (barrier.generation < w.global_barrier) {
    --w.pc;
  } else {
    w.global_barrier = 0;
  }
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses)
#define ATTEST_DS_ATOMIC(name32, name64, Operation32, Operation64) \
  case Op::ds_##name32:                                            \
    return atomic_op<std::uint32_t, Operation32>;                  \
  case Op::ds_##name64:                                            \
    return atomic_op<std::uint64_t, Operation64>
#define ATTEST_DS_INTEGER(op, t32, t64, Name)                                                         \
  ATTEST_DS_ATOMIC(op##_##t32, op##_##t64, atomic::Name<std::uint32_t>, atomic::Name<std::uint64_t>); \
  ATTEST_DS_ATOMIC(op##_rtn_##t32, op##_rtn_##t64, atomic::Name<std::uint32_t>, atomic::Name<std::uint64_t>)
#define ATTEST_DS_ORDER(op, t32, t64, Name, S32, S64)                                             \
  ATTEST_DS_ATOMIC(op##_##t32, op##_##t64, ATTEST_PAIR(atomic::Name, std::uint32_t, S32),         \
                   ATTEST_PAIR(atomic::Name, std::uint64_t, S64));                                \
  ATTEST_DS_ATOMIC(op##_rtn_##t32, op##_rtn_##t64, ATTEST_PAIR(atomic::Name, std::uint32_t, S32), \
                   ATTEST_PAIR(atomic::Name, std::uint64_t, S64))
#define ATTEST_PAIR(Name, A, B) Name<A, B>

Handler ds_handler(const Instruction& instruction) {
  if (instruction.op == Op::ds_gws_barrier) return global_barrier;
  if (instruction.gds) return nullptr;
  switch (instruction.op) {
    case Op::ds_read_u8:
      return read<U8>;
    case Op::ds_read_i8:
      return read<I8>;
    case Op::ds_read_u16:
      return read<U16>;
    case Op::ds_read_i16:
      return read<I16>;
    case Op::ds_read_u8_d16:
      return read<U8Low>;
    case Op::ds_read_u8_d16_hi:
      return read<U8High>;
    case Op::ds_read_i8_d16:
      return read<I8Low>;
    case Op::ds_read_i8_d16_hi:
      return read<I8High>;
    case Op::ds_read_u16_d16:
      return read<U16Low>;
    case Op::ds_read_u16_d16_hi:
      return read<U16High>;
    case Op::ds_read_b32:
      return read<Dwords<1>>;
    case Op::ds_read_b64:
      return read<Dwords<2>>;
    case Op::ds_read_b96:
      return read<Dwords<3>>;
    case Op::ds_read_b128:
      return read<Dwords<4>>;
    case Op::ds_read2_b32:
      return read2<Dwords<1>, 1>;
    case Op::ds_read2_b64:
      return read2<Dwords<2>, 1>;
    case Op::ds_read2st64_b32:
      return read2<Dwords<1>, 64>;
    case Op::ds_read2st64_b64:
      return read2<Dwords<2>, 64>;
    case Op::ds_read_addtid_b32:
      return addtid<false>;

    case Op::ds_write_b8:
      return write<U8>;
    case Op::ds_write_b8_d16_hi:
      return write<U8High>;
    case Op::ds_write_b16:
      return write<U16>;
    case Op::ds_write_b16_d16_hi:
      return write<U16High>;
    case Op::ds_write_b32:
      return write<Dwords<1>>;
    case Op::ds_write_b64:
      return write<Dwords<2>>;
    case Op::ds_write_b96:
      return write<Dwords<3>>;
    case Op::ds_write_b128:
      return write<Dwords<4>>;
    case Op::ds_write2_b32:
      return write2<Dwords<1>, 1>;
    case Op::ds_write2_b64:
      return write2<Dwords<2>, 1>;
    case Op::ds_write2st64_b32:
      return write2<Dwords<1>, 64>;
    case Op::ds_write2st64_b64:
      return write2<Dwords<2>, 64>;
    case Op::ds_write_addtid_b32:
      return addtid<true>;

      ATTEST_DS_INTEGER(add, u32, u64, Add);
      ATTEST_DS_INTEGER(sub, u32, u64, Sub);
      ATTEST_DS_INTEGER(rsub, u32, u64, ReverseSub);
      ATTEST_DS_INTEGER(inc, u32, u64, Inc);
      ATTEST_DS_INTEGER(dec, u32, u64, Dec);
      ATTEST_DS_INTEGER(and, b32, b64, And);
      ATTEST_DS_INTEGER(or, b32, b64, Or);
      ATTEST_DS_INTEGER(xor, b32, b64, Xor);
      ATTEST_DS_INTEGER(mskor, b32, b64, MaskOr);
      ATTEST_DS_INTEGER(cmpst, b32, b64, CompareStore);
      ATTEST_DS_ORDER(min, i32, i64, Min, std::int32_t, std::int64_t);
      ATTEST_DS_ORDER(max, i32, i64, Max, std::int32_t, std::int64_t);
      ATTEST_DS_ORDER(min, u32, u64, Min, std::uint32_t, std::uint64_t);
      ATTEST_DS_ORDER(max, u32, u64, Max, std::uint32_t, std::uint64_t);
      ATTEST_DS_ORDER(min, f32, f64, MinFloat, float, double);
      ATTEST_DS_ORDER(max, f32, f64, MaxFloat, float, double);
      ATTEST_DS_ORDER(cmpst, f32, f64, CompareStoreFloat, float, double);
      ATTEST_DS_ATOMIC(wrxchg_rtn_b32, wrxchg_rtn_b64, atomic::Swap<std::uint32_t>,
                       atomic::Swap<std::uint64_t>);
    case Op::ds_wrap_rtn_b32:
      return atomic_op<std::uint32_t, atomic::Wrap<std::uint32_t>>;
    case Op::ds_wrxchg2_rtn_b32:
      return exchange2<std::uint32_t, 1>;
    case Op::ds_wrxchg2_rtn_b64:
      return exchange2<std::uint64_t, 1>;
    case Op::ds_wrxchg2st64_rtn_b32:
      return exchange2<std::uint32_t, 64>;
    case Op::ds_wrxchg2st64_rtn_b64:
      return exchange2<std::uint64_t, 64>;
    case Op::ds_add_f32:
    case Op::ds_add_rtn_f32:
      return add_float;
    case Op::ds_add_f64:
    case Op::ds_add_rtn_f64:
      return atomic_op<std::uint64_t, atomic::AddDouble>;
    case Op::ds_pk_add_f16:
    case Op::ds_pk_add_rtn_f16:
      return atomic_op<std::uint32_t, atomic::AddHalves>;
    case Op::ds_pk_add_bf16:
    case Op::ds_pk_add_rtn_bf16:
      return atomic_op<std::uint32_t, atomic::AddBf16s>;
    case Op::ds_append:
      return counter<true>;
    case Op::ds_consume:
      return counter<false>;

    case Op::ds_bpermute_b32:
      return bpermute;
    case Op::ds_permute_b32:
      return permute;
    case Op::ds_swizzle_b32:
      return swizzle;
    case Op::ds_nop:
      return nothing;
    default:
      return nullptr;
  }
}

#undef ATTEST_PAIR
#undef ATTEST_DS_ORDER
#undef ATTEST_DS_INTEGER
#undef ATTEST_DS_ATOMIC
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace attest::device::sim
