// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/merge_states_args.h"
#include "device/contracts/attest/mla_prefill_args.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

std::string_view short_name(Format format) {
  return format == Format::bf16 ? "bf16" : "fp8";
}

class AttestMlaPrefill final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::MlaPrefill>(c.problem);
    if (p.chunks() >= contract::max_merged_states)
      return fmt::format("shape.chunk_len makes {} chunks; it takes {}", p.chunks(),
                         contract::max_merged_states - 1);
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::MlaPrefill>(c.problem);
    const auto& in = std::get<cases::MlaPrefillInputs>(inputs);
    const hip::Function attention =
        function(gpu, "mla_prefill",
                 fmt::format("mla_prefill_{}_{}", short_name(p.qkv_format), short_name(p.cache_format)));
    const hip::Function merge = function(gpu, "merge_states", "merge_states_f32_bf16");

    constexpr std::uint64_t columns = contract::prefill_v_columns;
    const auto rows = static_cast<std::uint64_t>(in.qo_indptr.back()) * static_cast<std::uint64_t>(p.heads);
    const int chunks = p.chunks();
    const auto states = static_cast<std::uint64_t>(chunks) + 1;
    const auto poison = [&](cases::Poison kind, Format format, std::uint64_t count, std::string_view tensor) {
      return cases::poison_bytes(c, kind, format, count, tensor);
    };
    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, p.qkv_format);
    const auto& k = buffers.add_input("k", in.k, p.qkv_format);
    const auto& v = buffers.add_input("v", in.v, p.qkv_format);
    const auto& context_pool = buffers.add_input("context_pool", in.context_pool, p.cache_format);
    const auto& qo_indptr = buffers.add_input("qo_indptr", in.qo_indptr);
    const auto& kv_indptr = buffers.add_input("kv_indptr", in.kv_indptr);
    const auto& context_len = buffers.add_input("context_len", in.context_len);
    const auto& page_indptr = buffers.add_input("page_indptr", in.page_indptr);
    const auto& page_indices = buffers.add_input("page_indices", in.page_indices);
    const auto& out = buffers.add_unwritten(
        "out", poison(c.memory.output, Format::bf16, rows * columns, "out"), Format::bf16);
    const auto& lse =
        buffers.add_unwritten("lse", poison(c.memory.output, Format::f32, p.return_lse ? rows : 0, "lse"));
    const auto& partial_out = buffers.add_unwritten(
        "partial_out", poison(c.memory.scratch, Format::f32, states * rows * columns, "partial_out"));
    const auto& partial_lse = buffers.add_unwritten(
        "partial_lse", poison(c.memory.scratch, Format::f32, states * rows, "partial_lse"));

    unsigned groups = 0;
    std::uint64_t keys = 0;  // of all rows
    for (const cases::PrefillRequest& r : p.requests) {
      groups = std::max(groups, ceil_div(std::int64_t{r.q_len} * p.heads, contract::rows_per_prefill));
      keys += static_cast<std::uint64_t>(r.q_len) * static_cast<std::uint64_t>(p.heads) *
              static_cast<std::uint64_t>(r.kv_len + r.context_len);
    }
    contract::MlaPrefillArgs args{};
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.context_pool = context_pool.data();
    args.qo_indptr = qo_indptr.as<std::int32_t>();
    args.kv_indptr = kv_indptr.as<std::int32_t>();
    args.context_len = context_len.as<std::int32_t>();
    args.page_indptr = page_indptr.as<std::int32_t>();
    args.page_indices = page_indices.as<std::int32_t>();
    args.partial_out = partial_out.as<float>();
    args.partial_lse = partial_lse.as<float>();
    args.page_stride = in.page_stride_bytes;
    args.total_q = in.qo_indptr.back();
    args.heads = p.heads;
    args.page_size = p.page_size;
    args.chunk_len = p.chunk_len;
    args.chunks = chunks;
    args.v_stride = p.v_stride;
    args.call_score_scale = p.sm_scale;
    args.context_score_scale = p.sm_scale * p.kv_scale;
    args.context_out_scale = p.kv_scale;
    // A key takes about 60 wave instructions.
    const std::uint64_t optimised = 800 * rows * states + 150 * keys;
    const hip::Geometry geometry{
        {groups, static_cast<unsigned>(p.requests.size()), static_cast<unsigned>(states)},
        contract::prefill_threads};
    if (!launch(gpu, attention, "mla_prefill", geometry, args, optimised, outcome)) return;

    std::vector<contract::MergedStateArgs> table;
    for (std::uint64_t s = 0; s < states; ++s)
      table.push_back({partial_out.as<float>() + s * rows * columns, partial_lse.as<float>() + s * rows,
                       std::int64_t{p.heads} * static_cast<std::int64_t>(columns),
                       static_cast<std::int64_t>(columns)});
    const auto& merged_states = buffers.add_input("states", table);
    contract::MergeStatesArgs merging{};
    merging.state = merged_states.as<contract::MergedStateArgs>();
    merging.out = out.data();
    merging.lse = p.return_lse ? lse.as<float>() : nullptr;
    merging.out_token_stride = table[0].token_stride;
    merging.out_head_stride = table[0].head_stride;
    merging.lse_token_stride = p.heads;
    merging.lse_head_stride = 1;
    merging.states = static_cast<std::int32_t>(states);
    merging.tokens = in.qo_indptr.back();
    merging.heads = p.heads;
    merging.head_dim = static_cast<std::int32_t>(columns);
    const hip::Geometry merge_geometry{
        {ceil_div(static_cast<std::int64_t>(rows), contract::rows_per_merge), 1, 1}, contract::merge_threads};
    if (!launch(gpu, merge, "merge_states", merge_geometry, merging, optimised, outcome)) return;

    outcome.outputs.tensors.push_back({"out", out.download()});
    if (p.return_lse) outcome.outputs.tensors.push_back({"lse", lse.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_mla_prefill(KernelList& list) {
  list.add<AttestMlaPrefill>(
      {.op = "mla_prefill",
       .objects = {"mla_prefill", "merge_states"},
       .precision = "fp32p",
       .supports =
           "qkv and cache bf16 or fp8_e4m3fnuz each; out bf16; any lengths, page size and chunk length; "
           "0..31 chunks; padded V"});
}

}  // namespace attest::device::contracts
