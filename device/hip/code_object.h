// SPDX-License-Identifier: MIT
//
// Reading a code object file before a HIP runtime gets to see it. Runtimes trust their input: a truncated
// file can take the process down, and a file for another architecture is "hipErrorNoBinaryForGpu" without
// saying which two differ.
//
// Sources: LLVM, "User Guide for AMDGPU Backend", section Code Object (ELF header and e_flags); System V ABI.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest::device::hip {

/// What is wrong with the bytes as a code object for `arch` ("gfx942"), in words; empty when nothing is.
/// Checks the ELF and program headers and that every segment and the section table lie inside the file.
std::string code_object_defect(std::span<const std::byte> bytes, std::string_view arch);

/// The file's bytes. Throws DeviceError: unreadable, or a defect.
std::vector<std::byte> read_code_object(const std::filesystem::path& file, std::string_view arch);

}  // namespace attest::device::hip
