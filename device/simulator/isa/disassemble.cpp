// SPDX-License-Identifier: MIT
//
// Text follows LLVM's AMDGPUInstPrinter: mnemonic, operands in assembler order, then modifiers, each left out
// when it has its default. What is printed is what an assembler needs to make the same word again.
#include "device/simulator/isa/disassemble.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <iterator>
#include <string_view>

#include "device/simulator/isa/encodings.h"

namespace attest::device::sim {
namespace {

constexpr bool is_fp_constant(unsigned code) {
  return code >= 240 && code <= 248;
}

std::string_view fp_constant(unsigned code, Slot slot) {
  constexpr std::string_view names[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"};
  if (code < 248) return names[code - 240];
  return (dwords(slot) == 2 && slot != Slot::v2f32 && slot != Slot::v2b32) || slot == Slot::v4f64
             ? "0.15915494309189532"
             : "0.15915494";
}

std::string tuple(char file, unsigned first, unsigned count) {
  if (count == 1) return fmt::format("{}{}", file, first);
  return fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

std::string_view special(unsigned code, unsigned count) {
  const bool pair = count == 2;
  switch (code) {
    case 102:
      return pair ? "flat_scratch" : "flat_scratch_lo";
    case 103:
      return "flat_scratch_hi";
    case 104:
      return pair ? "xnack_mask" : "xnack_mask_lo";
    case 105:
      return "xnack_mask_hi";
    case 106:
      return pair ? "vcc" : "vcc_lo";
    case 107:
      return "vcc_hi";
    case 124:
      return "m0";
    case 126:
      return pair ? "exec" : "exec_lo";
    case 127:
      return "exec_hi";
    case 235:
      return "src_shared_base";
    case 236:
      return "src_shared_limit";
    case 237:
      return "src_private_base";
    case 238:
      return "src_private_limit";
    case 239:
      return "src_pops_exiting_wave_id";
    case 251:
      return "src_vccz";
    case 252:
      return "src_execz";
    case 253:
      return "src_scc";
    case 254:
      return "src_lds_direct";
    default:
      return "?";
  }
}

std::string literal_text(std::uint32_t value, Slot slot) {
  const auto signed_value = static_cast<std::int32_t>(value);
  switch (slot) {
    case Slot::b16:
    case Slot::f16:
    case Slot::bf16: {
      const auto half = static_cast<std::int16_t>(value);
      const std::int32_t whole = slot == Slot::b16 ? signed_value : half;
      if (whole >= -16 && whole <= 64) return fmt::format("{}", whole);
      if (slot == Slot::f16) {
        constexpr std::uint16_t bits[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                          0xc000, 0x4400, 0xc400, 0x3118};
        for (unsigned i = 0; i < std::size(bits); ++i)
          if (static_cast<std::uint16_t>(half) == bits[i]) return std::string(fp_constant(240 + i, slot));
      }
      return fmt::format("0x{:x}", static_cast<std::uint16_t>(half));
    }
    default:
      break;
  }
  if (slot == Slot::f64) {  // the literal is the high half
    constexpr std::uint32_t bits[] = {0x3fe00000, 0xbfe00000, 0x3ff00000, 0xbff00000,
                                      0x40000000, 0xc0000000, 0x40100000, 0xc0100000};
    if (value == 0) return "0";
    for (unsigned i = 0; i < std::size(bits); ++i)
      if (value == bits[i]) return std::string(fp_constant(240 + i, slot));
    return fmt::format("0x{:x}", value);
  }
  if (signed_value >= (dwords(slot) == 2 ? 0 : -16) && signed_value <= 64)
    return fmt::format("{}", signed_value);
  if (dwords(slot) == 1) {
    constexpr std::uint32_t bits[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                      0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    for (unsigned i = 0; i < std::size(bits); ++i)
      if (value == bits[i]) return std::string(fp_constant(240 + i, slot));
  }
  return fmt::format("0x{:x}", value);
}

std::string text(const Instruction& i, std::uint16_t code, Slot slot) {
  const unsigned count = dwords(slot);
  if (code == operand::none) return "off";
  if (code >= operand::agpr0) return tuple('a', code - operand::agpr0, count);
  if (code >= operand::vgpr0) return tuple('v', code - operand::vgpr0, count);
  if (code <= 101) return tuple('s', code, count);
  if (code >= 108 && code <= 123)
    return count == 1 ? fmt::format("ttmp{}", code - 108)
                      : fmt::format("ttmp[{}:{}]", code - 108, code - 109 + count);
  if (code >= 128 && code <= 192) return fmt::format("{}", code - 128);
  if (code >= 193 && code <= 208) return fmt::format("{}", 192 - static_cast<int>(code));
  if (is_fp_constant(code)) {
    if (slot == Slot::b16) {
      constexpr std::uint16_t bits[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                        0xc000, 0x4400, 0xc400, 0x3118};
      return fmt::format("0x{:x}", bits[code - 240]);
    }
    return std::string(fp_constant(code, slot));
  }
  if (code == operand::literal) return literal_text(i.literal, slot);
  return std::string(special(code, count));
}

/// As inline constants are printed: decimal up to 64.
std::string small_or_hex(unsigned value) {
  return value > 64 ? fmt::format("0x{:x}", value) : fmt::format("{}", value);
}

std::string send_message(unsigned imm) {
  const unsigned id = imm & 0xf, op = imm >> 4 & 7, stream = imm >> 8 & 3;
  constexpr std::string_view names[16] = {"",
                                          "MSG_INTERRUPT",
                                          "MSG_GS",
                                          "MSG_GS_DONE",
                                          "MSG_SAVEWAVE",
                                          "MSG_STALL_WAVE_GEN",
                                          "MSG_HALT_WAVES",
                                          "MSG_ORDERED_PS_DONE",
                                          "MSG_EARLY_PRIM_DEALLOC",
                                          "MSG_GS_ALLOC_REQ",
                                          "MSG_GET_DOORBELL",
                                          "",
                                          "",
                                          "",
                                          "",
                                          "MSG_SYSMSG"};
  constexpr std::string_view gs_ops[] = {"GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"};
  constexpr std::string_view sys_ops[] = {"", "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", "",
                                          "SYSMSG_OP_TTRACE_PC"};
  const bool geometry = id == 2 || id == 3;
  if (geometry && op < 4 && (op != 0 || (id == 3 && stream == 0))) {
    if (op == 0) return fmt::format("sendmsg({}, {})", names[id], gs_ops[0]);
    return fmt::format("sendmsg({}, {}, {})", names[id], gs_ops[op], stream);
  }
  if (id == 15 && op < 5 && !sys_ops[op].empty() && stream == 0)
    return fmt::format("sendmsg({}, {})", names[id], sys_ops[op]);
  if (!geometry && id != 15 && !names[id].empty() && op == 0 && stream == 0)
    return fmt::format("sendmsg({})", names[id]);
  if ((imm & ~0x37fu) != 0) return fmt::format("{}", imm);
  return fmt::format("sendmsg({}, {}, {})", id, op, stream);
}

std::string hardware_register(unsigned imm) {
  constexpr std::string_view names[] = {"",
                                        "HW_REG_MODE",
                                        "HW_REG_STATUS",
                                        "HW_REG_TRAPSTS",
                                        "HW_REG_HW_ID",
                                        "HW_REG_GPR_ALLOC",
                                        "HW_REG_LDS_ALLOC",
                                        "HW_REG_IB_STS",
                                        "",
                                        "",
                                        "",
                                        "",
                                        "",
                                        "",
                                        "",
                                        "HW_REG_SH_MEM_BASES",
                                        "HW_REG_TBA_LO",
                                        "HW_REG_TBA_HI",
                                        "HW_REG_TMA_LO",
                                        "HW_REG_TMA_HI",
                                        "HW_REG_XCC_ID",
                                        "HW_REG_SQ_PERF_SNAPSHOT_DATA",
                                        "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
                                        "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
                                        "HW_REG_SQ_PERF_SNAPSHOT_PC_HI"};
  const unsigned id = imm & 0x3f, offset = imm >> 6 & 0x1f, width = (imm >> 11 & 0x1f) + 1;
  std::string out = id < std::size(names) && !names[id].empty() ? fmt::format("hwreg({}", names[id])
                                                                : fmt::format("hwreg({}", id);
  if (width != 32 || offset != 0) out += fmt::format(", {}, {}", offset, width);
  return out + ')';
}

std::string wait_counters(unsigned imm) {
  const unsigned vm = (imm & 0xf) | (imm >> 14 & 3) << 4, exp = imm >> 4 & 7, lgkm = imm >> 8 & 0xf;
  const bool all = vm == 63 && exp == 7 && lgkm == 15;
  std::string out;
  const auto add = [&](const char* name, unsigned value, unsigned none) {
    if (value != none || all) out += fmt::format("{}{}({})", out.empty() ? "" : " ", name, value);
  };
  add("vmcnt", vm, 63);
  add("expcnt", exp, 7);
  add("lgkmcnt", lgkm, 15);
  return out;
}

std::string gpr_index(unsigned imm) {
  if (imm > 15) return fmt::format("0x{:x}", imm);
  constexpr std::string_view names[] = {"SRC0", "SRC1", "SRC2", "DST"};
  std::string inside;
  for (unsigned b = 0; b < 4; ++b)
    if ((imm >> b & 1) != 0) inside += fmt::format("{}{}", inside.empty() ? "" : ",", names[b]);
  return fmt::format("gpr_idx({})", inside);
}

std::string swizzle(unsigned imm) {
  if ((imm & 0xff00) == 0x8000)
    return fmt::format("swizzle(QUAD_PERM,{},{},{},{})", imm & 3, imm >> 2 & 3, imm >> 4 & 3, imm >> 6 & 3);
  if ((imm & 0x8000) != 0) return fmt::format("{}", imm);
  const unsigned keep = imm & 31, set = imm >> 5 & 31, flip = imm >> 10 & 31;
  if (keep == 31 && set == 0 && std::has_single_bit(flip)) return fmt::format("swizzle(SWAP,{})", flip);
  if (keep == 31 && set == 0 && flip > 0 && std::has_single_bit(flip + 1))
    return fmt::format("swizzle(REVERSE,{})", flip + 1);
  const unsigned group = 32 - keep;
  if (group > 1 && std::has_single_bit(group) && set < group && flip == 0)
    return fmt::format("swizzle(BROADCAST,{},{})", group, set);
  std::string bits;
  const unsigned of_zero = set ^ flip, of_one = (keep | set) ^ flip;
  for (unsigned b = 16; b != 0; b >>= 1) {
    const bool zero = (of_zero & b) != 0, one = (of_one & b) != 0;
    bits += zero == one ? (zero ? '1' : '0') : (zero ? 'i' : 'p');
  }
  return fmt::format("swizzle(BITMASK_PERM,\"{}\")", bits);
}

std::string dpp_control(unsigned c) {
  if (c <= 0xff) return fmt::format("quad_perm:[{},{},{},{}]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6 & 3);
  if (c <= 0x10f) return fmt::format("row_shl:{}", c & 15);
  if (c <= 0x11f) return fmt::format("row_shr:{}", c & 15);
  if (c <= 0x12f) return fmt::format("row_ror:{}", c & 15);
  switch (c) {
    case 0x130:
      return "wave_shl:1";
    case 0x134:
      return "wave_rol:1";
    case 0x138:
      return "wave_shr:1";
    case 0x13c:
      return "wave_ror:1";
    case 0x140:
      return "row_mirror";
    case 0x141:
      return "row_half_mirror";
    case 0x142:
      return "row_bcast:15";
    case 0x143:
      return "row_bcast:31";
    default:
      return fmt::format("row_newbcast:{}", c & 15);
  }
}

std::string buffer_format(unsigned format) {
  constexpr std::string_view data[] = {"INVALID",     "8",          "16",          "8_8",
                                       "32",          "16_16",      "10_11_11",    "11_11_10",
                                       "10_10_10_2",  "2_10_10_10", "8_8_8_8",     "32_32",
                                       "16_16_16_16", "32_32_32",   "32_32_32_32", "RESERVED_15"};
  constexpr std::string_view number[] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                         "UINT",  "SINT",  "RESERVED_6", "FLOAT"};
  const unsigned d = format & 15, n = format >> 4 & 7;
  if (d == 1 && n == 0) return "";
  if (n == 0) return fmt::format(" format:[BUF_DATA_FORMAT_{}]", data[d]);
  if (d == 1) return fmt::format(" format:[BUF_NUM_FORMAT_{}]", number[n]);
  return fmt::format(" format:[BUF_DATA_FORMAT_{},BUF_NUM_FORMAT_{}]", data[d], number[n]);
}

class Printer {
 public:
  explicit Printer(const Instruction& instruction)
      : i_(instruction),
        op_(info(instruction.op)),
        row_(*find_encoding(instruction.encoding, instruction.op)) {}

  std::string run() {
    out_ = op_.name;
    switch (i_.encoding) {
      case Encoding::sop1:
      case Encoding::sop2:
      case Encoding::sopc:
        scalar();
        break;
      case Encoding::sopk:
        sopk();
        break;
      case Encoding::sopp:
        sopp();
        break;
      case Encoding::smem:
        smem();
        break;
      case Encoding::vop1:
      case Encoding::vop2:
      case Encoding::vopc:
        vector_short();
        break;
      case Encoding::vop3:
        vop3();
        break;
      case Encoding::vop3p:
        vop3p();
        break;
      case Encoding::mai:
        mai();
        break;
      case Encoding::ds:
        ds();
        break;
      case Encoding::mubuf:
      case Encoding::mtbuf:
        buffer();
        break;
      case Encoding::flat:
      case Encoding::global:
      case Encoding::scratch:
        flat();
        break;
    }
    return std::move(out_);
  }

 private:
  void put(std::string_view item) {
    out_ += first_ ? " " : ", ";
    out_ += item;
    first_ = false;
  }
  void put(std::uint16_t code, Slot slot) { put(text(i_, code, slot)); }
  void word(std::string_view item) {
    out_ += ' ';
    out_ += item;
  }
  template <typename Value>
  void word(const char* name, Value value) {
    out_ += fmt::format(" {}:{}", name, value);
  }

  /// Source s with its neg, abs or sext.
  void modified(unsigned s) {
    const std::uint16_t code = i_.src[s];
    if (code == operand::literal && s != 0 && op_.has(op_flag::literal))
      return put(fmt::format("0x{:x}", i_.literal));
    std::string t = text(i_, code, op_.src[s]);
    if ((i_.sext >> s & 1) != 0) return put("sext(" + t + ')');
    const bool neg = (i_.neg >> s & 1) != 0, abs = (i_.abs >> s & 1) != 0;
    const bool constant = (code >= 128 && code <= 208) || is_fp_constant(code) || code == operand::literal;
    if (abs) t = '|' + t + '|';
    if (neg) t = constant && !abs ? "neg(" + t + ')' : '-' + t;
    put(t);
  }
  void output_modifiers() {
    constexpr std::string_view omods[] = {"", "mul:2", "mul:4", "div:2"};
    if (i_.clamp) word("clamp");
    if (i_.omod != 0) word(omods[i_.omod]);
  }
  void bits(const char* name, unsigned value, unsigned count, unsigned normal) {
    if (value == normal) return;
    out_ += fmt::format(" {}:[", name);
    for (unsigned b = 0; b < count; ++b) out_ += fmt::format("{}{}", b == 0 ? "" : ",", value >> b & 1);
    out_ += ']';
  }
  [[nodiscard]] unsigned sources() const {
    unsigned count = 0;
    while (count < 3 && op_.src[count] != Slot::none) ++count;
    return count;
  }
  void cache_bits(bool scalar_names = false) {
    if (i_.sc0) word(scalar_names ? "glc" : "sc0");
    if (i_.nt) word("nt");
    if (i_.sc1) word("sc1");
  }

  void scalar();
  void sopk();
  void sopp();
  void smem();
  void vector_short();
  void vop3();
  void vop3p();
  void mai();
  void ds();
  void buffer();
  void flat();

  const Instruction& i_;
  const OpInfo& op_;
  const EncodingInfo& row_;
  std::string out_;
  bool first_ = true;
};

void Printer::scalar() {
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  for (unsigned s = 0; s < sources(); ++s) put(i_.src[s], op_.src[s]);
  if (i_.op == Op::s_set_gpr_idx_on) put(gpr_index(static_cast<unsigned>(i_.imm)));
}

void Printer::sopk() {
  const unsigned imm = static_cast<std::uint16_t>(i_.imm);
  if (i_.op == Op::s_setreg_b32 || i_.op == Op::s_setreg_imm32_b32) {
    put(hardware_register(imm));
    if (i_.op == Op::s_setreg_b32)
      put(i_.src[0], op_.src[0]);
    else
      put(literal_text(i_.literal, Slot::b32));
    return;
  }
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  if (i_.src[0] != operand::none) put(i_.src[0], op_.src[0]);
  if (i_.op == Op::s_getreg_b32) return put(hardware_register(imm));
  put(op_.has(op_flag::branch) ? fmt::format("{}", imm) : fmt::format("0x{:x}", imm));
}

void Printer::sopp() {
  const unsigned imm = static_cast<std::uint16_t>(i_.imm);
  switch (i_.op) {
    case Op::s_waitcnt:
      return put(wait_counters(imm));
    case Op::s_sendmsg:
    case Op::s_sendmsghalt:
      return put(send_message(imm));
    case Op::s_set_gpr_idx_mode:
      return put(gpr_index(imm));
    case Op::s_endpgm:
      return imm != 0 ? put(fmt::format("{}", imm)) : void();
    case Op::s_barrier:
    case Op::s_wakeup:
    case Op::s_icache_inv:
    case Op::s_ttracedata:
    case Op::s_endpgm_saved:
    case Op::s_set_gpr_idx_off:
    case Op::s_endpgm_ordered_ps_done:
      return;
    default:
      break;
  }
  put(op_.has(op_flag::branch) ? fmt::format("{}", imm) : small_or_hex(imm));
}

void Printer::smem() {
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  if (i_.data[0] != operand::none) put(i_.data[0], op_.src[1]);
  if (i_.saddr == operand::none) return;
  if (i_.op == Op::s_atc_probe || i_.op == Op::s_atc_probe_buffer) put(small_or_hex(i_.format));
  put(i_.saddr, op_.src[0]);
  const std::string offset = i_.imm < 0 ? fmt::format("-0x{:x}", -i_.imm) : fmt::format("0x{:x}", i_.imm);
  if (i_.soffset != operand::none) {
    put(i_.soffset, Slot::b32);
    if (i_.offen) word("offset", offset);
  } else {
    put(offset);
  }
  cache_bits(true);
}

void Printer::vector_short() {
  if (i_.extension == Extension::sdwa)
    out_ += "_sdwa";
  else if (i_.extension == Extension::dpp)
    out_ += "_dpp";
  else if (row_.has(form::suffix))
    out_ += "_e32";
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  if (i_.sdst != operand::none) put("vcc");
  for (unsigned s = 0; s < sources(); ++s) modified(s);
  if (i_.extension == Extension::sdwa) {
    constexpr std::string_view selects[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                            "WORD_0", "WORD_1", "DWORD"};
    constexpr std::string_view unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    output_modifiers();
    if (i_.encoding != Encoding::vopc) {
      if (!row_.has(form::sdwa_dword)) {
        word("dst_sel", selects[i_.dst_sel]);
        word("dst_unused", unused[i_.dst_unused]);
      }
    }
    word("src0_sel", selects[i_.src_sel[0]]);
    if (i_.encoding != Encoding::vop1) word("src1_sel", selects[i_.src_sel[1]]);
  } else if (i_.extension == Extension::dpp) {
    word(dpp_control(i_.dpp_ctrl));
    word("row_mask", fmt::format("0x{:x}", i_.row_mask));
    word("bank_mask", fmt::format("0x{:x}", i_.bank_mask));
    if (i_.bound_ctrl) word("bound_ctrl:1");
  }
}

void Printer::vop3() {
  if (row_.has(form::suffix)) out_ += "_e64";
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  if (i_.sdst != operand::none) put(i_.sdst, Slot::mask);
  const unsigned count = sources();
  for (unsigned s = 0; s < count; ++s) modified(s);
  if (row_.has(form::op_sel)) {
    unsigned slots = 0;
    while (slots < 3 && row_.has(form::mod0 << slots)) ++slots;
    bits("op_sel", (i_.op_sel & ((1u << slots) - 1)) | (i_.op_sel >> 3 & 1u) << slots, slots + 1, 0);
  }
  output_modifiers();
}

void Printer::vop3p() {
  put(i_.dst, op_.dst);
  const unsigned count = sources(), all = (1u << count) - 1;
  const bool mix = i_.op == Op::v_fma_mix_f32 || i_.op == Op::v_fma_mixlo_f16 || i_.op == Op::v_fma_mixhi_f16;
  for (unsigned s = 0; s < count; ++s) mix ? modified(s) : put(i_.src[s], op_.src[s]);
  bits("op_sel", i_.op_sel, count, 0);
  bits("op_sel_hi", i_.op_sel_hi, count, mix ? 0 : all);
  if (!mix) {
    bits("neg_lo", i_.neg, count, 0);
    bits("neg_hi", i_.abs, count, 0);
  }
  if (i_.clamp) word("clamp");
}

void Printer::mai() {
  put(i_.dst, op_.dst);
  for (unsigned s = 0; s < sources(); ++s) put(i_.src[s], op_.src[s]);
  if (i_.cbsz != 0) word("cbsz", i_.cbsz);
  if (i_.abid != 0) word("abid", i_.abid);
  if (i_.op == Op::v_mfma_f64_16x16x4_f64 || i_.op == Op::v_mfma_f64_4x4x4_4b_f64)
    bits("neg", i_.blgp, 3, 0);
  else if (i_.blgp != 0)
    word("blgp", i_.blgp);
}

void Printer::ds() {
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  if (i_.addr != operand::none) put(i_.addr, op_.src[0]);
  for (unsigned d = 0; d < 2; ++d)
    if (i_.data[d] != operand::none) put(i_.data[d], op_.src[d + 1]);
  if (row_.has(form::pair)) {
    if (i_.imm != 0) word("offset0", i_.imm);
    if (i_.offset1 != 0) word("offset1", i_.offset1);
  } else if (i_.imm != 0) {
    if (i_.op == Op::ds_swizzle_b32)
      word("offset", swizzle(static_cast<unsigned>(i_.imm)));
    else
      word("offset", i_.imm);
  }
  if (op_.name.starts_with("ds_gws")) word("gds");  // the only ones that have it here
}

void Printer::buffer() {
  if (op_.src[0] == Slot::none) {
    cache_bits();
    return;
  }
  if (i_.data[0] != operand::none)
    put(i_.data[0], op_.src[1]);
  else if (i_.dst != operand::none)
    put(i_.dst, op_.dst);
  const bool from_lds = i_.op == Op::buffer_store_lds_dword;
  if (!from_lds) put(i_.addr, i_.offen && i_.idxen ? Slot::b64 : Slot::b32);
  put(i_.saddr, Slot::b128);
  put(i_.soffset, Slot::b32);
  if (i_.encoding == Encoding::mtbuf) out_ += buffer_format(i_.format);
  if (i_.idxen) word("idxen");
  if (i_.offen) word("offen");
  if (i_.imm != 0) word("offset", i_.imm);
  if (from_lds) word("lds");
  cache_bits();
  if (i_.lds && !from_lds) word("lds");
}

void Printer::flat() {
  if (i_.dst != operand::none) put(i_.dst, op_.dst);
  put(i_.addr, i_.encoding == Encoding::scratch || i_.saddr != operand::none ? Slot::b32 : Slot::b64);
  if (i_.data[0] != operand::none) put(i_.data[0], op_.src[1]);
  if (i_.encoding == Encoding::global) put(i_.saddr, Slot::b64);
  if (i_.encoding == Encoding::scratch) put(i_.saddr, Slot::b32);
  if (i_.imm != 0) word("offset", i_.imm);
  cache_bits();
}

}  // namespace

std::string disassemble(const Instruction& instruction) {
  if (find_encoding(instruction.encoding, instruction.op) == nullptr) return "<invalid>";
  return Printer(instruction).run();
}

std::string operand_text(const Instruction& instruction, std::uint16_t code, Slot slot) {
  return text(instruction, code, slot);
}

}  // namespace attest::device::sim
