// SPDX-License-Identifier: MIT
//
// The JSON forms that runs are made of: verdicts, evaluations, failure files. Versioned by `record_schema`.
//
// A failure file, failures/<case id>.json:
//
//   {"schema": 1, "signature": "...", "kernel": "attest/mla_decode+qlen_mask", "device": "sim", "arch":
//    "gfx942", "diagnosis": "query rows identical", "reproduce": "attest replay <run>/failures/<id>.json",
//    "found": {"seed": "0x7", "number": 12}, "original": {case}, "minimised": {case},
//    "verdict": {verdict of the minimised case}, "output_digest": "...",
//    "mismatch": {"original": MAP, "minimised": MAP},           absent: no wrong result, or no grid
//    "detectors": "all",                                        absent: none
//    "worker": "python3 my_worker.py",                          absent: no kernel of another program
//    "schedule": "quantum=64,seed=3"}                           absent: plain
//    (device/simulator/detect/schedule.h)
//
// A mismatch map (oracle/mismatch.h), null where there is none:
//
//   {"rows": [{"request": 0, "position": 2}, ...], "columns": ["0", "1", ...], "axis": "head",
//    "row_block": 3, "column_block": 2,      above 1: each place stands for the worst of so many; absent: 1
//    "used": [[0.02, 7.1e+03, "nan", "inf", null], ...],        [rows][columns]; null: not checked
//    "says": "...", "others": [MAP, ...]}    a line about it, and the same result by other axes; absent: none
//
// Maps are also part of an evaluation's JSON, as "mismatch". In events.jsonl they are kept where a failure
// file is made from them, in the events of findings, and left out of the verdicts.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cases/case.h"
#include "fuzz/evaluate.h"
#include "oracle/verdict.h"

namespace attest::fuzz {

inline constexpr int record_schema = 1;

using Json = nlohmann::ordered_json;

/// Non-finite numbers are written as the strings "nan", "inf", "-inf": JSON has no such numbers.
Json number_json(double value);

/// Without its mismatch map.
Json to_json(const oracle::Verdict& verdict);
/// null for an empty map. Four significant digits.
Json to_json(const oracle::Mismatch& mismatch);
oracle::Mismatch mismatch_from_json(const Json& json);
Json to_json(const Evaluation& evaluation);
/// As the simulator writes its findings (hip_api/simulator.h, attest_sim_findings).
Json to_json(const device::Observations& observed);

/// Throws nlohmann::json::exception when `json` is not what to_json wrote.
Evaluation evaluation_from_json(const Json& json);

/// A case as a JSON value (cases::canonical_json re-read).
Json to_json(const cases::Case& c);

/// What a file handed to `replay`, `shrink` or the like holds.
struct Reproduction {
  cases::Case c;
  std::optional<cases::Case> original;  ///< of a failure file
  std::string kernel;                   ///< of a failure file, else empty
  std::string signature;                ///< of a failure file, else empty
  std::string output_digest;            ///< of a failure file, else empty
  std::string detectors = "none";       ///< of a failure file: those that were chosen
  std::string schedule = "plain";       ///< of a failure file: the one it was found under
};

/// "" for "none" and "plain": what a campaign is then free to choose.
inline std::string own_choice(const std::string& text) {
  return text == "none" || text == "plain" ? std::string() : text;
}

/// Reads a case file or a failure file (whose minimised case it takes). Throws cases::CaseError with one line
/// that names the file.
Reproduction read_reproduction(const std::string& path);

}  // namespace attest::fuzz
