// SPDX-License-Identifier: MIT
#include "device/simulator/detect/taint_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "device/simulator/exec/memory_lanes.h"

namespace attest::device::sim::detect {
namespace {

constexpr std::uint64_t all_written = 0x0101010101010101u * note::written;
constexpr std::uint32_t dword_written = 0x01010101u * note::written,
                        dword_inexact = 0x01010101u * note::inexact;
constexpr std::uint32_t block_bytes = 16;

bool plain(const std::uint8_t* p, std::uint32_t bytes) {
  std::uint64_t word = all_written;
  switch (bytes) {
    case 16: {
      std::uint64_t second;
      std::memcpy(&word, p, 8);
      std::memcpy(&second, p + 8, 8);
      return word == all_written && second == all_written;
    }
    case 8:
      std::memcpy(&word, p, 8);
      return word == all_written;
    case 4:
      std::memcpy(&word, p, 4);
      return word == all_written;
    default:
      for (std::uint32_t k = 0; k < bytes; ++k)
        if (p[k] != note::written) return false;
      return true;
  }
}

/// Calls f(lane's notes) for the lanes of mask.
template <typename F>
void for_lanes(std::uint64_t mask, const std::uint64_t* address, std::uint8_t* notes, std::uint64_t start,
               F&& f) {
  for_each_lane(mask, [&](int l) { f(notes + (address[l] - start)); });
}

/// Whether a range of bytes is written and exact.
bool all_plain(const std::uint8_t* notes, std::uint32_t bytes) {
  std::uint64_t different = 0, word = 0;
  for (; bytes >= 8; bytes -= 8, notes += 8) {
    std::memcpy(&word, notes, 8);
    different |= word ^ all_written;
  }
  if (bytes >= 4) {
    std::memcpy(&word, notes, 4);
    different |= static_cast<std::uint32_t>(word) ^ dword_written;
    bytes -= 4;
    notes += 4;
  }
  for (; bytes != 0; --bytes) different |= *notes++ ^ std::uint64_t{note::written};
  return different == 0;
}

template <typename Word, int words>
bool all_plain(std::uint64_t mask, const std::uint64_t* address, std::uint8_t* notes, std::uint64_t start) {
  Word different = 0;
  for_lanes(mask, address, notes, start, [&](const std::uint8_t* p) {
    Word word[words];
    std::memcpy(word, p, sizeof word);
    for (const Word w : word) different = static_cast<Word>(different | (w ^ static_cast<Word>(all_written)));
  });
  return different == 0;
}

bool all_plain(std::uint32_t bytes, std::uint64_t mask, const std::uint64_t* address, std::uint8_t* notes,
               std::uint64_t start) {
  switch (bytes) {
    case 1:
      return all_plain<std::uint8_t, 1>(mask, address, notes, start);
    case 2:
      return all_plain<std::uint16_t, 1>(mask, address, notes, start);
    case 4:
      return all_plain<std::uint32_t, 1>(mask, address, notes, start);
    case 8:
      return all_plain<std::uint64_t, 1>(mask, address, notes, start);
    case 12:
      return all_plain<std::uint32_t, 3>(mask, address, notes, start);
    case 16:
      return all_plain<std::uint64_t, 2>(mask, address, notes, start);
    default:
      return false;
  }
}

template <std::size_t bytes>
void fill_plain(std::uint64_t mask, const std::uint64_t* address, std::uint8_t* notes, std::uint64_t start) {
  for_lanes(mask, address, notes, start, [](std::uint8_t* p) { std::memset(p, note::written, bytes); });
}

bool fill_plain(std::uint32_t bytes, std::uint64_t mask, const std::uint64_t* address, std::uint8_t* notes,
                std::uint64_t start) {
  switch (bytes) {
    case 1:
      return fill_plain<1>(mask, address, notes, start), true;
    case 2:
      return fill_plain<2>(mask, address, notes, start), true;
    case 4:
      return fill_plain<4>(mask, address, notes, start), true;
    case 8:
      return fill_plain<8>(mask, address, notes, start), true;
    case 12:
      return fill_plain<12>(mask, address, notes, start), true;
    case 16:
      return fill_plain<16>(mask, address, notes, start), true;
    default:
      return false;
  }
}

/// Of dword `d` of each lane, all bytes of which were written: the lanes where it is not exact. @return false:
/// some byte was not
bool gather_inexact(std::uint64_t mask, const std::uint64_t* address, const std::uint8_t* notes,
                    std::uint64_t start, std::uint32_t d, std::uint64_t& inexact) {
  std::uint32_t strays = 0;
  for_each_lane(mask, [&](int l) {
    std::uint32_t word = 0;
    std::memcpy(&word, notes + (address[l] - start) + 4 * d, 4);
    strays |= (word & ~dword_inexact) ^ dword_written;
    inexact |= std::uint64_t{word != dword_written} << l;
  });
  return strays == 0;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool sign_extends(std::string_view name) {
  return contains(name, "sbyte") || contains(name, "sshort") || contains(name, "read_i8") ||
         contains(name, "read_i16");
}

}  // namespace

void MemoryTaint::start(Memory& memory, std::uint32_t lds_bytes, std::uint32_t waves,
                        std::uint32_t scratch_bytes) {
  memory_ = &memory;
  region_ = nullptr;
  lds_.assign(lds_bytes, 0);
  lds_plain_.assign(lds_bytes / block_bytes, 0);
  lds_kept_.clear();
  scratch_kept_.clear();
  scratch_rows_.clear();
  // Of a large stack little is used.
  const std::size_t size = std::size_t{waves} * lanes * scratch_bytes;
  if (scratch_.size() == size && scratch_bytes_ == scratch_bytes) {
    for (std::size_t lane = 0; lane < size; lane += scratch_bytes)
      std::memset(scratch_.data() + lane, 0, scratch_used_);
  } else {
    scratch_.assign(size, 0);
  }
  scratch_used_ = 0;
  scratch_bytes_ = scratch_bytes;
}

Origin MemoryTaint::kept(const Place& place) const {
  if (place.space == Space::lds) return lds_kept_.empty() ? origin::none : lds_kept_[place.address / 4];
  if (place.space != Space::scratch || scratch_rows_.empty()) return origin::none;
  const std::uint32_t row = scratch_rows_[(place.wave * std::size_t{scratch_bytes_} + place.address) / 4];
  return row == 0 ? origin::none : scratch_kept_[row - 1][static_cast<std::size_t>(place.lane)];
}

void MemoryTaint::keep(const Place& place, Origin from) {
  if (place.space == Space::lds) {
    if (lds_kept_.empty()) lds_kept_.resize((lds_.size() + 3) / 4);
    lds_kept_[place.address / 4] = from;
  } else {
    if (scratch_rows_.empty()) scratch_rows_.resize(scratch_.size() / lanes / 4);
    std::uint32_t& row = scratch_rows_[(place.wave * std::size_t{scratch_bytes_} + place.address) / 4];
    if (row == 0) {
      scratch_kept_.emplace_back();
      row = static_cast<std::uint32_t>(scratch_kept_.size());
    }
    scratch_kept_[row - 1][static_cast<std::size_t>(place.lane)] = from;
  }
}

Space MemoryTaint::space_of(const Access& access, int lane) {
  return (access.global >> lane & 1) != 0 ? Space::global
         : (access.lds >> lane & 1) != 0  ? Space::lds
                                          : Space::scratch;
}

std::uint8_t* MemoryTaint::notes(const Step& step, Space space, std::uint64_t address, std::uint32_t bytes,
                                 int lane) {
  switch (space) {
    case Space::lds:
      return address + bytes <= lds_.size() ? lds_.data() + address : nullptr;
    case Space::scratch:
      if (address + bytes > scratch_bytes_) return nullptr;
      scratch_used_ = std::max(scratch_used_, address + bytes);
      return scratch_.data() +
             (std::size_t{step.wave.id_in_group} * lanes + static_cast<std::size_t>(lane)) * scratch_bytes_ +
             address;
    default:
      if (region_ == nullptr || !region_->holds(address, bytes)) region_ = memory_->find(address);
      if (region_ == nullptr || region_->notes == nullptr || !region_->holds(address, bytes)) return nullptr;
      return region_->notes + (address - region_->base);
  }
}

bool MemoryTaint::find_plain(const Access& a, Plain& plain) {
  const std::uint64_t touched = a.touched();
  if (a.shortened != 0 || touched == 0) return false;
  std::uint64_t size = 0;
  if (a.lds == touched) {
    plain = {lds_.data(), 0};
    size = lds_.size();
  } else if (a.global == touched) {
    const std::uint64_t first = a.address[0][std::countr_zero(touched)];
    if (region_ == nullptr || !region_->holds(first, a.bytes)) region_ = memory_->find(first);
    if (region_ == nullptr) return false;
    plain = {region_->notes, region_->base};
    size = region_->size;
  } else {
    return false;
  }
  if (size < a.bytes) return false;
  const std::uint64_t limit = size - a.bytes;
  std::uint64_t outside = 0;
  for (unsigned part = 0; part < a.shape.parts; ++part) {
    const std::uint64_t* address = a.address[part];
    if (a.layout[part] != Layout::scattered) {
      const std::uint64_t extent = a.extent(part);
      if (extent > size || address[std::countr_zero(touched)] - plain.start > size - extent) return false;
    } else {
      for_each_lane(touched, [&](int l) { outside |= (address[l] - plain.start > limit ? 1u : 0u); });
    }
  }
  return outside == 0;
}

bool MemoryTaint::moves_blocks(const Access& a) {
  return a.bytes == block_bytes && a.shape.parts == 1 && a.shortened == 0 && a.lds != 0 &&
         (a.global | a.scratch) == 0;
}

Loaded MemoryTaint::load(const Step& step) {
  const Access& a = *step.access;
  Loaded loaded;
  const bool blocks = moves_blocks(a);
  if (blocks) {
    const std::uint64_t* address = a.address[0];
    bool clean = true;
    for (std::uint64_t m = a.lds; m != 0 && clean; m &= m - 1) {
      const std::uint64_t at = address[std::countr_zero(m)];
      clean =
          at % block_bytes == 0 && at / block_bytes < lds_plain_.size() && lds_plain_[at / block_bytes] != 0;
    }
    if (clean) return loaded;
  }
  if (Plain plain; find_plain(a, plain)) {
    bool clean = true;
    for (unsigned part = 0; clean && plain.notes != nullptr && part < a.shape.parts; ++part) {
      const std::uint64_t* address = a.address[part];
      clean = a.layout[part] != Layout::scattered
                  ? all_plain(plain.notes + (address[std::countr_zero(a.touched())] - plain.start),
                              a.extent(part))
                  : all_plain(a.bytes, a.touched(), address, plain.notes, plain.start);
    }
    if (clean && blocks) {
      for (std::uint64_t m = a.lds; m != 0; m &= m - 1) {
        const std::uint64_t at = a.address[0][std::countr_zero(m)];
        if (at % block_bytes == 0) lds_plain_[at / block_bytes] = 1;
      }
    }
    if (clean || load_inexact(a, plain, loaded)) return loaded;
  }
  const auto note_lane = [&](const std::uint8_t* p, std::uint32_t bytes, unsigned first_dword, int lane,
                             std::uint64_t address) {
    const std::uint64_t bit = std::uint64_t{1} << lane;
    const Space space = space_of(a, lane);
    for (std::uint32_t k = 0; k < bytes; ++k) {
      if (k % 4 == 0 && bytes - k >= 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, p + k, 4);
        if ((word & ~dword_inexact) == dword_written) {
          if (word != dword_written) loaded.dword[(first_dword + k / 4) % 4].inexact |= bit;
          k += 3;
          continue;
        }
      }
      LaneTaint& t = loaded.dword[(first_dword + k / 4) % 4];
      if ((p[k] & note::written) == 0) {
        const Origin from = kept({space, step.wave.id_in_group, lane, address + k});
        if (t.undefined_lanes() == 0) t.undefined_from = from;
        t.undefined[k % 4] |= bit;
        if (from == origin::none) loaded.places.add(space, lane, address + k);
      }
      if ((p[k] & note::inexact) != 0) t.inexact |= bit;
    }
  };
  for (unsigned part = 0; part < a.shape.parts; ++part) {
    for (std::uint64_t m = a.touched(); m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const std::uint32_t bytes = a.bytes_of(l);
      const std::uint64_t address = a.address[part][l];
      const std::uint8_t* p = notes(step, space_of(a, l), address, bytes, l);
      if (p == nullptr || plain(p, bytes)) continue;
      loaded.clean = false;
      note_lane(p, bytes, part * a.bytes / 4, l, address);
    }
  }
  if (loaded.clean) return loaded;

