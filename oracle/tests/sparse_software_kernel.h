// SPDX-License-Identifier: MIT
//
// The software kernel (software_kernel.h) over lists of slots: the rows of every list are gathered into a
// cache of their own, one request per query token, and attended to without a causal bound. Faults are in the
// gathering.
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/tests/random_cases.h"
#include "oracle/tests/software_kernel.h"

namespace attest::oracle::testing {

enum class ListFault {
  none,
  trailing_ids,    // the whole row of the list
  holes_are_zero,  // slot 0 in place of a hole
  last_dropped,    // the last valid entry
  row_width,       // lists begin at multiples of the longest one
  repeated_once,   // repeated ids attended to once
  padding_ignored,
  ds_rope,  // rope read from byte 512
  ds_first_scale,
  ds_as_ocp,       // latents twice as large
  neighbour_list,  // of the next query token
};

cases::Outputs run_lists(const cases::Case& c, const cases::Inputs& inputs, const Model& model,
                         ListFault fault = ListFault::none);

/// A valid mla_sparse case with the given fill, small.
cases::Case random_sparse_case(std::uint64_t seed, cases::Fill fill);

}  // namespace attest::oracle::testing
