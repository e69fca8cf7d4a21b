// SPDX-License-Identifier: MIT
#include "oracle/mla_launch.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "reference/paged_cache.h"

namespace attest::oracle {

using Eigen::Index;
using reference::kv_lora_rank;
using reference::row_width;

reference::Format to_reference(cases::Format format) {
  switch (format) {
    case cases::Format::bf16:
      return reference::Format::bf16;
    case cases::Format::f16:
      return reference::Format::f16;
    case cases::Format::f32:
      return reference::Format::f32;
    case cases::Format::fp8_e4m3fn:
      return reference::Format::fp8_e4m3fn;
    case cases::Format::fp8_e4m3fnuz:
      return reference::Format::fp8_e4m3fnuz;
    case cases::Format::fp8_e5m2:
      return reference::Format::fp8_e5m2;
    case cases::Format::fp8_e5m2fnuz:
      return reference::Format::fp8_e5m2fnuz;
    case cases::Format::e8m0:
      return reference::Format::e8m0;
  }
  throw std::invalid_argument("a format without a name");
}

std::size_t MlaLaunch::row_bytes() const {
  return static_cast<std::size_t>(kv_lora_rank) *
         static_cast<std::size_t>(reference::bytes_per_element(to_reference(problem.out_format)));
}

Matrix MlaLaunch::q_rows(Index first, Index count) const {
  const reference::Format format = to_reference(problem.q_format);
  const auto bytes = std::size_t{row_width} * static_cast<std::size_t>(reference::bytes_per_element(format));
  return reference::decode_matrix(
      format,
      problem.q.subspan(static_cast<std::size_t>(first) * bytes, static_cast<std::size_t>(count) * bytes),
      count, row_width);
}

std::optional<MlaLaunch> open_launch(const cases::Case& c, MlaProblem problem, const cases::Outputs& outputs,
                                     const PrecisionProfile& profile, std::string& why) {
  std::size_t rows = 0;
  for (const cases::Request& request : problem.requests)
    rows += static_cast<std::size_t>(request.q_len) * static_cast<std::size_t>(problem.heads);
  const auto bytes_of = [&](std::string_view tensor, std::size_t size) -> const cases::Outputs::Tensor* {
    const cases::Outputs::Tensor* found = outputs.find(tensor);
    if (found == nullptr) {
      why = fmt::format("the device returned no tensor \"{}\"", tensor);
    } else if (found->bytes.size() != size) {
      why =
          fmt::format("tensor \"{}\" has {} bytes, the case asks for {}", tensor, found->bytes.size(), size);
      found = nullptr;
    }
    return found;
  };
  const reference::Format out_format = to_reference(problem.out_format);
  const reference::AttentionScales scales = problem.scales;
  const RoundingGrid grid = RoundingGrid::of(problem.out_format);
  MlaLaunch launch{c, std::move(problem), profile, scales, grid, {}, {}, {}, {}};
  const auto* out = bytes_of("out", rows * launch.row_bytes());
  if (out == nullptr) return std::nullopt;
  launch.out_bytes = out->bytes;
  launch.out = reference::decode_matrix(out_format, launch.out_bytes, static_cast<Index>(rows), kv_lora_rank);
  if (launch.has_lse()) {
    const auto* lse = bytes_of("lse", rows * sizeof(float));
    if (lse == nullptr) return std::nullopt;
    launch.lse_bytes = lse->bytes;
    launch.lse =
        reference::decode_matrix(reference::Format::f32, launch.lse_bytes, static_cast<Index>(rows), 1);
  }
  return launch;
}

std::optional<MlaLaunch> open_launch(const cases::Case& c, const cases::Inputs& inputs,
                                     const cases::Outputs& outputs, const PrecisionProfile& profile,
                                     std::string& why) {
  if (const auto* sparse = std::get_if<cases::MlaSparse>(&c.problem))
    return open_launch(c, mla_problem(*sparse, std::get<cases::MlaSparseInputs>(inputs)), outputs, profile,
                       why);
  if (const auto* p = std::get_if<cases::VerifyAttention>(&c.problem))
    return open_launch(c, mla_problem(*p, std::get<cases::VerifyAttentionInputs>(inputs)), outputs, profile,
                       why);
  return open_launch(c,
                     mla_problem(std::get<cases::MlaDecode>(c.problem),
                                 std::get<cases::MlaDecodeInputs>(inputs), profile.restoring),
                     outputs, profile, why);
}

MlaRequest load_request(const MlaLaunch& launch, int index) {
  MlaRequest request;
  request.index = index;
  request.group = launch.problem.groups[static_cast<std::size_t>(index)];
  request.q_len = request.group.q_len;
  request.kv_len = request.group.kv_len;
  request.heads = launch.problem.heads;
  request.first_row = request.group.first_row;
  request.q = launch.q_rows(request.first_row, request.rows());
  request.k = launch.problem.keys->rows(index);
  request.q_norms = row_norms(request.q);
  request.k_norms = row_norms(request.k);
  request.repetitions = launch.problem.keys->repetitions(index);
  if (!launch.problem.keys->places(index).empty()) request.walk = launch.problem.keys->walk(index);
  request.attention = reference::attend(request.q, request.k, launch.scales, request.q_len, request.heads,
                                        request.group.causal);
  return request;
}

}  // namespace attest::oracle
