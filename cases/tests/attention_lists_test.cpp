// SPDX-License-Identifier: MIT
//
// mla_sparse and dense_switch: what their case files refuse, and what their data promises.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/inputs.h"
#include "reference/attention.h"
#include "reference/formats.h"
#include "reference/paged_cache.h"
#include "reference/sparse_list.h"

namespace attest::cases {
namespace {

Case case_of(Problem problem, Fill fill = Fill::normal) {
  Case c;
  c.seed = 5;
  c.problem = std::move(problem);
  c.data.fill = fill;
  return c;
}

std::string message_of(const Case& c) {
  try {
    validate(c);
  } catch (const CaseError& error) {
    return error.what();
  }
  return "accepted";
}

/// One head; queries of a request of 40 tokens and of one of 9.
MlaSparse lists(ListChoice choice, ListLength length = ListLength::full, ListHoles holes = ListHoles::none) {
  return {.heads = 1,
          .page_size = 4,
          .topk = 16,
          .choice = choice,
          .length = length,
          .holes = holes,
          .requests = {{20, 40}, {9, 9}}};
}

DenseSwitch batch(std::vector<Request> requests, std::vector<int> previous_kv_lens = {}) {
  DenseSwitch p;
  p.requests = std::move(requests);
  p.previous_kv_lens = std::move(previous_kv_lens);
  return p;
}

/// The lists of a case as tokens of their request, holes as -1.
std::vector<std::vector<int>> tokens_of(const MlaSparse& p, const MlaSparseInputs& in) {
  // With room for all, the last row of a request lists all its slots.
  MlaSparse all = p;
  all.topk = 128;
  all.choice = ListChoice::newest;
  all.length = ListLength::full;
  all.holes = ListHoles::none;
  const auto everything = std::get<MlaSparseInputs>(materialise(case_of(all)));
  std::vector<std::vector<int>> lists;
  std::size_t row = 0, last = 0;
  for (const Request& r : p.requests) {
    last += static_cast<std::size_t>(r.q_len);
    const auto slots = everything.indices.begin() + static_cast<std::ptrdiff_t>(last - 1) * 128;
    for (; row < last; ++row) {
      std::vector<int>& list = lists.emplace_back();
      for (int e = 0; e < in.lengths[row]; ++e) {
        const std::int32_t slot =
            in.indices[row * static_cast<std::size_t>(p.topk) + static_cast<std::size_t>(e)];
        const auto found = std::find(slots, slots + r.kv_len, slot);
        if (slot >= 0) REQUIRE(found != slots + r.kv_len);
        list.push_back(slot < 0 ? -1 : static_cast<int>(found - slots));
      }
    }
  }
  return lists;
}

std::vector<std::vector<int>> tokens_of(const MlaSparse& p) {
  return tokens_of(p, std::get<MlaSparseInputs>(materialise(case_of(p))));
}

/// How many tokens the query of a row sees, by row.
std::vector<int> visible(const MlaSparse& p) {
  std::vector<int> seen;
  for (const Request& r : p.requests)
    for (int i = 0; i < r.q_len; ++i) seen.push_back(r.kv_len - r.q_len + i + 1);
  return seen;
}

std::uint64_t fnv(std::uint64_t hash, const void* data, std::size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3U;
  return hash;
}
template <typename T>
std::uint64_t fnv(std::uint64_t hash, const std::vector<T>& values) {
  return fnv(hash, values.data(), values.size() * sizeof(T));
}
std::uint64_t fnv(std::uint64_t hash, const SparseBytes& pool) {
  for (const SparseBytes::Extent& e : pool.extents) {
    hash = fnv(hash, &e.offset, sizeof e.offset);
    hash = fnv(hash, e.bytes);
  }
  return hash;
}

}  // namespace

TEST_CASE("A problem with lists reads back from the least file and from its own text") {
  CHECK(parse_case(R"({"schema": 1, "op": "mla_sparse", "seed": "0x5",
                       "shape": {"requests": [{"q_len": 1, "kv_len": 5}]}})") ==
        case_of(MlaSparse{.requests = {{1, 5}}}));
  CHECK(parse_case(R"({"schema": 1, "op": "dense_switch", "seed": "0x5",
                       "shape": {"requests": [{"q_len": 1, "kv_len": 5}]}})") == case_of(batch({{1, 5}})));
  for (const Problem& p :
       {Problem{lists(ListChoice::repeated, ListLength::ragged, ListHoles::tile)},
        Problem{MlaSparse{.hole_value = HoleValue::any,
                          .requests = {{1, 5}},
                          .kv_format = Format::fp8_e4m3fnuz,
                          .kv_layout = KvLayout::ds}},
        Problem{DenseSwitch{.requests = {{1, 5}, {3, 9}}, .previous_kv_lens = {7, 8}, .q_scale = 2.0F}}}) {
    const Case c = case_of(p);
    INFO(pretty_json(c));
    CHECK(parse_case(pretty_json(c)) == c);
    CHECK(parse_case(canonical_json(c)) == c);
  }
}

