// SPDX-License-Identifier: MIT
//
// Cache and queries are those of the mla_decode problem with the same tokens. Its fills hold: a node sees the
// context and its root, which is what the first query position of a causal mla_decode sees, and of the tokens
// after those some, each of which leaves the mean of `exact` where it is.
#include <algorithm>
#include <cstring>

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/ops/verify_attention.h"

namespace attest::cases {

VerifyAttentionInputs materialise(const Case& c, const VerifyAttention& p) {
  Case with_same_cache = c;
  with_same_cache.problem = decode_problem(p);
  VerifyAttentionInputs in;
  in.decode = materialise(with_same_cache, std::get<MlaDecode>(with_same_cache.problem));

  const std::size_t token_bytes = static_cast<std::size_t>(p.heads) * 576 * 2;
  const std::size_t lead_bytes = static_cast<std::size_t>(p.lead) * token_bytes;
  const std::vector<std::byte> leading =
      poison_bytes(c, c.memory.unused, Format::bf16, lead_bytes / 2 * p.requests.size(), "leading rows");
  in.q_indptr.push_back(0);
  in.node_indptr.push_back(0);
  const std::byte* queries = in.decode.q.data();
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const TreeRequest& r = p.requests[i];
    const auto* lead = leading.data() + i * lead_bytes;
    in.q.insert(in.q.end(), lead, lead + lead_bytes);
    const std::size_t bytes = static_cast<std::size_t>(r.nodes()) * token_bytes;
    in.q.insert(in.q.end(), queries, queries + bytes);
    queries += bytes;
    in.q_indptr.push_back(in.q_indptr.back() + p.lead + r.nodes());
    in.node_indptr.push_back(in.node_indptr.back() + r.nodes());
    for (const std::uint64_t seen : tree_mask(r)) {
      const std::uint64_t beyond = r.nodes() == 64 ? 0 : ~std::uint64_t{0} << r.nodes();
      in.mask.push_back(c.memory.unused == Poison::zero ? seen : seen | beyond);
    }
  }
  return in;
}

}  // namespace attest::cases
