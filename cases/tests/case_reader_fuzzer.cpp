// SPDX-License-Identifier: MIT
//
// Any bytes, as a case file: either one line that says what is wrong, or a case that both text forms bring
// back.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cases/case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest::cases;
  const auto expect = [](bool holds, const char* what) {
    if (!holds) {
      std::fprintf(stderr, "%s\n", what);
      std::abort();
    }
  };
  try {
    const Case c = parse_case({reinterpret_cast<const char*>(data), size});
    const std::string canonical = canonical_json(c);
    expect(parse_case(canonical) == c, "the canonical form is another case");
    expect(parse_case(pretty_json(c)) == c, "the file form is another case");
    expect(canonical_json(parse_case(pretty_json(c))) == canonical, "equal cases, different canonical forms");
  } catch (const CaseError& error) {
    const std::string_view message = error.what();
    expect(!message.empty(), "an error without a message");
    expect(message.find('\n') == std::string_view::npos, "an error of several lines");
    expect(message.size() < 500, "an error too long to read");
  }
  return 0;
}
