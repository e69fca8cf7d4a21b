// SPDX-License-Identifier: MIT
//
// The kernels as built, and the check that a file passes before a HIP runtime gets it.
#include "device/hip/code_object.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "device/hip/installation.h"
#include "device/kernel.h"

using namespace attest::device;
using Catch::Matchers::Contains;

namespace {

std::vector<std::byte> built(const char* name) {
  return hip::read_code_object(hip::kernel_directory() / name, "gfx942");
}

std::string defect(std::span<const std::byte> bytes) {
  return hip::code_object_defect(bytes, "gfx942");
}

template <typename Change>
std::string defect_after(Change change) {
  std::vector<std::byte> bytes = built("split_reduce.co");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  change(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return defect(bytes);
}

}  // namespace

TEST_CASE("the build leaves gfx942 code objects beside the program") {
  for (const char* name :
       {"mla_decode.co", "split_reduce.co", "mla_decode+qlen_mask.co", "split_reduce+split_forgotten.co"}) {
    INFO(name);
    const std::vector<std::byte> bytes = built(name);
    Elf64_Ehdr header;
    REQUIRE(bytes.size() > sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    CHECK(header.e_machine == 224);
    CHECK((header.e_flags & 0xff) == 0x4c);
  }
}

TEST_CASE("every truncation of a code object is called one") {
  const std::vector<std::byte> whole = built("split_reduce.co");
  CHECK(defect(whole).empty());
  for (std::size_t size = 0; size < whole.size(); size += size < 256 ? 1 : 97) {
    INFO(size);
    const std::string found = defect(std::span(whole).first(size));
    if (size >= SELFMAG) {
      REQUIRE_THAT(found, Contains("truncated"));
    } else {
      REQUIRE(found == "not an ELF file");
    }
  }
}

TEST_CASE("foreign files are named for what they are") {
  const std::string bundle = "__CLANG_OFFLOAD_BUNDLE__ and more";
  CHECK_THAT(defect(std::as_bytes(std::span(bundle))), Contains("--no-gpu-bundle-output"));
  const std::string text = "#!/bin/sh\n";
  CHECK(defect(std::as_bytes(std::span(text))) == "not an ELF file");
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_machine = EM_X86_64; }), Contains("machine 62"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }), Contains("64-bit"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_ident[EI_OSABI] = ELFOSABI_NONE; }), Contains("HSA"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_flags = (h.e_flags & ~0xffu) | 0x3f; }),
             Contains("compiled for gfx90a, not for gfx942"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_flags = (h.e_flags & ~0xffu) | 0xee; }),
             Contains("no name for"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_type = ET_REL; }), Contains("was not linked"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_phnum = 0; }), Contains("no program headers"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_phoff = ~Elf64_Off{0} - 8; }), Contains("truncated"));
  CHECK_THAT(defect_after([](Elf64_Ehdr& h) { h.e_shoff = ~Elf64_Off{0} - 8; }), Contains("truncated"));
}

TEST_CASE("a file that cannot be read is one line with its name") {
  const auto missing = hip::kernel_directory() / "no_such_kernel.co";
  CHECK_THROWS_WITH(hip::read_code_object(missing, "gfx942"),
                    Contains("no_such_kernel.co") && Contains("No such file"));
  const auto foreign = std::filesystem::path("/proc/self/exe");
  CHECK_THROWS_AS(hip::read_code_object(foreign, "gfx942"), DeviceError);
}
