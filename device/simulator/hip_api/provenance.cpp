// SPDX-License-Identifier: MIT
#include "device/simulator/detect/provenance.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "device/simulator/hip_api/export.h"
#include "device/simulator/hip_api/runtime.h"
#include "device/simulator/hip_api/simulator.h"

using namespace attest::device::sim::hip;
using attest::device::sim::detect::Provenance;

namespace {

/// What was asked of each device; touched under its mutex, but the map by several.
class Questions {
 public:
  std::unique_ptr<Provenance>& of(SimDevice& device) {
    const std::scoped_lock lock(mutex_);
    return asked_[&device];
  }

 private:
  std::mutex mutex_;
  std::map<SimDevice*, std::unique_ptr<Provenance>> asked_;
};

Questions& questions() {
  static Questions& all = *new Questions;  // as long as the devices live: for ever
  return all;
}

}  // namespace

ATTEST_HIP void attest_sim_follow(const char* name, std::size_t offset, std::size_t bytes,
                                  std::uint32_t before, std::uint32_t window) {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  std::unique_ptr<Provenance>& question = questions().of(d);
  if (question != nullptr && d.settings.watch == question.get()) d.settings.watch = question->watched();
  question.reset();
  if (name == nullptr || *name == '\0') return;
  question = std::make_unique<Provenance>(Provenance::Question{name, offset, bytes, before, window});
  question->watch_before(std::exchange(d.settings.watch, question.get()));
}

ATTEST_HIP int attest_sim_follow_again() {
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const std::unique_ptr<Provenance>& question = questions().of(d);
  return question != nullptr && question->again() ? 1 : 0;
}

ATTEST_HIP const char* attest_sim_followed() {
  static thread_local std::string answer;
  SimDevice& d = device();
  const std::scoped_lock lock(d.mutex);
  const std::unique_ptr<Provenance>& question = questions().of(d);
  answer = question != nullptr ? question->json().dump() : "";
  return answer.c_str();
}
