// SPDX-License-Identifier: MIT
#include "device/simulator/hip_api/hostcall.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

namespace attest::device::sim::hip {
namespace {

using u64 = std::uint64_t;

/// Byte offsets in the buffer, then headers, then payloads.
constexpr u64 headers_at = 0, payloads_at = 8, doorbell_at = 16, free_at = 24, ready_at = 32, mask_at = 40;
constexpr u64 signal_at = 64, mailbox_at = 192, first_header = 256;
constexpr u64 signal_mailbox_at = 16;  ///< in amd_signal_t: event_mailbox_ptr
constexpr u64 header_bytes = 24, payload_bytes = u64{64} * 8 * 8;
constexpr std::uint32_t ready_flag = 1;

enum Service : std::uint32_t { service_printf = 2 };

/// The descriptor word of a message: begin, end, reserved, the count of words in it, its number.
constexpr u64 message_begin = 1, message_end = 2;
constexpr int message_length_at = 5, message_id_at = 8;

void put(std::byte* at, u64 value, std::size_t bytes = 8) {
  std::memcpy(at, &value, bytes);
}
u64 get(const std::byte* at, std::size_t bytes = 8) {
  u64 value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

/// Reads words and strings of words, zeros behind the end.
class Words {
 public:
  explicit Words(std::span<const u64> words) : words_(words) {}
  u64 word() { return at_ < words_.size() ? words_[at_++] : 0; }
  std::string string() {
    const auto* text = reinterpret_cast<const char*>(words_.data() + std::min(at_, words_.size()));
    const std::size_t room = at_ < words_.size() ? (words_.size() - at_) * 8 : 0;
    const std::size_t length = strnlen(text, room);
    at_ += length / 8 + 1;
    return {text, length};
  }

 private:
  std::span<const u64> words_;
  std::size_t at_ = 0;
};

template <typename... Arguments>
void append(std::string& out, const std::string& format, Arguments... arguments) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  const int size = std::snprintf(nullptr, 0, format.c_str(), arguments...);
  if (size <= 0) return;
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), arguments...);
#pragma GCC diagnostic pop
  text.pop_back();
  out += text;
}

}  // namespace

std::string format_message(const std::vector<u64>& words) {
  Words input{std::span<const u64>(words).subspan(std::min<std::size_t>(1, words.size()))};
  const std::string format = input.string();
  std::string out;
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    // %[flags][width][.precision][length]conversion; a star takes a word.
    std::string spec = "%";
    ++i;
    while (i < format.size() &&
           std::string_view("-+ #0123456789.*").find(format[i]) != std::string_view::npos) {
      if (format[i] == '*')
        spec += std::to_string(static_cast<std::int32_t>(input.word()));
      else
        spec += format[i];
      ++i;
    }
    std::string length;
    while (i < format.size() && std::string_view("hlLqjzt").find(format[i]) != std::string_view::npos)
      length += format[i++];
    if (i == format.size()) break;
    const char conversion = format[i++];
    switch (conversion) {
      case '%':
        out += '%';
        break;
      case 's':
        append(out, spec + 's', input.string().c_str());
        break;
      case 'c':
        append(out, spec + 'c', static_cast<int>(input.word()));
        break;
      case 'd':
      case 'i':
        if (length.empty())
          append(out, spec + 'd', static_cast<int>(input.word()));
        else if (length == "h")
          append(out, spec + 'd', static_cast<int>(static_cast<std::int16_t>(input.word())));
        else if (length == "hh")
          append(out, spec + 'd', static_cast<int>(static_cast<signed char>(input.word())));
        else
          append(out, spec + "lld", static_cast<long long>(input.word()));
        break;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (length.empty())
          append(out, spec + conversion, static_cast<unsigned>(input.word()));
        else if (length == "h")
          append(out, spec + conversion, static_cast<unsigned>(static_cast<std::uint16_t>(input.word())));
        else if (length == "hh")
          append(out, spec + conversion, static_cast<unsigned>(static_cast<unsigned char>(input.word())));
        else
          append(out, spec + "ll" + conversion, static_cast<unsigned long long>(input.word()));
        break;
      case 'p': {
        const u64 pointer = input.word();
        append(out, spec + 'p', std::bit_cast<void*>(pointer));
        break;
      }
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        append(out, spec + conversion, std::bit_cast<double>(input.word()));
        break;
      case 'n':  // no printf of a device stores anything
        input.word();
        break;
      default:
        out += spec + length + conversion;
        break;
    }
  }
  return out;
}

