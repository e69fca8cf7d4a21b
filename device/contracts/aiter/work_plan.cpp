// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/work_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace attest::device::aiter {
namespace {

int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

/// The folded batch: request b * fold + g has the KV of b; with q_len 1 the folded rows of a token lie
/// together, with more the rows of a head group do, which is the same arithmetic.
struct Folded {
  explicit Folded(const PlanRequest& r) : request(r), batch(static_cast<int>(r.qo_indptr.size()) - 1) {}
  const PlanRequest& request;
  int batch;

  [[nodiscard]] int requests() const { return batch * request.fold; }
  [[nodiscard]] int q_len(int i) const {
    const auto b = static_cast<std::size_t>(i / request.fold);
    return request.qo_indptr[b + 1] - request.qo_indptr[b];
  }
  [[nodiscard]] int q_begin(int i) const {
    const auto b = static_cast<std::size_t>(i / request.fold);
    return request.qo_indptr[b] * request.fold + (i % request.fold) * q_len(i);
  }
  [[nodiscard]] int kv_begin(int i) const {
    return request.kv_indptr[static_cast<std::size_t>(i / request.fold)];
  }
  [[nodiscard]] int kv_end(int i) const {
    return request.kv_indptr[static_cast<std::size_t>(i / request.fold) + 1];
  }
  [[nodiscard]] int kv_len(int i) const { return kv_end(i) - kv_begin(i); }
};

int tiles_of(const PlanRequest& r, int q_len) {
  constexpr int packed_rows = 128;
  if (r.max_q_len * r.heads * r.fold <= packed_rows) return 1;
  if (r.heads * 2 > packed_rows) return q_len;
  return ceil_div(q_len * r.heads, packed_rows);
}

}  // namespace

WorkPlan plan_v1_2(const PlanRequest& r) {
  const Folded folded(r);
  const int overhead = std::max(1, ceil_div(16, r.page_size));  // blocks
  const int slots_used =
      r.max_split_per_batch < 0 ? r.slots : std::min(r.slots, r.max_split_per_batch * folded.requests());
  int blocks = 0, all_tiles = 0;
  for (int i = 0; i < folded.requests(); ++i) {
    const int tiles = tiles_of(r, folded.q_len(i));
    all_tiles += tiles;
    blocks += (ceil_div(folded.kv_len(i), r.granularity) + overhead) * tiles;
  }
  const int payload = ceil_div(blocks, slots_used) + overhead;

  WorkPlan plan;
  plan.work_indptr.push_back(0);
  plan.reduce_indptr.push_back(0);
  plan.reduce_final_map.resize(2 * static_cast<std::size_t>(all_tiles), 0);
  int i = 0, tile = 0, done_blocks = 0, pieces = 0, next_partial = 0;
  bool tail_done = false;
  const auto offset_behind = [&](int b, int kv_end, int end) {
    if (r.page_size == 1 || kv_end == end) return end - kv_end;
    return (end - kv_end - 1) * r.page_size + r.kv_last_page_lens[static_cast<std::size_t>(b)];
  };
  std::vector<std::int32_t> open_pieces;  // partial rows of the current tile's earlier pieces
  for (int slot = 0; slot < r.slots; ++slot) {
    int left = payload;
    while (i < folded.requests()) {
      const int q_len = folded.q_len(i), tiles = tiles_of(r, q_len);
      const int tile_size = tiles == 0 ? 0 : ceil_div(q_len, tiles);
      const int kv_begin = folded.kv_begin(i), kv_end = folded.kv_end(i);
      const int remaining = ceil_div(folded.kv_len(i), r.granularity) - done_blocks;
      WorkInfo work;
      work.batch_idx = i;
      work.qo_start = folded.q_begin(i) + tile * tile_size;
      work.qo_end = std::min(work.qo_start + tile_size, folded.q_begin(i) + q_len);
      work.kv_start = kv_begin + done_blocks * r.granularity;
      int trim = tiles - 1 - tile;
      if (r.fold != 1) trim = tiles - work.qo_start / r.fold % r.max_q_len - 1;
      trim = r.causal && r.page_size == 1 ? std::max(trim, 0) : 0;
      const int shortest_tail = r.page_size == 1 ? r.max_q_len : 0;

      if (left >= remaining + overhead || tail_done) {
        work.kv_end = std::min(work.kv_start + remaining * r.granularity, kv_end - trim);
        if ((kv_end - work.kv_end < shortest_tail && kv_end - work.kv_end > 0) || tail_done)
          work.kv_end = std::min(kv_end - trim, kv_end);
        work.kv_offset = offset_behind(i, work.kv_end, kv_end);
        if (pieces > 0) {
          work.partial_qo_loc = next_partial;
          open_pieces.push_back(next_partial);
          plan.reduce_partial_map.insert(plan.reduce_partial_map.end(), open_pieces.begin(),
                                         open_pieces.end());
          const std::size_t entry = 2 * (plan.reduce_indptr.size() - 1);
          plan.reduce_final_map[entry] = work.qo_start;
          plan.reduce_final_map[entry + 1] = work.qo_end;
          next_partial += tile_size;
        }
        plan.reduce_indptr.push_back(static_cast<std::int32_t>(plan.reduce_partial_map.size()));
        plan.work_info_set.push_back(work);
        left -= remaining + overhead;
        if (++tile >= tiles) {
          tile = 0;
          ++i;
        }
        done_blocks = pieces = 0;
        tail_done = false;
        open_pieces.clear();
        continue;
      }
      if (left > overhead) {
        const int taken = left - overhead;
        work.kv_end = std::min(work.kv_start + taken * r.granularity, kv_end - trim);
        if (kv_end - work.kv_end < shortest_tail) {
          tail_done = true;  // the rest would be shorter than the query: leave the cut out
          continue;
        }
        work.kv_offset = offset_behind(i, work.kv_end, kv_end);
        work.partial_qo_loc = next_partial;
        open_pieces.push_back(next_partial);
        plan.work_info_set.push_back(work);
        next_partial += tile_size;
        done_blocks += taken;
        ++pieces;
      }
      break;
    }
    plan.work_indptr.push_back(static_cast<std::int32_t>(plan.work_info_set.size()));
  }
  plan.partial_rows = static_cast<int>(plan.reduce_partial_map.size()) * r.max_q_len;
  return plan;
}

