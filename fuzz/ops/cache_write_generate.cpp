// SPDX-License-Identifier: MIT
//
// cache_write. A handful of tokens; what varies is where they go and how they are written.
#include <algorithm>
#include <functional>

#include "cases/paging.h"
#include "fuzz/ops/draw.h"
#include "fuzz/ops/draw_memory.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/shrink_requests.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

bool grouped(CacheLayout layout) {
  return layout == CacheLayout::ds_mla || layout == CacheLayout::indexer;
}

/// What the layout has no use for goes back to its default.
void fit_layout(CacheWrite& p) {
  const CacheWrite plain;
  if (!grouped(p.layout)) {
    p.scale_format = plain.scale_format;
    p.ceiling = plain.ceiling;
  }
  if (p.layout == CacheLayout::bf16) p.convention = plain.convention;
  if (p.layout != CacheLayout::fp8) p.kv_scale = plain.kv_scale;
}

Case draw_case() {
  CacheWrite p;
  p.layout = any_of<CacheLayout>({CacheLayout::bf16, CacheLayout::fp8, CacheLayout::fp8, CacheLayout::ds_mla,
                                  CacheLayout::ds_mla, CacheLayout::indexer, CacheLayout::indexer});
  p.page_size = any_of<int>({1, 1, 2, 3, 16, 16, 48, 64, 64, 128, 256});
  if (coin()) p.convention = coin() ? ScaleConvention::reciprocal : ScaleConvention::either;
  if (coin()) p.scale_format = ScaleFormat::ue8m0;
  if (coin()) p.ceiling = 240;
  if (coin()) p.kv_scale = any_of<float>({0.0625F, 0.06F, 0.37F, 0.5F, 7.0F, 3.1F, 7.3F, 64.0F});
  if (chance(1, 3)) p.padding_tokens = between(1, 5);
  p.skip_tokens = chance(1, 4);
  fit_layout(p);
  const int batch = between(1, 5);
  for (int i = 0; i < batch; ++i) {
    Request r;
    r.q_len = any_of<int>({1, 1, 1, 2, 3, 5, between(1, 20)});
    if (i > 0 && chance(1, 8)) r.q_len = 0;
    r.kv_len = r.q_len + (chance(1, 3) ? 0 : between(0, chance(1, 4) ? 300 : 40));
    p.requests.push_back(r);
  }
  Case c;
  if (chance(3, 5))
    c.data.fill =
        any_of<Fill>({Fill::outlier_channels, Fill::tiny, Fill::tiny, Fill::saturating, Fill::exact});
  c.memory = draw_memory(cache_shape(p));
  c.memory.prefix_sharing = false;
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  const auto& problem = std::get<CacheWrite>(c.problem);
  std::vector<Case> candidates;
  const auto with = [&](const std::function<void(CacheWrite&)>& change) {
    Case s = c;
    change(std::get<CacheWrite>(s.problem));
    if (s != c) candidates.push_back(std::move(s));
  };
  for (const std::vector<Request>& simpler : simpler_requests(problem.requests, problem.page_size))
    with([&](CacheWrite& p) { p.requests = simpler; });
  for (std::size_t i = 0; i < problem.requests.size(); ++i)  // only the new tokens
    with([&](CacheWrite& p) { p.requests[i].kv_len = p.requests[i].q_len; });
  for (const int page :
       smaller({1, 2, 3, 16, problem.page_size / 2, problem.page_size - 1}, 1, problem.page_size))
    with([&](CacheWrite& p) { p.page_size = page; });
  for (const int padding : smaller({0, 1}, 0, problem.padding_tokens))
    with([&](CacheWrite& p) { p.padding_tokens = padding; });
  with([](CacheWrite& p) { p.skip_tokens = false; });
  for (int layout = 0; layout < static_cast<int>(problem.layout); ++layout)
    with([&](CacheWrite& p) {
      p.layout = static_cast<CacheLayout>(layout);
      fit_layout(p);
    });
  with([](CacheWrite& p) { p.convention = ScaleConvention::divide; });
  with([](CacheWrite& p) { p.scale_format = ScaleFormat::f32; });
  with([](CacheWrite& p) { p.ceiling = 224; });
  with([](CacheWrite& p) { p.kv_scale = 1.0F; });
  if (scale_rank(problem.kv_scale) == 2)
    with([](CacheWrite& p) { p.kv_scale = power_of_two_near(p.kv_scale); });
  return candidates;
}

std::int64_t complexity_of(const Case& c) {
  const auto& p = std::get<CacheWrite>(c.problem);
  return static_cast<int>(p.layout) + p.page_size + (p.convention == ScaleConvention::divide ? 0 : 1) +
         static_cast<int>(p.scale_format) + (p.ceiling == 224 ? 0 : 1) + p.padding_tokens +
         (p.skip_tokens ? 1 : 0) + (p.fp8_format == Format::fp8_e4m3fnuz ? 0 : 1) + scale_rank(p.kv_scale) +
         request_complexity(p.requests);
}

std::int64_t work_of(const Case& c) {
  const auto& p = std::get<CacheWrite>(c.problem);
  std::int64_t tokens = p.padding_tokens;
  for (const Request& r : p.requests) tokens += r.q_len;
  return 1 + tokens;
}

}  // namespace

const OpGenerator cache_write_generator{draw_case, shrink, complexity_of, work_of};

}  // namespace attest::fuzz
