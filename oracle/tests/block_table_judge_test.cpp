// SPDX-License-Identifier: MIT
//
// Lists written by a plain loop of its own, judged; and the same lists with one thing wrong each.
#include "oracle/plans/block_table_judge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "oracle/judge.h"

namespace attest::oracle {
namespace {

using namespace cases;
using Ints = std::vector<std::int32_t>;

struct Lists {
  Ints qo_indptr, kv_indptr, last_page_len, kernel_block_table, kv_indices;
};
using Change = std::function<void(std::vector<Lists>&)>;

/// As the contract says, written without the reference.
std::vector<Lists> right_lists(const Case& c, const BlockTableExpandInputs& in) {
  const auto& p = std::get<BlockTableExpand>(c.problem);
  std::vector<Lists> all;
  for (const auto& step : in.steps) {
    const int rows = static_cast<int>(step.seq_lens.size());
    const int live = step.query_start_loc.back();
    int dummy = 0;
    if (step.num_tokens > live && step.num_tokens % rows == 0 && step.num_tokens / rows > 1) {
      dummy = step.num_tokens / rows;
      const int requests = live / dummy;
      for (int r = 0; r < rows; ++r)
        if (step.query_start_loc[static_cast<std::size_t>(r)] != std::min(r, requests) * dummy ||
            live % dummy != 0)
          dummy = 0;
    }
    Lists lists;
    const auto capacity = static_cast<std::size_t>(p.graph ? p.max_requests : rows);
    const int ratio = p.manager_block / p.kernel_block;
    int q = 0, k = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      lists.qo_indptr.push_back(q);
      lists.kv_indptr.push_back(k);
      const bool empty = step.query_start_loc[r] == step.query_start_loc[r + 1];
      const int length = empty && dummy > 0 ? dummy : step.seq_lens[r];
      q += empty ? dummy : step.query_start_loc[r + 1] - step.query_start_loc[r];
      k += length;
      const std::size_t row = r * static_cast<std::size_t>(in.table_width);
      for (int i = 0; i < in.table_width * ratio; ++i)
        lists.kernel_block_table.push_back(
            std::max(step.block_table[row + static_cast<std::size_t>(i / ratio)], 0) % 1000000 * ratio +
            i % ratio);
      for (int t = 0; t < length; ++t)
        lists.kv_indices.push_back(
            std::max(step.block_table[row + static_cast<std::size_t>(t / p.manager_block)], 0) *
                p.manager_block +
            t % p.manager_block);
    }
    lists.qo_indptr.resize(capacity + 1, q);
    lists.kv_indptr.resize(capacity + 1, k);
    lists.last_page_len.assign(capacity, 1);
    lists.kernel_block_table.resize(capacity * static_cast<std::size_t>(in.table_width * ratio), -7);
    if (p.graph) lists.kv_indices.resize(static_cast<std::size_t>(p.index_capacity), -1);
    all.push_back(std::move(lists));
  }
  return all;
}

Verdict judged(const Case& c, const Change& change = {}) {
  const Inputs inputs = materialise(c);
  std::vector<Lists> lists = right_lists(c, std::get<BlockTableExpandInputs>(inputs));
  if (change) change(lists);
  Outputs outputs;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto add = [&](const std::string& name, const Ints& values) {
      const auto bytes = std::as_bytes(std::span(values));
      outputs.tensors.push_back({"step" + std::to_string(i) + "." + name, {bytes.begin(), bytes.end()}});
    };
    add("qo_indptr", lists[i].qo_indptr);
    add("kv_indptr", lists[i].kv_indptr);
    add("last_page_len", lists[i].last_page_len);
    add("kernel_block_table", lists[i].kernel_block_table);
    add("kv_indices", lists[i].kv_indices);
  }
  return judge(c, inputs, outputs, profile("bf16"));
}

Case verify_graph() {
  BlockTableExpand p;
  p.manager_block = 8;
  p.kernel_block = 2;
  p.graph = true;
  p.max_requests = 5;
  p.index_capacity = 40;
  p.steps = {{12, {{4, 11}, {4, 8}, {0, 0}}}, {8, {{4, 5}, {0, 0}}}};
  Case c;
  c.seed = 5;
  c.problem = p;
  return c;
}

Case decode_eager() {
  BlockTableExpand p;
  p.manager_block = 16;
  p.kernel_block = 16;
  p.interleaved = true;
  p.steps = {{0, {{1, 40}, {1, 16}}}, {0, {{1, 20}, {1, 1}}}};
  Case c;
  c.seed = 6;
  c.memory.prefix_sharing = true;
  c.problem = p;
  return c;
}