WorkPlan plan_simple(const PlanRequest& r, int pieces) {
  const Folded folded(r);
  WorkPlan plan;
  plan.reduce_indptr.push_back(0);
  int next_partial = 0;
  for (int i = 0; i < folded.requests(); ++i) {
    const int q_len = folded.q_len(i), tiles = r.heads * 2 > 128 ? q_len : std::min(q_len, 1);
    for (int tile = 0; tile < tiles; ++tile) {
      const int tile_size = ceil_div(q_len, tiles);
      WorkInfo work;
      work.batch_idx = i;
      work.qo_start = folded.q_begin(i) + tile * tile_size;
      work.qo_end = std::min(work.qo_start + tile_size, folded.q_begin(i) + q_len);
      const int trim = r.causal ? folded.q_begin(i) + q_len - work.qo_end : 0;
      const int begin = folded.kv_begin(i), end = folded.kv_end(i) - trim;
      if (end <= begin) {  // nothing to see: no work, the row keeps what it holds
        plan.reduce_indptr.push_back(plan.reduce_indptr.back());
        plan.reduce_final_map.insert(plan.reduce_final_map.end(), {work.qo_start, work.qo_end});
        continue;
      }
      std::vector<int> cuts{begin};
      const int step = ceil_div(ceil_div(end - begin, pieces), r.granularity) * r.granularity;
      for (int cut = begin + step; cut < end - r.max_q_len; cut += step) cuts.push_back(cut);
      cuts.push_back(end);
      const bool split = cuts.size() > 2;
      for (std::size_t piece = 0; piece + 1 < cuts.size(); ++piece) {
        work.kv_start = cuts[piece];
        work.kv_end = cuts[piece + 1];
        work.kv_offset = folded.kv_end(i) - work.kv_end;
        work.partial_qo_loc = -1;
        if (split) {
          work.partial_qo_loc = next_partial;
          plan.reduce_partial_map.push_back(next_partial);
          next_partial += tile_size;
        }
        plan.work_info_set.push_back(work);
      }
      plan.reduce_indptr.push_back(static_cast<std::int32_t>(plan.reduce_partial_map.size()));
      plan.reduce_final_map.insert(plan.reduce_final_map.end(), {work.qo_start, work.qo_end});
    }
  }
  const auto works = static_cast<std::int64_t>(plan.work_info_set.size());
  for (int slot = 0; slot <= r.slots; ++slot)
    plan.work_indptr.push_back(static_cast<std::int32_t>(works * slot / r.slots));
  plan.partial_rows = static_cast<int>(plan.reduce_partial_map.size()) * r.max_q_len;
  return plan;
}

