// SPDX-License-Identifier: MIT
//
// The judge of mla_prefill against a software kernel with chunks and a merge, good and with each defect it
// should name.
#include "oracle/prefill_judge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "oracle/judge.h"
#include "oracle/tests/row_kernel.h"

using namespace attest;
using namespace attest::oracle;
using namespace attest::oracle::testing;
using cases::Format;

namespace {

enum class Fault { none, top_left, row0, no_mask, boundary_twice, empty_is_zero, chunk_missing, k_stride };

cases::Outputs run(const cases::Case& c, const cases::Inputs& inputs, Fault fault) {
  const auto& p = std::get<cases::MlaPrefill>(c.problem);
  const auto& in = std::get<cases::MlaPrefillInputs>(inputs);
  cases::Outputs outputs;
  outputs.tensors = {{"out", {}}, {"lse", {}}};
  const std::size_t qkv = p.qkv_format == Format::bf16 ? 2 : 1,
                    cache = p.cache_format == Format::bf16 ? 2 : 1;
  const auto heads = static_cast<std::size_t>(p.heads);
  const auto tensor_row = [&](const std::vector<std::byte>& tensor, int token, int head, std::size_t columns,
                              std::size_t stride) {
    const std::size_t at =
        (static_cast<std::size_t>(token) * heads + static_cast<std::size_t>(head)) * stride * qkv;
    return row_of(p.qkv_format, std::span(tensor).subspan(at, columns * qkv));
  };
  for (std::size_t r = 0; r < p.requests.size(); ++r) {
    const cases::PrefillRequest& request = p.requests[r];
    for (int i = 0; i < request.q_len; ++i)
      for (int head = 0; head < p.heads; ++head) {
        const Row q = tensor_row(in.q, in.qo_indptr[r] + i, head, 192, 192);
        std::vector<RowState> states;
        for (int chunk = 0; chunk < p.chunks(); ++chunk) {
          RowState& state = states.emplace_back();
          const int begin = chunk * p.chunk_len;
          const int end =
              std::min(request.context_len, begin + p.chunk_len + (fault == Fault::boundary_twice ? 1 : 0));
          for (int t = begin; t < end; ++t) {
            const auto page = static_cast<std::uint64_t>(
                in.page_indices[static_cast<std::size_t>(in.page_indptr[r] + t / p.page_size)]);
            const auto row = static_cast<std::uint64_t>((t % p.page_size) * p.heads + head);
            Row key =
                row_of(p.cache_format,
                       in.context_pool.at(page * in.page_stride_bytes + row * 320 * cache, 320 * cache));
            for (float& value : key) value *= p.kv_scale;
            state.take(q, key, std::span(key).subspan(192), p.sm_scale);
          }
          if (fault == Fault::chunk_missing && chunk == 1) state = {};
        }
        RowState& call = states.emplace_back();
        int visible = request.kv_len - request.q_len + i + 1;
        if (fault == Fault::top_left) visible = std::min(request.kv_len, i + 1);
        if (fault == Fault::row0) visible = request.kv_len - request.q_len + 1;
        if (fault == Fault::no_mask) visible = request.kv_len;
        for (int t = 0; t < visible; ++t) {
          const auto stride = static_cast<std::size_t>(fault == Fault::k_stride ? 192 : p.v_stride);
          call.take(q, tensor_row(in.k, in.kv_indptr[r] + t, head, 192, 192),
                    tensor_row(in.v, in.kv_indptr[r] + t, head, 128, stride), p.sm_scale);
        }
        float max = -std::numeric_limits<float>::infinity(), sum = 0;
        Row out(128, 0.0F);
        const auto lse_of = [&](const RowState& s) {
          return s.sum == 0 && fault == Fault::empty_is_zero ? 0.0F : s.lse();
        };
        for (const RowState& s : states) max = std::max(max, lse_of(s));
        for (const RowState& s : states) {
          if (std::isinf(lse_of(s))) continue;
          const float weight = std::exp(lse_of(s) - max);
          sum += weight;
          for (std::size_t d = 0; d < s.out.size(); ++d) out[d] += weight * s.out[d] / s.sum;
        }
        for (const float value : out) put_bf16(outputs.tensors[0].bytes, sum == 0 ? 0.0F : value / sum);
        put_f32(outputs.tensors[1].bytes, sum == 0 ? max : max + std::log(sum));
      }
  }
  if (!p.return_lse) outputs.tensors.pop_back();
  return outputs;
}

cases::Case a_case() {
  cases::Case c;
  c.seed = 5;
  cases::MlaPrefill p;
  p.heads = 2;
  p.page_size = 4;
  p.chunk_len = 8;
  p.v_stride = 256;
  p.requests = {{5, 5, 19}, {3, 9, 0}, {4, 2, 8}, {0, 3, 2}, {2, 0, 0}};
  c.problem = p;
  return c;
}

}  // namespace

