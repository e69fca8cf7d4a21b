// SPDX-License-Identifier: MIT
#include "device/simulator/detect/effects.h"

#include <algorithm>
#include <string_view>

namespace attest::device::sim::detect {
namespace {

constexpr unsigned low_half = 0b0011, high_half = 0b1100, whole = 0b1111;

struct Multiplication {
  Matrix matrix = Matrix::none;
  std::uint8_t passes = 0;
};

/// The names carry the shape: v_mfma_f32_16x16x32_fp8_fp8.
Multiplication multiplication(const OpInfo& op) {
  const std::string_view name = op.name;
  const bool sparse = name.starts_with("v_smfmac_");
  if (!sparse && !name.starts_with("v_mfma_")) return {};
  const std::string_view shape = name.substr(sparse ? 13 : 11);
  const auto is = [shape](std::string_view prefix) { return shape.starts_with(prefix); };
  if (name.ends_with("_f64")) return {Matrix::dgemm, static_cast<std::uint8_t>(is("4x4") ? 4 : 8)};
  const Matrix matrix = name.ends_with("_f32") ? Matrix::sgemm : Matrix::xdl;
  if (is("4x4")) return {matrix, 2};
  if (is("16x16"))
    return {matrix, static_cast<std::uint8_t>(sparse || !(is("16x16x1_") || is("16x16x4_")) ? 4 : 8)};
  const bool slow = is("32x32x1_") || is("32x32x2_") || (is("32x32x4_") && !name.ends_with("xf32"));
  return {matrix, static_cast<std::uint8_t>(slow && !sparse ? 16 : 8)};
}

/// The bytes of its destination a VALU instruction writes where reads_dst means "keeps the rest".
unsigned kept_bytes(const Instruction& i) {
  const bool high = (i.op_sel & 8) != 0;
  switch (i.op) {
    case Op::v_fma_mixlo_f16:
      return low_half;
    case Op::v_fma_mixhi_f16:
      return high_half;
    case Op::v_cvt_pk_fp8_f32:
    case Op::v_cvt_pk_bf8_f32:
      return high ? high_half : low_half;
    case Op::v_cvt_sr_fp8_f32:
    case Op::v_cvt_sr_bf8_f32:
      return 1u << (i.op_sel >> 2 & 3);
    default:
      return 0;
  }
}

unsigned sdwa_bytes(unsigned select) {
  if (select <= 3) return 1u << select;
  return select == 4 ? low_half : select == 5 ? high_half : whole;
}

unsigned d16_bytes(const OpInfo& op) {
  if (!op.has(op_flag::reads_dst)) return whole;
  return op.name.find("d16_hi") != std::string_view::npos ? high_half : low_half;
}

class Collector {
 public:
  Collector(const Instruction& instruction, std::uint32_t mode, std::uint32_t m0)
      : i_(instruction), op_(info(instruction.op)), mode_(mode), m0_(m0) {}

  Effects run() {
    if (i_.op == Op::invalid) return e_;
    switch (i_.encoding) {
      case Encoding::sop1:
      case Encoding::sop2:
      case Encoding::sopc:
      case Encoding::sopk:
        scalar_alu();
        break;
      case Encoding::sopp:
        if (i_.op == Op::s_set_gpr_idx_mode) write(operand::m0, 1);
        if (i_.op == Op::s_sendmsg || i_.op == Op::s_sendmsghalt) e_.lgkmcnt = 1;
        break;
      case Encoding::smem:
        scalar_memory();
        break;
      case Encoding::ds:
      case Encoding::flat:
      case Encoding::global:
      case Encoding::scratch:
      case Encoding::mubuf:
      case Encoding::mtbuf:
        vector_memory();
        break;
      default:
        vector();
    }
    special();
    return e_;
  }

 private:
  void read(unsigned code, unsigned count) {
    if (count == 0) return;
    if (code < 128)
      e_.scalar_reads.add(code, count);
    else if (code == 251)
      e_.scalar_reads.add(operand::vcc, 2);
    else if (code == 252)
      e_.scalar_reads.add(operand::exec, 2);
    else if (code == operand::scc)
      e_.scalar_reads.add(scalar::scc, 1);
    else if (code >= operand::vgpr0 && code != operand::none)
      e_.vector_reads.add(code - operand::vgpr0, count);
  }
  void write(unsigned code, unsigned count, unsigned bytes = whole) {
    if (count == 0 || code == operand::none) return;
    if (code < 128)
      e_.scalar_writes.add(code, count);
    else if (code >= operand::vgpr0)
      e_.vector_writes.add(code - operand::vgpr0, count, bytes);
  }

