// SPDX-License-Identifier: MIT
#include "device/simulator/core/module.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace attest::device::sim {
namespace {

/// A kernel's code is its function symbol, when everything it does stays in there; else all executable code.
bool is_closed(std::span<const std::byte> text, const Program& program, std::uint64_t address) {
  for (std::uint32_t at = 0; at < program.size(); ++at) {
    const Instruction& i = program.code()[at].instruction;
    if (i.op == Op::s_swappc_b64 || i.op == Op::s_setpc_b64 || i.op == Op::s_call_b64 ||
        i.op == Op::s_getpc_b64) {
      return false;
    }
    // A branch out of the range became a guard.
    if (info(i.op).has(op_flag::branch) && static_cast<std::uint32_t>(i.imm) >= program.size()) return false;
  }
  return program.address_of(program.size()) == address + text.size();
}

}  // namespace

LoadedModule::LoadedModule(Memory& memory, std::vector<std::byte> bytes)
    : memory_(memory), bytes_(std::move(bytes)), object_(read_code_object(bytes_)) {
  if (object_.kernels.empty() && object_.variables.empty())
    throw CodeObjectError("code object has no kernels");
  std::uint64_t read_only = 0;
  for (const Segment& segment : object_.segments) {
    if (segment.writable) break;
    read_only = segment.address + segment.memory_bytes;
  }
  const auto address = memory_.allocate_image(object_.image_bytes, read_only, "code object");
  if (!address) throw std::bad_alloc();
  base_ = *address;
  std::byte* host = memory_.translate_for_host(base_, object_.image_bytes);
  for (const Segment& segment : object_.segments) {
    if (!segment.file.empty()) std::memcpy(host + segment.address, segment.file.data(), segment.file.size());
  }
  for (const Relocation& relocation : object_.relocations) {
    const std::uint64_t value = base_ + static_cast<std::uint64_t>(relocation.value);
    std::memcpy(host + relocation.address, &value, sizeof value);
  }
}

LoadedModule::~LoadedModule() {
  memory_.release(base_);
}

std::shared_ptr<const Program> LoadedModule::program(const Kernel& kernel) {
  const auto segment = std::find_if(object_.segments.begin(), object_.segments.end(), [&](const Segment& s) {
    return s.executable && kernel.entry_address >= s.address &&
           kernel.entry_address - s.address < s.file.size();
  });
  const auto make = [&](std::uint64_t from, std::span<const std::byte> text) {
    ProgramSource source;
    source.text = text;
    source.address = base_ + from;
    source.entry = base_ + kernel.entry_address;
    source.vgpr_count = kernel.descriptor.vgpr_count();
    source.accum_offset = kernel.descriptor.accum_offset();
    const ProgramKey key{from, text.size(), kernel.entry_address, source.vgpr_count, source.accum_offset};
    std::shared_ptr<const Program>& known = programs_[key];
    if (known == nullptr) known = std::make_shared<const Program>(source, host_simd_level());
    return known;
  };
  const std::uint64_t offset = kernel.entry_address - segment->address;
  if (kernel.code_bytes >= 4 && kernel.code_bytes <= segment->file.size() - offset) {
    const auto text = segment->file.subspan(offset, kernel.code_bytes / 4 * 4);
    std::shared_ptr<const Program> own = make(kernel.entry_address, text);
    if (is_closed(text, *own, base_ + kernel.entry_address)) return own;
  }
  return make(segment->address, segment->file.subspan(0, segment->file.size() / 4 * 4));
}

const LoadedKernel* LoadedModule::kernel(const std::string& name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) return &known->second;
  const Kernel* found = object_.find(name);
  if (found == nullptr) return nullptr;
  LoadedKernel loaded{*found, base_ + found->descriptor_address, base_, program(*found)};
  return &kernels_.emplace(name, std::move(loaded)).first->second;
}

}  // namespace attest::device::sim
