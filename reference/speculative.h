// SPDX-License-Identifier: MIT
//
// Speculative verification: which drafted tokens stand, and what is emitted where the first one falls.
//
// The rules of vLLM's rejection sampler, given its random draws, in fp64:
//
//   greedy   position i emits argmax p_i; the first position that differs from its draft is the last
//   random   draft x is accepted iff q(x) > 0 and p(x) / q(x) >= u_i. Where it is not, the position emits
//            argmax_v max(p(v) - q(v), 0) / E(v)  and is the last; with E(v) ~ Exp(1) that is a sample of
//            the normalised residual. Without draft probabilities q is one-hot: accept iff p(x) >= u_i, and
//            the residual is p without x. A residual of zero everywhere emits token 0
//   bonus    emitted behind the drafts when all of them were accepted
//
// so that every emitted token has the target's distribution (Leviathan et al., arXiv:2211.17192, theorem 3.5;
// Chen et al., arXiv:2302.01318).
//
// A tree drafts several continuations of a prefix. Node k has a token and a set of ancestors; verification
// starts at the root, whose row is the target after the last token that stands, and asks the children of the
// node it is at, in order of their number:
//
//   greedy   the child whose token is argmax p, else emit argmax p and stop
//   random   the first child up to which the children's tokens have p(x_1) + ... + p(x_j) >= u; else emit
//            argmax p(v) / E(v) over the tokens that no child has, and stop
//
// which is target-only sampling as in SGLang (tree_speculative_sampling_target_only).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attest::reference {

struct ChainRequest {
  bool greedy = false;
  int vocab = 0;
  std::span<const std::int32_t> drafts;  ///< [n]
  std::span<const float> p;              ///< [n, vocab] target probabilities
  std::span<const float> q;              ///< [n, vocab] draft probabilities; empty: one-hot
  std::span<const double> u;             ///< [n] in [0, 1)
  std::span<const float> e;              ///< [vocab] positive
  std::int32_t bonus = 0;
};
/// The emitted tokens: 1 to n + 1 of them.
std::vector<std::int32_t> verify_chain(const ChainRequest& request);

struct TreeRequest {
  bool greedy = false;
  int vocab = 0;
  std::span<const std::int32_t> tokens;      ///< [n]
  std::span<const std::uint32_t> ancestors;  ///< [n] bit j: node j is above node k, or is node k
  std::span<const float> p;                  ///< [n + 1, vocab]: the root's row, then the nodes'
  std::span<const double> u;                 ///< [n + 1]
  std::span<const float> e;                  ///< [vocab]
};
struct TreePath {
  std::vector<std::int32_t> nodes;   ///< accepted, from the root down
  std::vector<std::int32_t> tokens;  ///< of these nodes, then one more
};
TreePath verify_tree(const TreeRequest& request);

/// Children of `node`, -1 for the root, in order: those whose ancestors besides themselves are the node and
/// its ancestors.
std::vector<int> children(std::span<const std::uint32_t> ancestors, int node);

/// argmax_v weight(v), the lowest of equals; 0 when no weight is positive. NaN is no weight.
int heaviest(std::span<const double> weights);

/// max(p - q, 0) / e per token; an empty q counts as 0, tokens in `without` weigh 0, NaN weighs 0.
std::vector<double> residual_weights(std::span<const float> p, std::span<const float> q,
                                     std::span<const std::int32_t> without, std::span<const float> e);

}  // namespace attest::reference
