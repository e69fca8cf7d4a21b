// SPDX-License-Identifier: MIT
#include "reference/speculative.h"

#include <cstddef>

namespace attest::reference {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

std::vector<double> widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

int heaviest(std::span<const double> weights) {
  int best = 0;
  double most = 0;
  for (std::size_t v = 0; v < weights.size(); ++v) {
    if (weights[v] > most) {
      most = weights[v];
      best = static_cast<int>(v);
    }
  }
  return best;
}

std::vector<double> residual_weights(std::span<const float> p, std::span<const float> q,
                                     std::span<const std::int32_t> without, std::span<const float> e) {
  std::vector<double> weights(p.size());
  for (std::size_t v = 0; v < p.size(); ++v) {
    const double difference = double{p[v]} - (q.empty() ? 0.0 : double{q[v]});
    weights[v] = difference > 0 ? difference / double{e[v]} : 0.0;
  }
  for (const std::int32_t token : without) weights[at(token)] = 0;
  return weights;
}

std::vector<std::int32_t> verify_chain(const ChainRequest& request) {
  std::vector<std::int32_t> tokens;
  const std::size_t vocab = at(request.vocab);
  for (std::size_t i = 0; i < request.drafts.size(); ++i) {
    const std::int32_t x = request.drafts[i];
    const auto p = request.p.subspan(i * vocab, vocab);
    const auto q = request.q.empty() ? request.q : request.q.subspan(i * vocab, vocab);
    if (request.greedy) {
      tokens.push_back(heaviest(widened(p)));
      if (tokens.back() != x) return tokens;
      continue;
    }
    const double px = p[at(x)];
    const double qx = q.empty() ? 1.0 : double{q[at(x)]};
    if (qx > 0 && px / qx >= request.u[i]) {
      tokens.push_back(x);
      continue;
    }
    const std::int32_t drafted[] = {x};
    const auto without = q.empty() ? std::span<const std::int32_t>(drafted) : std::span<const std::int32_t>();
    tokens.push_back(heaviest(residual_weights(p, q, without, request.e)));
    return tokens;
  }
  tokens.push_back(request.bonus);
  return tokens;
}

std::vector<int> children(std::span<const std::uint32_t> ancestors, int node) {
  const std::uint32_t above = node < 0 ? 0 : ancestors[at(node)];
  std::vector<int> found;
  for (std::size_t k = 0; k < ancestors.size(); ++k)
    if ((ancestors[k] & ~(std::uint32_t{1} << k)) == above) found.push_back(static_cast<int>(k));
  return found;
}

TreePath verify_tree(const TreeRequest& request) {
  TreePath path;
  const std::size_t vocab = at(request.vocab);
  for (int node = -1;;) {
    const auto p = request.p.subspan(at(node + 1) * vocab, vocab);
    const std::vector<int> next = children(request.ancestors, node);
    int accepted = -1;
    std::int32_t emitted = 0;
    if (request.greedy) {
      emitted = heaviest(widened(p));
      for (const int child : next)
        if (accepted < 0 && request.tokens[at(child)] == emitted) accepted = child;
    } else {
      double mass = 0;
      std::vector<std::int32_t> tried;
      for (const int child : next) {
        if (accepted >= 0) break;
        tried.push_back(request.tokens[at(child)]);
        mass += double{p[at(tried.back())]};
        if (mass >= request.u[at(node + 1)]) accepted = child;
      }
      emitted = accepted >= 0 ? tried.back() : heaviest(residual_weights(p, {}, tried, request.e));
    }
    path.tokens.push_back(emitted);
    if (accepted < 0) return path;
    path.nodes.push_back(accepted);
    node = accepted;
  }
}

}  // namespace attest::reference
