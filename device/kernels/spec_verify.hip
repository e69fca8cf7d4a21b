// SPDX-License-Identifier: MIT
//
// Speculative verification given the draws: one workgroup per request walks its drafts until one falls. All
// decisions are uniform over the workgroup; what is parallel is the search for the token that replaces it,
// an argmax over the vocabulary. The rules are those of vLLM's rejection sampler (vllm/v1/sample/
// rejection_sampler.py) and, for trees, of SGLang's target-only sampling.
//
//   p/q >= u   is decided as p >= u q in fp64: q may be 0, and a product of a 24-bit and a 53-bit number is
//              off by 2^-53 where a quotient in fp32 would be off by 2^-24
//   argmax     of max(p - q, 0) / E. Ties and a row without weight give the lowest token, NaN never wins:
//              fmax(NaN, 0) is 0. Lanes past the vocabulary take no part at all
//   fill       every entry of the output row is written, -1 behind the last token, and all of it for
//              requests that are only there because a graph is wider than its batch

#include "device/contracts/attest/spec_verify_args.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using contract::SpecVerifyArgs;
constexpr int threads = contract::verify_threads;

struct Best {
  float weight[threads];
  int token[threads];
};

/// The token of the largest weight(token) above -1, the lowest of equals; 0 when there is none.
template <typename Weight>
__device__ int heaviest(int vocab, Best& best, const Weight& weight) {
  const int me = static_cast<int>(threadIdx.x);
  float most = -1.0F;
  int token = 0x7fffffff;
#if defined(ATTEST_FAULT_PADDED_LANE)
  const int end = (vocab + threads - 1) / threads * threads;
#else
  const int end = vocab;
#endif
  for (int v = me; v < end; v += threads) {
    const float w = v < vocab ? weight(v) : 0.0F;
    if (w > most) {
      most = w;
      token = v;
    }
  }
  best.weight[me] = most;
  best.token[me] = token;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (me < half) {
      const float other = best.weight[me + half];
      const bool lower = best.token[me + half] < best.token[me];
      if (other > best.weight[me] || (other == best.weight[me] && lower)) {
        best.weight[me] = other;
        best.token[me] = best.token[me + half];
      }
    }
    __syncthreads();
  }
  const int winner = best.token[0];
  __syncthreads();
  return winner == 0x7fffffff ? 0 : winner;
}

__device__ inline float positive(float x) {
#if defined(ATTEST_FAULT_PADDED_LANE)
  return x <= 0.0F ? 0.0F : x;  // NaN stays
#else
  return fmaxf(x, 0.0F);
#endif
}

/// q is 1 at the draft when there are no draft probabilities.
__device__ inline bool accepts(double p, double q, double u) {
  if (!(q > 0.0)) return false;
#if defined(ATTEST_FAULT_STRICT_ACCEPT)
  return p > u * q;
#else
  return p >= u * q;
#endif
}

/// Writes a row that holds `count` entries already.
__device__ inline void fill(std::int32_t* row, int count, int width) {
  for (int i = count + static_cast<int>(threadIdx.x); i < width; i += threads) row[i] = -1;
}

__device__ void verify_chain(const SpecVerifyArgs& args) {
  __shared__ Best best;
  const int request = static_cast<int>(blockIdx.x);
  const int width = args.max_spec_len + 1;
  std::int32_t* out = args.tokens + std::int64_t{request} * width;
  int count = 0;
  bool stands = true;
  if (request < args.requests) {
    const int first = request == 0 ? 0 : args.cu_num_drafts[request - 1];
    const int drafts = args.cu_num_drafts[request] - first;
    const float* noise = args.exponentials + std::int64_t{request} * args.vocab;
    for (int i = 0; i < drafts && stands; ++i) {
      const int x = args.draft_tokens[first + i];
      const float* p = args.target_probs + std::int64_t{first + i} * args.vocab;
      const float* q =
          args.draft_probs == nullptr ? nullptr : args.draft_probs + std::int64_t{first + i} * args.vocab;
      int token = x;
      if (args.greedy[request] != 0) {
        token = heaviest(args.vocab, best, [&](int v) { return p[v]; });
        stands = token == x;
      } else {
#if defined(ATTEST_FAULT_DRAW_REUSED)
        const double u = args.uniforms[i == 1 ? first : first + i];
#else
        const double u = args.uniforms[first + i];
#endif
        stands = accepts(p[x], q == nullptr ? 1.0F : q[x], u);
        if (!stands) {
          token = heaviest(args.vocab, best, [&](int v) {
#if defined(ATTEST_FAULT_RECOVERED_FROM_TARGET)
            const float residual = p[v];
#else
            const float residual = q != nullptr ? p[v] - q[v] : v == x ? 0.0F : p[v];
#endif
            return positive(residual) * __builtin_amdgcn_rcpf(noise[v]);
          });
        }
      }
      if (threadIdx.x == 0) out[count] = token;
      ++count;
    }
#if defined(ATTEST_FAULT_BONUS_AFTER_REJECT)
    stands = true;
    fill(out, count, drafts);
    count = drafts;
#endif
    if (stands) {
      if (threadIdx.x == 0) out[count] = args.bonus[request];
      ++count;
    }
  }
#if defined(ATTEST_FAULT_UNFILLED_ROW)
  if (request >= args.requests) return;
#endif
  fill(out, count, width);
  fill(args.nodes + std::int64_t{request} * args.max_spec_len, 0, args.max_spec_len);
}

