// SPDX-License-Identifier: MIT
//
// Any bytes, as a safetensors file: either one line that says what is wrong, or tensors that lie in the file,
// cover it, and are as large as they say. The bytes are taken as a file, and as a header, a newline and the
// data of one: so that seeds are text and mutations need not keep the length of the header right.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "fuzz/exchange/safetensors.h"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void read(std::span<const std::byte> file) {
  using namespace attest::fuzz;
  try {
    const exchange::Safetensors content = exchange::parse_safetensors(file);
    std::size_t covered = 0;
    for (const exchange::TensorView& t : content.tensors) {
      std::size_t bytes = exchange::element_bytes(t.dtype);
      for (const std::uint64_t extent : t.shape) bytes *= extent;
      expect(bytes == t.bytes.size(), "a tensor of another size than its shape");
      expect(bytes == 0 ||
                 (t.bytes.data() >= file.data() + 8 && t.bytes.data() + bytes <= file.data() + file.size()),
             "a tensor outside of the file");
      covered += bytes;
      expect(content.find(t.name) != nullptr, "a tensor that is not found by its name");
    }
    expect(covered + 8 <= file.size(), "tensors larger than their file");
  } catch (const UsageError& error) {
    const std::string_view message = error.what();
    expect(!message.empty(), "an error without a message");
    expect(message.find('\n') == std::string_view::npos, "an error of several lines");
    expect(message.size() < 500, "an error too long to read");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  read(bytes);
  const auto newline = std::find(bytes.begin(), bytes.end(), std::byte{'\n'});
  if (newline == bytes.end()) return 0;
  const auto header = static_cast<std::size_t>(newline - bytes.begin());
  std::vector<std::byte> file(8);
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(header >> (8 * i));
  file.insert(file.end(), bytes.begin(), newline);
  file.insert(file.end(), newline + 1, bytes.end());
  read(file);
  return 0;
}
