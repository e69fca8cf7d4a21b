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
#include "device/simulator/tests/random_words.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace attest::device::sim {
namespace {

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
