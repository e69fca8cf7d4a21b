// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/dense_switch_args.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/mla_sparse_args.h"

namespace attest::device::contracts {
namespace {

using cases::Format;

class AttestDenseSwitch final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::DenseSwitch>(c.problem);
    const auto& in = std::get<cases::DenseSwitchInputs>(inputs);
    const auto tokens = static_cast<std::uint64_t>(in.qo_indptr.back());
    const auto heads = static_cast<std::uint64_t>(p.heads);
    const auto poison = [&](cases::Poison kind, Format format, std::uint64_t count, std::string_view tensor) {
      return cases::poison_bytes(c, kind, format, count, tensor);
    };

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& q = buffers.add_input("q", in.q, Format::bf16);
    const auto& absorbed = buffers.add_input("absorbed", in.absorbed, Format::bf16);
    const auto& k = buffers.add_input("k", in.k, Format::bf16);
    const auto& v = buffers.add_input("v", in.v, Format::bf16);
    const auto& kv_pool = buffers.add_input("kv_pool", in.kv_pool, p.kv_format);
    const auto& v_columns = buffers.add_input("v_columns", in.v_columns);
    const auto& block_table = buffers.add_input("block_table", in.block_table);
    const auto& qo_indptr = buffers.add_input("qo_indptr", in.qo_indptr);
    const auto& kv_lens = buffers.add_input("kv_lens", in.kv_lens);
    const auto& previous = buffers.add_input("previous_kv_lens", in.previous_kv_lens);
    const auto& k_indptr = buffers.add_input("k_indptr", in.k_indptr);
    const auto& topk_ids = buffers.add_input("topk_ids", in.topk_ids);
    const auto scratch = [&](const char* name, std::uint64_t words) -> const hip::DeviceBuffer& {
      return buffers.add_unwritten(name, poison(c.memory.scratch, Format::f32, words, name));
    };
    const auto& plan = scratch("plan", sizeof(contract::SwitchPlan) / 4);
    const auto& lengths = scratch("lengths", tokens);
    const auto& request_of = scratch("request_of", tokens);
    const auto& indices = scratch("indices", tokens * static_cast<std::uint64_t>(p.topk));
    const auto& latent = buffers.add_unwritten(
        "latent", poison(c.memory.scratch, Format::bf16, tokens * heads * contract::kv_lora_rank, "latent"),
        Format::bf16);
    const auto& out = buffers.add_unwritten(
        "out", poison(c.memory.output, Format::bf16, tokens * heads * contract::value_width, "out"),
        Format::bf16);

    int longest = 1;
    for (const cases::Request& r : p.requests) longest = std::max(longest, r.kv_len);
    const unsigned grid_tokens = static_cast<unsigned>(tokens), grid_heads = static_cast<unsigned>(p.heads);
    const unsigned head_tiles = ceil_div(p.heads, contract::rows_per_group);
    const std::uint64_t sparse_work =
        tokens * head_tiles * (1000 + 600 * std::uint64_t{ceil_div(p.topk, contract::tile_tokens)});
    const std::uint64_t dense_work =
        tokens * heads * (200 + 1500 * std::uint64_t{ceil_div(longest, contract::switch_threads)});
    const std::uint64_t optimised = 2 * (sparse_work + dense_work);
    const auto run = [&](const char* symbol, std::array<unsigned, 3> grid, unsigned block, const auto& args) {
      return launch(gpu, function(gpu, "dense_switch", symbol), symbol, {grid, block}, args, optimised,
                    outcome);
    };

    const auto* on_plan = plan.as<contract::SwitchPlan>();
    contract::SwitchPlanArgs planning{};
    planning.qo_indptr = qo_indptr.as<std::int32_t>();
    planning.kv_lens = previous.as<std::int32_t>();
    planning.plan = plan.as<contract::SwitchPlan>();
    planning.lengths = lengths.as<std::int32_t>();
    planning.request_of = request_of.as<std::int32_t>();
    planning.requests = static_cast<std::int32_t>(p.requests.size());
    planning.topk = p.topk;
    if (!in.previous_kv_lens.empty() && !run("switch_plan", {1, 1, 1}, contract::switch_threads, planning))
      return;
    planning.kv_lens = kv_lens.as<std::int32_t>();
    if (!run("switch_plan", {1, 1, 1}, contract::switch_threads, planning)) return;

    contract::SwitchRemapArgs remap{};
    remap.plan = on_plan;
    remap.request_of = request_of.as<std::int32_t>();
    remap.topk_ids = topk_ids.as<std::int32_t>();
    remap.block_table = block_table.as<std::int32_t>();
    remap.indices = indices.as<std::int32_t>();
    remap.topk = p.topk;
    remap.table_width = in.table_width;
    remap.page_size = p.page_size;
    if (!run("switch_remap", {ceil_div(p.topk, contract::switch_threads), grid_tokens, 1},
             contract::switch_threads, remap))
      return;

    // A bf16 cache has no scale, and q is bf16: what the engine hands over for them is not looked at.
    const bool fp8 = p.kv_format != Format::bf16;
    const float kv_scale = fp8 ? p.kv_scale : 1.0F;
    contract::MlaSparseArgs sparse{};
    sparse.q = absorbed.data();
    sparse.kv_pool = kv_pool.data();
    sparse.indices = remap.indices;
    sparse.lengths = planning.lengths;
    sparse.total_rows = &on_plan->sparse_tokens;
    sparse.out = latent.data();
    sparse.page_stride = static_cast<std::uint32_t>(in.page_stride_bytes);
    sparse.page_size = p.page_size;
    sparse.heads = p.heads;
    sparse.topk = p.topk;
    sparse.num_slots = static_cast<std::int32_t>(in.num_pages * p.page_size);
    sparse.num_splits = 1;
    sparse.score_scale = p.sm_scale * kv_scale;
    sparse.out_scale = kv_scale;
    const hip::Function attend =
        function(gpu, "mla_sparse", fp8 ? "mla_sparse_bf16_fp8" : "mla_sparse_bf16_bf16");
    if (!launch(gpu, attend, "mla_sparse", {{head_tiles, grid_tokens, 1}, contract::threads}, sparse,
                optimised, outcome))
      return;

    contract::SwitchProjectArgs project{};
    project.plan = on_plan;
    project.latent = latent.data();
    project.v_columns = v_columns.as<std::int32_t>();
    project.out = out.data();
    project.heads = p.heads;
    if (!run("switch_project", {grid_tokens, 1, 1}, contract::project_threads, project)) return;

    contract::SwitchMhaArgs mha{};
    mha.plan = on_plan;
    mha.request_of = remap.request_of;
    mha.qo_indptr = planning.qo_indptr;
    mha.kv_lens = planning.kv_lens;
    mha.k_indptr = k_indptr.as<std::int32_t>();
    mha.q = q.data();
    mha.k = k.data();
    mha.v = v.data();
    mha.out = out.data();
    mha.heads = p.heads;
    mha.sm_scale = p.sm_scale;
    if (!run("switch_mha", {grid_heads, grid_tokens, 1}, contract::switch_threads, mha)) return;

    outcome.outputs.tensors.push_back({"out", out.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_dense_switch(KernelList& list) {
  list.add<AttestDenseSwitch>({.op = "dense_switch",
                               .objects = {"dense_switch", "mla_sparse"},
                               .precision = "bf16",
                               .supports = "bf16 q, cache bf16 or fp8_e4m3fnuz, out bf16; 1..128 heads; topk "
                                           "1..2048; any page size"});
}

}  // namespace attest::device::contracts
