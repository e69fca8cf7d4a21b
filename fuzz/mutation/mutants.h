// SPDX-License-Identifier: MIT
//
// Code objects with one wait, barrier or s_nop taken away or weakened, to ask what notices.
//
//   for (const Mutant& m : timing_mutants(bytes, "mla_decode_bf16_bf16")) run(mutated(bytes, m));
//
//   s_waitcnt   removed (s_nop 0 in its place); each count it names raised by one
//   s_barrier   removed (s_nop 0 in its place)
//   s_nop n     one wait state less; all of it moved up over the (at most ten) instructions before
//               it, out of the gap that it fills (in place nothing is shorter than s_nop 0)
//
// A mutant has the size of the original, so branches and the rest of the file stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attest::fuzz {

struct Mutant {
  enum class Kind : std::uint8_t { wait, barrier, nop } kind = Kind::wait;
  std::uint64_t pc = 0;              ///< as llvm-objdump prints it
  std::string instruction;           ///< "s_waitcnt vmcnt(2)"
  std::string change;                ///< "removed", "vmcnt(3)", "one state less", "moved up over 2"
  std::size_t offset = 0;            ///< in the file
  std::vector<std::uint32_t> words;  ///< what stands there instead
  std::string covered_by;  ///< the later wait that covers all that this one covers, if one follows before the
                           ///< next branch or barrier: "s_waitcnt vmcnt(0) at 0x1a40"
};

/// In address order. Throws std::runtime_error: no such kernel, or bytes that are no code object.
std::vector<Mutant> timing_mutants(std::span<const std::byte> bytes, const std::string& kernel);

std::vector<std::byte> mutated(std::span<const std::byte> bytes, const Mutant& mutant);
/// The same file with a word there that no wave can pass: tells whether one comes along.
std::vector<std::byte> trapped(std::span<const std::byte> bytes, const Mutant& mutant);

/// File offset of a kernel's first instruction. Throws as timing_mutants.
Mutant entry_of(std::span<const std::byte> bytes, const std::string& kernel);

}  // namespace attest::fuzz