TEST_CASE("What mla_sparse and dense_switch cannot mean is refused by its field") {
  using Catch::Contains;
  const auto says = [](Problem p, const char* text, Fill fill = Fill::normal) {
    CHECK_THAT(message_of(case_of(std::move(p), fill)), Contains(text));
  };
  const std::vector<Request> one = {{1, 5}};
  says(MlaSparse{.requests = one}, "accepted");
  says(MlaSparse{.topk = 2049, .requests = one}, "shape.topk: 2049");
  says(MlaSparse{.heads = 129, .requests = one}, "shape.heads: 129");
  says(MlaSparse{.requests = {{0, 5}}}, "every q_len is 0");
  says(MlaSparse{.requests = one}, "data.fill", Fill::few_values);
  says(MlaSparse{.requests = one, .kv_layout = KvLayout::ds}, "formats.kv: kv_layout ds");
  says(MlaSparse{.requests = one,
                 .q_format = Format::fp8_e4m3fnuz,
                 .kv_format = Format::fp8_e4m3fnuz,
                 .kv_layout = KvLayout::ds},
       "formats.q: kv_layout ds");
  says(
      MlaSparse{
          .requests = one, .kv_format = Format::fp8_e4m3fnuz, .kv_layout = KvLayout::ds, .kv_scale = 2.0F},
      "scales.kv_scale: 2");
  says(MlaSparse{.requests = one, .q_format = Format::fp8_e4m3fnuz}, "formats.q");
  const auto says_of_decode = [&](MlaDecode p, const char* text) {
    p.requests = one;
    says(p, text);
  };
  MlaDecode pages;
  pages.kv_format = Format::fp8_e4m3fnuz;
  pages.kv_layout = KvLayout::ds_page;
  says_of_decode(pages, "accepted");
  pages.kv_scale = 2.0F;
  says_of_decode(pages, "scales.kv_scale: 2");
  pages.kv_scale = 1.0F;
  pages.q_format = Format::fp8_e4m3fnuz;
  says_of_decode(pages, "formats.q: kv_layout ds_page");
  pages.q_format = pages.kv_format = Format::bf16;
  says_of_decode(pages, "formats.kv: kv_layout ds_page");
  pages.kv_layout = KvLayout::ds;
  says_of_decode(pages, "formats.kv_layout: mla_decode takes rows or ds_page");
  says(MlaSparse{.requests = one, .kv_layout = KvLayout::ds_page},
       "formats.kv_layout: mla_sparse takes rows or ds");

  says(batch(one), "accepted");
  says(batch({{4, 3}}), "shape.requests[0].q_len: 4");
  says(batch({{2, 3}, {1, 3}}), "decodes (q_len 1) come first");
  says(batch(one, {3, 4}), "shape.previous_kv_lens: 2 entries");
  says(batch({{3, 5}}, {2}), "shape.previous_kv_lens[0]: 2");
  DenseSwitch f32 = batch(one);
  f32.kv_format = Format::f32;
  says(f32, "formats.kv");
  says(batch(one), "data.fill", Fill::exact);
  Case shared = case_of(batch({{1, 5}, {1, 5}}));
  shared.memory.prefix_sharing = true;
  CHECK_THAT(message_of(shared), Contains("prefix_sharing"));
}

