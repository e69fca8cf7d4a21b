// SPDX-License-Identifier: MIT
//
// The format of a word follows from its leading bits; format and opcode number select a row of encodings.def;
// the row's operation says how many registers each operand field names. What is left to this file is where
// the fields are, and three rules that hold everywhere:
//
// - A field that the operation does not have is either ignored or must be zero. Which of the two is not in
//   the manual; it is LLVM's, found by flipping every bit of every encoding.
// - A scalar register tuple is aligned to its size, at most four; low bits of the field are ignored.
//   A vector register tuple may start anywhere (an assembler makes even starts only) but must end by v255.
// - One 32-bit literal may follow (source code 255), shared by every source that names it; VOP3 has none.
#include "device/simulator/isa/decode.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "device/simulator/isa/encodings.h"

namespace attest::device::sim {
namespace {

constexpr unsigned field(std::uint32_t word, unsigned low, unsigned bits) {
  return (word >> low) & ((1u << bits) - 1);
}

constexpr std::int32_t sign_extend(std::uint32_t value, unsigned bits) {
  const std::uint32_t sign = 1u << (bits - 1);
  return static_cast<std::int32_t>((value ^ sign) - sign);
}

constexpr unsigned sdwa_code = 249, dpp_code = 250;

struct Refused {
  std::string why;
};

const char* title(Encoding encoding) {
  switch (encoding) {
    case Encoding::sop1:
      return "SOP1";
    case Encoding::sop2:
      return "SOP2";
    case Encoding::sopc:
      return "SOPC";
    case Encoding::sopk:
      return "SOPK";
    case Encoding::sopp:
      return "SOPP";
    case Encoding::smem:
      return "SMEM";
    case Encoding::vop1:
      return "VOP1";
    case Encoding::vop2:
      return "VOP2";
    case Encoding::vopc:
      return "VOPC";
    case Encoding::vop3:
      return "VOP3";
    case Encoding::vop3p:
      return "VOP3P";
    case Encoding::mai:
      return "MAI";
    case Encoding::ds:
      return "DS";
    case Encoding::mubuf:
      return "MUBUF";
    case Encoding::mtbuf:
      return "MTBUF";
    case Encoding::flat:
      return "FLAT";
    case Encoding::global:
      return "GLOBAL";
    case Encoding::scratch:
      return "SCRATCH";
  }
  return "";
}

/// Scalar instructions that read registers only.
bool no_constants(Op op) {
  switch (op) {
    case Op::s_setpc_b64:
    case Op::s_rfe_b64:
    case Op::s_cbranch_join:
    case Op::s_movrels_b32:
    case Op::s_movrels_b64:
      return true;
    default:
      return false;
  }
}

bool no_immediate(Op op) {
  switch (op) {
    case Op::s_barrier:
    case Op::s_wakeup:
    case Op::s_icache_inv:
    case Op::s_ttracedata:
    case Op::s_endpgm_saved:
    case Op::s_endpgm_ordered_ps_done:
    case Op::s_set_gpr_idx_off:
      return true;
    default:
      return false;
  }
}

/// Sources of VOP3 that can only be vector registers.
bool vgpr_only(Op op, unsigned source) {
  return (op == Op::v_mqsad_u32_u8 && source == 2) ||
         ((op == Op::v_readlane_b32 || op == Op::v_readfirstlane_b32) && source == 0);
}

/// Sources of VOP3 that can only be scalar: lane numbers and what v_writelane writes.
bool scalar_only(Op op, unsigned source) {
  return op == Op::v_writelane_b32 || (op == Op::v_readlane_b32 && source == 1);
}

bool is_float(Slot slot) {
  return slot == Slot::f16 || slot == Slot::bf16 || slot == Slot::f32 || slot == Slot::f64 ||
         slot == Slot::v2f16 || slot == Slot::v2f32;
}

bool integer_dot(Op op) {
  return op == Op::v_dot2c_i32_i16 || op == Op::v_dot4c_i32_i8 || op == Op::v_dot8c_i32_i4;
}

class Decoder {
 public:
  explicit Decoder(std::span<const std::uint32_t> words) : words_(words) {}