std::string plan_defect(const WorkPlan& plan, const PlanRequest& r) {
  const Folded folded(r);
  const auto works = static_cast<std::int32_t>(plan.work_info_set.size());
  if (plan.work_indptr.size() != static_cast<std::size_t>(r.slots) + 1 || plan.work_indptr.front() != 0 ||
      plan.work_indptr.back() != works || !std::is_sorted(plan.work_indptr.begin(), plan.work_indptr.end()))
    return fmt::format("work_indptr does not run from 0 to {} works over {} slots", works, r.slots);

  std::map<std::pair<int, int>, std::vector<WorkInfo>> tiles;  // by query rows
  std::set<int> partial_rows;
  for (const WorkInfo& w : plan.work_info_set) {
    if (w.batch_idx < 0 || w.batch_idx >= folded.requests())
      return fmt::format("batch_idx {} is no request", w.batch_idx);
    if (w.qo_start >= w.qo_end) return fmt::format("request {}: work on no query row", w.batch_idx);
    if (w.kv_start >= w.kv_end)
      return fmt::format("request {}: work on the empty KV range [{}, {})", w.batch_idx, w.kv_start,
                         w.kv_end);
    if (w.kv_start < folded.kv_begin(w.batch_idx) || w.kv_end > folded.kv_end(w.batch_idx))
      return fmt::format("request {}: KV range [{}, {}) leaves the request", w.batch_idx, w.kv_start,
                         w.kv_end);
    if (w.kv_end + w.kv_offset != folded.kv_end(w.batch_idx))
      return fmt::format("request {}: kv_end {} and kv_offset {} do not meet the end", w.batch_idx, w.kv_end,
                         w.kv_offset);
    if (w.partial_qo_loc >= 0)
      for (int row = w.partial_qo_loc; row < w.partial_qo_loc + w.qo_end - w.qo_start; ++row)
        if (row >= plan.partial_rows || !partial_rows.insert(row).second)
          return fmt::format("request {}: partial row {} is used twice or does not exist", w.batch_idx, row);
    tiles[{w.qo_start, w.qo_end}].push_back(w);
  }

  std::map<std::pair<int, int>, std::vector<int>> reduced;
  for (std::size_t t = 0; t + 1 < plan.reduce_indptr.size(); ++t) {
    if (plan.reduce_indptr[t + 1] - plan.reduce_indptr[t] < 2) continue;
    auto& list = reduced[{plan.reduce_final_map[2 * t], plan.reduce_final_map[2 * t + 1]}];
    for (int k = plan.reduce_indptr[t]; k < plan.reduce_indptr[t + 1]; ++k)
      list.push_back(plan.reduce_partial_map[static_cast<std::size_t>(k)]);
  }

  std::set<int> rows;
  for (auto& [q, pieces] : tiles) {
    for (int row = q.first; row < q.second; ++row)
      if (!rows.insert(row).second) return fmt::format("query row {} belongs to two tiles", row);
    std::sort(pieces.begin(), pieces.end(),
              [](const WorkInfo& a, const WorkInfo& b) { return a.kv_start < b.kv_start; });
    const int i = pieces.front().batch_idx;
    int at = folded.kv_begin(i);
    std::vector<int> locations;
    for (const WorkInfo& w : pieces) {
      if (w.batch_idx != i)
        return fmt::format("query rows [{}, {}) belong to two requests", q.first, q.second);
      if (w.kv_start != at)
        return fmt::format("request {}: KV from {} to {} is skipped or done twice", i, at, w.kv_start);
      at = w.kv_end;
      locations.push_back(w.partial_qo_loc);
    }
    const int needed =
        r.causal ? folded.kv_end(i) - (folded.q_begin(i) + folded.q_len(i) - q.second) : folded.kv_end(i);
    if (at < needed) return fmt::format("request {}: KV from {} to {} is in no work", i, at, needed);
    const bool split = pieces.size() > 1;
    const auto it = reduced.find(q);
    if (!split && (locations[0] != -1 || it != reduced.end()))
      return fmt::format("request {}: one piece, yet a partial result", i);
    if (split) {
      if (it == reduced.end()) return fmt::format("request {}: {} pieces and no reduction", i, pieces.size());
      std::vector<int> listed = it->second;
      std::sort(listed.begin(), listed.end());
      std::sort(locations.begin(), locations.end());
      if (listed != locations) return fmt::format("request {}: the reduction does not list the pieces", i);
    }
  }
  for (int i = 0; i < folded.requests(); ++i)
    if (folded.kv_len(i) > 0)
      for (int row = folded.q_begin(i); row < folded.q_begin(i) + folded.q_len(i); ++row) {
        const int limit = folded.kv_len(i) - (r.causal ? folded.q_len(i) - 1 - (row - folded.q_begin(i)) : 0);
        if (limit > 0 && !rows.contains(row))
          return fmt::format("request {}: query row {} is in no work", i, row);
      }
  return {};
}

}  // namespace attest::device::aiter
