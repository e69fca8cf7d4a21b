// SPDX-License-Identifier: MIT
#include "fuzz/report/html.h"

#include <algorithm>
#include <cmath>

namespace attest::fuzz::report {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Length of the UTF-8 sequence that `text` begins with, 0 when it begins with none (RFC 3629).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 0 ||
        (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) && c != '\n' && c != '\t'))
      out += replacement;
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  if (value == 0) return "0";
  if (size < 1e5 && (size >= 1000 || size >= std::pow(10.0, digits))) {
    const std::string whole = grouped(static_cast<std::uint64_t>(std::llround(size)));
    return value < 0 ? "-" + whole : whole;
  }
  if (size >= 1e5 || size < 1e-3) return fmt::format("{:.{}e}", value, digits - 1);
  return fmt::format("{:.{}g}", value, digits);
}

std::string duration(double seconds) {
  if (seconds < 10) return short_number(seconds, 2) + " s";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string counted(std::uint64_t n, std::string_view one, std::string_view many) {
  if (n == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", grouped(n), one) : fmt::format("{} {}", grouped(n), many);
}

Html figure(std::string_view name, std::uint64_t n) {
  return figure(name, grouped(n));
}

Html figure(std::string_view name, std::string_view shown) {
  return html(R"(<span data-is="{}">{}</span>)", name, shown);
}

}  // namespace attest::fuzz::report
