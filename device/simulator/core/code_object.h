// SPDX-License-Identifier: MIT
//
// Reads AMDGPU code objects: the ELF file a kernel compiler writes, or the offload bundle around it.
//
//   CodeObject object = read_code_object(bytes);     // CodeObjectError: one line that says what is wrong
//   for (const Kernel& k : object.kernels) ...
//
// The reader trusts no field. Every offset, size and count is checked against the file before it is used, so
// that arbitrary bytes give an error or an object, never a crash (fuzzed in tests/code_object_fuzz.cpp).
// Layout: LLVM's "User Guide for AMDGPU Backend", sections Code Object, Kernel Descriptor, Metadata.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attest::device::sim {

struct CodeObjectError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The 64-byte kernel descriptor, taken apart.
struct Descriptor {
  std::uint32_t group_segment_bytes = 0;    ///< static LDS
  std::uint32_t private_segment_bytes = 0;  ///< scratch per work-item
  std::uint32_t kernarg_bytes = 0;          ///< 0 in hand-written objects; see Kernel::kernarg_bytes
  std::int64_t entry_offset = 0;            ///< from the descriptor's own address
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0, kernarg_preload = 0;

  [[nodiscard]] std::uint32_t vgpr_count() const {
    return ((rsrc1 & 0x3f) + 1) * 8;
  }  ///< a-registers included
  [[nodiscard]] std::uint32_t accum_offset() const { return ((rsrc3 & 0x3f) + 1) * 4; }
  [[nodiscard]] std::uint32_t mode() const;  ///< initial MODE register
};

/// An argument, explicit or hidden, as the metadata describes it.
struct KernelArgument {
  std::uint32_t offset = 0, size = 0;  ///< bytes
  std::string kind;  ///< .value_kind: "global_buffer", "by_value", "hidden_block_count_x", ...
};

struct Kernel {
  std::string name;                      ///< symbol without ".kd"
  std::uint64_t descriptor_address = 0;  ///< in the image
  std::uint64_t entry_address = 0;       ///< in the image
  std::uint64_t code_bytes = 0;          ///< size of the kernel's function symbol; 0 when it has none
  Descriptor descriptor;
  std::uint32_t kernarg_bytes = 0;     ///< metadata's .kernarg_segment_size, or the descriptor's
  std::uint32_t max_workgroup = 1024;  ///< metadata's .max_flat_workgroup_size
  std::vector<KernelArgument> arguments;
};

/// A piece of the image in memory.
struct Segment {
  std::uint64_t address = 0;  ///< in the image
  std::uint64_t memory_bytes = 0;
  std::span<const std::byte> file;  ///< what is copied there; the rest is zero
  bool writable = false, executable = false;
};

/// A 64-bit word of the image that depends on where the image lies.
struct Relocation {
  std::uint64_t address = 0;  ///< in the image
  std::int64_t value = 0;     ///< image base + value is stored
};

struct GlobalVariable {
  std::string name;
  std::uint64_t address = 0, bytes = 0;  ///< in the image
};

struct CodeObject {
  std::vector<Segment> segments;  ///< spans point into the bytes given to read_code_object
  std::uint64_t image_bytes = 0;  ///< address one past the last segment
  std::vector<Kernel> kernels;    ///< by name
  std::vector<Relocation> relocations;
  std::vector<GlobalVariable> variables;
  int abi_version = 0;  ///< code object 4, 5, 6

  [[nodiscard]] const Kernel* find(std::string_view kernel_name) const;
};

/// The gfx942 ELF inside: the bytes themselves, or the entry of a __CLANG_OFFLOAD_BUNDLE__.
std::span<const std::byte> select_gfx942(std::span<const std::byte> bytes);

CodeObject read_code_object(std::span<const std::byte> bytes);

/// How many bytes the file claims to have, judged by its first bytes (4096 are plenty), for callers that are
/// handed a bare pointer (hipModuleLoadData). 0 when it is neither ELF nor bundle.
std::size_t claimed_size(std::span<const std::byte> head);

}  // namespace attest::device::sim
