// SPDX-License-Identifier: MIT
//
// Cases as tensors, and the verbs that write and judge them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "cases/inputs.h"
#include "device/kernel.h"
#include "fuzz/exchange/capture.h"
#include "fuzz/exchange/description.h"
#include "fuzz/exchange/exported_case.h"
#include "fuzz/exchange/worker_option.h"
#include "fuzz/exchange/worker_process.h"
#include "fuzz/generate.h"
#include "fuzz/record.h"
#include "fuzz/tests/fixtures.h"

using namespace attest;
using namespace attest::fuzz;
using namespace attest::fuzz::exchange;
using testing::Ran;
using testing::run_attest;
using testing::TemporaryFolder;

namespace {

/// Exit `code` and one line that mentions `words`.
void refused(const Ran& ran, const std::string& words, int code = 2) {
  INFO(ran.err);
  CHECK(ran.code == code);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  CHECK(ran.err.find(words) != std::string::npos);
}

cases::Case small_decode() {
  cases::MlaDecode p;
  p.heads = 2;
  p.page_size = 4;
  p.requests = {{.q_len = 1, .kv_len = 5}, {.q_len = 2, .kv_len = 3}};
  cases::Case c;
  c.seed = 7;
  c.problem = p;
  return c;
}

/// Writes `outputs` as a file of the shapes that the case asks for.
void write_outputs(const std::string& path, const cases::Case& c, const cases::Outputs& outputs) {
  const cases::Inputs inputs = cases::materialise(c);
  const Description d = describe(c, inputs);
  std::vector<TensorSource> tensors;
  for (const OutputTensor& t : d.outputs)
    tensors.push_back(
        {.name = t.name, .dtype = t.dtype, .shape = t.shape, .bytes = outputs.find(t.name)->bytes});
  write_safetensors(path, {}, tensors);
}

/// What a kernel without a fault gives, from the simulator.
cases::Outputs computed(const cases::Case& c) {
  const auto device = device::open_device("sim", 0);
  const device::Kernel* kernel = device::find_kernel(std::string("attest/") + cases::op_name(c.problem));
  REQUIRE(kernel != nullptr);
  const device::Outcome outcome = kernel->run(*device, c, cases::materialise(c));
  REQUIRE(outcome.status == device::Status::ok);
  return outcome.outputs;
}

}  // namespace

TEST_CASE("every op's inputs have the sizes of their shapes, and its kernel gives what is asked for") {
  std::set<std::string> exchanged;
  for (const std::string& op : cases::op_names()) {
    for (std::uint64_t number = 0; number < 12; ++number) {
      const cases::Case c = generate(op, 99, number);
      if (why_not_exchanged(c.problem)) {
        CHECK_THROWS_WITH(describe(c, cases::materialise(c)), Catch::Contains("op " + op));
        break;
      }
      exchanged.insert(op);
      const cases::Inputs inputs = cases::materialise(c);
      const Description d = describe(c, inputs);
      INFO(op << " " << number << " " << cases::canonical_json(c));
      CHECK(d.metadata.at("op") == op);
      CHECK(cases::parse_case(d.metadata.at("case")) == c);
      std::set<std::string> names;
      for (const TensorSource& t : d.inputs) {
        INFO(t.name << " " << shown(t.shape));
        std::uint64_t bytes = element_bytes(t.dtype);
        for (const std::uint64_t extent : t.shape) bytes *= extent;
        CHECK(bytes == (t.sparse != nullptr ? t.sparse->size : t.bytes.size()));
        CHECK(names.insert(t.name).second);
      }
      if (number >= 2) continue;
      const cases::Outputs outputs = computed(c);
      CHECK(outputs.tensors.size() == d.outputs.size());
      for (const OutputTensor& t : d.outputs) {
        INFO(t.name << " " << shown(t.shape));
        REQUIRE(outputs.find(t.name) != nullptr);
        std::uint64_t bytes = element_bytes(t.dtype);
        for (const std::uint64_t extent : t.shape) bytes *= extent;
        if (t.judged != nullptr) {
          CHECK(bytes == t.judged->size);
          bytes = 0;
          for (const auto& extent : t.judged->extents) bytes += extent.bytes.size();
        }
        CHECK(outputs.find(t.name)->bytes.size() == bytes);
      }
    }
  }
  for (const char* op : {"mla_decode", "verify_attention", "mla_prefill", "merge_states", "indexer_logits",
                         "topk", "index_remap", "cache_write", "spec_verify", "block_table_expand"})
    CHECK(exchanged.count(op) == 1);
}

