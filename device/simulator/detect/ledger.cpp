// SPDX-License-Identifier: MIT
#include "device/simulator/detect/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "device/simulator/exec/fidelity.h"

namespace attest::device::sim::detect {
namespace {

class Ledger final : public LaunchObserver {
 public:
  explicit Ledger(const LaunchContext& launch) : launch_(launch), counts_(launch.view.program.size()) {}

  std::unique_ptr<Observer> observe(Workgroup&, std::uint64_t) override {
    return std::make_unique<Group>(counts_);
  }
  [[nodiscard]] Interest interest(std::uint32_t) const override { return {when::never, false, false}; }
  void end() override {
    for (std::uint32_t k = 0; k < counts_.size(); ++k)
      if (counts_[k] != 0)
        launch_.findings.executed[launch_.view.program.code()[k].instruction.op] += counts_[k];
  }

 private:
  class Group final : public Observer {
   public:
    explicit Group(std::vector<std::uint64_t>& counts) : counts_(counts) {}
    void leave(std::span<const std::uint32_t> executed) override {
      for (std::size_t first = 0; first < executed.size(); first += counts_.size())
        for (std::size_t k = 0; k < counts_.size(); ++k) counts_[k] += executed[first + k];
    }

   private:
    std::vector<std::uint64_t>& counts_;
  };

  const LaunchContext& launch_;
  std::vector<std::uint64_t> counts_;  ///< by instruction
};

const char* name(Exactness exactness) {
  switch (exactness) {
    case Exactness::exact:
      return "exact";
    case Exactness::approximate:
      return "approximate";
    case Exactness::unverified:
      return "unverified";
    case Exactness::not_modelled:
      break;
  }
  return "not modelled";
}

}  // namespace

std::unique_ptr<LaunchObserver> keep_ledger(const LaunchContext& launch) {
  return std::make_unique<Ledger>(launch);
}

nlohmann::json ledger_json(const std::map<Op, std::uint64_t>& executed) {
  std::vector<std::pair<Op, std::uint64_t>> rows(executed.begin(), executed.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& row) {
      const auto trust = static_cast<int>(fidelity(row.first).exactness);
      return std::tuple(-trust, ~row.second, info(row.first).name);
    };
    return key(a) < key(b);
  });
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [op, count] : rows) {
    const Fidelity f = fidelity(op);
    nlohmann::json row = {{"op", info(op).name}, {"count", count}, {"exactness", name(f.exactness)}};
    if (f.ulp != 0) row["ulp"] = f.ulp;
    if (!f.reason.empty()) row["reason"] = f.reason;
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace attest::device::sim::detect
