// SPDX-License-Identifier: MIT
//
// Sparse attention as a step of an engine runs it, through four kernels in a row on the simulator: indexer
// logits, top-k, index remap, attention over the lists, each given what the one before returned. The result
// must be attention over the exact top-k of exact logits, up to ties.
//
// Ties. Tokens 2 i and 2 i + 1 are twins: equal in the indexer's cache, so that their logits tie, and equal
// in the attention's, so that whichever of them a selection takes, attention is the same. k is odd, which
// splits a pair in every row. All other logits are further apart than the kernel's errors, which is checked.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "device/kernel.h"
#include "oracle/judge.h"
#include "oracle/precision.h"
#include "reference/formats.h"
#include "reference/index_remap.h"
#include "reference/indexer.h"
#include "reference/paged_cache.h"
#include "reference/top_k.h"

namespace attest::fuzz {
namespace {

using namespace cases;

constexpr int page_size = 16, k = 33, indexer_heads = 4;
// The last one has fewer tokens than k: its lists end in -1.
const std::vector<Request> requests = {{2, 150}, {2, 91}, {2, 20}};

Case case_of(Problem problem) {
  Case c;
  c.seed = 12;
  c.problem = std::move(problem);
  return c;
}

Outputs run(const std::string& kernel, const Case& c, const Inputs& inputs) {
  static const auto device = device::open_device("sim", 0);
  const device::Kernel* found = device::find_kernel("attest/" + kernel);
  REQUIRE(found != nullptr);
  device::Outcome outcome = found->run(*device, c, inputs);
  REQUIRE(outcome.status == device::Status::ok);
  return std::move(outcome.outputs);
}

template <typename T>
std::vector<T> run(const std::string& kernel, const Case& c, const Inputs& inputs, const char* tensor) {
  const Outputs outputs = run(kernel, c, inputs);
  const Outputs::Tensor* found = outputs.find(tensor);
  REQUIRE(found != nullptr);
  std::vector<T> values(found->bytes.size() / sizeof(T));
  std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
  return values;
}

/// Copies a token's bytes over its twin's. place(t) is where those of token t begin in the pool.
template <typename Place>
void make_twins(SparseBytes& pool, int tokens, std::size_t bytes, const Place& place) {
  SparseBytes::Extent& content = pool.extents.back();
  for (int t = 0; t + 1 < tokens; t += 2)
    std::memcpy(content.bytes.data() + (place(t + 1) - content.offset),
                content.bytes.data() + (place(t) - content.offset), bytes);
}

/// The kernels of the four steps; a planted fault behind a plus.
struct Kernels {
  std::string logits = "indexer_logits", topk = "topk", remap = "index_remap", attention = "mla_sparse";
};

/// One batch, its data, and what should come out.
class Chain {
 public:
  Chain() {
    MlaSparse p;
    p.heads = 2;
    p.page_size = page_size;
    p.topk = 150;
    p.requests = requests;
    // With room for all tokens, the last row of a request lists all its slots.
    auto all = std::get<MlaSparseInputs>(materialise(case_of(p)));
    std::size_t row = 0;
    for (const Request& r : requests) {
      row += static_cast<std::size_t>(r.q_len);
      const std::int32_t* slots = all.indices.data() + (row - 1) * 150;
      std::vector<std::int32_t>& table = tables_.emplace_back();
      for (int t = 0; t < r.kv_len; t += page_size) table.push_back(slots[t] / page_size);
      make_twins(all.kv_pool, r.kv_len, 1152, [&](int t) {
        return static_cast<std::uint64_t>(slots[t] / page_size) * all.page_stride_bytes +
               static_cast<std::uint64_t>(slots[t] % page_size) * 1152;
      });
    }
    p.topk = k;
    attention_ = case_of(p);
    attention_in_ = std::move(all);

    IndexerLogits indexer;
    indexer.heads = indexer_heads;
    indexer.page_size = page_size;
    indexer.requests = requests;
    indexer_ = case_of(indexer);
    indexer_in_ = std::get<IndexerLogitsInputs>(materialise(indexer_));
    for (std::size_t b = 0; b < requests.size(); ++b) {
      make_twins(indexer_in_.pool, requests[b].kv_len, reference::indexer_width,
                 [&](int t) { return page(b, t) + reference::indexer_values_at(t % page_size); });
      make_twins(indexer_in_.pool, requests[b].kv_len, 4,
                 [&](int t) { return page(b, t) + reference::indexer_scale_at(page_size, t % page_size); });
    }
    select_exactly();
  }

