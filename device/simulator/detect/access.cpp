// SPDX-License-Identifier: MIT
#include "device/simulator/detect/access.h"

#include <algorithm>
#include <string_view>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/exec/memory_buffer.h"

namespace attest::device::sim::detect {
namespace {

constexpr std::uint64_t flat_window = std::uint64_t{1} << 32;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Bytes of a lane's element, from the mnemonic: "_ubyte", "_b96", "_dwordx3", "_x2".
std::uint8_t element_bytes(const Instruction& i) {
  const OpInfo& shape = info(i.op);
  std::string_view name = shape.name;
  if (contains(name, "_format_")) return 0;
  if (shape.has(op_flag::atomic)) {
    // Outside of DS, compare-and-swap has both values in one operand.
    const unsigned count = std::max(1u, dwords(shape.src[1]));
    return static_cast<std::uint8_t>(4 * (contains(name, "cmpswap") ? count / 2 : count));
  }
  if (contains(name, "byte") || contains(name, "_b8") || contains(name, "_u8") || contains(name, "_i8"))
    return 1;
  if (contains(name, "short") || contains(name, "_b16") || contains(name, "_u16") || contains(name, "_i16"))
    return 2;
  const Slot moved = shape.has(op_flag::store) ? shape.src[1] : shape.dst;
  unsigned count = dwords(moved);
  if (contains(name, "read2")) count /= 2;
  if (i.lds || shape.has(op_flag::lds_dma)) count = 1;
  return static_cast<std::uint8_t>(4 * count);
}

/// s_load moves up to 64 bytes, s_buffer_load the dwords in front of the descriptor's end.
void locate_scalar(const Wave& w, const Instruction& i, Access& a) {
  std::uint64_t offset = static_cast<std::uint64_t>(std::int64_t{i.imm});
  if (i.soffset != operand::none) offset += w.sgpr[i.soffset];
  a.global = 1;
  if (!a.shape.buffer) {
    a.address[0][0] = (w.s64(i.saddr) + offset) & ~std::uint64_t{3};
    return;
  }
  const std::uint64_t low = w.s64(i.saddr);
  const std::uint64_t stride = low >> 48 & 0x3fff;
  const std::uint64_t size = std::max<std::uint64_t>(stride, 1) * w.sgpr[i.saddr + 2u];
  offset = static_cast<std::uint32_t>(offset) & ~std::uint64_t{3};
  a.address[0][0] = ((low & 0xffffffffffffu) + offset) & ~std::uint64_t{3};
  const std::uint64_t inside = offset + 4 > size ? 0 : (size - offset) / 4 * 4;
  if (inside >= a.bytes) return;
  a.clipped = 1;
  a.size[0] = static_cast<std::uint8_t>(inside);
  if (inside == 0) {
    a.global = 0;
  } else {
    a.shortened = 1;
  }
}

void locate_buffer(const Wave& w, const Instruction& i, std::uint64_t exec, Access& a) {
  const BufferDescriptor d = read_descriptor(w, i.saddr);
  const bool format = a.shape.bytes == 0;
  if (format) a.bytes = format_bytes(i, d);
  if (a.bytes == 0) return;
  BufferLanes at;
  place_lanes(w, i, d, exec, a.bytes, format || a.shape.kind == AccessKind::atomic, at);
  a.global = at.whole | at.partial;
  a.shortened = at.partial;
  a.clipped = exec & ~at.whole;
  for_each_lane(a.global, [&](int l) { a.address[0][l] = at.address[l]; });
  for (std::uint64_t m = at.partial; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    a.size[l] = static_cast<std::uint8_t>(4 * at.dwords[l]);
  }
}

void locate_flat(const Wave& w, const Instruction& i, std::uint64_t exec, Access& a) {
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm));
  const std::uint32_t* low = w.v(i.addr - operand::vgpr0);
  if (i.saddr != operand::none) {
    const std::uint64_t base = w.s64(i.saddr) + offset;
    for_each_lane(exec, [&](int l) { a.address[0][l] = base + low[l]; });
  } else {
    for_each_lane(exec,
                  [&](int l) { a.address[0][l] = (low[l] | std::uint64_t{low[lanes + l]} << 32) + offset; });
  }
  if (a.shape.space != Space::flat) {
    a.global = exec;
    return;
  }
  for_each_lane(exec, [&](int l) {
    const std::uint64_t lane = std::uint64_t{1} << l;
    if (a.address[0][l] - aperture::shared_base < flat_window) {
      a.lds |= lane;
      a.address[0][l] -= aperture::shared_base;
    } else if (a.address[0][l] - aperture::private_base < flat_window) {
      a.scratch |= lane;
      a.address[0][l] -= aperture::private_base;
    } else {
      a.global |= lane;
    }
  });
}

void locate_scratch(const Wave& w, const Instruction& i, std::uint64_t exec, Access& a) {
  const std::uint32_t base =
      static_cast<std::uint32_t>(i.imm) + (i.saddr != operand::none ? scalar_operand(w, i.saddr) : 0);
  const std::uint32_t* v = i.addr != operand::none ? w.v(i.addr - operand::vgpr0) : nullptr;
  a.scratch = exec;
  for_each_lane(exec, [&](int l) { a.address[0][l] = std::uint32_t{base + (v != nullptr ? v[l] : 0)}; });
}

