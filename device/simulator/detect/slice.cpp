// SPDX-License-Identifier: MIT
#include "device/simulator/detect/slice.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "device/simulator/matrix/forms.h"

namespace attest::device::sim::detect {
namespace {

using u64 = std::uint64_t;
constexpr u64 all_lanes = ~u64{0};

/// Bytes of an address space, four to a word.
class ByteSet {
 public:
  void add(u64 address, u64 count) {
    for (u64 k = address; k < address + count; ++k) words_[k / 4] |= static_cast<std::uint8_t>(1U << (k % 4));
  }
  /// Bit k: byte address + k, of at most 32.
  [[nodiscard]] std::uint32_t overlap(u64 address, std::uint32_t count) const {
    std::uint32_t bits = 0;
    for (u64 word = address / 4; word <= (address + count - 1) / 4; ++word) {
      const auto found = words_.find(word);
      if (found == words_.end()) continue;
      for (u64 b = 0; b < 4; ++b)
        if ((found->second >> b & 1) != 0 && 4 * word + b - address < count)
          bits |= std::uint32_t{1} << (4 * word + b - address);
    }
    return bits;
  }
  void remove(u64 address) {
    const auto found = words_.find(address / 4);
    if (found == words_.end()) return;
    found->second = static_cast<std::uint8_t>(found->second & ~(1U << (address % 4)));
    if (found->second == 0) words_.erase(found);
  }
  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] Ranges ranges() const {
    std::vector<u64> bytes;
    for (const auto& [word, mask] : words_)
      for (u64 b = 0; b < 4; ++b)
        if ((mask >> b & 1) != 0) bytes.push_back(4 * word + b);
    std::sort(bytes.begin(), bytes.end());
    Ranges found;
    for (const u64 b : bytes) {
      if (!found.empty() && found.rbegin()->second == b)
        ++found.rbegin()->second;
      else
        found.emplace_hint(found.end(), b, b + 1);
    }
    return found;
  }

 private:
  std::unordered_map<u64, std::uint8_t> words_;
};

struct WaveNeeds {
  std::vector<u64> rows;  ///< lanes
  std::array<std::uint32_t, scalar::count> scalars{};
  std::vector<ByteSet> scratch = std::vector<ByteSet>(lanes);
};

/// What one role still needs.
struct Needs {
  std::vector<WaveNeeds> waves;
  ByteSet lds, global;
};

struct Hit {
  bool any = false;
  int lane = -1;
  std::int32_t row = -1, scalar = -1;
};

bool bitwise(std::string_view name) {
  for (const char* start : {"s_mov_b", "s_and_b", "s_or_b", "s_xor_b", "s_andn2_b", "s_orn2_b", "s_nand_b",
                            "s_nor_b", "s_xnor_b", "s_not_b", "s_cselect_b"})
    if (name.starts_with(start)) return true;
  return false;
}

bool is_row(std::uint16_t code) {
  return code >= operand::vgpr0 && code != operand::none;
}

class Walk {
 public:
  Walk(const Recording& recording, const LaunchView& view, const Analysis& analysis, std::uint32_t waves,
       std::uint32_t vgprs)
      : recording_(recording), code_(view.program.code()), analysis_(analysis) {
    for (Needs& needs : needs_) {
      needs.waves.resize(waves);
      for (WaveNeeds& w : needs.waves) w.rows.resize(vgprs);
    }
  }

  Slice run(const StoredBytes& from) {
    const auto& all = recording_.all();
    begin(all.back(), from);
    for (std::size_t k = all.size() - 1; k-- > 0;)
      for (const Role role : {Role::value, Role::address}) visit(all[k], k, role);
    Slice slice;
    slice.executions = executions_;
    for (const auto& [key, link] : links_) slice.links.push_back(link);
    std::sort(slice.links.begin(), slice.links.end(),
              [](const Link& a, const Link& b) { return a.executed > b.executed; });
    for (const Role role : {Role::value, Role::address})
      slice.reads[static_cast<std::size_t>(role)] = needs_[static_cast<std::size_t>(role)].global.ranges();
    slice.loads.assign(loads_.begin(), loads_.end());
    return slice;
  }