TEST_CASE("Lists hold what their choice says") {
  for (const ListChoice choice :
       {ListChoice::newest, ListChoice::shuffled, ListChoice::random, ListChoice::repeated}) {
    const MlaSparse p = lists(choice);
    const std::vector<std::vector<int>> made = tokens_of(p);
    const std::vector<int> sees = visible(p);
    bool left_out = false, twice = false, unordered = false;
    for (std::size_t row = 0; row < made.size(); ++row) {
      INFO(name(choice) << " row " << row);
      const std::vector<int>& list = made[row];
      const int n = sees[row], count = std::min(n, p.topk);
      REQUIRE(static_cast<int>(list.size()) == count);
      CHECK(std::all_of(list.begin(), list.end(), [&](int t) { return t >= 0 && t < n; }));
      const std::set<int> distinct(list.begin(), list.end());
      twice = twice || distinct.size() < list.size();
      unordered = unordered || !std::is_sorted(list.begin(), list.end());
      if (choice == ListChoice::newest || choice == ListChoice::shuffled)
        CHECK(*distinct.begin() == n - count);
      left_out = left_out || *distinct.rbegin() < n - 1;
    }
    CHECK(twice == (choice == ListChoice::repeated));
    CHECK(unordered == (choice != ListChoice::newest));
    CHECK(left_out == (choice == ListChoice::random || choice == ListChoice::repeated));
  }
}

TEST_CASE("Holes lie where they say, and take no slot from a list that has room") {
  const auto count = [](const std::vector<int>& list) { return std::count(list.begin(), list.end(), -1); };
  for (const ListHoles holes : {ListHoles::end, ListHoles::middle, ListHoles::front, ListHoles::scattered,
                                ListHoles::tile, ListHoles::row}) {
    MlaSparse p = lists(ListChoice::newest, ListLength::full, holes);
    p.topk = 200;
    const std::vector<int> sees = visible(p);
    const std::vector<std::vector<int>> made = tokens_of(p);
    int whole_rows = 0, some = 0;
    for (std::size_t row = 0; row < made.size(); ++row) {
      const std::vector<int>& list = made[row];
      INFO(name(holes) << " row " << row);
      const auto dug = count(list);
      some += dug > 0 ? 1 : 0;
      whole_rows += dug == std::ssize(list) ? 1 : 0;
      if (holes == ListHoles::scattered || holes == ListHoles::row) continue;
      CHECK(std::ssize(list) - dug == sees[row]);
      REQUIRE(dug > 0);
      const auto first = std::find(list.begin(), list.end(), -1) - list.begin();
      CHECK(std::all_of(list.begin() + first, list.begin() + first + dug, [](int t) { return t == -1; }));
      if (holes == ListHoles::end) CHECK(first == sees[row]);
      if (holes == ListHoles::middle) CHECK(first == sees[row] / 2);
      if (holes == ListHoles::front) CHECK(first == 0);
      if (holes == ListHoles::tile) CHECK((first == 0 && dug % 16 == 0));
    }
    CHECK(some > 3);
    if (holes == ListHoles::row) CHECK((whole_rows > 3 && whole_rows < 26 && whole_rows == some));
  }
  // Without room, holes push out slots but never the last one.
  for (const std::vector<int>& list :
       tokens_of(lists(ListChoice::newest, ListLength::full, ListHoles::tile))) {
    CHECK(std::ssize(list) <= 16);
    CHECK(count(list) >= std::min<std::ptrdiff_t>(std::ssize(list) - 1, 15));
    CHECK(count(list) < std::ssize(list));
  }
  MlaSparse any = lists(ListChoice::newest, ListLength::full, ListHoles::front);
  any.hole_value = HoleValue::any;
  const auto in = std::get<MlaSparseInputs>(materialise(case_of(any)));
  std::set<std::int32_t> values;
  for (std::size_t row = 0; row < in.lengths.size(); ++row) values.insert(in.indices[row * 16]);
  CHECK(values.size() >= 5);
  CHECK(std::all_of(values.begin(), values.end(), [&](int v) { return v < 0 || v >= in.num_slots; }));
}

