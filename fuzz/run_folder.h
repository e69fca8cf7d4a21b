// SPDX-License-Identifier: MIT
//
// What a run leaves on disk.
//
//   events.jsonl        append-only, one JSON object per line, the source of everything else:
//                         {"event": "run", ...environment and options}
//                         {"event": "start", "number": 12, "kernel": ..., "id": ...}    before the case is
//                         launched
//                         {"event": "verdict", "number": 12, ..., "evaluation": {...}}  in order of number
//                         {"event": "finding", "signature": ..., "id": ...}             the first case of a
//                         signature
//                         {"event": "shrunk", "signature": ..., "evaluations": ...}
//                         {"event": "end", "summary": {...}}
//   failures/<id>.json  one per finding (fuzz/record.h), <id> being the id of the minimised case
//   summary.json        counts, seconds, findings
//
// Lines are written with one write(2) each, so a killed run leaves whole lines.
#pragma once

#include <stdexcept>
#include <string>

#include "fuzz/record.h"

namespace attest::fuzz {

/// The folder cannot be made or written: what() is one line that names it. `exit_code`: 2 when the folder was
/// never usable, 4 when it broke under way.
struct RunFolderError : std::runtime_error {
  RunFolderError(const std::string& what, int code) : std::runtime_error(what), exit_code(code) {}
  int exit_code;
};

class RunFolder {
 public:
  /// Makes `path` (and its parents). Refuses a folder that already holds a run.
  explicit RunFolder(const std::string& path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  void append(const Json& event);
  /// Written beside and renamed, so that a reader never sees half a file. @param relative e.g. "summary.json"
  void write(const std::string& relative, const Json& json);

 private:
  std::string path_;
  int events_ = -1;
};

/// "attest-runs/0001" or the next free number.
std::string next_run_path();

}  // namespace attest::fuzz
