// SPDX-License-Identifier: MIT
#include "fuzz/exchange/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "fuzz/tests/fixtures.h"

using namespace attest::fuzz::exchange;
using attest::fuzz::UsageError;
namespace testing = attest::fuzz::testing;
using testing::TemporaryFolder;

namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + std::string(data_bytes, 'x');
}

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string complaint(const std::string& file) {
  try {
    parse_safetensors(bytes(file));
    return "accepted";
  } catch (const UsageError& error) {
    return error.what();
  }
}

bool mentions(const std::string& text, const std::string& what) {
  INFO(text);
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("what is written is read back, aligned, in the layout of the format") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> q = {0x3f80, 0x4000, 0x7fc0};
  const std::vector<float> lse = {1.5F, -2.0F};
  const std::vector<std::uint8_t> fp8 = {0x80, 0x7f, 0x01};
  const std::vector<std::int64_t> slots = {-1};
  write_safetensors(folder.file("x"), {{"op", "mla_decode"}, {"note", "a \"quoted\" word"}},
                    {{"fp8", Dtype::f8_e4m3fnuz, {3}, std::as_bytes(std::span(fp8))},
                     {"q", Dtype::bf16, {1, 3}, std::as_bytes(std::span(q))},
                     {"none", Dtype::f32, {0, 7}, {}},
                     {"lse", Dtype::f32, {2, 1}, std::as_bytes(std::span(lse))},
                     {"slot_mapping", Dtype::i64, {1}, std::as_bytes(std::span(slots))}});
  const std::string raw = testing::read_file(folder.file("x"));
  const auto header_bytes = static_cast<std::size_t>(static_cast<unsigned char>(raw[0])) +
                            256 * static_cast<std::size_t>(static_cast<unsigned char>(raw[1]));
  CHECK((8 + header_bytes) % 8 == 0);
  const auto header = nlohmann::json::parse(raw.substr(8, header_bytes));
  CHECK(header["q"] == nlohmann::json{{"dtype", "BF16"}, {"shape", {1, 3}}, {"data_offsets", {16, 22}}});
  CHECK(header["fp8"]["dtype"] == "F8_E4M3FNUZ");
  CHECK(raw.size() == 8 + header_bytes + 8 + 8 + 6 + 3);

  const SafetensorsFile file(folder.file("x"));
  CHECK(file.metadata() == Metadata{{"op", "mla_decode"}, {"note", "a \"quoted\" word"}});
  CHECK(file.tensors().size() == 5);
  const TensorView& got = file.required("q");
  CHECK(got.dtype == Dtype::bf16);
  CHECK(got.shape == Shape{1, 3});
  CHECK(std::memcmp(got.bytes.data(), q.data(), 6) == 0);
  CHECK(file.required("none").bytes.empty());
  CHECK(std::memcmp(file.required("slot_mapping").bytes.data(), slots.data(), 8) == 0);
  for (const TensorView& t : file.tensors())
    CHECK(reinterpret_cast<std::uintptr_t>(t.bytes.data()) % element_bytes(t.dtype) == 0);
  CHECK_THROWS_WITH(file.required("k"),
                    Catch::Contains("has no tensor \"k\"; it has ") && Catch::Contains("lse"));
}

TEST_CASE("a pool of which little has content is a file with holes") {
  const TemporaryFolder folder;
  attest::cases::SparseBytes pool;
  pool.size = std::uint64_t{5} << 30U;
  pool.extents.push_back({std::uint64_t{4} << 30U, std::vector<std::byte>(16, std::byte{7})});
  write_safetensors(folder.file("x"), {}, {{"kv_buffer", Dtype::u8, {pool.size}, {}, &pool}});
  struct stat status{};
  REQUIRE(::stat(folder.file("x").c_str(), &status) == 0);
  CHECK(status.st_size > std::int64_t{5} << 30U);
  CHECK(status.st_blocks * 512 < 1 << 20U);
  const SafetensorsFile file(folder.file("x"));
  CHECK(file.required("kv_buffer").bytes[(std::uint64_t{4} << 30U) + 15] == std::byte{7});
  CHECK(file.required("kv_buffer").bytes[0] == std::byte{0});
}

