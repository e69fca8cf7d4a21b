// SPDX-License-Identifier: MIT
//
// Imagined kernels: what the result would be if a kernel had one particular defect.
//
// The strongest evidence for a cause is not a statistic of the error but that a reference with the same
// defect gives the same result, within its own bound. Each defect is a change to one row's attention: another
// number of visible keys, keys left out or counted twice, other scales, other cache rows. `Witness` holds a
// failing row with what is needed to try many of them; `explains` tries one on a sample of the columns.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "oracle/mla_compare.h"
#include "oracle/mla_launch.h"

namespace attest::oracle {

/// A group of rows that failed, with keys beyond its end: what a kernel finds that reads on.
struct FailedRequest {
  MlaRequest request;
  std::vector<int> places;  ///< [kv_len] of the walk; empty: key j is place j
  int walk = 0;
  Matrix keys;  ///< [kv_len + beyond, 576]
  Vector key_norms;
  Matrix values;  ///< [kv_len + beyond, sampled columns]
};

/// A failing row; or a right one, asked whether a defect could have left it right.
struct Witness {
  std::shared_ptr<const FailedRequest> home;
  Eigen::Index row = 0;  ///< in the group
  Eigen::Index in_launch = 0;
  std::vector<int> columns;  ///< sampled, the worst one among them
  std::vector<double> y;     ///< [columns]
  const double* lse = nullptr;
  bool failed_elements = false, failed_lse = false, failed_as_a_whole = false;
  Vector dots;  ///< [kv_len + beyond] <q, k_j>, unscaled

  [[nodiscard]] int visible() const { return home->request.attention.visible[static_cast<std::size_t>(row)]; }
  [[nodiscard]] int position() const { return home->request.position(row); }
  /// Where the walk of a kernel comes upon key j (oracle/mla_keys.h).
  [[nodiscard]] Eigen::Index place(Eigen::Index j) const {
    return home->places.empty() ? j : home->places[static_cast<std::size_t>(j)];
  }
  /// Places up to the last key that this row sees.
  [[nodiscard]] int walked() const { return home->walk - (home->request.kv_len - visible()); }
};

/// One row of attention with a defect.
struct Imagined {
  Eigen::Index visible = 0;      ///< leading keys
  double score_scale = 1;        ///< of <q, k>
  double out_scale = 1;          ///< of sum w v
  std::vector<double> offset;    ///< [visible] added to the scores; -inf leaves a key out; empty: nothing
  const Vector* dots = nullptr;  ///< [visible] of another query row or other keys; nullptr: the witness's own
  const Matrix* values = nullptr;     ///< [visible, columns] of other keys; nullptr: the witness's own
  const Vector* key_norms = nullptr;  ///< [visible] of other keys; nullptr: the witness's own
};

/// The imagined kernel without a defect.
Imagined faithful(const Witness& w, const reference::AttentionScales& scales);

/// Natural-log lse of an imagined row.
double imagined_lse(const Witness& w, const Imagined& imagined);

/// How many of the sampled columns are as the imagined kernel would write them, each within its bound.
struct Fit {
  int columns = 0, fitting = 0;
};

/// Whether the row is what the imagined kernel would write. Without `with_lse` the lse may be anything.
/// @param fit filled in unless the lse alone decided
bool explains(const Witness& w, const Imagined& imagined, const Rules& rules, const PrecisionProfile& profile,
              bool with_lse, Fit* fit = nullptr);

/// A named family of defects: the i-th variant of it on a witness; nullopt when it does not apply there.
struct Defect {
  const char* text;
  std::function<int(const Witness&)> variants;
  std::function<bool(const Witness&, int variant, bool with_lse, Fit* fit)> matches;
  std::function<std::string(const Witness&, int variant)> detail;
  /// For defects that would strike every row: whether this row, which is right, speaks against it. May be
  /// empty.
  std::function<bool(const Witness& right, bool with_lse)> refuted_by = nullptr;
};

/// All defects that can be imagined for a launch, in the order in which they are to be tried.
/// @param over_reads unused memory holds NaN or infinity and rows that see all keys hold NaN: a bound that is
/// too far within the request does not do that
std::vector<Defect> imaginable_defects(const MlaLaunch& launch, const Rules& rules,
                                       const PrecisionProfile& profile, bool over_reads);

/// Loads a group with the keys beyond its end and the sampled columns of V.
std::shared_ptr<const FailedRequest> load_failed_request(const MlaLaunch& launch, int index,
                                                         const std::vector<int>& columns);

}  // namespace attest::oracle
