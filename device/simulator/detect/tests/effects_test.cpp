// SPDX-License-Identifier: MIT
//
// The effects of every instruction against LLVM 19's instruction descriptions, which the compiler itself
// relies on when it inserts waits. Where the two may differ, `compare` says so beside the exception.
#include "device/simulator/detect/effects.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <catch2/catch.hpp>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"
#include "device/simulator/isa/encodings.h"
#include "device/simulator/tests/random_words.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace attest::device::sim::detect {
namespace {

/// Registers of both files in one number space: scalar codes, then vector rows from 1000.
using Set = std::set<unsigned>;
constexpr unsigned vector_base = 1000;

struct Described {
  Set reads, writes, tied;
  bool uses_exec = false;
};

class Llvm {
 public:
  Llvm() {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    const std::string triple = "amdgcn-amd-amdhsa";
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    REQUIRE(target != nullptr);
    registers_.reset(target->createMCRegInfo(triple));
    asm_.reset(target->createMCAsmInfo(*registers_, triple, options_));
    subtarget_.reset(target->createMCSubtargetInfo(triple, "gfx942", ""));
    instructions_.reset(target->createMCInstrInfo());
    context_ = std::make_unique<llvm::MCContext>(llvm::Triple(triple), asm_.get(), registers_.get(),
                                                 subtarget_.get());
    disassembler_.reset(target->createMCDisassembler(*subtarget_, *context_));
  }

