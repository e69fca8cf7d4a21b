// SPDX-License-Identifier: MIT
//
// The counters on made-up streams of instructions.
#include "device/simulator/detect/outstanding.h"

#include <catch2/catch.hpp>
#include <vector>

namespace attest::device::sim::detect {
namespace {

struct Stream {
  auto done() {
    return [this](const Pending& p) { finished.push_back(p.id); };
  }

  std::uint64_t issue(Unit unit, std::uint8_t scalar_dwords = 1) {
    Effects e;
    e.unit = unit;
    e.vmcnt = unit == Unit::vmem || unit == Unit::flat;
    e.lgkmcnt = unit == Unit::smem                       ? (scalar_dwords > 1 ? 2 : 1)
                : unit == Unit::ds || unit == Unit::flat ? 1
                                                         : 0;
    return outstanding.issue(pending_of(e, 0, 0, 1), done());
  }
  /// The ids that a wait finishes.
  std::vector<std::uint64_t> wait(int vmcnt, int lgkmcnt) {
    finished.clear();
    outstanding.wait(
        {static_cast<std::uint8_t>(vmcnt < 0 ? WaitCounts::vmcnt_max : vmcnt), WaitCounts::expcnt_max,
         static_cast<std::uint8_t>(lgkmcnt < 0 ? WaitCounts::lgkmcnt_max : lgkmcnt)},
        done());
    return finished;
  }

  Outstanding outstanding;
  std::vector<std::uint64_t> finished;
};

using Ids = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("vector memory is done in the order of issue, loads and stores alike") {
  Stream s;
  for (int k = 0; k < 4; ++k) s.issue(Unit::vmem);
  CHECK(s.outstanding.missing(2) == "vmcnt(2)");
  CHECK(s.wait(3, -1) == Ids{1});
  CHECK(s.wait(3, 0).empty());
  CHECK(s.wait(1, -1) == Ids{2, 3});
  CHECK(s.wait(0, 0) == Ids{4});
  CHECK(s.outstanding.empty());
}

TEST_CASE("LDS is done in order, among itself") {
  Stream s;
  s.issue(Unit::ds);
  s.issue(Unit::vmem);
  s.issue(Unit::ds);
  CHECK(s.outstanding.missing(1) == "lgkmcnt(1)");
  CHECK(s.wait(-1, 1) == Ids{1});
  CHECK(s.wait(0, -1) == Ids{2});
  CHECK(s.wait(-1, 0) == Ids{3});
}

TEST_CASE("while a scalar load is outstanding only lgkmcnt(0) says anything") {
  Stream s;
  s.issue(Unit::ds);
  s.issue(Unit::smem, 4);
  s.issue(Unit::ds);
  CHECK(s.outstanding.missing(1) == "lgkmcnt(0)");
  CHECK(s.wait(-1, 1).empty());
  CHECK(s.wait(-1, 3).empty());
  CHECK(s.wait(-1, 0) == Ids{1, 2, 3});
}

TEST_CASE("flat counts in both, in no order") {
  Stream s;
  s.issue(Unit::vmem);
  s.issue(Unit::flat);
  s.issue(Unit::vmem);
  CHECK(s.outstanding.missing(2) == "vmcnt(0) lgkmcnt(0)");
  CHECK(s.outstanding.missing(1) == "vmcnt(0)");
  CHECK(s.wait(2, -1).empty());
  CHECK(s.wait(0, -1) == Ids{1, 3});
  CHECK(s.wait(-1, 0) == Ids{2});
}

TEST_CASE("a full counter finishes the oldest") {
  Stream s;
  for (unsigned k = 0; k < WaitCounts::vmcnt_max; ++k) s.issue(Unit::vmem);
  CHECK(s.finished.empty());
  s.issue(Unit::vmem);
  CHECK(s.finished == Ids{1});
  Stream lds;
  for (unsigned k = 0; k < WaitCounts::lgkmcnt_max; ++k) lds.issue(Unit::ds);
  CHECK(lds.finished.empty());
  lds.issue(Unit::ds);
  CHECK(lds.finished == Ids{1});
}

TEST_CASE("unordered instructions that are never waited for do not pile up") {
  Stream s;
  for (unsigned k = 0; k < 10'000; ++k) s.issue(Unit::smem);
  CHECK(s.outstanding.entries().size() <= 256);
  CHECK(s.wait(0, 0).size() <= 256);
  CHECK(s.outstanding.empty());
}

}  // namespace attest::device::sim::detect
