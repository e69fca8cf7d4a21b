// SPDX-License-Identifier: MIT
#include "device/simulator/core/code_object.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "device/simulator/core/message_pack.h"

namespace attest::device::sim {
namespace {

using Bytes = std::vector<std::byte>;

Bytes file_bytes(const char* path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  Bytes bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::string error_of(const Bytes& bytes) {
  try {
    (void)read_code_object(bytes);
  } catch (const CodeObjectError& error) {
    return error.what();
  }
  return "none";
}

template <typename T>
void poke(Bytes& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

Bytes text(std::string_view s) {
  Bytes bytes(s.size());
  std::memcpy(bytes.data(), s.data(), s.size());
  return bytes;
}

/// A bundle of (target, contents).
Bytes bundle(const std::vector<std::pair<std::string, Bytes>>& entries) {
  Bytes out = text("__CLANG_OFFLOAD_BUNDLE__");
  const auto add = [&](std::uint64_t value) {
    const std::size_t at = out.size();
    out.resize(at + 8);
    poke(out, at, value);
  };
  add(entries.size());
  std::uint64_t offset = 4096;
  for (const auto& [target, contents] : entries) {
    add(offset);
    add(contents.size());
    add(target.size());
    const Bytes name = text(target);
    out.insert(out.end(), name.begin(), name.end());
    offset += contents.size();
  }
  out.resize(4096);
  for (const auto& [target, contents] : entries) out.insert(out.end(), contents.begin(), contents.end());
  return out;
}

}  // namespace

TEST_CASE("an assembled code object") {
  const Bytes bytes = file_bytes(ATTEST_TEST_KERNELS);
  const CodeObject object = read_code_object(bytes);
  CHECK(object.abi_version == 5);
  const Kernel* k = object.find("reverse");
  REQUIRE(k != nullptr);
  CHECK(k->descriptor.group_segment_bytes == 1024);
  CHECK(k->descriptor.vgpr_count() == 8);
  CHECK(k->descriptor.accum_offset() == 8);
  CHECK(k->descriptor.mode() == 0x3c0);  // the assembler flushes f32 denormals unless told otherwise
  CHECK(k->kernarg_bytes == 64);
  CHECK(k->code_bytes == 64);
  CHECK(k->entry_address % 256 == 0);
  CHECK(object.find("nothing") == nullptr);
  CHECK(object.find("") == nullptr);
}

TEST_CASE("a compiled code object has argument metadata") {
  const Bytes bytes = file_bytes(ATTEST_TEST_HIP_KERNELS);
  const CodeObject object = read_code_object(bytes);
  const Kernel* k = object.find("saxpy");
  REQUIRE(k != nullptr);
  REQUIRE(k->arguments.size() > 4);
  CHECK(k->arguments[0].kind == "by_value");
  CHECK(k->arguments[0].size == 4);
  CHECK(k->arguments[1].kind == "global_buffer");
  CHECK(k->arguments[1].offset == 8);
  CHECK(k->kernarg_bytes >= 32);
  CHECK(k->descriptor.mode() == 0x3f0);
}

TEST_CASE("foreign and empty input: one line that names the thing") {
  CHECK(error_of({}) == "code object is empty");
  CHECK(error_of(text("hello")) == "not a code object: neither ELF nor offload bundle");
  CHECK(error_of(text("\x7f"
                      "ELF"))
            .find("truncated: ELF header") != std::string::npos);
  CHECK(error_of(text("CCOBxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")).find("compressed") != std::string::npos);
  Bytes bytes = file_bytes("/proc/self/exe");
  CHECK(error_of(bytes).find("not AMDGPU code: ELF machine") == 0);
  bytes = file_bytes(ATTEST_TEST_KERNELS);
  Bytes other = bytes;
  poke<std::uint32_t>(other, 48, 0x54f);
  CHECK(error_of(other) == "code object is for gfx950, the simulator runs gfx942");
  other = bytes;
  poke<std::uint16_t>(other, 16, 1);
  CHECK(error_of(other).find("not linked") != std::string::npos);
  other = bytes;
  other[4] = std::byte{1};
  CHECK(error_of(other) == "code object is not little-endian ELF64");
}

TEST_CASE("bundles: the gfx942 entry is taken, its absence is explained") {
  const Bytes elf = file_bytes(ATTEST_TEST_KERNELS);
  CHECK(error_of(bundle({{"host-x86_64-unknown-linux--", {}}, {"hipv4-amdgcn-amd-amdhsa--gfx942", elf}})) ==
        "none");
  CHECK(error_of(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx90a", elf},
                         {"hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", elf}})) == "none");
  CHECK(error_of(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx1100", elf}})) ==
        "offload bundle has no gfx942 code (hipv4-amdgcn-amd-amdhsa--gfx1100); compile with "
        "--offload-arch=gfx942");
  Bytes broken = bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", elf}});
  poke<std::uint64_t>(broken, 24, ~std::uint64_t{0});
  CHECK(error_of(broken).find("more entries than it has bytes") != std::string::npos);
  broken = bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", elf}});
  poke<std::uint64_t>(broken, 32, ~std::uint64_t{0} - 5);
  CHECK(error_of(broken).find("truncated") != std::string::npos);
}

TEST_CASE("claimed sizes") {
  const Bytes elf = file_bytes(ATTEST_TEST_KERNELS);
  CHECK(claimed_size(std::span(elf).first(4096)) == elf.size());
  const Bytes both = bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", elf}});
  CHECK(claimed_size(std::span(both).first(4096)) == both.size());
  CHECK(claimed_size(text("hello")) == 0);
}

TEST_CASE("every truncation gives an error or an object") {
  for (const char* path : {ATTEST_TEST_KERNELS, ATTEST_TEST_HIP_KERNELS}) {
    const Bytes whole = file_bytes(path);
    for (std::size_t size = 0; size < whole.size(); size += size < 1024 ? 1 : 97) {
      // Its own allocation, so that a sanitizer sees a read past the end.
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const std::string error = error_of(part);
      INFO(size << ": " << error);
      if (size < 512) CHECK(error != "none");
      CHECK(error.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("every byte of the headers, changed, gives an error or an object") {
  for (const char* path : {ATTEST_TEST_KERNELS, ATTEST_TEST_HIP_KERNELS}) {
    const Bytes whole = file_bytes(path);
    for (std::size_t at = 0; at < std::min<std::size_t>(whole.size(), 3000); ++at) {
      for (const int change : {0xff, 0x80, 0x01}) {
        Bytes changed = whole;
        changed[at] ^= static_cast<std::byte>(change);
        (void)error_of(changed);
      }
    }
  }
}

TEST_CASE("a kernel whose entry is not code") {
  Bytes bytes = file_bytes(ATTEST_TEST_KERNELS);
  const CodeObject object = read_code_object(bytes);
  // .rodata's virtual address is its file offset here.
  const std::uint64_t at = object.find("trap")->descriptor_address;
  poke<std::int64_t>(bytes, at + 16, -64);
  CHECK(error_of(bytes).find("kernel trap: its entry") == 0);
}

TEST_CASE("MessagePack: kinds, skipping, and input that lies") {
  const auto reader = [](std::initializer_list<int> list) {
    static Bytes keep;
    keep.clear();
    for (const int b : list) keep.push_back(static_cast<std::byte>(b));
    return MessagePackReader(keep);
  };
  CHECK(reader({0x07}).integer() == 7);
  CHECK(reader({0xff}).integer() == ~std::uint64_t{0});
  CHECK(reader({0xcd, 0x12, 0x34}).integer() == 0x1234);
  CHECK(reader({0xd1, 0xff, 0xfe}).integer() == ~std::uint64_t{1});
  CHECK(reader({0xa2, 'h', 'i'}).text() == "hi");
  CHECK(reader({0xd9, 1, 'x'}).text() == "x");
  MessagePackReader nested =
      reader({0x92, 0x81, 0xa1, 'k', 0x93, 1, 2, 0xc0, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a});
  nested.skip();
  CHECK(nested.integer() == 0x2a);
  CHECK_THROWS_AS(reader({0xdd, 0xff, 0xff, 0xff, 0xff, 0}).array(), CodeObjectError);
  CHECK_THROWS_AS(reader({0xa5, 'h'}).text(), CodeObjectError);
  CHECK_THROWS_AS(reader({0xc1}).skip(), CodeObjectError);
  CHECK_THROWS_AS(reader({0x01}).text(), CodeObjectError);
  CHECK_THROWS_AS(reader({}).skip(), CodeObjectError);
}

}  // namespace attest::device::sim
