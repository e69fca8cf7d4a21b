// SPDX-License-Identifier: MIT
//
// The state of one 64-lane wave, laid out for speed: a handler is a function over this struct.
//
// Registers. sgpr[] is indexed by operand code, so vcc (106), m0 (124) and exec (126) are ordinary entries.
// The vector file is register-major, 64 lanes of a register are 256 contiguous, 64-byte aligned bytes: lane l
// of register r is vgpr[r * 64 + l]. Accumulation registers follow at accum_offset (aN is vgpr row
// accum_offset + N), as in hardware; the program loader (core/program.h) has already folded operand codes
// 512.. into plain rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace attest::device::sim {

inline constexpr int lanes = 64;

class Memory;
class Program;
struct Workgroup;
struct Instruction;

/// s_barrier and s_endpgm leave their mark here; the dispatcher looks after every instruction.
enum class WaveState : std::uint8_t { running, at_barrier, ended };

/// The windows through which FLAT instructions reach LDS and scratch: 4 GiB each, on a 2^32 boundary. Operand
/// codes 235..238 (src_shared_base, src_shared_limit, src_private_base, src_private_limit) read the upper
/// halves of these (as a 64-bit operand: the whole value, limit = base + 0xffffffff).
namespace aperture {
inline constexpr std::uint64_t shared_base = std::uint64_t{1} << 48;
inline constexpr std::uint64_t private_base = std::uint64_t{2} << 48;
}  // namespace aperture

/// What registers hold at entry where the ABI leaves them undefined: a NaN as f32, bf16 and f64, no valid
/// address.
inline constexpr std::uint32_t undefined_register = 0x7ff5a5a5u;

/// MODE register bits (hwreg 1).
namespace mode {
inline constexpr std::uint32_t round32_mask = 3u << 0, round64_mask = 3u << 2;
inline constexpr std::uint32_t denorm32_in = 1u << 4, denorm32_out = 1u << 5;  ///< set = keep denormals
inline constexpr std::uint32_t denorm64_in = 1u << 6, denorm64_out = 1u << 7;
inline constexpr std::uint32_t dx10_clamp = 1u << 8, ieee = 1u << 9, fp16_ovfl = 1u << 23,
                               gpr_idx_en = 1u << 27;
}  // namespace mode

struct alignas(64) Wave {
  std::uint32_t sgpr[128] = {};
  std::uint32_t* vgpr = nullptr;  ///< [vgpr_count][64]
  std::uint32_t vgpr_count = 0;
  std::uint32_t accum_offset = 0;
  std::uint32_t scc = 0;   ///< 0 or 1
  std::uint32_t mode = 0;  ///< see namespace mode
  std::uint32_t pc = 0;    ///< index into the program's instructions, of the next one to execute
  WaveState state = WaveState::running;
  std::uint32_t id_in_group = 0;
  std::uint64_t instructions = 0;    ///< executed so far
  std::uint32_t global_barrier = 0;  ///< the generation it waits for; 0: none

  const Program* program = nullptr;
  Workgroup* group = nullptr;
  Memory* memory = nullptr;
  std::uint32_t* scratch = nullptr;  ///< [scratch_bytes / 4][64]: dword d of lane l is scratch[d * 64 + l]
  std::uint32_t scratch_bytes = 0;   ///< per lane, a multiple of 4

  [[nodiscard]] std::uint32_t* v(std::uint32_t row) { return vgpr + std::size_t{row} * lanes; }
  [[nodiscard]] const std::uint32_t* v(std::uint32_t row) const { return vgpr + std::size_t{row} * lanes; }
  [[nodiscard]] std::uint64_t s64(std::uint32_t code) const {
    std::uint64_t value;
    std::memcpy(&value, &sgpr[code], sizeof value);
    return value;
  }
  void set_s64(std::uint32_t code, std::uint64_t value) { std::memcpy(&sgpr[code], &value, sizeof value); }
  [[nodiscard]] std::uint64_t exec() const { return s64(126); }
  [[nodiscard]] std::uint64_t vcc() const { return s64(106); }
};

/// Executes one instruction. wave.pc already points behind it; branches overwrite it.
/// Throws Fault (core/fault.h) when the hardware would trap or the simulator cannot go on.
using Handler = void (*)(Wave& wave, const Instruction& instruction);

}  // namespace attest::device::sim
