// SPDX-License-Identifier: MIT
//
// A program that runs kernels of its own for attest, as a child process: attest's side of the protocol that
// fuzz/exchange/README.md specifies. JSON, one object per line, on the child's stdin and stdout; tensors in
// safetensors files that the lines name.
//
//   child   {"attest_worker": 1, "name": "numpy", "ops": {"mla_decode": {"precision": "fp32p"}}}
//   attest  {"id": 1, "op": "mla_decode", "inputs": "/.../in.safetensors", "outputs": "/.../out.safetensors"}
//   child   {"id": 1, "ok": true}   or "unsupported": "why"   or "error": "short and stable", "detail": "..."
//
// There is no deadline in here: this runs inside a worker of the pool (fuzz/pool.h), which is killed with all
// its children when it is late or outgrows its memory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/domain.h"
#include "fuzz/cause_of_death.h"
#include "fuzz/record.h"

namespace attest::fuzz::exchange {

inline constexpr int worker_protocol = 1;

/// What a program says of itself.
struct Hello {
  struct Op {
    std::string op, precision;  ///< profile of the oracle, "bf16-any" when not said
    std::uint64_t most_input_bytes = std::uint64_t{1} << 30U;  ///< more is unsupported
    std::optional<cases::MlaDecodeDomain> domain;  ///< of mla_decode: the cases it wants to be drawn
  };
  std::string name, about;
  std::vector<Op> ops;
};

/// Throws device::DeviceUnavailable when the program says that it cannot run here, device::DeviceError when
/// `line` is no greeting of this version; one line that begins with `who`.
Hello parse_hello(const std::string& line, const std::string& who);

class WorkerProcess {
 public:
  /// @param command as the shell takes it
  explicit WorkerProcess(std::string command);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Starts the program when it does not run. Throws as parse_hello does.
  const Hello& hello();

  struct Answer {
    enum class Kind : std::uint8_t { ok, unsupported, error, died, nonsense };
    Kind kind = Kind::ok;
    std::string diagnosis, detail;  ///< short and stable; one line
  };
  /// After `died` and `nonsense` the program is gone; the next call starts it afresh. When it was killed from
  /// outside (SIGKILL), so is this process: the pool then runs the case again.
  Answer run(const std::string& op, const std::string& inputs, const std::string& outputs);

 private:
  void start();
  /// Ends what is left of it. @param patience to end by itself
  CauseOfDeath reap(std::chrono::milliseconds patience);
  [[nodiscard]] std::string last_words() const;

  std::string command_;
  pid_t pid_ = -1;
  int socket_ = -1, words_ = -1;  ///< words: what it writes on stderr
  std::string inbox_;
  std::optional<Hello> hello_;
  std::uint64_t asked_ = 0;
};

}  // namespace attest::fuzz::exchange