  /// The lists that the kernels make.
  [[nodiscard]] std::vector<std::int32_t> positions(const Kernels& kernels) const {
    TopK p;
    p.k = k;
    p.form = TopKForm::decode;
    p.requests = requests;
    const Case c = case_of(p);
    auto in = std::get<TopKInputs>(materialise(c));
    in.logits = run<float>(kernels.logits, indexer_, indexer_in_, "logits");
    REQUIRE(in.width == indexer_in_.width);
    REQUIRE(in.row_end == indexer_in_.row_end);
    return run<std::int32_t>(kernels.topk, c, in, "positions");
  }

  /// What attention over lists makes of it, judged as attention over the exact selection.
  [[nodiscard]] oracle::Verdict verdict(const Kernels& kernels) const {
    IndexRemap p;
    p.k = k;
    p.page_size = page_size;
    p.requests = requests;
    const Case c = case_of(p);
    auto in = std::get<IndexRemapInputs>(materialise(c));
    in.indices = positions(kernels);
    for (std::size_t b = 0; b < tables_.size(); ++b)
      std::copy(tables_[b].begin(), tables_[b].end(),
                in.block_table.begin() + static_cast<std::ptrdiff_t>(b) * in.table_stride);
    MlaSparseInputs ran = attention_in_;
    ran.indices = run<std::int32_t>(kernels.remap, c, in, "slots");
    const Outputs outputs = run(kernels.attention, attention_, ran);
    return oracle::judge(attention_, attention_in_, outputs, oracle::profile("bf16"));
  }

  /// [rows][min(visible, k)], ascending.
  [[nodiscard]] const std::vector<std::vector<std::int32_t>>& exact() const { return exact_; }

 private:
  [[nodiscard]] std::uint64_t page(std::size_t request, int token) const {
    const auto entry = request * static_cast<std::size_t>(indexer_in_.table_stride) +
                       static_cast<std::size_t>(token / page_size);
    return static_cast<std::uint64_t>(indexer_in_.block_table[entry]) * indexer_in_.page_stride_bytes;
  }

  void select_exactly() {
    constexpr auto fp8 = reference::Format::fp8_e4m3fnuz;
    constexpr std::size_t q_bytes = std::size_t{indexer_heads} * reference::indexer_width;
    attention_in_.indices.clear();
    attention_in_.lengths.clear();
    std::size_t row = 0;
    for (std::size_t b = 0; b < requests.size(); ++b) {
      const int tokens = requests[b].kv_len;
      reference::Matrix keys(tokens, reference::indexer_width);
      std::vector<double> scales;
      for (int t = 0; t < tokens; ++t) {
        const std::uint64_t values_at = page(b, t) + reference::indexer_values_at(t % page_size);
        reference::decode(fp8, indexer_in_.pool.at(values_at, reference::indexer_width),
                          {keys.row(t).data(), static_cast<std::size_t>(reference::indexer_width)});
        float scale = 0;
        const std::uint64_t scale_at = page(b, t) + reference::indexer_scale_at(page_size, t % page_size);
        std::memcpy(&scale, indexer_in_.pool.at(scale_at, 4).data(), 4);
        scales.push_back(double{scale});
      }
      for (int i = 0; i < requests[b].q_len; ++i, ++row) {
        const int n = tokens - requests[b].q_len + i + 1;
        const reference::Matrix q =
            reference::decode_matrix(fp8, std::span(indexer_in_.q).subspan(row * q_bytes, q_bytes),
                                     indexer_heads, reference::indexer_width);
        std::vector<double> weights;
        for (std::size_t h = row * indexer_heads; h < (row + 1) * indexer_heads; ++h)
          weights.push_back(double{indexer_in_.weights[h]} * double{indexer_in_.q_scale[h]});
        const reference::IndexerLogits logits = reference::indexer_logits(
            q, weights, keys.topRows(n), std::span<const double>(scales).first(static_cast<std::size_t>(n)));
        const std::vector<std::int32_t> best =
            reference::top_k({logits.logits.data(), static_cast<std::size_t>(n)}, k);
        only_twins_tie(logits, best);
        for (const std::int32_t position : best)
          attention_in_.indices.push_back(
              reference::global_slot(position, tables_[b], page_size, reference::InvalidSlot::minus_one));
        attention_in_.indices.resize((row + 1) * k, -1);
        attention_in_.lengths.push_back(k);
        exact_.push_back(best);
      }
    }
  }

