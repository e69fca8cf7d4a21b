// SPDX-License-Identifier: MIT
#include "device/simulator/core/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using attest::device::sim::Memory;
namespace note = attest::device::sim::note;

TEST_CASE("bounds are exact to the byte") {
  Memory memory(0);
  for (const std::uint64_t bytes : {1ull, 3ull, 4096ull, 65536ull, 65537ull, 5000000ull}) {
    const std::uint64_t a = memory.allocate(bytes).value();
    CHECK(memory.translate(a, bytes) != nullptr);
    CHECK(memory.translate(a + bytes - 1, 1) != nullptr);
    CHECK(memory.translate(a + bytes, 1) == nullptr);
    CHECK(memory.translate(a + bytes - 1, 2) == nullptr);
    CHECK(memory.translate(a - 1, 1) == nullptr);
    CHECK(memory.translate(a - 1, 2) == nullptr);
    CHECK(memory.translate(a, bytes + 1) == nullptr);
    CHECK(memory.translate(a + 1, ~0ull) == nullptr);
    CHECK(memory.translate(a + bytes + 65535, 1) == nullptr);
  }
}

TEST_CASE("a new region is zero and keeps what is written") {
  Memory memory(0);
  const std::uint64_t a = memory.allocate(100000).value();
  const std::byte* p = memory.translate(a, 100000);
  CHECK(std::all_of(p, p + 100000, [](std::byte b) { return b == std::byte{0}; }));
  std::memset(memory.translate(a + 5, 10), 0x5a, 10);
  CHECK(p[14] == std::byte{0x5a});
  CHECK(p[15] == std::byte{0});
}

TEST_CASE("addresses depend on the calls only") {
  const auto addresses = [] {
    Memory memory(3);
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 1; i < 50; ++i) all.push_back(memory.allocate(i * 7777).value());
    return all;
  };
  CHECK(addresses() == addresses());
}

TEST_CASE("devices have windows of their own, disjoint") {
  Memory first(0);
  Memory second(1);
  const std::uint64_t a = first.allocate(64).value();
  const std::uint64_t b = second.allocate(64).value();
  CHECK(first.translate(b, 1) == nullptr);
  CHECK(second.translate(a, 1) == nullptr);
  CHECK(first.owns(a));
  CHECK_FALSE(first.owns(b));
}

TEST_CASE("a six gigabyte pool costs nothing until touched, and its far end works") {
  Memory memory(0);
  const std::uint64_t bytes = std::uint64_t{6} << 30;
  const std::uint64_t a = memory.allocate(bytes, "kv_cache").value();
  *memory.translate(a + bytes - 1, 1) = std::byte{7};
  CHECK(*memory.translate(a + bytes - 1, 1) == std::byte{7});
  CHECK(memory.translate(a + (std::uint64_t{1} << 32), 4) != nullptr);
}

TEST_CASE("capacity is refused as a device refuses it") {
  Memory memory(0, 1 << 20);
  const auto a = memory.allocate(1 << 19);
  REQUIRE(a);
  CHECK_FALSE(memory.allocate((1 << 19) + 1));
  CHECK_FALSE(memory.allocate(~std::uint64_t{0}));
  CHECK(memory.allocate(1 << 19));
  CHECK(memory.in_use() == 1 << 20);
  CHECK(memory.release(*a));
  CHECK(memory.in_use() == 1 << 19);
}

TEST_CASE("freed memory is gone and remembered") {
  Memory memory(0);
  const std::uint64_t keep = memory.allocate(16, "keep").value();
  const std::uint64_t a = memory.allocate(4096, "page_table").value();
  CHECK_FALSE(memory.release(a + 1));
  CHECK(memory.release(a));
  CHECK_FALSE(memory.release(a));
  CHECK(memory.translate(a, 4) == nullptr);
  CHECK(memory.explain(a + 8, 4) == fmt::format("in freed buffer page_table (4096 bytes at {:#x})", a));
  CHECK(memory.allocate(4096).value() != a);
  CHECK(memory.translate(keep, 16) != nullptr);
}

TEST_CASE("when everything is freed the addresses start over") {
  Memory memory(0);
  const std::uint64_t image = memory.allocate_image(1000, 500, "code").value();
  const std::uint64_t a = memory.allocate(4096).value();
  const std::uint64_t b = memory.allocate(4096).value();
  CHECK(memory.release(a));
  CHECK(memory.release(b));
  CHECK(memory.allocate(4096).value() == a);
  CHECK(memory.find(image)->read_only == 500);
}

