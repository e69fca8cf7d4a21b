// SPDX-License-Identifier: MIT
//
// A case, its bytes and its results, as the numbers the oracle works on. Ops that are MLA attention differ in
// how they name the keys of a query row (oracle/mla_keys.h); from here on they are one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "oracle/mla_bound.h"
#include "oracle/mla_keys.h"
#include "oracle/rounding_grid.h"
#include "reference/attention.h"
#include "reference/formats.h"

namespace attest::oracle {

/// What an op says of its launch before the results are looked at. Spans refer to the case's inputs.
struct MlaProblem {
  std::span<const cases::Request> requests;
  int heads = 1;
  int num_splits = 1;
  int page_size = 1;  ///< a length that tiles and splits may be multiples of
  bool return_lse = true;
  bool fp8_q = false;
  bool fp8_cache = false;  ///< one scale for the whole cache, which is kv_scale
  cases::Format q_format = cases::Format::bf16, out_format = cases::Format::bf16;
  reference::AttentionScales scales;
  std::span<const std::byte> q;  ///< [total_q, heads, 576] in q_format
  std::vector<MlaGroup> groups;  ///< in the order of their rows, which they cover
  std::shared_ptr<const MlaKeys> keys;
};

/// The whole launch. Refers to the case, inputs and outputs it was opened on.
struct MlaLaunch {
  const cases::Case& c;
  MlaProblem problem;
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
  /// Rows [first, first + count) of q, decoded.
  [[nodiscard]] Matrix q_rows(Eigen::Index first, Eigen::Index count) const;
};

/// nullopt and one line in `why` when an output is missing or of the wrong size.
std::optional<MlaLaunch> open_launch(const cases::Case& c, MlaProblem problem, const cases::Outputs& outputs,
                                     const PrecisionProfile& profile, std::string& why);

/// Ops that are MLA attention: mla_decode, verify_attention, mla_sparse.
std::optional<MlaLaunch> open_launch(const cases::Case& c, const cases::Inputs& inputs,
                                     const cases::Outputs& outputs, const PrecisionProfile& profile,
                                     std::string& why);

/// @param restoring of a ds_page cache
MlaProblem mla_problem(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in,
                       reference::Restoring restoring = reference::Restoring::nearest_even);
MlaProblem mla_problem(const cases::VerifyAttention& p, const cases::VerifyAttentionInputs& in);
MlaProblem mla_problem(const cases::MlaSparse& p, const cases::MlaSparseInputs& in);

/// One group with its reference result.
struct MlaRequest {
  int index = 0;  ///< of the launch's groups
  MlaGroup group;
  int q_len = 0, kv_len = 0, heads = 0;
  Eigen::Index first_row = 0;  ///< of the launch's rows
  Matrix q, k;                 ///< decoded, unscaled
  Vector q_norms, k_norms;
  std::vector<int> repetitions;  ///< as MlaKeys has them
  int walk = 0;                  ///< as BoundRequest has it
  reference::RequestAttention attention;

  [[nodiscard]] Eigen::Index rows() const { return Eigen::Index{q_len} * heads; }
  [[nodiscard]] int position(Eigen::Index row) const {
    return group.first_position + static_cast<int>(row / heads);
  }
  [[nodiscard]] int head(Eigen::Index row) const { return static_cast<int>(row % heads); }
  [[nodiscard]] BoundRequest for_bound(const reference::AttentionScales& scales) const {
    return {attention,   k.leftCols(reference::kv_lora_rank),
            q_norms,     k_norms,
            scales,      reference::row_width,
            repetitions, walk};
  }
};

/// The reference on the stored bytes of group `index`.
MlaRequest load_request(const MlaLaunch& launch, int index);

reference::Format to_reference(cases::Format format);

}  // namespace attest::oracle
