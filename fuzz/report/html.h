// SPDX-License-Identifier: MIT
//
// Text that is HTML already, apart from text that is not.
//
// Names in a run folder come from command lines, workers and files: a kernel may be called "<script>". So
// what a page is made of has a type of its own, and whatever is not of it is escaped on its way in:
//
//   html("<td>{}</td>", kernel_name)        the name is escaped
//   html("<tr>{}</tr>", cell)               a cell made by html() goes in as it is
//
// Numbers that a test or a tool reads from the page are marked: `figure("cases", 300)` is
// <span data-is="cases">300</span>.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace attest::fuzz::report {

struct Html {
  std::string text;
  Html& operator+=(const Html& more) {
    text += more.text;
    return *this;
  }
};

/// & < > " ' as entities; other control characters than newline and tab as U+FFFD; bytes that are no UTF-8
/// as U+FFFD too.
std::string escaped(std::string_view text);

template <class T>
std::string as_html(const T& value) {
  if constexpr (std::is_same_v<T, Html>)
    return value.text;
  else if constexpr (std::is_arithmetic_v<T>)
    return fmt::format("{}", value);
  else
    return escaped(value);
}

template <class T>
struct AsText {
  using type = std::string;
};

template <class... T>
Html html(fmt::format_string<typename AsText<T>::type...> format, const T&... values) {
  return {fmt::format(format, as_html(values)...)};
}

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t n);
/// To `digits` significant digits, without an exponent between 0.001 and 99999: "0.0721", "17,066",
/// "3.2e-07".
std::string short_number(double value, int digits = 3);
/// "0.42 s", "3 min 20 s", "2 h 5 min"
std::string duration(double seconds);
/// "1 case", "2 cases", "1,204 cases"
std::string counted(std::uint64_t n, std::string_view one, std::string_view many = "");

/// A number under the name that tools find it by.
Html figure(std::string_view name, std::uint64_t n);
Html figure(std::string_view name, std::string_view shown);

}  // namespace attest::fuzz::report
