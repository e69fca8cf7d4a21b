// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "fuzz/exchange/description.h"
#include "fuzz/selection.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

int verb_export(const Common& common, const ExportOptions& options) {
  using namespace exchange;
  const Reproduction r = select_case(options.file, options.kernel);
  const cases::Inputs inputs = cases::materialise(r.c);
  const Description d = describe(r.c, inputs);
  write_safetensors(options.out, d.metadata, d.inputs);
  if (common.json) {
    Json in = Json::object(), out = Json::object();
    for (const TensorSource& t : d.inputs) in[t.name] = {{"dtype", name(t.dtype)}, {"shape", t.shape}};
    for (const OutputTensor& t : d.outputs) out[t.name] = {{"dtype", name(t.dtype)}, {"shape", t.shape}};
    std::cout << Json{{"schema", record_schema}, {"file", options.out},     {"id", cases::case_id(r.c)},
                      {"case", to_json(r.c)},    {"inputs", std::move(in)}, {"outputs", std::move(out)}}
                     .dump(2)
              << "\n";
    return exit_ok;
  }
  fmt::print("{}  {}\n", options.out, cases::op_name(r.c.problem));
  const auto line = [](const char* what, const std::string& tensor, Dtype dtype, const Shape& shape) {
    fmt::print("  {:<8} {:<28} {:<12} {}\n", what, tensor, name(dtype), shown(shape));
  };
  for (const TensorSource& t : d.inputs) line("input", t.name, t.dtype, t.shape);
  for (const OutputTensor& t : d.outputs) line("wanted", t.name, t.dtype, t.shape);
  fmt::print("  check     attest check {} OUTPUTS.safetensors\n", options.out);
  return exit_ok;
}

}  // namespace attest::fuzz