  /// Between a chosen token and one that is not and not its twin lie more than both errors: of 128 products
  /// and some heads in f32, rounded or cut off, (128 + heads + 3) 2^-23 of the sum of magnitudes each.
  static void only_twins_tie(const reference::IndexerLogits& logits, const std::vector<std::int32_t>& best) {
    constexpr double unit = (128 + indexer_heads + 3) * 0x1p-23;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (std::int32_t t = 0; t < logits.logits.size(); ++t) {
      const bool chosen = std::binary_search(best.begin(), best.end(), t);
      if (chosen) least = std::min(least, logits.logits[t] - unit * logits.magnitude[t]);
      if (!chosen && !std::binary_search(best.begin(), best.end(), t ^ 1))
        most = std::max(most, logits.logits[t] + unit * logits.magnitude[t]);
    }
    REQUIRE(most < least);
  }

  Case indexer_, attention_;
  IndexerLogitsInputs indexer_in_;
  MlaSparseInputs attention_in_;  ///< with the exact lists
  std::vector<std::vector<std::int32_t>> tables_;
  std::vector<std::vector<std::int32_t>> exact_;
};

const Chain& chain() {
  static const Chain made;
  return made;
}

}  // namespace

TEST_CASE("What the kernels select is the exact top-k, twins aside") {
  const std::vector<std::int32_t> positions = chain().positions({});
  for (std::size_t row = 0; row < chain().exact().size(); ++row) {
    std::vector<std::int32_t> best = chain().exact()[row];
    std::vector<std::int32_t> chosen(positions.begin() + static_cast<std::ptrdiff_t>(row) * k,
                                     positions.begin() + static_cast<std::ptrdiff_t>(row + 1) * k);
    std::erase(chosen, -1);
    CAPTURE(row);
    REQUIRE(chosen.size() == best.size());
    for (std::int32_t& t : chosen) t /= 2;
    for (std::int32_t& t : best) t /= 2;
    CHECK(std::is_permutation(chosen.begin(), chosen.end(), best.begin()));
  }
}

TEST_CASE("Logits, top-k, remap and attention in a row are attention over the exact top-k") {
  const oracle::Verdict v = chain().verdict({});
  CAPTURE(v.diagnosis, v.detail);
  CHECK(v.kind == oracle::VerdictKind::pass);
}

TEST_CASE("A fault in any step shows at the end of the chain") {
  const auto kind = [](const Kernels& kernels) { return chain().verdict(kernels).kind; };
  CHECK(kind({.logits = "indexer_logits+relu_missing"}) == oracle::VerdictKind::fail);
  CHECK(kind({.topk = "topk+one_short"}) == oracle::VerdictKind::fail);
  CHECK(kind({.remap = "index_remap+local_as_global"}) == oracle::VerdictKind::fail);
  CHECK(kind({.attention = "mla_sparse+holes_slot_zero"}) == oracle::VerdictKind::fail);
}

}  // namespace attest::fuzz
