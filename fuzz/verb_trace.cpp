// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "cases/inputs.h"
#include "device/contracts/aiter/aiter_kernels.h"
#include "device/hip/device.h"
#include "fuzz/explain/buffer_place.h"
#include "fuzz/explain/origin.h"
#include "fuzz/explain/subject.h"
#include "fuzz/record.h"
#include "fuzz/usage_error.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

using device::hip::BufferBytes;
constexpr std::size_t most_generations = 3, most_parents = 2;
constexpr int most_splits = 8;
constexpr std::uint64_t latent_columns = 512;

/// What is to be traced: bytes, and the words for them.
struct Target {
  BufferBytes bytes;
  std::string words;
  std::optional<ElementPlace> element;
};

Target target_of(const TraceOptions& options, const Subject& s, const cases::Inputs& inputs,
                 const Common& common) {
  if (!options.buffer.empty())
    return {
        {options.buffer, options.offset, options.bytes},
        fmt::format("{} bytes {} to {}", options.buffer, options.offset, options.offset + options.bytes - 1),
        std::nullopt};
  std::string words;
  ElementPlace place;
  if (!options.element.empty()) {
    if (options.element.size() != 4)
      throw UsageError("--element takes REQUEST,POSITION,HEAD,COLUMN; column -1 is the lse");
    place = {options.element[0], options.element[1], options.element[2], options.element[3]};
  } else {
    const Evaluation e = evaluate_isolated(s, common, options.deadline_seconds);
    if (e.verdict.worst.empty())
      throw UsageError(fmt::format(
          "{}: the verdict is {}, with no wrong element to begin from{}; name one with "
          "--element REQUEST,POSITION,HEAD,COLUMN",
          s.word, oracle::name(e.verdict.kind),
          e.verdict.kind == oracle::VerdictKind::crash || e.verdict.kind == oracle::VerdictKind::timeout
              ? " (attest explain shows the fault)"
              : ""));
    const oracle::Element& worst = e.verdict.worst.front();
    place = {worst.request, worst.position, worst.head, worst.column};
    words = fmt::format(": {:.9g}, expected {:.9g} within {:.3g}", worst.got, worst.expected, worst.bound);
  }
  const auto bytes = bytes_of_element(s.c, inputs, place);
  if (!bytes)
    throw UsageError(
        fmt::format("results of {} are not found by coordinates; name bytes with --buffer NAME --offset N",
                    cases::op_name(s.c.problem)));
  return {*bytes, in_words(s.c, place) + words, place};
}

class Tracer {
 public:
  Tracer(const Subject& s, const cases::Inputs& inputs, std::uint32_t window)
      : s_(s), inputs_(inputs), window_(window), device_(device::open_device("sim", 0)) {
    device_->choose_schedule(s.schedule);
  }

  Json ask(const BufferBytes& bytes) {
    const std::string text = device::hip::hip_device(*device_).follow(bytes, window_, [&] {
      const device::Outcome outcome = s_.kernel->run(*device_, s_.c, inputs_);
      fault_ = outcome.status == device::Status::ok ? "" : outcome.diagnosis + ": " + outcome.detail;
    });
    Json answer = Json::parse(text);
    if (answer.at("found").get<bool>()) answer["terms"] = reads_in_contract_terms(s_.c, inputs_, answer);
    return answer;
  }

  /// Of the last run; empty when all its launches ended.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// The answer, and those about what an earlier launch left for it.
  std::vector<Json> ask_back(const BufferBytes& bytes) {
    std::vector<Json> answers{ask(bytes)};
    for (std::size_t k = 0; k < answers.size() && answers.size() < most_generations; ++k) {
      if (!answers[k].at("found").get<bool>()) continue;
      const auto launch = answers[k].at("producer").at("launch").get<std::uint32_t>();
      std::size_t parents = 0;
      const Json reads = answers[k].at("reads");
      for (const Json& read : reads) {
        if (read.at("role") != "value" || !read.contains("stored_in") || parents == most_parents) continue;
        if (read.at("stored_in").front().get<std::uint32_t>() >= launch) continue;
        ++parents;
        const BufferBytes from{read.at("buffer").get<std::string>(), read.at("offset").get<std::uint64_t>(),
                               std::min<std::uint64_t>(4, read.at("bytes").get<std::uint64_t>()), launch};
        answers.push_back(ask(from));
      }
    }
    return answers;
  }

 private:
  const Subject& s_;
  const cases::Inputs& inputs_;
  std::uint32_t window_;
  std::unique_ptr<device::Device> device_;
  std::string fault_;
};

