// SPDX-License-Identifier: MIT
//
// Who stored a value, and what it was made of, on kernels small enough to know the answer; and by experiment:
// the bytes that a slice names are those whose change changes the value, and no others do.
#include "device/simulator/detect/provenance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "device/simulator/core/module.h"
#include "device/simulator/detect/session.h"
#include "device/simulator/tests/file_bytes.h"

namespace attest::device::sim::detect {
namespace {

using Json = nlohmann::json;

using Words = std::vector<std::uint32_t>;

struct Fixture {
  Fixture() : module(memory, file_bytes(ATTEST_PROVENANCE_KERNELS)) {}

  /// What `out` holds after `name` has run on `in` so many times.
  Words run(const std::string& name, const Words& in, int launches = 1) {
    const std::uint64_t out = memory.allocate(256, "out").value();
    const std::uint64_t input = memory.allocate(4 * in.size(), "in").value();
    std::memcpy(memory.translate(input, 4 * in.size()), in.data(), 4 * in.size());
    const std::uint64_t block[2] = {out, input};
    Launch launch;
    launch.threads[0] = 64;
    launch.kernarg = std::as_bytes(std::span(block));
    const LoadedKernel* kernel = module.kernel(name);
    REQUIRE(kernel != nullptr);
    for (int n = 0; n < launches; ++n) dispatcher.run(*kernel, launch, memory, settings);
    Words result(64);
    std::memcpy(result.data(), memory.translate(out, 256), 256);
    memory.release(out);
    memory.release(input);
    return result;
  }

  Json ask(const Provenance::Question& question, const std::string& name, const Words& in, int launches = 1) {
    Provenance provenance(question);
    provenance.watch_before(settings.watch);
    settings.watch = &provenance;
    int runs = 0;
    do {
      run(name, in, launches);
      ++runs;
    } while (provenance.again());
    settings.watch = provenance.watched();
    const Json answer = provenance.json();
    CHECK(runs == (answer.at("found").get<bool>() ? 3 : 1));
    return answer;
  }