  Instruction run() {
    if (words_.empty()) throw Refused{"no words left"};
    w0_ = words_[0];
    if (w0_ >> 31 == 0) {
      vector_short();
    } else if (w0_ >> 30 == 2) {
      scalar();
    } else {
      if (words_.size() < 2) throw Refused{"truncated: an 8-byte encoding in the last 4 bytes"};
      w1_ = words_[1];
      i_.size_bytes = 8;
      switch (w0_ >> 26) {
        case 0b110000:
          smem();
          break;
        case 0b110100:
          w0_ >> 23 == 0b110100111 ? vop3p() : vop3();
          break;
        case 0b110110:
          ds();
          break;
        case 0b110111:
          flat();
          break;
        case 0b111000:
          mubuf();
          break;
        case 0b111010:
          mtbuf();
          break;
        default:
          throw Refused{fmt::format("no gfx942 encoding starts with 0x{:02x}", w0_ >> 24)};
      }
    }
    return i_;
  }

 private:
  // Rows.
  void select(Encoding encoding, unsigned number) {
    row_ = find_encoding(encoding, number);
    if (row_ == nullptr) throw Refused{fmt::format("reserved opcode 0x{:x} of {}", number, title(encoding))};
    i_.encoding = encoding;
    i_.op = row_->op;
    op_ = &info(row_->op);
  }
  void must_be_zero(std::uint32_t bits, const char* what) {
    if (bits != 0) throw Refused{fmt::format("{} has no {}", op_->name, what)};
  }
  [[nodiscard]] unsigned sources() const {
    unsigned count = 0;
    while (count < 3 && op_->src[count] != Slot::none) ++count;
    return count;
  }

  // Operands.
  [[noreturn]] void no_register(unsigned code, unsigned dwords) const {
    throw Refused{fmt::format("{}: operand code {} is no {}-bit operand", op_->name, code, dwords * 32)};
  }
  /// An SGPR, trap temporary or special register of that many dwords, aligned down.
  [[nodiscard]] std::optional<std::uint16_t> scalar_register(unsigned code, unsigned dwords) const {
    const unsigned align = dwords == 1 ? 1 : dwords == 2 ? 2 : 4;
    if (code <= 101) {
      const unsigned first = code / align * align;
      if (first + dwords > 106) return std::nullopt;
      return static_cast<std::uint16_t>(first);
    }
    if (code >= 108 && code <= 123) {
      const unsigned first = 108 + (code - 108) / align * align;
      if (first + dwords > 124) return std::nullopt;
      return static_cast<std::uint16_t>(first);
    }
    if (dwords == 1 && (code <= 107 || code == 124 || code == 126 || code == 127))
      return static_cast<std::uint16_t>(code);
    if (dwords == 2 && (code == 102 || code == 104 || code == 106 || code == 126))
      return static_cast<std::uint16_t>(code);
    return std::nullopt;
  }
  std::uint16_t sgpr(unsigned code, unsigned dwords) const {
    const auto found = scalar_register(code, dwords);
    if (!found) no_register(code, dwords);
    return *found;
  }
  std::uint16_t vgpr(unsigned number, unsigned dwords, bool accumulation = false) const {
    if (number + dwords > 256) no_register(256 + number, dwords);
    return static_cast<std::uint16_t>((accumulation ? operand::agpr0 : operand::vgpr0) + number);
  }
  /// A code of the 8-bit scalar source space, constants included.
  std::uint16_t scalar_source(unsigned code, Slot slot) {
    const unsigned size = dwords(slot);
    if (const auto found = scalar_register(code, size)) return *found;
    if (no_constants(i_.op) && (code < 235 || code > 253 || (code >= 240 && code <= 248)))
      no_register(code, size);
    if (code >= 128 && code <= 208) return static_cast<std::uint16_t>(code);
    if (code >= 240 && code <= 248) return static_cast<std::uint16_t>(code);
    if (code >= 235 && code <= 239 && size <= 2) return static_cast<std::uint16_t>(code);
    if (code >= 251 && code <= 253 && size <= 2) return static_cast<std::uint16_t>(code);
    if (code == operand::literal && literal_allowed_) {
      take_literal();
      return operand::literal;
    }
    no_register(code, size);
  }
  std::uint16_t source(unsigned code, Slot slot) {
    return code >= operand::vgpr0 ? vgpr(code - operand::vgpr0, dwords(slot)) : scalar_source(code, slot);
  }
  void take_literal() {
    if (i_.size_bytes == 8) return;
    if (words_.size() < 2) throw Refused{"truncated: the literal is missing"};
    i_.literal = words_[1];
    i_.size_bytes = 8;
  }

