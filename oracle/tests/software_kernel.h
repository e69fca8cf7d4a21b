// SPDX-License-Identifier: MIT
//
// A model of an MLA decode kernel in f32, good or with one planted fault, for testing the oracle.
//
// It does what such kernels do: tiles of keys, an online softmax with P rounded for the matrix unit, partial
// sums as a matrix unit forms them, splits merged by their lse, output rounded to bf16. It reads the same
// bytes as a kernel does and shares no code with device/.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"

namespace attest::oracle::testing {

enum class Fault {
  none,
  q_len_mask,      // position & (q_len - 1)
  q_len_shift,     // query of position >> floor(log2 q_len), own causal bound
  causal_too_far,  // within the request
  causal_too_short,
  causal_missing,
  last_tile_dropped,  // when partial
  middle_tile_dropped,
  tile_twice,
  split_forgotten,  // the last one
  lse_base2_merged,
  lse_base2_returned,
  kv_scale_missing,  // in the output
  page_size_one,
  over_read,   // stale slots up to the end of the page attended to
  zero_slots,  // zero-filled slots up to the end of the tile not masked
  inf_first_tile,
  heads_rotated,
  rows_unwritten,
  softmax_scale,  // 1 % too large
  p_in_fp8,
  accumulate_bf16,  // O rounded to bf16 after every tile
  one_key_missing,
  unnormalised,
  columns_shifted,  // 32 columns hold their neighbours
  offset_wraps,
  front_rows_unmasked,  // kv_len - q_len + position compared without a sign
};
const char* name(Fault fault);
std::vector<Fault> all_faults();

struct Model {
  int tile = 32;
  enum class P { f32, bf16, bf16_truncated, fp8_fnuz } p = P::bf16;
  bool sum_of_rounded = false;
  bool truncate_output = false;
  bool partials_bf16 = false;
  int chunk = 16;        // products that are added before they meet the accumulator
  bool strided = false;  // splits take every num_splits-th tile
  Fault fault = Fault::none;
};

cases::Outputs run(const cases::Case& c, const cases::Inputs& inputs, const Model& model);

}  // namespace attest::oracle::testing
