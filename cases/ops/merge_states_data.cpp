// SPDX-License-Identifier: MIT
//
// Values of partial states. The lse decides everything, so that is what the fills differ in:
//
//   normal           out N(0,1)                        lse 3 + 2 N(0,1)
//   constant_scores  out +-1                           one lse for all states of a row
//   wide_scores      out N(0,1)                        lse f N(0,1), f in 20..200 per row: one state has it
//   all cancelling       states in pairs, o and o/16 - o   one lse for a pair: the result is small beside its
//   parts
#include <array>
#include <cstring>
#include <limits>

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/ops/merge_states.h"
#include "cases/poison.h"
#include "cases/random.h"
#include "reference/formats.h"

namespace attest::cases {
namespace {

constexpr int most_columns = 512;

class StateMaker {
 public:
  StateMaker(const Case& c, const MergeStates& p) : seed_(c.seed), fill_(c.data.fill), p_(p) {}

  [[nodiscard]] bool empty(int state, int token, int head) const {
    const int states = static_cast<int>(p_.states.size());
    switch (p_.empty) {
      case Empties::none:
        return false;
      case Empties::some:
        return choice(state, token, head).below(0, 3) == 0;
      case Empties::leading:
        return state <
               static_cast<int>(row_choice(token, head).below(0, static_cast<std::uint32_t>(states) + 1));
      case Empties::rows:
        return (token + head) % 2 == 0;
    }
    return false;
  }

  [[nodiscard]] float lse(int state, int token, int head) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (empty(state, token, head)) {
      if (p_.empty_lse == EmptyLse::minus_inf) return -infinity;
      if (p_.empty_lse == EmptyLse::plus_inf) return infinity;
      return choice(state, token, head).below(1, 2) == 0 ? infinity : -infinity;
    }
    switch (fill_) {
      case Fill::constant_scores:
        return 2 + normal_of(row_choice(token, head));
      case Fill::cancelling:
        return 2 + normal_of(choice(state & ~1, token, head));
      case Fill::wide_scores: {
        constexpr std::array<float, 6> factors = {20, 32, 50, 80, 126, 200};
        return factors[row_choice(token, head).below(1, 6)] * normal_of(choice(state, token, head));
      }
      default:
        return 3 + 2 * normal_of(choice(state, token, head));
    }
  }

  /// head_dim values.
  void out(int state, int token, int head, float* values) const {
    const bool paired = fill_ == Fill::cancelling;
    std::array<std::uint16_t, most_columns> halves;
    draw_out(paired ? state & ~1 : state, token, head, halves.data());
    if (fill_ == Fill::constant_scores) {
      for (int d = 0; d < p_.head_dim; ++d)
        values[d] = (halves[static_cast<std::size_t>(d)] & 0x8000U) != 0 ? -1.0F : 1.0F;
      return;
    }
    normals(halves.data(), p_.head_dim, values);
    if (!paired || state % 2 == 0) return;
    std::array<float, most_columns> own;
    draw_out(state, token, head, halves.data());
    normals(halves.data(), p_.head_dim, own.data());
    for (int d = 0; d < p_.head_dim; ++d) values[d] = own[static_cast<std::size_t>(d)] / 16 - values[d];
  }

 private:
  // Rows among 128 heads, so that fewer heads leave the others' values alone.
  [[nodiscard]] static std::uint32_t row(int token, int head) {
    return static_cast<std::uint32_t>(token * 128 + head);
  }
  void draw_out(int state, int token, int head, std::uint16_t* halves) const {
    Counter(seed_, Draw::state_out, static_cast<std::uint32_t>(state), row(token, head))
        .halves(0, p_.head_dim, halves);
  }
  [[nodiscard]] Counter choice(int state, int token, int head) const {
    return {seed_, Draw::state_lse, static_cast<std::uint32_t>(state), row(token, head)};
  }
  [[nodiscard]] Counter row_choice(int token, int head) const {
    return {seed_, Draw::state_lse, 0xffffU, row(token, head)};
  }
  [[nodiscard]] static float normal_of(const Counter& counter) {
    const auto half = static_cast<std::uint16_t>(counter.word(4));
    float value = 0;
    normals(&half, 1, &value);
    return value;
  }

  std::uint64_t seed_;
  Fill fill_;
  const MergeStates& p_;
};

}  // namespace

MergeStatesInputs materialise(const Case& c, const MergeStates& p) {
  const StateMaker maker(c, p);
  const reference::Format format = reference_format(p.state_format);
  const std::size_t element = element_bytes(p.state_format);
  MergeStatesInputs in;
  for (std::size_t s = 0; s < p.states.size(); ++s) {
    const StateLayout& layout = p.states[s];
    MergeStatesInputs::State& state = in.states.emplace_back();
    state.out = poison_bytes(c, c.memory.unused, p.state_format, static_cast<std::size_t>(p.elements(layout)),
                             "state " + std::to_string(s));
    state.lse.resize(static_cast<std::size_t>(p.tokens) * static_cast<std::size_t>(p.heads));
    std::array<float, most_columns> values;
    const int index = static_cast<int>(s);
    for (int token = 0; token < p.tokens; ++token)
      for (int head = 0; head < p.heads; ++head) {
        state.lse[static_cast<std::size_t>(p.lse_index(token, head))] = maker.lse(index, token, head);
        if (maker.empty(index, token, head)) continue;
        maker.out(index, token, head, values.data());
        std::byte* to =
            state.out.data() +
            static_cast<std::size_t>(token * p.token_stride(layout) + head * p.head_stride(layout)) * element;
        for (int d = 0; d < p.head_dim; ++d) {
          const std::uint32_t code = reference::encode(format, double{values[static_cast<std::size_t>(d)]},
                                                       reference::Overflow::saturate);
          std::memcpy(to + static_cast<std::size_t>(d) * element, &code, element);
        }
      }
  }
  return in;
}

}  // namespace attest::cases