  void scalar();
  void smem();
  void vector_short();
  void sdwa();
  void dpp();
  void vop3();
  void vop3p();
  void mai();
  void ds();
  void flat();
  void mubuf();
  void mtbuf();

  std::span<const std::uint32_t> words_;
  std::uint32_t w0_ = 0, w1_ = 0;
  Instruction i_;
  const EncodingInfo* row_ = nullptr;
  const OpInfo* op_ = nullptr;
  bool literal_allowed_ = true;
};

void Decoder::scalar() {
  i_.imm = sign_extend(field(w0_, 0, 16), 16);
  switch (w0_ >> 23) {
    case 0b101111101:
      select(Encoding::sop1, field(w0_, 8, 8));
      i_.imm = 0;
      if (op_->dst != Slot::none) i_.dst = sgpr(field(w0_, 16, 7), dwords(op_->dst));
      if (op_->src[0] != Slot::none) i_.src[0] = scalar_source(field(w0_, 0, 8), op_->src[0]);
      return;
    case 0b101111110:
      select(Encoding::sopc, field(w0_, 16, 7));
      i_.imm = 0;
      i_.src[0] = scalar_source(field(w0_, 0, 8), op_->src[0]);
      if (op_->src[1] != Slot::none)
        i_.src[1] = scalar_source(field(w0_, 8, 8), op_->src[1]);
      else
        i_.imm = static_cast<std::int32_t>(field(w0_, 8, 8));
      return;
    case 0b101111111:
      select(Encoding::sopp, field(w0_, 16, 7));
      if (no_immediate(i_.op)) must_be_zero(field(w0_, 0, 16), "immediate");
      return;
    default:
      break;
  }
  if (w0_ >> 28 == 0b1011) {
    select(Encoding::sopk, field(w0_, 23, 5));
    if (op_->dst != Slot::none) i_.dst = sgpr(field(w0_, 16, 7), dwords(op_->dst));
    if (op_->src[0] != Slot::none) i_.src[0] = sgpr(field(w0_, 16, 7), dwords(op_->src[0]));
    if (i_.op == Op::s_setreg_imm32_b32) take_literal();
    return;
  }
  select(Encoding::sop2, field(w0_, 23, 7));
  i_.imm = 0;
  if (op_->dst != Slot::none) i_.dst = sgpr(field(w0_, 16, 7), dwords(op_->dst));
  i_.src[0] = scalar_source(field(w0_, 0, 8), op_->src[0]);
  i_.src[1] = scalar_source(field(w0_, 8, 8), op_->src[1]);
}

void Decoder::smem() {
  select(Encoding::smem, field(w0_, 18, 8));
  if (op_->src[0] == Slot::none) {
    must_be_zero(field(w0_, 17, 1), "immediate offset");
    if (op_->dst != Slot::none) i_.dst = sgpr(field(w0_, 6, 7), dwords(op_->dst));
    if (i_.dst == operand::exec) throw Refused{fmt::format("{} cannot name exec as data", op_->name)};
    return;
  }
  i_.saddr = sgpr(field(w0_, 0, 6) * 2, dwords(op_->src[0]));
  if (op_->dst != Slot::none) i_.dst = sgpr(field(w0_, 6, 7), dwords(op_->dst));
  if (op_->src[1] != Slot::none) i_.data[0] = sgpr(field(w0_, 6, 7), dwords(op_->src[1]));
  const unsigned sdata = i_.dst != operand::none ? i_.dst : i_.data[0];
  if (sdata == operand::m0 || sdata == operand::exec || sdata == operand::exec + 1)
    throw Refused{fmt::format("{} cannot name m0 or exec as data", op_->name)};
  const bool soffset_enabled = field(w0_, 14, 1) != 0, immediate = field(w0_, 17, 1) != 0;
  const bool cached = op_->dst != Slot::none || op_->src[1] != Slot::none;
  i_.sc0 = cached && field(w0_, 16, 1) != 0;
  if (i_.op == Op::s_atc_probe || i_.op == Op::s_atc_probe_buffer)
    i_.format = static_cast<std::uint8_t>(field(w0_, 6, 7));
  i_.offen = immediate;
  if (immediate) i_.imm = sign_extend(field(w1_, 0, 21), 21);
  if (soffset_enabled)
    i_.soffset = sgpr(field(w1_, 25, 7), 1);
  else if (!immediate)
    i_.soffset = sgpr(field(w1_, 0, 7), 1);
}

void Decoder::vector_short() {
  const unsigned src0 = field(w0_, 0, 9), vdst = field(w0_, 17, 8), vsrc1 = field(w0_, 9, 8);
  if (w0_ >> 25 == 0b0111111)
    select(Encoding::vop1, vsrc1);
  else if (w0_ >> 25 == 0b0111110)
    select(Encoding::vopc, vdst);
  else
    select(Encoding::vop2, w0_ >> 25);

  const unsigned sources_here = sources();
  if (i_.encoding == Encoding::vopc) {
    i_.dst = operand::vcc;
  } else if (op_->dst != Slot::none) {
    i_.dst = op_->has(op_flag::sgpr_dst) ? sgpr(vdst, dwords(op_->dst)) : vgpr(vdst, dwords(op_->dst));
  } else {
    must_be_zero(vdst, "destination");
  }
  if (op_->sdst != Slot::none) i_.sdst = operand::vcc;

  if (op_->has(op_flag::literal)) {
    take_literal();
    i_.src[0] = source(src0, op_->src[0]);
    const bool addend = i_.op == Op::v_fmaak_f32 || i_.op == Op::v_madak_f16;
    i_.src[addend ? 2 : 1] = operand::literal;
    i_.src[addend ? 1 : 2] = vgpr(vsrc1, 1);
    return;
  }
  if (i_.encoding != Encoding::vop1) {
    i_.src[1] = vgpr(vsrc1, dwords(op_->src[1]));
    if (sources_here == 3) i_.src[2] = operand::vcc;
  }
  if (sources_here == 0) return;
  if (src0 == sdwa_code) return sdwa();
  if (src0 == dpp_code) return dpp();
  if (i_.op == Op::v_accvgpr_mov_b32 || i_.op == Op::v_swap_b32 || i_.op == Op::v_readfirstlane_b32) {
    if (src0 < operand::vgpr0) no_register(src0, 1);
  }
  if (i_.op == Op::v_accvgpr_mov_b32) {
    i_.dst = vgpr(vdst, 1, true);
    i_.src[0] = vgpr(field(src0, 0, 8), 1, true);
    return;
  }
  i_.src[0] = source(src0, op_->src[0]);
}

void Decoder::sdwa() {
  if (!row_->has(form::sdwa)) throw Refused{fmt::format("{} has no SDWA form", op_->name)};
  if (words_.size() < 2) throw Refused{"truncated: the SDWA word is missing"};
  const std::uint32_t w = words_[1];
  i_.extension = Extension::sdwa;
  i_.size_bytes = 8;
  literal_allowed_ = false;
  const bool two = i_.encoding != Encoding::vop1;

  if (i_.encoding == Encoding::vopc) {
    i_.dst = field(w, 15, 1) != 0 ? sgpr(field(w, 8, 7), 2) : operand::vcc;
  } else {
    i_.dst_sel = static_cast<std::uint8_t>(field(w, 8, 3));
    i_.dst_unused = static_cast<std::uint8_t>(field(w, 11, 2));
    i_.clamp = field(w, 13, 1) != 0;
    i_.omod = static_cast<std::uint8_t>(field(w, 14, 2));
    if (!row_->has(form::sdwa_omod)) must_be_zero(i_.omod, "omod");
    if (i_.dst_sel == 7 || i_.dst_unused == 3) throw Refused{"reserved SDWA destination selection"};
    if (row_->has(form::sdwa_dword) && i_.dst_sel != 6)
      throw Refused{fmt::format("{} writes whole registers only", op_->name)};
  }
  for (unsigned s = 0; s < 2; ++s) {
    const std::uint32_t bits = field(w, 16 + 8 * s, 8);
    if (s == 1 && !two) {
      must_be_zero(bits & 0xbf, "second source");
      break;
    }
    i_.src_sel[s] = static_cast<std::uint8_t>(field(bits, 0, 3));
    if (i_.src_sel[s] == 7) throw Refused{"reserved SDWA source selection"};
    if (row_->has(s == 0 ? form::sdwa_float0 : form::sdwa_float1)) {
      must_be_zero(field(bits, 3, 1), "sext");
      i_.neg |= static_cast<std::uint8_t>(field(bits, 4, 1) << s);
      i_.abs |= static_cast<std::uint8_t>(field(bits, 5, 1) << s);
    } else {
      must_be_zero(field(bits, 4, 2), "neg or abs");
      i_.sext |= static_cast<std::uint8_t>(field(bits, 3, 1) << s);
    }
  }
  const auto pick = [this](unsigned code, bool scalar_operand) {
    return scalar_operand ? scalar_source(code, Slot::b32) : vgpr(code, 1);
  };
  i_.src[0] = pick(field(w, 0, 8), field(w, 23, 1) != 0);
  if (two) i_.src[1] = pick(field(w0_, 9, 8), field(w, 31, 1) != 0);
}

void Decoder::dpp() {
  if (!row_->has(form::dpp)) throw Refused{fmt::format("{} has no DPP form", op_->name)};
  if (words_.size() < 2) throw Refused{"truncated: the DPP word is missing"};
  const std::uint32_t w = words_[1];
  i_.extension = Extension::dpp;
  i_.size_bytes = 8;
  i_.src[0] = vgpr(field(w, 0, 8), dwords(op_->src[0]));
  i_.dpp_ctrl = static_cast<std::uint16_t>(field(w, 8, 9));
  i_.bound_ctrl = field(w, 19, 1) != 0;
  for (unsigned s = 0; s < 2; ++s) {
    const unsigned neg = field(w, 20 + 2 * s, 1), abs = field(w, 21 + 2 * s, 1);
    if (integer_dot(i_.op)) continue;  // ignored
    if (i_.op == Op::v_ldexp_f16 && s == 1) {
      i_.sext = static_cast<std::uint8_t>(neg << 1);
      continue;
    }
    if (!row_->has(form::mod0 << s)) must_be_zero(neg | abs, "neg or abs");
    i_.neg |= static_cast<std::uint8_t>(neg << s);
    i_.abs |= static_cast<std::uint8_t>(abs << s);
  }
  i_.bank_mask = static_cast<std::uint8_t>(field(w, 24, 4));
  i_.row_mask = static_cast<std::uint8_t>(field(w, 28, 4));
  const unsigned c = i_.dpp_ctrl;
  const bool known = c <= 0xff || (c >= 0x101 && c <= 0x12f && c != 0x110 && c != 0x120) || c == 0x130 ||
                     c == 0x134 || c == 0x138 || c == 0x13c || (c >= 0x140 && c <= 0x143) ||
                     (c >= 0x150 && c <= 0x15f);
  if (!known) throw Refused{fmt::format("reserved DPP control 0x{:x}", c)};
  bool wide = dwords(op_->dst) > 1;
  for (const Slot slot : op_->src) wide = wide || (dwords(slot) > 1 && slot != Slot::mask);
  if (wide && (c < 0x150 || c > 0x15f)) throw Refused{fmt::format("{} knows row_newbcast only", op_->name)};
}

void Decoder::vop3() {
  select(Encoding::vop3, field(w0_, 16, 10));
  literal_allowed_ = false;
  const unsigned vdst = field(w0_, 0, 8), count = sources();
  if (op_->dst == Slot::none)
    must_be_zero(vdst, "destination");
  else if (op_->dst == Slot::mask || op_->has(op_flag::sgpr_dst))
    i_.dst = sgpr(vdst, dwords(op_->dst));
  else
    i_.dst = vgpr(vdst, dwords(op_->dst));

  const unsigned modifiable = row_->forms / form::mod0 & 7;
  const auto neg = field(w1_, 29, 3);
  must_be_zero(neg & ~modifiable, "neg there");
  i_.neg = static_cast<std::uint8_t>(neg);
  if (op_->sdst != Slot::none) {
    i_.sdst = sgpr(field(w0_, 8, 7), 2);
  } else {
    const auto abs = field(w0_, 8, 3);
    must_be_zero(abs & ~modifiable, "abs there");
    i_.abs = static_cast<std::uint8_t>(abs);
    if (row_->has(form::op_sel)) {
      i_.op_sel = static_cast<std::uint8_t>(field(w0_, 11, 4));
      must_be_zero(i_.op_sel & ~(modifiable | 8u), "op_sel there");
    }
  }
  i_.clamp = field(w0_, 15, 1) != 0;
  if (!row_->has(form::clamp)) must_be_zero(i_.clamp, "clamp");
  i_.omod = static_cast<std::uint8_t>(field(w1_, 27, 2));
  if (!row_->has(form::omod)) must_be_zero(i_.omod, "omod");
  for (unsigned s = 0; s < 3; ++s) {
    const unsigned code = field(w1_, 9 * s, 9);
    if (s >= count) {
      must_be_zero(code, "source there");
    } else if (op_->src[s] == Slot::mask) {
      if (code >= operand::vgpr0 || code == operand::exec) no_register(code, 2);
      i_.src[s] = sgpr(code, 2);
    } else {
      if (code < operand::vgpr0 ? vgpr_only(i_.op, s) : scalar_only(i_.op, s))
        no_register(code, dwords(op_->src[s]));
      i_.src[s] = source(code, op_->src[s]);
    }
  }
  if (i_.op == Op::v_cndmask_b32) return;
  // An integer source has no sign modifiers. Where neg may be set it asks for sign extension, beside op_sel
  // for nothing.
  unsigned floats = 0;
  for (unsigned s = 0; s < count; ++s) floats |= static_cast<unsigned>(is_float(op_->src[s])) << s;
  if (i_.op == Op::v_ldexp_f16) floats = 1;
  if (!row_->has(form::op_sel) && !integer_dot(i_.op))
    i_.sext = static_cast<std::uint8_t>(i_.neg & ~floats & ((1u << count) - 1));
  i_.neg &= static_cast<std::uint8_t>(floats);
  i_.abs &= static_cast<std::uint8_t>(floats);
}

void Decoder::vop3p() {
  const unsigned number = field(w0_, 16, 7);
  if (find_encoding(Encoding::mai, number) != nullptr) return mai();
  select(Encoding::vop3p, number);
  literal_allowed_ = false;
  const unsigned count = sources();
  i_.dst = vgpr(field(w0_, 0, 8), dwords(op_->dst));
  i_.abs = static_cast<std::uint8_t>(field(w0_, 8, 3));
  i_.op_sel = static_cast<std::uint8_t>(field(w0_, 11, 3));
  i_.clamp = field(w0_, 15, 1) != 0;
  i_.op_sel_hi = static_cast<std::uint8_t>(field(w1_, 27, 2) | field(w0_, 14, 1) << 2);
  i_.neg = static_cast<std::uint8_t>(field(w1_, 29, 3));
  if (count == 2) {
    must_be_zero((i_.abs | i_.op_sel | i_.neg) & 4u, "third source");
    i_.op_sel_hi &= 3;
  }
  for (unsigned s = 0; s < 3; ++s) {
    const unsigned code = field(w1_, 9 * s, 9);
    if (s < count)
      i_.src[s] = source(code, op_->src[s]);
    else
      must_be_zero(code, "third source");
  }
}

void Decoder::mai() {
  select(Encoding::mai, field(w0_, 16, 7));
  literal_allowed_ = false;
  const unsigned vdst = field(w0_, 0, 8);
  if (i_.op == Op::v_accvgpr_read_b32 || i_.op == Op::v_accvgpr_write_b32) {
    const bool read = i_.op == Op::v_accvgpr_read_b32;
    must_be_zero(field(w0_, 8, 6) | field(w1_, 9, 18) | field(w1_, 29, 3), "modifiers");
    const unsigned code = field(w1_, 0, 9);
    if (read && code < operand::vgpr0) no_register(code, 1);
    i_.dst = vgpr(vdst, 1, !read);
    i_.src[0] = read ? vgpr(field(code, 0, 8), 1, true) : source(code, Slot::b32);
    return;
  }
  const bool accumulate = field(w0_, 15, 1) != 0;
  i_.cbsz = static_cast<std::uint8_t>(field(w0_, 8, 3));
  i_.abid = static_cast<std::uint8_t>(field(w0_, 11, 4));
  i_.blgp = static_cast<std::uint8_t>(field(w1_, 29, 3));
  i_.dst = vgpr(vdst, dwords(op_->dst), accumulate);
  for (unsigned s = 0; s < 2; ++s) {
    const unsigned code = field(w1_, 9 * s, 9);
    if (code < operand::vgpr0) no_register(code, dwords(op_->src[s]));
    i_.src[s] = vgpr(code - operand::vgpr0, dwords(op_->src[s]), field(w1_, 27 + s, 1) != 0);
  }
  const unsigned code = field(w1_, 18, 9);
  if (op_->has(op_flag::reads_dst)) {  // smfmac: src2 is the index register
    must_be_zero(i_.blgp, "blgp");
    if (code < operand::vgpr0) no_register(code, 1);
    i_.src[2] = vgpr(code - operand::vgpr0, 1);
  } else if (code >= operand::vgpr0) {
    i_.src[2] = vgpr(code - operand::vgpr0, dwords(op_->src[2]), accumulate);
  } else {
    const bool constant = (code >= 128 && code <= 208) || (code >= 240 && code <= 248);
    if (!constant) no_register(code, dwords(op_->src[2]));
    i_.src[2] = static_cast<std::uint16_t>(code);
  }
}

void Decoder::ds() {
  select(Encoding::ds, field(w0_, 17, 8));
  const bool acc = field(w0_, 25, 1) != 0;
  i_.gds = field(w0_, 16, 1) != 0;
  const bool wave_sync = i_.op == Op::ds_gws_init || i_.op == Op::ds_gws_sema_v ||
                         i_.op == Op::ds_gws_sema_br || i_.op == Op::ds_gws_sema_p ||
                         i_.op == Op::ds_gws_barrier || i_.op == Op::ds_gws_sema_release_all;
  if (wave_sync) {
    must_be_zero(!i_.gds, "form without gds");
    if (op_->src[0] == Slot::none) must_be_zero(acc, "accumulation register");
  }
  if (i_.op == Op::ds_permute_b32 || i_.op == Op::ds_bpermute_b32) must_be_zero(i_.gds, "gds form");
  if (i_.op == Op::ds_nop) must_be_zero(field(w0_, 0, 17) | acc, "operands");
  i_.imm = static_cast<std::int32_t>(field(w0_, 0, 16));
  if (row_->has(form::pair)) {
    i_.offset1 = static_cast<std::uint8_t>(i_.imm >> 8);
    i_.imm &= 0xff;
  }
  const unsigned used[3] = {dwords(op_->src[0]), dwords(op_->src[1]), dwords(op_->src[2])};
  const unsigned codes[3] = {field(w1_, 0, 8), field(w1_, 8, 8), field(w1_, 16, 8)};
  const unsigned vdst = field(w1_, 24, 8);
  for (unsigned s = 0; s < 3; ++s)
    if (used[s] == 0) must_be_zero(codes[s], "such operand");
  if (used[0] != 0) i_.addr = vgpr(codes[0], 1, wave_sync && acc);
  for (unsigned s = 1; s < 3; ++s)
    if (used[s] != 0) i_.data[s - 1] = vgpr(codes[s], used[s], acc);
  if (op_->dst != Slot::none)
    i_.dst = vgpr(vdst, dwords(op_->dst), acc);
  else
    must_be_zero(vdst, "result");
}

void Decoder::flat() {
  const unsigned segment = field(w0_, 14, 2);
  if (segment == 3) throw Refused{"reserved segment 3 of FLAT"};
  const Encoding encodings[] = {Encoding::flat, Encoding::scratch, Encoding::global};
  select(encodings[segment], field(w0_, 18, 7));
  const bool acc = field(w1_, 23, 1) != 0;
  const unsigned saddr = field(w1_, 16, 7);
  i_.imm = sign_extend(field(w0_, 0, 13), 13);
  i_.sc0 = field(w0_, 16, 1) != 0;
  i_.nt = field(w0_, 17, 1) != 0;
  i_.sc1 = field(w0_, 25, 1) != 0;
  const unsigned vaddr = field(w1_, 0, 8);
  const bool has_saddr = saddr != 0x7f;
  if (segment == 1) {
    if (field(w0_, 13, 1) != 0) i_.addr = vgpr(vaddr, 1);
    if (has_saddr) i_.saddr = sgpr(saddr, 1);
  } else if (segment == 2) {
    i_.addr = vgpr(vaddr, has_saddr ? 1 : 2);
    if (has_saddr) i_.saddr = sgpr(saddr, 2);
  } else {
    must_be_zero(saddr | field(w0_, 13, 1), "SADDR");
    i_.imm = static_cast<std::int32_t>(field(w0_, 0, 13));
    i_.addr = vgpr(vaddr, 2);
  }
  if (segment == 2) must_be_zero(field(w0_, 13, 1), "SVE bit");
  if (op_->has(op_flag::lds_dma)) must_be_zero(acc, "accumulation register");
  if (op_->src[1] != Slot::none) i_.data[0] = vgpr(field(w1_, 8, 8), dwords(op_->src[1]), acc);
  if (op_->dst != Slot::none && (!op_->has(op_flag::atomic) || i_.sc0))
    i_.dst = vgpr(field(w1_, 24, 8), dwords(op_->dst), acc);
}

void Decoder::mubuf() {
  select(Encoding::mubuf, field(w0_, 18, 7));
  literal_allowed_ = false;
  const bool acc = field(w1_, 23, 1) != 0;
  i_.imm = static_cast<std::int32_t>(field(w0_, 0, 12));
  i_.offen = field(w0_, 12, 1) != 0;
  i_.idxen = field(w0_, 13, 1) != 0;
  i_.sc0 = field(w0_, 14, 1) != 0;
  i_.sc1 = field(w0_, 15, 1) != 0;
  i_.lds = field(w0_, 16, 1) != 0;
  i_.nt = field(w0_, 17, 1) != 0;
  if (op_->src[0] == Slot::none) {
    must_be_zero(i_.offen | i_.idxen | i_.lds | acc, "operands");
    if (i_.op == Op::buffer_wbinvl1 || i_.op == Op::buffer_wbinvl1_vol)
      must_be_zero(i_.sc0 | i_.sc1, "sc0 or sc1");
    i_.nt = false;
    return;
  }
  if (i_.op == Op::buffer_store_lds_dword)
    must_be_zero(!i_.lds | i_.offen | i_.idxen, "form without lds or with an address register");
  if (i_.lds) must_be_zero(acc, "accumulation register");
  if (i_.lds && !row_->has(form::lds) && i_.op != Op::buffer_store_lds_dword)
    throw Refused{fmt::format("{} has no lds form", op_->name)};
  i_.saddr = sgpr(field(w1_, 16, 5) * 4, 4);
  i_.soffset = scalar_source(field(w1_, 24, 8), Slot::b32);
  if (i_.offen || i_.idxen) i_.addr = vgpr(field(w1_, 0, 8), i_.offen && i_.idxen ? 2 : 1);
  if (i_.lds) return;
  const unsigned vdata = field(w1_, 8, 8);
  if (op_->src[1] != Slot::none) i_.data[0] = vgpr(vdata, dwords(op_->src[1]), acc);
  if (op_->dst != Slot::none && (!op_->has(op_flag::atomic) || i_.sc0))
    i_.dst = vgpr(vdata, dwords(op_->dst), acc);
}

void Decoder::mtbuf() {
  select(Encoding::mtbuf, field(w0_, 15, 4));
  literal_allowed_ = false;
  const bool acc = field(w1_, 23, 1) != 0;
  i_.imm = static_cast<std::int32_t>(field(w0_, 0, 12));
  i_.offen = field(w0_, 12, 1) != 0;
  i_.idxen = field(w0_, 13, 1) != 0;
  i_.sc0 = field(w0_, 14, 1) != 0;
  i_.sc1 = field(w1_, 21, 1) != 0;
  i_.nt = field(w1_, 22, 1) != 0;
  i_.format = static_cast<std::uint8_t>(field(w0_, 19, 7));
  i_.saddr = sgpr(field(w1_, 16, 5) * 4, 4);
  i_.soffset = scalar_source(field(w1_, 24, 8), Slot::b32);
  if (i_.offen || i_.idxen) i_.addr = vgpr(field(w1_, 0, 8), i_.offen && i_.idxen ? 2 : 1);
  const unsigned vdata = field(w1_, 8, 8);
  if (op_->src[1] != Slot::none) i_.data[0] = vgpr(vdata, dwords(op_->src[1]), acc);
  if (op_->dst != Slot::none) i_.dst = vgpr(vdata, dwords(op_->dst), acc);
}

}  // namespace

Decoded decode(std::span<const std::uint32_t> words) {
  try {
    return {Decoder(words).run(), {}};
  } catch (Refused& refused) {
    return {{}, std::move(refused.why)};
  }
}

}  // namespace attest::device::sim
