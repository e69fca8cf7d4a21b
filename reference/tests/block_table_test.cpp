// SPDX-License-Identifier: MIT
#include "reference/block_table.h"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <vector>

namespace attest::reference {
namespace {

using Ints = std::vector<std::int32_t>;

struct Batch {
  int manager_block = 1, kernel_block = 1, table_width = 0;
  Ints query_start_loc, seq_lens, block_table;
  int num_tokens = 0;

  [[nodiscard]] TokenLists expand() const {
    return expand_block_table(
        {manager_block, kernel_block, table_width, query_start_loc, seq_lens, block_table, num_tokens});
  }
};

constexpr int garbage = 2147480000;

}  // namespace

TEST_CASE("The examples of the public descriptions of the expansion") {
  // vllm-project/vllm#27224: blocks of 4, a table row [0, 2, 4], ten tokens.
  const TokenLists ten = Batch{4, 4, 3, {0, 1}, {10}, {0, 2, 4}, 1}.expand();
  CHECK(ten.kv_indices == Ints{0, 1, 2, 3, 8, 9, 10, 11, 16, 17});
  CHECK(ten.last_page_len == Ints{1});

  const TokenLists two = Batch{2, 2, 3, {0, 1, 2}, {3, 5}, {10, 11, garbage, 20, 21, 22}, 2}.expand();
  CHECK(two.kv_indptr == Ints{0, 3, 8});
  CHECK(two.kv_indices == Ints{20, 21, 22, 40, 41, 42, 43, 44});
}

TEST_CASE("Manager blocks become runs of kernel blocks, and the slots do not depend on the kernel's") {
  const Batch batch{8, 2, 2, {0, 1}, {13}, {5, 3}, 1};
  const TokenLists lists = batch.expand();
  CHECK(lists.kernel_blocks == std::vector<Ints>{{20, 21, 22, 23, 12, 13, 14}});
  for (const int kernel_block : {1, 2, 4, 8}) {
    Batch other = batch;
    other.kernel_block = kernel_block;
    CHECK(other.expand().kv_indices == lists.kv_indices);
  }
}

TEST_CASE("Padded requests: dummies where q_len is uniform and above 1, nothing otherwise") {
  // The vector of vllm-project/vllm#45227: lengths [7, 0] with queries [4, 0] become [7, 4] with [4, 4].
  const TokenLists dummies = Batch{16, 16, 1, {0, 4, 4}, {7, 0}, {3, -1}, 8}.expand();
  CHECK(dummies.qo_indptr == Ints{0, 4, 8});
  CHECK(dummies.kv_indptr == Ints{0, 7, 11});
  CHECK(dummies.kv_indices == Ints{48, 49, 50, 51, 52, 53, 54, 0, 1, 2, 3});
  CHECK(dummies.last_page_len == Ints{1, 1});

  const TokenLists empty = Batch{16, 16, 1, {0, 1, 1}, {7, 0}, {3, garbage}, 2}.expand();
  CHECK(empty.qo_indptr == Ints{0, 1, 1});
  CHECK(empty.kv_indptr == Ints{0, 7, 7});
  CHECK(empty.last_page_len == Ints{1, 1});

  const auto dummy = [](const Ints& start, int tokens) { return dummy_query_len(start, tokens); };
  CHECK(dummy({0, 4, 4}, 4) == 0);      // no room for them
  CHECK(dummy({0, 4, 4}, 9) == 0);      // no whole number each
  CHECK(dummy({0, 4, 6, 6}, 12) == 0);  // q_len 4 and 2
  CHECK(dummy({0, 4, 4, 8}, 12) == 0);  // the one without a query is not last
  CHECK(dummy({0, 0, 4}, 8) == 0);      // nor here
  CHECK(dummy({0, 2, 2}, 8) == 0);      // q_len 2 where 4 fit
  CHECK(dummy({0, 0, 0}, 6) == 3);      // nobody is alive
  CHECK(dummy({0, 3, 6, 6, 6}, 12) == 3);
}

TEST_CASE("Every token lies in the block that the table names for it, at its place") {
  rc::prop("slots", [] {
    Batch batch;
    batch.kernel_block = *rc::gen::inRange(1, 9);
    batch.manager_block = batch.kernel_block * *rc::gen::inRange(1, 5);
    batch.table_width = 6;
    batch.query_start_loc = {0};
    const int rows = *rc::gen::inRange(1, 5);
    for (int r = 0; r < rows; ++r) {
      batch.query_start_loc.push_back(batch.query_start_loc.back() + 1);
      batch.seq_lens.push_back(*rc::gen::inRange(0, 6 * batch.manager_block + 1));
      for (int i = 0; i < 6; ++i) batch.block_table.push_back(*rc::gen::inRange(0, 1000));
    }
    batch.num_tokens = rows;
    const TokenLists lists = batch.expand();
    std::size_t at = 0;
    for (int r = 0; r < rows; ++r) {
      RC_ASSERT(lists.kv_indptr[static_cast<std::size_t>(r)] == static_cast<int>(at));
      for (int t = 0; t < batch.seq_lens[static_cast<std::size_t>(r)]; ++t, ++at) {
        const int slot = lists.kv_indices[at];
        RC_ASSERT(slot / batch.manager_block ==
                  batch.block_table[static_cast<std::size_t>(6 * r + t / batch.manager_block)]);
        RC_ASSERT(slot % batch.manager_block == t % batch.manager_block);
      }
    }
    RC_ASSERT(at == lists.kv_indices.size());
  });
}

}  // namespace attest::reference
