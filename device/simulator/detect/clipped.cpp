// SPDX-License-Identifier: MIT
#include "device/simulator/detect/clipped.h"

#include <bit>

namespace attest::device::sim::detect {
namespace {

class Counter final : public Observer {
 public:
  explicit Counter(Clipped& clipped) : clipped_(clipped) {}

  bool before(const Step& step) override {
    if (step.access == nullptr || step.access->clipped == 0) return true;
    const auto lanes = static_cast<std::uint64_t>(std::popcount(step.access->clipped));
    switch (step.access->shape.kind) {
      case AccessKind::store:
        clipped_.stores += lanes;
        break;
      case AccessKind::atomic:
        clipped_.atomics += lanes;
        break;
      default:
        clipped_.loads += lanes;
    }
    return true;
  }

 private:
  Clipped& clipped_;
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(const LaunchContext& launch) : launch_(launch) {}
  std::unique_ptr<Observer> observe(Workgroup&, std::uint64_t) override {
    return std::make_unique<Counter>(launch_.findings.clipped);
  }
  [[nodiscard]] Interest interest(std::uint32_t index) const override {
    const AccessShape& shape = launch_.analysis.access[index];
    return {.before = shape.touches_memory() && shape.buffer ? when::always : when::never, .after = false};
  }

 private:
  const LaunchContext& launch_;
};

}  // namespace

std::unique_ptr<LaunchObserver> count_clipped(const LaunchContext& launch) {
  return std::make_unique<Launch>(launch);
}

}  // namespace attest::device::sim::detect
