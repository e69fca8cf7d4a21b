// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <span>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/spec_verify_args.h"

namespace attest::device::contracts {
namespace {

class AttestSpecVerify final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::SpecVerify>(c.problem);
    const auto& in = std::get<cases::SpecVerifyInputs>(inputs);
    const hip::Function verify =
        function(gpu, "spec_verify", p.tree ? "spec_verify_tree" : "spec_verify_chain");

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    auto& cu_num_drafts = buffers.add_input("cu_num_drafts", in.cu_num_drafts);
    auto& draft_tokens = buffers.add_input("draft_tokens", in.draft_tokens);
    auto& greedy = buffers.add_input("greedy", in.greedy);
    auto& target_probs = buffers.add_input("target_probs", in.target_probs);
    auto& draft_probs = buffers.add_input("draft_probs", in.draft_probs);
    auto& uniforms = buffers.add_input("uniforms", in.uniforms);
    auto& exponentials = buffers.add_input("exponentials", in.exponentials);
    auto& bonus = buffers.add_input("bonus", in.bonus);
    auto& ancestors = buffers.add_input("ancestors", in.ancestors);
    auto& depth = buffers.add_input("depth", in.depth);
    const std::size_t rows = in.greedy.size() + static_cast<std::size_t>(p.padded_requests);
    const auto result = [&](const char* name, int width) -> hip::DeviceBuffer& {
      return buffers.add(
          name, cases::poison_integers(c, c.memory.output, rows * static_cast<std::size_t>(width), name));
    };
    auto& tokens = result("tokens", p.max_spec_len + 1);
    auto& nodes = result("nodes", p.max_spec_len);

    contract::SpecVerifyArgs args{};
    args.cu_num_drafts = cu_num_drafts.as<std::int32_t>();
    args.draft_tokens = draft_tokens.as<std::int32_t>();
    args.greedy = greedy.as<std::int32_t>();
    args.target_probs = target_probs.as<float>();
    args.draft_probs = p.draft_probs ? draft_probs.as<float>() : nullptr;
    args.uniforms = uniforms.as<double>();
    args.exponentials = exponentials.as<float>();
    args.bonus = bonus.as<std::int32_t>();
    args.ancestors = ancestors.as<std::uint32_t>();
    args.depth = depth.as<std::int32_t>();
    args.tokens = tokens.as<std::int32_t>();
    args.nodes = nodes.as<std::int32_t>();
    args.requests = static_cast<std::int32_t>(in.greedy.size());
    args.padded_requests = p.padded_requests;
    args.vocab = p.vocab;
    args.max_spec_len = p.max_spec_len;

    // Wave instructions: a walk over the drafts, each with a search over the vocabulary of up to 31 children.
    const std::uint64_t searches = in.uniforms.size() + rows;
    const std::uint64_t steps = static_cast<std::uint64_t>(p.vocab) / contract::verify_threads + 1;
    const std::uint64_t optimised = searches * (600 + steps * 300);
    if (!launch(gpu, verify, "spec_verify", {{static_cast<unsigned>(rows), 1, 1}, contract::verify_threads},
                args, optimised, outcome))
      return;
    outcome.outputs.tensors.push_back({"tokens", tokens.download()});
    outcome.outputs.tensors.push_back({"nodes", nodes.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_spec_verify(KernelList& list) {
  list.add<AttestSpecVerify>({.op = "spec_verify",
                              .objects = {"spec_verify"},
                              .precision = "bf16",
                              .supports =
                                  "chains with and without draft probabilities, trees of up to 31 nodes; "
                                  "greedy and random requests; any vocabulary"});
}

}  // namespace attest::device::contracts
