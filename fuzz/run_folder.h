// SPDX-License-Identifier: MIT
//
// What a run leaves on disk.
//
//   events.jsonl        append-only, one JSON object per line, the source of everything else (below)
//   failures/<id>.json  one per finding (fuzz/record.h); <id> is a hash of its signature. Written when the
//                       finding is made and again each time its case gets smaller
//   summary.json        counts, coverage, seconds, findings; written at the end
//
// Events. "t" is the time of the run in seconds; an interrupted run that is resumed goes on where it stopped.
// "item" numbers the cases of a campaign as a whole, whatever shard runs them: first the files, then fresh
// case `number` on each kernel in turn, after every third a neighbour for each (where there is none the item
// is left out). Starts and verdicts have rising items.
//
//   {"event": "run", "schema": 1, "attest": {build}, "device": {...}, "options": {...}}   first line
//   {"event": "resume", "t": ..., "attest": {build}}                          a run taken up again
//   {"event": "start", "item": 12, "source": "fresh", "number": 12, "kernel": ..., "id": ..., "case": {...}}
//   {"event": "verdict", "item": 12, "source", "number" or "file", "kernel", "id", "t", "evaluation": {...},
//    "signature": ... (of a failure), "excuse": ... (of one that was expected or is known)}
//   {"event": "start", "source": "neighbour", "number": 3, "of": item, "changed": ["/shape/page_size"], ...}
//                                                          a case of fuzz/neighbours.h; its verdict alike
//   "detectors", "schedule" besides: of a failure file that was found under others than the run's
//   {"event": "quarantined", "item", ..., "entry": ...}     not launched, by an entry of the known failures
//   {"event": "finding", "item", "source", "number" or "file", "kernel", "signature", "id", "t"}
//   {"event": "confirmed", "signature", "same": 3, "runs": 3}                 how often it repeats
//   {"event": "smaller", "signature", "evaluations", "steps", "case", "evaluation"}
//   {"event": "shrunk", "signature", "id", "evaluations", "steps", "minimal"} the finding is done with
//   {"event": "worker", "t", "ordinal", "pid", "diagnosis", "detail", "kernel", "rerun"}  one was lost
//   {"event": "end", "t", "complete": true, "summary": {...}}                 complete: not interrupted
//
// Durability. A case is on the disk before it is launched: its "start" line is written and flushed
// (fdatasync) first. On a GPU that is done case by case, since a case can take the machine down with it; on
// the simulator for a window of cases at a time, which costs nothing (a flush takes about a millisecond, a
// case about ten). Verdicts reach the disk with the next flush; a machine that dies loses at most a window of
// them, and the cases are run again. kill -9 loses nothing that was written.
//
// A line is one write(2). When the disk is full the part that was written is cut off again: what is there is
// always whole lines. One process at a time may write to a folder; it holds a lock.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/record.h"

namespace attest::fuzz {

/// The folder cannot be made, written or read: what() is one line that names it. `exit_code`: 2 when the
/// folder was never usable, 4 when it broke under way.
struct RunFolderError : std::runtime_error {
  RunFolderError(const std::string& what, int code) : std::runtime_error(what), exit_code(code) {}
  int exit_code;
};

class RunFolder {
 public:
  enum class Open { fresh, resume };

  /// fresh: makes `path` (and its parents), refuses a folder that already holds a run. resume: opens one that
  /// does, and cuts off a last line that was not written whole.
  explicit RunFolder(const std::string& path, Open how = Open::fresh);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  void append(const Json& event) { append(std::vector<Json>{event}); }
  void append(const std::vector<Json>& events);
  /// What was appended is on the disk.
  void flush();
  /// Written beside, flushed and renamed, so that a reader never sees half a file. @param relative e.g.
  /// "summary.json"
  void write(const std::string& relative, const Json& json);

 private:
  std::string path_;
  int events_ = -1;
};

/// The events of a run, in order; a last line that is not whole is left out. Throws RunFolderError: no run
/// there, or a line that is not JSON.
void read_events(const std::string& run_folder, const std::function<void(const Json&)>& event);

/// Writes a whole file: beside, flushed, renamed. Throws RunFolderError.
void write_whole_file(const std::string& path, const std::string& text);

/// "attest-runs/0001" or the next free number.
std::string next_run_path();

}  // namespace attest::fuzz
