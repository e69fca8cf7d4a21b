// SPDX-License-Identifier: MIT
//
// Which cache rows a group of query rows sees, by one op's addressing: pages of a request, or a list of slots
// per query token. The bound, the comparison and the diagnosis work on the rows and know nothing else of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oracle/mla_bound.h"

namespace attest::oracle {

/// Query rows that see the same keys, or leading parts of them: a request of mla_decode, one query token of
/// mla_sparse.
struct MlaGroup {
  int request = 0;             ///< of the case
  int first_position = 0;      ///< of the request
  int q_len = 0;               ///< query positions
  int kv_len = 0;              ///< keys
  bool causal = false;         ///< bottom-right aligned in these keys; else every row sees all of them
  Eigen::Index first_row = 0;  ///< of the launch's rows

  [[nodiscard]] int visible(int position_in_group) const {
    const int seen = causal ? kv_len - q_len + position_in_group + 1 : kv_len;
    return seen < 0 ? 0 : seen;
  }
};

/// Keys that a kernel with one defect of addressing would read in place of the right ones.
struct OtherKeys {
  const char* text;    ///< the diagnosis: short, stable
  std::string detail;  ///< one line
  /// [n, 576] decoded, unscaled, for a row of `group` that should see `visible` keys. nullopt where the
  /// defect does not apply or leads outside of what was placed.
  std::function<std::optional<Matrix>(int group, int visible)> rows;
  bool after_bounds = false;  ///< a wrong causal bound may look like it and is the plainer cause
};

class MlaKeys {
 public:
  virtual ~MlaKeys() = default;

  /// [kv_len, 576] decoded, unscaled, in the order in which a kernel walks them.
  [[nodiscard]] virtual Matrix rows(int group) const = 0;

  /// Kernels cut what they walk into tiles and splits, entries that they skip included: the place of key j
  /// among `walk` places. Empty: key j is place j, and walk is kv_len.
  [[nodiscard]] virtual std::vector<int> places(int /*group*/) const { return {}; }
  [[nodiscard]] virtual int walk(int group) const = 0;

  /// How often the cache row of key j is among the keys. Empty: once, all of them.
  [[nodiscard]] virtual std::vector<int> repetitions(int /*group*/) const { return {}; }

  /// The row that a kernel finds `beyond` places after the last key; nullopt where there is none.
  [[nodiscard]] virtual std::optional<Matrix> row_beyond(int group, int beyond) const = 0;

  [[nodiscard]] virtual std::vector<OtherKeys> other_keys() const = 0;

  /// The first key that ends more than `bytes` into the pool; INT_MAX when none does.
  [[nodiscard]] virtual int first_key_past(int group, std::uint64_t bytes) const = 0;
  /// Something that is no key lies on the page of the last one.
  [[nodiscard]] virtual bool ends_inside_page(int group) const = 0;
  /// A tile of the walk may have no key that this row sees.
  [[nodiscard]] virtual bool meets_masked_tile(int group, int visible) const = 0;
};

}  // namespace attest::oracle
