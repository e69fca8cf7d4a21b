// SPDX-License-Identifier: MIT
//
// Persistent worker processes: kernels run in them, so that a crash, a hang or a GPU fault costs one verdict
// and one process, never the campaign.
//
// Protocol: one socket, one JSON object per line.
//
//   worker -> pool   {"hello": 1}  or  {"hello": 1, "error": "...", "exit": 3}    once, after the device is
//   open pool -> worker   {"kernel": "attest/mla_decode", "case": {...}} worker -> pool   an evaluation
//   (fuzz/record.h)
//
// A worker that dies while it holds a case gives that case the verdict `crash` (with the signal named); one
// that passes the deadline is killed with its process group and gives `timeout`. Either way the next case
// gets a fresh one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/evaluate.h"

namespace attest::fuzz {

/// The body of `attest worker`: serves evaluations on `socket` until it closes. Returns the exit code.
int serve(int socket, const std::string& device, int ordinal);

struct PoolOptions {
  std::string device = "sim";
  int jobs = 1;
  std::chrono::milliseconds deadline{120'000};  ///< per case
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
  };

  /// Starts `jobs` workers and waits for their greeting. Throws PoolError.
  explicit Pool(PoolOptions options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] int jobs() const { return static_cast<int>(workers_.size()); }

  /// Asks `next` for tasks while workers are free, hands results to `done` in the order the tasks were given.
  /// Ends when `next` returns nullopt and all results are out. `done` returning false stops asking; tasks
  /// already given are finished and their results dropped. `tick` is called a few times a second. `done` may
  /// not call run().
  void run(const std::function<std::optional<Task>()>& next,
           const std::function<bool(std::size_t index, Evaluation evaluation)>& done,
           const std::function<void()>& tick = {});

 private:
  struct Worker {
    pid_t pid = -1;
    int socket = -1;
    std::string inbox;
    std::optional<std::size_t> task;  ///< index of the task it holds
    std::chrono::steady_clock::time_point deadline;
  };
  void start(Worker& worker, int ordinal);
  void stop(Worker& worker, bool force);
  std::string reap(Worker& worker);

  PoolOptions options_;
  std::vector<Worker> workers_;
};

}  // namespace attest::fuzz
