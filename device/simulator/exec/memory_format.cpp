// SPDX-License-Identifier: MIT
//
// Typed buffer accesses: components of 2 to 32 bits, converted between memory's number format and f32, f16 or
// integers.
//
// MTBUF names the format in the instruction, MUBUF's format operations take it and the component selection
// from the descriptor. Formats and their bit order: AMD "Instinct MI300 CDNA3 ISA", buffer data formats.
// Missing components read as 0, the fourth as 1.
#include <algorithm>
#include <cmath>

#include "device/simulator/exec/memory_atomic.h"
#include "device/simulator/exec/memory_buffer.h"

namespace attest::device::sim {
namespace {

enum NumberFormat : std::uint32_t {
  unorm = 0,
  snorm = 1,
  uscaled = 2,
  sscaled = 3,
  uint = 4,
  sint = 5,
  floating = 7
};

struct Layout {
  std::uint8_t bytes;
  std::uint8_t bits[4];  ///< of component x, y, z, w, from bit 0 upwards
};

/// Indexed by data format; bytes 0: reserved.
constexpr Layout layouts[16] = {{0, {}},
                                {1, {8}},
                                {2, {16}},
                                {2, {8, 8}},
                                {4, {32}},
                                {4, {16, 16}},
                                {4, {11, 11, 10}},
                                {4, {10, 11, 11}},
                                {4, {2, 10, 10, 10}},
                                {4, {10, 10, 10, 2}},
                                {4, {8, 8, 8, 8}},
                                {8, {32, 32}},
                                {8, {16, 16, 16, 16}},
                                {12, {32, 32, 32}},
                                {16, {32, 32, 32, 32}},
                                {0, {}}};

std::uint32_t mask(unsigned bits) {
  return bits == 32 ? ~0u : (1u << bits) - 1;
}

/// 10- and 11-bit floats: no sign, 5 exponent bits.
float small_float(std::uint32_t raw, unsigned bits) {
  const unsigned mantissa_bits = bits - 5;
  const std::uint32_t exponent = raw >> mantissa_bits;
  const std::uint32_t mantissa = raw & mask(mantissa_bits);
  if (exponent == 31) return std::bit_cast<float>(0x7f800000u | mantissa << (23 - mantissa_bits));
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), -14 - static_cast<int>(mantissa_bits));
  return std::bit_cast<float>((exponent + 112) << 23 | mantissa << (23 - mantissa_bits));
}

/// A component as it stands in a 32-bit register.
std::uint32_t to_register(std::uint32_t raw, unsigned bits, std::uint32_t number_format) {
  const auto extended = static_cast<std::int32_t>(raw << (32 - bits)) >> (32 - bits);
  const auto as_bits = [](double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); };
  switch (number_format) {
    case unorm:
      return as_bits(raw / static_cast<double>(mask(bits)));
    case snorm:
      return as_bits(std::max(extended / static_cast<double>(mask(bits - 1)), -1.0));
    case uscaled:
      return as_bits(raw);
    case sscaled:
      return as_bits(extended);
    case sint:
      return static_cast<std::uint32_t>(extended);
    case floating:
      if (bits == 16) return std::bit_cast<std::uint32_t>(atomic::half_to_float(raw));
      if (bits < 16) return std::bit_cast<std::uint32_t>(small_float(raw, bits));
      return raw;
    default:
      return raw;
  }
}

std::uint32_t from_register(std::uint32_t value, unsigned bits, std::uint32_t number_format) {
  const float f = std::bit_cast<float>(value);
  const auto clamped = [&](double low, double high, double scale) {
    const double scaled = std::isnan(f) ? 0.0 : std::clamp(static_cast<double>(f) * scale, low, high);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::nearbyint(scaled))) & mask(bits);
  };
  const double top = mask(bits);
  const double half = mask(bits - 1);
  switch (number_format) {
    case unorm:
      return clamped(0, top, top);
    case snorm:
      return clamped(-half, half, half);
    case uscaled:
      return clamped(0, top, 1);
    case sscaled:
      return clamped(-half - 1, half, 1);
    case uint:
      return std::min(value, mask(bits));
    case sint:
      return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                 static_cast<std::int32_t>(value), -static_cast<std::int64_t>(mask(bits - 1)) - 1,
                 static_cast<std::int64_t>(mask(bits - 1)))) &
             mask(bits);
    case floating:
      return bits == 16 ? atomic::float_to_half(f) : value;
    default:
      return value & mask(bits);
  }
}

