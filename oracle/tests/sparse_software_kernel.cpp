// SPDX-License-Identifier: MIT
#include "oracle/tests/sparse_software_kernel.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

#include "reference/ds_layout.h"

namespace attest::oracle::testing {
namespace {

using cases::Format;

class Gatherer {
 public:
  Gatherer(const cases::MlaSparse& p, const cases::MlaSparseInputs& in, ListFault fault)
      : p_(p), in_(in), fault_(fault), ds_(p.kv_layout == cases::KvLayout::ds) {
    row_bytes_ = ds_ ? 656U : p.kv_format == Format::bf16 ? 1152U : 576U;
  }

  [[nodiscard]] std::vector<std::vector<std::byte>> rows(std::size_t token) const {
    std::vector<std::vector<std::byte>> gathered;
    std::set<std::int32_t> seen;
    for (const std::int32_t entry : entries(token)) {
      std::int32_t slot = entry;
      if (slot < 0 || slot >= in_.num_slots) {
        if (fault_ != ListFault::holes_are_zero) continue;
        slot = 0;
      }
      if (fault_ == ListFault::repeated_once && !seen.insert(slot).second) continue;
      gathered.push_back(row(slot));
    }
    if (fault_ == ListFault::last_dropped && !gathered.empty()) gathered.pop_back();
    return gathered;
  }

 private:
  [[nodiscard]] std::vector<std::int32_t> entries(std::size_t token) const {
    const std::size_t tokens = in_.lengths.size();
    if (fault_ == ListFault::neighbour_list) token = (token + 1) % tokens;
    std::size_t width = static_cast<std::size_t>(p_.topk),
                length = static_cast<std::size_t>(in_.lengths[token]);
    if (fault_ == ListFault::trailing_ids) length = width;
    if (fault_ == ListFault::row_width)
      width = static_cast<std::size_t>(*std::max_element(in_.lengths.begin(), in_.lengths.end()));
    const auto first = in_.indices.begin() + static_cast<std::ptrdiff_t>(token * width);
    return {first, first + static_cast<std::ptrdiff_t>(length)};
  }

  [[nodiscard]] std::vector<std::byte> row(std::int32_t slot) const {
    const auto page = static_cast<std::uint64_t>(slot / p_.page_size);
    std::uint64_t offset =
        page * in_.page_stride_bytes + static_cast<std::uint64_t>(slot % p_.page_size) * row_bytes_;
    if (fault_ == ListFault::padding_ignored) offset = static_cast<std::uint64_t>(slot) * row_bytes_;
    std::vector<std::byte> stored(row_bytes_);
    try {
      const auto found = in_.kv_pool.at(offset, row_bytes_);
      stored.assign(found.begin(), found.end());
    } catch (const std::out_of_range&) {
      // untouched memory: zeros
    }
    if (!ds_) return stored;
    if (fault_ == ListFault::ds_rope) std::memmove(stored.data() + 528, stored.data() + 512, 128);
    for (std::size_t tile = 1; fault_ == ListFault::ds_first_scale && tile < 4; ++tile)
      std::memcpy(stored.data() + 512 + 4 * tile, stored.data() + 512, 4);
    std::vector<double> values(576);
    reference::decode_ds_row(
        fault_ == ListFault::ds_as_ocp ? reference::Format::fp8_e4m3fn : reference::Format::fp8_e4m3fnuz,
        stored, values.data());
    std::vector<std::byte> bf16(1152);
    for (std::size_t d = 0; d < values.size(); ++d) {
      const auto code = static_cast<std::uint16_t>(
          reference::encode(reference::Format::bf16, values[d], reference::Overflow::to_special));
      std::memcpy(bf16.data() + 2 * d, &code, 2);
    }
    return bf16;
  }

