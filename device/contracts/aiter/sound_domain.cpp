// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/sound_domain.h"

#include <algorithm>
#include <string_view>

namespace attest::device::aiter {
namespace {

struct Limit {
  std::string_view kernel;
  int longest_q_len = 16;
  int tokens_per_split = 0;    ///< splits that nobody writes are merged where one has no chunk
  bool two_splits = false;     ///< one split goes wrong
  bool uniform_q_len = false;  ///< query rows by request number
  bool unit_scales = false;    ///< kv_scale is left out of V
};

constexpr Limit limits[] = {
    {.kernel = "mla_dec_stage1_bf16_a16w16_subQ16_mqa16"},
    {.kernel = "mla_a16w16_qh16_m16x4_n16x1_coex0_mask1"},
    {.kernel = "mla_a16w16_qh16_m32x4_n16x1_coex0_mask1", .longest_q_len = 8},
    {.kernel = "mla_a16w16_qh8_qseqlen1_gqaratio8_v3", .two_splits = true},
    {.kernel = "mla_a16w16_qh16_m32x1_n16x1_coex0_mask1", .longest_q_len = 1, .two_splits = true},
    {.kernel = "mla_dec_stage1_bf16_a16w16_subQ128_mqa128", .longest_q_len = 1},
    {.kernel = "mla_a8w8_qh16_qseqlen1_gqaratio16"},
    {.kernel = "mla_a8w8_qh16_qseqlen2_gqaratio16", .tokens_per_split = 64, .uniform_q_len = true},
    {.kernel = "mla_a8w8_qh64_qseqlen4_gqaratio16", .tokens_per_split = 32},
    {.kernel = "mla_a8w8_qh128_m32x4_n16x2_msk1", .tokens_per_split = 32},
    {.kernel = "mla_pfl_bf16_a16w16_causal_subQ16_mqa16"},
    {.kernel = "mla_pfl_bf16_a16w16_causal_subQ128_mqa128"},
    {.kernel = "mla_dec_stage1_bf16_a16w16_subQ16_mqa16_ps"},
    {.kernel = "mla_a16w16_qh16_m16x4_n16x1_coex0_mask1_ps"},
    {.kernel = "mla_a16w8_qh16_m16x4_n16x1_coex0_mask1_ps"},
    {.kernel = "mla_a16w8_qh16_m16x4_n16x1_coex0_mask1_ps_page64_ds32"},
    {.kernel = "mla_a8w8_qh16_qseqlen1_gqaratio16_ps"},
    {.kernel = "mla_a8w8_qh64_qseqlen1_gqaratio64_v3_ps"},
    {.kernel = "mla_a8w8_qh64_qseqlen1_gqaratio64_lse_v3_ps"},
    {.kernel = "mla_a8w8_qh64_qseqlen4_gqaratio16_ps", .unit_scales = true},
    {.kernel = "mla_a8w8_qh128_m32x4_n16x2_msk0_ps"},
};

}  // namespace

std::optional<cases::MlaDecodeDomain> sound_domain(const AsmRow& row, cases::MlaDecodeDomain whole) {
  if (!row.fault.empty()) return std::nullopt;
  // The merge divides 0 by 0 for a request without context, and a split cannot tell an empty row: that is the
  // host's part and holds for every kernel.
  whole.keys_for_every_row = true;
  const std::string name = row.base_name();
  if (name.starts_with("attest_")) return whole;

  const auto* limit =
      std::find_if(std::begin(limits), std::end(limits), [&](const Limit& l) { return l.kernel == name; });
  if (limit == std::end(limits)) return std::nullopt;
  whole.longest_q_len_max = std::min(whole.longest_q_len_max, limit->longest_q_len);
  whole.tokens_per_split = limit->tokens_per_split;
  if (limit->two_splits) whole.num_splits_min = 2;
  whole.uniform_q_len = whole.uniform_q_len || limit->uniform_q_len;
  whole.unit_scales = limit->unit_scales;
  if (row.prefill) whole.return_lse = false;
  // Every object of AITER's: page 0 is fetched for masked keys, offsets wrap at 4 GiB (with large pages
  // `high` is beyond that), and without a merge there is no lse.
  whole.finite_unused = true;
  whole.placements_excluded.insert(whole.placements_excluded.end(),
                                   {cases::Placement::high, cases::Placement::beyond_4gib});
  if (!row.persistent) whole.lse_with_one_split = false;
  return whole;
}

}  // namespace attest::device::aiter
