// SPDX-License-Identifier: MIT
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <vector>

namespace attest::device::sim {

/// A whole file, of a test's own; the test fails when it cannot be read.
inline std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  INFO(path.string());
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  std::vector<std::byte> bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace attest::device::sim
