// SPDX-License-Identifier: MIT
//
// The named case sets of cases/seeds: every file passes on the correct kernel of its op, every set says what
// it guards and links a report, and the qseqlen family shows the fault that it is named after at the lengths
// where it must.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cases/case.h"
#include "device/kernel.h"
#include "fuzz/evaluate.h"

using namespace attest;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> sorted(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

fuzz::Evaluation evaluate(device::Device& device, const std::string& kernel, const cases::Case& c) {
  const device::Kernel* found = device::find_kernel(kernel);
  REQUIRE(found != nullptr);
  return fuzz::evaluate(device, *found, c);
}

}  // namespace

TEST_CASE("Named case sets pass on the correct kernels and explain themselves") {
  const auto device = device::open_device("sim", 0);
  const std::vector<fs::path> files = sorted(ATTEST_SEEDS, ".json");
  CHECK(files.size() >= 100);
  for (const fs::path& file : files) {
    INFO(file.string());
    const std::string about = text_of(file.parent_path() / "README.md");
    CHECK(about.find("https://github.com/") != std::string::npos);
    const cases::Case c = cases::parse_case(text_of(file));
    const fuzz::Evaluation e = evaluate(*device, std::string("attest/") + cases::op_name(c.problem), c);
    INFO(e.verdict.diagnosis << ": " << e.verdict.detail);
    CHECK(e.verdict.kind == oracle::VerdictKind::pass);
  }
}

TEST_CASE("qseqlen: i & (q_len - 1) shows at every length that is no power of two, and at no other") {
  const auto device = device::open_device("sim", 0);
  int lengths[17] = {};
  for (const fs::path& file : sorted(fs::path(ATTEST_SEEDS) / "qseqlen", ".json")) {
    INFO(file.string());
    const cases::Case c = cases::parse_case(text_of(file));
    const auto* p = std::get_if<cases::MlaDecode>(&c.problem);
    if (p == nullptr) continue;
    const int q_len = p->requests.front().q_len;
    ++lengths[q_len];
    const auto kind = evaluate(*device, "attest/mla_decode+qlen_mask", c).verdict.kind;
    CHECK((kind == oracle::VerdictKind::fail) == ((q_len & (q_len - 1)) != 0));
  }
  for (int q_len = 1; q_len <= 16; ++q_len) CHECK(lengths[q_len] == 4);
}
