// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <atomic>

#include "device/simulator/core/fault.h"
#include "device/simulator/exec/handlers.h"
#include "device/simulator/exec/memory_lanes.h"
#include "device/simulator/exec/memory_moves.h"

namespace attest::device::sim {

namespace simd_baseline {
extern const Moves memory_moves;
}
namespace simd_avx2 {
extern const Moves memory_moves;
}
namespace simd_avx512 {
extern const Moves memory_moves;
}

namespace {
std::atomic<const Moves*> chosen_moves{&simd_baseline::memory_moves};
}  // namespace

const Moves& moves() {
  return *chosen_moves.load(std::memory_order_relaxed);
}

void use_moves(SimdLevel level) {
  chosen_moves = level == SimdLevel::avx512 ? &simd_avx512::memory_moves
                 : level == SimdLevel::avx2 ? &simd_avx2::memory_moves
                                            : &simd_baseline::memory_moves;
}

void throw_access(const Instruction& i, const char* space, std::uint64_t address, std::uint32_t bytes,
                  bool write, int lane, const std::string& why) {
  Fault fault(write ? FaultKind::memory_write : FaultKind::memory_read,
              fmt::format("{} {} {} byte{} at {}{:#x}, {}", info(i.op).name, write ? "writes" : "reads",
                          bytes, bytes == 1 ? "" : "s", space, address, why));
  fault.address = address;
  fault.lane = lane;
  throw fault;
}

void throw_lds(const Wave& w, const Instruction& i, std::uint32_t offset, std::uint32_t bytes, bool write,
               int lane) {
  throw_access(i, "LDS ", offset, bytes, write, lane,
               fmt::format("the workgroup has {} bytes", w.group->lds_bytes));
}

void throw_misaligned(const Instruction& i, std::uint64_t address, std::uint32_t alignment, int lane) {
  Fault fault(FaultKind::misaligned,
              fmt::format("{} at {:#x}, which is not a multiple of {}", info(i.op).name, address, alignment));
  fault.address = address;
  fault.lane = lane;
  throw fault;
}

void resolve(const Wave& w, const Instruction& i, std::uint64_t* address, std::uint64_t exec,
             std::uint32_t bytes, bool write) {
  const Memory& memory = *w.memory;
  const Region* region = memory.find(address[std::countr_zero(exec)]);
  if (region != nullptr && region->size >= bytes) {
    const std::uint64_t start = region->base + (write ? region->read_only : 0);
    const std::uint64_t limit = region->base + region->size - start - bytes;
    const std::uint64_t delta = reinterpret_cast<std::uint64_t>(region->host) - region->base;
    const bool fits = region->read_only <= region->size - bytes || !write;
    if (exec == all_lanes) {
      if (fits && moves().rebase(address, start, limit, delta)) return;
    } else {
      std::uint64_t outside = fits ? 0 : all_lanes;
      for (std::uint64_t m = exec; m != 0; m &= m - 1) {
        const std::uint64_t offset = address[std::countr_zero(m)] - start;
        outside |= offset | (limit - offset);
      }
      if (static_cast<std::int64_t>(outside) >= 0) {
        for (std::uint64_t m = exec; m != 0; m &= m - 1) address[std::countr_zero(m)] += delta;
        return;
      }
    }
  }
  for (std::uint64_t m = exec; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    region = memory.find(address[l]);
    if (region == nullptr || !region->holds(address[l], bytes)) {
      throw_access(i, "", address[l], bytes, write, l, memory.explain(address[l], bytes));
    }
    if (write && address[l] - region->base < region->read_only) {
      throw_access(i, "", address[l], bytes, write, l, "read-only, " + memory.explain(address[l], bytes));
    }
    address[l] = reinterpret_cast<std::uint64_t>(region->host) + (address[l] - region->base);
  }
}

Handler memory_handler(const Instruction& instruction) {
  static const bool once = (use_moves(host_simd_level()), true);
  (void)once;
  switch (instruction.encoding) {
    case Encoding::ds:
      return ds_handler(instruction);
    case Encoding::flat:
    case Encoding::global:
    case Encoding::scratch:
      return global_handler(instruction);
    case Encoding::mubuf:
    case Encoding::mtbuf:
      return buffer_handler(instruction);
    default:
      return nullptr;
  }
}

}  // namespace attest::device::sim
