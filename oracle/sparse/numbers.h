// SPDX-License-Identifier: MIT
//
// Outputs whose values are whole numbers, for the judges that compare them exactly.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "oracle/verdict.h"

namespace attest::oracle {

/// The output `name` as `count` values of T. False, with a harness_error in `verdict`, when it is not there
/// or of another size.
template <typename T>
bool read_output(const cases::Outputs& outputs, const char* name, std::size_t count, std::vector<T>& values,
                 Verdict& verdict) {
  const cases::Outputs::Tensor* tensor = outputs.find(name);
  if (tensor != nullptr && tensor->bytes.size() == count * sizeof(T)) {
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return true;
  }
  verdict.kind = VerdictKind::harness_error;
  verdict.diagnosis = "outputs missing or of the wrong size";
  verdict.detail = tensor == nullptr ? fmt::format("no output \"{}\"", name)
                                     : fmt::format("output \"{}\" has {} bytes, not {}", name,
                                                   tensor->bytes.size(), count * sizeof(T));
  return false;
}

}  // namespace attest::oracle
