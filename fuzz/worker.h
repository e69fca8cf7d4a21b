// SPDX-License-Identifier: MIT
//
// The process that kernels run in (fuzz/pool.h has its supervisor): a crash, a hang or a GPU fault costs one
// verdict and one process, never the campaign. The only process that loads a device library.
//
// Protocol: one socket, one JSON object per line.
//
//   worker -> pool   {"hello": 1, "device": {"kind", "arch", "runtime"}}    once: it is open and healthy
//                    {"hello": 1, "error": "...", "exit": 3}          there is none, or it fails its probe
//   pool -> worker   {"kernel": "attest/mla_decode", "case": {...}, "detectors": "none", "schedule": "plain"}
//                    and "capture": "<file>" (fuzz/exchange/capture.h): its bytes stand for the case's
//   worker -> pool   an evaluation (fuzz/record.h)
//                    {"fatal": "...", "exit": 2}                      a code object that cannot be used at
//                    all
#pragma once

#include <string>

#include "fuzz/evaluate.h"

namespace attest::fuzz {

/// The body of `attest worker`: serves evaluations on `socket` until it closes. Returns the exit code.
int serve(int socket, const std::string& device, int ordinal);

/// The evaluation of a case that no kernel gave: stage "worker".
Evaluation lost(oracle::VerdictKind kind, std::string diagnosis, std::string detail);

}  // namespace attest::fuzz