bool is_integer(std::uint32_t number_format) {
  return number_format == uint || number_format == sint;
}

/// Registers of 16-bit results: floats become halves, integers are cut.
std::uint32_t to_half_register(std::uint32_t value, std::uint32_t number_format) {
  return is_integer(number_format) ? value & 0xffff : atomic::float_to_half(std::bit_cast<float>(value));
}

std::uint32_t from_half_register(std::uint32_t half, std::uint32_t number_format) {
  if (number_format == sint) return static_cast<std::uint32_t>(static_cast<std::int16_t>(half));
  if (number_format == uint) return half;
  return std::bit_cast<std::uint32_t>(atomic::half_to_float(half));
}

struct Format {
  Layout layout;
  std::uint32_t number_format;
  std::uint32_t select[4];
};

Format format_of(const Instruction& i, const BufferDescriptor& d) {
  if (i.encoding == Encoding::mtbuf) return {layouts[i.format & 15], i.format >> 4 & 7u, {4, 5, 6, 7}};
  return {layouts[d.data_format], d.number_format, {d.select[0], d.select[1], d.select[2], d.select[3]}};
}

std::uint32_t extract(const std::byte* element, unsigned bit, unsigned bits) {
  std::uint64_t window = 0;
  std::memcpy(&window, element + bit / 8, 8);
  return static_cast<std::uint32_t>(window >> (bit % 8)) & mask(bits);
}

void insert(std::byte* element, unsigned bit, unsigned bits, std::uint32_t value) {
  std::uint64_t window = 0;
  std::memcpy(&window, element + bit / 8, 8);
  window |= std::uint64_t{value & mask(bits)} << (bit % 8);
  std::memcpy(element + bit / 8, &window, 8);
}

enum class Width { full, half, half_high };

template <unsigned n, Width width>
void load(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const BufferDescriptor d = read_descriptor(w, i.saddr);
  const Format format = format_of(i, d);
  BufferLanes at;
  at.whole = 0;
  if (format.layout.bytes != 0) {
    place_lanes(w, i, d, exec, format.layout.bytes, true, at);
    if (at.whole != 0) resolve(w, i, at.address, at.whole, format.layout.bytes, false);
  }
  std::uint32_t* out = rows(w, i.dst);
  for_each_lane(exec, [&](int l) {
    std::uint32_t component[4] = {};
    if ((at.whole >> l & 1) != 0) {
      const std::uint32_t one = is_integer(format.number_format) ? 1u : 0x3f800000u;
      std::byte element[24] = {};
      std::memcpy(element, reinterpret_cast<const std::byte*>(at.address[l]), format.layout.bytes);
      std::uint32_t raw[4] = {0, 0, 0, one};
      unsigned bit = 0;
      for (unsigned k = 0; k < 4 && format.layout.bits[k] != 0; ++k) {
        raw[k] = to_register(extract(element, bit, format.layout.bits[k]), format.layout.bits[k],
                             format.number_format);
        bit += format.layout.bits[k];
      }
      for (unsigned k = 0; k < n; ++k) {
        const std::uint32_t s = format.select[k];
        component[k] = s >= 4 ? raw[s - 4] : s == 1 ? one : 0;
      }
    }
    if constexpr (width == Width::full) {
      for (unsigned k = 0; k < n; ++k) out[k * lanes + static_cast<unsigned>(l)] = component[k];
    } else if constexpr (width == Width::half_high) {
      out[l] = (out[l] & 0xffff) | to_half_register(component[0], format.number_format) << 16;
    } else {
      for (unsigned k = 0; k < n; k += 2) {
        const std::uint32_t high = k + 1 < n ? to_half_register(component[k + 1], format.number_format) : 0;
        out[k / 2 * lanes + static_cast<unsigned>(l)] =
            to_half_register(component[k], format.number_format) | high << 16;
      }
    }
  });
}