 private:
  struct Here {
    const Executed& e;
    const Instruction& i;
    const OpInfo& op;
    const Effects& effects;
    const Touched* memory;
    Role role;
    Needs& needs;
    WaveNeeds& wave;
  };

  [[nodiscard]] Here here(const Executed& e, Role role) {
    const Instruction& i = code_[e.index].instruction;
    Needs& needs = needs_[static_cast<std::size_t>(role)];
    return {e,    i,     info(i.op),         recording_.effects(e, analysis_), recording_.memory(e),
            role, needs, needs.waves[e.wave]};
  }
  [[nodiscard]] Here as_address(const Here& h) { return here(h.e, Role::address); }

  void begin(const Executed& store, const StoredBytes& from) {
    const Here h = here(store, Role::value);
    if (h.memory == nullptr) return;
    need_stored(h, from.part, from.lane, from.first, from.count);
    if (h.memory->atomic)
      need_memory(h, from.lane, recording_.address(*h.memory, from.part, from.lane), from.count);
    note(store, recording_.all().size() - 1, Role::value, {true, from.lane, -1, -1});
  }

  void note(const Executed& e, std::size_t at, Role role, const Hit& hit) {
    ++executions_;
    const auto [place, fresh] = links_.try_emplace({role, e.index});
    ++place->second.times;
    if (!fresh) return;
    place->second = {e.index, at, 1, role, hit.lane, hit.row, hit.scalar};
  }

  void visit(const Executed& e, std::size_t at, Role role) {
    const Here h = here(e, role);
    Hit hit;
    if (h.memory != nullptr) {
      if (h.memory->store || h.memory->lds_dma) stored(h, hit);
      if (h.memory->load && !h.memory->lds_dma) loaded(h, hit);
    } else if (h.effects.matrix != Matrix::none) {
      multiplied(h, *matrix::form_of(h.i.op), hit);
    } else {
      computed(h, hit);
    }
    if (hit.any) note(e, at, role, hit);
  }

  // --- needs

  static void need_row(const Here& h, unsigned row, u64 mask) {
    if (row < h.wave.rows.size()) h.wave.rows[row] |= mask;
  }
  static void need_scalar(const Here& h, unsigned code, std::uint32_t bits) {
    if (code == operand::exec || code == operand::exec + 1 || code >= scalar::mode) return;
    h.wave.scalars[code] |= bits;
  }
  static void need_scalars(const Here& h) {
    for (const Registers& r : h.effects.scalar_reads)
      for (unsigned k = 0; k < r.count; ++k) need_scalar(h, r.first + k, 0xffffffffU);
  }
  /// Lanes of a row that the instruction wrote and that are needed; no more from now on.
  static u64 take(const Here& h, unsigned row, u64 written, unsigned bytes, Hit& hit) {
    if (row >= h.wave.rows.size()) return 0;
    const u64 lanes_needed = h.wave.rows[row] & written;
    if (lanes_needed == 0) return 0;
    if (bytes == 0xf) h.wave.rows[row] &= ~written;
    if (!hit.any) hit = {true, std::countr_zero(lanes_needed), static_cast<std::int32_t>(row), -1};
    return lanes_needed;
  }
  static std::uint32_t take_scalar(const Here& h, unsigned code, Hit& hit) {
    const std::uint32_t bits = h.wave.scalars[code];
    if (bits == 0) return 0;
    h.wave.scalars[code] = 0;
    if (!hit.any) hit = {true, -1, -1, static_cast<std::int32_t>(code)};
    return bits;
  }
  [[nodiscard]] static u64 written_lanes(const Here& h) {
    if (h.i.op == Op::v_writelane_b32) return u64{1} << h.e.lane_select;
    u64 mask = h.effects.exec_masked ? h.e.exec : all_lanes;
    if (h.i.extension == Extension::dpp) mask &= dpp_map(h.i, h.e.exec).written();
    return mask;
  }

