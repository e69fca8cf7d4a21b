// SPDX-License-Identifier: MIT
//
// What a workgroup's observers keep, handed on to the next workgroup: kilobytes per wave that would otherwise
// be allocated, and by the kernel cleared, for every one.
//
//   Spare<std::vector<std::uint32_t>> spare;
//   std::vector<std::uint32_t> trips = spare.take();     // whatever it holds
//   spare.give(std::move(trips));
#pragma once

#include <utility>
#include <vector>

namespace attest::device::sim::detect {

template <typename T>
class Spare {
 public:
  /// A default T when there is none.
  T take() {
    if (idle_.empty()) return T();
    T one = std::move(idle_.back());
    idle_.pop_back();
    return one;
  }
  void give(T one) { idle_.push_back(std::move(one)); }

 private:
  std::vector<T> idle_;
};

}  // namespace attest::device::sim::detect
