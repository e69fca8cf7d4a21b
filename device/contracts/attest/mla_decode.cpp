// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/mla_decode_args.h"
#include "device/contracts/attest/split_results.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

std::string_view short_name(Format format) {
  return format == Format::bf16 ? "bf16" : "fp8";
}

class AttestMlaDecode final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::MlaDecode>(c.problem);
    const auto other = [](std::string_view field, Format format, std::string_view wanted) {
      return fmt::format("formats.{} is {}; it takes {}", field, cases::name(format), wanted);
    };
    if (p.kv_layout != cases::KvLayout::rows) {
      return fmt::format("formats.kv_layout is {}; it takes rows", cases::name(p.kv_layout));
    }
    if (p.kv_format != Format::bf16 && p.kv_format != Format::fp8_e4m3fnuz) {
      return other("kv", p.kv_format, "bf16 or fp8_e4m3fnuz");
    }
    if (p.q_format == Format::fp8_e4m3fnuz && p.kv_format == Format::bf16) {
      return other("q", p.q_format, "bf16 with a bf16 cache");
    }
    if (p.q_format != Format::bf16 && p.q_format != Format::fp8_e4m3fnuz) {
      return other("q", p.q_format, "bf16 or fp8_e4m3fnuz");
    }
    if (p.out_format != Format::bf16) return other("out", p.out_format, "bf16");
    if (p.num_splits > contract::max_splits) {
      return fmt::format("shape.num_splits is {}; it takes 1..{}", p.num_splits, contract::max_splits);
    }
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::MlaDecode>(c.problem);
    const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
    const hip::Function decode = function(
        gpu, "mla_decode", fmt::format("mla_decode_{}_{}", short_name(p.q_format), short_name(p.kv_format)));
    const hip::Function reduce = function(gpu, "split_reduce", "split_reduce");

    const auto total_q = static_cast<std::uint64_t>(in.qo_indptr.back());
    const std::uint64_t rows = total_q * static_cast<std::uint64_t>(p.heads);

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, p.q_format);
    const auto& kv_pool = buffers.add_input("kv_pool", in.kv_pool, p.kv_format);
    const auto& qo_indptr = buffers.add_input("qo_indptr", in.qo_indptr);
    const auto& kv_indptr = buffers.add_input("kv_indptr", in.kv_indptr);
    const auto& kv_page_indices = buffers.add_input("kv_page_indices", in.kv_page_indices);
    const auto& kv_last_page_len = buffers.add_input("kv_last_page_len", in.kv_last_page_len);
    const SplitResults results(buffers, c, rows, p.num_splits, p.return_lse);

    // Row tiles of the longest request, and what they take at most, in wave instructions. A real tile takes
    // about 300 of them per wave.
    unsigned row_tiles = 0;
    std::uint64_t tiles = 0;
    for (const cases::Request& request : p.requests) {
      const unsigned of_request = ceil_div(std::int64_t{request.q_len} * p.heads, contract::rows_per_group);
      row_tiles = std::max(row_tiles, of_request);
      tiles += std::uint64_t{of_request} * ceil_div(request.kv_len, contract::tile_tokens);
    }
    const std::array<unsigned, 3> grid{row_tiles, static_cast<unsigned>(p.requests.size()),
                                       static_cast<unsigned>(p.num_splits)};
    const std::uint64_t groups = std::uint64_t{grid[0]} * grid[1] * grid[2];
    const std::uint64_t optimised = 4 * (1500 * groups + 750 * tiles);

    if (groups > 0) {
      contract::MlaDecodeArgs args{};
      args.q = q.data();
      args.kv_pool = kv_pool.data();
      args.qo_indptr = qo_indptr.as<std::int32_t>();
      args.kv_indptr = kv_indptr.as<std::int32_t>();
      args.kv_page_indices = kv_page_indices.as<std::int32_t>();
      args.kv_last_page_len = kv_last_page_len.as<std::int32_t>();
      results.name_in(args);
      args.page_stride = static_cast<std::uint32_t>(in.page_stride_bytes);
      args.page_size = p.page_size;
      args.heads = p.heads;
      args.num_splits = p.num_splits;
      args.causal = p.causal ? 1 : 0;
      args.score_scale = p.sm_scale * p.q_scale * p.kv_scale;
      args.out_scale = p.kv_scale;
      if (!launch(gpu, decode, "mla_decode", {grid, contract::threads}, args, optimised, outcome)) return;
      if (results.split() &&
          !launch(gpu, reduce, "split_reduce", results.merge_geometry(), results.merge(), optimised, outcome))
        return;
    }

    results.download(outcome);
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_mla_decode(KernelList& list) {
  list.add<AttestMlaDecode>(
      {.op = "mla_decode",
       .objects = {"mla_decode", "split_reduce"},
       .precision = "bf16",
       .supports =
           "q/kv bf16/bf16, bf16/fp8_e4m3fnuz, fp8_e4m3fnuz/fp8_e4m3fnuz; out bf16; 1..128 heads; q_len "
           "0..16; any page size; 1..32 splits"});
}

}  // namespace attest::device::contracts
