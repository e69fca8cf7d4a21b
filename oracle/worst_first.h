// SPDX-License-Identifier: MIT
//
// What judges that go from row to row share: the worst elements they have met, and what a defect is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/verdict.h"

namespace attest::oracle {

/// How many elements a verdict shows.
inline constexpr std::size_t most_elements = 10;

/// A defect by name, and what of the case shows it.
struct Named {
  std::string text, detail;
};

/// The `most_elements` elements with the largest ratios of error to bound; equal ones in the order of the
/// rows.
class WorstFirst {
 public:
  void offer(double ratio, Element element) {
    const auto worse = [](const Candidate& a, const Candidate& b) {
      if (a.first != b.first) return a.first > b.first;
      return std::tie(a.second.request, a.second.position, a.second.head) <
             std::tie(b.second.request, b.second.position, b.second.head);
    };
    Candidate candidate{ratio, std::move(element)};
    const auto place = std::upper_bound(kept_.begin(), kept_.end(), candidate, worse);
    if (place == kept_.end() && kept_.size() == most_elements) return;
    kept_.insert(place, std::move(candidate));
    if (kept_.size() > most_elements) kept_.pop_back();
  }

  std::vector<Element> take() {
    std::vector<Element> elements;
    for (auto& [ratio, element] : kept_) elements.push_back(std::move(element));
    kept_.clear();
    return elements;
  }

 private:
  using Candidate = std::pair<double, Element>;
  std::vector<Candidate> kept_;
};

}  // namespace attest::oracle