  [[nodiscard]] unsigned index(unsigned code, unsigned place) const {
    const bool on = (mode_ & mode::gpr_idx_en) != 0 && (m0_ >> (12 + place) & 1) != 0;
    return on && code >= operand::vgpr0 && code != operand::none ? m0_ & 0xff : 0;
  }

  void scalar_alu() {
    e_.unit = Unit::salu;
    unsigned from = 0, to = 0;
    switch (i_.op) {
      case Op::s_movrels_b32:
      case Op::s_movrels_b64:
        e_.relative = true;
        from = m0_;
        break;
      case Op::s_movreld_b32:
      case Op::s_movreld_b64:
        e_.relative = true;
        to = m0_;
        break;
      case Op::s_set_gpr_idx_on:
      case Op::s_set_gpr_idx_idx:
        write(operand::m0, 1);
        break;
      default:
        break;
    }
    for (int s = 0; s < 3; ++s) {
      const unsigned code = i_.src[s];
      read(code < 128 ? (code + from) & 127 : code, dwords(op_.src[s]));
    }
    if (op_.has(op_flag::reads_dst)) read(i_.dst, dwords(op_.dst));
    write(i_.dst == operand::none ? i_.dst : (i_.dst + to) & 127, dwords(op_.dst));
  }

  void scalar_memory() {
    e_.unit = Unit::smem;
    if (i_.saddr != operand::none) read(i_.saddr, dwords(op_.src[0]));
    if (i_.soffset != operand::none) read(i_.soffset, 1);
    if (i_.data[0] != operand::none) read(i_.data[0], dwords(op_.src[1]));
    // The value an atomic returns replaces its data; without GLC nothing comes back.
    if (op_.has(op_flag::atomic) && i_.sc0) {
      const bool swap = op_.name.find("cmpswap") != std::string_view::npos;
      write(i_.data[0], dwords(op_.src[1]) / (swap ? 2 : 1));
    }
    write(i_.dst, dwords(op_.dst));
    memory_flags();
    const unsigned data = std::max(dwords(op_.dst), dwords(op_.src[1]));
    e_.lgkmcnt = data > 1 ? 2 : 1;
  }

  void vector_memory() {
    e_.exec_masked = true;
    memory_flags();
    e_.lds_dma = op_.has(op_flag::lds_dma) || (i_.encoding == Encoding::mubuf && i_.lds);
    unsigned address = 1;
    switch (i_.encoding) {
      case Encoding::ds:
        e_.unit = Unit::ds;
        e_.lgkmcnt = i_.op == Op::ds_nop ? 0 : 1;
        if (i_.gds || reads_lds_base()) read(operand::m0, 1);
        break;
      case Encoding::flat:
        e_.unit = Unit::flat;
        e_.vmcnt = true;
        e_.lgkmcnt = 1;
        address = 2;
        break;
      default:
        e_.unit = Unit::vmem;
        // Invalidations are not counted, write-backs are.
        e_.vmcnt = op_.src[0] != Slot::none || i_.op == Op::buffer_wbl2;
        if (i_.encoding == Encoding::global) address = i_.saddr == operand::none ? 2 : 1;
        if (i_.encoding == Encoding::mubuf || i_.encoding == Encoding::mtbuf)
          address = i_.offen && i_.idxen ? 2 : 1;
        if (i_.saddr != operand::none) {
          const bool buffer = i_.encoding == Encoding::mubuf || i_.encoding == Encoding::mtbuf;
          read(i_.saddr, buffer ? 4 : i_.encoding == Encoding::global ? 2 : 1);
        }
        if (i_.soffset != operand::none) read(i_.soffset, 1);
        if (e_.lds_dma) read(operand::m0, 1);
    }
    if (i_.addr != operand::none) read(i_.addr, address);
    for (int d = 0; d < 2; ++d)
      if (i_.data[d] != operand::none) read(i_.data[d], dwords(op_.src[d + 1]));
    write(i_.dst, dwords(op_.dst), d16_bytes(op_));
  }

  [[nodiscard]] bool reads_lds_base() const {
    switch (i_.op) {
      case Op::ds_read_addtid_b32:
      case Op::ds_write_addtid_b32:
      case Op::ds_append:
      case Op::ds_consume:
        return true;
      default:
        return false;
    }
  }