  // --- memory

  void need_memory(const Here& h, int lane, u64 address, u64 count) {
    const Touched& t = *h.memory;
    if ((t.lds >> lane & 1) != 0)
      h.needs.lds.add(address, count);
    else if ((t.scratch >> lane & 1) != 0)
      h.wave.scratch[static_cast<std::size_t>(lane)].add(address, count);
    else if ((t.global >> lane & 1) != 0)
      h.needs.global.add(address, count);
  }

  /// Data registers behind bytes [first, first + count) of a lane's part.
  static void need_stored(const Here& h, unsigned part, int lane, std::uint32_t first, std::uint32_t count) {
    const std::uint16_t data = h.i.data[part];
    if (data == operand::none || count == 0) return;
    for (std::uint32_t d = first / 4; d <= (first + count - 1) / 4; ++d) {
      if (is_row(data))
        need_row(h, data - operand::vgpr0 + d, u64{1} << lane);
      else
        need_scalar(h, data + d, 0xffffffffU);
    }
  }

  [[nodiscard]] ByteSet* set_of(const Here& h, int lane, bool lds_side) const {
    const Touched& t = *h.memory;
    if (lds_side || (t.lds >> lane & 1) != 0) return &h.needs.lds;
    if ((t.scratch >> lane & 1) != 0) return &h.wave.scratch[static_cast<std::size_t>(lane)];
    return (t.global >> lane & 1) != 0 ? &h.needs.global : nullptr;
  }

  void stored(const Here& h, Hit& hit) {
    const Touched& t = *h.memory;
    u64 filled = 0;  // lanes of an LDS-DMA
    for (u64 m = t.touched(); m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      for (unsigned part = t.lds_dma ? 1 : 0; part < t.parts; ++part) {
        ByteSet* set = set_of(h, lane, t.lds_dma);
        if (set == nullptr || set->empty()) continue;
        const u64 address = recording_.address(t, part, lane);
        for (std::uint32_t bits = set->overlap(address, t.bytes); bits != 0; bits &= bits - 1) {
          const auto b = static_cast<std::uint32_t>(std::countr_zero(bits));
          if (!hit.any) hit = {true, lane, -1, -1};
          if (t.lds_dma) {
            set->remove(address + b);
            filled |= u64{1} << lane;
            if ((t.global >> lane & 1) != 0) {
              h.needs.global.add(recording_.address(t, 0, lane) + b, 1);
              loads_.insert(h.e.index);
            }
            continue;
          }
          if (!t.atomic) set->remove(address + b);
          need_stored(h, part, lane, b, 1);
        }
      }
    }
    if (filled != 0) need_addresses(h, filled);
  }

  void loaded(const Here& h, Hit& hit) {
    const Touched& t = *h.memory;
    u64 brought = 0;
    bool global = false;
    const auto bring = [&](int lane, unsigned dword) {
      const std::uint32_t dwords_of_part = std::max(1U, (t.bytes + 3) / 4);
      const unsigned part = t.parts == 2 ? dword / dwords_of_part : 0;
      const std::uint32_t first = t.parts == 2 ? dword % dwords_of_part * 4 : dword * 4;
      brought |= u64{1} << lane;
      if (part >= t.parts || first >= t.bytes) return;
      need_memory(h, lane, recording_.address(t, part, lane) + first, std::min(4U, t.bytes - first));
      global = global || (t.global >> lane & 1) != 0;
    };
    for (const Registers& r : h.effects.vector_writes)
      for (unsigned k = 0; k < r.count; ++k)
        for (u64 m = take(h, r.first + k, written_lanes(h), r.bytes, hit) & t.touched(); m != 0; m &= m - 1)
          bring(std::countr_zero(m), k);
    for (const Registers& r : h.effects.scalar_writes)
      for (unsigned k = 0; k < r.count; ++k)
        if (take_scalar(h, r.first + k, hit) != 0 && (t.touched() & 1) != 0) bring(0, k);
    if (global) loads_.insert(h.e.index);
    if (hit.any) need_addresses(h, brought);
  }

