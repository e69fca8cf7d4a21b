// SPDX-License-Identifier: MIT
#include "device/hip/code_object.h"

#include <elf.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include "device/kernel.h"

namespace attest::device::hip {
namespace {

constexpr Elf64_Half machine_amdgpu = 224;
constexpr unsigned char osabi_hsa = 64;

struct Machine {
  unsigned flags;  ///< low byte of e_flags
  std::string_view arch;
};
constexpr std::array<Machine, 8> machines{{{0x2f, "gfx906"},
                                           {0x30, "gfx908"},
                                           {0x3f, "gfx90a"},
                                           {0x40, "gfx940"},
                                           {0x4b, "gfx941"},
                                           {0x4c, "gfx942"},
                                           {0x4f, "gfx950"},
                                           {0x41, "gfx1100"}}};

std::string arch_of(unsigned flags) {
  for (const Machine& machine : machines) {
    if (machine.flags == (flags & 0xff)) return std::string(machine.arch);
  }
  return fmt::format("an architecture this program has no name for (e_flags {:#x})", flags);
}

template <typename T>
std::optional<T> read(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool inside(std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  return offset <= size && count <= size - offset;
}

}  // namespace

std::string code_object_defect(std::span<const std::byte> bytes, std::string_view arch) {
  constexpr std::string_view bundle = "__CLANG_OFFLOAD_BUNDLE__";
  if (bytes.size() >= bundle.size() && std::memcmp(bytes.data(), bundle.data(), bundle.size()) == 0) {
    return "an offload bundle, not an ELF; compile with --no-gpu-bundle-output";
  }
  const auto header = read<Elf64_Ehdr>(bytes, 0);
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) return "not an ELF file";
  if (!header) return fmt::format("truncated: {} bytes are less than an ELF header", bytes.size());
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return "not a 64-bit little-endian ELF";
  }
  if (header->e_machine != machine_amdgpu) {
    return fmt::format("an ELF for machine {}, not for AMDGPU ({})", header->e_machine, machine_amdgpu);
  }
  if (header->e_ident[EI_OSABI] != osabi_hsa) return "an AMDGPU ELF, but not for HSA";
  if (arch_of(header->e_flags) != arch) {
    return fmt::format("compiled for {}, not for {}", arch_of(header->e_flags), arch);
  }
  if (header->e_type != ET_DYN) return "an AMDGPU ELF that was not linked (not a shared object)";
  if (header->e_phnum == 0) return "no program headers";
  for (unsigned n = 0; n < header->e_phnum; ++n) {
    const auto segment = read<Elf64_Phdr>(bytes, header->e_phoff + std::uint64_t{n} * sizeof(Elf64_Phdr));
    if (!segment) return fmt::format("truncated: program header {} lies past its {} bytes", n, bytes.size());
    if (!inside(segment->p_offset, segment->p_filesz, bytes.size())) {
      return fmt::format("truncated: segment {} lies past its {} bytes", n, bytes.size());
    }
  }
  if (header->e_shnum != 0 &&
      !inside(header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr), bytes.size())) {
    return fmt::format("truncated: its section table lies past its {} bytes", bytes.size());
  }
  return {};
}

std::vector<std::byte> read_code_object(const std::filesystem::path& file, std::string_view arch) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw DeviceError(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  std::vector<std::byte> bytes;
  std::array<char, 65536> block;
  while (stream.read(block.data(), block.size()), stream.gcount() > 0) {
    const auto* begin = reinterpret_cast<const std::byte*>(block.data());
    bytes.insert(bytes.end(), begin, begin + stream.gcount());
  }
  if (stream.bad()) throw DeviceError(fmt::format("{}: cannot be read", file.string()));
  if (const std::string defect = code_object_defect(bytes, arch); !defect.empty()) {
    throw DeviceError(fmt::format("{}: {}", file.string(), defect));
  }
  return bytes;
}

}  // namespace attest::device::hip
