// SPDX-License-Identifier: MIT
//
// Which blocks a request owns, by the memory recipe, and what stands in the table where no block is named.
//
//   placement   ordered, shuffled, reversed: ids from 1 on (0 is the null block)
//               high: from 2^16 on; beyond_2gib, beyond_4gib: up to the last id whose slots are int32
//   unused      what garbage entries hold. nan: 2147480000, which no pool has; inf: that and -1 in turn;
//               large: any int32; stale: blocks of other requests; zero: the null block
//   prefix_sharing   the requests of a step with a full block share their first full blocks, half of those
//                    of the shortest
#include <algorithm>
#include <numeric>

#include "cases/case.h"
#include "cases/ops/block_table_expand.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr std::int32_t no_block = 2147480000;

int blocks_of(int tokens, int block) {
  return (tokens + block - 1) / block;
}

/// Block ids in the order in which requests take them.
class Pool {
 public:
  Pool(const Case& c, int manager_block, int count, std::uint32_t step) {
    ids_.resize(static_cast<std::size_t>(count));
    std::iota(ids_.begin(), ids_.end(), first_id(c.memory.placement, manager_block, count));
    const Counter draw(c.seed, Draw::block_order, step, 0);
    if (c.memory.placement == Placement::reversed) {
      std::reverse(ids_.begin(), ids_.end());
    } else if (c.memory.placement != Placement::ordered) {
      for (std::size_t i = ids_.size(); i > 1; --i)
        std::swap(ids_[i - 1],
                  ids_[draw.below(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i))]);
    }
  }

  std::int32_t take() { return ids_[next_++]; }
  [[nodiscard]] const std::vector<std::int32_t>& ids() const { return ids_; }

 private:
  static std::int32_t first_id(Placement placement, int manager_block, int count) {
    switch (placement) {
      case Placement::ordered:
      case Placement::shuffled:
      case Placement::reversed:
        return 1;
      case Placement::high:
        return std::min(65536, last_id(manager_block) - count);
      case Placement::beyond_2gib:
      case Placement::beyond_4gib:
        break;
    }
    return last_id(manager_block) - count + 1;
  }
  /// The last block all of whose slots are int32.
  static std::int32_t last_id(int manager_block) {
    return static_cast<std::int32_t>((std::int64_t{1} << 31) / manager_block - 1);
  }

  std::vector<std::int32_t> ids_;
  std::size_t next_ = 0;
};

std::int32_t garbage(const Case& c, const Pool& pool, std::uint32_t step, std::uint32_t row,
                     std::uint32_t column) {
  const Counter draw(c.seed, Draw::garbage_index, step + 1, row);
  switch (c.memory.unused) {
    case Poison::nan:
      return no_block;
    case Poison::inf:
      return column % 2 == 0 ? -1 : no_block;
    case Poison::large:
      return static_cast<std::int32_t>(draw.word(column));
    case Poison::stale:
      return pool.ids()[draw.below(column, static_cast<std::uint32_t>(pool.ids().size()))];
    case Poison::zero:
      break;
  }
  return 0;
}

}  // namespace

BlockTableExpandInputs materialise(const Case& c, const BlockTableExpand& p) {
  BlockTableExpandInputs in;
  for (const BlockTableStep& step : p.steps) {
    const int dummy = step.num_tokens / static_cast<int>(step.requests.size());
    for (const Request& r : step.requests)
      in.table_width = std::max(in.table_width, blocks_of(std::max(r.kv_len, dummy), p.manager_block));
  }
  in.table_width += p.spare_columns;

  for (std::uint32_t number = 0; number < p.steps.size(); ++number) {
    const BlockTableStep& step = p.steps[number];
    BlockTableExpandInputs::Step& out = in.steps.emplace_back();
    out.num_tokens = step.num_tokens;
    out.query_start_loc = {0};
    int needed = 1;
    int shared = 0;
    for (const Request& r : step.requests) {
      const int full = r.kv_len / p.manager_block;
      if (c.memory.prefix_sharing && full > 0) shared = shared == 0 ? full : std::min(shared, full);
      needed += blocks_of(r.kv_len, p.manager_block);
      out.query_start_loc.push_back(out.query_start_loc.back() + r.q_len);
      out.seq_lens.push_back(r.kv_len);
    }
    if (out.num_tokens == 0) out.num_tokens = out.query_start_loc.back();
    shared = (shared + 1) / 2;

    Pool pool(c, p.manager_block, needed, number);
    std::vector<std::int32_t> prefix;
    for (std::uint32_t row = 0; row < step.requests.size(); ++row) {
      const Request& r = step.requests[row];
      const int live = blocks_of(r.kv_len, p.manager_block);
      const bool shares = shared > 0 && r.kv_len / p.manager_block > 0;
      // The row of a padded request names the null block, as 0 or as -1.
      const bool padded = r.q_len == 0 && r.kv_len == 0 && step.num_tokens > 0;
      const Counter draw(c.seed, Draw::block_order, number, row + 1);
      for (int column = 0; column < in.table_width; ++column) {
        std::int32_t entry = 0;
        if (column < live) {
          entry =
              shares && column < std::ssize(prefix) ? prefix[static_cast<std::size_t>(column)] : pool.take();
          if (shares && column < shared && column == std::ssize(prefix)) prefix.push_back(entry);
        } else if (padded) {
          entry = draw.below(static_cast<std::uint32_t>(column), 2) == 0 ? 0 : -1;
        } else {
          entry = garbage(c, pool, number, row, static_cast<std::uint32_t>(column));
        }
        out.block_table.push_back(entry);
      }
    }
  }
  return in;
}

}  // namespace attest::cases
