// SPDX-License-Identifier: MIT
//
// A call that some program really made, dumped: its arguments as a safetensors file, with what it returned.
//
// A case is a seed and a recipe; the data of a real call is neither. So a dump becomes two things:
//
//   the call itself   its own bytes, judged against the reference as they are, and run again as they are on a
//                     kernel at hand: does it give what the call gave, and is that right?
//   a case            the same batch (lengths, heads, formats, scales, splits) over pages placed alike, with
//                     made data. When the kernel fails on it too, it is shrunk, recorded and kept like any
//                     other; when it does not, the failure depends on the data, and the call itself is made
//                     smaller (fewer requests, heads, queries and keys) as long as it fails the same way.
//
// README.md lists the tensors of a dump.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"

namespace attest::fuzz::exchange {

struct Capture {
  /// The batch as a problem. Of its recipes only the placement says something of the call; `fill` is one of
  /// which the oracle assumes nothing.
  cases::Case call;
  cases::MlaDecodeInputs inputs;
  std::optional<cases::Outputs> outputs;  ///< what the call returned, when the dump holds it
};

/// Throws UsageError, one line that names the file: no safetensors file, a tensor or scalar that is missing,
/// of another type or shape, or contradicts another one; a batch that no case can have.
Capture read_capture(const std::string& path);

/// In the form that read_capture takes; of the cache only the pages in use.
void write_capture(const Capture& capture, const std::string& path);

/// The case like it.
cases::Case case_like(const Capture& capture);

/// Smaller calls out of a call, the most aggressive first; their results are not known. Every request keeps
/// the keys it saw, up to where it is cut.
std::vector<Capture> smaller_captures(const Capture& capture);

}  // namespace attest::fuzz::exchange