__device__ void verify_tree(const SpecVerifyArgs& args) {
  __shared__ Best best;
  const int request = static_cast<int>(blockIdx.x);
  const int width = args.max_spec_len + 1;
  std::int32_t* out = args.tokens + std::int64_t{request} * width;
  std::int32_t* path = args.nodes + std::int64_t{request} * args.max_spec_len;
  int count = 0;
  int accepted_nodes = 0;
  if (request < args.requests) {
    const int first = request == 0 ? 0 : args.cu_num_drafts[request - 1];
    const int nodes = args.cu_num_drafts[request] - first;
    const float* noise = args.exponentials + std::int64_t{request} * args.vocab;
    const std::int64_t root_row = std::int64_t{first} + request;
    int node = -1;
    for (bool going = true; going;) {
      const float* p = args.target_probs + (root_row + node + 1) * args.vocab;
      const double u = args.uniforms[root_row + node + 1];
      const bool greedy = args.greedy[request] != 0;
      const int wanted = greedy ? heaviest(args.vocab, best, [&](int v) { return p[v]; }) : 0;
      const int child_depth = node < 0 ? 1 : args.depth[first + node] + 1;
      const auto is_child = [&](int k) {
        if (args.depth[first + k] != child_depth) return false;
#if defined(ATTEST_FAULT_TREE_SIBLING)
        return true;
#else
        return node < 0 || (args.ancestors[first + k] >> node & 1U) != 0;
#endif
      };
      double mass = 0;
      int accepted = -1;
      for (int k = 0; k < nodes && accepted < 0; ++k) {
        if (!is_child(k)) continue;
        const int x = args.draft_tokens[first + k];
        mass += p[x];
        if (greedy ? x == wanted : accepts(mass, 1.0, u)) accepted = k;
      }
      int token = wanted;
      if (accepted >= 0) {
        token = args.draft_tokens[first + accepted];
      } else if (!greedy) {
        token = heaviest(args.vocab, best, [&](int v) {
          bool tried = false;
          for (int k = 0; k < nodes; ++k) tried = tried || (is_child(k) && args.draft_tokens[first + k] == v);
#if defined(ATTEST_FAULT_RECOVERED_FROM_TARGET)
          tried = false;
#endif
          return tried ? 0.0F : positive(p[v]) * __builtin_amdgcn_rcpf(noise[v]);
        });
      }
      if (threadIdx.x == 0) {
        out[count] = token;
        if (accepted >= 0) path[accepted_nodes] = accepted;
      }
      ++count;
      going = accepted >= 0;
      accepted_nodes += going ? 1 : 0;
      node = accepted;
    }
  }
#if defined(ATTEST_FAULT_UNFILLED_ROW)
  if (request >= args.requests) return;
#endif
  fill(out, count, width);
  fill(path, accepted_nodes, args.max_spec_len);
}

}  // namespace attest::kernels

extern "C" __global__ __launch_bounds__(256) void spec_verify_chain(attest::contract::SpecVerifyArgs args) {
  attest::kernels::verify_chain(args);
}
extern "C" __global__ __launch_bounds__(256) void spec_verify_tree(attest::contract::SpecVerifyArgs args) {
  attest::kernels::verify_tree(args);
}
