// SPDX-License-Identifier: MIT
#include "device/simulator/core/message_pack.h"

#include "device/simulator/core/code_object.h"

namespace attest::device::sim {

std::string_view MessagePackReader::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) throw CodeObjectError("metadata is truncated");
  const std::string_view taken(reinterpret_cast<const char*>(rest_.data()), bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

std::uint64_t MessagePackReader::big_endian(int bytes) {
  std::uint64_t value = 0;
  for (const char c : take(static_cast<std::uint64_t>(bytes)))
    value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

MessagePackReader::Value MessagePackReader::next() {
  const auto head = static_cast<unsigned>(big_endian(1));
  const auto signed_integer = [&](int bytes) {
    const int unused = 64 - 8 * bytes;
    return Value{Kind::integer,
                 static_cast<std::uint64_t>(static_cast<std::int64_t>(big_endian(bytes) << unused) >> unused),
                 {}};
  };
  const auto sized = [&](Kind kind, std::uint64_t bytes) { return Value{kind, bytes, take(bytes)}; };
  const auto counted = [&](Kind kind, std::uint64_t count) {
    if (count > rest_.size()) throw CodeObjectError("metadata counts more elements than it has bytes");
    return Value{kind, count, {}};
  };
  if (head < 0x80) return {Kind::integer, head, {}};
  if (head < 0x90) return counted(Kind::map, head & 0xf);
  if (head < 0xa0) return counted(Kind::array, head & 0xf);
  if (head < 0xc0) return sized(Kind::text, head & 0x1f);
  if (head >= 0xe0)
    return {Kind::integer, static_cast<std::uint64_t>(static_cast<std::int64_t>(head) - 256), {}};
  switch (head) {
    case 0xc0:
      return {};
    case 0xc2:
    case 0xc3:
      return {Kind::boolean, head & 1, {}};
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return sized(Kind::blob, big_endian(1 << (head - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return sized(Kind::blob, big_endian(1 << (head - 0xc7)) + 1);
    case 0xca:
    case 0xcb:
      return {Kind::real, big_endian(head == 0xca ? 4 : 8), {}};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return {Kind::integer, big_endian(1 << (head - 0xcc)), {}};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return signed_integer(1 << (head - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return sized(Kind::blob, (std::uint64_t{1} << (head - 0xd4)) + 1);
    case 0xd9:
    case 0xda:
    case 0xdb:
      return sized(Kind::text, big_endian(1 << (head - 0xd9)));
    case 0xdc:
    case 0xdd:
      return counted(Kind::array, big_endian(head == 0xdc ? 2 : 4));
    case 0xde:
    case 0xdf:
      return counted(Kind::map, big_endian(head == 0xde ? 2 : 4));
    default:
      throw CodeObjectError("metadata is not MessagePack");
  }
}

MessagePackReader::Value MessagePackReader::expect(Kind kind) {
  const Value value = next();
  if (value.kind != kind) throw CodeObjectError("metadata has another structure than AMDGPU's");
  return value;
}

void MessagePackReader::skip() {
  for (std::uint64_t pending = 1; pending > 0; --pending) {
    const Value value = next();
    if (value.kind == Kind::array) pending += value.number;
    if (value.kind == Kind::map) pending += 2 * value.number;
  }
}

}  // namespace attest::device::sim
