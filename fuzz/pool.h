// SPDX-License-Identifier: MIT
//
// The supervisor's side of fuzz/worker.h: persistent worker processes, kept busy from several streams of
// tasks at once.
//
// What a worker may do to a campaign, and what becomes of it:
//
//   dies of its own doing      verdict `crash`, its cause read from the wait status and from stderr
//                              (fuzz/cause_of_death.h)
//   passes its deadline        killed with its process group, verdict `timeout`
//   outgrows its memory        killed, verdict `crash`, "memory blow-up". The resident size is watched, not
//                              limited: HIP, the simulator and sanitizers reserve terabytes they never touch
//   is killed from outside     (SIGKILL that the pool did not send) says nothing about the case: the case is
//                              run again, the loss is reported as an incident. Killed eight times over the
//                              same case, it is a `crash` after all: an OOM killer that always strikes there
//
// Every fresh worker passes a health probe before it gets a case. After `recovery_attempts` failed probes the
// worker is given up; with the last one goes the pool (PoolError).
//
// This process loads no device library: it must outlive all of the above.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/cause_of_death.h"
#include "fuzz/evaluate.h"
#include "fuzz/record.h"

namespace attest::fuzz {

struct PoolOptions {
  std::string device = "sim";
  int jobs = 1;
  std::chrono::milliseconds deadline{120'000};           ///< per case
  std::uint64_t memory_bytes = std::uint64_t{4} << 30U;  ///< resident, per worker; 0 = no limit
  std::string detectors = "none";  ///< what the simulator looks for, unless a task says otherwise
  std::string schedule = "plain";  ///< the simulator's order of events, unless a task says otherwise
  int recovery_attempts = 3;       ///< to get a healthy worker after a death
  std::chrono::milliseconds recovery_pause{1000};  ///< between them
  /// Program and arguments that start a worker; the socket is descriptor 3, "<device>" and "<ordinal>" are
  /// appended.
  std::vector<std::string> command;
};

/// No worker can be had: what() is the line to print, exit_code the way out (3 = no such device).
struct PoolError : std::runtime_error {
  PoolError(const std::string& what, int code) : std::runtime_error(what), exit_code(code) {}
  int exit_code;
};

class Pool {
 public:
  struct Task {
    std::string kernel;
    cases::Case c;
    std::string detectors{};  ///< empty: the pool's
    std::string schedule{};   ///< empty: the pool's
    std::string capture{};    ///< file of a captured call whose bytes stand for the case's; empty: none
  };

  /// A source of tasks and the taker of their results.
  class Stream {
   public:
    virtual ~Stream() = default;
    /// nullopt: nothing to ask now; asked again after the next result.
    virtual std::optional<Task> next() = 0;
    /// The result of the index-th task that next() gave, in the order of the tasks.
    virtual void take(std::size_t index, Evaluation evaluation) = 0;
  };

  /// Starts `jobs` workers and waits for their greeting and health probe. Throws PoolError.
  explicit Pool(PoolOptions options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] int jobs() const { return static_cast<int>(workers_.size()); }
  /// What the first worker said of its device (fuzz/worker.h); null when it said nothing.
  [[nodiscard]] const Json& device() const { return device_; }

  /// Told of every worker that is lost: {"ordinal", "pid", "diagnosis", "detail", "kernel", "rerun"}.
  void on_incident(std::function<void(const Json&)> told) { told_ = std::move(told); }

  /// Serves the streams in turn until none has a task and every result is taken. take() may add streams.
  /// `tick` is called many times a second.
  void run(std::vector<Stream*>& streams, const std::function<void()>& tick = {});

  /// One stream: asks `next` for tasks while workers are free, hands results to `done` in the order the tasks
  /// were given. `done` returning false stops asking; tasks already given are finished, their results
  /// dropped.
  void run(const std::function<std::optional<Task>()>& next,
           const std::function<bool(std::size_t index, Evaluation evaluation)>& done,
           const std::function<void()>& tick = {});

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    std::size_t stream = 0, index = 0;
    std::string kernel, line;
    int lost = 0;  ///< workers killed from outside while they held it
  };
  struct Worker {
    pid_t pid = -1;
    int socket = -1, words = -1;  ///< words: what it writes on stdout and stderr
    bool given_up = false;
    std::string inbox;
    std::optional<Held> held;
    Clock::time_point deadline;
  };
  void start(Worker& worker, int ordinal);
  void restart(Worker& worker, int ordinal);
  void stop(Worker& worker, bool force);
  /// Ends what is left of it. @param patience how long it may take to end by itself
  CauseOfDeath reap(Worker& worker, std::chrono::milliseconds patience);
  void tell(const Worker& worker, pid_t pid, const std::string& diagnosis, const std::string& detail,
            bool rerun);

  PoolOptions options_;
  std::vector<Worker> workers_;
  Json device_;
  std::function<void(const Json&)> told_;
};

}  // namespace attest::fuzz
