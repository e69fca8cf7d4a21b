// SPDX-License-Identifier: MIT
#include "device/simulator/detect/detectors.h"

#include <catch2/catch.hpp>

namespace attest::device::sim::detect {

TEST_CASE("lists of detectors are read and written back") {
  CHECK(DetectorSet::parse("all") == DetectorSet::all());
  CHECK(DetectorSet::parse("none")->empty());
  CHECK(DetectorSet::parse("")->empty());
  const auto two = DetectorSet::parse("lds-race,uninitialised");
  REQUIRE(two);
  CHECK(two->has(Detector::uninitialised));
  CHECK(two->has(Detector::lds_race));
  CHECK_FALSE(two->has(Detector::waits));
  CHECK(two->text() == "uninitialised,lds-race");
  CHECK(DetectorSet::all().text() == "all");
  CHECK(DetectorSet().text() == "none");
  DetectorSet most = DetectorSet::all();
  most.remove(Detector::clipped);
  CHECK(DetectorSet::parse(most.text()) == most);
}

TEST_CASE("a name that is none is said, with the known ones") {
  CHECK_FALSE(DetectorSet::parse("lds-race,racy"));
  CHECK(DetectorSet::unknown("lds-race,racy,other") == "racy");
  CHECK(DetectorSet::unknown("lds-race").empty());
  CHECK_FALSE(DetectorSet::parse("all,lds-race"));
  CHECK(DetectorSet::unknown("all,lds-race") == "all");
  for (unsigned k = 0; k < static_cast<unsigned>(Detector::count); ++k) {
    const auto d = static_cast<Detector>(k);
    CHECK(find_detector(name(d)) == d);
    CHECK(DetectorSet::known().find(name(d)) != std::string::npos);
  }
}

}  // namespace attest::device::sim::detect
