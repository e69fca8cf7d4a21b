// SPDX-License-Identifier: MIT
//
// Machine words for tests that compare with LLVM: every opcode number of every format, with operand fields
// aimed so that many combinations are instructions, all from a seed.
//
//   Random random(942);
//   for (const Format& format : formats())
//     for (std::uint32_t number = 0; number < 1u << format.number_bits; ++number) use(draw(random, format,
//     number));
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace attest::device::sim {

using Words = std::array<std::uint32_t, 3>;

/// LLVM 19 runs into llvm_unreachable on reserved SDWA selections; ours must refuse them, LLVM is not asked.
inline bool reserved_sdwa(const Words& w) {
  if (w[0] >> 31 != 0 || (w[0] & 0x1ff) != 249) return false;
  const bool compare = w[0] >> 25 == 0b0111110;
  const auto field = [&w](unsigned low, unsigned bits) { return w[1] >> low & ((1u << bits) - 1); };
  return field(16, 3) == 7 || field(24, 3) == 7 || (!compare && (field(8, 3) == 7 || field(11, 2) == 3));
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<std::uint32_t>((z ^ z >> 31) >> 32);
  }
  std::uint32_t below(std::uint32_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_;
};

/// A bit field of the first two dwords. Kinds say what to aim at; every kind is also 0 or anything now and
/// then.
struct Field {
  enum Kind { any, source9, vector9, source8, register8, saddr } kind;
  unsigned low, bits;
};
struct Format {
  const char* name;
  std::uint32_t fixed;  ///< of the first dword
  unsigned number_low, number_bits;
  std::vector<Field> fields;
  unsigned trials;  ///< per number
};

inline const std::vector<Format>& formats() {
  using F = Field;
  const std::vector<F> vop3 = {{F::register8, 0, 8}, {F::any, 8, 3},      {F::any, 11, 4},
                               {F::any, 15, 1},      {F::source9, 32, 9}, {F::source9, 41, 9},
                               {F::source9, 50, 9},  {F::any, 59, 2},     {F::any, 61, 3}};
  const std::vector<F> flat = {{F::any, 0, 13}, {F::any, 13, 1}, {F::any, 16, 1}, {F::any, 17, 1},
                               {F::any, 25, 1}, {F::any, 32, 8}, {F::any, 40, 8}, {F::saddr, 48, 7},
                               {F::any, 55, 1}, {F::any, 56, 8}};
  const std::vector<F> vop = {{F::source9, 0, 9}, {F::any, 17, 8}, {F::any, 9, 8}, {F::any, 32, 32}};
  static const std::vector<Format> list = {
      {"SOP1", 0xbe800000, 8, 8, {{F::source8, 0, 8}, {F::source8, 16, 7}, {F::any, 32, 32}}, 200},
      {"SOP2",
       0x80000000,
       23,
       7,
       {{F::source8, 0, 8}, {F::source8, 8, 8}, {F::source8, 16, 7}, {F::any, 32, 32}},
       400},
      {"SOPC", 0xbf000000, 16, 7, {{F::source8, 0, 8}, {F::source8, 8, 8}, {F::any, 32, 32}}, 200},
      {"SOPK", 0xb0000000, 23, 5, {{F::any, 0, 16}, {F::source8, 16, 7}, {F::any, 32, 32}}, 2000},
      {"SOPP", 0xbf800000, 16, 7, {{F::any, 0, 4}, {F::any, 4, 4}, {F::any, 8, 4}, {F::any, 12, 4}}, 600},
      {"SMEM",
       0xc0000000,
       18,
       8,
       {{F::any, 0, 6},
        {F::any, 6, 7},
        {F::any, 13, 1},
        {F::any, 14, 1},
        {F::any, 15, 1},
        {F::any, 16, 1},
        {F::any, 17, 1},
        {F::any, 32, 21},
        {F::any, 53, 4},
        {F::source8, 57, 7}},
       400},
      {"VOP1", 0x7e000000, 9, 8, {{F::source9, 0, 9}, {F::any, 17, 8}, {F::any, 32, 32}}, 500},
      {"VOP2", 0x00000000, 25, 6, vop, 2000},
      {"VOPC", 0x7c000000, 17, 8, {{F::source9, 0, 9}, {F::any, 9, 8}, {F::any, 32, 32}}, 400},
      {"VOP3", 0xd0000000, 16, 10, vop3, 300},
      {"MAI",
       0xd3800000,
       16,
       7,
       {{F::any, 0, 8},
        {F::any, 8, 3},
        {F::any, 11, 4},
        {F::any, 15, 1},
        {F::vector9, 32, 9},
        {F::vector9, 41, 9},
        {F::source9, 50, 9},
        {F::any, 59, 2},
        {F::any, 61, 3}},
       1000},
      {"DS",
       0xd8000000,
       17,
       8,
       {{F::any, 0, 8},
        {F::any, 8, 8},
        {F::any, 16, 1},
        {F::any, 25, 1},
        {F::any, 32, 8},
        {F::any, 40, 8},
        {F::any, 48, 8},
        {F::any, 56, 8}},
       500},
      {"FLAT", 0xdc000000, 18, 7, flat, 400},
      {"SCRATCH", 0xdc004000, 18, 7, flat, 400},
      {"GLOBAL", 0xdc008000, 18, 7, flat, 400},
      {"segment 3", 0xdc00c000, 18, 7, flat, 20},
      {"MUBUF",
       0xe0000000,
       18,
       7,
       {{F::any, 0, 12},
        {F::any, 12, 1},
        {F::any, 13, 1},
        {F::any, 14, 1},
        {F::any, 15, 1},
        {F::any, 16, 1},
        {F::any, 17, 1},
        {F::any, 25, 1},
        {F::any, 32, 8},
        {F::any, 40, 8},
        {F::any, 48, 5},
        {F::any, 53, 2},
        {F::any, 55, 1},
        {F::source8, 56, 8}},
       600},
      {"MTBUF",
       0xe8000000,
       15,
       4,
       {{F::any, 0, 12},
        {F::any, 12, 1},
        {F::any, 13, 1},
        {F::any, 14, 1},
        {F::any, 19, 7},
        {F::any, 32, 8},
        {F::any, 40, 8},
        {F::any, 48, 5},
        {F::any, 53, 2},
        {F::any, 55, 1},
        {F::source8, 56, 8}},
       2000},
  };
  return list;
}

inline std::uint32_t draw(Random& random, const Field& field) {
  const std::uint32_t anything = random() >> (32 - field.bits);
  if (random.below(2) == 0) return 0;
  switch (field.kind) {
    case Field::source9:
      switch (random.below(8)) {
        case 0:
          return 249;  // SDWA
        case 1:
          return 250;  // DPP
        case 2:
          return 255;
        case 3:
          return 128 + random.below(128);
        case 4:
          return random.below(128);
        default:
          return 256 + random.below(256);
      }
    case Field::vector9:
      return 256 + (anything & 0xff);
    case Field::source8:
      switch (random.below(4)) {
        case 0:
          return (random.below(8) == 0 ? 255 : 128 + random.below(128)) & ((1u << field.bits) - 1);
        case 1:
          return 96 + random.below(32);
        default:
          return random.below(104);
      }
    case Field::register8:  // one that exists as v and as s
      return anything & (random.below(2) == 0 ? 0x3f : 0xff);
    case Field::saddr:
      return random.below(3) == 0 ? anything : 0x7f;
    case Field::any:
      break;
  }
  return anything;
}

/// SDWA and DPP words are refused for most random bits, so aim at plausible ones.
inline std::uint32_t draw_extension(Random& random, bool sdwa) {
  std::uint32_t w = random();
  if (random.below(4) == 0) return w;
  if (!sdwa) {
    if (random.below(2) == 0) w &= 0xff0fffff;
    if (random.below(2) == 0) w = (w & ~0x1ff00u) | (0x100 + random.below(0x60)) << 8;
    if (random.below(4) == 0) w = (w & ~0x1ff00u) | (0x150 + random.below(16)) << 8;
    return w;
  }
  w = (w & ~0x07071f00u) | random.below(7) << 8 | random.below(3) << 11 | random.below(7) << 16 |
      random.below(7) << 24;
  if (random.below(2) == 0) w = (w & ~0x700u) | 6u << 8;
  if (random.below(2) == 0) w &= ~0xc000u;      // omod
  if (random.below(2) == 0) w &= ~0x08080000u;  // sext
  if (random.below(2) == 0) w &= ~0x30300000u;  // neg, abs
  if (random.below(3) == 0) w &= ~0xbf000000u;  // one source
  return w;
}

inline Words draw(Random& random, const Format& format, std::uint32_t number) {
  std::uint64_t w = format.fixed | std::uint64_t{number} << format.number_low;
  const bool sparse = random.below(8) == 0;  // for operations that want nearly all fields zero
  for (const Field& field : format.fields)
    if (!sparse || random.below(16) == 0) w |= std::uint64_t{draw(random, field)} << field.low;
  Words words = {static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(w >> 32), random()};
  const std::uint32_t source = words[0] & 0x1ff;
  if (words[0] >> 31 == 0 && (source == 249 || source == 250))
    words[1] = draw_extension(random, source == 249);
  return words;
}

}  // namespace attest::device::sim
