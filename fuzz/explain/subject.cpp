// SPDX-License-Identifier: MIT
#include "fuzz/explain/subject.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "fuzz/pool.h"
#include "fuzz/selection.h"

namespace attest::fuzz {

Subject select_subject(const SubjectOptions& options, const Common& common) {
  if (!options.kernel.empty()) select_kernel(options.kernel, common);
  const Reproduction r = select_case(options.file, options.kernel);
  if (options.original && !r.original)
    throw UsageError(fmt::format("{}: --original needs a failure file, this is a plain case", options.file));
  Subject s;
  s.word = options.file;
  const std::string name = options.kernel.empty() ? kernel_of(r, common) : options.kernel;
  s.kernel = &select_kernel(name, common);
  s.c = options.original ? *r.original : r.c;
  s.detectors = select_detectors(options.detectors.empty() ? r.detectors : options.detectors, common);
  s.schedule = select_schedule(options.schedule.empty() ? r.schedule : options.schedule, common);
  if (name == r.kernel && !options.original) {
    s.signature = r.signature;
    s.output_digest = r.output_digest;
  }
  return s;
}

Evaluation evaluate_isolated(const Subject& subject, const Common& common, std::uint64_t deadline_seconds) {
  Pool pool(pool_options(common, 1, deadline_seconds));
  Evaluation evaluation;
  bool asked = false;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (std::exchange(asked, true)) return std::nullopt;
        return Pool::Task{subject.kernel->name(), subject.c, subject.detectors, subject.schedule};
      },
      [&](std::size_t, Evaluation e) {
        evaluation = std::move(e);
        return true;
      });
  return evaluation;
}

}  // namespace attest::fuzz
