// SPDX-License-Identifier: MIT
//
// Lists. Holes are put in, not over: a list keeps as many slots as its row has room for. So `tile` gives a
// first tile without a single slot in front of slots that count, the case that tests with padding at the end
// only never have (vllm-project/vllm#48364).
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "cases/cache_pool.h"
#include "cases/case.h"
#include "cases/fills.h"
#include "cases/ops/mla_sparse.h"
#include "cases/paging.h"
#include "cases/poison.h"
#include "cases/random.h"

namespace attest::cases {
namespace {

constexpr int hole = -1;

/// Makes the lists, as tokens of the request and holes.
class ListMaker {
 public:
  ListMaker(const MlaSparse& p, std::uint64_t seed) : p_(p), seed_(seed) {}

  [[nodiscard]] std::vector<int> list(int request, int position) {
    const Counter draw(seed_, Draw::index_list, static_cast<std::uint32_t>(request),
                       static_cast<std::uint32_t>(position));
    next_ = 0;
    const auto below = [&](int bound) {
      return static_cast<int>(draw.below(next_++, static_cast<std::uint32_t>(std::max(bound, 1))));
    };
    const Request& r = p_.requests[static_cast<std::size_t>(request)];
    const int n = std::clamp(r.kv_len - r.q_len + position + 1, 0, r.kv_len);

    std::vector<int> tokens = choose(n, std::min(n, p_.topk), below);
    if (p_.length == ListLength::ragged) {
      const int kind = below(4);
      if (kind == 0) tokens.clear();
      if (kind == 1) tokens.resize(static_cast<std::size_t>(below(static_cast<int>(tokens.size()) + 1)));
    }
    dig(tokens, below);
    return tokens;
  }

 private:
  template <typename Below>
  std::vector<int> choose(int n, int count, const Below& below) const {
    std::vector<int> tokens;
    switch (p_.choice) {
      case ListChoice::newest:
      case ListChoice::shuffled:
        tokens.resize(static_cast<std::size_t>(count));
        std::iota(tokens.begin(), tokens.end(), n - count);
        break;
      case ListChoice::random:
        tokens.resize(static_cast<std::size_t>(n));
        std::iota(tokens.begin(), tokens.end(), 0);
        break;
      case ListChoice::repeated:
        for (int i = 0; i < count; ++i) tokens.push_back(below(n));
        return tokens;
    }
    if (p_.choice == ListChoice::newest) return tokens;
    for (int i = 0; i < count; ++i)
      std::swap(tokens[static_cast<std::size_t>(i)],
                tokens[static_cast<std::size_t>(i + below(static_cast<int>(tokens.size()) - i))]);
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
  }

  template <typename Below>
  void dig(std::vector<int>& tokens, const Below& below) const {
    const int size = static_cast<int>(tokens.size());
    const auto insert = [&](int at, int holes) {
      holes = std::min(holes, std::max(p_.topk - 1, p_.topk - size));
      tokens.insert(tokens.begin() + at, static_cast<std::size_t>(holes), hole);
      if (static_cast<int>(tokens.size()) > p_.topk) tokens.resize(static_cast<std::size_t>(p_.topk));
    };
    switch (p_.holes) {
      case ListHoles::none:
        return;
      case ListHoles::end:
        return insert(size, 1 + below(40));
      case ListHoles::middle:
        return insert(size / 2, 1 + below(40));
      case ListHoles::front:
        return insert(0, 1 + below(40));
      case ListHoles::tile:
        return insert(0, (16 << below(3)) * (1 + below(2)));
      case ListHoles::scattered:
        for (int& token : tokens)
          if (below(4) == 0) token = hole;
        return;
      case ListHoles::row:
        if (below(3) != 0) return;
        if (tokens.empty()) tokens.resize(1);
        std::fill(tokens.begin(), tokens.end(), hole);
        return;
    }
  }

  const MlaSparse& p_;
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

}  // namespace

MlaSparseInputs materialise(const Case& c, const MlaSparse& p) {
  const MlaDecode like = as_decode(p);
  const RowMaker rows(like, c);
  const RowLayout layout{.format = p.kv_format, .layout = p.kv_layout};
  const CacheShape shape = cache_shape(p);
  const PagePlan plan = plan_pages(shape, c.memory, c.seed);

  MlaSparseInputs in;
  in.kv_pool = make_pool(c, rows, layout, shape, plan);
  in.page_stride_bytes = plan.footprint.page_stride_bytes;
  in.num_slots = (plan.footprint.first_page + plan.footprint.content_pages) * p.page_size;

  const std::size_t q_row_bytes = RowMaker::width * element_bytes(p.q_format);
  ListMaker lists(p, c.seed);
  const Counter garbage(c.seed, Draw::garbage_index, 1, 0);
  std::uint32_t drawn = 0;
  const auto below = [&](std::size_t bound) {
    return garbage.below(drawn++, static_cast<std::uint32_t>(bound));
  };
  const auto any_slot_of = [&](const std::vector<std::int32_t>& pages) {
    return pages[below(pages.size())] * p.page_size +
           static_cast<std::int32_t>(below(static_cast<std::size_t>(p.page_size)));
  };
  const auto a_hole = [&]() -> std::int32_t {
    if (p.hole_value == HoleValue::minus_one) return -1;
    const auto slots = static_cast<std::int32_t>(in.num_slots);
    const std::array<std::int32_t, 6> values_of_holes = {-1,    -123456,   std::numeric_limits<int>::min(),
                                                         slots, slots + 7, std::numeric_limits<int>::max()};
    return values_of_holes[below(values_of_holes.size())];
  };
  // What a kernel finds that reads past the length: slots of poison where possible, since wrong data names
  // its cause and a crash does not. `inf` stands for the sentinels of padded tables, which are holes.
  const auto behind = [&](std::size_t i) -> std::int32_t {
    switch (c.memory.unused) {
      case Poison::inf:
        return i % 2 == 0 ? -1 : 2147480000;
      case Poison::stale:
        return any_slot_of(plan.pages.empty() ? plan.unowned_pages : plan.pages);
      case Poison::zero:
        return 0;
      case Poison::nan:
      case Poison::large:
        break;
    }
    return any_slot_of(plan.unowned_pages);
  };

  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const std::int32_t* pages = plan.pages.data() + plan.kv_indptr[i];
    for (int position = 0; position < p.requests[i].q_len; ++position) {
      for (int head = 0; head < p.heads; ++head) {
        in.q.resize(in.q.size() + q_row_bytes);
        rows.q_row(static_cast<int>(i), position, head, p.q_format, in.q.data() + in.q.size() - q_row_bytes);
      }
      const std::vector<int> tokens = lists.list(static_cast<int>(i), position);
      in.lengths.push_back(static_cast<std::int32_t>(tokens.size()));
      for (const int token : tokens)
        in.indices.push_back(token == hole ? a_hole()
                                           : pages[token / p.page_size] * p.page_size + token % p.page_size);
      for (std::size_t k = tokens.size(); k < static_cast<std::size_t>(p.topk); ++k)
        in.indices.push_back(behind(k));
    }
  }
  return in;
}

}  // namespace attest::cases