  /// What says where a load goes. Registers of descriptors and kernel arguments among them.
  void need_addresses(const Here& h, u64 mask) {
    const Here to = as_address(h);
    for (const Registers& r : h.effects.vector_reads) {
      const bool data = std::any_of(std::begin(h.i.data), std::end(h.i.data), [&](std::uint16_t code) {
        return is_row(code) && r.first == code - operand::vgpr0;
      });
      if (data && h.memory->store) continue;
      for (unsigned k = 0; k < r.count; ++k) need_row(to, r.first + k, mask);
    }
    need_scalars(to);
  }

  // --- arithmetic

  void computed(const Here& h, Hit& hit) {
    u64 mask = 0;
    const u64 written = written_lanes(h);
    for (const Registers& r : h.effects.vector_writes)
      for (unsigned k = 0; k < r.count; ++k) mask |= take(h, r.first + k, written, r.bytes, hit);
    const bool mask_result = h.op.dst == Slot::mask || h.op.sdst == Slot::mask;
    std::array<std::uint32_t, 2> bits{};  // of the first register that is written, and the one behind it
    bool scalar_hit = false;
    for (const Registers& r : h.effects.scalar_writes)
      for (unsigned k = 0; k < r.count; ++k) {
        const std::uint32_t taken = take_scalar(h, r.first + k, hit);
        scalar_hit = scalar_hit || taken != 0;
        if (r.first != scalar::scc && k < 2) bits[k] |= taken;
      }
    if (!hit.any) return;

    if (h.effects.unit == Unit::valu || h.i.encoding == Encoding::ds) {
      if (scalar_hit && mask_result) mask |= u64{bits[1]} << 32 | bits[0];
      vector_sources(h, mask, scalar_hit && !mask_result);
      return;
    }
    if (bitwise(h.op.name)) {
      for (const Registers& r : h.effects.scalar_reads)
        for (unsigned k = 0; k < r.count; ++k)
          need_scalar(h, r.first + k, r.first == scalar::scc ? 1U : k < 2 ? bits[k] : 0U);
      const bool scc_only = scalar_hit && (bits[0] | bits[1]) == 0;
      if (!scc_only) return;
    }
    need_scalars(h);
  }

  void vector_sources(const Here& h, u64 mask, bool to_scalar) {
    if (to_scalar) mask = u64{1} << h.e.lane_select;  // v_readlane, v_readfirstlane
    u64 moved = mask;                                 // lanes of source 0, or of what is exchanged
    const auto from = [&](const LaneMap& map) {
      u64 lanes_read = 0;
      for (u64 m = mask; m != 0; m &= m - 1)
        if (const std::int8_t source = map.from[static_cast<std::size_t>(std::countr_zero(m))]; source >= 0)
          lanes_read |= u64{1} << source;
      return lanes_read;
    };
    std::uint16_t moved_code = operand::none;
    unsigned moved_count = 1;
    if (h.i.extension == Extension::dpp) {
      moved = from(dpp_map(h.i, h.e.exec));
      moved_code = h.i.src[0];
      moved_count = dwords(h.op.src[0]);
    } else if (const LaneMap* map = recording_.exchange(h.e); map != nullptr) {
      moved = from(*map);
      moved_code = h.i.op == Op::ds_swizzle_b32 ? h.i.addr : h.i.data[0];
    }
    for (const Registers& r : h.effects.vector_reads)
      for (unsigned k = 0; k < r.count; ++k) {
        const unsigned code = operand::vgpr0 + r.first + k;
        const bool is_moved = is_row(moved_code) && code - moved_code < moved_count;
        const bool elsewhere = h.i.src[1] == code || h.i.src[2] == code || h.i.addr == code ||
                               (h.op.has(op_flag::reads_dst) && h.i.dst == code);
        need_row(h, r.first + k, is_moved ? moved | (elsewhere ? mask : 0) : mask);
      }
    for (const Registers& r : h.effects.scalar_reads)
      for (unsigned k = 0; k < r.count; ++k)
        need_scalar(h, r.first + k,
                    is_mask_source(h, r) ? static_cast<std::uint32_t>(mask >> (32 * k)) : 0xffffffffU);
  }

