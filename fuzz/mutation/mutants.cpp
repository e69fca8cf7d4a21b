// SPDX-License-Identifier: MIT
#include "fuzz/mutation/mutants.h"

#include <fmt/format.h>

#include <cstring>
#include <set>
#include <stdexcept>

#include "device/simulator/core/code_object.h"
#include "device/simulator/detect/effects.h"
#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"

namespace attest::fuzz {
namespace {

using namespace device::sim;
using device::sim::detect::wait_counts;
using device::sim::detect::WaitCounts;

constexpr std::uint32_t nop_0 = 0xbf800000, no_instruction = 0xffffffff;
constexpr std::size_t most_lifted = 10;

struct Code {
  std::uint64_t address = 0;  ///< of words[0]
  std::size_t offset = 0;     ///< in the file
  std::vector<std::uint32_t> words;
};

Code code_of(std::span<const std::byte> bytes, const std::string& name) {
  const CodeObject object = read_code_object(bytes);
  const Kernel* kernel = object.find(name);
  if (kernel == nullptr) throw std::runtime_error(fmt::format("the code object has no kernel {}", name));
  for (const Segment& s : object.segments) {
    if (!s.executable || kernel->entry_address < s.address ||
        kernel->entry_address >= s.address + s.file.size())
      continue;
    const std::uint64_t in_segment = kernel->entry_address - s.address;
    Code code;
    code.address = kernel->entry_address;
    code.offset = static_cast<std::size_t>(s.file.data() - bytes.data()) + in_segment;
    code.words.resize(std::min<std::uint64_t>(kernel->code_bytes, s.file.size() - in_segment) / 4);
    std::memcpy(code.words.data(), bytes.data() + code.offset, code.words.size() * 4);
    return code;
  }
  throw std::runtime_error(fmt::format("{} has no code in the file", name));
}

struct Line {
  std::size_t at = 0;  ///< dword
  Instruction instruction;
};

bool is_branch(const Instruction& i) {
  return info(i.op).has(op_flag::branch | op_flag::ends);
}

std::int32_t waitcnt_simm(unsigned vm, unsigned exp, unsigned lgkm) {
  return static_cast<std::int32_t>((vm & 15) | exp << 4 | lgkm << 8 | (vm >> 4) << 14);
}
std::uint32_t waitcnt_word(unsigned vm, unsigned exp, unsigned lgkm) {
  return 0xbf8c0000u | static_cast<std::uint32_t>(waitcnt_simm(vm, exp, lgkm));
}

class Finder {
 public:
  explicit Finder(Code code) : code_(std::move(code)) {
    const std::span<const std::uint32_t> all(code_.words);
    for (std::size_t at = 0; at < all.size();) {
      const Decoded d = decode(all.subspan(at));
      lines_.push_back({at, d.instruction});
      if (is_branch(d.instruction) && d.instruction.encoding == Encoding::sopp)
        targets_.insert(static_cast<std::int64_t>(at) + 1 + d.instruction.imm);
      at += d.instruction.size_bytes / 4;
    }
    // Behind the last end there is only padding.
    while (!lines_.empty() && !info(lines_.back().instruction.op).has(op_flag::ends)) lines_.pop_back();
  }

  std::vector<Mutant> run() {
    for (std::size_t n = 0; n < lines_.size(); ++n) {
      switch (lines_[n].instruction.op) {
        case Op::s_waitcnt:
          wait(n);
          break;
        case Op::s_barrier:
          add(n, Mutant::Kind::barrier, "removed", {nop_0});
          break;
        case Op::s_nop:
          nop(n);
          break;
        default:
          break;
      }
    }
    return std::move(mutants_);
  }

 private:
  Mutant& add(std::size_t n, Mutant::Kind kind, std::string change, std::vector<std::uint32_t> words,
              std::size_t lines_before = 0) {
    Mutant m;
    m.kind = kind;
    m.pc = code_.address + lines_[n].at * 4;
    m.instruction = disassemble(lines_[n].instruction);
    m.change = std::move(change);
    m.offset = code_.offset + lines_[n - lines_before].at * 4;
    m.words = std::move(words);
    mutants_.push_back(std::move(m));
    return mutants_.back();
  }

