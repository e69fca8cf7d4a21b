// SPDX-License-Identifier: MIT
//
// How bytes of a buffer came about: which store wrote them last, what that value was made of, and the
// instructions around it. Every run of the same launches is the same, so nothing has to be kept in case it is
// asked for; the launches are run three times:
//
//   find     every store is looked at; the last one to the bytes is the producer
//   record   its workgroup is recorded up to it, and the value followed backwards (detect/slice.h)
//   values   the bits that the instructions of the answer produced
//
//   Provenance question({"out", 96, 2});
//   question.watch_before(std::exchange(settings.watch, &question));   // detectors and late delivery go on
//   do launch everything; while (question.again());
//   question.json()
//
// It costs nothing until it is asked: it is one more watch of the launch (detect/observer.h) and hands what
// it is told on to the one it stands before. Only the first lane of the bytes is followed when several stored
// them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/simulator/detect/recording.h"
#include "device/simulator/detect/slice.h"

namespace attest::device::sim::detect {

class Provenance final : public LaunchWatch {
 public:
  struct Question {
    std::string buffer;                   ///< as Memory::name_range named it
    std::uint64_t offset = 0, bytes = 1;  ///< in it
    std::uint32_t before =
        0xffffffff;            ///< stores of this launch and later ones do not count; launches from 0
    std::uint32_t window = 0;  ///< instructions of the producer's wave around it to list
  };
  static constexpr std::size_t most_links = 200;  ///< of the answer

  explicit Provenance(Question question) : question_(std::move(question)) {}
  ~Provenance() override;

  /// The watch that is told of everything as well; nullptr: none.
  void watch_before(LaunchWatch* next) { next_ = next; }
  [[nodiscard]] LaunchWatch* watched() const { return next_; }

  void begin(const LaunchView& view) override;
  std::unique_ptr<WorkgroupWatch> watch(Workgroup& group, std::uint64_t linear_id) override;
  void end() override;

  /// Ends a run of the launches. Whether they have to be run again.
  bool again();
  /// The answer. hip_api/simulator.h specifies it.
  [[nodiscard]] nlohmann::json json() const;

 private:
  friend class Finder;
  friend class Recorder;
  friend class ValueReader;

  struct Launched {
    LaunchView view;
    Analysis analysis;
  };
  std::unique_ptr<Observer> observer(Workgroup& group, std::uint64_t linear_id);

  enum class Phase : std::uint8_t { find, record, values, done };

  /// A store to the bytes.
  struct Producer {
    std::uint32_t launch = 0;
    std::uint64_t group = 0, number = 0;
    std::uint32_t wave = 0, index = 0;
    StoredBytes bytes;
    std::uint32_t workgroup[3] = {};
  };
  struct Source {
    std::string name;
    std::uint32_t bits = 0;
  };
  /// An instruction of the answer, with what is known of one execution.
  struct Seen {
    std::uint32_t index = 0, wave = 0;
    std::uint64_t number = 0, exec = 0;
    int lane = -1;
    std::int32_t row = -1, scalar = -1;  ///< -1, -1: what it stores
    Role role = Role::value;
    std::uint64_t times = 0;  ///< 0: of the window, not of the slice
    std::string disassembly, target, buffer;
    std::uint64_t pc = 0, offset = 0;
    std::optional<std::uint32_t> bits;
    std::vector<Source> sources;
  };
  struct Read {
    Role role;
    std::string buffer;
    std::uint64_t offset, bytes;
  };

  void keep(const Recording& recording, std::uint32_t waves);

  Question question_;
  LaunchWatch* next_ = nullptr;
  std::optional<Launched> launch_;  ///< the one that is under way
  Phase phase_ = Phase::find;
  std::uint32_t launches_ = 0;  ///< begun in this run
  std::uint64_t times_written_ = 0;
  std::optional<Producer> producer_;
  std::string kernel_;
  std::vector<Seen> chain_, window_;
  std::vector<Read> reads_;
  std::map<std::string, std::vector<std::uint32_t>> stored_in_;  ///< launches that stored to a buffer
  std::vector<std::pair<std::uint64_t, std::string>> loads_;     ///< pc and disassembly of what read memory
  std::uint64_t executions_ = 0, recorded_ = 0;
  std::size_t links_ = 0;
  bool cut_ = false;
};

}  // namespace attest::device::sim::detect
