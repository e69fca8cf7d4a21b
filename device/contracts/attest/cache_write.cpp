// SPDX-License-Identifier: MIT
#include <cfloat>
#include <cstdint>
#include <string>

#include "device/contracts/attest/attest_kernel.h"
#include "device/contracts/attest/cache_write_args.h"
#include "device/contracts/attest/kernels.h"

namespace attest::device::contracts {
namespace {

using cases::CacheLayout;

class AttestCacheWrite final : public AttestKernel {
 public:
  using AttestKernel::AttestKernel;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const cases::Case& c) const override {
    const auto& p = std::get<cases::CacheWrite>(c.problem);
    if (p.layout != CacheLayout::bf16 && p.fp8_format != cases::Format::fp8_e4m3fnuz)
      return std::string("formats.fp8 is ") + cases::name(p.fp8_format) + "; it takes fp8_e4m3fnuz";
    return std::nullopt;
  }

  void run_on(hip::HipDevice& gpu, const cases::Case& c, const cases::Inputs& inputs,
              Outcome& outcome) const override {
    const auto& p = std::get<cases::CacheWrite>(c.problem);
    const auto& in = std::get<cases::CacheWriteInputs>(inputs);
    const std::string symbol = std::string("cache_write_") + cases::name(p.layout);
    const hip::Function write = function(gpu, "cache_write", symbol);

    hip::BufferSet buffers(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes));
    const auto& latent = buffers.add_input("latent", in.latent, cases::Format::bf16);
    const auto& rope = buffers.add_input("rope", in.rope, cases::Format::bf16);
    const auto& slots = buffers.add_input("slot_mapping", in.slot_mapping);
    auto& pool = buffers.add("pool", in.pool.size);
    pool.upload(in.pool);

    contract::CacheWriteArgs args{};
    args.latent = latent.data();
    args.rope = rope.data();
    args.slots = slots.as<std::int64_t>();
    args.pool = pool.data();
    args.page_stride = in.page_stride_bytes;
    args.page_size = p.page_size;
    args.kv_scale = p.kv_scale;
    args.reciprocal = p.convention == cases::ScaleConvention::divide ? 0 : 1;
    args.power_of_two = p.scale_format == cases::ScaleFormat::ue8m0 ? 1 : 0;
    args.ceiling = static_cast<float>(p.ceiling);
    args.amax_floor = p.layout == CacheLayout::indexer ? 1e-4F : 0.0F;
    args.scale_floor = p.layout != CacheLayout::ds_mla ? 0.0F : args.power_of_two != 0 ? 1e-4F : FLT_MIN;
    const auto tokens = static_cast<unsigned>(in.slot_mapping.size());
    const hip::Geometry geometry{{tokens, 1, 1}, contract::cache_write_threads};
    if (!launch(gpu, write, symbol, geometry, args, std::uint64_t{500} * tokens, outcome)) return;

    outcome.outputs.tensors.push_back({"pool", pool.download(in.pool)});
    outcome.outputs.guard_damage = buffers.damage();
  }
};

}  // namespace

void add_cache_write(KernelList& list) {
  list.add<AttestCacheWrite>({.op = "cache_write",
                              .objects = {"cache_write"},
                              .precision = "bf16",
                              .supports = "bf16, fp8_e4m3fnuz, 656-byte ds_mla and indexer pages; scales f32 "
                                          "or ue8m0; divides or multiplies"});
}

}  // namespace attest::device::contracts