TEST_CASE("messages name the nearest buffer and the distance") {
  Memory memory(0);
  CHECK(memory.explain(0x123456789, 4) == "in no buffer (nothing is allocated)");
  const std::uint64_t a = memory.allocate(100, "q").value();
  const std::uint64_t b = memory.allocate(100).value();
  CHECK(memory.explain(a + 100, 4) == fmt::format("0 bytes after the end of q (100 bytes at {:#x})", a));
  CHECK(memory.explain(a + 98, 4) == fmt::format("2 bytes over the end of q (100 bytes at {:#x})", a));
  CHECK(memory.explain(b - 8, 4) == fmt::format("8 bytes before buffer #1 (100 bytes at {:#x})", b));
  CHECK(memory.explain(16, 4) == "near the null address");
  CHECK(memory.explain(0x7ff5a5a57ff5a5a5, 4) == "in no buffer, nor near one");
  CHECK(memory.name_range(b, 100, "out"));
  CHECK(memory.explain(b - 8, 4) == fmt::format("8 bytes before out (100 bytes at {:#x})", b));
  CHECK_FALSE(memory.name_range(b + 1, 100, "x"));
  CHECK_FALSE(memory.name_range(b + 100, 1, "x"));
}

TEST_CASE("host memory can be mapped at its own address") {
  Memory memory(0);
  std::vector<std::byte> host(1000);
  const auto address = reinterpret_cast<std::uint64_t>(host.data());
  memory.map(host.data(), host.size(), "managed");
  CHECK(memory.translate(address + 999, 1) == host.data() + 999);
  CHECK(memory.translate(address + 999, 2) == nullptr);
  CHECK(memory.release(address));
  CHECK(memory.translate(address, 1) == nullptr);
}

TEST_CASE("two tebibytes of address space are reused when they run out") {
  Memory memory(0);
  const std::uint64_t keep = memory.allocate(64, "keep").value();
  for (int i = 0; i < 200; ++i) {
    const auto a = memory.allocate(std::uint64_t{20} << 30);
    REQUIRE(a);
    REQUIRE(memory.translate(*a, 8) != nullptr);
    REQUIRE(memory.release(*a));
  }
  CHECK(memory.translate(keep, 64) != nullptr);
}

TEST_CASE("a named range hides the guard zones around it from kernels, not from the host") {
  Memory memory(0);
  const std::uint64_t a = memory.allocate(3000).value();
  memory.translate(a, 3000)[2999] = std::byte{9};
  REQUIRE(memory.name_range(a + 1000, 1000, "kv_cache"));
  CHECK(memory.translate(a + 1000, 1000) != nullptr);
  CHECK(memory.translate(a + 999, 1) == nullptr);
  CHECK(memory.translate(a + 2000, 1) == nullptr);
  CHECK(memory.translate(a, 1) == nullptr);
  CHECK(memory.explain(a + 2016, 4) ==
        fmt::format("16 bytes after the end of kv_cache (1000 bytes at {:#x})", a + 1000));
  CHECK(memory.translate_for_host(a, 3000) != nullptr);
  CHECK(*memory.translate_for_host(a + 2999, 1) == std::byte{9});
  CHECK(memory.translate_for_host(a + 2999, 2) == nullptr);
  CHECK(memory.allocation(a + 5) == std::pair{a, std::uint64_t{3000}});
  CHECK_FALSE(memory.release(a + 1000));
  CHECK(memory.release(a));
  CHECK(memory.in_use() == 0);
}

TEST_CASE("notes say what was written, where they are kept") {
  Memory memory(0);
  const std::uint64_t before = memory.allocate(100, "before").value();
  CHECK(memory.find(before)->notes == nullptr);
  memory.keep_notes(true);
  constexpr std::uint64_t large = 2 * 1024 * 1024;  // beyond the heap's limit
  const std::uint64_t a = memory.allocate(large, "a").value();
  const std::uint64_t b = memory.allocate(100, "b").value();
  CHECK(memory.find(a + 4096)->notes[4096] == 0);
  memory.mark(a + 4096, 4, true);
  CHECK(memory.find(a)->notes[4096 + 3] == note::written);
  CHECK(memory.find(a)->notes[4096 + 4] == 0);

  REQUIRE(memory.name_range(b + 16, 32, "inner"));
  memory.mark(b, 100, true);  // the guard zones too
  CHECK(memory.find(b + 16)->notes[0] == note::written);
  memory.mark(b + 20, 4, false);
  CHECK(memory.find(b + 16)->notes[3] == note::written);
  CHECK(memory.find(b + 16)->notes[4] == 0);
  CHECK(memory.find(b + 16)->notes[8] == note::written);

  memory.copy_notes(a, b + 16, 8);
  CHECK(memory.find(a)->notes[3] == note::written);
  CHECK(memory.find(a)->notes[4] == 0);
  memory.copy_notes(a + 4, before, 4);  // without notes: written
  CHECK(memory.find(a)->notes[4] == note::written);
  memory.mark(a + large - 4, 8, true);  // not inside: nothing happens
  CHECK(memory.find(a)->notes[large - 1] == 0);
  CHECK(memory.release(a));
  CHECK(memory.release(b));
}
