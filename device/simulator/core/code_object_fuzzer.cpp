// SPDX-License-Identifier: MIT
//
// Arbitrary bytes as a code object: an error or kernels, nothing else. What loads is decoded and bound as
// well.
//
//   simulator_code_object_fuzzer corpus/   # start it from the code objects the tests build
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "device/simulator/core/module.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest::device::sim;
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)claimed_size(bytes);
  static Memory memory(0, std::uint64_t{1} << 28);
  try {
    LoadedModule module(memory, std::vector<std::byte>(bytes.begin(), bytes.end()));
    std::size_t decoded = 0;
    for (const Kernel& kernel : module.object().kernels) {
      if (decoded++ == 4) break;  // more of the same
      const LoadedKernel* loaded = module.kernel(kernel.name);
      if (loaded == nullptr) __builtin_trap();
      if (loaded->program->entry() > loaded->program->size()) __builtin_trap();
    }
  } catch (const CodeObjectError&) {
  } catch (const std::bad_alloc&) {
    // More than the device has.
  }
  return 0;
}
