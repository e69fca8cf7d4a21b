// SPDX-License-Identifier: MIT
//
// The axes of mla_prefill. Context lengths around multiples of the chunk, unequal ones in a batch, so that
// some run out of keys in an early chunk (sgl-project/sglang#22688, vllm-project/vllm#27491); requests
// without context beside such with (vllm-project/vllm#15492); more keys than queries and fewer
// (ROCm/rocm-libraries #10999); V of another stride than K (local-inference-lab/vllm#17); lengths off every
// tile (ROCm/rocm-libraries#10309).
#include <algorithm>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

/// A row and key take a wave some 50 instructions; 50 of them are a unit.
constexpr std::int64_t row_keys_per_unit = 50;

std::int64_t work(const Case& c) {
  const MlaPrefill& p = std::get<MlaPrefill>(c.problem);
  std::int64_t row_keys = 0;
  for (const PrefillRequest& r : p.requests)
    row_keys += std::int64_t{r.q_len} * (r.kv_len + r.context_len + 4 * (p.chunks() + 1));
  return p.heads * row_keys / row_keys_per_unit + 1;
}

int draw_context(const MlaPrefill& p, int cap) {
  if (chance(1, 5)) return 0;
  if (chance(1, 2)) return between(1, cap);
  const int around = chance(1, 2) ? p.chunk_len : p.page_size;
  return std::clamp(around * between(0, 3) + between(-1, 1), 0, cap);
}

