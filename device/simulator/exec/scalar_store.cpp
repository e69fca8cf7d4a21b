// SPDX-License-Identifier: MIT
//
// Scalar stores, atomics, and scalar scratch accesses: encodings that gfx942 inherits (LLVM assembles them)
// and no compiler emits any more. What they do is taken from the Vega ISA manual, section 7.3 and the SMEM
// opcode table; exec/fidelity.h marks them unverified.
//
//   s_scratch_*      address = base + imm, or + 64 * SGPR
//   s_atomic_*       one operation for the wave; with GLC (sc0) the old value comes back in the data SGPRs
//   s_buffer_*       as s_buffer_load: dwords behind NUM_RECORDS * max(stride, 1) bytes are dropped
#include <atomic>
#include <cstring>

#include "device/simulator/core/memory.h"
#include "device/simulator/exec/memory_atomic.h"
#include "device/simulator/exec/memory_lanes.h"
#include "device/simulator/exec/scalar_memory.h"
#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::scalar {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::byte* writable(const Wave& w, const Instruction& i, u64 address, u32 bytes) {
  const Region* region = w.memory->find(address);
  if (region == nullptr || !region->holds(address, bytes))
    throw_access(i, "", address, bytes, true, -1, w.memory->explain(address, bytes));
  if (address - region->base < region->read_only)
    throw_access(i, "", address, bytes, true, -1, "read-only, " + w.memory->explain(address, bytes));
  return region->host + (address - region->base);
}

u64 scratch_address(const Wave& w, const Instruction& i) {
  u64 offset = static_cast<u64>(std::int64_t{i.imm});
  if (i.soffset != operand::none) offset += u64{w.sgpr[i.soffset]} * 64;
  return (w.s64(i.saddr) + offset) & ~u64{3};
}

void write_dwords(const Wave& w, const Instruction& i, u64 address, u32 count) {
  std::memcpy(writable(w, i, address, count * 4), &w.sgpr[i.data[0]], count * 4);
}

template <u32 count>
void store(Wave& w, const Instruction& i) {
  write_dwords(w, i, address_of(w, i), count);
}

template <u32 count>
void buffer_store(Wave& w, const Instruction& i) {
  const BufferPlace place = buffer_place(w, i);
  const u32 kept = place.dwords < count ? place.dwords : count;
  if (kept != 0) write_dwords(w, i, place.address, kept);
}

template <u32 count>
void scratch_store(Wave& w, const Instruction& i) {
  write_dwords(w, i, scratch_address(w, i), count);
}

template <u32 count>
void scratch_load(Wave& w, const Instruction& i) {
  read_dwords(w, i, scratch_address(w, i), &w.sgpr[i.dst], count);
}

template <typename T>
T data_of(const Wave& w, u32 sgpr) {
  T value;
  std::memcpy(&value, &w.sgpr[sgpr], sizeof value);
  return value;
}

template <typename T, typename Operation, bool compare>
void exchange(Wave& w, const Instruction& i, u64 address) {
  if (address % sizeof(T) != 0) throw_misaligned(i, address, sizeof(T), -1);
  std::atomic_ref<T> word(*reinterpret_cast<T*>(writable(w, i, address, sizeof(T))));
  const T first = data_of<T>(w, i.data[0]);
  // Compare and swap: the new value comes first, what is compared with second.
  const T second = compare ? data_of<T>(w, i.data[0] + u32{sizeof(T) / 4}) : first;
  T old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(
      old, compare ? Operation::apply(old, second, first) : Operation::apply(old, first, first),
      std::memory_order_relaxed)) {
  }
  if (i.sc0) std::memcpy(&w.sgpr[i.data[0]], &old, sizeof old);
}

using SignedMin32 = atomic::Min<u32, std::int32_t>;
using SignedMin64 = atomic::Min<u64, std::int64_t>;
using SignedMax32 = atomic::Max<u32, std::int32_t>;
using SignedMax64 = atomic::Max<u64, std::int64_t>;
using Min32 = atomic::Min<u32, u32>;
using Min64 = atomic::Min<u64, u64>;
using Max32 = atomic::Max<u32, u32>;
using Max64 = atomic::Max<u64, u64>;

template <typename T, typename Operation, bool buffer, bool compare = false>
void atomic_operation(Wave& w, const Instruction& i) {
  if constexpr (buffer) {
    const BufferPlace place = buffer_place(w, i);
    if (place.dwords * 4 < sizeof(T)) {
      if (i.sc0) std::memset(&w.sgpr[i.data[0]], 0, sizeof(T));
      return;
    }
    exchange<T, Operation, compare>(w, i, place.address);
  } else {
    exchange<T, Operation, compare>(w, i, address_of(w, i));
  }
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and names
#define ATTEST_ATOMIC(prefix, op, Name32, Name64, buffer) \
  case Op::prefix##_atomic_##op:                          \
    return atomic_operation<u32, Name32, buffer>;         \
  case Op::prefix##_atomic_##op##_x2:                     \
    return atomic_operation<u64, Name64, buffer>
#define ATTEST_ATOMICS(prefix, buffer)                                       \
  ATTEST_ATOMIC(prefix, swap, atomic::Swap<u32>, atomic::Swap<u64>, buffer); \
  ATTEST_ATOMIC(prefix, add, atomic::Add<u32>, atomic::Add<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, sub, atomic::Sub<u32>, atomic::Sub<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, and, atomic::And<u32>, atomic::And<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, or, atomic::Or<u32>, atomic::Or<u64>, buffer);       \
  ATTEST_ATOMIC(prefix, xor, atomic::Xor<u32>, atomic::Xor<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, inc, atomic::Inc<u32>, atomic::Inc<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, dec, atomic::Dec<u32>, atomic::Dec<u64>, buffer);    \
  ATTEST_ATOMIC(prefix, smin, SignedMin32, SignedMin64, buffer);             \
  ATTEST_ATOMIC(prefix, smax, SignedMax32, SignedMax64, buffer);             \
  ATTEST_ATOMIC(prefix, umin, Min32, Min64, buffer);                         \
  ATTEST_ATOMIC(prefix, umax, Max32, Max64, buffer);                         \
  case Op::prefix##_atomic_cmpswap:                                          \
    return atomic_operation<u32, atomic::CompareStore<u32>, buffer, true>;   \
  case Op::prefix##_atomic_cmpswap_x2:                                       \
    return atomic_operation<u64, atomic::CompareStore<u64>, buffer, true>

Handler store_handler(const Instruction& i) {
  switch (i.op) {
    case Op::s_store_dword:
      return store<1>;
    case Op::s_store_dwordx2:
      return store<2>;
    case Op::s_store_dwordx4:
      return store<4>;
    case Op::s_buffer_store_dword:
      return buffer_store<1>;
    case Op::s_buffer_store_dwordx2:
      return buffer_store<2>;
    case Op::s_buffer_store_dwordx4:
      return buffer_store<4>;
    case Op::s_scratch_store_dword:
      return scratch_store<1>;
    case Op::s_scratch_store_dwordx2:
      return scratch_store<2>;
    case Op::s_scratch_store_dwordx4:
      return scratch_store<4>;
    case Op::s_scratch_load_dword:
      return scratch_load<1>;
    case Op::s_scratch_load_dwordx2:
      return scratch_load<2>;
    case Op::s_scratch_load_dwordx4:
      return scratch_load<4>;
      ATTEST_ATOMICS(s, false);
      ATTEST_ATOMICS(s_buffer, true);
    default:
      return nullptr;
  }
}

#undef ATTEST_ATOMICS
#undef ATTEST_ATOMIC
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace attest::device::sim::scalar
