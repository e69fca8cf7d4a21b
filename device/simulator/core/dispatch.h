// SPDX-License-Identifier: MIT
//
// Running a grid of workgroups.
//
//   Dispatcher dispatcher;                       // keeps wave storage between launches
//   LaunchResult r = dispatcher.run(kernel, launch, memory, settings);    // throws KernelFault
//
// Inside a workgroup the waves take turns, `quantum` instructions each, in an order drawn from `seed` (0:
// always in order). With a skew each wave first runs a number of instructions drawn from the seed. The order
// depends on nothing else, so results repeat whatever the number of threads. Workgroups run in parallel,
// unless they are watched (detect/observer.h), and except those of kernels that communicate across workgroups
// (Program::communicates): these share one thread and take turns as well, so that one can wait for another
// and floating-point atomics add in the same order every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/simulator/core/code_object.h"
#include "device/simulator/core/fault.h"
#include "device/simulator/core/memory.h"
#include "device/simulator/core/program.h"
#include "device/simulator/detect/observer.h"

namespace attest::device::sim {

struct Launch {
  std::uint32_t blocks[3] = {1, 1, 1};   ///< workgroups
  std::uint32_t threads[3] = {1, 1, 1};  ///< work-items of a workgroup
  std::uint32_t remainder[3] = {
      0, 0, 0};  ///< work-items of the last, partial workgroup, which is then one more; 0: none
  std::uint32_t dynamic_lds_bytes = 0;
  std::span<const std::byte> kernarg;  ///< explicit arguments; hidden ones are filled in here
  bool cooperative = false;            ///< the kernel may wait for all workgroups
  std::uint64_t hostcall_buffer = 0;   ///< guest address for the hidden argument of that name; 0: none
  std::function<void()> interrupt;     ///< called when a wave sends MSG_INTERRUPT, in the thread that runs it
};

struct Settings {
  std::uint64_t seed = 0;
  std::uint32_t quantum = 1;
  std::uint32_t skew = 0;     ///< instructions, at most, that a wave is ahead of the others at its start
  std::uint32_t threads = 0;  ///< 0: as many as oneTBB offers
  std::uint64_t instruction_budget = std::uint64_t{20'000'000'000};  ///< wave instructions per launch
  /// Bytes of registers, LDS and stacks that workgroups which take turns may hold together; one may hold more.
  std::uint64_t memory_budget = std::uint64_t{4} << 30;
  std::vector<std::uint64_t>* counts =
      nullptr;                   ///< when set: [program.size()] executions are added per instruction
  LaunchWatch* watch = nullptr;  ///< when set: told of every instruction; the launch runs on one thread
};

struct LaunchResult {
  std::uint64_t instructions = 0;  ///< wave instructions executed
};

/// A kernel ready to launch: what the descriptor says, and its program.
struct LoadedKernel {
  Kernel kernel;
  std::uint64_t descriptor_address = 0;  ///< guest
  std::uint64_t image_base = 0;  ///< guest address of ELF address 0, to print addresses as llvm-objdump does
  std::shared_ptr<const Program> program;
};

/// A Fault and where it happened. what() is one line with all of it.
class KernelFault : public Fault {
 public:
  KernelFault(const Fault& fault, std::string kernel_name);
  [[nodiscard]] const char* what() const noexcept override { return line.c_str(); }
  void complete();  ///< builds line from the other fields

  std::string kernel;
  std::uint64_t pc = 0;     ///< as llvm-objdump prints it: the address in the ELF image
  std::string disassembly;  ///< of the instruction at pc; empty when no instruction is to blame
  std::uint32_t workgroup[3] = {};
  int wave = -1;  ///< in the workgroup; -1: none in particular
  std::string line;
};

class Dispatcher {
 public:
  Dispatcher();
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  LaunchResult run(const LoadedKernel& kernel, const Launch& launch, Memory& memory,
                   const Settings& settings);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace attest::device::sim
