// SPDX-License-Identifier: MIT
#include "cases/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cases/tests/arbitrary_case.h"

namespace attest::cases {
namespace {

const char* const full_text = R"({
  "schema": 1,
  "op": "mla_decode",
  "seed": "0x2a",
  "shape": {
    "heads": 16,
    "page_size": 16,
    "num_splits": 2,
    "causal": true,
    "return_lse": true,
    "requests": [{"q_len": 3, "kv_len": 37}, {"q_len": 1, "kv_len": 0}]
  },
  "formats": {"q": "bf16", "kv": "fp8_e4m3fnuz", "out": "bf16"},
  "scales": {
    "sm_scale": "0x3d93cd3a",
    "sm_scale_value": 0.07216878,
    "q_scale": "0x3f800000",
    "q_scale_value": 1,
    "kv_scale": "0x3ebd70a4",
    "kv_scale_value": 0.37
  },
  "data": {"fill": "needle"},
  "memory": {
    "placement": "shuffled",
    "unused": "nan",
    "output": "nan",
    "scratch": "nan",
    "page_padding_bytes": 0,
    "guard_bytes": 4096,
    "prefix_sharing": false
  }
}
)";

Case full_case() {
  MlaDecode p;
  p.heads = 16;
  p.page_size = 16;
  p.num_splits = 2;
  p.requests = {{3, 37}, {1, 0}};
  p.kv_format = Format::fp8_e4m3fnuz;
  p.kv_scale = 0.37F;
  Case c;
  c.seed = 42;
  c.problem = p;
  c.data.fill = Fill::needle;
  return c;
}

std::string message_of(const std::string& text) {
  try {
    (void)parse_case(text);
  } catch (const CaseError& error) {
    return error.what();
  }
  return "accepted";
}

/// full_text with one piece replaced; the piece must occur exactly once.
std::string with(const std::string& piece, const std::string& replacement) {
  std::string text = full_text;
  const std::size_t at = text.find(piece);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(piece, at + 1) == std::string::npos);
  return text.replace(at, piece.size(), replacement);
}

/// The least file, with `shape` as given and more fields after it.
std::string least(const std::string& shape, const std::string& more = "") {
  return R"({"schema": 1, "op": "mla_decode", "seed": "0x0", "shape": )" + shape + more + "}";
}

const char* const one_request = R"({"requests": [{"q_len": 1, "kv_len": 5}]})";

}  // namespace

TEST_CASE("The file form is fixed text and reads back to the same case") {
  CHECK(pretty_json(full_case()) == full_text);
  CHECK(parse_case(full_text) == full_case());
}

TEST_CASE("The canonical form and its hash are fixed: ids in old reports must keep their meaning") {
  CHECK(canonical_json(full_case()) ==
        R"({"data":{"fill":"needle"},"formats":{"kv":"fp8_e4m3fnuz","out":"bf16","q":"bf16"},)"
        R"("memory":{"guard_bytes":4096,"output":"nan","page_padding_bytes":0,"placement":"shuffled",)"
        R"("prefix_sharing":false,"scratch":"nan","unused":"nan"},"op":"mla_decode",)"
        R"("scales":{"kv_scale":"0x3ebd70a4","q_scale":"0x3f800000","sm_scale":"0x3d93cd3a"},"schema":1,)"
        R"("seed":"0x2a","shape":{"causal":true,"heads":16,"num_splits":2,"page_size":16,)"
        R"("requests":[{"kv_len":37,"q_len":3},{"kv_len":0,"q_len":1}],"return_lse":true}})");
  CHECK(case_id(full_case()) == "c313057b4029d6d6");
}

TEST_CASE("A file may leave out what has a default") {
  Case expected;
  MlaDecode p;
  p.requests = {{1, 5}};
  expected.problem = p;
  CHECK(parse_case(least(one_request)) == expected);
}