  LaneTaint& t = loaded.dword[0];
  if (a.shape.bytes == 0) {  // a format: every component by any byte
    for (int d = 1; d < 4; ++d) t |= loaded.dword[d];
    t.all_bytes(t.undefined_lanes());
    for (int d = 1; d < 4; ++d) loaded.dword[d] = t;
  } else if (a.bytes < 4) {
    if (sign_extends(info(step.instruction.op).name)) {
      const std::uint64_t top = t.undefined[a.bytes - 1];
      for (std::size_t k = a.bytes; k < 4; ++k) t.undefined[k] = top;
    }
    if (!step.effects.vector_writes.empty() && step.effects.vector_writes[0].bytes == 0xc) {
      t.undefined[2] = t.undefined[0];
      t.undefined[3] = t.undefined[1];
    }
  }
  if (step.instruction.op == Op::ds_append || step.instruction.op == Op::ds_consume) {
    // One counter, returned to every lane.
    for (std::uint64_t& b : t.undefined) b = b != 0 ? ~std::uint64_t{0} : 0;
    t.inexact = t.inexact != 0 ? ~std::uint64_t{0} : 0;
  }
  return loaded;
}

/// The everyday access to dwords all of which were written, some by operations that are not exact.
bool MemoryTaint::load_inexact(const Access& a, const Plain& plain, Loaded& loaded) {
  if (a.shape.bytes == 0 || a.shape.m0_base || a.bytes % 4 != 0 || a.bytes * a.shape.parts > 16) return false;
  std::uint64_t inexact[4] = {};
  const std::uint32_t count = a.bytes / 4;
  for (unsigned part = 0; part < a.shape.parts; ++part)
    for (std::uint32_t d = 0; d < count; ++d)
      if (!gather_inexact(a.touched(), a.address[part], plain.notes, plain.start, d,
                          inexact[part * count + d]))
        return false;
  for (std::size_t d = 0; d < 4; ++d) loaded.dword[d].inexact = inexact[d];
  loaded.clean = false;
  return true;
}

/// Of whole dwords all of which were written.
void MemoryTaint::store_inexact(const Access& a, unsigned part, const Plain& plain, const WaveTaint& taint,
                                std::uint32_t row) {
  const std::uint64_t* address = a.address[part];
  for_each_lane(a.touched(), [&](int l) {
    std::uint8_t* at = plain.notes + (address[l] - plain.start);
    for (std::uint32_t d = 0; d < a.bytes / 4; ++d) {
      const bool inexact = (taint.row(row + d).inexact >> l & 1) != 0;
      const std::uint32_t word = dword_written | (inexact ? dword_inexact : 0);
      std::memcpy(at + std::size_t{4} * d, &word, 4);
    }
    if (a.lds != 0) not_plain(address[l], a.bytes);
  });
}

void MemoryTaint::not_plain(std::uint64_t address, std::uint32_t bytes) {
  for (std::uint64_t b = address / block_bytes;
       b <= (address + bytes - 1) / block_bytes && b < lds_plain_.size(); ++b)
    lds_plain_[b] = 0;
}

Loaded MemoryTaint::load_scalar(const Step& step, std::vector<BitTaint>& registers) {
  const Access& a = *step.access;
  Loaded loaded;
  registers.assign(a.bytes / 4, BitTaint());
  if (a.global == 0) return loaded;
  const std::uint32_t bytes = a.bytes_of(0);
  const std::uint8_t* p = notes(step, Space::global, a.address[0][0], bytes, 0);
  if (p == nullptr || plain(p, bytes)) return loaded;
  loaded.clean = false;
  for (std::uint32_t k = 0; k < bytes; ++k) {
    BitTaint& t = registers[k / 4];
    const std::uint64_t bits = std::uint64_t{0xff} << (8 * (k % 4));
    if ((p[k] & note::written) == 0) {
      t.undefined |= bits;
      loaded.places.add(Space::global, 0, a.address[0][0] + k);
    }
    if ((p[k] & note::inexact) != 0) t.inexact |= bits;
  }
  return loaded;
}

void MemoryTaint::store(const Step& step, const WaveTaint& taint, Sources& sources) {
  const Access& a = *step.access;
  const Instruction& i = step.instruction;
  const std::string_view name = info(i.op).name;
  if (a.shape.kind == AccessKind::atomic && !contains(name, "_swap") && !contains(name, "wrxchg")) return;
  const bool high = contains(name, "d16_hi");
  Plain plain;
  const bool everyday = find_plain(a, plain);
  if (everyday && plain.notes == nullptr) return;
  for (unsigned part = 0; part < a.shape.parts; ++part) {
    const std::uint16_t data = i.data[part];
    if (data == operand::none) continue;
    const std::uint32_t row = data - operand::vgpr0;
    const std::uint32_t count = a.bytes == 0 ? 1 : (a.bytes + 3) / 4;
    bool clean = true, written = true;
    for (std::uint32_t d = 0; d < count; ++d) {
      clean = clean && taint.row(row + d).clean();
      written = written && !taint.undefined_row(row + d);
    }
    if (clean && moves_blocks(a)) {
      for (std::uint64_t m = a.lds; m != 0; m &= m - 1) {
        const std::uint64_t at = a.address[part][std::countr_zero(m)];
        if (at >= lds_.size() || block_bytes > lds_.size() - at) continue;
        std::memset(lds_.data() + at, note::written, block_bytes);
        if (at % block_bytes == 0) lds_plain_[at / block_bytes] = 1;
      }
      continue;
    }
    if (clean && everyday && a.layout[part] != Layout::scattered) {
      std::memset(plain.notes + (a.address[part][std::countr_zero(a.touched())] - plain.start), note::written,
                  a.extent(part));
      continue;
    }
    if (written && !clean && everyday && a.shape.bytes != 0 && a.bytes % 4 == 0) {
      store_inexact(a, part, plain, taint, row);
      continue;
    }
    if (clean && everyday && fill_plain(a.bytes, a.touched(), a.address[part], plain.notes, plain.start))
      continue;
    Origin from[2][4] = {};  // of each register, in LDS and in scratch
    const auto keep_dword = [&](const Place& place, std::uint32_t d) {
      Origin& o = from[place.space == Space::lds ? 0 : 1][d % 4];
      if (o == origin::none) o = sources.keep(taint.row(row + d).undefined_from, place.wave, place.space);
      keep(place, Sources::of_lane(o, taint.row(row + d).undefined_from, place.lane));
    };
    for (std::uint64_t m = a.touched(); m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const std::uint32_t bytes = a.bytes_of(l);
      const Space space = space_of(a, l);
      std::uint8_t* p = notes(step, space, a.address[part][l], bytes, l);
      if (p == nullptr) continue;
      if (clean) {
        std::memset(p, note::written, bytes);
        continue;
      }
      if (space == Space::lds) not_plain(a.address[part][l], bytes);
      for (std::uint32_t k = 0; k < bytes; ++k) {
        const std::uint32_t d = a.shape.bytes == 0 ? 0 : k / 4;
        const LaneTaint& t = taint.row(row + d);
        if (k % 4 == 0 && bytes - k >= 4 && !high && (t.undefined_lanes() >> l & 1) == 0) {
          const std::uint32_t word = dword_written | ((t.inexact >> l & 1) != 0 ? dword_inexact : 0);
          std::memcpy(p + k, &word, 4);
          k += 3;
          continue;
        }
        const bool undefined = space != Space::global && (t.undefined[(high ? 2 : 0) + k % 4] >> l & 1) != 0;
        if (undefined) keep_dword({space, step.wave.id_in_group, l, a.address[part][l] + k}, d);
        p[k] = static_cast<std::uint8_t>((undefined ? 0 : note::written) |
                                         ((t.inexact >> l & 1) != 0 ? note::inexact : 0));
      }
    }
  }
}

void MemoryTaint::store_scalar(const Step& step) {
  const Access& a = *step.access;
  if (a.global == 0) return;
  std::uint8_t* p = notes(step, Space::global, a.address[0][0], a.bytes_of(0), 0);
  if (p != nullptr) std::memset(p, note::written, a.bytes_of(0));
}

void MemoryTaint::load_to_lds(const Step& step, Sources& sources) {
  const Access& a = *step.access;
  const std::uint32_t wave = step.wave.id_in_group;
  const Origin here = origin::instruction(step.index);
  Origin own = origin::none;
  Places places;
  for (std::uint64_t m = a.dma; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    std::uint8_t* to = notes(step, Space::lds, a.address[1][l], 4, l);
    if (to == nullptr) continue;
    std::memset(to, note::written, 4);
    if ((a.touched() >> l & 1) == 0) continue;
    not_plain(a.address[1][l], 4);
    const Space space = space_of(a, l);
    const std::uint32_t bytes = a.bytes_of(l);
    const std::uint8_t* from = notes(step, space, a.address[0][l], bytes, l);
    if (from == nullptr) continue;
    std::memcpy(to, from, bytes);
    if (bytes < 4 && sign_extends(info(step.instruction.op).name))
      std::memset(to + bytes, from[bytes - 1], 4 - bytes);
    for (std::uint32_t k = 0; k < 4; ++k) {
      if ((to[k] & note::written) != 0) continue;
      const std::uint32_t at = std::min(k, bytes - 1);
      Origin o = kept({space, wave, l, a.address[0][l] + at});
      if (o != origin::none) {
        o = sources.keep(o, wave, Space::lds);
      } else {
        places.add(space, l, a.address[0][l] + at);
        if (own == origin::none) {
          sources.loaded({here, wave, step.number}, places);
          own = sources.keep(here, wave, Space::lds);
        }
        o = Sources::of_lane(own, here, l);
      }
      keep({Space::lds, wave, l, a.address[1][l] + k}, o);
    }
  }
  if (own == origin::none) return;
  sources.loaded({here, wave, step.number}, places);
  sources.keep(here, wave, Space::lds);  // once more, with the places of all lanes
}

}  // namespace attest::device::sim::detect