template <unsigned n, Width width>
void store(Wave& w, const Instruction& i) {
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  const BufferDescriptor d = read_descriptor(w, i.saddr);
  const Format format = format_of(i, d);
  if (format.layout.bytes == 0) return;
  BufferLanes at;
  place_lanes(w, i, d, exec, format.layout.bytes, true, at);
  if (at.whole == 0) return;
  resolve(w, i, at.address, at.whole, format.layout.bytes, true);
  const std::uint32_t* in = rows(w, i.data[0]);
  for_each_lane(at.whole, [&](int l) {
    std::uint32_t given[4] = {};
    for (unsigned k = 0; k < n; ++k) {
      const auto lane = static_cast<unsigned>(l);
      if constexpr (width == Width::full) given[k] = in[k * lanes + lane];
      if constexpr (width == Width::half_high)
        given[k] = from_half_register(in[lane] >> 16, format.number_format);
      if constexpr (width == Width::half) {
        given[k] =
            from_half_register(in[k / 2 * lanes + lane] >> (16 * (k % 2)) & 0xffff, format.number_format);
      }
    }
    // The selection runs backwards: memory component c takes the first register that selects it.
    std::byte element[24] = {};
    unsigned bit = 0;
    for (unsigned c = 0; c < 4 && format.layout.bits[c] != 0; ++c) {
      std::uint32_t value = 0;
      for (unsigned k = 4; k-- > 0;) {
        if (format.select[k] == 4 + c && k < n) value = given[k];
      }
      insert(element, bit, format.layout.bits[c],
             from_register(value, format.layout.bits[c], format.number_format));
      bit += format.layout.bits[c];
    }
    std::memcpy(reinterpret_cast<std::byte*>(at.address[l]), element, format.layout.bytes);
  });
}

}  // namespace

std::uint32_t format_bytes(const Instruction& i, const BufferDescriptor& d) {
  return format_of(i, d).layout.bytes;
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define ATTEST_FORMATS(family)             \
  case Op::family##_load_format_x:         \
    return load<1, Width::full>;           \
  case Op::family##_load_format_xy:        \
    return load<2, Width::full>;           \
  case Op::family##_load_format_xyz:       \
    return load<3, Width::full>;           \
  case Op::family##_load_format_xyzw:      \
    return load<4, Width::full>;           \
  case Op::family##_load_format_d16_x:     \
    return load<1, Width::half>;           \
  case Op::family##_load_format_d16_xy:    \
    return load<2, Width::half>;           \
  case Op::family##_load_format_d16_xyz:   \
    return load<3, Width::half>;           \
  case Op::family##_load_format_d16_xyzw:  \
    return load<4, Width::half>;           \
  case Op::family##_store_format_x:        \
    return store<1, Width::full>;          \
  case Op::family##_store_format_xy:       \
    return store<2, Width::full>;          \
  case Op::family##_store_format_xyz:      \
    return store<3, Width::full>;          \
  case Op::family##_store_format_xyzw:     \
    return store<4, Width::full>;          \
  case Op::family##_store_format_d16_x:    \
    return store<1, Width::half>;          \
  case Op::family##_store_format_d16_xy:   \
    return store<2, Width::half>;          \
  case Op::family##_store_format_d16_xyz:  \
    return store<3, Width::half>;          \
  case Op::family##_store_format_d16_xyzw: \
    return store<4, Width::half>

Handler format_handler(const Instruction& instruction) {
  switch (instruction.op) {
    ATTEST_FORMATS(buffer);
    ATTEST_FORMATS(tbuffer);
    case Op::buffer_load_format_d16_hi_x:
      return load<1, Width::half_high>;
    case Op::buffer_store_format_d16_hi_x:
      return store<1, Width::half_high>;
    default:
      return nullptr;
  }
}

#undef ATTEST_FORMATS
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace attest::device::sim
