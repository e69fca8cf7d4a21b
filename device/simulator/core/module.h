// SPDX-License-Identifier: MIT
//
// A code object in a device's memory.
//
//   LoadedModule module(memory, file_bytes);              // CodeObjectError, std::bad_alloc
//   const LoadedKernel* k = module.kernel("mla_decode");  // decodes at the first call; nullptr: no such
//   kernel
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device/simulator/core/code_object.h"
#include "device/simulator/core/dispatch.h"
#include "device/simulator/core/memory.h"

namespace attest::device::sim {

class LoadedModule {
 public:
  LoadedModule(Memory& memory, std::vector<std::byte> bytes);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const LoadedKernel* kernel(const std::string& name);
  [[nodiscard]] const CodeObject& object() const { return object_; }
  /// Guest address of ELF address 0.
  [[nodiscard]] std::uint64_t base() const { return base_; }

 private:
  std::shared_ptr<const Program> program(const Kernel& kernel);

  using ProgramKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;

  Memory& memory_;
  std::vector<std::byte> bytes_;
  CodeObject object_;
  std::uint64_t base_ = 0;
  std::map<ProgramKey, std::shared_ptr<const Program>> programs_;
  std::map<std::string, LoadedKernel> kernels_;
};

}  // namespace attest::device::sim