TEST_CASE("an export holds the case and its inputs; check judges what was computed from it") {
  const TemporaryFolder folder;
  const cases::Case c = small_decode();
  testing::write_file(folder.file("case.json"), cases::pretty_json(c));
  const Ran exported =
      run_attest("export " + folder.file("case.json") + " -o " + folder.file("x.safetensors"));
  INFO(exported.err);
  CHECK(exported.code == 0);
  CHECK(exported.out.find("q                            BF16         [3, 2, 576]") != std::string::npos);
  CHECK(exported.out.find("out                          BF16         [3, 2, 512]") != std::string::npos);
  {
    const SafetensorsFile x(folder.file("x.safetensors"));
    CHECK(x.metadata().at("heads") == "2");
    CHECK(x.metadata().at("sm_scale") == "0.07216878");
    CHECK(x.metadata().at("kv_format") == "bf16");
    CHECK(x.metadata().at("causal") == "true");
    CHECK(Json::parse(x.metadata().at("outputs"))["lse"] == Json{{"dtype", "F32"}, {"shape", {3, 2}}});
    const auto inputs = std::get<cases::MlaDecodeInputs>(cases::materialise(c));
    CHECK(std::equal(inputs.q.begin(), inputs.q.end(), x.required("q").bytes.begin()));
    CHECK(x.required("kv_buffer").shape.size() == 4);
    CHECK(x.required("kv_buffer").shape[1] == 4);
    CHECK(x.required("block_table").shape == Shape{2, 2});
    std::int32_t lens[2];
    std::memcpy(lens, x.required("seq_lens").bytes.data(), sizeof lens);
    CHECK((lens[0] == 5 && lens[1] == 3));
  }
  CHECK(exported_case(folder.file("x.safetensors")) == c);

  cases::Outputs outputs = computed(c);
  write_outputs(folder.file("y.safetensors"), c, outputs);
  const Ran good =
      run_attest("check " + folder.file("x.safetensors") + " " + folder.file("y.safetensors") + " --json");
  INFO(good.out << good.err);
  CHECK(good.code == 0);
  CHECK(Json::parse(good.out)["verdict"]["kind"] == "pass");
  CHECK(Json::parse(good.out)["verdict"]["elements_checked"] == 6 * 513);

  // The last element, off by 0.25.
  auto& bytes = outputs.tensors.front().bytes;
  REQUIRE(outputs.tensors.front().name == "out");
  std::uint16_t last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 2, 2);
  const auto wrong = static_cast<std::uint16_t>((last & 0x8000U) | 0x4180U);  // 16
  std::memcpy(bytes.data() + bytes.size() - 2, &wrong, 2);
  write_outputs(folder.file("z.safetensors"), c, outputs);
  const Ran bad = run_attest("check " + folder.file("case.json") + " " + folder.file("z.safetensors"));
  CHECK(bad.code == 1);
  CHECK(bad.out.find("fail  ") == 0);
  CHECK(bad.out.find("request 1, position 1, head 1, column 511") != std::string::npos);
}

