// SPDX-License-Identifier: MIT
#include <cstdint>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/indexer_logits_args.h"
#include "device/contracts/attest/kernels.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

class AttestIndexerLogits final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::IndexerLogits>(c.problem);
    const auto& in = std::get<cases::IndexerLogitsInputs>(inputs);
    const bool decode = p.form == cases::TopKForm::decode;
    const std::string symbol = decode ? "indexer_logits_decode" : "indexer_logits_prefill";
    const hip::Function kernel = function(gpu, "indexer_logits", symbol);
    const std::size_t rows = in.row_begin.size();

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, Format::fp8_e4m3fnuz);
    const auto& q_scale = buffers.add_input("q_scale", in.q_scale);
    const auto& weights = buffers.add_input("weights", in.weights);
    const auto& keys = buffers.add_input("keys", in.keys, Format::fp8_e4m3fnuz);
    const auto& k_scale = buffers.add_input("k_scale", in.k_scale);
    const auto& pool = buffers.add_input("pool", in.pool, Format::fp8_e4m3fnuz);
    const auto& row_begin = buffers.add_input("row_begin", in.row_begin);
    const auto& row_end = buffers.add_input("row_end", in.row_end);
    const auto& kv_lens = buffers.add_input("kv_lens", in.kv_lens);
    const auto& block_table = buffers.add_input("block_table", in.block_table);
    const auto& logits = buffers.add_unwritten(
        "logits", cases::poison_bytes(c, c.memory.output, Format::f32,
                                      rows * static_cast<std::size_t>(in.width), "logits"));

    contract::IndexerLogitsArgs args{};
    args.q = q.data();
    args.q_scale = q_scale.as<float>();
    args.weights = weights.as<float>();
    args.keys = decode ? pool.data() : keys.data();
    args.k_scale = decode ? nullptr : k_scale.as<float>();
    args.row_begin = decode ? nullptr : row_begin.as<std::int32_t>();
    args.row_end = decode ? nullptr : row_end.as<std::int32_t>();
    args.kv_lens = decode ? kv_lens.as<std::int32_t>() : nullptr;
    args.block_table = decode ? block_table.as<std::int32_t>() : nullptr;
    args.logits = logits.as<float>();
    args.page_stride = in.page_stride_bytes;
    args.heads = p.heads;
    args.width = in.width;
    args.page_size = p.page_size;
    args.next_n = in.next_n;
    args.table_stride = in.table_stride;
    const hip::Geometry geometry{{static_cast<unsigned>(rows), ceil_div(in.width, contract::indexer_tile), 1},
                                 contract::indexer_threads};
    const std::uint64_t optimised = std::uint64_t{geometry.grid[0]} * geometry.grid[1] *
                                    (1600 + 80 * static_cast<std::uint64_t>(p.heads));
    if (!launch(gpu, kernel, symbol, geometry, args, optimised, outcome)) return;

    outcome.outputs.tensors.push_back({"logits", logits.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_indexer_logits(KernelList& list) {
  list.add<AttestIndexerLogits>(
      {.op = "indexer_logits",
       .objects = {"indexer_logits"},
       .precision = "bf16",
       .supports = "fp8_e4m3fnuz, 1..128 heads, prefill ranges and paged decode with next_n 1..8"});
}

}  // namespace attest::device::contracts
