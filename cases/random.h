// SPDX-License-Identifier: MIT
//
// Random numbers by address instead of by order: draw(seed, tensor, request, row, column) is a pure function,
// so nothing that is generated earlier, later, in parallel or not at all changes it.
//
// The function is Philox4x32-7 of Random123 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC'11; seven rounds pass BigCrush). The key is the seed; the counter is {column / 8, row, request, tensor};
// each of the eight 16-bit halves of a result belongs to one column.
//
// 16 bits are enough for a sample of N(0,1) that is stored in bf16 or fp8, and make it cheap: one bit of sign
// and a table of the 32768 quantiles |x| at (k + 1/2) / 32768, largest 4.3. The usual methods are no use
// here: Box-Muller and inverse-CDF formulas call libm, whose last bits differ between machines. The table is
// integrated with + - * / only, which IEEE 754 fixes.
#pragma once

#include <cstdint>

namespace attest::cases {

/// What a draw is for. Part of the counter: append, never renumber, or every case changes its data.
enum class Draw : std::uint32_t {
  q = 1,
  kv = 2,
  q_choice = 3,  ///< per query row: which key to needle, how much to scale
  kv_mean = 4,   ///< per column: common vector, outlier channels, signs, exponents
  page_order = 5,
  garbage_index = 6,
  unused_memory = 7,
  result_memory = 8,
  verify_row = 41,    ///< per request and row: the kind of a row of probabilities, and its values
  verify_draft = 42,  ///< drafted tokens, their tree, the draws that decide
  verify_noise = 43,  ///< exponentials
  plan_value = 44,    ///< scores and values of the keys of a plan
  block_order = 40,   ///< block tables: which block comes next; which padded entries are -1
  state_out = 32,     ///< merge_states: by state, row
  state_lse = 33,     ///< merge_states: by state, row; state 0xffff: of the row
  prefill_q = 34,
  prefill_kv = 35,
  prefill_mean = 36,
  index_row = 9,     ///< per query row: how its index list is laid out
  index_entry = 10,  ///< per entry of an index list
  score = 11,
  score_choice = 12,  ///< per row of scores
  token = 13,         ///< new tokens of a cache
  token_choice = 14,
  indexer_query = 15,
  indexer_key = 16,
  indexer_choice = 17,
  ds_scale = 45,    ///< per token: the scales of its four tiles
  index_list = 46,  ///< per query token: which slots it attends to, and where the holes are
  projection = 47,  ///< per head: which columns its W_UK and W_UV select
};

class Counter {
 public:
  Counter(std::uint64_t seed, Draw draw, std::uint32_t request, std::uint32_t row)
      : seed_(seed), draw_(static_cast<std::uint32_t>(draw)), request_(request), row_(row) {}

  /// Columns [first, first + count); both multiples of 8.
  void halves(int first, int count, std::uint16_t* out) const;

  /// The 32 bits of columns 2i and 2i + 1.
  [[nodiscard]] std::uint32_t word(std::uint32_t i) const;

  /// Uniform in [0, bound), biased by less than bound / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t i, std::uint32_t bound) const {
    return static_cast<std::uint32_t>((std::uint64_t{word(i)} * bound) >> 32);
  }

 private:
  std::uint64_t seed_;
  std::uint32_t draw_, request_, row_;
};

/// N(0,1), one per half.
void normals(const std::uint16_t* halves, int count, float* out);

}  // namespace attest::cases