TEST_CASE("what is no safetensors file is refused in one line that says why") {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(complaint(file_of(good, 8)) == "accepted");
  CHECK(complaint(file_of(good + "   ", 8)) == "accepted");
  CHECK(complaint(file_of("{}", 0)) == "accepted");
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::tuple<std::string, std::string> bad[] = {
      {"", "0 bytes are too few"},
      {"1234567", "7 bytes are too few"},
      {file_of(good, 8).substr(0, 20), "is cut off"},
      {std::string(8, '\xff'), "header claims"},
      {file_of(good, 7), "is cut off"},
      {file_of(good, 9), "1 bytes behind the last tensor belong to none"},
      {file_of("[1]", 0), "no JSON object"},
      {file_of("{\"a\":", 0), "not JSON"},
      {file_of(std::string(100000, '['), 0), "not JSON"},
      {file_of("{\"\xff\":1}", 0), "not JSON"},
      {file_of(
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           8),
       "\"a\" twice"},
      {file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
       "\"dtype\" twice"},
      {file_of(tensor("F33", "[2]", "[0,8]"), 8), "dtype \"F33\" is not known"},
      {file_of(tensor("F4", "[2]", "[0,1]"), 1), "dtype \"F4\" is not known"},
      {file_of(tensor("F32", "[3]", "[0,8]"), 8), "F32 of [3] takes 12 bytes"},
      {file_of(tensor("F32", "[-2]", "[0,8]"), 8), "numbers from 0 on"},
      {file_of(tensor("F32", "[2.0]", "[0,8]"), 8), "numbers from 0 on"},
      {file_of(tensor("F32", "2", "[0,8]"), 8), "numbers from 0 on"},
      {file_of(tensor("F32", "[2]", "[0,8,9]"), 8), "numbers from 0 on"},
      {file_of(tensor("F32", "[2]", "[8,0]"), 8), "data_offsets are 8 to 0"},
      {file_of(tensor("F32", "[4611686018427387905]", "[0,4]"), 8), "more bytes than 64 bits count"},
      {file_of(tensor("F32", "[1]", "[4,8]"), 8), "a hole of 4 bytes"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
           6),
       "\"b\": overlaps"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "must have dtype, shape and data_offsets"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8), "nothing else"},
      {file_of(R"({"a":7})", 8), "must have dtype"},
      {file_of(R"({"__metadata__":{"k":1}})", 0), "__metadata__: \"k\" is no string"},
      {file_of(R"({"__metadata__":[]})", 0), "__metadata__ is no JSON object"},
  };
  for (const auto& [file, what] : bad) {
    const std::string said = complaint(file);
    CHECK(mentions(said, what));
    CHECK(std::count(said.begin(), said.end(), '\n') == 0);
    CHECK(said.size() < 300);
  }
  const std::string rude = file_of("{\"" + std::string(5000, 'n') + "\\n\":7}", 0);
  CHECK(complaint(rude).size() < 300);
  CHECK(complaint(rude).find('\n') == std::string::npos);
}

TEST_CASE("files that cannot be used are named") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(SafetensorsFile(folder.file("none")), Catch::Contains("/none: cannot be opened"));
  CHECK_THROWS_WITH(SafetensorsFile(folder.path), Catch::Contains(": is no file"));
  testing::write_file(folder.file("empty"), "");
  CHECK_THROWS_WITH(SafetensorsFile(folder.file("empty")), Catch::Contains("/empty: 0 bytes are too few"));
  CHECK_THROWS_WITH(write_safetensors(folder.file("no/x"), {}, {}), Catch::Contains("cannot be written"));
}

TEST_CASE("a file that cannot be finished leaves the one before it as it was") {
  const TemporaryFolder folder;
  testing::write_file(folder.file("x"), "before");
  attest::cases::SparseBytes pool;
  pool.size = std::uint64_t{1} << 62U;  // more than a file can have
  pool.extents.push_back({(std::uint64_t{1} << 62U) - 1, {std::byte{1}}});
  CHECK_THROWS_AS(write_safetensors(folder.file("x"), {}, {{"p", Dtype::u8, {pool.size}, {}, &pool}}),
                  UsageError);
  CHECK(testing::read_file(folder.file("x")) == "before");
  CHECK(!std::filesystem::exists(folder.file("x.part")));
}
