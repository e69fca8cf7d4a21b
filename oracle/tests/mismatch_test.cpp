// SPDX-License-Identifier: MIT
#include "oracle/mismatch.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "oracle/judge.h"
#include "oracle/tests/software_kernel.h"

using namespace attest;
using namespace attest::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

cases::Case two_requests() {
  cases::Case c;
  c.seed = 0x2a;
  cases::MlaDecode p;
  p.heads = 3;
  p.page_size = 16;
  p.requests = {{2, 40}, {3, 70}};
  c.problem = p;
  return c;
}

}  // namespace

TEST_CASE("the worst of a place counts, and of a block") {
  MismatchGrid grid("entry");
  for (int row = 0; row < 130; ++row)
    for (int column = 0; column < 200; ++column) grid.note(row / 100, row % 100, column, 0.25);
  grid.note(0, 5, 7, 3);
  grid.note(0, 5, 7, 2);
  grid.note(0, 4, 6, infinity);
  grid.note(1, 29, 199, no_number);
  grid.note(1, 29, 198, infinity);
  const Mismatch map = grid.map();
  CHECK(map.axis == "entry");
  CHECK(map.row_block == 3);
  CHECK(map.column_block == 2);
  REQUIRE(map.rows.size() == 44);
  REQUIRE(map.columns.size() == 100);
  CHECK(map.columns[3] == "6");
  CHECK(map.rows[1].position == 3);
  CHECK(map.at(1, 3) == infinity);  // rows 3 to 5, columns 6 and 7
  CHECK(map.at(1, 2) == 0.25);
  CHECK(map.rows[43].request == 1);
  CHECK(map.rows[43].position == 29);
  CHECK(std::isnan(map.at(43, 99)));
  CHECK(map.at(43, 98) == 0.25);
}

TEST_CASE("places that nobody noted are not checked") {
  MismatchGrid grid("entry");
  grid.note(0, 0, 2, 0.5);
  grid.note(0, 1, 0, 0.5);
  const Mismatch map = grid.map({"a", "b"});
  CHECK(map.columns == std::vector<std::string>{"a", "b", "2"});
  CHECK(map.at(0, 0) == Mismatch::not_checked);
  CHECK(map.at(0, 2) == 0.5);
  CHECK(map.at(1, 2) == Mismatch::not_checked);
  CHECK(MismatchGrid("head").map().empty());
}

TEST_CASE("the judge says where a failing attention is wrong, and nothing of one that passes") {
  const cases::Case c = two_requests();
  const cases::Inputs in = cases::materialise(c);
  cases::Outputs out = testing::run(c, in, {});
  CHECK(judge(c, in, out, profile("bf16")).mismatch.empty());

  // Position 2 of request 1, heads 1 and 2: rows (2 + 2) * 3 + head of [5 * 3, 512] bf16.
  const auto at = [&](int head) { return out.tensors[0].bytes.data() + ((2 + 2) * 3 + head) * 512 * 2; };
  const std::uint16_t hundred = 0x42c8, not_a_number = 0x7fc0;
  std::memcpy(at(1) + 34, &hundred, 2);
  std::memcpy(at(2) + 34, &not_a_number, 2);
  const Verdict verdict = judge(c, in, out, profile("bf16"));
  REQUIRE(verdict.kind == VerdictKind::fail);
  const Mismatch& map = verdict.mismatch;
  CHECK(map.axis == "head");
  REQUIRE(map.rows.size() == 5);
  REQUIRE(map.columns.size() == 3);
  CHECK(map.rows[4].request == 1);
  CHECK(map.rows[4].position == 2);
  int failing = 0;
  for (const double used : map.used) failing += !(used <= 1) ? 1 : 0;
  CHECK(failing == 2);
  CHECK(map.at(4, 1) > 100);
  CHECK(std::isfinite(map.at(4, 1)));
  CHECK(std::isnan(map.at(4, 2)));
  CHECK(map.at(4, 0) >= 0);
}
