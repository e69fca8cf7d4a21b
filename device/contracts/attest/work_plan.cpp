// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/kernels.h"
#include "device/contracts/attest/work_plan_args.h"

namespace attest::device::contracts {
namespace {

using contract::WorkPlanArgs;

class AttestWorkPlan final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::WorkPlan>(c.problem);
    const auto& in = std::get<cases::WorkPlanInputs>(inputs);
    const hip::Function build = function(gpu, "work_plan", "work_plan_build");
    const hip::Function run = function(gpu, "work_plan", "work_plan_run");
    const hip::Function merge = function(gpu, "work_plan", "work_plan_merge");

    std::size_t max_batch = 0;
    for (const auto& step : in.steps) max_batch = std::max(max_batch, step.qo_indptr.size() - 1);
    const auto tiles = static_cast<std::size_t>(cases::most_tiles(p));
    const std::size_t works = tiles + static_cast<std::size_t>(p.slots);
    const std::size_t partial_rows = works * static_cast<std::size_t>(p.tile_tokens);

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto scratch = [&](const std::string& name, std::size_t count) {
      return cases::poison_integers(c, c.memory.scratch, count, name);
    };
    struct List {
      const char* name;
      std::size_t count;
      hip::DeviceBuffer* buffer;
    };
    std::vector<List> plan = {{"header", contract::plan_key + 1 + 2 * (max_batch + 1), nullptr},
                              {"work_indptr", static_cast<std::size_t>(p.slots) + 1, nullptr},
                              {"work_info_set", 8 * works, nullptr},
                              {"reduce_indptr", tiles + 1, nullptr},
                              {"reduce_final_map", 2 * tiles, nullptr},
                              {"reduce_partial_map", works, nullptr}};
    for (List& list : plan) list.buffer = &buffers.add(list.name, scratch(list.name, list.count));
    const auto& memo = buffers.add("memo", scratch("memo", 2));
    const auto floats = [&](const char* name, std::size_t count) -> hip::DeviceBuffer& {
      return buffers.add(name, cases::poison_bytes(c, c.memory.scratch, cases::Format::f32, count, name));
    };
    const auto& partial_out = floats("partial_out", partial_rows * contract::plan_columns);
    const auto& partial_lse = floats("partial_lse", partial_rows);

    for (std::size_t s = 0; s < in.steps.size(); ++s) {
      const cases::WorkPlanInputs::Step& step = in.steps[s];
      const std::string prefix = fmt::format("step{}.", s);
      if (p.steps[s].freed) {
        for (const List& list : plan) {
          const std::vector<std::int32_t> other = scratch(prefix + list.name, list.count);
          list.buffer->upload(std::as_bytes(std::span(other)));
        }
      }
      const auto queries = static_cast<std::size_t>(step.qo_indptr.back());
      auto& qo_indptr = buffers.add_input(prefix + "qo_indptr", step.qo_indptr);
      auto& kv_indptr = buffers.add_input(prefix + "kv_indptr", step.kv_indptr);
      auto& scores = buffers.add_input(prefix + "scores", step.scores);
      auto& values = buffers.add_input(prefix + "values", step.values);
      const auto result = [&](const char* name, std::size_t count) -> hip::DeviceBuffer& {
        return buffers.add(prefix + name,
                           cases::poison_bytes(c, c.memory.output, cases::Format::f32, count, prefix + name));
      };
      auto& out = result("out", queries * contract::plan_columns);
      auto& lse = result("lse", queries);

      WorkPlanArgs args{};
      args.qo_indptr = qo_indptr.as<std::int32_t>();
      args.kv_indptr = kv_indptr.as<std::int32_t>();
      args.scores = scores.as<std::int32_t>();
      args.values = values.as<float>();
      args.header = plan[0].buffer->as<std::int32_t>();
      args.work_indptr = plan[1].buffer->as<std::int32_t>();
      args.work_info_set = plan[2].buffer->as<std::int32_t>();
      args.reduce_indptr = plan[3].buffer->as<std::int32_t>();
      args.reduce_final_map = plan[4].buffer->as<std::int32_t>();
      args.reduce_partial_map = plan[5].buffer->as<std::int32_t>();
      args.memo = memo.as<std::int32_t>();
      args.partial_out = partial_out.as<float>();
      args.partial_lse = partial_lse.as<float>();
      args.out = out.as<float>();
      args.lse = lse.as<float>();
      args.batch = static_cast<std::int32_t>(step.qo_indptr.size()) - 1;
      args.max_batch = static_cast<std::int32_t>(max_batch);
      args.slots = p.slots;
      args.granularity = p.granularity;
      args.tile_tokens = p.tile_tokens;
      args.persistent_q_len = p.persistent_q_len;
      args.causal = p.causal ? 1 : 0;
      args.max_tiles = static_cast<std::int32_t>(tiles);

      // Wave instructions: a few dozen per row and key.
      std::uint64_t row_keys = 0;
      for (const cases::Request& r : p.steps[s].requests)
        row_keys += static_cast<std::uint64_t>(r.q_len) * static_cast<std::uint64_t>(r.kv_len + 1);
      const std::uint64_t optimised = 20 * row_keys + 400 * works;
      const hip::Geometry persistent{{static_cast<unsigned>(p.slots), 1, 1}, contract::plan_threads};
      const hip::Geometry per_tile{{static_cast<unsigned>(std::max<std::size_t>(tiles, 1)), 1, 1},
                                   contract::plan_threads};
      if (!launch(gpu, build, "work_plan_build", {{1, 1, 1}, contract::plan_threads}, args, optimised,
                  outcome) ||
          !launch(gpu, run, "work_plan_run", persistent, args, optimised, outcome) ||
          !launch(gpu, merge, "work_plan_merge", per_tile, args, optimised, outcome))
        return;

      for (const List& list : plan)
        outcome.outputs.tensors.push_back({prefix + list.name, list.buffer->download()});
      outcome.outputs.tensors.push_back({prefix + "out", out.download()});
      outcome.outputs.tensors.push_back({prefix + "lse", lse.download()});
    }
    for (std::string& damage : buffers.damage()) outcome.outputs.guard_damage.push_back(std::move(damage));
  }
};

}  // namespace

void add_work_plan(KernelList& list) {
  list.add<AttestWorkPlan>({.op = "work_plan",
                            .objects = {"work_plan"},
                            .precision = "bf16",
                            .supports =
                                "1..304 slots, any granularity, q_len 0..16, causal or not; sequences of "
                                "batches on one plan object"});
}

}  // namespace attest::device::contracts
