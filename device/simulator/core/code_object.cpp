// SPDX-License-Identifier: MIT
#include "device/simulator/core/code_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <type_traits>

#include "device/simulator/core/message_pack.h"

namespace attest::device::sim {
namespace {

using Bytes = std::span<const std::byte>;

// The ELF structures, as the file has them (System V gABI; numbers from LLVM's AMDGPUUsage).
struct FileHeader {
  unsigned char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, phoff, shoff;
  std::uint32_t flags;
  std::uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
struct ProgramHeader {
  std::uint32_t type, flags;
  std::uint64_t offset, vaddr, paddr, filesz, memsz, align;
};
struct DynamicEntry {
  std::uint64_t tag, value;
};
struct Symbol {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
struct RelocationEntry {
  std::uint64_t offset, info;
  std::int64_t addend;
};
struct KernelDescriptorBytes {
  std::uint32_t group_segment, private_segment, kernarg, reserved0;
  std::int64_t entry_offset;
  std::uint8_t reserved1[20];
  std::uint32_t rsrc3, rsrc1, rsrc2;
  std::uint16_t properties, kernarg_preload;
  std::uint8_t reserved2[4];
};
static_assert(sizeof(FileHeader) == 64 && sizeof(ProgramHeader) == 56 && sizeof(Symbol) == 24);
static_assert(sizeof(RelocationEntry) == 24 && sizeof(KernelDescriptorBytes) == 64);

constexpr std::uint16_t machine_amdgpu = 224;
constexpr std::uint32_t pt_load = 1, pt_dynamic = 2, pt_note = 4;
constexpr std::uint64_t dt_hash = 4, dt_strtab = 5, dt_symtab = 6, dt_rela = 7, dt_relasz = 8, dt_strsz = 10,
                        dt_jmprel = 23, dt_pltrelsz = 2, dt_gnu_hash = 0x6ffffef5;
constexpr std::uint32_t relocation_none = 0, relocation_abs64 = 3, relocation_relative64 = 13;
constexpr std::uint64_t largest_image = std::uint64_t{16} << 30;

template <typename T>
T read(Bytes bytes, std::uint64_t offset, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) {
    throw CodeObjectError(
        fmt::format("code object is truncated: {} at byte {} of {}", what, offset, bytes.size()));
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Bytes slice(Bytes bytes, std::uint64_t offset, std::uint64_t size, const char* what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    throw CodeObjectError(fmt::format("code object is truncated: {} at byte {}, {} bytes, of {}", what,
                                      offset, size, bytes.size()));
  }
  return bytes.subspan(offset, size);
}

std::string_view machine_name(unsigned machine) {
  switch (machine) {
    case 3:
      return "x86";
    case 62:
      return "x86-64";
    case 183:
      return "AArch64";
    case 190:
      return "CUDA";
    case 243:
      return "RISC-V";
    default:
      return "unknown";
  }
}

std::string processor_name(std::uint32_t flags) {
  // EF_AMDGPU_MACH values of the neighbours, so that the message is of use.
  static const std::map<std::uint32_t, const char*> names = {
      {0x2c, "gfx900"},  {0x2f, "gfx906"},  {0x30, "gfx908"},  {0x3f, "gfx90a"},  {0x40, "gfx940"},
      {0x4b, "gfx941"},  {0x4c, "gfx942"},  {0x4f, "gfx950"},  {0x33, "gfx1010"}, {0x36, "gfx1030"},
      {0x41, "gfx1100"}, {0x46, "gfx1101"}, {0x47, "gfx1102"}, {0x48, "gfx1200"}, {0x4e, "gfx1201"}};
  const auto found = names.find(flags & 0xff);
  return found != names.end() ? found->second : fmt::format("processor {:#x}", flags & 0xff);
}

// The image as the dynamic section addresses it: virtual addresses, resolved to file bytes.
class Image {
 public:
  explicit Image(const std::vector<Segment>& segments) : segments_(segments) {}

  /// File bytes from address to the end of what its segment has in the file.
  [[nodiscard]] Bytes from(std::uint64_t address, const char* what) const {
    for (const Segment& s : segments_) {
      if (address >= s.address && address - s.address < s.file.size())
        return s.file.subspan(address - s.address);
    }
    throw CodeObjectError(fmt::format("{} points to {:#x}, outside the file", what, address));
  }
  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t bytes) const {
    return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& s) {
      return address >= s.address && address - s.address <= s.memory_bytes &&
             bytes <= s.memory_bytes - (address - s.address);
    });
  }

