// SPDX-License-Identifier: MIT
//
// All kernels of this build: what each contract finds.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "device/contracts/aiter/aiter_kernels.h"
#include "device/contracts/attest/kernels.h"
#include "device/hip/installation.h"
#include "device/kernel.h"

namespace attest::device {

const std::vector<const Kernel*>& kernels() {
  static const auto found = [] {
    auto list = contracts::attest_kernels(hip::kernel_directory());
    if (const char* hsa = std::getenv("ATTEST_AITER_HSA"); hsa != nullptr && *hsa != '\0')
      for (auto& kernel : aiter::aiter_kernels(hsa)) list.push_back(std::move(kernel));
    return list;
  }();
  static const std::vector<const Kernel*> ordered = [] {
    std::vector<const Kernel*> all;
    for (const auto& kernel : found) all.push_back(kernel.get());
    std::sort(all.begin(), all.end(), [](const Kernel* a, const Kernel* b) { return a->name() < b->name(); });
    return all;
  }();
  return ordered;
}

const Kernel* find_kernel(std::string_view name) {
  const auto& all = kernels();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Kernel* k) { return k->name() == name; });
  return at == all.end() ? nullptr : *at;
}

}  // namespace attest::device