TEST_CASE("Ragged lists are whole, empty or partial, and behind them lies what no list may hold") {
  const MlaSparse p = lists(ListChoice::newest, ListLength::ragged);
  const Case c = case_of(p);
  const auto in = std::get<MlaSparseInputs>(materialise(c));
  const std::vector<int> sees = visible(p);
  int whole = 0, empty = 0, partial = 0;
  for (std::size_t row = 0; row < in.lengths.size(); ++row) {
    const int length = in.lengths[row];
    (length == 0 ? empty : length == std::min(sees[row], 16) ? whole : partial) += 1;
  }
  CHECK(whole >= 5);
  CHECK(empty >= 2);
  CHECK(partial >= 2);
  // NaN poison: slots of pages that nobody owns.
  std::set<std::int32_t> live, behind;
  for (std::size_t row = 0; row < in.lengths.size(); ++row)
    for (int e = 0; e < 16; ++e)
      (e < in.lengths[row] ? live : behind).insert(in.indices[row * 16 + static_cast<std::size_t>(e)] / 4);
  REQUIRE_FALSE(behind.empty());
  for (const std::int32_t page : behind) {
    CHECK(live.count(page) == 0);
    const auto row = in.kv_pool.at(static_cast<std::uint64_t>(page) * in.page_stride_bytes, 1152);
    CHECK(std::all_of(row.begin(), row.end(), [](std::byte b) { return b == std::byte{0xff}; }));
  }
}

TEST_CASE("A ds row holds the row of the plain layout, to its own rounding; exact V survives") {
  for (const Fill fill : {Fill::normal, Fill::exact, Fill::position_coded, Fill::needle}) {
    MlaSparse plain{.heads = 1, .page_size = 4, .topk = 64, .requests = {{1, 30}}};
    MlaSparse ds = plain;
    ds.kv_format = Format::fp8_e4m3fnuz;
    ds.kv_layout = KvLayout::ds;
    const auto decoded = [&](const MlaSparse& p) {
      const auto in = std::get<MlaSparseInputs>(materialise(case_of(p, fill)));
      reference::SlotCache cache;
      cache.ds_layout = p.kv_layout == KvLayout::ds;
      cache.format = cache.ds_layout ? reference::Format::fp8_e4m3fnuz : reference::Format::bf16;
      cache.page_size = p.page_size;
      cache.page_stride_bytes = in.page_stride_bytes;
      cache.bytes = [&](std::uint64_t at, std::size_t size) { return in.kv_pool.at(at, size); };
      reference::Matrix rows(30, reference::row_width);
      for (int t = 0; t < 30; ++t) cache.row(in.indices[static_cast<std::size_t>(t)], rows.row(t).data());
      return rows;
    };
    const reference::Matrix a = decoded(plain), b = decoded(ds);
    for (int t = 0; t < 30; ++t)
      for (int d = 0; d < reference::row_width; ++d) {
        // Three mantissa bits of the fp8 and eight of each bf16; below them a subnormal step of the tile's
        // scale, amax / 224 2^-10.
        double amax = 0;
        for (int e = d / 128 * 128; e < std::min(d / 128 * 128 + 128, 512); ++e)
          amax = std::max(amax, std::abs(a(t, e)));
        const bool rope = d >= 512;
        const double step =
            rope || fill != Fill::normal ? 0 : std::abs(a(t, d)) * (0x1p-4 + 0x1p-7) + amax / 224 * 0x1p-10;
        if (std::abs(a(t, d) - b(t, d)) > step)
          FAIL(name(fill) << t << ' ' << d << ' ' << a(t, d) << ' ' << b(t, d));
      }
  }
}

