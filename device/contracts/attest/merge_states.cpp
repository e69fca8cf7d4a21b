// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/merge_states_args.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

class AttestMergeStates final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::MergeStates>(c.problem);
    if (p.states.size() > contract::max_merged_states)
      return fmt::format("shape.states has {} entries; it takes 1..{}", p.states.size(),
                         contract::max_merged_states);
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::MergeStates>(c.problem);
    const auto& in = std::get<cases::MergeStatesInputs>(inputs);
    const hip::Function merge =
        function(gpu, "merge_states",
                 fmt::format("merge_states_{}_{}", cases::name(p.state_format), cases::name(p.out_format)));

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    std::vector<contract::MergedStateArgs> states;
    std::vector<const hip::DeviceBuffer*> state_out, state_lse;
    for (std::size_t s = 0; s < in.states.size(); ++s) {
      const std::string name = fmt::format("out of state {}", s);
      const bool written = s == 0 && p.in_place;
      state_out.push_back(written ? &buffers.add(name, in.states[s].out, p.state_format)
                                  : &buffers.add_input(name, in.states[s].out, p.state_format));
      state_lse.push_back(&buffers.add_input(fmt::format("lse of state {}", s), in.states[s].lse));
      states.push_back({state_out.back()->data(), state_lse.back()->as<float>(), p.token_stride(p.states[s]),
                        p.head_stride(p.states[s])});
    }
    const auto& table = buffers.add_input("states", states);
    const cases::StateLayout layout = p.out_layout();
    const auto elements = static_cast<std::uint64_t>(p.elements(layout));
    const hip::DeviceBuffer& out =
        p.in_place ? *state_out.front()
                   : buffers.add_unwritten(
                         "out", cases::poison_bytes(c, c.memory.output, p.out_format, elements, "out"),
                         p.out_format);
    const auto rows = static_cast<std::uint64_t>(p.tokens) * static_cast<std::uint64_t>(p.heads);
    const auto& lse = buffers.add_unwritten(
        "lse", cases::poison_bytes(c, c.memory.output, Format::f32, p.return_lse ? rows : 0, "lse"));

    contract::MergeStatesArgs args{};
    args.state = table.as<contract::MergedStateArgs>();
    args.out = out.data();
    args.lse = p.return_lse ? lse.as<float>() : nullptr;
    args.out_token_stride = p.token_stride(layout);
    args.out_head_stride = p.head_stride(layout);
    args.lse_token_stride = p.lse_index(1, 0);
    args.lse_head_stride = p.lse_index(0, 1);
    args.states = static_cast<std::int32_t>(p.states.size());
    args.tokens = p.tokens;
    args.heads = p.heads;
    args.head_dim = p.head_dim;
    args.base_two = p.lse_base == cases::LseBase::two ? 1 : 0;
    const hip::Geometry geometry{{ceil_div(static_cast<std::int64_t>(rows), contract::rows_per_merge), 1, 1},
                                 contract::merge_threads};
    // A row takes about 100 wave instructions and 20 for each state and 128 columns; few rows fill no workgroup.
    const std::uint64_t optimised = rows * (500 + 300 * in.states.size());
    if (!launch(gpu, merge, "merge_states", geometry, args, optimised, outcome)) return;

    outcome.outputs.tensors.push_back({"out", out.download()});
    if (p.return_lse) outcome.outputs.tensors.push_back({"lse", lse.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_merge_states(KernelList& list) {
  list.add<AttestMergeStates>({.op = "merge_states",
                               .objects = {"merge_states"},
                               .precision = "fp32p",
                               .supports =
                                   "states bf16 or f32; out bf16 or f32; 1..32 states of any strides; "
                                   "lse to base e or 2; in place"});
}

}  // namespace attest::device::contracts
