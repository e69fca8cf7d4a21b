// SPDX-License-Identifier: MIT
//
// The decoder and the disassembler against LLVM 19's, word for word and letter for letter.
//
// Three sources of words, all with fixed seeds: a few by hand, for readers; every number of every encoding
// with many operand combinations, aimed so that each row of encodings.def is met in accepted form; and plain
// random words. The two must agree on acceptance, size and text. Where they may not, `Difference` says why;
// there is no other exception.
#include "device/simulator/isa/decode.h"

#include <llvm-c/Disassembler.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/simulator/isa/disassemble.h"
#include "device/simulator/isa/encodings.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace attest::device::sim {
namespace {

using Words = std::array<std::uint32_t, 3>;

struct Text {
  std::string text;
  unsigned size = 0;  ///< bytes
};

class Llvm {
 public:
  Llvm() {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    context_ = LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", "gfx942", nullptr, 0, nullptr, nullptr);
    REQUIRE(context_ != nullptr);
  }
  ~Llvm() { LLVMDisasmDispose(context_); }
  Llvm(const Llvm&) = delete;
  Llvm& operator=(const Llvm&) = delete;

  /// nullopt: refused.
  std::optional<Text> operator()(std::span<const std::uint32_t> words) {
    std::array<std::uint8_t, 12> bytes{};
    for (std::size_t b = 0; b < words.size() * 4; ++b)
      bytes[b] = static_cast<std::uint8_t>(words[b / 4] >> (b % 4 * 8));
    char out[1024];
    const std::size_t size =
        LLVMDisasmInstruction(context_, bytes.data(), words.size() * 4, 0, out, sizeof out);
    if (size == 0) return std::nullopt;
    std::string text = out;
    if (const auto note = text.find(" ; "); note != std::string::npos) text.erase(note);
    for (char& c : text)
      if (c == '\t') c = ' ';
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
    text.erase(0, text.find_first_not_of(' '));
    return Text{text, static_cast<unsigned>(size)};
  }

 private:
  LLVMDisasmContextRef context_;
};

/// Where this decoder deliberately refuses what LLVM's disassembler lets through.
enum class Difference {
  none,
  flagged,        ///< LLVM prints it with its own complaint inside: "/*Invalid register ...*/",
                  ///< "/* Invalid dpp_ctrl value */", "/* DP ALU dpp only supports row_newbcast */"
  null_register,  ///< LLVM prints "null" for code 125, which is a register from gfx10 on
  lds_direct,     ///< LLVM prints code 254, which gfx90a and later do not have (LLVM's assembler refuses it)
  special_as_vector,  ///< LLVM prints src_scc and the like where the field can only name a vector or a
                      ///< destination
};

Difference excuse(const std::optional<Text>& theirs, const Decoded& ours) {
  if (!theirs || ours) return Difference::none;
  const std::string& t = theirs->text;
  const auto has = [&t](const char* part) { return t.find(part) != std::string::npos; };
  if (has("/*")) return Difference::flagged;
  if (has("src_lds_direct")) return Difference::lds_direct;
  if (has("null")) return Difference::null_register;
  if (has("src_") && ours.why.find("operand code") != std::string::npos) return Difference::special_as_vector;
  return Difference::none;
}

/// LLVM 19 runs into llvm_unreachable on reserved SDWA selections; ours must refuse them, LLVM is not asked.
bool reserved_sdwa(const Words& w) {
  if (w[0] >> 31 != 0 || (w[0] & 0x1ff) != 249) return false;
  const bool compare = w[0] >> 25 == 0b0111110;
  const auto field = [&w](unsigned low, unsigned bits) { return w[1] >> low & ((1u << bits) - 1); };
  return field(16, 3) == 7 || field(24, 3) == 7 || (!compare && (field(8, 3) == 7 || field(11, 2) == 3));
}

class Judge {
 public:
  void operator()(const Words& words) {
    const Decoded ours = decode(words);
    if (reserved_sdwa(words)) {
      const auto* row = ours ? find_encoding(ours.instruction.encoding, ours.instruction.op) : nullptr;
      if (row != nullptr && row->has(form::sdwa)) report(words, ours, std::nullopt);
      return;
    }
    const auto theirs = llvm_(words);
    if (ours) {
      const Instruction& i = ours.instruction;
      ++accepted;
      ++seen[{i.encoding, i.op, i.extension, i.lds}];
      if (!theirs || theirs->size != i.size_bytes || theirs->text != disassemble(i))
        report(words, ours, theirs);
    } else if (theirs) {
      const Difference difference = excuse(theirs, ours);
      ++differences[difference];
      if (difference == Difference::none) report(words, ours, theirs);
    } else {
      ++refused;
    }
  }

