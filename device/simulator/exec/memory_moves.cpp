// SPDX-License-Identifier: MIT
#include "device/simulator/exec/memory_moves.h"

#include "device/simulator/exec/vector_simd.h"

namespace attest::device::sim::ATTEST_SIMD_NAMESPACE {
namespace {

using V = u32 __attribute__((vector_size(16)));
constexpr int count = 64;

template <class T>
ATTEST_INLINE T read(const void* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
ATTEST_INLINE void write(void* p, T value) {
  __builtin_memcpy(p, &value, sizeof value);
}

ATTEST_INLINE L wide(const u32* p) {
  return __builtin_convertvector(read<U8>(p), L);
}
ATTEST_INLINE bool any_top_bit(L x) {
  u64 all = 0;
  for (int k = 0; k < 8; ++k) all |= x[k];
  return static_cast<i64>(all) < 0;
}

void widen(u64* out, const u32* offset, u64 base) {
  for (int l = 0; l < count; l += 8) write(out + l, wide(offset + l) + base);
}

void join(u64* out, const u32* low, const u32* high, u64 base) {
  for (int l = 0; l < count; l += 8) write(out + l, (wide(low + l) | wide(high + l) << 32) + base);
}

bool rebase(u64* address, u64 start, u64 limit, u64 delta) {
  L outside = {};
  for (int l = 0; l < count; l += 8) {
    const L offset = read<L>(address + l) - start;
    outside |= offset | (limit - offset);
  }
  if (any_top_bit(outside)) return false;
  for (int l = 0; l < count; l += 8) write(address + l, read<L>(address + l) + delta);
  return true;
}

bool place(u64* out, const u32* offset, u32 add, u64 base, u64 limit) {
  L outside = {};
  for (int l = 0; l < count; l += 8) {
    const L o = __builtin_convertvector(read<U8>(offset + l) + add, L);
    outside |= limit - o;
    write(out + l, o + base);
  }
  return !any_top_bit(outside);
}

bool inside(const u32* offset, u32 add, u32 limit) {
  U outside = {};
  for (int l = 0; l < count; l += 16) {
    const U o = read<U>(offset + l) + add;
    outside |= o | (limit - o);
  }
  u32 all = 0;
  for (int k = 0; k < 16; ++k) all |= outside[k];
  return static_cast<i32>(all) >= 0;
}

// Where lane l's element lies.
struct Far {
  const u64* host;
  ATTEST_INLINE char* operator()(int l) const { return reinterpret_cast<char*>(host[l]); }
};
struct Near {
  char* base;
  const u32* offset;
  u32 add;
  ATTEST_INLINE char* operator()(int l) const { return base + static_cast<u32>(offset[l] + add); }
};

struct Four {
  V row[4];
};
ATTEST_INLINE Four transpose(V a, V b, V c, V d) {
  const V ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
          ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const V cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
          cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {{__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
           __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)}};
}
ATTEST_INLINE V pair(const char* a, const char* b) {
  using W = u64 __attribute__((vector_size(16)));
  const W both = {read<u64>(a), read<u64>(b)};
  return (V)both;
}

// Four lanes at a time: registers hold one dword of every lane, memory all dwords of one.
template <int n, class At>
ATTEST_INLINE void load_all(u32* out, At at) {
  for (int l = 0; l < count; l += 4) {
    if constexpr (n == 1) {
      const V v = {read<u32>(at(l)), read<u32>(at(l + 1)), read<u32>(at(l + 2)), read<u32>(at(l + 3))};
      write(out + l, v);
    } else if constexpr (n == 2) {
      const V a = pair(at(l), at(l + 1)), b = pair(at(l + 2), at(l + 3));
      write(out + l, __builtin_shufflevector(a, b, 0, 2, 4, 6));
      write(out + count + l, __builtin_shufflevector(a, b, 1, 3, 5, 7));
    } else if constexpr (n == 3) {
      char* p[4] = {at(l), at(l + 1), at(l + 2), at(l + 3)};
      for (int k = 0; k < 3; ++k) {
        const V v = {read<u32>(p[0] + 4 * k), read<u32>(p[1] + 4 * k), read<u32>(p[2] + 4 * k),
                     read<u32>(p[3] + 4 * k)};
        write(out + k * count + l, v);
      }
    } else {
      const Four f = transpose(read<V>(at(l)), read<V>(at(l + 1)), read<V>(at(l + 2)), read<V>(at(l + 3)));
      for (int k = 0; k < 4; ++k) write(out + k * count + l, f.row[k]);
    }
  }
}

template <int n, class At>
ATTEST_INLINE void store_all(const u32* in, At at) {
  for (int l = 0; l < count; l += 4) {
    if constexpr (n == 4) {
      const Four f = transpose(read<V>(in + l), read<V>(in + count + l), read<V>(in + 2 * count + l),
                               read<V>(in + 3 * count + l));
      for (int k = 0; k < 4; ++k) write(at(l + k), f.row[k]);
    } else if constexpr (n == 2) {
      using W = u64 __attribute__((vector_size(16)));
      const V a = read<V>(in + l), b = read<V>(in + count + l);
      const W low = (W)__builtin_shufflevector(a, b, 0, 4, 1, 5),
              high = (W)__builtin_shufflevector(a, b, 2, 6, 3, 7);
      write(at(l), low[0]);
      write(at(l + 1), low[1]);
      write(at(l + 2), high[0]);
      write(at(l + 3), high[1]);
    } else {
      for (int k = 0; k < 4; ++k) {
        char* p = at(l + k);
        for (int d = 0; d < n; ++d) write(p + 4 * d, in[d * count + l + k]);
      }
    }
  }
}

/// Neighbouring lanes on neighbouring dwords.
bool in_a_row(const u64* host) {
  L differ = {};
  L expected = {0, 4, 8, 12, 16, 20, 24, 28};
  expected += host[0];
  for (int l = 0; l < count; l += 8) {
    differ |= read<L>(host + l) ^ expected;
    expected += 32;
  }
  u64 all = 0;
  for (int k = 0; k < 8; ++k) all |= differ[k];
  return all == 0;
}

template <int n>
void load(u32* out, const u64* host) {
  if (n == 1 && in_a_row(host)) {
    __builtin_memcpy(out, reinterpret_cast<const char*>(host[0]), 4 * count);
    return;
  }
  load_all<n>(out, Far{host});
}
template <int n>
void store(const u32* in, const u64* host) {
  if (n == 1 && in_a_row(host)) {
    __builtin_memcpy(reinterpret_cast<char*>(host[0]), in, 4 * count);
    return;
  }
  store_all<n>(in, Far{host});
}
template <int n>
void load_near(u32* out, const std::byte* base, const u32* offset, u32 add) {
  load_all<n>(out, Near{reinterpret_cast<char*>(const_cast<std::byte*>(base)), offset, add});
}
template <int n>
void store_near(const u32* in, std::byte* base, const u32* offset, u32 add) {
  store_all<n>(in, Near{reinterpret_cast<char*>(base), offset, add});
}

}  // namespace

extern const Moves memory_moves;
const Moves memory_moves = {widen,
                            join,
                            rebase,
                            place,
                            inside,
                            {load<1>, load<2>, load<3>, load<4>},
                            {store<1>, store<2>, store<3>, store<4>},
                            {load_near<1>, load_near<2>, load_near<3>, load_near<4>},
                            {store_near<1>, store_near<2>, store_near<3>, store_near<4>}};

}  // namespace attest::device::sim::ATTEST_SIMD_NAMESPACE
