// SPDX-License-Identifier: MIT
//
// GLOBAL, FLAT and SCRATCH. A global address is guest memory. A scratch address is an offset into the lane's
// own private memory, which interleaves the lanes dword by dword, so that the common case, all lanes at the
// same offset, is one contiguous row. A flat address is either of them or LDS, lane by lane, told apart by
// its upper half (wave.h, aperture).
#include <atomic>

#include "device/simulator/core/fault.h"
#include "device/simulator/exec/memory_atomic.h"
#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim {
namespace {

using namespace element;

constexpr std::uint64_t window = std::uint64_t{1} << 32;

std::byte* host(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

/// Guest addresses of all lanes: SGPR pair + 32-bit VGPR, or 64-bit VGPR pair; and the signed offset.
void addresses(Wave& w, const Instruction& i, std::uint64_t* out) {
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm));
  const std::uint32_t* low = rows(w, i.addr);
  if (i.saddr != operand::none) {
    moves().widen(out, low, w.s64(i.saddr) + offset);
  } else {
    moves().join(out, low, low + lanes, offset);
  }
}

template <typename E>
void global_load(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  resolve(w, i, a, exec, E::bytes, false);
  load_far<E>(rows(w, i.dst), exec, a);
}

template <typename E>
void global_store(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  resolve(w, i, a, exec, E::bytes, true);
  store_far<E>(rows(w, i.data[0]), exec, a);
}

/// Lane l's element goes to LDS at lds_start() + 4 * l, widened to a dword.
template <typename E>
void global_load_lds(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  resolve(w, i, a, exec, E::bytes, false);
  const std::uint32_t start = lds_start(w, i);
  for_each_lane(exec, [&](int l) {
    std::uint32_t value = 0;
    E::load(&value, host(a[l]));
    std::memcpy(lds_at(w, i, start + 4u * static_cast<unsigned>(l), 4, true, l), &value, 4);
  });
}

template <typename T>
T read_rows(const std::uint32_t* row, int lane) {
  if constexpr (sizeof(T) == 4) {
    return row[lane];
  } else {
    return row[lane] | static_cast<T>(row[lanes + lane]) << 32;
  }
}

// Compare-and-swap carries the new value first and the comparand behind it; atomic.h has DS's order.
template <typename T, typename Operation, bool compare>
T apply(const std::uint32_t* data, int lane, T old) {
  const T first = read_rows<T>(data, lane);
  if constexpr (compare)
    return Operation::apply(old, read_rows<T>(data + sizeof(T) / 4 * lanes, lane), first);
  return Operation::apply(old, first, first);
}

template <typename T>
T exchange(std::byte* p, auto&& operation) {
  std::atomic_ref<T> word(*reinterpret_cast<T*>(p));
  T old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, operation(old), std::memory_order_relaxed)) {
  }
  return old;
}

template <typename T>
void deliver(Wave& w, const Instruction& i, std::uint64_t exec, const T* old) {
  if (!i.sc0) return;
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) {
    out[l] = static_cast<std::uint32_t>(old[l]);
    if constexpr (sizeof(T) == 8) out[lanes + l] = static_cast<std::uint32_t>(old[l] >> 32);
  });
}

void require_alignment(const Instruction& i, const std::uint64_t* a, std::uint64_t exec,
                       std::uint32_t bytes) {
  for_each_lane(exec, [&](int l) {
    if (a[l] % bytes != 0) throw_misaligned(i, a[l], bytes, l);
  });
}

template <typename T, typename Operation, bool compare = false>
void global_atomic(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  require_alignment(i, a, exec, sizeof(T));
  resolve(w, i, a, exec, sizeof(T), true);
  const std::uint32_t* data = rows(w, i.data[0]);
  T old[lanes];
  for_each_lane(exec, [&](int l) {
    old[l] = exchange<T>(host(a[l]), [&](T found) { return apply<T, Operation, compare>(data, l, found); });
  });
  deliver(w, i, exec, old);
}

// --- scratch
// -----------------------------------------------------------------------------------------------------------

[[noreturn]] void throw_scratch(const Wave& w, const Instruction& i, std::uint64_t offset,
                                std::uint32_t bytes, bool write, int lane) {
  throw_access(i, "scratch ", offset, bytes, write, lane,
               "a work-item has " + std::to_string(w.scratch_bytes) + " bytes of scratch");
}

void check_scratch(const Wave& w, const Instruction& i, std::uint64_t offset, std::uint32_t bytes, bool write,
                   int lane) {
  if (offset + bytes > w.scratch_bytes) throw_scratch(w, i, offset, bytes, write, lane);
}

