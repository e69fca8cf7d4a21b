// SPDX-License-Identifier: MIT
//
// MUBUF: memory through a buffer descriptor, four SGPRs that hold base, stride and extent.
//
// The descriptor clips: loads outside it give 0, stores and atomics vanish, and kernels rely on that for
// their tails. So clipping comes first, as the hardware does it (per dword for plain buffers, per record for
// indexed ones), and only what passes must lie in an allocation. Fields: AMD "Instinct MI300 CDNA3 ISA",
// buffer resource descriptor. Where the public sources differ, whether SOFFSET takes part in the range check,
// we follow the hardware observation that it does (gem5 and AMD's own emulator agree).
#include "device/simulator/exec/memory_buffer.h"

#include <atomic>

#include "device/simulator/exec/memory_atomic.h"

namespace attest::device::sim {

BufferDescriptor read_descriptor(const Wave& w, std::uint16_t sgpr) {
  const std::uint32_t* word = w.sgpr + sgpr;
  BufferDescriptor d;
  d.base = word[0] | std::uint64_t{word[1] & 0xffff} << 32;
  d.stride = word[1] >> 16 & 0x3fff;
  d.swizzle = (word[1] >> 31 & 1) != 0;
  d.records = word[2];
  for (unsigned k = 0; k < 4; ++k) d.select[k] = word[3] >> (3 * k) & 7;
  d.number_format = word[3] >> 12 & 7;
  d.data_format = word[3] >> 15 & 15;
  d.index_stride = 8u << (word[3] >> 21 & 3);
  d.add_thread_id = (word[3] >> 23 & 1) != 0;
  return d;
}

void place_lanes(const Wave& w, const Instruction& i, const BufferDescriptor& d, std::uint64_t exec,
                 std::uint32_t bytes, bool whole_only, BufferLanes& out) {
  const std::uint32_t* vaddr = i.addr != operand::none ? w.v(i.addr - operand::vgpr0) : nullptr;
  const std::uint32_t* index = i.idxen ? vaddr : nullptr;
  const std::uint32_t* offset = !i.offen ? nullptr : i.idxen ? vaddr + lanes : vaddr;
  const std::uint32_t soffset = scalar_operand(w, i.soffset);
  const auto imm = static_cast<std::uint32_t>(i.imm);
  const bool swizzled = d.swizzle && d.add_thread_id;
  const bool by_record = i.idxen && d.stride != 0;
  const bool unchecked = d.add_thread_id && !i.idxen;

  if (!by_record && !unchecked && !d.add_thread_id && exec == all_lanes && index == nullptr &&
      offset != nullptr) {
    // The everyday form: an offset per lane into a plain range of bytes.
    const std::uint64_t reserved = std::uint64_t{soffset} + bytes;
    if (reserved <= d.records &&
        moves().place(out.address, offset, imm, d.base + soffset, d.records - reserved)) {
      out.whole = exec;
      out.partial = 0;
      return;
    }
  }
  out.whole = out.partial = 0;
  for_each_lane(exec, [&](int l) {
    const std::uint32_t o = (offset != nullptr ? offset[l] : 0) + imm;
    std::uint64_t record = index != nullptr ? index[l] : 0;
    const bool record_inside = record < d.records;
    if (d.add_thread_id) record += static_cast<unsigned>(l);
    out.address[l] = d.base + soffset;
    if (swizzled) {
      out.address[l] += ((record / d.index_stride) * d.stride + o / 4 * 4) * d.index_stride +
                        (record % d.index_stride) * 4 + o % 4;
    } else {
      out.address[l] += record * d.stride + o;
    }
    const std::uint64_t lane = std::uint64_t{1} << l;
    if (unchecked || (by_record && record_inside)) {
      out.whole |= lane;
    } else if (!by_record) {
      const std::uint64_t start = std::uint64_t{o} + soffset;
      const std::uint64_t room = start < d.records ? d.records - start : 0;
      if (room >= bytes) {
        out.whole |= lane;
      } else if (!whole_only && room >= 4 && bytes > 4) {
        out.partial |= lane;
        out.dwords[l] = static_cast<std::uint8_t>(room / 4);
      }
    }
  });
}

namespace {

using namespace element;

std::byte* host(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

constexpr std::byte zeros[16] = {};

/// Where each lane's element can be read: in memory, or a copy padded with zeros where the descriptor clips.
template <typename E>
struct Source {
  Source(Wave& w, const Instruction& i, std::uint64_t exec) {
    place_lanes(w, i, read_descriptor(w, i.saddr), exec, E::bytes, false, at_);
    if (at_.whole != 0) resolve(w, i, at_.address, at_.whole, E::bytes, false);
    if (at_.whole == exec) return;
    for (std::uint64_t m = exec & ~at_.whole; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if ((at_.partial >> l & 1) == 0) {
        at_.address[l] = reinterpret_cast<std::uint64_t>(zeros);
        continue;
      }
      const std::uint32_t bytes = 4u * at_.dwords[l];
      resolve(w, i, at_.address, std::uint64_t{1} << l, bytes, false);
      std::memset(padded_[l], 0, sizeof padded_[l]);
      std::memcpy(padded_[l], host(at_.address[l]), bytes);
      at_.address[l] = reinterpret_cast<std::uint64_t>(padded_[l]);
    }
  }
  std::byte* operator()(int lane) const { return host(at_.address[lane]); }
  [[nodiscard]] const std::uint64_t* addresses() const { return at_.address; }

 private:
  BufferLanes at_;
  std::byte padded_[lanes][16];
};

template <typename E>
void load(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const Source<E> at(w, i, exec);
  load_far<E>(rows(w, i.dst), exec, at.addresses());
}

/// Lane l's element goes to LDS at M0 + offset + 4 * l, widened to a dword; the offset counts on both sides.
template <typename E>
void load_lds(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const Source<E> at(w, i, exec);
  const std::uint32_t start = lds_start(w, i);
  for_each_lane(exec, [&](int l) { (void)lds_at(w, i, start + 4u * static_cast<unsigned>(l), 4, true, l); });
  std::byte* out = w.group->lds + start;
  for_each_lane(exec, [&](int l) {
    std::uint32_t value = 0;
    E::load(&value, at(l));
    std::memcpy(out + 4 * l, &value, 4);
  });
}

template <typename E>
void store(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  BufferLanes at;
  place_lanes(w, i, read_descriptor(w, i.saddr), exec, E::bytes, false, at);
  if (at.whole != 0) resolve(w, i, at.address, at.whole, E::bytes, true);
  for (std::uint64_t m = at.partial; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    resolve(w, i, at.address, std::uint64_t{1} << l, 4u * at.dwords[l], true);
  }
  const std::uint32_t* in = rows(w, i.data[0]);
  store_far<E>(in, at.whole, at.address);
  for (std::uint64_t m = at.partial; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    std::byte clipped[16];
    E::store(in + l, clipped);
    std::memcpy(host(at.address[l]), clipped, 4u * at.dwords[l]);
  }
}

template <typename T>
T read_rows(const std::uint32_t* row, int lane) {
  if constexpr (sizeof(T) == 4) {
    return row[lane];
  } else {
    return row[lane] | static_cast<T>(row[lanes + lane]) << 32;
  }
}

template <typename T, typename Operation, bool compare = false>
void atomic_op(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  BufferLanes at;
  place_lanes(w, i, read_descriptor(w, i.saddr), exec, sizeof(T), true, at);
  for_each_lane(at.whole, [&](int l) {
    if (at.address[l] % sizeof(T) != 0) throw_misaligned(i, at.address[l], sizeof(T), l);
  });
  if (at.whole != 0) resolve(w, i, at.address, at.whole, sizeof(T), true);
  const std::uint32_t* data = rows(w, i.data[0]);
  T old[lanes] = {};
  for_each_lane(at.whole, [&](int l) {
    // Compare-and-swap: the new value first, the comparand behind it.
    T first = read_rows<T>(data, l);
    T second = first;
    if constexpr (compare) first = read_rows<T>(data + sizeof(T) / 4 * lanes, l);
    std::atomic_ref<T> word(*reinterpret_cast<T*>(at.address[l]));
    old[l] = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(old[l], Operation::apply(old[l], first, second),
                                       std::memory_order_relaxed)) {
    }
  });
  if (!i.sc0) return;
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) {
    out[l] = static_cast<std::uint32_t>(old[l]);
    if constexpr (sizeof(T) == 8) out[lanes + l] = static_cast<std::uint32_t>(old[l] >> 32);
  });
}

