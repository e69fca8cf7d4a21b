// SPDX-License-Identifier: MIT
//
// The `aiter` contract: AITER's shipped gfx942 MLA code objects, driven as its Python and C++ host code
// drives them.
//
//   aiter/<object>                 one kernel per row of mla_asm.csv: a case runs on it when AITER's dispatch
//                                  takes the case there; otherwise the refusal names the check or the kernel
//                                  it goes to instead
//   aiter/<object>@simple_plan     persistent rows once more, with a plain valid work plan instead of AITER's
//                                  planner
//   aiter/<object>@paged           decode rows once more, called with the case's page size (a power of two)
//                                  and a table of pages, which mla_decode_fwd takes without a check
//   aiter/<object>@by_hand         the row whatever dispatch says, with the host's numbers for the call: what
//                                  a version of AITER with another table launches
//   aiter/<object>@sound           the row on the cases where it is known to be right (sound_domain.h)
//   aiter/<object>+<fault>         by hand, a row of our own table (device/kernels/aiter_block/) with a
//                                  planted fault
//   aiter/mla_decode_fwd@<types>   the call: whichever object dispatch takes, or AITER's refusal;
//                                  ..._persistent with work metadata
//
// What mla_decode_fwd is called with otherwise: the token-level index list that vLLM makes of a block table
// (page size 1), the case's num_splits as num_kv_splits (persistent: max_split_per_batch), per-tensor scales,
// sm_scale. Results: `o`, and with return_lse the tensor that AITER returns as LSE, whatever it holds.
//
// Only found when the environment names AITER's hsa folder (ATTEST_AITER_HSA; the command line's --aiter-hsa
// sets it).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "device/kernel.h"

namespace attest::device::aiter {

/// Throws DeviceError when `hsa` holds no readable table.
std::vector<std::unique_ptr<const Kernel>> aiter_kernels(const std::filesystem::path& hsa);

/// What a persistent launch does of one result row: one work item of the plan.
struct PlannedPart {
  int workgroup = 0, work = 0;            ///< work: entry of work_info_set
  std::int32_t kv_start = 0, kv_end = 0;  ///< entries of kv_page_indices
  bool final = true;                      ///< stores to out; else to splitData and splitLse
  std::int64_t row = 0;                   ///< of that buffer, in rows of one head
};

/// The works that have query row `token` (of all requests) in head `head`, in the order of the plan.
/// nullopt: no persistent kernel of this contract. Throws DeviceError when the kernel refuses the case.
std::optional<std::vector<PlannedPart>> planned_parts(const Kernel& kernel, const cases::Case& c,
                                                      const cases::Inputs& inputs, std::int64_t token,
                                                      int head);

}  // namespace attest::device::aiter