/// Of a persistent kernel of AITER's; nullopt for others.
std::optional<std::vector<device::aiter::PlannedPart>> parts_of_plan(const Subject& s,
                                                                     const cases::Inputs& inputs,
                                                                     const ElementPlace& e) {
  const auto* in = std::get_if<cases::MlaDecodeInputs>(&inputs);
  if (in == nullptr) return std::nullopt;
  const std::int64_t token = in->qo_indptr[static_cast<std::size_t>(e.request)] + e.position;
  return device::aiter::planned_parts(*s.kernel, s.c, inputs, token, e.head);
}

BufferBytes bytes_of_part(const device::aiter::PlannedPart& part, int column) {
  const auto row = static_cast<std::uint64_t>(part.row);
  if (column < 0) return {part.final ? "lse" : "splitLse", row * 4, 4};
  const std::uint64_t size = part.final ? 2 : 4;
  return {part.final ? "out" : "splitData",
          (row * latent_columns + static_cast<std::uint64_t>(column)) * size, size};
}

}  // namespace

int verb_trace(const Common& common, const TraceOptions& options) {
  if (common.device != "sim")
    throw UsageError("only the simulator sees how a value comes about; use --device sim");
  const Subject s = select_subject(options.subject, common);
  if (const auto why = s.kernel->refuses(s.c))
    throw UsageError(fmt::format("{}: {} does not take it: {}", s.word, s.kernel->name(), *why));
  const cases::Inputs inputs = cases::materialise(s.c);
  Target target = target_of(options, s, inputs, common);
  Tracer tracer(s, inputs, options.window);
  std::string remark;
  const auto planned = target.element ? parts_of_plan(s, inputs, *target.element) : std::nullopt;
  std::vector<Json> answers;
  if (!planned) answers = tracer.ask_back(target.bytes);
  if (planned) {
    remark = planned->empty()
                 ? "no work of the plan has this row"
                 : fmt::format("the plan gives this row to {} of its works{}", planned->size(),
                               planned->size() > most_splits ? ", of which these are the first" : "");
    for (std::size_t k = 0; k < std::min<std::size_t>(planned->size(), most_splits); ++k) {
      const device::aiter::PlannedPart& part = (*planned)[k];
      answers.push_back(tracer.ask(bytes_of_part(part, target.element->column)));
      answers.back()["part"] = fmt::format("work {}, workgroup {}, entries {} to {} of kv_page_indices, {}",
                                           part.work, part.workgroup, part.kv_start, part.kv_end - 1,
                                           part.final ? "stored to out" : "reduced by the host");
    }
  } else if (!answers.front().at("found").get<bool>() && target.element && s.kernel->contract() == "aiter") {
    // Any of them may be what spoils the merge, and one that nobody wrote most of all.
    std::vector<Json> of_splits;
    for (int split = 0; split < most_splits; ++split)
      if (const auto partial = bytes_of_partial(s.c, inputs, *target.element, split)) {
        of_splits.push_back(tracer.ask(*partial));
        of_splits.back()["split"] = split;
      }
    if (!of_splits.empty()) {
      remark = fmt::format(
          "the host merges the splits of this kernel; this is the element of {}",
          of_splits.size() == 1 ? std::string("its only one") : fmt::format("each of {}", of_splits.size()));
      answers = std::move(of_splits);
    }
  }

  if (!tracer.fault().empty())
    remark += fmt::format("{}the kernel did not end, {}", remark.empty() ? "" : "; ", tracer.fault());

  if (common.json) {
    Json json = {{"schema", record_schema},   {"word", s.word},       {"kernel", s.kernel->name()},
                 {"id", cases::case_id(s.c)}, {"case", to_json(s.c)}, {"target", target.words},
                 {"answers", answers}};
    if (!remark.empty()) json["remark"] = remark;
    std::cout << json.dump(2) << "\n";
    return exit_ok;
  }
  fmt::print("trace  {}  {}\n  {}\n", s.kernel->name(), s.word, target.words);
  if (!remark.empty()) fmt::print("  {}\n", remark);
  std::size_t left = options.lines;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const Json& answer = answers[k];
    if (answer.contains("part")) fmt::print("  {}\n", answer.at("part").get<std::string>());
    if (answer.contains("split")) fmt::print("  split {}\n", answer.at("split").get<int>());
    if (!answer.at("found").get<bool>()) {
      fmt::print("  {} bytes {} to {}: never written by any launch\n", answer.at("buffer").get<std::string>(),
                 answer.at("offset").get<std::uint64_t>(),
                 answer.at("offset").get<std::uint64_t>() + answer.at("bytes").get<std::uint64_t>() - 1);
      continue;
    }
    const std::size_t share = left / (answers.size() - k);
    left -= share;
    for (const std::string& line : origin_lines(s.c, inputs, answer, share)) fmt::print("  {}\n", line);
  }
  return exit_ok;
}

}  // namespace attest::fuzz
