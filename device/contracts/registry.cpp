// SPDX-License-Identifier: MIT
//
// All kernels of this build: what each contract finds, and what a program adds.
#include "device/contracts/registry.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "device/contracts/aiter/aiter_kernels.h"
#include "device/contracts/attest/kernels.h"
#include "device/hip/installation.h"
#include "device/kernel.h"

namespace attest::device {
namespace {

struct Registry {
  std::vector<std::unique_ptr<const Kernel>> owned;
  std::vector<const Kernel*> ordered;

  void take(std::unique_ptr<const Kernel> kernel) {
    const auto before = [](const Kernel* a, const Kernel* b) { return a->name() < b->name(); };
    ordered.insert(std::upper_bound(ordered.begin(), ordered.end(), kernel.get(), before), kernel.get());
    owned.push_back(std::move(kernel));
  }
};

Registry& registry() {
  static Registry all = [] {
    Registry found;
    for (auto& kernel : contracts::attest_kernels(hip::kernel_directory())) found.take(std::move(kernel));
    if (const char* hsa = std::getenv("ATTEST_AITER_HSA"); hsa != nullptr && *hsa != '\0')
      for (auto& kernel : aiter::aiter_kernels(hsa)) found.take(std::move(kernel));
    return found;
  }();
  return all;
}

}  // namespace

const std::vector<const Kernel*>& kernels() {
  return registry().ordered;
}

void add_kernels(std::vector<std::unique_ptr<const Kernel>> more) {
  for (auto& kernel : more) {
    if (find_kernel(kernel->name()) != nullptr)
      throw std::logic_error("there is a kernel " + kernel->name() + " already");
    registry().take(std::move(kernel));
  }
}

const Kernel* find_kernel(std::string_view name) {
  const auto& all = kernels();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Kernel* k) { return k->name() == name; });
  return at == all.end() ? nullptr : *at;
}

}  // namespace attest::device
