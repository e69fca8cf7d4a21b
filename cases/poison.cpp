// SPDX-License-Identifier: MIT
#include "cases/poison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "cases/inputs.h"
#include "cases/narrow.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

std::uint32_t hash_name(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5U;  // 32-bit FNV-1a
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193U;
  return hash;
}

}  // namespace

reference::Format reference_format(Format format) {
  switch (format) {
    case Format::bf16:
      return reference::Format::bf16;
    case Format::f16:
      return reference::Format::f16;
    case Format::f32:
      return reference::Format::f32;
    case Format::fp8_e4m3fn:
      return reference::Format::fp8_e4m3fn;
    case Format::fp8_e4m3fnuz:
      return reference::Format::fp8_e4m3fnuz;
    case Format::fp8_e5m2:
      return reference::Format::fp8_e5m2;
    case Format::fp8_e5m2fnuz:
      return reference::Format::fp8_e5m2fnuz;
    case Format::e8m0:
      return reference::Format::e8m0;
  }
  throw std::invalid_argument("no such format");
}

std::size_t element_bytes(Format format) {
  return static_cast<std::size_t>(reference::bytes_per_element(reference_format(format)));
}

std::optional<std::uint32_t> poison_pattern(Poison poison, Format format) {
  const bool fnuz = format == Format::fp8_e4m3fnuz || format == Format::fp8_e5m2fnuz;
  switch (poison) {
    case Poison::nan:
      return fnuz ? 0x80U : 0xffffffffU;
    case Poison::inf:
      switch (format) {
        case Format::bf16:
          return 0x7f80U;
        case Format::f16:
          return 0x7c00U;
        case Format::f32:
          return 0x7f800000U;
        case Format::fp8_e5m2:
          return 0x7cU;
        case Format::fp8_e4m3fn:
          return 0x7fU;
        case Format::fp8_e4m3fnuz:
        case Format::fp8_e5m2fnuz:
          return 0x80U;
        case Format::e8m0:
          return 0xffU;
      }
      return std::nullopt;
    case Poison::zero:
      return 0U;
    case Poison::large:
    case Poison::stale:
      return std::nullopt;
  }
  return std::nullopt;
}

void fill_pattern(std::span<std::byte> bytes, std::uint32_t pattern, std::size_t element) {
  if (bytes.empty()) return;
  std::array<std::byte, 4> code;
  std::memcpy(code.data(), &pattern, code.size());
  if (std::all_of(code.begin(), code.begin() + element, [&](std::byte b) { return b == code[0]; })) {
    std::memset(bytes.data(), static_cast<int>(code[0]), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); i += element) std::memcpy(bytes.data() + i, code.data(), element);
}

void poison_part(const Case& c, Poison poison, Format format, std::size_t first, std::string_view tensor,
                 std::span<std::byte> out) {
  const std::size_t element = element_bytes(format);
  if (const auto pattern = poison_pattern(poison, format)) return fill_pattern(out, *pattern, element);
  const std::size_t count = out.size() / element;
  std::array<std::uint16_t, poison_block> halves;
  std::array<float, poison_block> values;
  for (std::size_t at = 0; at < count; at += poison_block) {
    Counter(c.seed, Draw::result_memory, hash_name(tensor),
            static_cast<std::uint32_t>((first + at) / poison_block))
        .halves(0, poison_block, halves.data());
    normals(halves.data(), poison_block, values.data());
    if (poison == Poison::large)
      for (float& value : values) value *= 32.0F;
    const std::size_t now = std::min(poison_block, count - at);
    std::byte* to = out.data() + at * element;
    if (format == Format::f32) {
      std::memcpy(to, values.data(), now * sizeof(float));
    } else if (format == Format::bf16 || format == Format::fp8_e4m3fnuz) {
      narrow(format, values.data(), static_cast<int>(now), to);
    } else {
      for (std::size_t i = 0; i < now; ++i) {
        const double value{values[i]};
        const std::uint32_t code =
            reference::encode(reference_format(format), format == Format::e8m0 ? std::abs(value) : value,
                              reference::Overflow::saturate);
        std::memcpy(to + i * element, &code, element);
      }
    }
  }
}

std::vector<std::byte> poison_bytes(const Case& c, Poison poison, Format format, std::size_t count,
                                    std::string_view tensor) {
  std::vector<std::byte> bytes(count * element_bytes(format));
  poison_part(c, poison, format, 0, tensor, bytes);
  return bytes;
}

std::vector<std::int32_t> poison_integers(const Case& c, Poison poison, std::size_t count,
                                          std::string_view tensor) {
  const Counter draw(c.seed, Draw::result_memory, hash_name(tensor), 0xffffffffU);
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = draw.word(static_cast<std::uint32_t>(i));
    switch (poison) {
      case Poison::nan:
        values[i] = 2147480000;
        break;
      case Poison::inf:
        values[i] = std::numeric_limits<std::int32_t>::min();
        break;
      case Poison::large:
        values[i] = word == 0xffffffffU ? -2 : static_cast<std::int32_t>(word);
        break;
      case Poison::stale:
        values[i] = static_cast<std::int32_t>(word % 4096);
        break;
      case Poison::zero:
        break;
    }
  }
  return values;
}

}  // namespace attest::cases
