// SPDX-License-Identifier: MIT
//
// Scalar instructions that steer the wave: jumps, EXEC masks, M0 indexing, hardware registers, barriers, the
// end.
//
// Not here, so that the program loader refuses them by name: s_cbranch_g_fork, s_cbranch_i_fork,
// s_cbranch_join, s_rfe_*, s_setvskip, s_setkill (no compiler emits them for gfx942), messages other than
// MSG_INTERRUPT.
#include <fmt/format.h>

#include "device/simulator/core/fault.h"
#include "device/simulator/core/program.h"
#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/scalar_operands.h"

namespace attest::device::sim::scalar {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

void nothing(Wave&, const Instruction&) {}

void branch(Wave& w, const Instruction& i) {
  w.pc = static_cast<u32>(i.imm);
}

template <auto condition>
void branch_if(Wave& w, const Instruction& i) {
  const bool taken = condition(w);
  if (w.program != nullptr) w.program->note_branch(i.literal, taken);
  if (taken) w.pc = static_cast<u32>(i.imm);
}

/// d = EXEC; EXEC = f(source, EXEC).
template <auto f>
void save_exec(Wave& w, const Instruction& i) {
  const u64 old = w.exec(), next = f(read64<true>(w, i, 0), old);
  w.set_s64(operand::exec, next);
  w.set_s64(i.dst, old);
  w.scc = next != 0;
}
/// EXEC = f(source, EXEC); d = EXEC.
template <auto f>
void write_exec(Wave& w, const Instruction& i) {
  const u64 next = f(read64<true>(w, i, 0), w.exec());
  w.set_s64(operand::exec, next);
  w.set_s64(i.dst, next);
  w.scc = next != 0;
}

u64 return_address(const Wave& w) {
  return w.program->address_of(w.pc);
}

/// The SGPR at code + M0, for s_movrel.
u32 relative(const Wave& w, const Instruction& i, std::uint16_t code, u32 count) {
  const u64 index = u64{code} + w.sgpr[operand::m0];
  if (index + count > 102) {
    throw Fault(FaultKind::register_range, fmt::format("{} with m0 {} names s{}, past s101", info(i.op).name,
                                                       w.sgpr[operand::m0], index));
  }
  return static_cast<u32>(count == 2 ? index & ~u64{1} : index);
}

// Hardware registers, https://llvm.org/docs/AMDGPU/gfx940_hwreg.html.
constexpr u32 reg_mode = 1, reg_status = 2, reg_trap_status = 3, reg_hw_id = 4, reg_gpr_alloc = 5,
              reg_lds_alloc = 6, reg_wait_status = 7, reg_memory_bases = 15, reg_xcc_id = 20;

u32 hardware_register(const Wave& w, u32 id) {
  switch (id) {
    case reg_mode:
      return w.mode;
    case reg_status:  // scc, execz, vccz, in_tg (more than one wave), valid
      return w.scc | u32{w.exec() == 0} << 9 | u32{w.vcc() == 0} << 10 |
             u32{w.group != nullptr && w.group->wave_count > 1} << 11 | 1u << 16;
    case reg_hw_id:  // a place on the device means nothing here: the wave's slot only
      return w.id_in_group & 15;
    case reg_gpr_alloc:
      return (w.vgpr_count / 8 - 1) << 8;
    case reg_lds_alloc:
      return w.group != nullptr ? w.group->lds_bytes / 512 << 12 : 0;
    case reg_memory_bases:
      return static_cast<u32>(aperture::private_base >> 48 | aperture::shared_base >> 48 << 16);
    case reg_trap_status:
    case reg_wait_status:
    case reg_xcc_id:
      return 0;
    default:
      throw Fault(FaultKind::unsupported, fmt::format("s_getreg_b32 of hardware register {}", id));
  }
}

struct HwregField {
  u32 id, offset, mask;
};
HwregField hwreg_field(const Instruction& i) {
  const u32 imm = static_cast<std::uint16_t>(i.imm), width = (imm >> 11) + 1;
  return {imm & 0x3f, imm >> 6 & 0x1f, width == 32 ? ~0u : (1u << width) - 1};
}

void s_getreg(Wave& w, const Instruction& i) {
  const HwregField f = hwreg_field(i);
  w.sgpr[i.dst] = hardware_register(w, f.id) >> f.offset & f.mask;
}

void set_register(Wave& w, const Instruction& i, u32 value) {
  const HwregField f = hwreg_field(i);
  const u32 mask = f.mask << f.offset;
  if (f.id == reg_mode) {
    w.mode = (w.mode & ~mask) | (value << f.offset & mask);
  } else if (f.id != reg_trap_status) {  // exception flags are never raised here
    throw Fault(FaultKind::unsupported, fmt::format("{} of hardware register {}", info(i.op).name, f.id));
  }
}

void interrupt(Wave& w, const Instruction&) {
  if (w.group != nullptr && w.group->interrupt != nullptr && *w.group->interrupt) (*w.group->interrupt)();
}

[[noreturn]] void trap(Wave&, const Instruction& i) {
  const int id = i.imm & 0xff;
  throw Fault(FaultKind::trap, fmt::format("s_trap {}{}", id,
                                           id == 2   ? " (abort)"
                                           : id == 3 ? " (debug trap)"
                                                     : ""));
}

void halt(Wave&, const Instruction& i) {
  if ((i.imm & 1) != 0)
    throw Fault(FaultKind::trap, "s_sethalt 1 stops the wave until a debugger resumes it");
}

void set_index_mode(Wave& w, u32 enables) {
  w.sgpr[operand::m0] = (w.sgpr[operand::m0] & ~0xf000u) | (enables & 15) << 12;
}
void set_index(Wave& w, u32 index) {
  w.sgpr[operand::m0] = (w.sgpr[operand::m0] & ~0xffu) | (index & 0xff);
}

}  // namespace