  std::uint64_t accepted = 0, refused = 0;
  struct Form {
    Encoding encoding;
    Op op;
    Extension extension;
    bool lds;
    auto operator<=>(const Form&) const = default;
  };
  std::map<Form, std::uint64_t> seen;
  std::map<Difference, std::uint64_t> differences;
  std::vector<std::string> failures;

 private:
  void report(const Words& w, const Decoded& ours, const std::optional<Text>& theirs) {
    if (failures.size() >= 20) return;
    char hex[32];
    std::snprintf(hex, sizeof hex, "%08x %08x %08x", w[0], w[1], w[2]);
    failures.push_back(std::string(hex) +
                       "\n  ours: " + (ours ? disassemble(ours.instruction) : "refused, " + ours.why) +
                       "\n  llvm: " + (theirs ? theirs->text : "refused"));
  }

  Llvm llvm_;
};

void require_agreement(const Judge& judge) {
  std::string all;
  for (const std::string& failure : judge.failures) all += failure + '\n';
  INFO(all);
  REQUIRE(judge.failures.empty());
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

const std::vector<Format>& formats() {
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

std::uint32_t draw(Random& random, const Field& field) {
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
std::uint32_t draw_extension(Random& random, bool sdwa) {
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

Words draw(Random& random, const Format& format, std::uint32_t number) {
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

struct Row {
  Encoding encoding;
  Op op;
  std::uint32_t forms;
};
constexpr Row rows[] = {
#define ATTEST_ENCODING(encoding, number, op, forms) \
  {Encoding::encoding, Op::op, []() constexpr {      \
     using namespace form;                           \
     return std::uint32_t{forms};                    \
   }()},
#include "device/simulator/isa/encodings.def"
#undef ATTEST_ENCODING
};

}  // namespace

TEST_CASE("Words by hand") {
  const auto text = [](std::vector<std::uint32_t> words) {
    const Decoded decoded = decode(words);
    CHECK(decoded.instruction.size_bytes == words.size() * 4);
    return decoded ? disassemble(decoded.instruction) : decoded.why;
  };
  CHECK(text({0x02000501}) == "v_add_f32_e32 v0, v1, v2");
  CHECK(text({0xd1010000, 0x00020501}) == "v_add_f32_e64 v0, v1, v2");
  CHECK(text({0xbe8000ff, 0x12345678}) == "s_mov_b32 s0, 0x12345678");
  CHECK(text({0xd3e18000, 0x0c020508}) == "v_mfma_f32_16x16x16_bf16 a[0:3], a[8:9], v[2:3], a[0:3]");
  CHECK(text({0xe0511000, 0x80020001}) == "buffer_load_dword v1, s[8:11], 0 offen lds");
  CHECK(text({0xbf8c0f70}) == "s_waitcnt vmcnt(0)");
  CHECK(text({0x0a0204fa, 0xff015003}) ==
        "v_mul_f32_dpp v1, v3, v2 row_newbcast:0 row_mask:0xf bank_mask:0xf");
}

TEST_CASE("What is refused is named") {
  const auto why = [](std::vector<std::uint32_t> words) {
    const Decoded decoded = decode(words);
    CHECK_FALSE(decoded);
    CHECK(decoded.instruction.size_bytes == 4);
    return decoded.why;
  };
  CHECK(why({}) == "no words left");
  CHECK(why({0x2c000000}) == "reserved opcode 0x16 of VOP2");
  CHECK(why({0xbe8000ff}) == "truncated: the literal is missing");
  CHECK(why({0xd1010000}) == "truncated: an 8-byte encoding in the last 4 bytes");
  CHECK(why({0x020004f9}) == "truncated: the SDWA word is missing");
  CHECK(why({0xf0000000, 0}) == "no gfx942 encoding starts with 0xf0");
  CHECK(why({0xd3b58000, 0}) == "reserved opcode 0x35 of VOP3P");  // a gfx950 MFMA
}

TEST_CASE("Every number of every encoding agrees with LLVM") {
  Judge judge;
  Random random(942);
  for (const Format& format : formats())
    for (std::uint32_t number = 0; number < 1u << format.number_bits; ++number)
      for (unsigned trial = 0; trial < format.trials; ++trial) judge(draw(random, format, number));
  require_agreement(judge);
  CHECK(judge.accepted > 200'000);

  // Every row and every extension it claims was met in accepted form, so text was compared.
  for (const Row& row : rows) {
    INFO(info(row.op).name);
    const auto seen = [&](Extension extension, bool lds) {
      return judge.seen[{row.encoding, row.op, extension, lds}];
    };
    CHECK(seen(Extension::none, row.op == Op::buffer_store_lds_dword) >= 4);
    if ((row.forms & form::sdwa) != 0) CHECK(seen(Extension::sdwa, false) >= 1);
    if ((row.forms & form::dpp) != 0) CHECK(seen(Extension::dpp, false) >= 1);
    if ((row.forms & form::lds) != 0) CHECK(seen(Extension::none, true) >= 1);
  }
  // An exception nobody needs is a hole.
  for (const Difference d : {Difference::flagged, Difference::null_register, Difference::lds_direct,
                             Difference::special_as_vector})
    CHECK(judge.differences[d] > 0);
}

TEST_CASE("Random words agree with LLVM") {
  Judge judge;
  Random random(1);
  for (int n = 0; n < 500'000; ++n) judge({random(), random(), random()});
  require_agreement(judge);
  CHECK(judge.accepted > 50'000);
  CHECK(judge.refused > 50'000);
}

TEST_CASE("Truncated code agrees with LLVM") {
  Llvm llvm;
  Random random(2);
  for (int n = 0; n < 100'000; ++n) {
    const Words words = {random(), random(), random()};
    if (reserved_sdwa(words)) continue;
    const std::span<const std::uint32_t> first(words.data(), 1);
    const Decoded whole = decode(words);
    if (!whole) continue;
    CHECK(static_cast<bool>(decode(first)) == (whole.instruction.size_bytes == 4));
    CHECK(llvm(first).has_value() == (whole.instruction.size_bytes == 4));
  }
}

TEST_CASE("The comparison catches a wrong decoder") {
  // Each single-field mistake in a decoded instruction shows in the text.
  const std::vector<std::uint32_t> words = {0x0a0204fa, 0xff095003};
  const Decoded right = decode(words);
  REQUIRE(right);
  const std::string text = disassemble(right.instruction);
  REQUIRE(Llvm()(words)->text == text);
  const auto differs = [&](auto change) {
    Instruction wrong = right.instruction;
    change(wrong);
    CHECK(disassemble(wrong) != text);
  };
  differs([](Instruction& i) { i.op = Op::v_add_f32; });
  differs([](Instruction& i) { ++i.dst; });
  differs([](Instruction& i) { ++i.src[0]; });
  differs([](Instruction& i) { ++i.src[1]; });
  differs([](Instruction& i) { i.neg = 1; });
  differs([](Instruction& i) { i.abs = 2; });
  differs([](Instruction& i) { ++i.dpp_ctrl; });
  differs([](Instruction& i) { i.row_mask = 7; });
  differs([](Instruction& i) { i.bank_mask = 7; });
  differs([](Instruction& i) { i.bound_ctrl = false; });
  differs([](Instruction& i) { i.extension = Extension::none; });
}

TEST_CASE("Names and shapes") {
  CHECK(find_op("v_mfma_f32_16x16x16_bf16") == Op::v_mfma_f32_16x16x16_bf16);
  CHECK(find_op("v_add_f32_e32") == Op::invalid);
  CHECK(info(Op::invalid).name == "invalid");
  CHECK(dwords(info(Op::v_mfma_f32_32x32x8_bf16).dst) == 16);
  CHECK(dwords(info(Op::global_atomic_cmpswap_x2).src[1]) == 4);
  CHECK(info(Op::v_fmac_f32).has(op_flag::reads_dst));
  CHECK(info(Op::s_add_u32).has(op_flag::writes_scc));
  CHECK_FALSE(info(Op::s_mul_i32).has(op_flag::writes_scc));
  std::set<std::string_view> names;
  for (std::size_t op = 1; op < op_count; ++op) {
    names.insert(info(static_cast<Op>(op)).name);
    CHECK(find_op(info(static_cast<Op>(op)).name) == static_cast<Op>(op));
  }
  CHECK(names.size() == op_count - 1);
  CHECK(disassemble(Instruction{}) == "<invalid>");
}

}  // namespace attest::device::sim