TEST_CASE("files that are not what check and export need are refused in one line") {
  const TemporaryFolder folder;
  const cases::Case c = small_decode();
  const std::string c_file = folder.file("case.json"), y = folder.file("y.safetensors");
  testing::write_file(c_file, cases::pretty_json(c));
  refused(run_attest("export " + c_file + " --out /no/such/place"), "cannot be written");
  refused(run_attest("export " + c_file), "--out is required");
  refused(run_attest("export /no/such.json --out " + y), "/no/such.json");
  refused(run_attest("export 7:1 --kernel attest/work_plan --out " + y), "op work_plan");
  refused(run_attest("check " + c_file + " " + y), "y.safetensors: cannot be opened");
  testing::write_file(y, "nonsense nonsense");
  refused(run_attest("check " + c_file + " " + y), "y.safetensors: its header claims");
  refused(run_attest("check " + y + " " + y), "y.safetensors: its header claims");

  const std::vector<std::byte> out(3 * 2 * 512 * 2), lse(3 * 2 * 4), wide(3 * 2 * 512 * 4);
  write_safetensors(y, {}, {{"out", Dtype::bf16, {3, 2, 512}, out}});
  refused(run_attest("check " + c_file + " " + y), "has no tensor \"lse\"; it has out");
  refused(run_attest("check " + y + " " + y), "names no case");
  write_safetensors(y, {}, {{"out", Dtype::bf16, {6, 512}, out}, {"lse", Dtype::f32, {3, 2}, lse}});
  refused(run_attest("check " + c_file + " " + y),
          "tensor out is BF16 [6, 512]; the case asks for BF16 [3, 2, 512]");
  write_safetensors(y, {}, {{"out", Dtype::f32, {3, 2, 512}, wide}, {"lse", Dtype::f32, {3, 2}, lse}});
  refused(run_attest("check " + c_file + " " + y), "tensor out is F32 [3, 2, 512]; the case asks for BF16");
  write_safetensors(y, {}, {{"out", Dtype::bf16, {3, 2, 512}, out}, {"lse", Dtype::f32, {3, 2}, lse}});
  refused(run_attest("check " + c_file + " " + y + " --precision fp12"), "fp12");
  CHECK(run_attest("check " + c_file + " " + y).code == 1);  // zeros
}

TEST_CASE("a greeting is read strictly") {
  const auto complaint = [](const std::string& line) -> std::string {
    try {
      parse_hello(line, "worker 'x'");
      return "accepted";
    } catch (const device::DeviceError& error) {
      return error.what();
    }
  };
  const Hello hello = parse_hello(
      R"({"attest_worker":1,"name":"mine","about":"a test","ops":{"mla_decode":{"precision":"fp32p",
          "most_input_bytes":1000,"domain":{"heads":[16],"q_len_max":4,"kv_format":"fp8_e4m3fnuz",
          "q_format":"fp8_e4m3fnuz","placements_excluded":["high"]}},"topk":{}}})",
      "x");
  CHECK(hello.name == "mine");
  REQUIRE(hello.ops.size() == 2);
  CHECK(hello.ops[0].precision == "fp32p");
  CHECK(hello.ops[0].most_input_bytes == 1000);
  REQUIRE(hello.ops[0].domain);
  CHECK(hello.ops[0].domain->longest_q_len_max == 4);
  CHECK(hello.ops[0].domain->kv_format == cases::Format::fp8_e4m3fnuz);
  CHECK(hello.ops[0].domain->placements_excluded == std::vector{cases::Placement::high});
  CHECK(hello.ops[1].precision == "bf16-any");

  const auto with = [](const std::string& op) {
    return R"({"attest_worker":1,"name":"mine","ops":{"mla_decode":)" + op + "}}";
  };
  CHECK(complaint(with("{}")) == "accepted");
  for (const auto& [line, what] : std::initializer_list<std::pair<std::string, std::string>>{
           {"Loading model...", "its first line is no greeting: Loading model..."},
           {R"({"attest_worker":2,"name":"mine","ops":{"topk":{}}})", "another version of the protocol"},
           {R"({"attest_worker":1,"ops":{"topk":{}}})", "'name' is missing"},
           {R"({"attest_worker":1,"name":"a b","ops":{"topk":{}}})", "one word"},
           {R"({"attest_worker":1,"name":"mine"})", "it offers no ops"},
           {R"({"attest_worker":1,"name":"mine","ops":{"decode":{}}})", "there is no such op"},
           {R"({"attest_worker":1,"name":"mine","ops":{"topk":{"domain":{}}}})",
            "a domain is for mla_decode"},
           {with(R"({"precison":"bf16"})"), "unknown field 'precison'"},
           {with(R"({"precision":"fp12"})"), "fp12"},
           {with(R"({"domain":{"heads":"16"}})"), "worker 'x': "},
           {with(R"({"domain":{"q_format":"fp9"}})"), "'fp9' is not known"}}) {
    INFO(complaint(line));
    CHECK(complaint(line).find(what) != std::string::npos);
  }
  CHECK_THROWS_AS(parse_hello(R"({"attest_worker":1,"name":"mine","unavailable":"needs torch"})", "x"),
                  device::DeviceUnavailable);
}