  std::optional<Described> operator()(const Words& words) {
    std::array<std::uint8_t, 12> bytes{};
    for (std::size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<std::uint8_t>(words[b / 4] >> (b % 4 * 8));
    llvm::MCInst inst;
    std::uint64_t size = 0;
    const auto status = disassembler_->getInstruction(inst, size, bytes, 0, llvm::nulls());
    if (status != llvm::MCDisassembler::Success) return std::nullopt;
    const llvm::MCInstrDesc& desc = instructions_->get(inst.getOpcode());
    Described d;
    for (unsigned k = 0; k < inst.getNumOperands(); ++k) {
      if (!inst.getOperand(k).isReg()) continue;
      const auto reg = inst.getOperand(k).getReg();
      if (k < desc.getNumDefs())
        add(reg, d.writes);
      else if (k < desc.getNumOperands() && desc.getOperandConstraint(k, llvm::MCOI::TIED_TO) != -1)
        add(reg, d.tied);
      else
        add(reg, d.reads);
    }
    for (const auto reg : desc.implicit_uses()) {
      if (std::string(registers_->getName(reg)) == "EXEC")
        d.uses_exec = true;
      else
        add(reg, d.reads);
    }
    for (const auto reg : desc.implicit_defs()) add(reg, d.writes);
    name_ = instructions_->getName(inst.getOpcode()).str();
    return d;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void add(unsigned reg, Set& set) const {
    if (reg == 0) return;
    for (const auto sub : registers_->subregs_inclusive(reg)) one(registers_->getName(sub), set);
  }
  static void one(std::string_view name, Set& set) {
    const auto numbered = [&](std::string_view prefix, unsigned base) {
      if (!name.starts_with(prefix)) return;
      unsigned n = 0;
      const auto [end, failed] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
      if (failed != std::errc{}) return;
      const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
      if (rest.empty() || rest == "_gfx9plus" || rest == "_vi") set.insert(base + n);
    };
    numbered("VGPR", vector_base);
    numbered("AGPR", vector_base + 256);
    numbered("SGPR", 0);
    numbered("TTMP", 108);
    static const std::map<std::string_view, std::pair<unsigned, unsigned>> special = {
        {"FLAT_SCR_LO", {102, 1}},    {"FLAT_SCR_HI", {103, 1}},     {"FLAT_SCR_LO_vi", {102, 1}},
        {"FLAT_SCR_HI_vi", {103, 1}}, {"XNACK_MASK_LO", {104, 1}},   {"XNACK_MASK_HI", {105, 1}},
        {"VCC_LO", {106, 1}},         {"VCC_HI", {107, 1}},          {"M0", {124, 1}},
        {"M0_gfxpre11", {124, 1}},    {"EXEC_LO", {126, 1}},         {"EXEC_HI", {127, 1}},
        {"SCC", {scalar::scc, 1}},    {"SRC_SCC", {scalar::scc, 1}}, {"MODE", {scalar::mode, 1}},
        {"SRC_VCCZ", {106, 2}},       {"SRC_EXECZ", {126, 2}},
    };
    if (const auto found = special.find(name); found != special.end())
      for (unsigned k = 0; k < found->second.second; ++k) set.insert(found->second.first + k);
  }

  llvm::MCTargetOptions options_;
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> asm_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> disassembler_;
  std::string name_;
};

std::string text(const Set& set) {
  std::string all;
  for (const unsigned r : set) {
    all += r >= vector_base + 256 ? " a" : r >= vector_base ? " v" : " #";
    all += std::to_string(r >= vector_base + 256 ? r - vector_base - 256
                          : r >= vector_base     ? r - vector_base
                                                 : r);
  }
  return all;
}

/// Empty when the two agree.
std::string compare(const Instruction& i, const Effects& e, const Described& theirs) {
  Set reads, writes, kept;
  for (const Registers& r : e.vector_reads)
    for (unsigned k = 0; k < r.count; ++k) reads.insert(vector_base + r.first + k);
  for (const Registers& r : e.scalar_reads)
    for (unsigned k = 0; k < r.count; ++k) reads.insert(r.first + k);
  for (const Registers& r : e.vector_writes)
    for (unsigned k = 0; k < r.count; ++k) {
      writes.insert(vector_base + r.first + k);
      if (r.bytes != 0xf || i.op == Op::v_writelane_b32) kept.insert(vector_base + r.first + k);
    }
  for (const Registers& r : e.scalar_writes)
    for (unsigned k = 0; k < r.count; ++k) writes.insert(r.first + k);

  Set their_reads = theirs.reads, their_writes = theirs.writes;
  const auto ignore = [](unsigned r, auto&... sets) { (sets.erase(r), ...); };
  // MODE: LLVM names it for floating point in general, the table where the result depends on it.
  ignore(scalar::mode, reads, their_reads, writes, their_writes);
  // EXEC: of MFMA and of instructions with one lane the manual says that they ignore it.
  if (theirs.uses_exec && !e.exec_masked && e.unit != Unit::mfma && e.unit != Unit::valu)
    their_reads.insert({operand::exec, operand::exec + 1});
  if (e.exec_masked && !theirs.uses_exec) return "obeys EXEC, not in LLVM";
  // What a tied input means: the old value is a source (reads) or stays in part (kept). LLVM does not always
  // tie, and ties all of DPP for its disabled lanes.
  for (const unsigned r : theirs.tied)
    if (!e.dpp) their_reads.insert(r);
  for (const unsigned r : kept) {
    const bool other_source = theirs.reads.contains(r) && reads.contains(r);
    if (!other_source) ignore(r, reads, their_reads);
  }
  if (info(i.op).has(op_flag::reads_dst) && theirs.tied.empty())
    for (const unsigned r : writes)
      if (!theirs.reads.contains(r)) reads.erase(r);
  if (e.dpp && info(i.op).has(op_flag::reads_dst))
    for (const unsigned r : theirs.tied)
      if (!theirs.reads.contains(r)) reads.erase(r);
  if (e.relative)
    for (const unsigned r : Set(writes)) ignore(r, reads, their_reads, writes, their_writes);
  // An SDWA compare writes vcc or the pair it names, not both.
  if (e.sdwa && i.encoding == Encoding::vopc && i.dst != operand::vcc)
    for (const unsigned r : {106u, 107u}) ignore(r, their_writes);
  // FLAT_SCRATCH, which gfx942 has in hardware.
  if (i.encoding == Encoding::flat || i.encoding == Encoding::scratch || i.encoding == Encoding::smem)
    for (const unsigned r : {102u, 103u}) ignore(r, reads, their_reads);
  // A compare-and-swap returns one value; LLVM gives it the pair that the instruction names.
  if (e.atomic && info(i.op).name.find("cmpswap") != std::string_view::npos) {
    for (const unsigned r : writes)
      if (!their_writes.contains(r)) return "writes" + text(writes) + ", LLVM" + text(their_writes);
    their_writes = writes;
  }
  // M0 as the LDS limit of older targets.
  if (i.encoding == Encoding::ds) {
    their_reads.erase(operand::m0);
    reads.erase(operand::m0);
  }
  // Of a packed pair only the half that op_sel asks for is read.
  if (i.encoding == Encoding::vop3p && info(i.op).src[0] != Slot::none && dwords(info(i.op).src[0]) == 2) {
    for (const unsigned r : reads)
      if (!their_reads.contains(r)) return "reads" + text(reads) + ", LLVM" + text(their_reads);
    their_reads = reads;
  }
  if (reads != their_reads) return "reads" + text(reads) + ", LLVM" + text(their_reads);
  if (writes != their_writes) return "writes" + text(writes) + ", LLVM" + text(their_writes);
  return "";
}

Effects effects(std::vector<std::uint32_t> words) {
  const Decoded decoded = decode(words);
  REQUIRE(decoded);
  return effects_of(decoded.instruction);
}

}  // namespace

TEST_CASE("Registers of every operation agree with LLVM's descriptions") {
  Llvm llvm;
  Random random(7);
  std::map<std::string, std::string> failures;  // one per operation
  std::set<std::pair<Encoding, Op>> compared;
  for (const Format& format : formats())
    for (std::uint32_t number = 0; number < 1u << format.number_bits; ++number)
      for (unsigned trial = 0; trial < format.trials; ++trial) {
        const Words words = draw(random, format, number);
        if (reserved_sdwa(words)) continue;
        const Decoded ours = decode(words);
        if (!ours) continue;
        const auto theirs = llvm(words);
        if (!theirs) continue;
        compared.insert({ours.instruction.encoding, ours.instruction.op});
        const std::string why = compare(ours.instruction, effects_of(ours.instruction), *theirs);
        if (!why.empty())
          failures.emplace(std::string(info(ours.instruction.op).name),
                           disassemble(ours.instruction) + " (" + llvm.name() + "): " + why);
      }
  std::string all;
  for (const auto& [name, why] : failures) all += why + "\n";
  INFO(all);
  CHECK(failures.empty());
  // Every row was met.
#define ATTEST_ENCODING(encoding, number, op, forms) CHECK(compared.contains({Encoding::encoding, Op::op}));
#include "device/simulator/isa/encodings.def"
#undef ATTEST_ENCODING
}

TEST_CASE("The comparison with LLVM catches wrong registers") {
  Llvm llvm;
  const Words words = {0xd3e18000, 0x0c020508, 0};  // v_mfma_f32_16x16x16_bf16 a[0:3], a[8:9], v[2:3], a[0:3]
  const Decoded decoded = decode(words);
  const Described theirs = *llvm(words);
  const Effects right = effects_of(decoded.instruction);
  CHECK(compare(decoded.instruction, right, theirs).empty());
  Effects more = right;
  more.vector_reads.add(7, 1);
  CHECK(compare(decoded.instruction, more, theirs) ==
        "reads v2 v3 v7 a0 a1 a2 a3 a8 a9, LLVM v2 v3 a0 a1 a2 a3 a8 a9");
  Effects none = right;
  none.vector_writes = {};
  CHECK(compare(decoded.instruction, none, theirs) == "writes, LLVM a0 a1 a2 a3");
}

TEST_CASE("Units, counters and masks by hand") {
  SECTION("vector memory counts in vmcnt, loads and stores alike") {
    const Effects load = effects({0xe0501000, 0x80020100});  // buffer_load_dword v1, v0, s[8:11], 0 offen
    CHECK(load.unit == Unit::vmem);
    CHECK((load.vmcnt && load.lgkmcnt == 0 && load.load && !load.store && load.exec_masked));
    CHECK(load.vector_reads[0] == Registers{0, 1});
    CHECK(load.scalar_reads[0] == Registers{8, 4});
    CHECK(load.vector_writes[0] == Registers{1, 1});
    const Effects store = effects({0xdc748000, 0x00000200});  // global_store_dwordx2 v0, v[2:3], s[0:1]
    CHECK((store.vmcnt && store.store && !store.load));
    CHECK(store.vector_writes.empty());
  }
  SECTION("LDS-DMA reads M0 and writes no register") {
    const Effects e = effects({0xe0511000, 0x80020001});  // buffer_load_dword v1, s[8:11], 0 offen lds
    CHECK((e.lds_dma && e.vmcnt && e.lgkmcnt == 0));
    CHECK(e.vector_writes.empty());
    CHECK(e.scalar_reads[1] == Registers{operand::m0, 1});
  }
  SECTION("scalar loads count twice above a dword") {
    CHECK(effects({0xc0020002, 0}).lgkmcnt == 1);  // s_load_dword s0, s[4:5], 0x0
    const Effects e = effects({0xc00a0202, 0});    // s_load_dwordx4 s[8:11], s[4:5], 0x0
    CHECK((e.unit == Unit::smem && e.lgkmcnt == 2 && !e.vmcnt && !e.exec_masked));
    CHECK(e.scalar_writes[0] == Registers{8, 4});
  }
  SECTION("LDS counts in lgkmcnt, flat in both") {
    CHECK(effects({0xd86c0000, 0x00000001}).lgkmcnt == 1);   // ds_read_b32 v0, v1
    const Effects flat = effects({0xdc500000, 0x00000002});  // flat_load_dword v0, v[2:3]
    CHECK((flat.unit == Unit::flat && flat.vmcnt && flat.lgkmcnt == 1));
    CHECK_FALSE(effects({0xe0a40000, 0}).vmcnt);  // buffer_inv
    CHECK(effects({0xe0a00000, 0}).vmcnt);        // buffer_wbl2
  }
  SECTION("MFMA ignores EXEC; passes by shape") {
    const Effects e = effects({0xd3e18000, 0x0c020508});  // v_mfma_f32_16x16x16_bf16
    CHECK((e.unit == Unit::mfma && e.matrix == Matrix::xdl && e.passes == 4 && !e.exec_masked));
    const auto passes = [](Op op) {
      Instruction i;
      i.op = op;
      i.encoding = Encoding::mai;
      return effects_of(i).passes;
    };
    CHECK(passes(Op::v_mfma_f32_4x4x4_16b_bf16) == 2);
    CHECK(passes(Op::v_mfma_f32_16x16x32_fp8_fp8) == 4);
    CHECK(passes(Op::v_mfma_f32_16x16x8_xf32) == 4);
    CHECK(passes(Op::v_mfma_f32_16x16x4_f32) == 8);
    CHECK(passes(Op::v_mfma_f32_16x16x4_4b_f16) == 8);
    CHECK(passes(Op::v_mfma_f32_32x32x4_xf32) == 8);
    CHECK(passes(Op::v_mfma_f32_32x32x8_bf16) == 8);
    CHECK(passes(Op::v_mfma_f32_32x32x4_2b_bf16) == 16);
    CHECK(passes(Op::v_mfma_f32_32x32x2_f32) == 16);
    CHECK(passes(Op::v_mfma_f64_16x16x4_f64) == 8);
    CHECK(passes(Op::v_mfma_f64_4x4x4_4b_f64) == 4);
    CHECK(passes(Op::v_smfmac_f32_32x32x16_bf16) == 8);
  }
  SECTION("parts of registers") {
    const Effects hi = effects({0xdc848000, 0x00000002});  // global_load_ubyte_d16_hi v0, v2, s[0:1]
    CHECK(hi.vector_writes[0].bytes == 0b1100);
    const Effects packed =
        effects({0xd3b14000, 0x10020502});  // v_pk_mul_f32 v[0:1], v[2:3], v[2:3], second high half low
    CHECK(packed.vector_writes[0] == Registers{0, 2});
  }
  SECTION("GPR indexing") {
    const Decoded add = decode(std::vector<std::uint32_t>{0x68020403});  // v_add_u32_e32 v1, s3, v2
    const Effects plain = effects_of(add.instruction);
    CHECK_FALSE(depends_on_m0(plain, 0));
    CHECK(depends_on_m0(plain, mode::gpr_idx_en));
    const Effects shifted =
        effects_of(add.instruction, mode::gpr_idx_en, 0xa000 | 5);  // second source, destination
    CHECK(shifted.vector_reads[0] == Registers{7, 1});
    CHECK(shifted.vector_writes[0] == Registers{6, 1});
    CHECK(shifted.scalar_reads[0] == Registers{3, 1});
  }
  SECTION("s_waitcnt fields") {
    CHECK(wait_counts(0x0f70).vmcnt == 0);
    CHECK(wait_counts(0x0f70).lgkmcnt == 15);
    CHECK(wait_counts(0xc07f).lgkmcnt == 0);
    CHECK(wait_counts(0x4f72).vmcnt == 18);
    CHECK(wait_counts(static_cast<std::int16_t>(0xcf7f)).vmcnt == 63);
  }
}

}  // namespace attest::device::sim::detect