// Write-back and invalidation order memory that has no caches here.
void cache_control(Wave&, const Instruction&) {}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses)
#define ATTEST_ATOMIC(op, Name)                                   \
  case Op::buffer_atomic_##op:                                    \
    return atomic_op<std::uint32_t, atomic::Name<std::uint32_t>>; \
  case Op::buffer_atomic_##op##_x2:                               \
    return atomic_op<std::uint64_t, atomic::Name<std::uint64_t>>
#define ATTEST_ATOMIC_ORDER(op, Name, S32, S64)                        \
  case Op::buffer_atomic_##op:                                         \
    return atomic_op<std::uint32_t, atomic::Name<std::uint32_t, S32>>; \
  case Op::buffer_atomic_##op##_x2:                                    \
    return atomic_op<std::uint64_t, atomic::Name<std::uint64_t, S64>>

Handler buffer_handler(const Instruction& instruction) {
  if (instruction.lds) {
    switch (instruction.op) {
      case Op::buffer_load_ubyte:
        return load_lds<U8>;
      case Op::buffer_load_sbyte:
        return load_lds<I8>;
      case Op::buffer_load_ushort:
        return load_lds<U16>;
      case Op::buffer_load_sshort:
        return load_lds<I16>;
      case Op::buffer_load_dword:
        return load_lds<Dwords<1>>;
      default:
        return nullptr;
    }
  }
  switch (instruction.op) {
    case Op::buffer_load_ubyte:
      return load<U8>;
    case Op::buffer_load_sbyte:
      return load<I8>;
    case Op::buffer_load_ushort:
      return load<U16>;
    case Op::buffer_load_sshort:
      return load<I16>;
    case Op::buffer_load_ubyte_d16:
      return load<U8Low>;
    case Op::buffer_load_ubyte_d16_hi:
      return load<U8High>;
    case Op::buffer_load_sbyte_d16:
      return load<I8Low>;
    case Op::buffer_load_sbyte_d16_hi:
      return load<I8High>;
    case Op::buffer_load_short_d16:
      return load<U16Low>;
    case Op::buffer_load_short_d16_hi:
      return load<U16High>;
    case Op::buffer_load_dword:
      return load<Dwords<1>>;
    case Op::buffer_load_dwordx2:
      return load<Dwords<2>>;
    case Op::buffer_load_dwordx3:
      return load<Dwords<3>>;
    case Op::buffer_load_dwordx4:
      return load<Dwords<4>>;
    case Op::buffer_store_byte:
      return store<U8>;
    case Op::buffer_store_byte_d16_hi:
      return store<U8High>;
    case Op::buffer_store_short:
      return store<U16>;
    case Op::buffer_store_short_d16_hi:
      return store<U16High>;
    case Op::buffer_store_dword:
      return store<Dwords<1>>;
    case Op::buffer_store_dwordx2:
      return store<Dwords<2>>;
    case Op::buffer_store_dwordx3:
      return store<Dwords<3>>;
    case Op::buffer_store_dwordx4:
      return store<Dwords<4>>;
      ATTEST_ATOMIC(swap, Swap);
      ATTEST_ATOMIC(add, Add);
      ATTEST_ATOMIC(sub, Sub);
      ATTEST_ATOMIC(and, And);
      ATTEST_ATOMIC(or, Or);
      ATTEST_ATOMIC(xor, Xor);
      ATTEST_ATOMIC(inc, Inc);
      ATTEST_ATOMIC(dec, Dec);
      ATTEST_ATOMIC_ORDER(smin, Min, std::int32_t, std::int64_t);
      ATTEST_ATOMIC_ORDER(smax, Max, std::int32_t, std::int64_t);
      ATTEST_ATOMIC_ORDER(umin, Min, std::uint32_t, std::uint64_t);
      ATTEST_ATOMIC_ORDER(umax, Max, std::uint32_t, std::uint64_t);
    case Op::buffer_atomic_cmpswap:
      return atomic_op<std::uint32_t, atomic::CompareStore<std::uint32_t>, true>;
    case Op::buffer_atomic_cmpswap_x2:
      return atomic_op<std::uint64_t, atomic::CompareStore<std::uint64_t>, true>;
    case Op::buffer_atomic_add_f32:
      return atomic_op<std::uint32_t, atomic::AddFloatFlushed>;
    case Op::buffer_atomic_pk_add_f16:
      return atomic_op<std::uint32_t, atomic::AddHalves>;
    case Op::buffer_atomic_add_f64:
      return atomic_op<std::uint64_t, atomic::AddDouble>;
    case Op::buffer_atomic_min_f64:
      return atomic_op<std::uint64_t, atomic::MinFloat<std::uint64_t, double>>;
    case Op::buffer_atomic_max_f64:
      return atomic_op<std::uint64_t, atomic::MaxFloat<std::uint64_t, double>>;
    case Op::buffer_wbl2:
    case Op::buffer_inv:
    case Op::buffer_wbinvl1:
    case Op::buffer_wbinvl1_vol:
      return cache_control;
    default:
      return format_handler(instruction);
  }
}

#undef ATTEST_ATOMIC_ORDER
#undef ATTEST_ATOMIC
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace attest::device::sim
