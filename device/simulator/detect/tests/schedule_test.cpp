// SPDX-License-Identifier: MIT
#include "device/simulator/detect/schedule.h"

#include <catch2/catch.hpp>

namespace attest::device::sim::detect {

TEST_CASE("schedules are read and written") {
  CHECK(Schedule::parse("") == Schedule{});
  CHECK(Schedule::parse("plain") == Schedule{});
  CHECK(Schedule::parse("quantum=64") == Schedule{.quantum = 64});
  CHECK(Schedule::parse("delivery=stale,skew=40,seed=0x10,quantum=7") ==
        Schedule{.seed = 16, .quantum = 7, .skew = 40, .delivery = Delivery::stale});
  CHECK(Schedule{}.text().empty());
  CHECK(Schedule{.seed = 16, .quantum = 7, .skew = 40, .delivery = Delivery::poison}.text() ==
        "quantum=7,seed=16,skew=40,delivery=poison");
  for (const Schedule& probe : Schedule::probes()) {
    CHECK(Schedule::parse(probe.text()) == probe);
    CHECK(probe != Schedule{});
  }
}

TEST_CASE("what is no schedule is refused") {
  for (const char* text :
       {"quantum", "quantum=", "quantum=0", "quantum=x", "quantum=1,", ",quantum=1", "speed=1",
        "quantum=1,quantum=2", "delivery=late", "seed=-1", "skew=10000000", "seed=1 "}) {
    INFO(text);
    CHECK_FALSE(Schedule::parse(text));
  }
}

}  // namespace attest::device::sim::detect
