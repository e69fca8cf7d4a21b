// SPDX-License-Identifier: MIT
#include <cstdint>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/index_remap_args.h"
#include "device/contracts/attest/kernels.h"

namespace attest::device::contracts {
namespace {

class AttestIndexRemap final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case&) const override { return std::nullopt; }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::IndexRemap>(c.problem);
    const auto& in = std::get<cases::IndexRemapInputs>(inputs);
    const hip::Function remap = function(gpu, "index_remap", "index_remap");
    const auto rows = static_cast<unsigned>(in.request_of_row.size());
    const auto slots_written = static_cast<std::size_t>(in.slot_indptr.back());

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& indices = buffers.add_input("indices", in.indices);
    const auto& request_of_row = buffers.add_input("request_of_row", in.request_of_row);
    const auto& block_table = buffers.add_input("block_table", in.block_table);
    const auto& slot_indptr = buffers.add_input("slot_indptr", in.slot_indptr);
    const std::vector<std::int32_t> before =
        cases::poison_integers(c, c.memory.output, slots_written, "slots");
    const auto& slots = buffers.add_unwritten("slots", std::as_bytes(std::span(before)));

    contract::IndexRemapArgs args{};
    args.indices = indices.as<std::int32_t>();
    args.request_of_row = request_of_row.as<std::int32_t>();
    args.block_table = block_table.as<std::int32_t>();
    args.slot_indptr = slot_indptr.as<std::int32_t>();
    args.slots = slots.as<std::int32_t>();
    args.k = p.k;
    args.page_size = p.page_size;
    args.table_width = in.table_width;
    args.table_stride = in.table_stride;
    args.invalid_slot = p.invalid == cases::InvalidEntry::minus_one ? -1 : 0;
    const hip::Geometry geometry{{rows, ceil_div(p.k, contract::index_remap_threads), 1},
                                 contract::index_remap_threads};
    const std::uint64_t optimised = std::uint64_t{500} * geometry.grid[0] * geometry.grid[1];
    if (!launch(gpu, remap, "index_remap", geometry, args, optimised, outcome)) return;

    outcome.outputs.tensors.push_back({"slots", slots.download()});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_index_remap(KernelList& list) {
  list.add<AttestIndexRemap>({.op = "index_remap",
                              .objects = {"index_remap"},
                              .precision = "bf16",
                              .supports = "any page size, dense and ragged, -1 or slot 0 for no key"});
}

}  // namespace attest::device::contracts
