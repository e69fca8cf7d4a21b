// SPDX-License-Identifier: MIT
#include "oracle/mla_launch.h"

#include <fmt/format.h>

#include <stdexcept>

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

std::optional<MlaLaunch> open_launch(const cases::Case& c, const cases::Inputs& inputs,
                                     const cases::Outputs& outputs, const PrecisionProfile& profile,
                                     std::string& why) {
  const auto& problem = std::get<cases::MlaDecode>(c.problem);
  const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
  const auto rows = static_cast<std::size_t>(in.qo_indptr.back()) * static_cast<std::size_t>(problem.heads);
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
  MlaLaunch launch{c,
                   problem,
                   in,
                   profile,
                   {problem.sm_scale, problem.q_scale, problem.kv_scale},
                   RoundingGrid::of(problem.out_format),
                   {},
                   {},
                   {},
                   {}};
  const auto* out = bytes_of("out", rows * launch.row_bytes());
  if (out == nullptr) return std::nullopt;
  launch.out_bytes = out->bytes;
  launch.out = reference::decode_matrix(out_format, launch.out_bytes, static_cast<Index>(rows), kv_lora_rank);
  if (problem.return_lse) {
    const auto* lse = bytes_of("lse", rows * sizeof(float));
    if (lse == nullptr) return std::nullopt;
    launch.lse_bytes = lse->bytes;
    launch.lse =
        reference::decode_matrix(reference::Format::f32, launch.lse_bytes, static_cast<Index>(rows), 1);
  }
  return launch;
}

reference::PagedCache cache_of(const MlaLaunch& launch) {
  reference::PagedCache cache;
  cache.format = to_reference(launch.problem.kv_format);
  cache.page_size = launch.problem.page_size;
  cache.page_stride_bytes = launch.inputs.page_stride_bytes;
  cache.columns = row_width;
  cache.bytes = [&pool = launch.inputs.kv_pool](std::uint64_t offset, std::size_t size) {
    return pool.at(offset, size);
  };
  return cache;
}

std::span<const std::int32_t> pages_of(const MlaLaunch& launch, int index) {
  const auto& in = launch.inputs;
  const auto b = static_cast<std::size_t>(index);
  const auto first = static_cast<std::size_t>(in.kv_indptr[b]),
             last = static_cast<std::size_t>(in.kv_indptr[b + 1]);
  return std::span(in.kv_page_indices).subspan(first, last - first);
}

MlaRequest load_request(const MlaLaunch& launch, int index) {
  const auto& in = launch.inputs;
  const cases::Request& wanted = launch.problem.requests[static_cast<std::size_t>(index)];
  MlaRequest request;
  request.index = index;
  request.q_len = wanted.q_len;
  request.kv_len = wanted.kv_len;
  request.heads = launch.problem.heads;
  request.first_row = Index{in.qo_indptr[static_cast<std::size_t>(index)]} * request.heads;
  const reference::Format q_format = to_reference(launch.problem.q_format);
  const auto q_row_bytes =
      std::size_t{row_width} * static_cast<std::size_t>(reference::bytes_per_element(q_format));
  request.q = reference::decode_matrix(
      q_format,
      std::span(in.q).subspan(static_cast<std::size_t>(request.first_row) * q_row_bytes,
                              static_cast<std::size_t>(request.rows()) * q_row_bytes),
      request.rows(), row_width);
  request.k = reference::gather_rows(cache_of(launch), pages_of(launch, index), request.kv_len);
  request.q_norms = row_norms(request.q);
  request.k_norms = row_norms(request.k);
  request.attention = reference::attend(request.q, request.k, launch.scales, request.q_len, request.heads,
                                        launch.problem.causal);
  return request;
}

}  // namespace attest::oracle
