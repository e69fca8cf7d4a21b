// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/verify_attention_args.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

/// The rows of the nodes: what lies behind the leading tokens of each request.
std::vector<std::byte> without_leading(const std::vector<std::byte>& all, const cases::VerifyAttention& p,
                                       std::size_t token_bytes) {
  std::vector<std::byte> kept;
  auto at = all.begin();
  for (const cases::TreeRequest& r : p.requests) {
    at += static_cast<std::ptrdiff_t>(static_cast<std::size_t>(p.lead) * token_bytes);
    const auto end = at + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r.nodes()) * token_bytes);
    kept.insert(kept.end(), at, end);
    at = end;
  }
  return kept;
}

class AttestVerifyAttention final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::VerifyAttention>(c.problem);
    for (const cases::TreeRequest& r : p.requests)
      if (r.nodes() > contract::most_tree_nodes)
        return fmt::format("a request has {} nodes; it takes 0..{}", r.nodes(), contract::most_tree_nodes);
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::VerifyAttention>(c.problem);
    const auto& in = std::get<cases::VerifyAttentionInputs>(inputs);
    const bool fp8 = p.kv_format != Format::bf16;
    const hip::Function kernel =
        function(gpu, "verify_attention", fp8 ? "verify_attention_fp8" : "verify_attention_bf16");

    const auto rows = static_cast<std::uint64_t>(in.q_indptr.back()) * static_cast<std::uint64_t>(p.heads);
    std::vector<std::int32_t> folded_q_indptr = in.q_indptr;
    for (std::int32_t& begin : folded_q_indptr) begin *= p.fold;

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, Format::bf16);
    const auto& kv_pool = buffers.add_input("kv_pool", in.decode.kv_pool, p.kv_format);
    const auto& q_indptr = buffers.add_input("q_indptr", folded_q_indptr);
    const auto& node_indptr = buffers.add_input("node_indptr", in.node_indptr);
    const auto& mask = buffers.add_input("mask", in.mask);
    const auto& kv_indptr = buffers.add_input("kv_indptr", in.decode.kv_indptr);
    const auto& kv_page_indices = buffers.add_input("kv_page_indices", in.decode.kv_page_indices);
    const auto& kv_last_page_len = buffers.add_input("kv_last_page_len", in.decode.kv_last_page_len);
    const auto& out = buffers.add_unwritten(
        "out", cases::poison_bytes(c, c.memory.output, Format::bf16, rows * 512, "out"), Format::bf16);
    const auto& lse = buffers.add_unwritten(
        "lse", cases::poison_bytes(c, c.memory.output, Format::f32, p.return_lse ? rows : 0, "lse"));

    unsigned groups = 0;
    std::uint64_t keys = 0;  // of all rows
    for (const cases::TreeRequest& r : p.requests) {
      const std::int64_t rows_here = std::int64_t{p.lead + r.nodes()} * p.heads;
      groups = std::max(groups, ceil_div(rows_here, contract::rows_per_verify));
      keys += static_cast<std::uint64_t>(rows_here) * static_cast<std::uint64_t>(r.context_len + r.nodes());
    }
    contract::VerifyAttentionArgs args{};
    args.q = q.data();
    args.kv_pool = kv_pool.data();
    args.q_indptr = q_indptr.as<std::int32_t>();
    args.node_indptr = node_indptr.as<std::int32_t>();
    args.mask = mask.as<std::uint64_t>();
    args.kv_indptr = kv_indptr.as<std::int32_t>();
    args.kv_page_indices = kv_page_indices.as<std::int32_t>();
    args.kv_last_page_len = kv_last_page_len.as<std::int32_t>();
    args.out = out.data();
    args.lse = p.return_lse ? lse.as<float>() : nullptr;
    args.page_stride = static_cast<std::uint32_t>(in.decode.page_stride_bytes);
    args.page_size = p.page_size;
    args.heads = p.heads / p.fold;
    args.fold = p.fold;
    args.lead = p.lead;
    args.score_scale = p.sm_scale * p.kv_scale;
    args.out_scale = p.kv_scale;
    // A key takes about 80 wave instructions.
    const std::uint64_t optimised = 800 * rows + 150 * keys;
    const hip::Geometry geometry{{groups, static_cast<unsigned>(p.requests.size()), 1},
                                 contract::verify_threads};
    if (!launch(gpu, kernel, "verify_attention", geometry, args, optimised, outcome)) return;

    const std::size_t heads = static_cast<std::size_t>(p.heads);
    outcome.outputs.tensors.push_back({"out", without_leading(out.download(), p, heads * 512 * 2)});
    if (p.return_lse)
      outcome.outputs.tensors.push_back({"lse", without_leading(lse.download(), p, heads * sizeof(float))});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_verify_attention(KernelList& list) {
  list.add<AttestVerifyAttention>(
      {.op = "verify_attention",
       .objects = {"verify_attention"},
       .precision = "fp32p",
       .supports = "q bf16, kv bf16 or fp8_e4m3fnuz; trees of 0..64 nodes; leading rows; folded heads"});
}

}  // namespace attest::device::contracts