void fails(const Case& c, const std::string& diagnosis, const Change& change) {
  const Verdict v = judged(c, change);
  INFO(v.detail);
  CHECK(name(v.kind) == std::string("fail"));
  CHECK(v.stage == "exact");
  CHECK(v.diagnosis == diagnosis);
}

}  // namespace

TEST_CASE("Right lists pass") {
  CHECK(judged(verify_graph()).kind == VerdictKind::pass);
  CHECK(judged(decode_eager()).kind == VerdictKind::pass);
  CHECK(judged(verify_graph()).elements_checked > 0);
}

TEST_CASE("Each list that is wrong fails, by its name") {
  fails(verify_graph(), "last_page_len counts the engine's blocks",
        [](auto& l) { l[0].last_page_len = {3, 8, 4, 1, 1}; });
  fails(verify_graph(), "last_page_len is not 1", [](auto& l) { l[1].last_page_len[4] = 0; });
  fails(verify_graph(), "qo_indptr counts requests, not queries",
        [](auto& l) { l[0].qo_indptr = {0, 1, 2, 3, 3, 3}; });
  fails(verify_graph(), "padded requests have queries and no keys",
        [](auto& l) { l[0].kv_indptr = {0, 11, 19, 19, 19, 19}; });
  fails(verify_graph(), "padded requests of a verify batch stay empty", [](auto& l) {
    l[1].qo_indptr = {0, 4, 4, 4, 4, 4};
    l[1].kv_indptr = {0, 5, 5, 5, 5, 5};
  });
  fails(verify_graph(), "indptr does not go on with its last value", [](auto& l) { l[1].kv_indptr[5] = 0; });
  fails(verify_graph(), "tail of the index list is not -1", [](auto& l) { l[1].kv_indices[20] = 77; });
  fails(verify_graph(), "live entries are -1", [](auto& l) { l[0].kv_indices[20] = -1; });
  fails(verify_graph(), "slots wrong", [](auto& l) { std::swap(l[0].kv_indices[0], l[0].kv_indices[1]); });
  fails(verify_graph(), "kernel blocks wrong", [](auto& l) { ++l[0].kernel_block_table[1]; });
  fails(verify_graph(), "manager block used as kernel block", [](auto& l) {
    for (std::size_t i = 0; i < l[0].kernel_block_table.size(); ++i)
      l[0].kernel_block_table[i] = l[0].kernel_block_table[i] / 4 + static_cast<int>(i) % 4;
  });
  fails(decode_eager(), "entries of the block table taken for slots", [](auto& l) {
    for (int t = 0; t < 3; ++t)
      l[0].kv_indices[static_cast<std::size_t>(t)] = l[0].kernel_block_table[static_cast<std::size_t>(t)];
  });
  fails(decode_eager(), "lengths of another batch of the sequence",
        [](auto& l) { std::fill(l[0].kv_indices.begin() + 20, l[0].kv_indices.begin() + 40, 2147480000); });
}

TEST_CASE("Decode batches keep their padded requests empty") {
  BlockTableExpand p;
  p.manager_block = p.kernel_block = 4;
  p.graph = true;
  p.max_requests = 3;
  p.index_capacity = 16;
  p.steps = {{3, {{1, 9}, {0, 0}, {0, 0}}}};
  Case c;
  c.problem = p;
  CHECK(judged(c).kind == VerdictKind::pass);
  fails(c, "offsets run on after a padded request", [](auto& l) {
    l[0].qo_indptr = {0, 1, 2, 3};
    l[0].kv_indptr = {0, 9, 10, 11};
  });
}

TEST_CASE("A missing list is the harness's error, a batch without tokens proves nothing") {
  const Case c = verify_graph();
  CHECK(judge(c, materialise(c), {}, profile("bf16")).kind == VerdictKind::harness_error);
  BlockTableExpand p;
  p.steps = {{0, {{0, 0}}}};
  Case idle;
  idle.problem = p;
  CHECK(judged(idle).kind == VerdictKind::mistrusted);
}

TEST_CASE("Slots that change with the kernel's block size break a relation") {
  Case c = decode_eager();
  c.seed = 4;
  std::get<BlockTableExpand>(c.problem).kernel_block = 4;
  const Inputs inputs = materialise(c);
  const auto relations = block_table_relations(c, inputs);
  REQUIRE(relations.size() == 1);
  Outputs a, b;
  for (const char* name : {"step0.kv_indices", "step1.kv_indices"}) {
    a.tensors.push_back({name, std::vector<std::byte>(8, std::byte{1})});
    b.tensors.push_back({name, std::vector<std::byte>(8, std::byte{1})});
  }
  CHECK(relations[0].compare(a, b).kind == VerdictKind::pass);
  b.tensors[1].bytes[3] = std::byte{2};
  CHECK(relations[0].compare(a, b).kind == VerdictKind::fail);
}

}  // namespace attest::oracle