Hostcalls::Hostcalls(Memory& memory, u64 waves) : memory_(memory) {
  packets_ = std::bit_ceil(std::clamp<u64>(waves, 2, 1 << 14));
  const u64 bytes = first_header + packets_ * (header_bytes + payload_bytes);
  const auto address = memory_.allocate(bytes, "hostcall buffer");
  if (!address) throw std::bad_alloc();
  buffer_ = *address;
  host_ = memory_.translate_for_host(buffer_, bytes);
  memory_.mark(buffer_, bytes, true);
  put(host_ + headers_at, buffer_ + first_header);
  put(host_ + payloads_at, buffer_ + first_header + packets_ * header_bytes);
  put(host_ + doorbell_at, buffer_ + signal_at);
  put(host_ + mask_at, packets_ - 1);
  // The kernel interrupts only a host that has a mailbox.
  put(host_ + signal_at + signal_mailbox_at, buffer_ + mailbox_at);
  // Packet k is called packets_ + k: no name is 0, which ends a stack.
  for (u64 k = 0; k < packets_; ++k)
    put(host_ + first_header + k * header_bytes, k == 0 ? 0 : packets_ + k - 1);
  put(host_ + free_at, 2 * packets_ - 1);
  put(host_ + ready_at, 0);
}

Hostcalls::~Hostcalls() {
  memory_.release(buffer_);
}

void Hostcalls::serve() {
  u64 packet = get(host_ + ready_at);
  put(host_ + ready_at, 0);
  // The stack holds the last one on top; answer in the order of the calls.
  std::vector<u64> order;
  while (packet != 0 && order.size() < packets_) {
    order.push_back(packet & (packets_ - 1));
    packet = get(host_ + first_header + order.back() * header_bytes);
  }
  std::reverse(order.begin(), order.end());
  for (const u64 k : order) {
    std::byte* header = host_ + first_header + k * header_bytes;
    std::byte* payload = host_ + first_header + packets_ * header_bytes + k * payload_bytes;
    const u64 active = get(header + 8);
    const auto service = static_cast<std::uint32_t>(get(header + 16, 4));
    for (u64 m = active; m != 0; m &= m - 1) {
      std::array<u64, 8> slots;
      std::byte* lane = payload + static_cast<std::size_t>(std::countr_zero(m)) * sizeof slots;
      std::memcpy(slots.data(), lane, sizeof slots);
      answer(service, slots.data());
      std::memcpy(lane, slots.data(), sizeof slots);
    }
    put(header + 20, get(header + 20, 4) & ~u64{ready_flag}, 4);
  }
}

void Hostcalls::answer(std::uint32_t service, u64* slots) {
  if (service == service_printf) {
    message(slots);
  } else {
    std::fprintf(stderr, "hostcall service %u is not supported by the simulator\n", service);
    slots[0] = slots[1] = 0;
  }
}

void Hostcalls::message(u64* slots) {
  const u64 descriptor = slots[0];
  u64 id = descriptor >> message_id_at;
  if ((descriptor & message_begin) != 0) id = next_message_++;
  std::vector<u64>& words = messages_[id];
  words.insert(words.end(), slots + 1, slots + 1 + (descriptor >> message_length_at & 7));
  if ((descriptor & message_end) == 0) {
    slots[0] = (descriptor & ~message_begin & ((u64{1} << message_id_at) - 1)) | id << message_id_at;
    return;
  }
  const std::string text = format_message(words);
  std::FILE* stream = !words.empty() && words.front() == 1 ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
  slots[0] = text.size();
  messages_.erase(id);
}

}  // namespace attest::device::sim::hip
