// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/asm_table.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "device/kernel.h"

namespace attest::device::aiter {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    std::string_view field = line.substr(begin, end - begin);
    while (!field.empty() && (field.back() == '\r' || field.back() == ' ')) field.remove_suffix(1);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    fields.emplace_back(field);
    begin = end + 1;
  }
  return fields;
}

class Fields {
 public:
  Fields(const std::map<std::string, std::size_t>& columns, const std::vector<std::string>& values,
         std::string where)
      : columns_(columns), values_(values), where_(std::move(where)) {}

  [[nodiscard]] const std::string& text(const char* column) const {
    const auto it = columns_.find(column);
    if (it == columns_.end())
      throw DeviceError(fmt::format("{}: the table has no column {}", where_, column));
    if (it->second >= values_.size())
      throw DeviceError(fmt::format("{}: no value for column {}", where_, column));
    return values_[it->second];
  }

  [[nodiscard]] std::string text_if_any(const char* column) const {
    return columns_.contains(column) ? text(column) : "";
  }

  [[nodiscard]] int number(const char* column) const {
    const std::string& value = text(column);
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size() || result < 0)
      throw DeviceError(fmt::format("{}: column {} holds '{}', not a count", where_, column, value));
    return result;
  }

 private:
  const std::map<std::string, std::size_t>& columns_;
  const std::vector<std::string>& values_;
  std::string where_;
};

}  // namespace

std::string AsmRow::base_name() const {
  // _ZN5aiter<length><name>E
  std::string_view name = symbol;
  constexpr std::string_view prefix = "_ZN5aiter";
  if (name.starts_with(prefix) && name.ends_with('E')) {
    name.remove_prefix(prefix.size());
    name.remove_suffix(1);
    while (!name.empty() && name.front() >= '0' && name.front() <= '9') name.remove_prefix(1);
  }
  return std::string(name);
}

std::vector<AsmRow> parse_asm_table(std::string_view csv, const std::string& file_name) {
  std::map<std::string, std::size_t> columns;
  std::vector<AsmRow> rows;
  int line_number = 0;
  for (std::size_t begin = 0; begin < csv.size();) {
    const std::size_t end = std::min(csv.find('\n', begin), csv.size());
    const std::string_view line = csv.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const std::vector<std::string> values = split(line);
    if (values.size() == 1 && values[0].empty()) continue;
    if (columns.empty()) {
      for (std::size_t i = 0; i < values.size(); ++i) columns[values[i]] = i;
      continue;
    }
    const Fields fields(columns, values, fmt::format("{}:{}", file_name, line_number));
    AsmRow row;
    row.q_type = fields.text("qType");
    row.kv_type = fields.text("kvType");
    row.gqa = fields.number("Gqa");
    row.persistent = fields.number("ps") != 0;
    row.q_len = fields.number("qSeqLen");
    row.prefill = fields.number("prefill") != 0;
    row.causal = fields.number("causal") != 0;
    row.lse = fields.number("lse") != 0;
    row.symbol = fields.text("knl_name");
    row.object = fields.text("co_name");
    row.fault = fields.text_if_any("fault");
    row.imitates = fields.text_if_any("imitates");
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw DeviceError(fmt::format("{}: holds no kernel", file_name));
  return rows;
}

std::vector<AsmRow> read_asm_table(const std::filesystem::path& hsa, const std::string& arch) {
  const std::filesystem::path file = hsa / arch / "mla" / "mla_asm.csv";
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw DeviceError(fmt::format(
        "{}: cannot be opened; --aiter-hsa wants the hsa folder of an AITER checkout", file.string()));
  std::ostringstream text;
  text << stream.rdbuf();
  return parse_asm_table(std::move(text).str(), file.string());
}

}  // namespace attest::device::aiter