Case draw_case() {
  MlaPrefill p;
  p.heads = any_of<int>({1, 1, 2, 2, 3, 4, 5, 8, 16});
  p.page_size = coin() ? any_of<int>({1, 1, 16, 64}) : any_of<int>({1, 2, 3, 5, 16, 32, 48, 64, 256});
  p.chunk_len = any_of<int>({1, 2, 3, 5, 8, 16, 16, 17, 24, 32, 32, 48, 64, 100, 128});
  p.v_stride = any_of<int>({128, 128, 136, 192, 256, 256, 512});
  const std::int64_t budget = any_of<int>({60, 100, 150, 200, 300, 500, 900}) * row_keys_per_unit / p.heads;
  const int batch = between(1, 4);
  const bool contexts = !chance(1, 6);
  const bool square = coin();
  for (int i = 0; i < batch; ++i) {
    PrefillRequest r;
    const auto share = static_cast<int>(budget / batch);
    r.q_len = between(1, std::clamp(share / 24, 1, chance(1, 4) ? 40 : 9));
    const int cap = std::clamp(share / r.q_len - 8, 4, 200);
    r.kv_len = square ? r.q_len : std::max(0, r.q_len + between(-4, std::min(cap, 40)));
    r.context_len = contexts ? draw_context(p, std::min(cap, 31 * p.chunk_len)) : 0;
    p.requests.push_back(r);
  }
  if (chance(1, 4))
    for (PrefillRequest& r : p.requests)
      if (chance(1, 3))
        r = {.q_len = coin() ? 0 : r.q_len,
             .kv_len = coin() ? 0 : r.kv_len,
             .context_len = coin() ? 0 : r.context_len};
  // A batch in which nobody sees a key proves nothing.
  const auto sees = [](const PrefillRequest& r) {
    return r.q_len > 0 && (r.kv_len > 0 || r.context_len > 0);
  };
  if (std::none_of(p.requests.begin(), p.requests.end(), sees))
    p.requests.front() = {.q_len = 2, .kv_len = 3, .context_len = 1};
  p.return_lse = !chance(1, 8);

  Case c;
  c.data.fill =
      any_of<Fill>({Fill::normal, Fill::normal, Fill::normal, Fill::mean_shifted, Fill::position_coded,
                    Fill::constant_scores, Fill::wide_scores, Fill::negative_offset});
  if (chance(1, 3)) p.qkv_format = Format::fp8_e4m3fnuz;
  if (chance(1, 3)) {
    p.cache_format = Format::fp8_e4m3fnuz;
    if (coin())
      p.kv_scale = c.data.fill == Fill::constant_scores ? any_of<float>({0.0625F, 0.5F, 2.0F, 16.0F})
                                                        : any_of<float>({0.07F, 0.37F, 0.5F, 3.1F, 15.0F});
  }
  if (chance(1, 4)) p.sm_scale = any_of<float>({0.11472F, 0.041666668F, 0.0625F});
  MemoryRecipe& m = c.memory;
  m.placement =
      any_of<Placement>({Placement::ordered, Placement::shuffled, Placement::shuffled, Placement::reversed});
  if (chance(1, 4)) m.page_padding_bytes = any_of<int>({16, 48, 128, 1024});
  if (chance(1, 3)) {
    const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale,
                                         Poison::zero};
    m.unused = any_of(poisons);
    m.output = any_of(poisons);
    m.scratch = any_of(poisons);
  }
  if (chance(1, 8)) m.guard_bytes = any_of<int>({256, 512, 65536});
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  std::vector<Case> simpler;
  const MlaPrefill& now = std::get<MlaPrefill>(c.problem);
  const auto with = [&](const auto& change) {
    Case s = c;
    auto& p = std::get<MlaPrefill>(s.problem);
    change(p);
    const bool any_query = std::any_of(p.requests.begin(), p.requests.end(),
                                       [](const PrefillRequest& r) { return r.q_len > 0; });
    if (any_query && s != c) simpler.push_back(std::move(s));
  };
  const std::size_t batch = now.requests.size();
  for (std::size_t i = 0; batch > 1 && i < batch; ++i)
    with([&](MlaPrefill& p) { p.requests = {now.requests[i]}; });
  for (std::size_t i = 0; batch > 1 && i < batch; ++i)
    with([&](MlaPrefill& p) { p.requests.erase(p.requests.begin() + static_cast<std::ptrdiff_t>(i)); });
  for (std::size_t i = 0; i < batch; ++i) {
    const PrefillRequest& r = now.requests[i];
    const int context = r.context_len;
    for (const int n : smaller(
             {0, 1, 2, now.chunk_len, now.chunk_len + 1, context / 2, context - now.chunk_len, context - 1},
             0, context))
      with([&](MlaPrefill& p) { p.requests[i].context_len = n; });
    for (const int n : smaller({0, 1, 2, 3, r.q_len / 2, r.q_len - 1}, 0, r.q_len)) {
      with([&](MlaPrefill& p) { p.requests[i].q_len = n; });
      if (r.kv_len >= r.q_len - n)
        with([&](MlaPrefill& p) { p.requests[i] = {n, r.kv_len - (r.q_len - n), context}; });
    }
    for (const int n : smaller({0, 1, 2, r.q_len, r.q_len + 1, r.kv_len / 2, r.kv_len - 1}, 0, r.kv_len))
      with([&](MlaPrefill& p) { p.requests[i].kv_len = n; });
  }
  for (const int n : smaller({1, 2, 3, now.heads / 2, now.heads - 1}, 1, now.heads))
    with([n](MlaPrefill& p) { p.heads = n; });
  for (const int n : smaller({1, 2, 3, 16, now.page_size / 2, now.page_size - 1}, 1, now.page_size))
    with([n](MlaPrefill& p) { p.page_size = n; });
  for (const int n : smaller({1, 2, 3, 16, now.chunk_len / 2, now.chunk_len - 1}, 1, now.chunk_len))
    with([n](MlaPrefill& p) { p.chunk_len = n; });
  for (const int n : smaller({128, 136, 192}, 128, now.v_stride))
    with([n](MlaPrefill& p) { p.v_stride = n; });
  with([](MlaPrefill& p) { p.qkv_format = Format::bf16; });
  with([](MlaPrefill& p) {
    p.cache_format = Format::bf16;
    p.kv_scale = 1.0F;
  });
  with([](MlaPrefill& p) { p.kv_scale = 1.0F; });
  if (scale_rank(now.kv_scale) == 2) with([](MlaPrefill& p) { p.kv_scale = power_of_two_near(p.kv_scale); });
  with([](MlaPrefill& p) { p.sm_scale = MlaPrefill{}.sm_scale; });
  with([](MlaPrefill& p) { p.return_lse = true; });
  return simpler;
}

std::int64_t complexity(const Case& c) {
  const MlaPrefill& p = std::get<MlaPrefill>(c.problem);
  std::int64_t sum = p.heads + p.page_size + p.chunk_len + (p.v_stride - 128) / 8 + (p.return_lse ? 0 : 1) +
                     (p.qkv_format == Format::bf16 ? 0 : 1) + (p.cache_format == Format::bf16 ? 0 : 1) +
                     scale_rank(p.kv_scale) + (p.sm_scale == MlaPrefill{}.sm_scale ? 0 : 1);
  for (const PrefillRequest& r : p.requests) sum += 1 + r.q_len + r.kv_len + r.context_len;
  return sum;
}

}  // namespace

const OpGenerator mla_prefill_generator{draw_case, shrink, complexity, work};

}  // namespace attest::fuzz