  void memory_flags() {
    e_.load = op_.has(op_flag::load);
    e_.store = op_.has(op_flag::store);
    e_.atomic = op_.has(op_flag::atomic);
  }

  void vector() {
    const Multiplication product = multiplication(op_);
    e_.unit = product.matrix == Matrix::none ? Unit::valu : Unit::mfma;
    e_.matrix = product.matrix;
    e_.passes = product.passes;
    e_.trans = op_.has(op_flag::trans);
    e_.dot = op_.name.starts_with("v_dot");
    e_.dpp = i_.extension == Extension::dpp;
    e_.sdwa = i_.extension == Extension::sdwa;
    const bool one_lane = i_.op == Op::v_readlane_b32 || i_.op == Op::v_writelane_b32;
    e_.exec_masked = e_.unit == Unit::valu && !one_lane;

    for (unsigned s = 0; s < 3; ++s) {
      const unsigned code = i_.src[s];
      if (code == operand::none || op_.src[s] == Slot::none) continue;
      unsigned first = code + index(code, s), count = dwords(op_.src[s]);
      if (code >= operand::vgpr0 && i_.encoding == Encoding::vop3p &&
          (op_.src[s] == Slot::v2f32 || op_.src[s] == Slot::v2b32)) {
        // Each half of the result chooses one of the two registers.
        const unsigned for_low = i_.op_sel >> s & 1, for_high = i_.op_sel_hi >> s & 1;
        first += std::min(for_low, for_high);
        count = for_low == for_high ? 1 : 2;
      }
      read(first, count);
    }
    const unsigned dst = i_.dst == operand::none ? unsigned{operand::none} : i_.dst + index(i_.dst, 3);
    unsigned bytes = whole;
    if (op_.has(op_flag::reads_dst)) {
      if (const unsigned kept = kept_bytes(i_); kept != 0)
        bytes = kept;
      else if (i_.op != Op::v_writelane_b32)
        read(dst, dwords(op_.dst));
    }
    if (i_.encoding == Encoding::vop3 && bytes == whole && (i_.op_sel & 8) != 0) bytes = high_half;
    if (e_.sdwa && i_.encoding != Encoding::vopc && i_.dst_unused == 2) bytes = sdwa_bytes(i_.dst_sel);
    write(dst, dwords(op_.dst), bytes);
    e_.writes_part = (e_.sdwa && i_.encoding != Encoding::vopc && i_.dst_sel != 6) ||
                     (i_.encoding == Encoding::vop3 && (i_.op_sel & 8) != 0);
    write(i_.sdst, dwords(op_.sdst));
    if (i_.op == Op::v_swap_b32) {
      read(dst, 1);
      write(i_.src[0] + index(i_.src[0], 0), 1);
    }
  }

  /// The effects beside named operands.
  void special() {
    std::uint32_t flags = op_.flags;
    if (i_.op == Op::s_getreg_b32 || i_.op == Op::s_setreg_b32 || i_.op == Op::s_setreg_imm32_b32) {
      constexpr std::int32_t mode_register = 1;
      if ((i_.imm & 63) != mode_register) flags &= ~(op_flag::reads_mode | op_flag::writes_mode);
    }
    if ((flags & op_flag::reads_scc) != 0) read(operand::scc, 1);
    if ((flags & op_flag::writes_scc) != 0) e_.scalar_writes.add(scalar::scc, 1);
    // A mask operand that is vcc is named; v_div_fmas and the branches read vcc unnamed.
    if ((flags & op_flag::reads_vcc) != 0 && op_.src[2] != Slot::mask) read(operand::vcc, 2);
    if ((flags & op_flag::reads_exec) != 0) read(operand::exec, 2);
    if ((flags & op_flag::writes_exec) != 0) e_.scalar_writes.add(operand::exec, 2);
    if ((flags & op_flag::reads_m0) != 0) read(operand::m0, 1);
    if ((flags & op_flag::reads_mode) != 0) e_.scalar_reads.add(scalar::mode, 1);
    if ((flags & op_flag::writes_mode) != 0) e_.scalar_writes.add(scalar::mode, 1);
  }

  const Instruction& i_;
  const OpInfo& op_;
  std::uint32_t mode_, m0_;
  Effects e_;
};

}  // namespace

Effects effects_of(const Instruction& instruction) {
  return Collector(instruction, 0, 0).run();
}

Effects effects_of(const Instruction& instruction, std::uint32_t mode, std::uint32_t m0) {
  return Collector(instruction, mode, m0).run();
}

}  // namespace attest::device::sim::detect