TEST_CASE("programs that are no workers are refused, those that cannot run here are no failure") {
  refused(run_attest("fuzz --worker /no/such/program"), "ended before its greeting");
  refused(run_attest("fuzz --worker 'echo hello'"), "its first line is no greeting: hello");
  refused(run_attest("fuzz --worker 'echo needs torch >&2; exit 1'"), "it said: needs torch");
  refused(run_attest(
              R"(fuzz --worker 'echo {\"attest_worker\":1,\"name\":\"x\",\"unavailable\":\"needs torch\"}')"),
          "needs torch", 3);
  refused(run_attest("replay 1:1 --kernel worker:x/mla_decode"), "start that with --worker 'CMD'");
  CHECK(worker_option("") == "");
  CHECK(worker_option("python3 it's.py") == R"( --worker 'python3 it'\''s.py')");
}

namespace {

/// A dump of one request with `kv_len` keys on pages of 4, as tensors to be spoiled.
struct SmallDump {
  Metadata metadata = {{"sm_scale", "0.07216878"}};
  std::vector<std::byte> q = std::vector<std::byte>(2 * 576 * 2),
                         kv = std::vector<std::byte>(3 * 4 * 576 * 2),
                         out = std::vector<std::byte>(2 * 512 * 2);
  std::vector<std::int32_t> qo_indptr = {0, 1}, kv_indptr = {0, 2}, kv_indices = {2, 0}, last = {3};
  std::vector<TensorSource> tensors;

  SmallDump() {
    tensors = {{"q", Dtype::bf16, {1, 2, 576}, q},    {"kv_buffer", Dtype::bf16, {3, 4, 1, 576}, kv},
               integers("qo_indptr", qo_indptr),      integers("kv_indptr", kv_indptr),
               integers("kv_indices", kv_indices),    integers("kv_last_page_lens", last),
               {"out", Dtype::bf16, {1, 2, 512}, out}};
  }
  SmallDump(const SmallDump&) = delete;
  SmallDump& operator=(const SmallDump&) = delete;
  static TensorSource integers(const char* name, const std::vector<std::int32_t>& values) {
    return {.name = name,
            .dtype = Dtype::i32,
            .shape = {values.size()},
            .bytes = std::as_bytes(std::span(values))};
  }
  TensorSource& at(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const TensorSource& t) { return t.name == name; });
  }
  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const TensorSource& t) { return t.name == name; });
  }
  [[nodiscard]] std::string complaint(const TemporaryFolder& folder) const {
    write_safetensors(folder.file("dump"), metadata, tensors);
    try {
      read_capture(folder.file("dump"));
      return "accepted";
    } catch (const UsageError& error) {
      return error.what();
    }
  }
};

}  // namespace

