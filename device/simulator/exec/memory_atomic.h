// SPDX-License-Identifier: MIT
//
// What an atomic does to the word it finds: T operation(old, data, second). `second` is DS's data1 (new value
// of compare-and-store, second mask of mskor), else unused.
//
// Floating point: the L2's f32 add flushes denormals, its f64 and packed adds keep them; rounding is to
// nearest even whatever MODE says (AMD MI300 ISA, memory atomics; LLVM AMDGPUUsage, "Floating-Point
// Atomics"). LDS follows MODE.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attest::device::sim::atomic {

inline float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

inline float half_to_float(std::uint32_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1f;
  const std::uint32_t mantissa = h & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// To nearest even.
inline std::uint32_t float_to_half(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13);
}

inline float bf16_to_float(std::uint32_t h) {
  return std::bit_cast<float>(h << 16);
}
inline std::uint32_t float_to_bf16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
}

template <typename T>
struct Swap {
  static T apply(T, T data, T) { return data; }
};
template <typename T>
struct Add {
  static T apply(T old, T data, T) { return old + data; }
};
template <typename T>
struct Sub {
  static T apply(T old, T data, T) { return old - data; }
};
template <typename T>
struct ReverseSub {
  static T apply(T old, T data, T) { return data - old; }
};
template <typename T>
struct Inc {
  static T apply(T old, T data, T) { return old >= data ? 0 : old + 1; }
};
template <typename T>
struct Dec {
  static T apply(T old, T data, T) { return old == 0 || old > data ? data : old - 1; }
};
template <typename T, typename S>
struct Min {
  static T apply(T old, T data, T) { return static_cast<S>(data) < static_cast<S>(old) ? data : old; }
};
template <typename T, typename S>
struct Max {
  static T apply(T old, T data, T) { return static_cast<S>(data) > static_cast<S>(old) ? data : old; }
};
template <typename T>
struct And {
  static T apply(T old, T data, T) { return old & data; }
};
template <typename T>
struct Or {
  static T apply(T old, T data, T) { return old | data; }
};
template <typename T>
struct Xor {
  static T apply(T old, T data, T) { return old ^ data; }
};
template <typename T>
struct MaskOr {
  static T apply(T old, T data, T second) { return (old & ~data) | second; }
};
/// DS order: data is compared with, second is stored.
template <typename T>
struct CompareStore {
  static T apply(T old, T data, T second) { return old == data ? second : old; }
};
template <typename T, typename F>
struct CompareStoreFloat {
  static T apply(T old, T data, T second) {
    return std::bit_cast<F>(old) == std::bit_cast<F>(data) ? second : old;
  }
};
template <typename T>
struct Wrap {
  static T apply(T old, T data, T second) { return old >= data ? old - data : old + second; }
};
template <typename T, typename F>
struct MinFloat {
  static T apply(T old, T data, T) { return std::bit_cast<F>(data) < std::bit_cast<F>(old) ? data : old; }
};
template <typename T, typename F>
struct MaxFloat {
  static T apply(T old, T data, T) { return std::bit_cast<F>(data) > std::bit_cast<F>(old) ? data : old; }
};
struct AddFloat {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t data, std::uint32_t) {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(old) + std::bit_cast<float>(data));
  }
};
struct AddFloatFlushed {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t data, std::uint32_t) {
    return std::bit_cast<std::uint32_t>(
        flush(flush(std::bit_cast<float>(old)) + flush(std::bit_cast<float>(data))));
  }
};
struct AddDouble {
  static std::uint64_t apply(std::uint64_t old, std::uint64_t data, std::uint64_t) {
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(data));
  }
};
// A sum of two halves rounded to float and then to half is the sum rounded once: 24 >= 2 * 11 + 2.
struct AddHalves {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t data, std::uint32_t) {
    return float_to_half(half_to_float(old & 0xffff) + half_to_float(data & 0xffff)) |
           float_to_half(half_to_float(old >> 16) + half_to_float(data >> 16)) << 16;
  }
};
struct AddBf16s {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t data, std::uint32_t) {
    return float_to_bf16(bf16_to_float(old & 0xffff) + bf16_to_float(data & 0xffff)) |
           float_to_bf16(bf16_to_float(old >> 16) + bf16_to_float(data >> 16)) << 16;
  }
};

}  // namespace attest::device::sim::atomic
