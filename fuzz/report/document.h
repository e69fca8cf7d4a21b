// SPDX-License-Identifier: MIT
//
// One HTML file that needs nothing else: style and charts are in it, there is no script, and its own policy
// forbids the browser to load or run anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/report/html.h"

namespace attest::fuzz::report {

/// What is said first and largest.
struct Headline {
  enum class Mood { good, bad, unsure, nothing };
  Mood mood = Mood::unsure;
  std::string words;  ///< "3 findings in 2 kernels"
  Html below;
};

/// @param eyebrow the small line above the headline; @param main sections
std::string document(const std::string& title, const std::string& eyebrow, const Headline& headline,
                     const Html& main);

/// <section id="..."><h2>...</h2>...</section>
Html section(std::string_view id, std::string_view title, const Html& content);
/// Figures under their names; `mood` is a class of the style, or empty.
Html tile(std::string_view name, const Html& value, std::string_view mood = "");
/// A table that scrolls by itself when it is wider than the page.
Html table(const Html& head, const Html& body);
Html remarks_box(const std::vector<std::string>& remarks);

}  // namespace attest::fuzz::report