std::byte* scratch_byte(Wave& w, std::uint32_t offset, int lane) {
  return reinterpret_cast<std::byte*>(w.scratch + std::size_t{offset / 4} * lanes +
                                      static_cast<unsigned>(lane)) +
         offset % 4;
}

template <typename E>
void scratch_load_lane(Wave& w, std::uint32_t* out, std::uint32_t offset, int lane) {
  std::byte element[E::bytes];
  for (std::uint32_t k = 0; k < E::bytes; ++k) element[k] = *scratch_byte(w, offset + k, lane);
  E::load(out + lane, element);
}

template <typename E>
void scratch_store_lane(Wave& w, const std::uint32_t* in, std::uint32_t offset, int lane) {
  std::byte element[E::bytes];
  E::store(in + lane, element);
  for (std::uint32_t k = 0; k < E::bytes; ++k) *scratch_byte(w, offset + k, lane) = element[k];
}

struct ScratchOffsets {
  std::uint32_t of[lanes];
  bool uniform = true;  ///< the same in all lanes
};

ScratchOffsets scratch_offsets(Wave& w, const Instruction& i) {
  ScratchOffsets offsets;
  const std::uint32_t base =
      static_cast<std::uint32_t>(i.imm) + (i.saddr != operand::none ? scalar_operand(w, i.saddr) : 0);
  if (i.addr == operand::none) {
    for (std::uint32_t& o : offsets.of) o = base;
    return offsets;
  }
  const std::uint32_t* v = rows(w, i.addr);
  std::uint32_t differ = 0;
  for (int l = 0; l < lanes; ++l) {
    offsets.of[l] = base + v[l];
    differ |= v[l] ^ v[0];
  }
  offsets.uniform = differ == 0;
  return offsets;
}

template <typename E>
void scratch_load(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const ScratchOffsets offsets = scratch_offsets(w, i);
  std::uint32_t* out = rows(w, i.dst);
  if constexpr (E::bytes % 4 == 0) {
    if (offsets.uniform && offsets.of[0] % 4 == 0) {
      check_scratch(w, i, offsets.of[0], E::bytes, false, std::countr_zero(exec));
      const std::uint32_t* in = w.scratch + std::size_t{offsets.of[0] / 4} * lanes;
      for (std::uint32_t k = 0; k < E::count; ++k) {
        for_each_lane(exec, [&](int l) { out[k * lanes + l] = in[k * lanes + l]; });
      }
      return;
    }
  }
  for_each_lane(exec, [&](int l) { check_scratch(w, i, offsets.of[l], E::bytes, false, l); });
  for_each_lane(exec, [&](int l) { scratch_load_lane<E>(w, out, offsets.of[l], l); });
}

template <typename E>
void scratch_store(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const ScratchOffsets offsets = scratch_offsets(w, i);
  const std::uint32_t* in = rows(w, i.data[0]);
  if constexpr (E::bytes % 4 == 0) {
    if (offsets.uniform && offsets.of[0] % 4 == 0) {
      check_scratch(w, i, offsets.of[0], E::bytes, true, std::countr_zero(exec));
      std::uint32_t* out = w.scratch + std::size_t{offsets.of[0] / 4} * lanes;
      for (std::uint32_t k = 0; k < E::count; ++k) {
        for_each_lane(exec, [&](int l) { out[k * lanes + l] = in[k * lanes + l]; });
      }
      return;
    }
  }
  for_each_lane(exec, [&](int l) { check_scratch(w, i, offsets.of[l], E::bytes, true, l); });
  for_each_lane(exec, [&](int l) { scratch_store_lane<E>(w, in, offsets.of[l], l); });
}

// --- flat
// --------------------------------------------------------------------------------------------------------------

template <typename E>
void scratch_load_lds(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const ScratchOffsets offsets = scratch_offsets(w, i);
  for_each_lane(exec, [&](int l) { check_scratch(w, i, offsets.of[l], E::bytes, false, l); });
  const std::uint32_t start = lds_start(w, i);
  std::uint32_t values[lanes];
  for_each_lane(exec, [&](int l) {
    scratch_load_lane<E>(w, values, offsets.of[l], l);
    std::memcpy(lds_at(w, i, start + 4u * static_cast<unsigned>(l), 4, true, l), &values[l], 4);
  });
}

