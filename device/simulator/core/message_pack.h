// SPDX-License-Identifier: MIT
//
// A pull reader for MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), enough to walk
// untrusted metadata:
//
//   MessagePackReader in(bytes);
//   for (auto n = in.map(); n > 0; --n) { if (in.text() == ".name") name = in.text(); else in.skip(); }
//
// Everything is bounded by the input: a count larger than the bytes that are left is an error where it
// stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace attest::device::sim {

class MessagePackReader {
 public:
  enum class Kind : std::uint8_t { nil, boolean, integer, real, text, blob, array, map };
  struct Value {
    Kind kind = Kind::nil;
    std::uint64_t number = 0;  ///< integer (two's complement), boolean, or element count
    std::string_view text;     ///< text and blob
  };

  explicit MessagePackReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// The next value; of an array or map only its head. Throws CodeObjectError.
  Value next();
  /// The same, refusing any other kind.
  std::uint64_t map() { return expect(Kind::map).number; }
  std::uint64_t array() { return expect(Kind::array).number; }
  std::uint64_t integer() { return expect(Kind::integer).number; }
  std::string_view text() { return expect(Kind::text).text; }
  /// Passes over one whole value, however deep.
  void skip();

 private:
  Value expect(Kind kind);
  std::uint64_t big_endian(int bytes);
  std::string_view take(std::uint64_t bytes);

  std::span<const std::byte> rest_;
};

}  // namespace attest::device::sim
