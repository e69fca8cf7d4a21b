// SPDX-License-Identifier: MIT
//
// A case as tensors with names, element types and shapes, for programs that know nothing of attest: what
// `attest export` writes, what a worker (fuzz/exchange/README.md) gets, and what both must give back.
//
// Names are those of the field: mla_decode has the arguments of AITER's mla_decode_fwd, and beside them the
// block_table and seq_lens of vLLM. README.md lists them for every op.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "fuzz/exchange/safetensors.h"

namespace attest::fuzz::exchange {

inline constexpr int exchange_schema = 1;

Dtype dtype_of(cases::Format format);
/// nullopt for integers.
std::optional<cases::Format> format_of(Dtype dtype);

struct OutputTensor {
  std::string name;
  Dtype dtype = Dtype::u8;
  Shape shape;
  /// Of this range only the extents are judged, one behind the other; the shape is that of the whole.
  const cases::SparseBytes* judged = nullptr;
};

struct Description {
  Metadata metadata;                 ///< op, case, outputs, and every scalar of the case by its name
  std::vector<TensorSource> inputs;  ///< refer to the case's inputs, and to `derived`
  std::vector<OutputTensor> outputs;
  std::deque<std::vector<std::byte>> derived;  ///< what no input of the case holds as it is

  Description() = default;
  Description(Description&&) = default;
  Description& operator=(Description&&) = default;
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
};

/// Why cases of this op are not handed to other programs; nullopt when they are.
std::optional<std::string> why_not_exchanged(const cases::Problem& problem);

/// Refers to both arguments. Throws UsageError: as why_not_exchanged says.
Description describe(const cases::Case& c, const cases::Inputs& inputs);

/// The outputs that `description` asks for, out of a file. Throws UsageError, one line that names the file: a
/// tensor is missing, or has another element type or shape. Other tensors of the file are nobody's concern.
cases::Outputs outputs_of(const Description& description, const SafetensorsFile& file);

}  // namespace attest::fuzz::exchange