/// Resolves the lanes in LDS and guest memory to host addresses; those in scratch are left as offsets and
/// returned.
std::uint64_t resolve_flat(Wave& w, const Instruction& i, std::uint64_t* a, std::uint64_t exec,
                           std::uint32_t bytes, bool write) {
  std::uint64_t in_lds = 0;
  std::uint64_t in_scratch = 0;
  for_each_lane(exec, [&](int l) {
    const std::uint64_t lane = std::uint64_t{1} << l;
    if (a[l] - aperture::shared_base < window) in_lds |= lane;
    if (a[l] - aperture::private_base < window) in_scratch |= lane;
  });
  if (const std::uint64_t elsewhere = exec & ~in_lds & ~in_scratch; elsewhere != 0) {
    resolve(w, i, a, elsewhere, bytes, write);
  }
  for (std::uint64_t m = in_lds; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    a[l] = reinterpret_cast<std::uint64_t>(lds_at(w, i, static_cast<std::uint32_t>(a[l]), bytes, write, l));
  }
  for (std::uint64_t m = in_scratch; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    a[l] -= aperture::private_base;
    check_scratch(w, i, a[l], bytes, write, l);
  }
  return in_scratch;
}

template <typename E>
void flat_load(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  const std::uint64_t in_scratch = resolve_flat(w, i, a, exec, E::bytes, false);
  std::uint32_t* out = rows(w, i.dst);
  load_far<E>(out, exec & ~in_scratch, a);
  for (std::uint64_t m = in_scratch; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    scratch_load_lane<E>(w, out, static_cast<std::uint32_t>(a[l]), l);
  }
}

template <typename E>
void flat_store(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  const std::uint64_t in_scratch = resolve_flat(w, i, a, exec, E::bytes, true);
  const std::uint32_t* in = rows(w, i.data[0]);
  store_far<E>(in, exec & ~in_scratch, a);
  for (std::uint64_t m = in_scratch; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    scratch_store_lane<E>(w, in, static_cast<std::uint32_t>(a[l]), l);
  }
}

template <typename T, typename Operation, bool compare = false>
void flat_atomic(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  std::uint64_t a[lanes];
  addresses(w, i, a);
  require_alignment(i, a, exec, sizeof(T));
  const std::uint64_t in_scratch = resolve_flat(w, i, a, exec, sizeof(T), true);
  const std::uint32_t* data = rows(w, i.data[0]);
  T old[lanes];
  for_each_lane(exec, [&](int l) {
    if ((in_scratch >> l & 1) == 0) {
      old[l] = exchange<T>(host(a[l]), [&](T found) { return apply<T, Operation, compare>(data, l, found); });
      return;
    }
    std::byte element[sizeof(T)];
    const auto offset = static_cast<std::uint32_t>(a[l]);
    for (std::uint32_t k = 0; k < sizeof(T); ++k) element[k] = *scratch_byte(w, offset + k, l);
    old[l] = load_bytes<T>(element);
    const T value = apply<T, Operation, compare>(data, l, old[l]);
    std::memcpy(element, &value, sizeof value);
    for (std::uint32_t k = 0; k < sizeof(T); ++k) *scratch_byte(w, offset + k, l) = element[k];
  });
  deliver(w, i, exec, old);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses)
#define ATTEST_LOAD_STORE(space)       \
  case Op::space##_load_ubyte:         \
    return space##_load<U8>;           \
  case Op::space##_load_sbyte:         \
    return space##_load<I8>;           \
  case Op::space##_load_ushort:        \
    return space##_load<U16>;          \
  case Op::space##_load_sshort:        \
    return space##_load<I16>;          \
  case Op::space##_load_ubyte_d16:     \
    return space##_load<U8Low>;        \
  case Op::space##_load_ubyte_d16_hi:  \
    return space##_load<U8High>;       \
  case Op::space##_load_sbyte_d16:     \
    return space##_load<I8Low>;        \
  case Op::space##_load_sbyte_d16_hi:  \
    return space##_load<I8High>;       \
  case Op::space##_load_short_d16:     \
    return space##_load<U16Low>;       \
  case Op::space##_load_short_d16_hi:  \
    return space##_load<U16High>;      \
  case Op::space##_load_dword:         \
    return space##_load<Dwords<1>>;    \
  case Op::space##_load_dwordx2:       \
    return space##_load<Dwords<2>>;    \
  case Op::space##_load_dwordx3:       \
    return space##_load<Dwords<3>>;    \
  case Op::space##_load_dwordx4:       \
    return space##_load<Dwords<4>>;    \
  case Op::space##_store_byte:         \
    return space##_store<U8>;          \
  case Op::space##_store_byte_d16_hi:  \
    return space##_store<U8High>;      \
  case Op::space##_store_short:        \
    return space##_store<U16>;         \
  case Op::space##_store_short_d16_hi: \
    return space##_store<U16High>;     \
  case Op::space##_store_dword:        \
    return space##_store<Dwords<1>>;   \
  case Op::space##_store_dwordx2:      \
    return space##_store<Dwords<2>>;   \
  case Op::space##_store_dwordx3:      \
    return space##_store<Dwords<3>>;   \
  case Op::space##_store_dwordx4:      \
    return space##_store<Dwords<4>>

