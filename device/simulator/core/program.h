// SPDX-License-Identifier: MIT
//
// A kernel's code ready to run: decoded instructions, each with the function that executes it.
//
// A program covers the machine code one kernel can reach, bound for that kernel's register allocation
// (a-registers are rows behind accum_offset, so two kernels with different allocations need different
// programs). Instructions are numbered 0.. in address order; a wave's pc is such a number. Branch targets are
// numbers already.
//
// Nothing about the code is refused at load: an encoding outside gfx942, an instruction nobody executes, a
// register past the allocation or a branch to nowhere becomes an instruction that raises the Fault when, and
// only when, a wave gets there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/simulator/core/fault.h"
#include "device/simulator/core/wave.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/isa/instruction.h"

namespace attest::device::sim {

struct Bound {
  Handler handler = nullptr;
  Instruction instruction;
};

struct ProgramSource {
  std::span<const std::byte> text;   ///< machine code; kept by the caller while the program lives
  std::uint64_t address = 0;         ///< guest address of text[0]
  std::uint64_t entry = 0;           ///< guest address of the kernel's first instruction
  std::uint32_t vgpr_count = 512;    ///< rows, a-registers included
  std::uint32_t accum_offset = 256;  ///< row of a0
};

/// s_cbranch_*: to the place it names, or on. In a program its imm is the number of that place.
bool is_conditional_branch(const Instruction& instruction);

class Program {
 public:
  Program(const ProgramSource& source, SimdLevel level);

  [[nodiscard]] const Bound* code() const { return code_.data(); }
  /// Instructions, without the guards behind the last one.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t entry() const { return entry_; }
  /// Guest address of an instruction; of size(): behind the last one.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t index) const;
  /// The instruction that starts at a guest address. Throws Fault bad_jump.
  [[nodiscard]] std::uint32_t index_of(std::uint64_t address) const;
  /// The dwords of an instruction, as decoded.
  [[nodiscard]] std::span<const std::uint32_t> words(std::uint32_t index) const;
  /// The instruction in LLVM's syntax, before registers were folded.
  [[nodiscard]] std::string disassembly(std::uint32_t index) const;
  /// The instruction to name when code()[index] raised a Fault: itself, or the branch that led to a guard.
  [[nodiscard]] std::uint32_t blame(std::uint32_t index) const;
  /// Why code()[index] was refused when it was bound; empty when it was not.
  [[nodiscard]] const std::string& refusal(const Instruction& instruction) const {
    return refusals_[instruction.literal];
  }
  /// Something another workgroup may wait for or observe half-way: global or flat atomics, cache write-backs
  /// or invalidations, sc bits on stores. Such kernels run with all workgroups interleaved in one thread.
  [[nodiscard]] bool communicates() const { return communicates_; }

  /// Called by every conditional branch, from any thread. Written once and then only read, so that threads
  /// which run the same loop do not fight over the byte.
  void note_branch(std::uint32_t number, bool taken) const {
    std::atomic<std::uint8_t>& ways = branches_[number];
    const std::uint8_t way = taken ? 2 : 1;
    if ((ways.load(std::memory_order_relaxed) & way) == 0) ways.fetch_or(way, std::memory_order_relaxed);
  }
  /// Of each conditional branch that the entry reaches, in order of address, the ways it went since the last
  /// call: '0' none, '1' on, '2' taken, '3' both. Not while a launch runs.
  [[nodiscard]] std::string take_branches() const;

 private:
  void bind(std::uint32_t index, const ProgramSource& source, SimdLevel level);
  void resolve_branch(std::uint32_t index);
  void refuse(std::uint32_t index, FaultKind kind, std::string why);
  std::uint32_t add_guard(std::uint32_t branch, std::string why);
  void walk();

  std::vector<Bound> code_;                 ///< instructions, then guards
  std::vector<std::uint32_t> guard_blame_;  ///< of each guard: the instruction to name
  std::vector<std::string> refusals_;
  std::vector<std::uint32_t> words_;     ///< text as dwords
  std::vector<std::uint32_t> offset_;    ///< [size + 1] dword offset of each instruction
  std::vector<std::uint32_t> index_at_;  ///< [dwords] instruction that starts there, or no_instruction
  std::uint64_t address_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t entry_ = 0;
  bool communicates_ = false;
  std::uint32_t branch_count_ = 0;
  /// [1 + branch_count_], by the literal of the bound branch; 0 is for those the walk does not reach.
  std::unique_ptr<std::atomic<std::uint8_t>[]> branches_;
};

}  // namespace attest::device::sim
