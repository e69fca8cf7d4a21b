// SPDX-License-Identifier: MIT
//
// A case, its bytes and its results, as the numbers the oracle works on: the one place that knows layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/mla_bound.h"
#include "oracle/rounding_grid.h"
#include "reference/attention.h"
#include "reference/paged_cache.h"

namespace attest::oracle {

/// The whole launch. Refers to the case, inputs and outputs it was opened on.
struct MlaLaunch {
  const cases::Case& c;
  const cases::MlaDecode& problem;
  const cases::MlaDecodeInputs& inputs;
  const PrecisionProfile& profile;
  reference::AttentionScales scales;
  RoundingGrid grid;
  std::span<const std::byte> out_bytes;  ///< [total_q, heads, 512]
  std::span<const std::byte> lse_bytes;  ///< [total_q, heads] f32; empty without return_lse
  Matrix out;                            ///< [total_q * heads, 512] decoded
  Vector lse;                            ///< [total_q * heads]; empty without return_lse

  [[nodiscard]] bool has_lse() const { return problem.return_lse; }
  /// Bytes of one row of `out`.
  [[nodiscard]] std::size_t row_bytes() const;
};

/// nullopt and one line in `why` when an output is missing or of the wrong size.
std::optional<MlaLaunch> open_launch(const cases::Case& c, const cases::Inputs& inputs,
                                     const cases::Outputs& outputs, const PrecisionProfile& profile,
                                     std::string& why);

/// One request with its reference result.
struct MlaRequest {
  int index = 0;
  int q_len = 0, kv_len = 0, heads = 0;
  Eigen::Index first_row = 0;  ///< of the launch's rows
  Matrix q, k;                 ///< decoded, unscaled
  Vector q_norms, k_norms;
  reference::RequestAttention attention;

  [[nodiscard]] Eigen::Index rows() const { return Eigen::Index{q_len} * heads; }
  [[nodiscard]] int position(Eigen::Index row) const { return static_cast<int>(row / heads); }
  [[nodiscard]] int head(Eigen::Index row) const { return static_cast<int>(row % heads); }
  [[nodiscard]] BoundRequest for_bound(const reference::AttentionScales& scales) const {
    return {attention, k.leftCols(reference::kv_lora_rank), q_norms, k_norms, scales};
  }
};

/// The reference on the stored bytes of request `index`.
MlaRequest load_request(const MlaLaunch& launch, int index);

/// The cache of a launch, for reading other rows than the valid ones.
reference::PagedCache cache_of(const MlaLaunch& launch);

/// The page table entries of a request.
std::span<const std::int32_t> pages_of(const MlaLaunch& launch, int index);

reference::Format to_reference(cases::Format format);

}  // namespace attest::oracle
