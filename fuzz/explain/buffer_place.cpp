// SPDX-License-Identifier: MIT
#include "fuzz/explain/buffer_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "fuzz/explain/paged_keys.h"
#include "fuzz/usage_error.h"
#include "oracle/plans/block_table_judge.h"
#include "reference/block_table.h"
#include "reference/cache_write.h"
#include "reference/indexer.h"

namespace attest::fuzz {
namespace {

using device::hip::BufferBytes;
constexpr int latent_columns = 512, latent_row = 576;

int within(const char* what, int value, int count) {
  if (value < 0 || value >= count)
    throw UsageError(fmt::format("--element: {} {} of {}; they are counted from 0", what, value, count));
  return value;
}

/// [rows, columns] of `element_bytes`, with an lse of f32 per row.
BufferBytes of_row(std::int64_t row, int column, int columns, int element_bytes) {
  if (column < 0) return {"lse", static_cast<std::uint64_t>(row) * 4, 4};
  within("column", column, columns);
  return {"out", static_cast<std::uint64_t>((row * columns + column) * element_bytes),
          static_cast<std::uint64_t>(element_bytes)};
}

struct Places {
  const cases::Inputs& inputs;
  ElementPlace e;

  using Place = std::optional<BufferBytes>;
  Place operator()(const cases::MlaDecode& p) const {
    const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
    const int request = within("request", e.request, static_cast<int>(p.requests.size()));
    within("position", e.position, p.requests[static_cast<std::size_t>(request)].q_len);
    within("head", e.head, p.heads);
    const std::int64_t token = in.qo_indptr[static_cast<std::size_t>(request)] + e.position;
    return of_row(token * p.heads + e.head, e.column, latent_columns, 2);
  }
  // Behind the leading rows of all requests up to this one.
  Place operator()(const cases::VerifyAttention& p) const {
    const auto& in = std::get<cases::VerifyAttentionInputs>(inputs);
    const int request = within("request", e.request, static_cast<int>(p.requests.size()));
    within("position", e.position, p.requests[static_cast<std::size_t>(request)].nodes());
    within("head", e.head, p.heads);
    const std::int64_t token = in.q_indptr[static_cast<std::size_t>(request)] + p.lead + e.position;
    return of_row(token * p.heads + e.head, e.column, latent_columns, 2);
  }
  Place operator()(const cases::MlaPrefill& p) const {
    const auto& in = std::get<cases::MlaPrefillInputs>(inputs);
    const int request = within("request", e.request, static_cast<int>(p.requests.size()));
    within("position", e.position, p.requests[static_cast<std::size_t>(request)].q_len);
    within("head", e.head, p.heads);
    const std::int64_t token = in.qo_indptr[static_cast<std::size_t>(request)] + e.position;
    return of_row(token * p.heads + e.head, e.column, cases::prefill_v_columns, 2);
  }
  Place operator()(const cases::MergeStates& p) const {
    within("position", e.position, p.tokens);
    within("head", e.head, p.heads);
    if (e.column < 0)
      return BufferBytes{"lse", static_cast<std::uint64_t>(p.lse_index(e.position, e.head)) * 4, 4};
    within("column", e.column, p.head_dim);
    const cases::StateLayout layout = p.out_layout();
    const auto size = static_cast<std::uint64_t>(p.out_format == cases::Format::f32 ? 4 : 2);
    const std::int64_t at = e.position * p.token_stride(layout) + e.head * p.head_stride(layout) + e.column;
    return BufferBytes{p.in_place ? "out of state 0" : "out", static_cast<std::uint64_t>(at) * size, size};
  }
  Place operator()(const cases::IndexerLogits&) const {
    const auto& in = std::get<cases::IndexerLogitsInputs>(inputs);
    within("position", e.position, static_cast<int>(in.row_begin.size()));
    within("column", e.column, in.width);
    return BufferBytes{"logits",
                       (static_cast<std::uint64_t>(e.position) * static_cast<std::uint64_t>(in.width) +
                        static_cast<std::uint64_t>(e.column)) *
                           4,
                       4};
  }
  Place operator()(const cases::TopK& p) const {
    const auto& in = std::get<cases::TopKInputs>(inputs);
    within("position", e.position, static_cast<int>(in.row_begin.size()));
    const int entry = within("column", std::max(e.column, 0), p.k);
    return BufferBytes{"positions",
                       (static_cast<std::uint64_t>(e.position) * static_cast<std::uint64_t>(p.k) +
                        static_cast<std::uint64_t>(entry)) *
                           4,
                       4};
  }
  Place operator()(const cases::IndexRemap&) const {
    const auto& in = std::get<cases::IndexRemapInputs>(inputs);
    const int row = within("position", e.position, static_cast<int>(in.request_of_row.size()));
    const auto at = static_cast<std::size_t>(row);
    within("column", e.column, in.slot_indptr[at + 1] - in.slot_indptr[at]);
    return BufferBytes{"slots", static_cast<std::uint64_t>(in.slot_indptr[at] + e.column) * 4, 4};
  }
  Place operator()(const cases::SpecVerify& p) const {
    within("request", e.request, static_cast<int>(std::get<cases::SpecVerifyInputs>(inputs).greedy.size()));
    within("position", e.position, p.max_spec_len + 1);
    return BufferBytes{"tokens",
                       static_cast<std::uint64_t>(e.request * (p.max_spec_len + 1) + e.position) * 4, 4};
  }
  Place operator()(const cases::CacheWrite& p) const {
    const auto& in = std::get<cases::CacheWriteInputs>(inputs);
    const int token = within("position", e.position, static_cast<int>(in.slot_mapping.size()));
    const std::int64_t slot = in.slot_mapping[static_cast<std::size_t>(token)];
    if (slot < 0) throw UsageError(fmt::format("--element: token {} has no slot", token));
    const auto page = static_cast<std::uint64_t>(slot / p.page_size) * in.page_stride_bytes;
    const int in_page = static_cast<int>(slot % p.page_size);
    const auto row = page + static_cast<std::uint64_t>(in_page * cases::cache_token_bytes(p.layout));
    const auto bytes = [&](std::uint64_t from, int number, int size) {
      return BufferBytes{"pool", from + static_cast<std::uint64_t>(number * size),
                         static_cast<std::uint64_t>(size)};
    };
    constexpr int latent = reference::latent_columns, both = latent + reference::rope_columns;
    switch (p.layout) {
      case cases::CacheLayout::bf16:
        return bytes(row, within("column", e.column, both), 2);
      case cases::CacheLayout::fp8:
        return bytes(row, within("column", e.column, both), 1);
      case cases::CacheLayout::ds_mla:
        within("column", e.column, both + latent / reference::ds_group);
        if (e.column < latent) return bytes(row, e.column, 1);
        if (e.column < both) return bytes(row + reference::ds_rope_at, e.column - latent, 2);
        return bytes(row + reference::ds_scale_at, e.column - both, 4);
      case cases::CacheLayout::indexer:
        break;
    }
    if (within("column", e.column, reference::indexer_width + 1) < reference::indexer_width)
      return bytes(page + reference::indexer_values_at(in_page), e.column, 1);
    return bytes(page + reference::indexer_scale_at(p.page_size, in_page), 0, 4);
  }
  Place operator()(const cases::MlaSparse& p) const {
    const int request = within("request", e.request, static_cast<int>(p.requests.size()));
    within("position", e.position, p.requests[static_cast<std::size_t>(request)].q_len);
    within("head", e.head, p.heads);
    std::int64_t token = e.position;
    for (int r = 0; r < request; ++r) token += p.requests[static_cast<std::size_t>(r)].q_len;
    return of_row(token * p.heads + e.head, e.column, latent_columns, 2);
  }
  Place operator()(const cases::DenseSwitch& p) const {
    const auto& in = std::get<cases::DenseSwitchInputs>(inputs);
    const int request = within("request", e.request, static_cast<int>(p.requests.size()));
    within("position", e.position, p.requests[static_cast<std::size_t>(request)].q_len);
    within("head", e.head, p.heads);
    const std::int64_t token = in.qo_indptr[static_cast<std::size_t>(request)] + e.position;
    return of_row(token * p.heads + e.head, within("column", e.column, cases::value_width),
                  cases::value_width, 2);
  }
  Place operator()(const cases::WorkPlan&) const {
    const auto& in = std::get<cases::WorkPlanInputs>(inputs);
    const auto& step = in.steps[static_cast<std::size_t>(
        within("head (the step)", e.head, static_cast<int>(in.steps.size())))];
    const auto request =
        static_cast<std::size_t>(within("request", e.request, static_cast<int>(step.qo_indptr.size()) - 1));
    within("position", e.position, step.qo_indptr[request + 1] - step.qo_indptr[request]);
    BufferBytes bytes =
        of_row(step.qo_indptr[request] + e.position, e.column, cases::WorkPlanInputs::columns, 4);
    bytes.buffer = fmt::format("step{}.{}", e.head, bytes.buffer);
    return bytes;
  }
  Place operator()(const cases::BlockTableExpand& p) const {
    using List = oracle::BlockTableList;
    const auto& in = std::get<cases::BlockTableExpandInputs>(inputs);
    const auto& step = in.steps[static_cast<std::size_t>(
        within("head (the step)", e.head, static_cast<int>(in.steps.size())))];
    const auto list =
        static_cast<List>(within("column (the list)", e.column, static_cast<int>(List::last_page_len) + 1));
    const auto rows = static_cast<int>(step.seq_lens.size());
    const int all_rows = p.graph ? p.max_requests : rows;
    std::int64_t entry = 0;
    switch (list) {
      case List::kv_indices: {
        const auto lists = reference::expand_block_table({p.manager_block, p.kernel_block, in.table_width,
                                                          step.query_start_loc, step.seq_lens,
                                                          step.block_table, step.num_tokens});
        const int row = within("request", e.request, rows + 1);
        const auto size = p.graph ? p.index_capacity : lists.kv_indptr.back();
        entry = (row == rows ? 0 : lists.kv_indptr[static_cast<std::size_t>(row)]) + e.position;
        within("position", static_cast<int>(entry), size);
        break;
      }
      case List::kernel_block_table: {
        const int width = in.table_width * (p.manager_block / p.kernel_block);
        entry =
            std::int64_t{within("request", e.request, rows)} * width + within("position", e.position, width);
        break;
      }
      case List::kv_indptr:
      case List::qo_indptr:
        entry = within("position", e.position, all_rows + 1);
        break;
      case List::last_page_len:
        entry = within("request", e.request, all_rows);
        break;
    }
    // The steps of a graph share their lists, and a step is three launches.
    BufferBytes bytes{p.graph ? oracle::name(list) : fmt::format("step{}.{}", e.head, oracle::name(list)),
                      static_cast<std::uint64_t>(entry) * 4, 4};
    if (p.graph) bytes.before = 3 * (static_cast<std::uint32_t>(e.head) + 1);
    return bytes;
  }
};

std::string columns(std::uint64_t first_byte, std::uint64_t bytes, int element_bytes) {
  const std::uint64_t size = static_cast<std::uint64_t>(element_bytes);
  const std::uint64_t first = first_byte / size,
                      last = (first_byte + std::max<std::uint64_t>(bytes, 1) - 1) / size;
  return first == last ? fmt::format("column {}", first) : fmt::format("columns {} to {}", first, last);
}

/// Who owns a page: "key 32 of request 0"; the first of the page's keys.
std::string owner(const PagedCache& cache, std::uint64_t page, int slot) {
  for (std::size_t r = 0; r < cache.kv_len.size(); ++r)
    for (int key = 0; key < cache.kv_len[r]; key += cache.page_size)
      if (static_cast<std::uint64_t>(cache.page(static_cast<int>(r), key)) == page) {
        if (key + slot < cache.kv_len[r]) return fmt::format("key {} of request {}", key + slot, r);
        return fmt::format("{} past the end of request {}", key + slot - cache.kv_len[r] + 1, r);
      }
  return "a page of no request";
}

bool is_pool(const PagedCache& cache, const std::string& buffer) {
  return buffer == cache.pool || buffer == "KV";
}

/// "0, 2 to 5"
std::string runs(const std::set<int>& numbers) {
  std::vector<std::string> parts;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) last = *it;
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> describe_pages(const PagedCache& cache, const std::vector<BufferRange>& ranges) {
  struct Page {
    std::set<int> slots;
    std::uint64_t bytes = 0;
  };
  std::map<std::uint64_t, Page> pages;
  for (const BufferRange& range : ranges)
    for (std::uint64_t at = range.offset; at < range.offset + range.bytes;) {
      const std::uint64_t page = at / cache.page_bytes, in_page = at % cache.page_bytes;
      const PagedCache::Spot spot = cache.spot(in_page);
      const std::uint64_t end = std::min(
          {range.offset + range.bytes, page * cache.page_bytes + spot.end, (page + 1) * cache.page_bytes});
      pages[page].slots.insert(static_cast<int>(spot.slot));
      pages[page].bytes += end - at;
      at = end;
    }
  std::vector<std::string> lines;
  for (const auto& [page, read] : pages)
    lines.push_back(fmt::format("page {}, slot{} {} of {}: {} bytes; slot {} is {}", page,
                                read.slots.size() == 1 ? "" : "s", runs(read.slots), cache.page_size,
                                read.bytes, *read.slots.begin(), owner(cache, page, *read.slots.begin())));
  return lines;
}

}  // namespace

std::string in_words(const cases::Case& c, const ElementPlace& e) {
  const std::string column = e.column < 0 ? "lse" : fmt::format("column {}", e.column);
  if (std::holds_alternative<cases::CacheWrite>(c.problem))
    return fmt::format("token {}, {}", e.position, column);
  if (std::holds_alternative<cases::WorkPlan>(c.problem))
    return fmt::format("step {}, request {}, row {}, {}", e.head, e.request, e.position, column);
  if (std::holds_alternative<cases::BlockTableExpand>(c.problem))
    return fmt::format("step {}, request {}, {} entry {}", e.head, e.request,
                       oracle::name(static_cast<oracle::BlockTableList>(e.column)), e.position);
  return fmt::format("request {}, position {}, head {}, {}", e.request, e.position, e.head, column);
}

std::optional<BufferBytes> bytes_of_element(const cases::Case& c, const cases::Inputs& inputs,
                                            const ElementPlace& element) {
  return std::visit(Places{inputs, element}, c.problem);
}

std::optional<BufferBytes> bytes_of_partial(const cases::Case& c, const cases::Inputs& inputs,
                                            const ElementPlace& element, int split) {
  const auto* p = std::get_if<cases::MlaDecode>(&c.problem);
  if (p == nullptr || split >= p->num_splits) return std::nullopt;
  const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
  const std::int64_t token = in.qo_indptr[static_cast<std::size_t>(element.request)] + element.position;
  const std::int64_t row = (token * p->num_splits + split) * p->heads + element.head;
  if (element.column < 0) return BufferBytes{"splitLse", static_cast<std::uint64_t>(row) * 4, 4};
  return BufferBytes{"splitData", static_cast<std::uint64_t>(row * latent_columns + element.column) * 4, 4};
}

std::string in_contract_terms(const cases::Case& c, const cases::Inputs& inputs, const std::string& buffer,
                              std::uint64_t offset, std::uint64_t bytes) {
  const std::optional<PagedCache> cache = paged_cache(c, inputs);
  if (!cache) return {};
  if (is_pool(*cache, buffer) && cache->page_bytes > 0) {
    const std::uint64_t page = offset / cache->page_bytes, in_page = offset % cache->page_bytes;
    const PagedCache::Spot spot = cache->spot(in_page);
    const auto slot = static_cast<int>(spot.slot);
    if (slot >= cache->page_size) return fmt::format("page {}, the padding behind it", page);
    return fmt::format("page {} slot {}, {}, {}", page, slot, owner(*cache, page, slot),
                       spot.scales ? "scales" : columns(spot.first_byte, bytes, spot.element_bytes));
  }
  if (buffer == cache->page_table) {
    const auto entry = static_cast<std::int32_t>(offset / 4);
    for (std::size_t r = 0; r + 1 < cache->indptr->size(); ++r)
      if (entry >= (*cache->indptr)[r] && entry < (*cache->indptr)[r + 1])
        return fmt::format("page {} of request {}", entry - (*cache->indptr)[r], r);
    return "past the last entry";
  }
  if (const auto* p = std::get_if<cases::MlaDecode>(&c.problem);
      p != nullptr && (buffer == "q" || buffer == "Q")) {
    const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
    const std::uint64_t size = p->q_format == cases::Format::bf16 ? 2 : 1, row_bytes = latent_row * size;
    const auto row = static_cast<int>(offset / row_bytes), token = row / p->heads;
    for (std::size_t r = 0; r < p->requests.size(); ++r)
      if (token >= in.qo_indptr[r] && token < in.qo_indptr[r + 1])
        return fmt::format("request {}, position {}, head {}, {}", r, token - in.qo_indptr[r], row % p->heads,
                           columns(offset % row_bytes, std::min(bytes, row_bytes - offset % row_bytes),
                                   static_cast<int>(size)));
  }
  return {};
}

std::vector<std::string> describe_ranges(const cases::Case& c, const cases::Inputs& inputs,
                                         const std::string& buffer, const std::vector<BufferRange>& ranges,
                                         std::size_t most) {
  std::vector<std::string> lines;
  const std::optional<PagedCache> cache = paged_cache(c, inputs);
  if (cache && is_pool(*cache, buffer) && cache->page_bytes > 0) {
    lines = describe_pages(*cache, ranges);
  } else {
    for (const BufferRange& range : ranges) {
      const std::string terms = in_contract_terms(c, inputs, buffer, range.offset, range.bytes);
      lines.push_back(fmt::format("bytes {} to {}{}{}", range.offset, range.offset + range.bytes - 1,
                                  terms.empty() ? "" : ": ", terms));
    }
  }
  if (lines.size() <= most) return lines;
  const std::size_t left = lines.size() - most + 1;
  lines.resize(most - 1);
  lines.push_back(fmt::format("and {} more", left));
  return lines;
}

}  // namespace attest::fuzz