TEST_CASE("mla_decode: a page in three runs holds what the rows of mla_sparse hold, byte by byte") {
  constexpr int page_size = 8;
  MlaSparse rows{.heads = 1, .page_size = page_size, .topk = 64, .requests = {{1, 29}}};
  rows.kv_format = Format::fp8_e4m3fnuz;
  rows.kv_layout = KvLayout::ds;
  MlaDecode p;
  p.heads = 1;
  p.page_size = page_size;
  p.requests = rows.requests;
  p.kv_format = Format::fp8_e4m3fnuz;
  p.kv_layout = KvLayout::ds_page;
  CHECK(parse_case(canonical_json(case_of(p))) == case_of(p));
  MlaDecode plain = p;
  plain.kv_layout = KvLayout::rows;
  CHECK(canonical_json(case_of(plain)).find("kv_layout") == std::string::npos);

  for (const int padding : {0, 48}) {
    Case c = case_of(rows), d = case_of(p);
    c.memory.page_padding_bytes = d.memory.page_padding_bytes = padding;
    const auto in_rows = std::get<MlaSparseInputs>(materialise(c));
    const auto in = std::get<MlaDecodeInputs>(materialise(d));
    REQUIRE(in.page_stride_bytes == 656 * page_size + static_cast<std::uint64_t>(padding));
    const auto byte = [&](std::int32_t page, int at) {
      return in.kv_pool.at(
          static_cast<std::uint64_t>(page) * in.page_stride_bytes + static_cast<std::uint64_t>(at), 1)[0];
    };
    reference::Matrix expected(29, 576);
    for (int t = 0; t < 29; ++t) {
      const std::int32_t slot = in_rows.indices[static_cast<std::size_t>(t)];
      const std::uint64_t at = static_cast<std::uint64_t>(slot / page_size) * in_rows.page_stride_bytes +
                               static_cast<std::uint64_t>(slot % page_size) * 656;
      const auto row = in_rows.kv_pool.at(at, 656);
      reference::decode_ds_row(reference::Format::fp8_e4m3fnuz, row, expected.row(t).data());
      const std::int32_t page = in.kv_page_indices[static_cast<std::size_t>(t / page_size)];
      const int s = t % page_size;
      for (int b = 0; b < 656; ++b) {
        const int place = b < 512   ? 512 * s + b
                          : b < 528 ? 512 * page_size + 16 * s + (b - 512)
                                    : 528 * page_size + 128 * s + (b - 528);
        if (byte(page, place) != row[static_cast<std::size_t>(b)]) FAIL("token " << t << " byte " << b);
      }
    }
    // The slots behind token 28 are poison of each run's own format: NaN everywhere.
    const std::int32_t last = in.kv_page_indices[3];
    for (int s = 5; s < page_size; ++s) {
      CHECK(byte(last, 512 * s + 17) == std::byte{0x80});
      CHECK(byte(last, 512 * page_size + 16 * s + 3) == std::byte{0xff});
      CHECK(byte(last, 528 * page_size + 128 * s + 1) == std::byte{0xff});
    }

    reference::PagedCache cache;
    cache.format = reference::Format::fp8_e4m3fnuz;
    cache.ds_page = true;
    cache.page_size = page_size;
    cache.page_stride_bytes = in.page_stride_bytes;
    cache.bytes = [&](std::uint64_t at, std::size_t size) { return in.kv_pool.at(at, size); };
    CHECK(reference::gather_rows(cache, std::span(in.kv_page_indices).first(4), 29) == expected);
    cache.restoring = reference::Restoring::truncated;
    const reference::Matrix cut = reference::gather_rows(cache, std::span(in.kv_page_indices).first(4), 29);
    int smaller = 0;
    for (int t = 0; t < 29; ++t)
      for (int column = 0; column < 576; ++column) {
        if (std::abs(cut(t, column)) > std::abs(expected(t, column))) FAIL("truncated away from zero");
        smaller += cut(t, column) != expected(t, column);
      }
    CHECK(smaller > 29 * 512 / 4);
    CHECK(cut.rightCols(64) == expected.rightCols(64));
  }
}

