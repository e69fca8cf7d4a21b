// SPDX-License-Identifier: MIT
//
// What an MLA kernel of ours writes whose keys may be split: out and lse; with more than one split the
// partials, and the launch of split_reduce that merges them.
//
//   SplitResults results(buffers, c, rows, p.num_splits, p.return_lse);
//   results.name_in(args);                                       // out, lse, partial_out, partial_lse
//   ... launch ...
//   if (results.split() && !launch(gpu, reduce, ..., results.merge_geometry(), results.merge(), ...)) return;
//   results.download(outcome);
#pragma once

#include <cstdint>
#include <span>

#include "cases/inputs.h"
#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/mla_decode_args.h"
#include "device/hip/buffer_set.h"

namespace attest::device::contracts {

class SplitResults {
 public:
  /// @param rows total_q * heads
  SplitResults(hip::BufferSet& buffers, const cases::Case& c, std::uint64_t rows, int num_splits,
               bool return_lse)
      : rows_(static_cast<std::int32_t>(rows)),
        num_splits_(num_splits),
        return_lse_(return_lse),
        out_(add(buffers, c, "out", c.memory.output, cases::Format::bf16, rows * contract::kv_lora_rank)),
        lse_(add(buffers, c, "lse", c.memory.output, cases::Format::f32, return_lse ? rows : 0)),
        partial_out_(add(buffers, c, "partial_out", c.memory.scratch, cases::Format::f32,
                         partials() * contract::kv_lora_rank)),
        partial_lse_(add(buffers, c, "partial_lse", c.memory.scratch, cases::Format::f32, partials())) {}

  [[nodiscard]] bool split() const { return num_splits_ > 1; }

  /// Null where a buffer is not used.
  template <typename Arguments>
  void name_in(Arguments& args) const {
    args.out = out_.data();
    args.lse = return_lse_ ? lse_.as<float>() : nullptr;
    args.partial_out = split() ? partial_out_.as<float>() : nullptr;
    args.partial_lse = split() ? partial_lse_.as<float>() : nullptr;
  }

  [[nodiscard]] contract::SplitReduceArgs merge() const {
    contract::SplitReduceArgs args{};
    name_in(args);
    args.rows = rows_;
    args.num_splits = num_splits_;
    return args;
  }
  [[nodiscard]] hip::Geometry merge_geometry() const {
    return {{ceil_div(rows_, contract::rows_per_reduce), 1, 1}, contract::threads};
  }

  void download(Outcome& outcome) const {
    outcome.outputs.tensors.push_back({"out", out_.download()});
    if (return_lse_) outcome.outputs.tensors.push_back({"lse", lse_.download()});
  }

 private:
  [[nodiscard]] std::uint64_t partials() const {
    return split() ? static_cast<std::uint64_t>(rows_) * static_cast<std::uint64_t>(num_splits_) : 0;
  }
  /// The partials of many splits are the largest buffer of a launch.
  static const hip::DeviceBuffer& add(hip::BufferSet& buffers, const cases::Case& c, const char* name,
                                      cases::Poison poison, cases::Format format, std::uint64_t count) {
    const std::uint64_t element = format == cases::Format::f32 ? 4 : 2;
    return buffers.add_unwritten(name, count * element, format,
                                 [&](std::uint64_t offset, std::span<std::byte> bytes) {
                                   cases::poison_part(c, poison, format, offset / element, name, bytes);
                                 });
  }

  std::int32_t rows_;
  int num_splits_;
  bool return_lse_;
  const hip::DeviceBuffer &out_, &lse_, &partial_out_, &partial_lse_;
};

}  // namespace attest::device::contracts
