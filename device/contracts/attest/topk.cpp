// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/topk_args.h"

namespace attest::device::contracts {
namespace {

class AttestTopK final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::TopK>(c.problem);
    const auto& in = std::get<cases::TopKInputs>(inputs);
    const bool prefill = p.form == cases::TopKForm::prefill;
    const hip::Function select = function(gpu, "topk", prefill ? "topk_prefill" : "topk_decode");
    const std::size_t rows = in.row_begin.size();

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& logits = buffers.add_input("logits", in.logits);
    const auto& row_begin = buffers.add_input("row_begin", in.row_begin);
    const auto& row_end = buffers.add_input("row_end", in.row_end);
    const auto& kv_lens = buffers.add_input("kv_lens", in.kv_lens);
    const std::vector<std::int32_t> before =
        cases::poison_integers(c, c.memory.output, rows * static_cast<std::size_t>(p.k), "positions");
    const auto& positions = buffers.add_unwritten("positions", std::as_bytes(std::span(before)));

    contract::TopKArgs args{};
    args.logits = logits.as<float>();
    args.row_begin = prefill ? row_begin.as<std::int32_t>() : nullptr;
    args.row_end = prefill ? row_end.as<std::int32_t>() : nullptr;
    args.kv_lens = prefill ? nullptr : kv_lens.as<std::int32_t>();
    args.positions = positions.as<std::int32_t>();
    args.row_stride = in.row_stride;
    args.k = p.k;
    args.next_n = in.next_n;
    args.absolute = p.coordinates == cases::Coordinates::absolute ? 1 : 0;
    // Five passes over the columns of a row, and 256 counters to clear and to sum in four of them.
    std::uint64_t columns = 0;
    for (std::size_t row = 0; row < rows; ++row)
      columns += static_cast<std::uint64_t>(std::max(in.row_end[row] - in.row_begin[row], 0));
    const std::uint64_t optimised = 4000 * std::uint64_t{rows} + 4 * columns;
    const hip::Geometry geometry{{static_cast<unsigned>(rows), 1, 1}, contract::topk_threads};
    if (!launch(gpu, select, prefill ? "topk_prefill" : "topk_decode", geometry, args, optimised, outcome))
      return;

    outcome.outputs.tensors.push_back({"positions", positions.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_topk(KernelList& list) {
  list.add<AttestTopK>(
      {.op = "topk",
       .objects = {"topk"},
       .precision = "bf16",
       .supports = "k 1..2048, f32 scores; ascending positions, first of equal scores, NaN ordered"});
}

}  // namespace attest::device::contracts
