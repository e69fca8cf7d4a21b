// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/block_table_expand_args.h"
#include "device/contracts/attest/kernels.h"

namespace attest::device::contracts {
namespace {

using cases::BlockTableExpandInputs;
using contract::BlockTableExpandArgs;

/// What the launches of one batch write: the metadata object of a step, or the graph's, which all steps
/// share.
struct Lists {
  hip::DeviceBuffer *qo_indptr, *kv_indptr, *last_page_len, *kernel_block_table, *kv_indices;
  int max_requests = 0, index_capacity = 0;
};

class AttestBlockTableExpand final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::BlockTableExpand>(c.problem);
    const auto& in = std::get<BlockTableExpandInputs>(inputs);
    const std::array<hip::Function, 3> functions{function(gpu, "block_table_expand", "block_table_prepare"),
                                                 function(gpu, "block_table_expand", "block_table_map"),
                                                 function(gpu, "block_table_expand", "block_table_fill")};
    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto result = [&](const std::string& name, std::size_t count) {
      return &buffers.add(name, cases::poison_integers(c, c.memory.output, count, name));
    };
    const auto lists_of = [&](const std::string& prefix, int rows, int capacity) {
      const auto count = static_cast<std::size_t>(rows);
      Lists lists;
      lists.qo_indptr = result(prefix + "qo_indptr", count + 1);
      lists.kv_indptr = result(prefix + "kv_indptr", count + 1);
      lists.last_page_len = result(prefix + "last_page_len", count);
      lists.kernel_block_table = result(prefix + "kernel_block_table",
                                        count * static_cast<std::size_t>(in.table_width) *
                                            static_cast<std::size_t>(p.manager_block / p.kernel_block));
      lists.kv_indices = result(prefix + "kv_indices", static_cast<std::size_t>(capacity));
      lists.max_requests = rows;
      lists.index_capacity = capacity;
      return lists;
    };

    struct Step {
      hip::DeviceBuffer *query_start_loc, *seq_lens, *block_table;
      BlockTableExpandArgs args;
      unsigned blocks_per_row;
      Lists lists;
    };
    std::vector<Step> steps;
    int most_rows = 0;
    for (const auto& s : in.steps) most_rows = std::max(most_rows, static_cast<int>(s.seq_lens.size()));
    const auto scratch_words =
        cases::poison_integers(c, c.memory.scratch, static_cast<std::size_t>(most_rows), "scratch");
    auto& scratch = buffers.add("scratch", scratch_words);
    Lists graph{};
    if (p.graph) graph = lists_of("", p.max_requests, p.index_capacity);
    for (std::size_t i = 0; i < in.steps.size(); ++i) {
      const BlockTableExpandInputs::Step& s = in.steps[i];
      const std::string prefix = fmt::format("step{}.", i);
      const int rows = static_cast<int>(s.seq_lens.size());
      int tokens = 0;
      int longest = 0;
      for (const std::int32_t length : s.seq_lens) {
        tokens += length;
        longest = std::max(longest, length);
      }
      Step& step = steps.emplace_back();
      step.query_start_loc = &buffers.add_input(prefix + "query_start_loc", s.query_start_loc);
      step.seq_lens = &buffers.add_input(prefix + "seq_lens", s.seq_lens);
      step.block_table = &buffers.add_input(prefix + "block_table", s.block_table);
      step.lists = p.graph ? graph : lists_of(prefix, rows, tokens);
      // A captured launch cannot know the batch: it is as wide as the list, up to a handful of workgroups.
      const int width = p.graph ? std::min(p.index_capacity, 1024) : longest;
      step.blocks_per_row = std::max(1U, ceil_div(width, contract::block_table_threads));
      BlockTableExpandArgs& args = step.args;
      args.query_start_loc = step.query_start_loc->as<std::int32_t>();
      args.seq_lens = step.seq_lens->as<std::int32_t>();
      args.block_table = step.block_table->as<std::int32_t>();
      args.qo_indptr = step.lists.qo_indptr->as<std::int32_t>();
      args.kv_indptr = step.lists.kv_indptr->as<std::int32_t>();
      args.last_page_len = step.lists.last_page_len->as<std::int32_t>();
      args.kernel_block_table = step.lists.kernel_block_table->as<std::int32_t>();
      args.kv_indices = step.lists.kv_indices->as<std::int32_t>();
      args.scratch = scratch.as<std::int32_t>();
      args.rows = rows;
      args.max_requests = step.lists.max_requests;
      args.num_tokens = s.num_tokens;
      args.table_width = in.table_width;
      args.manager_block = p.manager_block;
      args.kernel_block = p.kernel_block;
      args.index_capacity = step.lists.index_capacity;
      args.reserved = 0;
    }

    const auto prepare = [&](Step& s) {
      scratch.upload(std::as_bytes(std::span(scratch_words)));
      return launch(gpu, functions[0], "block_table_prepare", {{1, 1, 1}, contract::block_table_threads},
                    s.args, optimised(s.args), outcome);
    };
    const auto expand = [&](Step& s) {
      const auto rows = static_cast<unsigned>(s.args.rows);
      return launch(gpu, functions[1], "block_table_map",
                    {{s.blocks_per_row, rows, 1}, contract::block_table_threads}, s.args, optimised(s.args),
                    outcome) &&
             launch(gpu, functions[2], "block_table_fill",
                    {{s.blocks_per_row, rows + 1, 1}, contract::block_table_threads}, s.args,
                    optimised(s.args), outcome);
    };
    const auto collect = [&](std::size_t i) {
      const Lists& lists = steps[i].lists;
      const auto keep = [&](const char* name, const hip::DeviceBuffer& buffer) {
        outcome.outputs.tensors.push_back({fmt::format("step{}.{}", i, name), buffer.download()});
      };
      keep("qo_indptr", *lists.qo_indptr);
      keep("kv_indptr", *lists.kv_indptr);
      keep("last_page_len", *lists.last_page_len);
      keep("kernel_block_table", *lists.kernel_block_table);
      keep("kv_indices", *lists.kv_indices);
    };

    if (p.interleaved) {
      for (Step& s : steps)
        if (!prepare(s)) return;
      for (Step& s : steps)
        if (!expand(s)) return;
      for (std::size_t i = 0; i < steps.size(); ++i) collect(i);
    } else {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!prepare(steps[i]) || !expand(steps[i])) return;
        collect(i);
      }
    }
    outcome.outputs.guard_damage = buffers.damage();
  }

  /// Wave instructions: some hundred per wave and 256 entries.
  static std::uint64_t optimised(const BlockTableExpandArgs& args) {
    const auto rows = static_cast<std::uint64_t>(args.rows) + 1;
    const auto entries = static_cast<std::uint64_t>(args.index_capacity);
    return 1000 * rows + 50 * entries;
  }
};

}  // namespace

void add_block_table_expand(KernelList& list) {
  list.add<AttestBlockTableExpand>(
      {.op = "block_table_expand",
       .objects = {"block_table_expand"},
       .precision = "bf16",
       .supports =
           "blocks of any size, kernel blocks that divide them; eager and captured graph; sequences and "
           "interleaved batches"});
}

}  // namespace attest::device::contracts