TEST_CASE("Chunked attention passes in every fill and format") {
  double used = 0;
  for (const auto fill :
       {cases::Fill::normal, cases::Fill::mean_shifted, cases::Fill::position_coded,
        cases::Fill::constant_scores, cases::Fill::wide_scores, cases::Fill::negative_offset})
    for (const Format qkv : {Format::bf16, Format::fp8_e4m3fnuz})
      for (const Format cache : {Format::bf16, Format::fp8_e4m3fnuz}) {
        cases::Case c = a_case();
        auto& p = std::get<cases::MlaPrefill>(c.problem);
        c.data.fill = fill;
        p.qkv_format = qkv;
        p.cache_format = cache;
        if (cache != Format::bf16) p.kv_scale = fill == cases::Fill::constant_scores ? 4.0F : 0.37F;
        INFO(cases::canonical_json(c));
        const cases::Inputs inputs = cases::materialise(c);
        const Verdict v = judge(c, inputs, run(c, inputs, Fault::none), profile("fp32p"));
        INFO(v.diagnosis << ": " << v.detail);
        CHECK(v.kind == VerdictKind::pass);
        used = std::max(used, v.used_budget);
      }
  CHECK(used < 0.9);
}

TEST_CASE("negative_offset keeps its promise: every key scores -45 to -18") {
  cases::Case c = a_case();
  c.data.fill = cases::Fill::negative_offset;
  const cases::Inputs inputs = cases::materialise(c);
  const auto& in = std::get<cases::MlaPrefillInputs>(inputs);
  const Row q = row_of(Format::bf16, std::span(in.q).first(std::size_t{192} * 2));
  for (int t = 0; t < 5; ++t) {
    const Row k = row_of(Format::bf16, std::span(in.k).subspan(static_cast<std::size_t>(t) * 2 * 192 * 2,
                                                               std::size_t{192} * 2));
    float dot = 0;
    for (std::size_t d = 0; d < 192; ++d) dot += q[d] * k[d];
    CHECK(dot * std::get<cases::MlaPrefill>(c.problem).sm_scale < -18);
    CHECK(dot * std::get<cases::MlaPrefill>(c.problem).sm_scale > -45);
  }
}

TEST_CASE("Each defect of a chunked prefill fails and is named") {
  struct Planted {
    const char* diagnosis;
    Fault fault;
  };
  for (const Planted& planted : {Planted{"causal mask aligned to the top left", Fault::top_left},
                                 Planted{"every row has the window of the first", Fault::row0},
                                 Planted{"causal mask missing", Fault::no_mask},
                                 Planted{"chunk boundary keys counted twice", Fault::boundary_twice},
                                 Planted{"states without keys take weight", Fault::empty_is_zero},
                                 Planted{"one chunk missing", Fault::chunk_missing},
                                 Planted{"v read with another stride", Fault::k_stride}}) {
    cases::Case c = a_case();
    // Garbage that is finite: a wrong stride gives numbers, not NaN.
    if (planted.fault == Fault::k_stride) c.memory.unused = cases::Poison::stale;
    const cases::Inputs inputs = cases::materialise(c);
    const Verdict v = judge(c, inputs, run(c, inputs, planted.fault), profile("fp32p"));
    INFO(planted.diagnosis << " was called " << v.diagnosis << ": " << v.detail);
    CHECK(v.kind == VerdictKind::fail);
    CHECK(v.diagnosis == planted.diagnosis);
  }
}

TEST_CASE("An unwritten result is called so") {
  const cases::Case c = a_case();
  const cases::Inputs inputs = cases::materialise(c);
  cases::Outputs outputs = run(c, inputs, Fault::none);
  std::fill(outputs.tensors[0].bytes.begin() + 256, outputs.tensors[0].bytes.begin() + 512, std::byte{0xff});
  const Verdict v = judge(c, inputs, outputs, profile("fp32p"));
  CHECK(v.kind == VerdictKind::fail);
  CHECK(v.diagnosis == "rows unwritten");
  outputs.tensors[0].bytes.pop_back();
  CHECK(judge(c, inputs, outputs, profile("fp32p")).kind == VerdictKind::harness_error);
}