  Memory memory{0};
  LoadedModule module;
  Dispatcher dispatcher;
  Settings settings;
};

/// Dwords of `in` that were read.
std::set<std::size_t> dwords_read(const Json& answer, const std::string& role = "") {
  std::set<std::size_t> words;
  for (const Json& read : answer.at("reads")) {
    if (read.at("buffer") != "in" || (!role.empty() && read.at("role") != role)) continue;
    const auto first = read.at("offset").get<std::size_t>();
    for (std::size_t b = first; b < first + read.at("bytes").get<std::size_t>(); ++b) words.insert(b / 4);
  }
  return words;
}

/// Dwords of `in` whose change changes out[lane].
std::set<std::size_t> dwords_that_matter(Fixture& f, const std::string& name, const Words& in,
                                         std::size_t lane, std::uint32_t flip) {
  const std::uint32_t right = f.run(name, in)[lane];
  std::set<std::size_t> words;
  for (std::size_t w = 0; w < in.size(); ++w) {
    Words changed = in;
    changed[w] ^= flip;
    if (f.run(name, changed)[lane] != right) words.insert(w);
  }
  return words;
}

Words chain_input() {
  Words in(1024);
  for (std::size_t l = 0; l < 64; ++l) in[l] = static_cast<std::uint32_t>(l * 37 % 64);
  for (std::size_t k = 64; k < in.size(); ++k) in[k] = static_cast<std::uint32_t>(1000 + 7 * k);
  return in;
}

const Json* link(const Json& answer, const std::string& mnemonic) {
  for (const Json& l : answer.at("chain"))
    if (l.at("disassembly").get<std::string>().starts_with(mnemonic)) return &l;
  return nullptr;
}

}  // namespace

TEST_CASE("a value is followed to its store, through an index, the LDS and across lanes") {
  Fixture f;
  const Words in = chain_input();
  constexpr std::size_t lane = 21;
  const Json answer = f.ask({"out", 4 * lane, 4}, "chain", in);
  INFO(answer.dump(1));
  REQUIRE(answer.at("found") == true);
  CHECK(answer.at("times_written") == 2);
  CHECK(answer.at("producer").at("kernel") == "chain");
  CHECK(answer.at("producer").at("wave") == 0);
  CHECK(answer.at("producer").at("lane") == lane);
  CHECK(answer.at("cut") == false);

  const Json& store = answer.at("chain").front();
  CHECK(store.at("disassembly").get<std::string>().starts_with("global_store_dword v1, v10,"));
  CHECK(store.at("value") == f.run("chain", in)[lane]);
  CHECK(store.at("memory").at("buffer") == "out");
  CHECK(store.at("memory").at("offset") == 4 * lane);

  REQUIRE(link(answer, "v_mul_u32_u24") != nullptr);
  CHECK(link(answer, "v_mul_u32_u24")->at("lane") == lane);
  REQUIRE(link(answer, "v_add_u32_e32 v7") != nullptr);
  CHECK(link(answer, "v_add_u32_e32 v7")->at("lane") == (lane ^ 1));  // by DPP
  REQUIRE(link(answer, "ds_write_b32") != nullptr);
  CHECK(link(answer, "ds_write_b32")->at("lane") == lane);
  REQUIRE(link(answer, "global_load_dword v4") != nullptr);
  const Json& load = *link(answer, "global_load_dword v4");
  CHECK(load.at("role") == "value");
  CHECK(load.at("value") == in[256 + in[lane]]);
  CHECK(load.at("memory").at("buffer") == "in");
  CHECK(load.at("memory").at("offset") == 1024 + 4 * in[lane]);
  REQUIRE(link(answer, "global_load_dword v2") != nullptr);
  CHECK(link(answer, "global_load_dword v2")->at("role") == "address");
  CHECK(link(answer, "global_load_dword v8") == nullptr);
  CHECK(link(answer, "v_add_u32_e32 v8") == nullptr);

  CHECK(dwords_read(answer, "value") == std::set<std::size_t>{256 + in[lane]});
  CHECK(dwords_read(answer, "address") == std::set<std::size_t>{lane});
}

TEST_CASE("the bytes of a slice are those that matter") {
  Fixture f;
  const Words in = chain_input();
  for (const std::size_t lane : {std::size_t{0}, std::size_t{63}}) {
    const Json answer = f.ask({"out", 4 * lane, 4}, "chain", in);
    CHECK(dwords_read(answer) == dwords_that_matter(f, "chain", in, lane, 1));
  }
  // Small whole numbers, all different and none 0: no product and no sum hides a change.
  Words matrices(512);
  for (std::size_t k = 0; k < 256; ++k) {
    const auto bf16 = [](std::size_t n) { return static_cast<std::uint32_t>(0x3f80 + (n % 61)); };
    matrices[k] = bf16(k) | bf16(3 * k + 1) << 16;
  }
  for (const std::size_t lane : {std::size_t{37}, std::size_t{0}}) {
    const Json answer = f.ask({"out", 4 * lane, 4}, "matrix", matrices);
    const std::set<std::size_t> read = dwords_read(answer);
    CHECK(read.size() == 16);  // 16 numbers of a row of A and of a column of B
    CHECK(read == dwords_that_matter(f, "matrix", matrices, lane, 0x00400040));
  }
  for (const std::size_t lane : {std::size_t{3}, std::size_t{4}}) {
    Words choices(192);
    for (std::size_t k = 0; k < choices.size(); ++k) choices[k] = static_cast<std::uint32_t>(100 + k);
    for (std::size_t l = 0; l < 64; l += 2) choices[128 + l] |= 0x80000000U;
    const Json answer = f.ask({"out", 4 * lane, 4}, "select", choices);
    CHECK(dwords_read(answer) == std::set<std::size_t>{lane, 64 + lane, 128 + lane});
    for (const std::size_t w : dwords_that_matter(f, "select", choices, lane, 0x80000000U))
      CHECK(dwords_read(answer).count(w) == 1);
  }
}

TEST_CASE("what nobody stores is said to be never written") {
  Fixture f;
  const Json answer = f.ask({"out", 4 * 40, 4}, "select", Words(192, 1));
  CHECK(answer.at("found") == false);
  CHECK(answer.at("times_written") == 0);
  CHECK_FALSE(answer.contains("chain"));
  CHECK(f.ask({"no such buffer", 0, 4}, "select", Words(192, 1)).at("found") == false);
}

TEST_CASE("stores of later launches can be left out, and a window shows the wave around the store") {
  Fixture f;
  const Words in = chain_input();
  Provenance::Question question{"out", 0, 4};
  question.window = 6;
  const Json last = f.ask(question, "chain", in, 3);
  CHECK(last.at("producer").at("launch") == 2);
  CHECK(last.at("times_written") == 6);
  REQUIRE(last.at("window").size() == 5);  // three before, the store, and the end of the kernel
  CHECK(last.at("window").at(3).at("number") == last.at("producer").at("number"));
  CHECK(last.at("window").at(3).at("disassembly") == last.at("chain").front().at("disassembly"));
  for (std::size_t k = 1; k < 5; ++k)
    CHECK(last.at("window").at(k).at("number").get<int>() ==
          last.at("window").at(k - 1).at("number").get<int>() + 1);
  question.before = 1;
  CHECK(f.ask(question, "chain", in, 3).at("producer").at("launch") == 0);
}

}  // namespace attest::device::sim::detect