void locate_lds(const Wave& w, const Instruction& i, std::uint64_t exec, Access& a) {
  if (i.op == Op::ds_append || i.op == Op::ds_consume) {
    // One counter for the wave: the access of its first lane.
    a.lds = exec & (~exec + 1);
    a.address[0][std::countr_zero(exec)] =
        (w.sgpr[operand::m0] & 0xffffu) + static_cast<std::uint32_t>(i.imm);
    return;
  }
  a.lds = exec;
  if (a.shape.m0_base) {
    const std::uint32_t start = (w.sgpr[operand::m0] & 0xffffu) + static_cast<std::uint32_t>(i.imm);
    for_each_lane(exec, [&](int l) { a.address[0][l] = start + 4u * static_cast<unsigned>(l); });
    return;
  }
  const std::uint32_t unit = a.shape.parts == 2 ? std::uint32_t{a.shape.bytes} * a.shape.stride : 1;
  const std::uint32_t* address = w.v(i.addr - operand::vgpr0);
  const std::uint32_t offsets[2] = {static_cast<std::uint32_t>(i.imm) * unit, i.offset1 * unit};
  for (unsigned part = 0; part < a.shape.parts; ++part) {
    for_each_lane(exec, [&](int l) { a.address[part][l] = std::uint32_t{address[l] + offsets[part]}; });
  }
}

/// Of the lanes in `mask`, at least one.
Layout layout_of(std::uint64_t mask, const std::uint64_t* address, std::uint32_t bytes) {
  const int first = std::countr_zero(mask);
  const std::uint64_t start = address[first];
  std::uint64_t rest = mask & (mask - 1);
  if (rest == 0) return Layout::consecutive;
  const std::uint64_t step = address[std::countr_zero(rest)] - start;
  if (step != 0 && step != bytes) return Layout::scattered;
  std::uint64_t strays = 0;
  if (without_gaps(mask)) {
    const std::uint64_t* at = address + first;
    for (int k = std::popcount(mask) - 1; k > 0; --k) strays |= (at[k] - at[k - 1]) ^ step;
  } else {
    for (std::uint64_t expected = start; rest != 0; rest &= rest - 1) {
      expected += step;
      strays |= address[std::countr_zero(rest)] ^ expected;
    }
  }
  if (strays != 0) return Layout::scattered;
  return step == 0 ? Layout::same : Layout::consecutive;
}

}  // namespace

AccessShape access_shape(const Instruction& i) {
  const OpInfo& op = info(i.op);
  AccessShape shape;
  const bool barrier = op.name.starts_with("ds_gws");  // touches no memory
  if (i.op == Op::invalid || barrier || !op.has(op_flag::load | op_flag::store | op_flag::atomic))
    return shape;
  shape.kind = op.has(op_flag::atomic)  ? AccessKind::atomic
               : op.has(op_flag::store) ? AccessKind::store
                                        : AccessKind::load;
  shape.bytes = element_bytes(i);
  shape.lds_dma = i.lds || op.has(op_flag::lds_dma);
  shape.m0_base = shape.lds_dma;
  switch (i.encoding) {
    case Encoding::smem:
      shape.scalar = true;
      shape.buffer = contains(op.name, "s_buffer_");
      break;
    case Encoding::ds:
      shape.space = Space::lds;
      if (contains(op.name, "read2") || contains(op.name, "write2") || contains(op.name, "wrxchg2"))
        shape.parts = 2;
      if (contains(op.name, "st64")) shape.stride = 64;
      shape.m0_base = contains(op.name, "addtid") || i.op == Op::ds_append || i.op == Op::ds_consume;
      break;
    case Encoding::mubuf:
    case Encoding::mtbuf:
      shape.buffer = true;
      break;
    case Encoding::flat:
      shape.space = Space::flat;
      break;
    case Encoding::scratch:
      shape.space = Space::scratch;
      break;
    default:
      break;
  }
  return shape;
}

void locate(const Wave& w, const Instruction& i, const AccessShape& shape, Access& a) {
  a.shape = shape;
  a.global = a.lds = a.scratch = a.clipped = a.shortened = a.dma = 0;
  a.bytes = shape.bytes;
  a.layout[0] = a.layout[1] = Layout::scattered;
  if (shape.scalar) return locate_scalar(w, i, a);
  const std::uint64_t exec = w.exec();
  if (exec == 0) return;
  if (shape.buffer) {
    locate_buffer(w, i, exec, a);
  } else if (shape.space == Space::lds) {
    locate_lds(w, i, exec, a);
  } else if (shape.space == Space::scratch) {
    locate_scratch(w, i, exec, a);
  } else {
    locate_flat(w, i, exec, a);
  }
  if (const std::uint64_t touched = a.touched();
      touched != 0 && a.shortened == 0 && (a.global == touched || a.lds == touched || a.scratch == touched)) {
    for (unsigned part = 0; part < shape.parts; ++part)
      a.layout[part] = layout_of(touched, a.address[part], a.bytes);
  }
  if (!shape.lds_dma) return;
  a.dma = exec;
  const std::uint32_t start = lds_start(w, i);
  for_each_lane(exec, [&](int l) { a.address[1][l] = start + 4u * static_cast<unsigned>(l); });
}

}  // namespace attest::device::sim::detect