TEST_CASE("dense_switch: both forms ask the same of a bf16 cache, column for column") {
  DenseSwitch p = batch({{1, 7}, {5, 12}});
  p.heads = 3;
  p.page_size = 4;
  p.topk = 40;
  const Case c = case_of(p);
  const auto in = std::get<DenseSwitchInputs>(materialise(c));
  CHECK(decode_requests(p) == 1);
  CHECK(runs_dense(p));
  CHECK(in.k_indptr == std::vector<std::int32_t>{0, 0, 12});
  const auto decode = [](const std::vector<std::byte>& bytes, int row, int columns) {
    return reference::decode_matrix(
        reference::Format::bf16,
        std::span(bytes).subspan(static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) * 2,
                                 static_cast<std::size_t>(columns) * 2),
        1, columns);
  };
  for (int token = 0; token < 12; ++token) {
    const std::int32_t page = in.block_table[static_cast<std::size_t>(in.table_width + token / 4)];
    const auto row =
        reference::decode_matrix(reference::Format::bf16,
                                 in.kv_pool.at(static_cast<std::uint64_t>(page) * in.page_stride_bytes +
                                                   static_cast<std::uint64_t>(token % 4) * 1152,
                                               1152),
                                 1, 576);
    for (int head = 0; head < 3; ++head) {
      const reference::Matrix k = decode(in.k, token * 3 + head, dense_width);
      const reference::Matrix v = decode(in.v, token * 3 + head, value_width);
      for (int d = 0; d < value_width; ++d)
        REQUIRE(v(0, d) == row(0, in.v_columns[static_cast<std::size_t>(head * value_width + d)]));
      for (int query = 1; query < 6; ++query) {
        const reference::Matrix q = decode(in.q, query * 3 + head, dense_width);
        const reference::Matrix absorbed = decode(in.absorbed, query * 3 + head, 576);
        // The same products in another order.
        const double bound = 576 * 0x1p-53 * (absorbed.cwiseAbs() * row.cwiseAbs().transpose())(0, 0);
        REQUIRE(std::abs((q * k.transpose())(0, 0) - (absorbed * row.transpose())(0, 0)) <= bound);
      }
    }
  }
}

TEST_CASE("dense_switch: one decision per batch, by the longest prefill") {
  DenseSwitch p = batch({{1, 500}, {3, 20}, {2, 7}});
  p.topk = 20;
  CHECK(runs_dense(p));
  CHECK(list_length(p, 0, 0) == 20);
  p.requests[2].kv_len = 21;
  CHECK_FALSE(runs_dense(p));
  CHECK(list_length(p, 1, 0) == 18);
  CHECK(list_length(p, 2, 1) == 20);
  // Lists of prefills that run dense were not filled: what NaN poison stands for there is -1.
  p.requests[2].kv_len = 7;
  const auto in = std::get<DenseSwitchInputs>(materialise(case_of(p)));
  CHECK(in.topk_ids.size() == 6 * 20);
  CHECK(std::all_of(in.topk_ids.begin() + 20, in.topk_ids.end(), [](int id) { return id == -1; }));
  CHECK(std::none_of(in.topk_ids.begin(), in.topk_ids.begin() + 20,
                     [](int id) { return id < 0 || id >= 500; }));
}

TEST_CASE("Bytes of lists and switches are fixed: the same on every machine, and in every later version") {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text, std::uint64_t hash) {
    lines.push_back(text + " " + std::to_string(hash));
  };
  constexpr std::uint64_t start = 0xcbf29ce484222325U;
  const auto sparse = [&](const std::string& text, const MlaSparse& p, Poison unused) {
    Case c = case_of(p);
    c.memory.unused = unused;
    const auto in = std::get<MlaSparseInputs>(materialise(c));
    add(text, fnv(fnv(fnv(fnv(start, in.q), in.kv_pool), in.indices), in.lengths));
  };
  MlaSparse ds = lists(ListChoice::random, ListLength::ragged, ListHoles::scattered);
  ds.kv_format = Format::fp8_e4m3fnuz;
  ds.kv_layout = KvLayout::ds;
  sparse("newest", lists(ListChoice::newest), Poison::nan);
  sparse("repeated", lists(ListChoice::repeated, ListLength::ragged, ListHoles::tile), Poison::stale);
  sparse("ds", ds, Poison::stale);
  sparse("ds", ds, Poison::large);
  DenseSwitch p = batch({{1, 17}, {5, 12}});
  p.heads = 3;
  p.page_size = 4;
  p.topk = 10;
  p.kv_format = Format::fp8_e4m3fnuz;
  p.kv_scale = 0.37F;
  const auto in = std::get<DenseSwitchInputs>(materialise(case_of(p)));
  std::uint64_t hash = fnv(fnv(fnv(fnv(fnv(start, in.q), in.absorbed), in.k), in.v), in.kv_pool);
  hash = fnv(fnv(fnv(hash, in.v_columns), in.block_table), in.topk_ids);
  add("dense_switch", hash);
  const std::vector<std::string> expected = {
      "newest 2726897247633789295", "repeated 18083998854456862759",     "ds 7219644710410431628",
      "ds 18293966596820057419",    "dense_switch 16970403176388301676",
  };
  CHECK(lines == expected);
}

}  // namespace attest::cases