TEST_CASE("a dump becomes the call's own bytes and a batch; what contradicts itself is refused by name") {
  const TemporaryFolder folder;
  {
    SmallDump dump;
    dump.kv[0] = std::byte{0x12};
    REQUIRE(dump.complaint(folder) == "accepted");
    const Capture capture = read_capture(folder.file("dump"));
    const auto& p = std::get<cases::MlaDecode>(capture.call.problem);
    CHECK(p.heads == 2);
    CHECK(p.page_size == 4);
    CHECK(p.requests == std::vector<cases::Request>{{1, 7}});
    CHECK(!p.return_lse);
    CHECK(capture.inputs.kv_pool.extents.size() == 2);
    CHECK(capture.inputs.kv_pool.at(0, 1).front() == std::byte{0x12});
    CHECK(capture.inputs.kv_page_indices.size() == 2 + cases::index_slack);
    CHECK(capture.outputs->tensors.size() == 1);
    CHECK(case_like(capture).memory.placement == cases::Placement::shuffled);
    // What is written is read back, and every smaller call too.
    write_capture(capture, folder.file("again"));
    const Capture again = read_capture(folder.file("again"));
    CHECK(again.call.problem == capture.call.problem);
    CHECK(again.inputs.q == capture.inputs.q);
    CHECK(again.inputs.kv_pool.at(2 * 4 * 576 * 2, 8).front() ==
          capture.inputs.kv_pool.at(2 * 4 * 576 * 2, 8).front());
    const std::vector<Capture> smaller = smaller_captures(capture);
    CHECK(smaller.size() >= 4);
    for (const Capture& s : smaller) {
      write_capture(s, folder.file("smaller"));
      CHECK(read_capture(folder.file("smaller")).call.problem == s.call.problem);
      CHECK(s.call.problem != capture.call.problem);
    }
  }
  const auto refuses = [&](const char* what, const auto& spoil) {
    SmallDump dump;
    spoil(dump);
    const std::string said = dump.complaint(folder);
    INFO(said);
    CHECK(said.find(what) != std::string::npos);
    CHECK(said.find(folder.file("dump")) == 0);
    CHECK(std::count(said.begin(), said.end(), '\n') == 0);
  };
  refuses("sm_scale is missing", [](SmallDump& d) { d.metadata.clear(); });
  refuses("sm_scale: 'x' is no number", [](SmallDump& d) { d.metadata["sm_scale"] = "x"; });
  refuses("op topk is not captured", [](SmallDump& d) { d.metadata["op"] = "topk"; });
  refuses("causal: 'yes' is neither", [](SmallDump& d) { d.metadata["causal"] = "yes"; });
  refuses("page_size is 2", [](SmallDump& d) { d.metadata["page_size"] = "2"; });
  refuses("has no tensor \"q\"", [](SmallDump& d) { d.drop("q"); });
  refuses("need kv_last_page_lens", [](SmallDump& d) { d.drop("kv_last_page_lens"); });
  refuses("has no tensor \"block_table\"", [](SmallDump& d) { d.drop("kv_indptr"); });
  refuses("q is [2, 576]", [](SmallDump& d) { d.at("q").shape = {2, 576}; });
  refuses("tensor q is F16", [](SmallDump& d) { d.at("q").dtype = Dtype::f16; });
  refuses("its rows must have 576", [](SmallDump& d) { d.at("kv_buffer").shape = {3, 4, 2, 288}; });
  refuses("it must have one KV head", [](SmallDump& d) { d.at("kv_buffer").shape = {3, 2, 2, 576}; });
  refuses("kv_indptr must be the running sum", [](SmallDump& d) { d.kv_indptr[0] = 1; });
  refuses("kv_indptr ends at 5, kv_indices has 2", [](SmallDump& d) { d.kv_indptr[1] = 5; });
  refuses("names page 3", [](SmallDump& d) { d.kv_indices[1] = 3; });
  refuses("names page -1", [](SmallDump& d) { d.kv_indices[1] = -1; });
  refuses("5 of request 0 is outside 1..4", [](SmallDump& d) { d.last[0] = 5; });
  refuses("qo_indptr ends at 9", [](SmallDump& d) { d.qo_indptr[1] = 9; });
  refuses("tensor kv_indices is F32", [](SmallDump& d) { d.at("kv_indices").dtype = Dtype::f32; });
  refuses("tensor out is F16", [](SmallDump& d) { d.at("out").dtype = Dtype::f16; });
  refuses("no case can be such a call: scales.sm_scale",
          [](SmallDump& d) { d.metadata["sm_scale"] = "100"; });

  SmallDump dump;
  REQUIRE(dump.complaint(folder) == "accepted");
  dump.drop("out");
  write_safetensors(folder.file("blind"), dump.metadata, dump.tensors);
  refused(run_attest("capture " + folder.file("blind") + " --out " + folder.file("case.json")),
          "nothing was judged", 3);
  CHECK(run_attest("export " + folder.file("case.json") + " -o " + folder.file("x")).code == 0);
  refused(run_attest("capture " + folder.file("blind") + " --small " + folder.file("y")), "needs a kernel");
  refused(run_attest("capture " + folder.file("case.json")), "its header claims");
}

TEST_CASE(
    "the help of the exchange's verbs has examples and exit codes, and completion knows their options") {
  const std::string script = run_attest("completion bash").out;
  for (const char* verb : {"export", "check", "capture"}) {
    const std::string help = run_attest(std::string(verb) + " --help").out;
    INFO(help);
    CHECK(help.find("Exit codes:") != std::string::npos);
    CHECK(help.find("  attest " + std::string(verb)) != std::string::npos);
    CHECK(script.find("    " + std::string(verb) + ") words=") != std::string::npos);
  }
  for (const char* verb : {"fuzz", "replay", "shrink", "capture"}) {
    const auto at = script.find("    " + std::string(verb) + ") words=");
    REQUIRE(at != std::string::npos);
    std::string words = script.substr(at, script.find(";;", at) - at);
    std::replace(words.begin(), words.end(), '"', ' ');  // it may be the last one
    CHECK(words.find(" --worker ") != std::string::npos);
  }
}
