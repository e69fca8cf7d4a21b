// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <stdexcept>

#include "fuzz/exchange/capture.h"
#include "fuzz/exchange/scratch_folder.h"
#include "fuzz/exchange/worker_option.h"
#include "fuzz/progress.h"
#include "fuzz/selection.h"
#include "fuzz/shrink.h"
#include "fuzz/verbs.h"
#include "fuzz/verdict_lines.h"
#include "oracle/judge.h"

namespace attest::fuzz {
namespace {

using exchange::Capture;

/// One case on one kernel; @param capture whose bytes, empty: the case's own
Evaluation evaluate_once(Pool& pool, const std::string& kernel, const cases::Case& c,
                         const std::string& capture = "") {
  std::optional<Evaluation> result;
  bool asked = false;
  pool.run(
      [&]() -> std::optional<Pool::Task> {
        if (std::exchange(asked, true)) return std::nullopt;
        return Pool::Task{.kernel = kernel, .c = c, .capture = capture};
      },
      [&](std::size_t, Evaluation e) {
        result = std::move(e);
        return true;
      });
  return std::move(*result);
}

struct SmallCall {
  Capture capture;
  Evaluation evaluation;
  std::uint64_t evaluations = 0;
};

/// The call itself, made smaller while it fails with the same signature.
SmallCall shrink_call(Pool& pool, const std::string& kernel, const std::string& signature, SmallCall best,
                      std::uint64_t budget, Progress& progress) {
  const exchange::ScratchFolder folder;
  const std::string file = folder.file("call.safetensors");
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (Capture& candidate : exchange::smaller_captures(best.capture)) {
      if (best.evaluations == budget) return best;
      ++best.evaluations;
      exchange::write_capture(candidate, file);
      Evaluation e = evaluate_once(pool, kernel, candidate.call, file);
      progress.update(fmt::format("shrinking the call: {} tried", best.evaluations));
      if (signature_of(kernel, candidate.call, e.verdict) != signature) continue;
      best.capture = std::move(candidate);
      best.evaluation = std::move(e);
      smaller = true;
      break;
    }
  }
  return best;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UsageError(fmt::format("{}: cannot be written; choose another --out", path));
}

/// The exit code of several verdicts: a failure before an error of attest, and that before nothing.
int exit_of_all(const std::vector<oracle::Verdict>& verdicts) {
  int code = exit_nothing_tested;
  for (const auto& verdict : verdicts) {
    const int one = exit_of(verdict);
    if (one == exit_verdict) return one;
    if (one == exit_harness || (one == exit_ok && code == exit_nothing_tested)) code = one;
  }
  return code;
}

const oracle::PrecisionProfile& profile_of(const std::string& name) {
  try {
    return oracle::profile(name);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--precision: {}", error.what()));
  }
}

}  // namespace

int verb_capture(const Common& common, const CaptureOptions& options) {
  const oracle::PrecisionProfile& profile = profile_of(options.precision);
  const std::string kernel = options.kernel.empty() ? only_worker_kernel(common) : options.kernel;
  if (kernel.empty() && !common.worker.empty())
    throw UsageError("the worker has several kernels; name one with --kernel");
  if (kernel.empty() && !options.small.empty())
    throw UsageError(
        "--small: a part of the call that fails needs a kernel to fail on; name it with --kernel");
  if (!kernel.empty()) select_kernel(kernel, common);
  const Capture capture = exchange::read_capture(options.dump);
  cases::Case like = exchange::case_like(capture);

  Json json = {{"schema", record_schema}, {"dump", options.dump}};
  std::vector<oracle::Verdict> verdicts;
  const auto say = [&](const char* key, const std::string& what, const oracle::Verdict& verdict) {
    verdicts.push_back(verdict);
    json[key] = to_json(verdict);
    if (common.json) return;
    fmt::print("{}  {}\n", oracle::name(verdict.kind), what);
    print_verdict(verdict);
  };
  if (capture.outputs)
    say("returned", "what the call returned",
        oracle::judge(capture.call, capture.inputs, *capture.outputs, profile));

  if (!kernel.empty()) {
    json["kernel"] = kernel;
    Pool pool(pool_options(common, 1, options.deadline_seconds));
    Progress progress(common.quiet);
    const Evaluation again = evaluate_once(pool, kernel, capture.call, options.dump);
    say("again", kernel + " on the data of the call", again.verdict);
    const Evaluation made = evaluate_once(pool, kernel, like);
    say("made", kernel + " on a case like the call", made.verdict);
    const std::string of_call = signature_of(kernel, capture.call, again.verdict);
    const std::string of_case = signature_of(kernel, like, made.verdict);
    if (!of_case.empty()) {
      const ShrinkResult small = shrink(pool, kernel, of_case, like, made, options.budget);
      like = small.c;
      say("smallest", fmt::format("the case made small ({} tried)", small.evaluations),
          small.evaluation.verdict);
    }
    if (!of_call.empty() && (of_case.empty() || !options.small.empty())) {
      const SmallCall small = shrink_call(pool, kernel, of_call, {.capture = capture, .evaluation = again},
                                          options.budget, progress);
      say("smallest_call", fmt::format("the call made small ({} tried)", small.evaluations),
          small.evaluation.verdict);
      if (!options.small.empty()) exchange::write_capture(small.capture, options.small);
    }
  }

  json["case"] = to_json(like);
  if (!options.out.empty()) write_text(options.out, cases::pretty_json(like));
  if (common.json) {
    std::cout << json.dump(2) << "\n";
  } else if (options.out.empty()) {
    std::cout << cases::pretty_json(like);
  } else {
    fmt::print("case in {}; attest replay {}{}{}\n", options.out, options.out,
               kernel.empty() ? "" : " --kernel " + kernel, exchange::worker_option(common.worker));
  }
  if (verdicts.empty())
    fmt::print(stderr, "attest: nothing was judged: the dump holds no 'out', and no kernel was named\n");
  return exit_of_all(verdicts);
}

}  // namespace attest::fuzz