 private:
  const std::vector<Segment>& segments_;
};

struct SymbolTable {
  Bytes symbols;  // [count] Symbol
  Bytes strings;

  [[nodiscard]] std::uint64_t count() const { return symbols.size() / sizeof(Symbol); }
  [[nodiscard]] Symbol at(std::uint64_t i) const {
    return read<Symbol>(symbols, i * sizeof(Symbol), "symbol");
  }
  [[nodiscard]] std::string_view name(const Symbol& symbol) const {
    if (symbol.name >= strings.size()) throw CodeObjectError("a symbol's name lies outside the string table");
    const char* start = reinterpret_cast<const char*>(strings.data()) + symbol.name;
    const std::size_t room = strings.size() - symbol.name;
    const std::size_t length = strnlen(start, room);
    if (length == room) throw CodeObjectError("a symbol's name does not end");
    return {start, length};
  }
};

// How many dynamic symbols there are, the file says only through its hash tables.
std::uint64_t symbol_count(const Image& image, const std::map<std::uint64_t, std::uint64_t>& dynamic) {
  if (const auto hash = dynamic.find(dt_hash); hash != dynamic.end()) {
    return read<std::uint32_t>(image.from(hash->second, "DT_HASH"), 4, "symbol hash table");
  }
  const auto hash = dynamic.find(dt_gnu_hash);
  if (hash == dynamic.end()) return 0;
  const Bytes table = image.from(hash->second, "DT_GNU_HASH");
  const std::uint64_t buckets = read<std::uint32_t>(table, 0, "symbol hash table");
  const std::uint64_t first = read<std::uint32_t>(table, 4, "symbol hash table");
  const std::uint64_t bloom = read<std::uint32_t>(table, 8, "symbol hash table");
  const std::uint64_t bucket_start = 16 + bloom * 8;
  const std::uint64_t chain_start = bucket_start + buckets * 4;
  std::uint64_t last = 0;
  for (std::uint64_t b = 0; b < buckets; ++b) {
    last =
        std::max<std::uint64_t>(last, read<std::uint32_t>(table, bucket_start + b * 4, "symbol hash table"));
  }
  if (last < first) return first;
  while ((read<std::uint32_t>(table, chain_start + (last - first) * 4, "symbol hash table") & 1) == 0) ++last;
  return last + 1;
}

struct Metadata {
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t max_workgroup = 1024;
  std::uint32_t wavefront_size = 64;
  std::vector<KernelArgument> arguments;
};

std::uint32_t to_u32(std::uint64_t value, std::string_view field) {
  if (value > 0x7fffffff) throw CodeObjectError(fmt::format("metadata: {} is {}", field, value));
  return static_cast<std::uint32_t>(value);
}

KernelArgument read_argument(MessagePackReader& in) {
  KernelArgument argument;
  for (std::uint64_t n = in.map(); n > 0; --n) {
    const std::string_view key = in.text();
    if (key == ".offset") {
      argument.offset = to_u32(in.integer(), key);
    } else if (key == ".size") {
      argument.size = to_u32(in.integer(), key);
    } else if (key == ".value_kind") {
      argument.kind = in.text();
    } else {
      in.skip();
    }
  }
  return argument;
}

/// Of each kernel, by its descriptor's symbol.
std::map<std::string, Metadata> read_metadata(Bytes message) {
  std::map<std::string, Metadata> kernels;
  MessagePackReader in(message);
  for (std::uint64_t n = in.map(); n > 0; --n) {
    if (in.text() != "amdhsa.kernels") {
      in.skip();
      continue;
    }
    for (std::uint64_t k = in.array(); k > 0; --k) {
      Metadata metadata;
      std::string symbol;
      for (std::uint64_t f = in.map(); f > 0; --f) {
        const std::string_view key = in.text();
        if (key == ".symbol") {
          symbol = in.text();
        } else if (key == ".kernarg_segment_size") {
          metadata.kernarg_bytes = to_u32(in.integer(), key);
        } else if (key == ".max_flat_workgroup_size") {
          metadata.max_workgroup = to_u32(in.integer(), key);
        } else if (key == ".wavefront_size") {
          metadata.wavefront_size = to_u32(in.integer(), key);
        } else if (key == ".args") {
          for (std::uint64_t a = in.array(); a > 0; --a) metadata.arguments.push_back(read_argument(in));
        } else {
          in.skip();
        }
      }
      kernels.emplace(std::move(symbol), std::move(metadata));
    }
  }
  return kernels;
}

/// The AMDGPU metadata note of a PT_NOTE segment, if it is there.
std::optional<Bytes> find_note(Bytes notes) {
  constexpr std::uint32_t nt_amdgpu_metadata = 32;
  std::uint64_t at = 0;
  while (notes.size() - at >= 12) {
    const auto name_size = read<std::uint32_t>(notes, at, "note");
    const auto size = read<std::uint32_t>(notes, at + 4, "note");
    const auto type = read<std::uint32_t>(notes, at + 8, "note");
    const Bytes name = slice(notes, at + 12, name_size, "note");
    const std::uint64_t start = at + 12 + (std::uint64_t{name_size} + 3) / 4 * 4;
    const Bytes content = slice(notes, start, size, "note");
    if (type == nt_amdgpu_metadata && name_size == 7 && std::memcmp(name.data(), "AMDGPU", 7) == 0)
      return content;
    at = std::min<std::uint64_t>(start + (std::uint64_t{size} + 3) / 4 * 4, notes.size());
  }
  return std::nullopt;
}

void read_relocations(CodeObject& object, const Image& image, const SymbolTable& symbols, std::uint64_t table,
                      std::uint64_t bytes) {
  const Bytes entries = slice(image.from(table, "relocation table"), 0, bytes, "relocation table");
  for (std::uint64_t at = 0; at + sizeof(RelocationEntry) <= entries.size(); at += sizeof(RelocationEntry)) {
    const auto entry = read<RelocationEntry>(entries, at, "relocation");
    const auto type = static_cast<std::uint32_t>(entry.info);
    if (type == relocation_none) continue;
    if (!image.holds(entry.offset, 8)) {
      throw CodeObjectError(fmt::format("a relocation at {:#x} lies outside the image", entry.offset));
    }
    std::uint64_t value = static_cast<std::uint64_t>(entry.addend);
    if (type == relocation_abs64) {
      const std::uint64_t index = entry.info >> 32;
      if (index >= symbols.count()) throw CodeObjectError("a relocation names a symbol that does not exist");
      const Symbol symbol = symbols.at(index);
      if (symbol.section == 0) {
        throw CodeObjectError(fmt::format("symbol {} is used but not defined", symbols.name(symbol)));
      }
      value += symbol.value;
    } else if (type != relocation_relative64) {
      throw CodeObjectError(
          fmt::format("relocation type {} at {:#x} is not supported (R_AMDGPU_ABS64 and RELATIVE64 are)",
                      type, entry.offset));
    }
    object.relocations.push_back({entry.offset, static_cast<std::int64_t>(value)});
  }
}

Descriptor take_apart(const KernelDescriptorBytes& raw) {
  Descriptor d;
  d.group_segment_bytes = raw.group_segment;
  d.private_segment_bytes = raw.private_segment;
  d.kernarg_bytes = raw.kernarg;
  d.entry_offset = raw.entry_offset;
  d.rsrc1 = raw.rsrc1;
  d.rsrc2 = raw.rsrc2;
  d.rsrc3 = raw.rsrc3;
  d.properties = raw.properties;
  d.kernarg_preload = raw.kernarg_preload;
  return d;
}

void read_kernels(CodeObject& object, const Image& image, const SymbolTable& symbols,
                  const std::map<std::string, Metadata>& metadata) {
  constexpr unsigned type_object = 1, type_function = 2;
  std::map<std::string, std::uint64_t, std::less<>> function_bytes;
  for (std::uint64_t i = 0; i < symbols.count(); ++i) {
    const Symbol symbol = symbols.at(i);
    if ((symbol.info & 0xf) == type_function) function_bytes.emplace(symbols.name(symbol), symbol.size);
  }
  for (std::uint64_t i = 0; i < symbols.count(); ++i) {
    const Symbol symbol = symbols.at(i);
    if (symbol.section == 0 || (symbol.info & 0xf) != type_object) continue;
    const std::string_view name = symbols.name(symbol);
    if (!name.ends_with(".kd")) {
      object.variables.push_back({std::string(name), symbol.value, symbol.size});
      continue;
    }
    Kernel kernel;
    kernel.name = name.substr(0, name.size() - 3);
    kernel.descriptor_address = symbol.value;
    kernel.descriptor = take_apart(
        read<KernelDescriptorBytes>(image.from(symbol.value, "kernel descriptor"), 0, "kernel descriptor"));
    kernel.entry_address = symbol.value + static_cast<std::uint64_t>(kernel.descriptor.entry_offset);
    const bool in_code = std::any_of(object.segments.begin(), object.segments.end(), [&](const Segment& s) {
      return s.executable && kernel.entry_address >= s.address &&
             kernel.entry_address - s.address < s.file.size();
    });
    if (!in_code || kernel.entry_address % 4 != 0) {
      throw CodeObjectError(
          fmt::format("kernel {}: its entry {:#x} is not in code", kernel.name, kernel.entry_address));
    }
    if (const auto f = function_bytes.find(kernel.name); f != function_bytes.end())
      kernel.code_bytes = f->second;
    kernel.kernarg_bytes = kernel.descriptor.kernarg_bytes;
    if (const auto m = metadata.find(std::string(name)); m != metadata.end()) {
      if (m->second.wavefront_size != 64) {
        throw CodeObjectError(fmt::format("kernel {}: wavefront size {} (gfx942 has 64)", kernel.name,
                                          m->second.wavefront_size));
      }
      kernel.kernarg_bytes = std::max(kernel.kernarg_bytes, m->second.kernarg_bytes);
      kernel.max_workgroup = m->second.max_workgroup;
      kernel.arguments = m->second.arguments;
    }
    object.kernels.push_back(std::move(kernel));
  }
  std::sort(object.kernels.begin(), object.kernels.end(),
            [](const Kernel& a, const Kernel& b) { return a.name < b.name; });
}

CodeObject read_elf(Bytes file) {
  const auto header = read<FileHeader>(file, 0, "ELF header");
  if (header.ident[4] != 2 || header.ident[5] != 1)
    throw CodeObjectError("code object is not little-endian ELF64");
  if (header.machine != machine_amdgpu) {
    throw CodeObjectError(
        fmt::format("not AMDGPU code: ELF machine {} ({})", header.machine, machine_name(header.machine)));
  }
  if ((header.flags & 0xff) != 0x4c) {
    throw CodeObjectError(
        fmt::format("code object is for {}, the simulator runs gfx942", processor_name(header.flags)));
  }
  if (header.type != 3) {
    throw CodeObjectError("code object is not linked (ELF type is not ET_DYN); link it with ld.lld -shared");
  }
  if (header.phentsize != sizeof(ProgramHeader))
    throw CodeObjectError("code object has no usable program headers");

  CodeObject object;
  object.abi_version = header.ident[8] + 2;  // 2, 3, 4 stand for code object 4, 5, 6
  std::optional<ProgramHeader> dynamic_header;
  std::vector<ProgramHeader> notes;
  for (std::uint64_t i = 0; i < header.phnum; ++i) {
    const auto ph = read<ProgramHeader>(file, header.phoff + i * sizeof(ProgramHeader), "program header");
    if (ph.type == pt_dynamic) dynamic_header = ph;
    if (ph.type == pt_note) notes.push_back(ph);
    if (ph.type != pt_load || ph.memsz == 0) continue;
    if (ph.memsz > largest_image || ph.vaddr > largest_image || ph.filesz > ph.memsz) {
      throw CodeObjectError(fmt::format("segment {} has an impossible size", i));
    }
    if (ph.vaddr < object.image_bytes) throw CodeObjectError(fmt::format("segment {} overlaps another", i));
    object.segments.push_back({ph.vaddr, ph.memsz, slice(file, ph.offset, ph.filesz, "segment"),
                               (ph.flags & 2) != 0, (ph.flags & 1) != 0});
    object.image_bytes = ph.vaddr + ph.memsz;
  }
  const Image image(object.segments);

  std::map<std::uint64_t, std::uint64_t> dynamic;
  if (dynamic_header) {
    const Bytes entries = slice(file, dynamic_header->offset, dynamic_header->filesz, "dynamic section");
    for (std::uint64_t at = 0; at + sizeof(DynamicEntry) <= entries.size(); at += sizeof(DynamicEntry)) {
      const auto entry = read<DynamicEntry>(entries, at, "dynamic section");
      if (entry.tag == 0) break;
      dynamic.emplace(entry.tag, entry.value);
    }
  }
  SymbolTable symbols;
  if (dynamic.contains(dt_symtab) && dynamic.contains(dt_strtab) && dynamic.contains(dt_strsz)) {
    const std::uint64_t count = symbol_count(image, dynamic);
    symbols.symbols =
        slice(image.from(dynamic[dt_symtab], "DT_SYMTAB"), 0, count * sizeof(Symbol), "symbol table");
    symbols.strings =
        slice(image.from(dynamic[dt_strtab], "DT_STRTAB"), 0, dynamic[dt_strsz], "string table");
  }

  std::map<std::string, Metadata> metadata;
  for (const ProgramHeader& note : notes) {
    if (const auto found = find_note(slice(file, note.offset, note.filesz, "note segment"))) {
      metadata = read_metadata(*found);
    }
  }
  read_kernels(object, image, symbols, metadata);
  if (dynamic.contains(dt_rela)) {
    read_relocations(object, image, symbols, dynamic[dt_rela], dynamic[dt_relasz]);
  }
  if (dynamic.contains(dt_jmprel)) {
    read_relocations(object, image, symbols, dynamic[dt_jmprel], dynamic[dt_pltrelsz]);
  }
  return object;
}

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";

bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

struct BundleEntry {
  std::uint64_t offset = 0, size = 0;
  std::string_view target;
};

std::vector<BundleEntry> read_bundle(Bytes bytes) {
  std::vector<BundleEntry> entries;
  std::uint64_t at = bundle_magic.size();
  const auto count = read<std::uint64_t>(bytes, at, "offload bundle");
  at += 8;
  if (count > bytes.size() / 24)
    throw CodeObjectError("offload bundle counts more entries than it has bytes");
  for (std::uint64_t i = 0; i < count; ++i) {
    BundleEntry entry;
    entry.offset = read<std::uint64_t>(bytes, at, "offload bundle");
    entry.size = read<std::uint64_t>(bytes, at + 8, "offload bundle");
    const auto length = read<std::uint64_t>(bytes, at + 16, "offload bundle");
    const Bytes target = slice(bytes, at + 24, length, "offload bundle");
    entry.target = {reinterpret_cast<const char*>(target.data()), target.size()};
    entries.push_back(entry);
    at += 24 + length;
  }
  return entries;
}

}  // namespace

