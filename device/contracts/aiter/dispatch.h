// SPDX-License-Identifier: MIT
//
// Which kernel a call of AITER reaches, and with which numbers: the host's choices, which are what a user of
// vLLM gets and therefore under test as much as the kernels.
//
// Follows ROCm/aiter commit e4048607a5 on gfx942: aiter/mla.py (mla_decode_fwd) and
// csrc/py_itfs_cu/asm_mla.cu (mla_decode_stage1_asm_fwd).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "device/contracts/aiter/asm_table.h"

namespace attest::device::aiter {

inline constexpr const char* modelled_commit = "e4048607a5";

/// What mla_decode_fwd is told.
struct DecodeCall {
  std::string q_type, kv_type;  ///< "bf16", "fp8"
  int heads = 16;
  int max_q_len = 1;        ///< the longest q_len of the batch
  int num_kv_splits = 1;    ///< non-persistent only
  bool persistent = false;  ///< work metadata is passed
  bool causal = true;
  bool return_lse = false;
};

/// Stage 1 as the host launches it.
struct DecodeLaunch {
  AsmRow row;
  int sub_q = 128;  ///< rows (heads x tokens) the host thinks a workgroup covers: grid x
  std::uint32_t s_mqa = 0;
  int fold = 1;  ///< persistent: heads are cut into `fold` groups of 16 that become requests
  // Non-persistent only:
  int split_granularity = 16;  ///< `mgc`: tokens per split chunk as stage 2 counts them
  bool output_is_partial =
      false;  ///< the final bf16 output is passed as the partial buffer and stage 2 is skipped
  bool may_copy_final = true;  ///< MAYBE_FINAL_OUT: stage 2 copies bf16 when there is one split per request
};

/// The host says no: which check, in its words' sense. Not a failure.
struct Refusal {
  std::string why;
};

std::variant<DecodeLaunch, Refusal> dispatch_decode(const std::vector<AsmRow>& table, const DecodeCall& call);

/// The same host numbers with `row` in place of the one that the table holds for the call: what another
/// version of the table would launch. The row has to be for the call's types and mode; head count and q_len
/// are the caller's responsibility.
std::variant<DecodeLaunch, Refusal> dispatch_by_hand(const AsmRow& row, const DecodeCall& call);

/// get_meta_param: the split count chosen when the caller names none. `cu_count` is 304 on an MI300X.
/// nullopt-like 0 where AITER divides by zero or looks up a product of heads and q_len it does not know.
int automatic_split_count(int batch, std::int64_t total_kv, int heads, int max_q_len, bool fp8_q,
                          int cu_count);

}  // namespace attest::device::aiter
