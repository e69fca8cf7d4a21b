// SPDX-License-Identifier: MIT
//
// Decoding is a linear sweep that starts over at the entry, so that data in front of it cannot shift the
// boundaries. What the sweep cannot decode is one refused dword; it goes on behind it.
#include "device/simulator/core/program.h"

#include <fmt/format.h>

#include <cstring>

#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"

namespace attest::device::sim {
namespace {

constexpr std::uint32_t no_instruction = 0xffffffffu;

// One function per kind, so that a refusal costs nothing until it is reached.
template <FaultKind kind>
void raise(Wave& w, const Instruction& instruction) {
  throw Fault(kind, w.program->refusal(instruction));
}

Handler raiser(FaultKind kind) {
  switch (kind) {
    case FaultKind::illegal_instruction:
      return raise<FaultKind::illegal_instruction>;
    case FaultKind::register_range:
      return raise<FaultKind::register_range>;
    case FaultKind::bad_jump:
      return raise<FaultKind::bad_jump>;
    default:
      return raise<FaultKind::unsupported>;
  }
}

std::string words_text(std::span<const std::uint32_t> words) {
  std::string text;
  for (const std::uint32_t w : words) text += fmt::format("{}{:08x}", text.empty() ? "" : " ", w);
  return text;
}

/// Calls f(operand code, registers) for every register operand.
template <typename F>
void for_each_register(Instruction& i, F&& f) {
  const OpInfo& shape = info(i.op);
  f(i.dst, dwords(shape.dst));
  f(i.sdst, dwords(shape.sdst));
  for (int s = 0; s < 3; ++s) f(i.src[s], dwords(shape.src[s]));
  for (int d = 0; d < 2; ++d) f(i.data[d], dwords(shape.src[d + 1]));
  unsigned address = 1;
  if (i.encoding == Encoding::flat || i.encoding == Encoding::global)
    address = i.saddr == operand::none ? 2 : 1;
  if (i.encoding == Encoding::mubuf || i.encoding == Encoding::mtbuf) address = i.offen && i.idxen ? 2 : 1;
  f(i.addr, address);
}

bool is_direct_branch(const Instruction& i) {
  switch (i.op) {
    case Op::s_branch:
    case Op::s_cbranch_cdbgsys:
    case Op::s_cbranch_cdbguser:
    case Op::s_cbranch_cdbgsys_or_user:
    case Op::s_cbranch_cdbgsys_and_user:
    case Op::s_call_b64:
      return true;
    default:
      return is_conditional_branch(i);
  }
}

bool may_reach_other_workgroups(const Instruction& i) {
  switch (i.op) {
    case Op::buffer_wbl2:
    case Op::buffer_inv:
    case Op::buffer_wbinvl1:
    case Op::buffer_wbinvl1_vol:
    case Op::ds_gws_barrier:
      return true;
    default:
      break;
  }
  switch (i.encoding) {
    case Encoding::flat:
    case Encoding::global:
    case Encoding::mubuf:
      return info(i.op).has(op_flag::atomic) || i.sc1;
    case Encoding::smem:
      return info(i.op).has(op_flag::atomic);
    default:
      return false;
  }
}

}  // namespace

bool is_conditional_branch(const Instruction& i) {
  switch (i.op) {
    case Op::s_cbranch_scc0:
    case Op::s_cbranch_scc1:
    case Op::s_cbranch_vccz:
    case Op::s_cbranch_vccnz:
    case Op::s_cbranch_execz:
    case Op::s_cbranch_execnz:
      return true;
    default:
      return false;
  }
}

Program::Program(const ProgramSource& source, SimdLevel level)
    : words_(source.text.size() / 4), address_(source.address) {
  std::memcpy(words_.data(), source.text.data(), words_.size() * 4);
  index_at_.assign(words_.size(), no_instruction);
  const std::uint64_t entry_dword = (source.entry - source.address) / 4;
  refusals_.emplace_back();
  const std::span<const std::uint32_t> text(words_);
  std::vector<std::string> undecoded;
  for (std::uint32_t at = 0; at < words_.size();) {
    Decoded decoded = decode(text.subspan(at));
    std::uint32_t size = decoded.instruction.size_bytes / 4;
    if (!decoded || (at < entry_dword && entry_dword < at + size)) {
      if (decoded) decoded.why = "an instruction that reaches over the kernel's entry";
      decoded.instruction = Instruction{};
      decoded.instruction.literal = static_cast<std::uint32_t>(refusals_.size());
      refusals_.push_back(fmt::format("illegal instruction {:08x}: {}", words_[at], decoded.why));
      size = 1;
    }
    index_at_[at] = static_cast<std::uint32_t>(offset_.size());
    offset_.push_back(at);
    code_.push_back({nullptr, decoded.instruction});
    at += size;
  }
  size_ = static_cast<std::uint32_t>(code_.size());
  offset_.push_back(static_cast<std::uint32_t>(words_.size()));
  add_guard(size_ == 0 ? 0 : size_ - 1, "execution ran past the end of the code");
  entry_ = entry_dword < words_.size() ? index_at_[entry_dword] : size_;
  for (std::uint32_t index = 0; index < size_; ++index) bind(index, source, level);
  walk();
}

std::uint32_t Program::add_guard(std::uint32_t branch, std::string why) {
  Bound guard;
  guard.handler = raiser(FaultKind::bad_jump);
  guard.instruction.literal = static_cast<std::uint32_t>(refusals_.size());
  refusals_.push_back(std::move(why));
  code_.push_back(guard);
  guard_blame_.push_back(branch);
  return static_cast<std::uint32_t>(code_.size() - 1);
}

void Program::refuse(std::uint32_t index, FaultKind kind, std::string why) {
  code_[index].handler = raiser(kind);
  code_[index].instruction.literal = static_cast<std::uint32_t>(refusals_.size());
  refusals_.push_back(std::move(why));
}

void Program::bind(std::uint32_t index, const ProgramSource& source, SimdLevel level) {
  Instruction& i = code_[index].instruction;
  if (i.op == Op::invalid) {
    code_[index].handler = raiser(FaultKind::illegal_instruction);
    return;
  }
  std::string out_of_range;
  for_each_register(i, [&](std::uint16_t& code, unsigned count) {
    if (code == operand::none || code < operand::vgpr0 || count == 0) return;
    const bool accumulation = code >= operand::agpr0;
    const unsigned number = code - (accumulation ? operand::agpr0 : operand::vgpr0);
    const unsigned row = number + (accumulation ? source.accum_offset : 0);
    if (row + count > source.vgpr_count && out_of_range.empty()) {
      const char file = accumulation ? 'a' : 'v';
      const unsigned have = accumulation
                                ? source.vgpr_count - std::min(source.accum_offset, source.vgpr_count)
                                : source.vgpr_count;
      out_of_range = fmt::format("{} uses {}{}, the kernel has {} {}-registers", info(i.op).name, file,
                                 number + count - 1, have, file);
    }
    code = static_cast<std::uint16_t>(operand::vgpr0 + row);
  });
  if (!out_of_range.empty()) return refuse(index, FaultKind::register_range, std::move(out_of_range));
  if (is_direct_branch(i)) resolve_branch(index);

  const Instruction& bound = code_[index].instruction;
  Handler handler = scalar_handler(bound);
  if (handler == nullptr) handler = vector_handler(bound, level);
  if (handler == nullptr) handler = matrix_handler(bound, level);
  if (handler == nullptr) handler = memory_handler(bound);
  if (handler == nullptr) {
    return refuse(index, FaultKind::unsupported,
                  fmt::format("{} is not executed by the simulator ({})", info(bound.op).name,
                              words_text(words(index))));
  }
  code_[index].handler = handler;
}

void Program::resolve_branch(std::uint32_t index) {
  const std::int32_t distance = code_[index].instruction.imm;
  const std::int64_t target = std::int64_t{offset_[index + 1]} + distance;
  std::uint32_t to = no_instruction;
  if (target >= 0 && target < static_cast<std::int64_t>(words_.size())) {
    to = index_at_[static_cast<std::size_t>(target)];
    if (to == no_instruction) to = add_guard(index, "branch into the middle of an instruction");
  } else {
    to = add_guard(index, fmt::format("branch {} dwords away, outside the code", distance));
  }
  code_[index].instruction.imm = static_cast<std::int32_t>(to);
}

/// Walks everything the entry reaches: does it communicate, and which conditional branches has it? A computed
/// jump may go anywhere, so then all code counts.
void Program::walk() {
  std::vector<bool> seen(code_.size(), false);
  std::vector<std::uint32_t> open{entry_};
  bool anywhere = false;
  while (!open.empty() && !anywhere) {
    std::uint32_t at = open.back();
    open.pop_back();
    while (at < size_ && !seen[at]) {
      seen[at] = true;
      const Instruction& i = code_[at].instruction;
      if (i.op == Op::s_setpc_b64 || i.op == Op::s_swappc_b64 || i.op == Op::s_call_b64) anywhere = true;
      if (is_direct_branch(i)) open.push_back(static_cast<std::uint32_t>(i.imm));
      if (i.op == Op::s_branch || info(i.op).has(op_flag::ends)) break;
      ++at;
    }
  }
  for (std::uint32_t at = 0; at < size_; ++at) {
    if (!anywhere && !seen[at]) continue;
    Instruction& i = code_[at].instruction;
    communicates_ = communicates_ || may_reach_other_workgroups(i);
    if (is_conditional_branch(i)) i.literal = ++branch_count_;
  }
  branches_ = std::make_unique<std::atomic<std::uint8_t>[]>(branch_count_ + 1);
}

std::string Program::take_branches() const {
  std::string ways(branch_count_, '0');
  for (std::uint32_t n = 0; n < branch_count_; ++n)
    ways[n] = static_cast<char>('0' + branches_[n + 1].exchange(0, std::memory_order_relaxed));
  return ways;
}

std::uint64_t Program::address_of(std::uint32_t index) const {
  return address_ + std::uint64_t{offset_[std::min(index, size_)]} * 4;
}

std::uint32_t Program::index_of(std::uint64_t address) const {
  const std::uint64_t distance = address - address_;
  if (distance / 4 < index_at_.size() && distance % 4 == 0) {
    if (const std::uint32_t index = index_at_[distance / 4]; index != no_instruction) return index;
  }
  Fault fault(FaultKind::bad_jump,
              fmt::format("jump to {:#x}, where no instruction of this kernel starts", address));
  fault.address = address;
  throw fault;
}

std::span<const std::uint32_t> Program::words(std::uint32_t index) const {
  const std::span<const std::uint32_t> all(words_);
  return index < size_ ? all.subspan(offset_[index], offset_[index + 1] - offset_[index]) : all.subspan(0, 0);
}

std::uint32_t Program::blame(std::uint32_t index) const {
  return index < size_ ? index : guard_blame_[std::min<std::size_t>(index - size_, guard_blame_.size() - 1)];
}

std::string Program::disassembly(std::uint32_t index) const {
  const auto raw = words(index);
  if (raw.empty()) return {};
  const Decoded decoded = decode(raw);
  return decoded ? disassemble(decoded.instruction) : fmt::format(".long 0x{:08x}", raw[0]);
}

}  // namespace attest::device::sim
