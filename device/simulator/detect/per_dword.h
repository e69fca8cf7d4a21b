// SPDX-License-Identifier: MIT
//
// A value per dword of a page of memory, where the dwords have few different values between them: an index
// into a palette each.
//
//   PerDword<Reader, 256> readers;
//   readers.clear();                                                     // all of them Reader()
//   readers.change(4, 8, [&](Reader r) { r.group = me; return r; });     // dwords 4 to 7
//   readers[5].group
//
// Values that are no longer in use stay in the palette until it is full; then those in use are numbered anew.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace attest::device::sim::detect {

/// T compares with ==.
template <typename T, std::size_t dwords>
class PerDword {
 public:
  const T& operator[](std::size_t dword) const { return palette_[index_[dword]]; }
  /// Replaces each of [first, behind) by change(it).
  template <typename Change>
  void change(std::size_t first, std::size_t behind, Change&& change_one) {
    std::size_t from = most, to = 0;  // what was done for the dword before serves again
    for (std::size_t k = first; k < behind; ++k) {
      if (from == to && from != most) k = skip(k, behind, from);
      if (k == behind) break;
      if (index_[k] != from) {
        const std::size_t now = index_[k];
        const T value = change_one(palette_[now]);
        from = now;
        to = value == palette_[now] ? now : number_of(value, from);
      }
      index_[k] = static_cast<std::uint16_t>(to);
    }
  }
  void clear() {
    palette_.assign(1, T());
    index_.fill(0);
  }

 private:
  static constexpr std::size_t most = 4 * dwords;  ///< so there is room after compact()
  static_assert(most <= 0xffff);

  /// The first of [k, behind) whose index is not `same`, or a little before it.
  [[nodiscard]] std::size_t skip(std::size_t k, std::size_t behind, std::size_t same) const {
    constexpr std::size_t together = dwords < 16 ? dwords : 16;
    for (; k + together <= behind; k += together) {
      unsigned different = 0;
      for (std::size_t n = 0; n < together; ++n) different |= index_[k + n] ^ static_cast<unsigned>(same);
      if (different != 0) break;
    }
    return k;
  }
  /// @param kept an index in use that may change meanwhile
  std::size_t number_of(const T& value, std::size_t& kept) {
    const std::size_t looked_at = palette_.size() < 8 ? 0 : palette_.size() - 8;
    for (std::size_t n = palette_.size(); n-- > looked_at;)
      if (palette_[n] == value) return n;
    if (palette_.size() == most) {
      compact();
      kept = most;
    }
    palette_.push_back(value);
    return palette_.size() - 1;
  }
  void compact() {
    std::vector<T> live;
    std::array<std::uint16_t, most> number;
    number.fill(most);
    for (std::uint16_t& index : index_) {
      if (number[index] == most) {
        number[index] = static_cast<std::uint16_t>(live.size());
        live.push_back(palette_[index]);
      }
      index = number[index];
    }
    palette_ = std::move(live);
  }

  std::vector<T> palette_;
  std::array<std::uint16_t, dwords> index_{};
};

}  // namespace attest::device::sim::detect
