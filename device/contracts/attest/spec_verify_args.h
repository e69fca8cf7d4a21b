// SPDX-License-Identifier: MIT
//
// The launch contract of attest's speculative verification, shared by the kernels and the host: C++17,
// fixed-width types only.
//
//   spec_verify_chain, spec_verify_tree
//     grid   (requests + padded_requests, 1, 1) workgroups
//     block  256
//
// Rows of probabilities are one per draft; in a tree each request has one more, the root's, before those of
// its nodes. Every entry of both outputs is written.
#pragma once

#include <cstdint>

namespace attest::contract {

inline constexpr int verify_threads = 256;

struct SpecVerifyArgs {
  const std::int32_t* cu_num_drafts;  ///< [requests] running sum, each request's own drafts included
  const std::int32_t* draft_tokens;   ///< [drafts]
  const std::int32_t* greedy;         ///< [requests] 0 or 1
  const float* target_probs;          ///< [rows, vocab]
  const float* draft_probs;           ///< [rows, vocab]; null: drafts are certain
  const double* uniforms;             ///< [rows]
  const float* exponentials;          ///< [requests, vocab]
  const std::int32_t* bonus;          ///< [requests]; unused in a tree
  const std::uint32_t* ancestors;     ///< tree: [drafts] bit j: node j is above, or is, the node
  const std::int32_t* depth;          ///< tree: [drafts] 1 for the root's children
  std::int32_t* tokens;               ///< [requests + padded, max_spec_len + 1] emitted, then -1
  std::int32_t* nodes;                ///< [requests + padded, max_spec_len] tree: accepted nodes, then -1
  std::int32_t requests;
  std::int32_t padded_requests;
  std::int32_t vocab;
  std::int32_t max_spec_len;
};
static_assert(sizeof(SpecVerifyArgs) == 112, "the kernels read this layout");

}  // namespace attest::contract
