// SPDX-License-Identifier: MIT
//
// The keys of verify_attention: a group is a node, and its keys are the context, its ancestors and itself.
#include <algorithm>
#include <bit>
#include <functional>
#include <memory>

#include "oracle/mla_launch.h"

namespace attest::oracle {
namespace {

using Eigen::Index;

class TreeKeys final : public MlaKeys {
 public:
  TreeKeys(const cases::VerifyAttention& p, const cases::VerifyAttentionInputs& in)
      : p_(p), decode_problem_(cases::decode_problem(p)) {
    for (const cases::TreeRequest& r : p.requests) masks_.push_back(cases::tree_mask(r));
    for (int request = 0; request < static_cast<int>(p.requests.size()); ++request)
      for (int node = 0; node < tree(request).nodes(); ++node) nodes_.push_back({request, node});
    cache_ = mla_problem(decode_problem_, in.decode).keys;
  }

  struct Node {
    int request = 0, node = 0;
  };
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] std::span<const cases::Request> requests() const { return decode_problem_.requests; }
  [[nodiscard]] int keys_of(const Node& n) const {
    return tree(n.request).context_len + std::popcount(mask(n));
  }

  [[nodiscard]] Matrix rows(int group) const override { return seen_by(at(group), mask(at(group))); }

  [[nodiscard]] std::vector<int> places(int group) const override {
    const Node& n = at(group);
    std::vector<int> places;
    for (int key = 0; key < tree(n.request).context_len; ++key) places.push_back(key);
    for (int other = 0; other < tree(n.request).nodes(); ++other)
      if ((mask(n) >> other & 1) != 0) places.push_back(tree(n.request).context_len + other);
    return places;
  }
  [[nodiscard]] int walk(int group) const override {
    return tree(at(group).request).context_len + tree(at(group).request).nodes();
  }

  [[nodiscard]] std::optional<Matrix> row_beyond(int group, int beyond) const override {
    return cache_->row_beyond(at(group).request, beyond);
  }
  [[nodiscard]] int first_key_past(int group, std::uint64_t bytes) const override {
    return cache_->first_key_past(at(group).request, bytes);
  }
  [[nodiscard]] bool ends_inside_page(int group) const override {
    return cache_->ends_inside_page(at(group).request);
  }
  [[nodiscard]] bool meets_masked_tile(int group, int /*visible*/) const override {
    return keys_of(at(group)) < walk(group);
  }

  [[nodiscard]] std::vector<OtherKeys> other_keys() const override {
    std::vector<OtherKeys> others;
    const auto masked = [&](const char* text, const char* detail,
                            std::function<std::uint64_t(const Node&)> seen) {
      others.push_back(
          {text, detail, [this, seen = std::move(seen)](int group, int) -> std::optional<Matrix> {
             const Node& n = at(group);
             const std::uint64_t wrong = seen(n) & existing(n.request);
             if (wrong == mask(n)) return std::nullopt;
             return seen_by(n, wrong);
           }});
    };
    masked("every row has the window of the first", "each node sees the root and no other node",
           [this](const Node& n) { return masks_[static_cast<std::size_t>(n.request)][0]; });
    masked("nodes of other branches seen", "each node sees all nodes before it",
           [](const Node& n) { return (std::uint64_t{2} << n.node) - 1; });
    masked("later drafts seen", "each node sees all nodes", [](const Node&) { return ~std::uint64_t{0}; });
    if (p_.lead > 0)
      masked("leading rows counted as nodes", "each node has the window of a node further on",
             [this](const Node& n) {
               const auto& masks = masks_[static_cast<std::size_t>(n.request)];
               return masks[std::min(static_cast<std::size_t>(n.node + p_.lead), masks.size() - 1)];
             });
    return others;
  }

 private:
  [[nodiscard]] const Node& at(int group) const { return nodes_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] const cases::TreeRequest& tree(int request) const {
    return p_.requests[static_cast<std::size_t>(request)];
  }
  [[nodiscard]] std::uint64_t mask(const Node& n) const {
    return masks_[static_cast<std::size_t>(n.request)][static_cast<std::size_t>(n.node)];
  }
  [[nodiscard]] std::uint64_t existing(int request) const {
    return tree(request).nodes() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << tree(request).nodes()) - 1;
  }
  [[nodiscard]] Matrix seen_by(const Node& n, std::uint64_t seen) const {
    const Matrix all = cache_->rows(n.request);
    const Index context = tree(n.request).context_len;
    Matrix keys(context + std::popcount(seen), all.cols());
    keys.topRows(context) = all.topRows(context);
    Index next = context;
    for (Index other = 0; other < tree(n.request).nodes(); ++other)
      if ((seen >> other & 1) != 0) keys.row(next++) = all.row(context + other);
    return keys;
  }

  const cases::VerifyAttention& p_;
  cases::MlaDecode decode_problem_;
  std::vector<std::vector<std::uint64_t>> masks_;
  std::vector<Node> nodes_;
  std::shared_ptr<const MlaKeys> cache_;
};

}  // namespace

MlaProblem mla_problem(const cases::VerifyAttention& p, const cases::VerifyAttentionInputs& in) {
  const auto keys = std::make_shared<TreeKeys>(p, in);
  MlaProblem problem;
  problem.requests = keys->requests();
  problem.heads = p.heads;
  problem.page_size = p.page_size;
  problem.return_lse = p.return_lse;
  problem.fp8_cache = p.kv_format != cases::Format::bf16;
  problem.scales = {p.sm_scale, 1.0, p.kv_scale};
  problem.q = in.decode.q;
  Index first_row = 0;
  for (const TreeKeys::Node& n : keys->nodes()) {
    problem.groups.push_back({n.request, n.node, 1, keys->keys_of(n), false, first_row});
    first_row += p.heads;
  }
  problem.keys = keys;
  return problem;
}

}  // namespace attest::oracle
