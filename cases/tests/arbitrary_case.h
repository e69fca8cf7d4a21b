// SPDX-License-Identifier: MIT
//
// Any valid case, over the whole range of every field: what the text forms and the materialiser must hold
// for. (The generator of fuzz/ is about cases that find faults; this one is about the schema.)
#pragma once

#include <rapidcheck.h>

#include <bit>
#include <cstdint>

#include "cases/case.h"

namespace attest::cases {

template <typename Enum>
rc::Gen<Enum> any_of(Enum last) {
  return rc::gen::map(rc::gen::inRange(0, static_cast<int>(last) + 1),
                      [](int i) { return static_cast<Enum>(i); });
}

/// A positive f32 in [low, high) with any fraction bits.
inline rc::Gen<float> any_scale(float low, float high) {
  return rc::gen::map(rc::gen::inRange(std::bit_cast<std::uint32_t>(low), std::bit_cast<std::uint32_t>(high)),
                      [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
}

struct CaseBounds {
  int requests = 4, kv_len = 200, heads = 128, page_size = 1024, padding = 65536;
};

inline rc::Gen<Case> any_case(CaseBounds bounds) {
  return rc::gen::exec([=] {
    MlaDecode p;
    p.heads = *rc::gen::inRange(1, bounds.heads + 1);
    p.page_size = *rc::gen::inRange(1, bounds.page_size + 1);
    p.num_splits = *rc::gen::inRange(1, 33);
    p.causal = *rc::gen::arbitrary<bool>();
    p.return_lse = *rc::gen::arbitrary<bool>();
    const int batch = *rc::gen::inRange(1, bounds.requests + 1);
    for (int i = 0; i < batch; ++i) {
      p.requests.push_back({*rc::gen::inRange(i == 0 ? 1 : 0, 17), *rc::gen::inRange(0, bounds.kv_len + 1)});
    }
    p.sm_scale = *any_scale(0x1p-10F, 8.0F);
    Case c;
    c.data.fill = *any_of(Fill::exact);
    if (*rc::gen::arbitrary<bool>()) {
      p.kv_format = Format::fp8_e4m3fnuz;
      const bool power = c.data.fill == Fill::exact || c.data.fill == Fill::constant_scores;
      p.kv_scale =
          power ? std::bit_cast<float>(*rc::gen::inRange(120U, 135U) << 23) : *any_scale(0x1p-7F, 128.0F);
      const bool promises = c.data.fill == Fill::needle || c.data.fill == Fill::negative_offset ||
                            c.data.fill == Fill::deep_offset;
      if (*rc::gen::arbitrary<bool>()) {
        p.q_format = Format::fp8_e4m3fnuz;
        if (promises) {
          p.sm_scale = *any_scale(0.04F, 0.2F);
          p.kv_scale = *any_scale(0.06F, 64.0F);
        }
        p.q_scale = promises ? *any_scale(0.06F, 64.0F) : *any_scale(0x1p-7F, 128.0F);
      }
    }
    c.seed = *rc::gen::resize(1000, rc::gen::arbitrary<std::uint64_t>());
    c.memory.placement = *any_of(Placement::beyond_4gib);
    c.memory.unused = *any_of(Poison::zero);
    c.memory.output = *any_of(Poison::zero);
    c.memory.scratch = *any_of(Poison::zero);
    c.memory.page_padding_bytes = 16 * *rc::gen::inRange(0, bounds.padding / 16 + 1);
    if (c.memory.placement == Placement::high) {  // 65536 pages must stay below 16 GiB
      p.page_size = *rc::gen::inRange(1, 128);
      c.memory.page_padding_bytes = 16 * *rc::gen::inRange(0, 1024);
    }
    c.memory.guard_bytes = 256 * *rc::gen::inRange(1, 257);
    c.memory.prefix_sharing = *rc::gen::arbitrary<bool>();
    c.problem = p;
    return c;
  });
}

}  // namespace attest::cases
