// SPDX-License-Identifier: MIT
#include "fuzz/explain/paged_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "reference/cache_write.h"

namespace attest::fuzz {
namespace {

constexpr int latent_row = 576, tile_tokens = 32;
constexpr std::size_t most_pages = 8;

int bytes_of(cases::Format format) {
  return format == cases::Format::bf16 || format == cases::Format::f16 ? 2
         : format == cases::Format::f32                                ? 4
                                                                       : 1;
}

PagedCache of_decode(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
  PagedCache cache;
  cache.pool = "kv_pool";
  cache.page_table = "kv_page_indices";
  cache.page_size = p.page_size;
  cache.page_bytes = in.page_stride_bytes;
  cache.element_bytes = bytes_of(p.kv_format);
  cache.in_runs = p.kv_layout == cases::KvLayout::ds_page;
  cache.row_bytes = cache.in_runs ? std::uint64_t{reference::ds_row_bytes}
                                  : static_cast<std::uint64_t>(latent_row * cache.element_bytes);
  cache.num_splits = p.num_splits;
  for (const cases::Request& r : p.requests) cache.kv_len.push_back(r.kv_len);
  cache.indptr = &in.kv_indptr;
  cache.pages = &in.kv_page_indices;
  return cache;
}

std::string list_of(std::span<const std::int32_t> pages) {
  return fmt::format("{}{}", fmt::join(pages.first(std::min(pages.size(), most_pages)), ", "),
                     pages.size() > most_pages ? ", ..." : "");
}

}  // namespace

PagedCache::Spot PagedCache::spot(std::uint64_t in_page) const {
  const auto tokens = static_cast<std::uint64_t>(page_size);
  if (!in_runs || in_page >= tokens * row_bytes) {
    const std::uint64_t slot = in_page / row_bytes;
    return {slot, in_page % row_bytes, element_bytes, (slot + 1) * row_bytes, false};
  }
  constexpr std::uint64_t ends[] = {0, reference::ds_scale_at, reference::ds_rope_at,
                                    reference::ds_row_bytes};
  const int run = in_page < ends[1] * tokens ? 0 : in_page < ends[2] * tokens ? 1 : 2;
  const std::uint64_t begin = ends[run] * tokens, bytes = ends[run + 1] - ends[run];
  const std::uint64_t slot = (in_page - begin) / bytes, at = (in_page - begin) % bytes;
  constexpr int widths[] = {1, 4, 2};
  // Rope is columns 512 to 575.
  return {slot, run == 2 ? 2 * std::uint64_t{reference::latent_columns} + at : at, widths[run],
          begin + (slot + 1) * bytes, run == 1};
}

std::optional<PagedCache> paged_cache(const cases::Case& c, const cases::Inputs& inputs) {
  if (const auto* p = std::get_if<cases::MlaDecode>(&c.problem))
    return of_decode(*p, std::get<cases::MlaDecodeInputs>(inputs));
  if (const auto* p = std::get_if<cases::VerifyAttention>(&c.problem))
    return of_decode(cases::decode_problem(*p), std::get<cases::VerifyAttentionInputs>(inputs).decode);
  if (const auto* p = std::get_if<cases::MlaPrefill>(&c.problem)) {
    const auto& in = std::get<cases::MlaPrefillInputs>(inputs);
    PagedCache cache;
    cache.pool = "context_pool";
    cache.page_table = "page_indices";
    cache.page_size = p->page_size;
    cache.page_bytes = in.page_stride_bytes;
    cache.element_bytes = bytes_of(p->cache_format);
    cache.row_bytes = static_cast<std::uint64_t>(p->heads * cases::prefill_row_columns * cache.element_bytes);
    for (const cases::PrefillRequest& r : p->requests) cache.kv_len.push_back(r.context_len);
    cache.indptr = &in.page_indptr;
    cache.pages = &in.page_indices;
    return cache;
  }
  return std::nullopt;
}

std::optional<SeenKeys> seen_keys(const cases::Case& c, const cases::Inputs& inputs, int request,
                                  int position) {
  const std::optional<PagedCache> cache = paged_cache(c, inputs);
  if (!cache || request < 0 || request >= static_cast<int>(cache->kv_len.size())) return std::nullopt;
  SeenKeys keys;
  const int kv_len = cache->kv_len[static_cast<std::size_t>(request)];
  keys.visible = kv_len;
  if (const auto* p = std::get_if<cases::MlaDecode>(&c.problem); p != nullptr && p->causal)
    keys.visible = kv_len - p->requests[static_cast<std::size_t>(request)].q_len + position + 1;
  if (const auto* p = std::get_if<cases::VerifyAttention>(&c.problem))
    keys.visible = p->requests[static_cast<std::size_t>(request)].context_len + position + 1;
  keys.visible = std::clamp(keys.visible, 0, kv_len);
  keys.page_size = cache->page_size;
  for (int key = 0; key < keys.visible; key += cache->page_size)
    keys.pages.push_back(cache->page(request, key));
  keys.last_slot = keys.visible > 0 ? (keys.visible - 1) % cache->page_size : 0;
  const int tiles = (kv_len + tile_tokens - 1) / tile_tokens;
  const int each = std::max(1, (tiles + cache->num_splits - 1) / cache->num_splits) * tile_tokens;
  for (int split = 0; split < cache->num_splits; ++split)
    keys.split_ends.push_back(std::min(keys.visible, (split + 1) * each));
  return keys;
}

std::string pages_in_words(const cases::Case& c, const cases::Inputs& inputs, int request) {
  const std::optional<PagedCache> cache = paged_cache(c, inputs);
  if (!cache || request >= static_cast<int>(cache->kv_len.size())) return {};
  const int kv_len = cache->kv_len[static_cast<std::size_t>(request)];
  if (kv_len == 0) return "no pages";
  std::vector<std::int32_t> pages;
  for (int key = 0; key < kv_len; key += cache->page_size) pages.push_back(cache->page(request, key));
  return fmt::format("{} page{} of {} ({}), {} in the last", pages.size(), pages.size() == 1 ? "" : "s",
                     cache->page_size, list_of(pages), (kv_len - 1) % cache->page_size + 1);
}

std::string in_words(const SeenKeys& keys) {
  if (keys.visible == 0) return "sees no key";
  std::string text = fmt::format("sees keys 0 to {}: page{} {}, the last in slot {}", keys.visible - 1,
                                 keys.pages.size() == 1 ? "" : "s", list_of(keys.pages), keys.last_slot);
  if (keys.split_ends.size() < 2) return text;
  std::vector<std::string> splits;
  int begin = 0;
  for (const int end : keys.split_ends) {
    splits.push_back(end > begin ? fmt::format("{} to {}", begin, end - 1) : "none");
    begin = std::max(begin, end);
  }
  if (splits.size() > most_pages) splits.resize(most_pages), splits.emplace_back("...");
  return text + fmt::format("; splits of whole tiles of {}: {}", tile_tokens, fmt::join(splits, ", "));
}

}  // namespace attest::fuzz
