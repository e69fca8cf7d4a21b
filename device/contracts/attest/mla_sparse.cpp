// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/mla_sparse_args.h"
#include "device/contracts/attest/split_results.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

std::string symbol(const cases::MlaSparse& p) {
  const char* q = p.q_format == Format::bf16 ? "bf16" : "fp8";
  const char* kv = p.kv_layout == cases::KvLayout::ds ? "ds" : p.kv_format == Format::bf16 ? "bf16" : "fp8";
  return fmt::format("mla_sparse_{}_{}", q, kv);
}

class AttestMlaSparse final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::MlaSparse>(c.problem);
    const auto known = [](Format format) { return format == Format::bf16 || format == Format::fp8_e4m3fnuz; };
    if (!known(p.kv_format) || !known(p.q_format))
      return fmt::format("formats are {} and {}; it takes bf16 and fp8_e4m3fnuz", cases::name(p.q_format),
                         cases::name(p.kv_format));
    if (p.num_splits > contract::max_splits)
      return fmt::format("shape.num_splits is {}; it takes 1..{}", p.num_splits, contract::max_splits);
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::MlaSparse>(c.problem);
    const auto& in = std::get<cases::MlaSparseInputs>(inputs);
    const hip::Function attend = function(gpu, "mla_sparse", symbol(p));
    const hip::Function reduce = function(gpu, "split_reduce", "split_reduce");

    const std::uint64_t total_q = in.lengths.size();
    const std::uint64_t rows = total_q * static_cast<std::uint64_t>(p.heads);

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, p.q_format);
    const auto& kv_pool = buffers.add_input("kv_pool", in.kv_pool, p.kv_format);
    const auto& indices = buffers.add_input("indices", in.indices);
    const auto& lengths = buffers.add_input("lengths", in.lengths);
    const SplitResults results(buffers, c, rows, p.num_splits, p.return_lse);

    const std::array<unsigned, 3> grid{ceil_div(p.heads, contract::rows_per_group),
                                       static_cast<unsigned>(total_q), static_cast<unsigned>(p.num_splits)};
    const std::uint64_t groups = std::uint64_t{grid[0]} * grid[1] * grid[2];
    const std::uint64_t tiles =
        std::uint64_t{grid[0]} * grid[1] * ceil_div(p.topk, contract::tile_tokens) + groups;
    const std::uint64_t optimised = 4 * (1000 * groups + 600 * tiles);

    contract::MlaSparseArgs args{};
    args.q = q.data();
    args.kv_pool = kv_pool.data();
    args.indices = indices.as<std::int32_t>();
    args.lengths = lengths.as<std::int32_t>();
    results.name_in(args);
    args.page_stride = static_cast<std::uint32_t>(in.page_stride_bytes);
    args.page_size = p.page_size;
    args.heads = p.heads;
    args.topk = p.topk;
    args.num_slots = static_cast<std::int32_t>(in.num_slots);
    args.num_splits = p.num_splits;
    args.score_scale = p.sm_scale * p.q_scale * p.kv_scale;
    args.out_scale = p.kv_scale;
    if (!launch(gpu, attend, "mla_sparse", {grid, contract::threads}, args, optimised, outcome)) return;
    if (results.split() &&
        !launch(gpu, reduce, "split_reduce", results.merge_geometry(), results.merge(), optimised, outcome))
      return;

    results.download(outcome);
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_mla_sparse(KernelList& list) {
  list.add<AttestMlaSparse>(
      {.op = "mla_sparse",
       .objects = {"mla_sparse", "split_reduce"},
       .precision = "bf16",
       .supports = "q/kv bf16/bf16, bf16/fp8_e4m3fnuz, fp8_e4m3fnuz/fp8_e4m3fnuz, bf16/ds; out bf16; 1..128 "
                   "heads; topk 1..2048; any page size; 1..32 splits"});
}

}  // namespace attest::device::contracts
