// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "fuzz/progress.h"
#include "fuzz/selection.h"
#include "fuzz/shrink.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {

int verb_shrink(const Common& common, const ShrinkOptions& options) {
  if (!options.kernel.empty()) select_kernel(options.kernel, common);
  const Reproduction r =
      select_case(options.file, options.kernel.empty() ? only_worker_kernel(common) : options.kernel);
  const cases::Case start = r.original ? *r.original : r.c;
  const std::string name = options.kernel.empty() ? kernel_of(r, common) : options.kernel;
  select_kernel(name, common);
  PoolOptions workers = pool_options(common, options.jobs, 600);
  workers.detectors = select_detectors(options.detectors.empty() ? r.detectors : options.detectors, common);
  workers.schedule = select_schedule(options.schedule.empty() ? r.schedule : options.schedule, common);
  Pool pool(std::move(workers));

  std::optional<Evaluation> first;
  bool asked = false;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (std::exchange(asked, true)) return std::nullopt;
        return Pool::Task{name, start};
      },
      [&](std::size_t, Evaluation e) {
        first = std::move(e);
        return true;
      });
  const std::string signature = signature_of(name, start, first->verdict);
  if (signature.empty()) {
    fmt::print(stderr, "attest: {} does not fail on {}: the verdict is {}{}{}\n", name, options.file,
               oracle::name(first->verdict.kind), first->verdict.detail.empty() ? "" : ", ",
               first->verdict.detail);
    return exit_nothing_tested;
  }

  Progress progress(common.quiet);
  const ShrinkResult small =
      shrink(pool, name, signature, start, *first, options.budget, [&](const ShrinkResult& best) {
        progress.update(fmt::format("shrinking: {} tried, {} taken", best.evaluations, best.steps));
      });
  progress.say(fmt::format("{}: {} candidates tried, {} taken{}", signature, small.evaluations, small.steps,
                           small.minimal ? ", nothing smaller fails" : ", budget spent"));
  const std::string text = common.json ? Json{{"schema", record_schema},  {"signature", signature},
                                              {"kernel", name},           {"evaluations", small.evaluations},
                                              {"minimal", small.minimal}, {"case", to_json(small.c)}}
                                                 .dump(2) +
                                             "\n"
                                       : cases::pretty_json(small.c);
  if (options.out.empty()) {
    std::cout << text;
    return exit_ok;
  }
  std::ofstream file(options.out, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UsageError(fmt::format("{}: cannot be written; choose another --out", options.out));
  return exit_ok;
}

}  // namespace attest::fuzz