TEST_CASE("Every valid case survives both text forms, and another case has another id") {
  rc::prop("round trip", [] {
    const Case c = *any_case({.requests = 5, .kv_len = 131072});
    validate(c);
    RC_ASSERT(parse_case(pretty_json(c)) == c);
    RC_ASSERT(parse_case(canonical_json(c)) == c);
    // The file form is the same document, but for the values beside the bits.
    auto document = nlohmann::json::parse(pretty_json(c));
    for (const char* key : {"sm_scale_value", "q_scale_value", "kv_scale_value"})
      document["scales"].erase(key);
    RC_ASSERT(document.dump() == canonical_json(c));

    Case other = c;
    ++other.seed;
    RC_ASSERT(case_id(other) != case_id(c));
    RC_ASSERT(case_id(parse_case(pretty_json(c))) == case_id(c));
  });
}

TEST_CASE("What is wrong with a case is said in one line that names the field") {
  const struct {
    std::string text, message;
  } rows[] = {
      // not JSON
      {"", "line 1, column 1: not valid JSON"},
      {"{\n  \"schema\": 1,\n  oops", "line 3, column 3: not valid JSON"},
      {"{\"schema\": 1} x", "line 1, column 15: not valid JSON"},
      {"{\"seed\": 1e999}", "not valid JSON: a number is too large"},
      {"[]", "case: must be an object, not an array"},
      {"null", "case: must be an object, not null"},
      // fields given twice, unknown, or missing
      {with(R"("causal": true)", R"("causal": true, "causal": false)"), "shape.causal: given twice"},
      {with(R"({"q_len": 1, "kv_len": 0})", R"({"q_len": 1, "q_len": 1})"),
       "shape.requests.q_len: given twice"},
      {with(R"("seed": "0x2a")", R"("seed": "0x2a", "seed": "0x2b")"), "seed: given twice"},
      {with(R"("heads": 16)", R"("head": 16)"),
       "shape.head: unknown field; known are heads, page_size, num_splits, causal, return_lse, requests"},
      {with(R"("op":)", R"("o\np\"": 1, "op":)"),
       R"(o\np\": unknown field; known are schema, op, seed, shape, formats, scales, data, memory)"},
      {with(R"("kv_len": 0)", R"("kv_len": 0, "len": 0)"),
       "shape.requests[1].len: unknown field; known are q_len, kv_len"},
      {with(R"("fill": "needle")", R"("fil": "needle")"), "data.fil: unknown field; known are fill"},
      {with(R"("schema": 1,)", ""), "schema: missing"},
      {with(R"("op": "mla_decode",)", ""), "op: missing"},
      {with(R"("seed": "0x2a",)", ""), "seed: missing"},
      {with(R"("q_len": 1, )", ""), "shape.requests[1].q_len: missing"},
      {with(R"(, "kv_len": 37)", ""), "shape.requests[0].kv_len: missing"},
      {R"({"schema": 1, "op": "mla_decode", "seed": "0x0"})", "shape: missing"},
      {least("{}"), "shape.requests: missing"},
      // another schema, another op
      {with(R"("schema": 1)", R"("schema": 2)"), "schema: 2 is not supported; this program reads schema 1"},
      {with(R"("schema": 1)", R"("schema": "1")"),
       "schema: \"1\" is not supported; this program reads schema 1"},
      {with(R"("mla_decode")", R"("mla_encode")"),
       fmt::format("op: \"mla_encode\" is none of {}", fmt::join(op_names(), ", "))},
      // wrong types
      {with(R"("0x2a")", "42"), "seed: must be \"0x\" and 1 to 16 hexadecimal digits, not 42"},
      {with(R"("0x2a")", R"("0x")"), "seed: must be \"0x\" and 1 to 16 hexadecimal digits, not \"0x\""},
      {with(R"("0x2a")", R"("0x2g")"), "seed: must be \"0x\" and 1 to 16 hexadecimal digits, not \"0x2g\""},
      {with(R"("0x2a")", R"("0x10000000000000000")"),
       "seed: must be \"0x\" and 1 to 16 hexadecimal digits, not \"0x10000000000000000\""},
      {with(R"("heads": 16)", R"("heads": 16.0)"), "shape.heads: must be an integer, not 16.0"},
      {with(R"("heads": 16)", R"("heads": "16")"), "shape.heads: must be an integer, not \"16\""},
      {with(R"("heads": 16)", R"("heads": 18446744073709551615)"),
       "shape.heads: 18446744073709551615 is far out of range"},
      {with(R"("heads": 16)", R"("heads": -9223372036854775808)"),
       "shape.heads: -9223372036854775808 is far out of range"},
      {with(R"("causal": true)", R"("causal": 1)"), "shape.causal: must be true or false, not 1"},
      {with(R"("data": {"fill": "needle"})", R"("data": "needle")"),
       "data: must be an object, not \"needle\""},
      {least(R"({"requests": {}})"), "shape.requests: must be an array, not an object"},
      {least(R"({"requests": [7]})"), "shape.requests[0]: must be an object, not 7"},
      {with(R"("fill": "needle")", R"("fill": "hay")"),
       "data.fill: \"hay\" is none of normal, mean_shifted, outlier_channels, needle, position_coded, "
       "constant_scores, wide_scores, negative_offset, deep_offset, tiny, cancelling, saturating, exact, "
       "few_values, zero_ties, infinities, nans, ascending, descending"},
      {with(R"("placement": "shuffled")", R"("placement": 3)"),
       "memory.placement: 3 is none of ordered, shuffled, reversed, high, beyond_2gib, beyond_4gib"},
      {with(R"("unused": "nan")", R"("unused": "Nan")"),
       "memory.unused: \"Nan\" is none of nan, inf, large, stale, zero"},
      {with(R"("q": "bf16")", R"("q": "fp16")"),
       "formats.q: \"fp16\" is none of bf16, f16, f32, fp8_e4m3fn, fp8_e4m3fnuz, fp8_e5m2, fp8_e5m2fnuz, "
       "e8m0"},
      {with(R"("0x3d93cd3a")", "0.07"),
       "scales.sm_scale: must be the bits of an f32, \"0x\" and 8 hexadecimal digits, not 0.07"},
      {with(R"("0x3d93cd3a")", R"("0x3d93cd3")"),
       "scales.sm_scale: must be the bits of an f32, \"0x\" and 8 hexadecimal digits, not \"0x3d93cd3\""},
      {with("0.07216878", R"("0.07")"), "scales.sm_scale_value: must be a number, not \"0.07\""},
      {with("0.07216878", "0.0721"),
       "scales.sm_scale_value: 0.0721 contradicts the bits of sm_scale, which are 0.07216878"},
      // out of range
      {with(R"("heads": 16)", R"("heads": 129)"), "shape.heads: 129 is outside 1..128"},
      {with(R"("heads": 16)", R"("heads": 0)"), "shape.heads: 0 is outside 1..128"},
      {with(R"("page_size": 16)", R"("page_size": 1025)"), "shape.page_size: 1025 is outside 1..1024"},
      {with(R"("num_splits": 2)", R"("num_splits": 33)"), "shape.num_splits: 33 is outside 1..32"},
      {with(R"("q_len": 3)", R"("q_len": 17)"), "shape.requests[0].q_len: 17 is outside 0..16"},
      {with(R"("kv_len": 37)", R"("kv_len": -1)"), "shape.requests[0].kv_len: -1 is outside 0..131072"},
      {least(R"({"requests": []})"), "shape.requests: 0 entries, outside 1..512"},
      {least(R"({"requests": [{"q_len": 0, "kv_len": 9}]})"),
       "shape.requests: every q_len is 0; at least one request needs a query"},
      {with("\"sm_scale\": \"0x3d93cd3a\",\n    \"sm_scale_value\": 0.07216878",
            R"("sm_scale": "0x7fc00000")"),
       "scales.sm_scale: nan is outside 0.0009765625..8"},
      {with("\"kv_scale\": \"0x3ebd70a4\",\n    \"kv_scale_value\": 0.37", R"("kv_scale": "0x00000000")"),
       "scales.kv_scale: 0 is outside 0.0078125..128"},
      {with(R"("page_padding_bytes": 0)", R"("page_padding_bytes": 24)"),
       "memory.page_padding_bytes: 24 is not a multiple of 16"},
      {with(R"("page_padding_bytes": 0)", R"("page_padding_bytes": 65552)"),
       "memory.page_padding_bytes: 65552 is outside 0..65536"},
      {with(R"("guard_bytes": 4096)", R"("guard_bytes": 0)"), "memory.guard_bytes: 0 is outside 256..65536"},
      {with(R"("guard_bytes": 4096)", R"("guard_bytes": 300)"),
       "memory.guard_bytes: 300 is not a multiple of 256"},
      // contradictions
      {with(R"("kv": "fp8_e4m3fnuz")", R"("kv": "fp8_e5m2")"),
       "formats.kv: mla_decode takes bf16 or fp8_e4m3fnuz, not fp8_e5m2"},
      {with(R"("out": "bf16")", R"("out": "f32")"), "formats.out: mla_decode writes bf16, not f32"},
      {with(R"("q": "bf16", "kv": "fp8_e4m3fnuz")", R"("q": "fp8_e4m3fnuz", "kv": "bf16")"),
       "formats.q: fp8_e4m3fnuz needs formats.kv to be fp8_e4m3fnuz too"},
      {with("\"q_scale\": \"0x3f800000\",\n    \"q_scale_value\": 1", R"("q_scale": "0x40000000")"),
       "scales.q_scale: 2 with formats.q bf16, which has no scale; use 1"},
      {with(R"("kv": "fp8_e4m3fnuz")", R"("kv": "bf16")"),
       "scales.kv_scale: 0.37 with formats.kv bf16, which has no scale; use 1"},
      {with(R"("fill": "needle")", R"("fill": "exact")"),
       "scales.kv_scale: data.fill exact needs a power of two, not 0.37"},
      {with(R"("fill": "needle")", R"("fill": "constant_scores")"),
       "scales.kv_scale: data.fill constant_scores needs a power of two, not 0.37"},
      {least(one_request, R"(, "formats": {"q": "fp8_e4m3fnuz", "kv": "fp8_e4m3fnuz"}, "data": {"fill":
             "deep_offset"}, "scales": {"sm_scale": "0x3a800000", "q_scale": "0x3d800000", "kv_scale":
             "0x3d800000"})"),
       "scales: with sm_scale * q_scale * kv_scale = 3.814697265625e-06 an fp8 q cannot reach the scores of "
       "data.fill deep_offset"},
      {least(R"({"page_size": 1024, "requests": [{"q_len": 1, "kv_len": 5}]})",
             R"(, "memory": {"placement": "high"})"),
       "memory.placement: high with pages of 1179648 bytes addresses 72 GiB, more than 16; smaller pages"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(message_of(row.text) == row.message);
  }

  Case big = full_case();
  std::get<MlaDecode>(big.problem).requests.assign(100, {1, 131072});
  CHECK_THROWS_WITH(validate(big),
                    "shape.requests: the cache takes 7200 MiB, more than 4096; fewer or shorter requests");
}

TEST_CASE("Nesting, long values and invalid UTF-8 do no harm") {
  CHECK(message_of(std::string(100000, '[')) == "line 1, column 100001: not valid JSON");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(message_of(with(R"({"fill": "needle"})", deep)) == "data: must be an object, not an array");
  CHECK(message_of(with(R"("unused": "nan")", "\"unused\": \"" + std::string(1000, 'x') + '"')) ==
        "memory.unused: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... is none of nan, inf, large, stale, zero");
  CHECK(message_of("{\"seed\": \"\xff\"}") == "line 1, column 11: not valid JSON");
}

}  // namespace attest::cases