  /// A pair of scalars that is read as one bit per lane.
  [[nodiscard]] static bool is_mask_source(const Here& h, const Registers& r) {
    if (r.count != 2) return false;
    for (int s = 0; s < 3; ++s)
      if (h.op.src[s] == Slot::mask && h.i.src[s] == r.first) return true;
    return r.first == operand::vcc && h.op.has(op_flag::reads_vcc);
  }

  void multiplied(const Here& h, const matrix::Form& form, Hit& hit) {
    const unsigned count = dwords(h.op.dst);
    const auto dst = static_cast<unsigned>(h.i.dst - operand::vgpr0);
    std::array<u64, 32> lanes_of{};  // by register of D
    for (unsigned d = 0; d < count; ++d) lanes_of[d] = take(h, dst + d, all_lanes, 0xf, hit);
    if (!hit.any) return;
    for (unsigned d = 0; d < count; ++d) {
      if (h.op.has(op_flag::reads_dst)) need_row(h, dst + d, lanes_of[d]);
      if (is_row(h.i.src[2]) && !form.sparse) need_row(h, h.i.src[2] - operand::vgpr0 + d, lanes_of[d]);
    }
    if (form.sparse || h.i.cbsz != 0 || h.i.blgp != 0) {
      for (const Registers& r : h.effects.vector_reads)
        for (unsigned k = 0; k < r.count; ++k) need_row(h, r.first + k, all_lanes);
      return;
    }
    std::set<std::pair<int, int>> rows, columns;  // (block, i), (block, j)
    const unsigned per_item = form.a == matrix::Element::f64 ? 2 : 1;
    for (int block = 0; block < form.blocks; ++block)
      for (int i = 0; i < form.m; ++i)
        for (int j = 0; j < form.n; ++j) {
          const matrix::Place at = matrix::place_d(form, block, i, j);
          const unsigned d = static_cast<unsigned>(at.item) * per_item;
          const u64 both = lanes_of[d] | (per_item == 2 ? lanes_of[d + 1] : 0);
          if ((both >> at.lane & 1) == 0) continue;
          rows.emplace(block, i);
          columns.emplace(block, j);
        }
    const auto need = [&](std::uint16_t code, const matrix::Place& at, int bits) {
      if (!is_row(code)) return;
      const auto first = static_cast<unsigned>(at.item * bits / 32),
                 last = static_cast<unsigned>((at.item * bits + bits - 1) / 32);
      for (unsigned k = first; k <= last; ++k) need_row(h, code - operand::vgpr0 + k, u64{1} << at.lane);
    };
    for (const auto& [block, i] : rows)
      for (int k = 0; k < form.k; ++k)
        need(h.i.src[0], matrix::place_a(form, block, i, k), matrix::bits_of(form.a));
    for (const auto& [block, j] : columns)
      for (int k = 0; k < form.k; ++k)
        need(h.i.src[1], matrix::place_b(form, block, k, j), matrix::bits_of(form.b));
    for (const Registers& r : h.effects.scalar_reads)
      for (unsigned k = 0; k < r.count; ++k) need_scalar(h, r.first + k, 0xffffffffU);
  }

  const Recording& recording_;
  const Bound* code_;
  const Analysis& analysis_;
  std::array<Needs, 2> needs_;
  std::map<std::pair<Role, std::uint32_t>, Link> links_;
  std::set<std::uint32_t> loads_;
  u64 executions_ = 0;
};

}  // namespace

Slice slice_back(const Recording& recording, const LaunchView& view, const Analysis& analysis,
                 std::uint32_t waves, const StoredBytes& from) {
  return Walk(recording, view, analysis, waves, 512).run(from);
}

}  // namespace attest::device::sim::detect