Handler control_handler(const Instruction& i) {
  switch (i.op) {
    // SOPP.
    case Op::s_endpgm:
    case Op::s_endpgm_saved:
      return [](Wave& w, const Instruction&) { w.state = WaveState::ended; };
    case Op::s_barrier:
      return [](Wave& w, const Instruction&) { w.state = WaveState::at_barrier; };
    case Op::s_branch:
      return branch;
    case Op::s_cbranch_scc0:
      return branch_if<[](const Wave& w) { return w.scc == 0; }>;
    case Op::s_cbranch_scc1:
      return branch_if<[](const Wave& w) { return w.scc != 0; }>;
    case Op::s_cbranch_vccz:
      return branch_if<[](const Wave& w) { return w.vcc() == 0; }>;
    case Op::s_cbranch_vccnz:
      return branch_if<[](const Wave& w) { return w.vcc() != 0; }>;
    case Op::s_cbranch_execz:
      return branch_if<[](const Wave& w) { return w.exec() == 0; }>;
    case Op::s_cbranch_execnz:
      return branch_if<[](const Wave& w) { return w.exec() != 0; }>;
    case Op::s_cbranch_cdbgsys:  // not taken: the debugger's flags are clear
    case Op::s_cbranch_cdbguser:
    case Op::s_cbranch_cdbgsys_or_user:
    case Op::s_cbranch_cdbgsys_and_user:
    case Op::s_nop:
    case Op::s_waitcnt:
    case Op::s_sleep:
    case Op::s_setprio:
    case Op::s_wakeup:
    case Op::s_icache_inv:
    case Op::s_incperflevel:
    case Op::s_decperflevel:
    case Op::s_ttracedata:
      return nothing;
    case Op::s_sendmsg:  // MSG_INTERRUPT wakes the host
      return (i.imm & 0xf) == 1 ? interrupt : nullptr;
    case Op::s_setkill:
      return [](Wave& w, const Instruction& n) {
        if ((n.imm & 1) != 0) w.state = WaveState::ended;
      };
    case Op::s_trap:
      return trap;
    case Op::s_sethalt:
      return halt;
    case Op::s_set_gpr_idx_off:
      return [](Wave& w, const Instruction&) { w.mode &= ~mode::gpr_idx_en; };
    case Op::s_set_gpr_idx_mode:
      return [](Wave& w, const Instruction& n) { set_index_mode(w, static_cast<u32>(n.imm)); };

    // SOPC.
    case Op::s_set_gpr_idx_on:
      return [](Wave& w, const Instruction& n) {
        set_index(w, read32<true>(w, n, 0));
        set_index_mode(w, static_cast<u32>(n.imm));
        w.mode |= mode::gpr_idx_en;
      };

    // SOPK.
    case Op::s_getreg_b32:
      return s_getreg;
    case Op::s_setreg_b32:
      return [](Wave& w, const Instruction& n) { set_register(w, n, w.sgpr[n.src[0]]); };
    case Op::s_setreg_imm32_b32:
      return [](Wave& w, const Instruction& n) { set_register(w, n, n.literal); };
    case Op::s_call_b64:
      return [](Wave& w, const Instruction& n) {
        w.set_s64(n.dst, return_address(w));
        w.pc = static_cast<u32>(n.imm);
      };

    // SOP1.
    case Op::s_getpc_b64:
      return [](Wave& w, const Instruction& n) { w.set_s64(n.dst, return_address(w)); };
    case Op::s_setpc_b64:
      return [](Wave& w, const Instruction& n) { w.pc = w.program->index_of(read64<true>(w, n, 0)); };
    case Op::s_swappc_b64:
      return [](Wave& w, const Instruction& n) {
        const u32 target = w.program->index_of(read64<true>(w, n, 0));
        w.set_s64(n.dst, return_address(w));
        w.pc = target;
      };
    case Op::s_set_gpr_idx_idx:
      return [](Wave& w, const Instruction& n) { set_index(w, read32<true>(w, n, 0)); };
    case Op::s_movrels_b32:
      return [](Wave& w, const Instruction& n) { w.sgpr[n.dst] = w.sgpr[relative(w, n, n.src[0], 1)]; };
    case Op::s_movrels_b64:
      return [](Wave& w, const Instruction& n) { w.set_s64(n.dst, w.s64(relative(w, n, n.src[0], 2))); };
    case Op::s_movreld_b32:
      return [](Wave& w, const Instruction& n) { w.sgpr[relative(w, n, n.dst, 1)] = read32<true>(w, n, 0); };
    case Op::s_movreld_b64:
      return
          [](Wave& w, const Instruction& n) { w.set_s64(relative(w, n, n.dst, 2), read64<true>(w, n, 0)); };
    case Op::s_and_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return s & exec; }>;
    case Op::s_or_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return s | exec; }>;
    case Op::s_xor_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return s ^ exec; }>;
    case Op::s_andn2_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return s & ~exec; }>;
    case Op::s_orn2_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return s | ~exec; }>;
    case Op::s_nand_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return ~(s & exec); }>;
    case Op::s_nor_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return ~(s | exec); }>;
    case Op::s_xnor_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return ~(s ^ exec); }>;
    case Op::s_andn1_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return ~s & exec; }>;
    case Op::s_orn1_saveexec_b64:
      return save_exec<[](u64 s, u64 exec) { return ~s | exec; }>;
    case Op::s_andn1_wrexec_b64:
      return write_exec<[](u64 s, u64 exec) { return ~s & exec; }>;
    case Op::s_andn2_wrexec_b64:
      return write_exec<[](u64 s, u64 exec) { return s & ~exec; }>;
    default:
      return nullptr;
  }
}

}  // namespace attest::device::sim::scalar
