// SPDX-License-Identifier: MIT
//
// The axes of merge_states. Public reports put the faults of merges at the lse: two states without keys
// (vllm-project/vllm#27491), +inf for -inf (vllm-project/vllm#15492), the base (sgl-project/sglang#33064,
// #40903), rows that run out of keys in an early chunk (sgl-project/sglang#22688), exactly 16 splits
// (ROCm/aiter#4350); and at strides that differ between states (local-inference-lab/vllm#17).
#include <algorithm>

#include "fuzz/ops/draw.h"
#include "fuzz/ops/op_generator.h"
#include "fuzz/ops/simpler.h"

namespace attest::fuzz {
namespace {

using namespace cases;

StateLayout draw_layout() {
  StateLayout layout;
  if (coin()) layout.head_padding = any_of<int>({8, 64, 64, 128, 256});
  if (chance(1, 3)) layout.token_padding = any_of<int>({8, 16, 192});
  return layout;
}

Case draw_case() {
  MergeStates p;
  p.head_dim = chance(1, 2) ? any_of<int>({128, 512}) : any_of<int>({8, 16, 64, 72, 128, 192, 256, 512});
  const int states = any_of<int>({1, 2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 15, 16, 16, 17, 31, 32});
  p.heads = any_of<int>({1, 2, 3, 4, 5, 8, 16, 16, 24, 128});
  const int most_rows = std::clamp(60000 / (states * p.head_dim), 4, 400);
  p.heads = std::min(p.heads, most_rows);
  p.tokens = between(1, std::max(1, most_rows / p.heads));
  const bool padded = coin();
  const bool alike = coin();
  const StateLayout common = draw_layout();
  for (int s = 0; s < states; ++s) {
    p.states.emplace_back();
    if (padded) p.states.back() = alike ? common : draw_layout();
  }
  p.lse_base = coin() ? LseBase::e : LseBase::two;
  p.lse_layout = coin() ? LseLayout::heads_first : LseLayout::tokens_first;
  p.return_lse = !chance(1, 8);
  p.empty = any_of<Empties>({Empties::none, Empties::none, Empties::some, Empties::leading, Empties::rows});
  p.empty_lse =
      any_of<EmptyLse>({EmptyLse::minus_inf, EmptyLse::minus_inf, EmptyLse::plus_inf, EmptyLse::either});
  p.state_format = coin() ? Format::bf16 : Format::f32;
  p.out_format = coin() ? Format::bf16 : Format::f32;
  if (chance(1, 4)) {
    p.in_place = true;
    p.out_format = p.state_format;
  }

  Case c;
  c.data.fill =
      any_of<Fill>({Fill::normal, Fill::normal, Fill::constant_scores, Fill::wide_scores, Fill::cancelling});
  if (chance(1, 3)) {
    const std::vector<Poison> poisons = {Poison::nan, Poison::inf, Poison::large, Poison::stale,
                                         Poison::zero};
    c.memory.unused = any_of(poisons);
    c.memory.output = any_of(poisons);
  }
  if (chance(1, 8)) c.memory.guard_bytes = any_of<int>({256, 512, 65536});
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  c.problem = std::move(p);
  return c;
}

std::vector<Case> shrink(const Case& c) {
  std::vector<Case> simpler;
  const MergeStates& now = std::get<MergeStates>(c.problem);
  const auto with = [&](const auto& change) {
    Case s = c;
    change(std::get<MergeStates>(s.problem));
    if (s != c) simpler.push_back(std::move(s));
  };
  const int states = static_cast<int>(now.states.size());
  for (const int n : smaller({1, 2, 3, states / 2, 16, states - 1}, 1, states))
    with([n](MergeStates& p) { p.states.resize(static_cast<std::size_t>(n)); });
  for (const int n : smaller({1, 2, now.tokens / 2, now.tokens - 1}, 1, now.tokens))
    with([n](MergeStates& p) { p.tokens = n; });
  for (const int n : smaller({1, 2, 3, now.heads / 2, now.heads - 1}, 1, now.heads))
    with([n](MergeStates& p) { p.heads = n; });
  for (const int n : smaller({8, 16, 64, 128, now.head_dim / 16 * 8, now.head_dim - 8}, 8, now.head_dim))
    with([n](MergeStates& p) { p.head_dim = n; });
  with([](MergeStates& p) { std::fill(p.states.begin(), p.states.end(), StateLayout{}); });
  for (std::size_t s = 0; s < now.states.size(); ++s) {
    with([s](MergeStates& p) { p.states[s] = {}; });
    with([s](MergeStates& p) { p.states[s].token_padding = 0; });
    with([s](MergeStates& p) { p.states[s].head_padding = 0; });
    with([s](MergeStates& p) { p.states[s].head_padding = std::min(p.states[s].head_padding, 8); });
    with([s](MergeStates& p) { p.states[s].token_padding = std::min(p.states[s].token_padding, 8); });
  }
  with([](MergeStates& p) { p.in_place = false; });
  with([](MergeStates& p) {
    p.in_place = false;
    p.state_format = p.out_format = Format::bf16;
  });
  with([](MergeStates& p) { p.state_format = p.out_format = Format::bf16; });
  with([](MergeStates& p) { p.state_format = Format::bf16; });
  with([](MergeStates& p) { p.out_format = Format::bf16; });
  with([](MergeStates& p) { p.empty = Empties::none; });
  for (const Empties e : {Empties::some, Empties::leading})
    if (e < now.empty) with([e](MergeStates& p) { p.empty = e; });
  with([](MergeStates& p) { p.empty_lse = EmptyLse::minus_inf; });
  if (now.empty_lse == EmptyLse::either) with([](MergeStates& p) { p.empty_lse = EmptyLse::plus_inf; });
  with([](MergeStates& p) { p.lse_base = LseBase::e; });
  with([](MergeStates& p) { p.lse_layout = LseLayout::heads_first; });
  with([](MergeStates& p) { p.return_lse = true; });
  return simpler;
}

std::int64_t complexity(const Case& c) {
  const MergeStates& p = std::get<MergeStates>(c.problem);
  std::int64_t sum = p.tokens + p.heads + p.head_dim + static_cast<std::int64_t>(p.empty) +
                     static_cast<std::int64_t>(p.empty_lse) + (p.lse_base == LseBase::e ? 0 : 1) +
                     (p.lse_layout == LseLayout::heads_first ? 0 : 1) + (p.in_place ? 1 : 0) +
                     (p.return_lse ? 0 : 1) + (p.state_format == Format::bf16 ? 0 : 1) +
                     (p.out_format == Format::bf16 ? 0 : 1);
  for (const StateLayout& s : p.states) sum += 1 + s.head_padding / 8 + s.token_padding / 8;
  return sum;
}

/// A row takes a wave some hundred instructions and ten for each state and 128 columns: 16 rows of two states
/// are a unit.
std::int64_t work(const Case& c) {
  const MergeStates& p = std::get<MergeStates>(c.problem);
  const auto states = static_cast<std::int64_t>(p.states.size());
  return std::int64_t{p.tokens} * p.heads * (8 + states * (1 + p.head_dim / 128)) / 64 + 1;
}

}  // namespace

const OpGenerator merge_states_generator{draw_case, shrink, complexity, work};

}  // namespace attest::fuzz
