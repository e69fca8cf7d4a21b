// SPDX-License-Identifier: MIT
#include "oracle/rounding_grid.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace attest::oracle {
namespace {

RoundingGrid make(int digits, int min_exponent, int max_exponent) {
  RoundingGrid grid;
  grid.digits = digits;
  grid.smallest_step = std::ldexp(1.0, min_exponent - digits + 1);
  grid.max_finite = std::ldexp(2.0 - std::ldexp(1.0, 1 - digits), max_exponent);
  return grid;
}

}  // namespace

RoundingGrid RoundingGrid::of(cases::Format format) {
  switch (format) {
    case cases::Format::bf16:
      return make(8, -126, 127);
    case cases::Format::f16:
      return make(11, -14, 15);
    case cases::Format::f32:
      return make(24, -126, 127);
    default:
      break;
  }
  throw std::invalid_argument(std::string("no kernel writes its results in ") + cases::name(format));
}

}  // namespace attest::oracle