  const cases::MlaSparse& p_;
  const cases::MlaSparseInputs& in_;
  ListFault fault_;
  bool ds_;
  std::size_t row_bytes_ = 0;
};

}  // namespace

cases::Outputs run_lists(const cases::Case& c, const cases::Inputs& inputs, const Model& model,
                         ListFault fault) {
  const auto& p = std::get<cases::MlaSparse>(c.problem);
  const auto& in = std::get<cases::MlaSparseInputs>(inputs);
  const Gatherer gatherer(p, in, fault);
  cases::Case gathered = c;
  cases::MlaDecode q = cases::as_decode(p);
  cases::MlaDecodeInputs out;
  q.page_size = 1;
  q.causal = false;
  q.requests.clear();
  if (p.kv_layout == cases::KvLayout::ds) q.kv_format = Format::bf16;
  out.q = in.q;
  out.qo_indptr = {0};
  out.kv_indptr = {0};
  out.page_stride_bytes = q.kv_format == Format::bf16 ? 1152 : 576;
  cases::SparseBytes::Extent& pool = out.kv_pool.extents.emplace_back();
  for (std::size_t t = 0; t < in.lengths.size(); ++t) {
    const auto rows = gatherer.rows(t);
    for (const auto& row : rows) {
      out.kv_page_indices.push_back(static_cast<std::int32_t>(out.kv_page_indices.size()));
      pool.bytes.insert(pool.bytes.end(), row.begin(), row.end());
    }
    q.requests.push_back({1, static_cast<int>(rows.size())});
    out.qo_indptr.push_back(static_cast<std::int32_t>(t + 1));
    out.kv_indptr.push_back(static_cast<std::int32_t>(out.kv_page_indices.size()));
    out.kv_last_page_len.push_back(rows.empty() ? 0 : 1);
  }
  out.kv_pool.size = pool.bytes.size();
  out.num_pages = std::ssize(out.kv_page_indices);
  gathered.problem = std::move(q);
  return run(gathered, out, model);
}

cases::Case random_sparse_case(std::uint64_t seed, cases::Fill fill) {
  using namespace cases;
  Dice dice(seed * 1000003 + static_cast<std::uint64_t>(fill) * 7919 + 29);
  for (;;) {
    Case c;
    c.seed = dice.next();
    c.data.fill = fill;
    MlaSparse p;
    p.heads = dice.of({1, 2, 3, 8});
    p.page_size = dice.of({1, 1, 2, 7, 16, 64});
    p.topk = dice.of({1, 16, 33, 64, 130});
    p.num_splits = dice.of({1, 1, 2, 5});
    p.return_lse = dice.below(5) != 0;
    p.choice = static_cast<ListChoice>(dice.below(4));
    p.length = static_cast<ListLength>(dice.below(2));
    p.holes = dice.below(2) == 0 ? ListHoles::none : static_cast<ListHoles>(dice.below(7));
    p.hole_value = static_cast<HoleValue>(dice.below(2));
    const int batch = dice.between(1, 3);
    for (int b = 0; b < batch; ++b) p.requests.push_back({dice.of({1, 1, 2, 5}), dice.between(0, 200)});
    if (dice.below(4) == 0) {
      // Lists that hold everything: what mla_decode does.
      p.topk = 130;
      p.choice = ListChoice::newest;
      p.length = ListLength::full;
      p.holes = ListHoles::none;
      for (Request& r : p.requests) r.kv_len = std::min(r.kv_len, p.topk);
    }
    switch (dice.below(4)) {
      case 0:
        p.kv_format = Format::fp8_e4m3fnuz;
        p.kv_layout = KvLayout::ds;
        break;
      case 1:
        p.kv_format = Format::fp8_e4m3fnuz;
        if (dice.below(2) == 0) p.q_format = Format::fp8_e4m3fnuz;
        p.kv_scale = fill == Fill::exact || fill == Fill::constant_scores ? dice.of({0.25F, 2.0F})
                                                                          : dice.of({0.06F, 0.37F, 3.1F});
        break;
      default:
        break;
    }
    c.memory.placement =
        dice.of({Placement::ordered, Placement::shuffled, Placement::reversed, Placement::beyond_4gib});
    c.memory.unused =
        dice.of({Poison::nan, Poison::nan, Poison::large, Poison::stale, Poison::inf, Poison::zero});
    if (dice.below(4) == 0) c.memory.page_padding_bytes = 48;
    c.problem = p;
    try {
      validate(c);
    } catch (const CaseError&) {
      continue;
    }
    return c;
  }
}

}  // namespace attest::oracle::testing
