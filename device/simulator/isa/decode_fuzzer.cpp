// SPDX-License-Identifier: MIT
//
// libFuzzer: whatever the words are, decoding ends, sizes make sense, and text can be printed.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "device/simulator/isa/decode.h"
#include "device/simulator/isa/disassemble.h"

using namespace attest::device::sim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint32_t> words(size / 4);  // exactly as long as the code: a read past the end is seen
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * 4);
  const std::span<const std::uint32_t> code(words);
  for (std::size_t at = 0; at < code.size();) {
    const Decoded decoded = decode(code.subspan(at));
    const unsigned bytes = decoded.instruction.size_bytes;
    if ((bytes != 4 && bytes != 8) || at + bytes / 4 > code.size()) std::abort();
    if (static_cast<bool>(decoded) != decoded.why.empty()) std::abort();
    if (disassemble(decoded.instruction).empty()) std::abort();
    at += bytes / 4;
  }
  return 0;
}