  void wait(std::size_t n) {
    const WaitCounts c = wait_counts(lines_[n].instruction.imm);
    const std::string covered = later_wait(n);
    add(n, Mutant::Kind::wait, "removed", {nop_0}).covered_by = covered;
    if (c.vmcnt < WaitCounts::vmcnt_max)
      add(n, Mutant::Kind::wait, fmt::format("vmcnt({})", c.vmcnt + 1),
          {waitcnt_word(c.vmcnt + 1u, c.expcnt, c.lgkmcnt)})
          .covered_by = covered;
    if (c.lgkmcnt < WaitCounts::lgkmcnt_max)
      add(n, Mutant::Kind::wait, fmt::format("lgkmcnt({})", c.lgkmcnt + 1),
          {waitcnt_word(c.vmcnt, c.expcnt, c.lgkmcnt + 1u)})
          .covered_by = covered;
  }

  void nop(std::size_t n) {
    const std::uint32_t states = static_cast<std::uint32_t>(lines_[n].instruction.imm & 0xf);
    if (states > 0) add(n, Mutant::Kind::nop, "one state less", {nop_0 | (states - 1)});
    // Up over the instructions before it, past the one whose result it waits for. Nobody may jump into what
    // moves.
    std::size_t over = 0;
    while (over < most_lifted && over < n && !is_branch(lines_[n - over - 1].instruction) &&
           !targets_.contains(static_cast<std::int64_t>(lines_[n - over].at)))
      ++over;
    if (over == 0) return;
    std::vector<std::uint32_t> words{code_.words[lines_[n].at]};
    for (std::size_t k = lines_[n - over].at; k < lines_[n].at; ++k) words.push_back(code_.words[k]);
    add(n, Mutant::Kind::nop, fmt::format("moved up over {}", over), std::move(words), over);
  }

  std::string later_wait(std::size_t n) const {
    const WaitCounts c = wait_counts(lines_[n].instruction.imm);
    for (std::size_t k = n + 1; k < lines_.size(); ++k) {
      const Instruction& i = lines_[k].instruction;
      if (is_branch(i) || i.op == Op::s_barrier) return "";
      if (i.op != Op::s_waitcnt) continue;
      const WaitCounts later = wait_counts(i.imm);
      if (later.vmcnt <= c.vmcnt && later.lgkmcnt <= c.lgkmcnt)
        return fmt::format("{} at {:#x}", disassemble(i), code_.address + lines_[k].at * 4);
    }
    return "";
  }

  Code code_;
  std::vector<Line> lines_;
  std::set<std::int64_t> targets_;  ///< dwords
  std::vector<Mutant> mutants_;
};

std::vector<std::byte> patched(std::span<const std::byte> bytes, std::size_t offset,
                               std::span<const std::uint32_t> words) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  std::memcpy(copy.data() + offset, words.data(), words.size_bytes());
  return copy;
}

}  // namespace

std::vector<Mutant> timing_mutants(std::span<const std::byte> bytes, const std::string& kernel) {
  return Finder(code_of(bytes, kernel)).run();
}

std::vector<std::byte> mutated(std::span<const std::byte> bytes, const Mutant& mutant) {
  return patched(bytes, mutant.offset, mutant.words);
}

std::vector<std::byte> trapped(std::span<const std::byte> bytes, const Mutant& mutant) {
  return patched(bytes, mutant.offset, std::span(&no_instruction, 1));
}

Mutant entry_of(std::span<const std::byte> bytes, const std::string& kernel) {
  const Code code = code_of(bytes, kernel);
  Mutant m;
  m.pc = code.address;
  m.offset = code.offset;
  return m;
}

}  // namespace attest::fuzz