#define ATTEST_ATOMIC(space, op, Name)                                 \
  case Op::space##_atomic_##op:                                        \
    return space##_atomic<std::uint32_t, atomic::Name<std::uint32_t>>; \
  case Op::space##_atomic_##op##_x2:                                   \
    return space##_atomic<std::uint64_t, atomic::Name<std::uint64_t>>
#define ATTEST_ATOMIC_ORDER(space, op, Name, S32, S64)                      \
  case Op::space##_atomic_##op:                                             \
    return space##_atomic<std::uint32_t, atomic::Name<std::uint32_t, S32>>; \
  case Op::space##_atomic_##op##_x2:                                        \
    return space##_atomic<std::uint64_t, atomic::Name<std::uint64_t, S64>>

#define ATTEST_ATOMICS(space)                                                        \
  ATTEST_ATOMIC(space, swap, Swap);                                                  \
  ATTEST_ATOMIC(space, add, Add);                                                    \
  ATTEST_ATOMIC(space, sub, Sub);                                                    \
  ATTEST_ATOMIC(space, and, And);                                                    \
  ATTEST_ATOMIC(space, or, Or);                                                      \
  ATTEST_ATOMIC(space, xor, Xor);                                                    \
  ATTEST_ATOMIC(space, inc, Inc);                                                    \
  ATTEST_ATOMIC(space, dec, Dec);                                                    \
  ATTEST_ATOMIC_ORDER(space, smin, Min, std::int32_t, std::int64_t);                 \
  ATTEST_ATOMIC_ORDER(space, smax, Max, std::int32_t, std::int64_t);                 \
  ATTEST_ATOMIC_ORDER(space, umin, Min, std::uint32_t, std::uint64_t);               \
  ATTEST_ATOMIC_ORDER(space, umax, Max, std::uint32_t, std::uint64_t);               \
  case Op::space##_atomic_cmpswap:                                                   \
    return space##_atomic<std::uint32_t, atomic::CompareStore<std::uint32_t>, true>; \
  case Op::space##_atomic_cmpswap_x2:                                                \
    return space##_atomic<std::uint64_t, atomic::CompareStore<std::uint64_t>, true>; \
  case Op::space##_atomic_add_f32:                                                   \
    return space##_atomic<std::uint32_t, atomic::AddFloatFlushed>;                   \
  case Op::space##_atomic_pk_add_f16:                                                \
    return space##_atomic<std::uint32_t, atomic::AddHalves>;                         \
  case Op::space##_atomic_pk_add_bf16:                                               \
    return space##_atomic<std::uint32_t, atomic::AddBf16s>;                          \
  case Op::space##_atomic_add_f64:                                                   \
    return space##_atomic<std::uint64_t, atomic::AddDouble>;                         \
  case Op::space##_atomic_min_f64:                                                   \
    return space##_atomic<std::uint64_t, atomic::MinFloat<std::uint64_t, double>>;   \
  case Op::space##_atomic_max_f64:                                                   \
    return space##_atomic<std::uint64_t, atomic::MaxFloat<std::uint64_t, double>>

Handler global_handler(const Instruction& instruction) {
  switch (instruction.op) {
    ATTEST_LOAD_STORE(global);
    ATTEST_LOAD_STORE(flat);
    ATTEST_LOAD_STORE(scratch);
    ATTEST_ATOMICS(global);
    ATTEST_ATOMICS(flat);
    case Op::global_load_lds_ubyte:
      return global_load_lds<U8>;
    case Op::global_load_lds_sbyte:
      return global_load_lds<I8>;
    case Op::global_load_lds_ushort:
      return global_load_lds<U16>;
    case Op::global_load_lds_sshort:
      return global_load_lds<I16>;
    case Op::global_load_lds_dword:
      return global_load_lds<Dwords<1>>;
    case Op::scratch_load_lds_ubyte:
      return scratch_load_lds<U8>;
    case Op::scratch_load_lds_sbyte:
      return scratch_load_lds<I8>;
    case Op::scratch_load_lds_ushort:
      return scratch_load_lds<U16>;
    case Op::scratch_load_lds_sshort:
      return scratch_load_lds<I16>;
    case Op::scratch_load_lds_dword:
      return scratch_load_lds<Dwords<1>>;
    default:
      return nullptr;
  }
}

#undef ATTEST_ATOMICS
#undef ATTEST_ATOMIC_ORDER
#undef ATTEST_ATOMIC
#undef ATTEST_LOAD_STORE
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace attest::device::sim
