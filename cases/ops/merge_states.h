// SPDX-License-Identifier: MIT
//
// op merge_states: partial attention results of the same query rows over disjoint keys, merged into one
// (reference/merge.h). What chunked context does with its chunks, split KV with its splits, and context
// parallelism with its ranks.
//
//   "shape": {"tokens": 3, "heads": 2, "head_dim": 128, "states": [{"head_padding": 64, "token_padding": 0},
//             {"head_padding": 0, "token_padding": 0}], "lse_base": "e", "lse_layout": "heads_first",
//             "in_place": false, "return_lse": true, "empty": "some", "empty_lse": "either"},
//   "formats": {"state": "bf16", "out": "bf16"}
//
// A state without keys says so by an lse of -inf or +inf (FlashAttention-2 writes the latter); its out is
// garbage that must not be read. Each state has strides of its own: out of one lies contiguous, of another
// in rows padded to the width of K (github.com/local-inference-lab/vllm/pull/17).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cases/vocabulary.h"

namespace attest::cases {

struct Case;
class JsonObject;
class JsonWriter;

enum class LseBase : std::uint8_t { e, two };
enum class LseLayout : std::uint8_t { heads_first, tokens_first };  ///< [heads, tokens], [tokens, heads]
/// Which states of a row have no keys.
enum class Empties : std::uint8_t {
  none,
  some,     ///< a third of them
  leading,  ///< the first k of a row, k in 0..states
  rows,     ///< all states of every second row, none of the others
};
enum class EmptyLse : std::uint8_t { minus_inf, plus_inf, either };

std::span<const char* const> names(LseBase);
std::span<const char* const> names(LseLayout);
std::span<const char* const> names(Empties);
std::span<const char* const> names(EmptyLse);

/// Elements that lie behind every head and behind every token of a state; both multiples of 8.
struct StateLayout {
  int head_padding = 0;   ///< 0..256
  int token_padding = 0;  ///< 0..256
  bool operator==(const StateLayout&) const = default;
};

struct MergeStates {
  static constexpr const char* op = "merge_states";

  int tokens = 1;                   ///< 1..4096
  int heads = 1;                    ///< 1..128
  int head_dim = 128;               ///< 8..512, a multiple of 8
  std::vector<StateLayout> states;  ///< 1..32
  LseBase lse_base = LseBase::e;    ///< of the states and of the result
  LseLayout lse_layout = LseLayout::heads_first;
  bool in_place = false;  ///< the result goes where state 0 is; needs equal formats
  bool return_lse = true;
  Empties empty = Empties::none;
  EmptyLse empty_lse = EmptyLse::minus_inf;
  Format state_format = Format::bf16;  ///< bf16 or f32
  Format out_format = Format::bf16;    ///< bf16 or f32
  bool operator==(const MergeStates&) const = default;

  [[nodiscard]] std::int64_t head_stride(const StateLayout& layout) const {
    return head_dim + layout.head_padding;
  }
  [[nodiscard]] std::int64_t token_stride(const StateLayout& layout) const {
    return heads * head_stride(layout) + layout.token_padding;
  }
  /// Elements of a state's buffer.
  [[nodiscard]] std::int64_t elements(const StateLayout& layout) const {
    return tokens * token_stride(layout);
  }
  /// The result lies as state 0 does when in place, contiguous otherwise.
  [[nodiscard]] StateLayout out_layout() const { return in_place ? states.front() : StateLayout{}; }
  /// Place of a row in every lse.
  [[nodiscard]] std::int64_t lse_index(int token, int head) const {
    return lse_layout == LseLayout::heads_first ? std::int64_t{head} * tokens + token
                                                : std::int64_t{token} * heads + head;
  }
};

struct MergeStatesInputs {
  struct State {
    std::vector<std::byte> out;  ///< [tokens, heads, head_dim] with the state's strides, in state_format
    std::vector<float> lse;      ///< in lse_layout and lse_base
  };
  std::vector<State> states;
};

void read(const JsonObject& root, MergeStates& p);
void write(JsonWriter& writer, const MergeStates& p);
/// Throws CaseError: formats other than bf16 and f32; in_place with different ones; a fill other than normal,
/// constant_scores, wide_scores and cancelling; more than 2^24 elements in a state.
void validate(const Case& c, const MergeStates& p);
MergeStatesInputs materialise(const Case& c, const MergeStates& p);

}  // namespace attest::cases
