// SPDX-License-Identifier: MIT
#include "fuzz/explain/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "fuzz/explain/buffer_place.h"

namespace attest::fuzz {
namespace {

/// Bits, and the number they are as f32 where that is one of everyday size.
std::string value_of(const Json& bits) {
  if (bits.is_null()) return "?";
  const auto word = bits.get<std::uint32_t>();
  const int exponent = static_cast<int>(word >> 23 & 0xff);
  const bool everyday = exponent > 127 - 40 && exponent < 127 + 40;
  return everyday ? fmt::format("{:#010x} {:.6g}", word, std::bit_cast<float>(word))
                  : fmt::format("{:#010x}", word);
}

std::string link_line(const cases::Case& c, const cases::Inputs& inputs, const Json& link) {
  std::string text = fmt::format("{:#06x} ", link.at("pc").get<std::uint64_t>());
  if (link.contains("times"))
    text += fmt::format("{:>6}  ", fmt::format("x{}", link.at("times").get<std::uint64_t>()));
  text += fmt::format("{:<58} {:>6} = {}", link.at("disassembly").get<std::string>(),
                      link.at("register").get<std::string>(), value_of(link.at("value")));
  if (link.contains("sources")) {
    std::string sources;
    for (const Json& source : link.at("sources"))
      sources += fmt::format("{}{} {}", sources.empty() ? "" : ", ", source.at("register").get<std::string>(),
                             value_of(source.at("value")));
    text += fmt::format("   of {}", sources);
  }
  if (link.contains("memory")) {
    const auto buffer = link.at("memory").at("buffer").get<std::string>();
    const auto offset = link.at("memory").at("offset").get<std::uint64_t>();
    const std::string terms = in_contract_terms(c, inputs, buffer, offset, 1);
    text += fmt::format("   {} byte {}{}", buffer, offset, terms.empty() ? "" : " (" + terms + ")");
  }
  if (link.value("role", "value") == "address") text += "   [address]";
  return text;
}

bool reads_memory(const Json& link, const Json& answer) {
  return std::any_of(answer.at("loads").begin(), answer.at("loads").end(),
                     [&](const Json& load) { return load.at("pc") == link.at("pc"); });
}

using Reads = std::map<std::pair<std::string, std::string>, std::vector<BufferRange>>;  ///< (role, buffer)

Reads reads_of(const Json& answer) {
  Reads reads;
  for (const Json& read : answer.at("reads"))
    reads[{read.at("role").get<std::string>() == "value" ? "value" : "where to look",
           read.at("buffer").get<std::string>()}]
        .push_back({read.at("offset").get<std::uint64_t>(), read.at("bytes").get<std::uint64_t>()});
  return reads;
}

}  // namespace

std::vector<std::string> origin_lines(const cases::Case& c, const cases::Inputs& inputs, const Json& answer,
                                      std::size_t most) {
  const Json& producer = answer.at("producer");
  const Json& chain = answer.at("chain");
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} bytes {} to {}, stored {} time{}, last by", answer.at("buffer").get<std::string>(),
      answer.at("offset").get<std::uint64_t>(),
      answer.at("offset").get<std::uint64_t>() + answer.at("bytes").get<std::uint64_t>() - 1,
      answer.at("times_written").get<std::uint64_t>(), answer.at("times_written") == 1 ? "" : "s"));
  lines.push_back(fmt::format("launch {} {}, workgroup {}, wave {}, lane {}, instruction {} of the wave",
                              producer.at("launch").get<std::uint32_t>(),
                              producer.at("kernel").get<std::string>(), producer.at("workgroup").dump(),
                              producer.at("wave").get<int>(), producer.at("lane").get<int>(),
                              producer.at("number").get<std::uint64_t>()));
  lines.push_back(fmt::format(
      "made by {} executions of {} instructions, of {} recorded{}; each at its latest, latest first",
      answer.at("executions").get<std::uint64_t>(), answer.at("links").get<std::size_t>(),
      answer.at("recorded").get<std::uint64_t>(),
      answer.at("cut").get<bool>() ? " (older ones were forgotten)" : ""));

  const Reads reads = reads_of(answer);
  std::vector<std::string> read_lines;
  constexpr std::size_t least_of_values = 6;  // what it was made of says more than where that was looked up
  const std::size_t per_buffer = std::max<std::size_t>(2, most / 3 / std::max<std::size_t>(1, reads.size()));
  for (const auto* role : {"value", "where to look"})
    for (const auto& [key, ranges] : reads) {
      if (key.first != role) continue;
      std::uint64_t bytes = 0;
      for (const BufferRange& range : ranges) bytes += range.bytes;
      read_lines.push_back(fmt::format("read from {} ({}): {} bytes", key.second, key.first, bytes));
      const std::size_t most_here =
          key.first == "value" && ranges.size() > 1 ? std::max(per_buffer, least_of_values) : per_buffer;
      for (const std::string& line : describe_ranges(c, inputs, key.second, ranges, most_here))
        read_lines.push_back("  " + line);
    }

  // The store and what comes before it, then every load that brought something from memory.
  const std::size_t rest = lines.size() + read_lines.size();
  const std::size_t room = most > rest + 8 ? most - rest : 8;
  std::vector<const Json*> shown, loads;
  const auto also_a_value = [&](const Json& link) {
    return link.at("role") == "address" && std::any_of(chain.begin(), chain.end(), [&](const Json& other) {
             return other.at("role") == "value" && other.at("pc") == link.at("pc");
           });
  };
  for (const Json& link : chain)
    if (!also_a_value(link)) (reads_memory(link, answer) ? loads : shown).push_back(&link);
  const std::size_t loads_shown = std::min(loads.size(), room / 3);
  const std::size_t others = std::min(shown.size(), room - loads_shown);
  for (std::size_t k = 0; k < others; ++k) lines.push_back(link_line(c, inputs, *shown[k]));
  if (others < shown.size()) lines.push_back(fmt::format("... and {} more", shown.size() - others));
  if (loads_shown > 0) lines.emplace_back("loads among them");
  for (std::size_t k = 0; k < loads_shown; ++k) lines.push_back(link_line(c, inputs, *loads[k]));
  if (loads_shown < loads.size()) lines.push_back(fmt::format("... and {} more", loads.size() - loads_shown));
  lines.insert(lines.end(), read_lines.begin(), read_lines.end());

  if (answer.contains("window")) {
    lines.emplace_back("instructions of the wave around the store, in order");
    for (const Json& link : answer.at("window"))
      lines.push_back(fmt::format("{:>8}{} {}", link.at("number").get<std::uint64_t>(),
                                  link.at("number") == producer.at("number") ? ">" : " ",
                                  link_line(c, inputs, link)));
  }
  return lines;
}

Json reads_in_contract_terms(const cases::Case& c, const cases::Inputs& inputs, const Json& answer) {
  Json json = Json::object();
  for (const auto& [key, ranges] : reads_of(answer))
    json[key.second][key.first == "value" ? "value" : "address"] =
        describe_ranges(c, inputs, key.second, ranges, 100000);
  return json;
}

}  // namespace attest::fuzz