std::uint32_t Descriptor::mode() const {
  return ((rsrc1 >> 12) & 0xff) | ((rsrc1 >> 21) & 1) << 8 | ((rsrc1 >> 23) & 1) << 9 |
         ((rsrc1 >> 26) & 1) << 23;
}

const Kernel* CodeObject::find(std::string_view kernel_name) const {
  const auto found =
      std::lower_bound(kernels.begin(), kernels.end(), kernel_name,
                       [](const Kernel& kernel, std::string_view n) { return kernel.name < n; });
  return found != kernels.end() && found->name == kernel_name ? &*found : nullptr;
}

Bytes select_gfx942(Bytes bytes) {
  if (starts_with(bytes, "CCOB")) {
    throw CodeObjectError("offload bundle is compressed; compile with -no-offload-compress");
  }
  if (!starts_with(bytes, bundle_magic)) return bytes;
  std::string targets;
  for (const BundleEntry& entry : read_bundle(bytes)) {
    const std::size_t at = entry.target.find("gfx942");
    const bool whole =
        at != std::string_view::npos && (at + 6 == entry.target.size() || entry.target[at + 6] == ':');
    if (whole) return slice(bytes, entry.offset, entry.size, "offload bundle entry");
    if (entry.size > 0) targets += fmt::format("{}{}", targets.empty() ? "" : ", ", entry.target);
  }
  throw CodeObjectError(
      fmt::format("offload bundle has no gfx942 code ({}); compile with --offload-arch=gfx942",
                  targets.empty() ? "it is empty" : targets));
}

CodeObject read_code_object(Bytes bytes) {
  const Bytes elf = select_gfx942(bytes);
  if (elf.empty()) throw CodeObjectError("code object is empty");
  if (!starts_with(elf,
                   "\x7f"
                   "ELF"))
    throw CodeObjectError("not a code object: neither ELF nor offload bundle");
  return read_elf(elf);
}

std::size_t claimed_size(Bytes head) {
  try {
    if (starts_with(head,
                    "\x7f"
                    "ELF")) {
      const auto header = read<FileHeader>(head, 0, "ELF header");
      return std::max(header.shoff + std::uint64_t{header.shnum} * header.shentsize,
                      header.phoff + std::uint64_t{header.phnum} * header.phentsize);
    }
    if (starts_with(head, bundle_magic)) {
      std::uint64_t end = 0;
      for (const BundleEntry& entry : read_bundle(head)) end = std::max(end, entry.offset + entry.size);
      return end;
    }
  } catch (const CodeObjectError&) {
  }
  return 0;
}

}  // namespace attest::device::sim
