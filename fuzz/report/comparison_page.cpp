// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "fuzz/report/charts.h"
#include "fuzz/report/comparison.h"
#include "fuzz/report/document.h"

namespace attest::fuzz::report {
namespace {

constexpr std::size_t most_rows = 100;
constexpr std::size_t most_charts = 60;

Headline headline(const Comparison& c) {
  Headline h;
  std::vector<std::string> what;
  if (!c.fresh.empty()) what.push_back(counted(c.fresh.size(), "new finding"));
  if (c.drifted() > 0) what.push_back("accuracy lost in " + counted(c.drifted(), "kernel"));
  if (c.worse_verdicts() > 0)
    what.push_back(counted(c.worse_verdicts(), "verdict got worse", "verdicts got worse"));
  if (c.no_more_tested() > 0)
    what.push_back(counted(c.no_more_tested(), "kernel no more tested", "kernels no more tested"));
  h.mood = what.empty() ? Headline::Mood::good : Headline::Mood::bad;
  for (const std::string& part : what) h.words += (h.words.empty() ? "" : ", ") + part;
  if (what.empty()) h.words = "No drift, no new finding";
  if (h.words.front() == 'a') h.words.front() = 'A';
  h.below = html("<p>{} compared, {} the same in both runs{}.</p>", counted(c.kernels.size(), "kernel"),
                 counted(c.same_cases, "case"),
                 c.same_cases == 0 ? ": other seeds, so distributions are compared" : "");
  return h;
}

Html finding_rows(const std::vector<const FindingNumbers*>& findings) {
  Html rows;
  for (std::size_t i = 0; i < std::min(findings.size(), most_rows); ++i) {
    const FindingNumbers& f = *findings[i];
    rows += html(
        R"(<tr><td><span class="badge {}">{}</span></td><td><code>{}</code></td><td>{}</td><td class="num">{}</td><td><code>{}</code></td></tr>)",
        verdict_class(f.kind), f.kind, f.kernel, f.diagnosis, grouped(f.count), f.reproduce);
  }
  Html all =
      table(html(R"(<th></th><th>kernel</th><th>diagnosis</th><th class="num">cases</th><th>reproduce</th>)"),
            rows);
  if (findings.size() > most_rows) all += html("<p>and {} more</p>", findings.size() - most_rows);
  return all;
}

Html findings(const Comparison& c) {
  Html all;
  all += html("<h4>New</h4>");
  all += c.fresh.empty() ? html("<p>None.</p>") : finding_rows(c.fresh);
  if (!c.vanished.empty())
    all += html("<h4>Not met again{}</h4>{}", c.same_cases == 0 ? " (other cases: by chance, perhaps)" : "",
                finding_rows(c.vanished));
  if (!c.still.empty())
    all += html("<details><summary>{} in both</summary>{}</details>", counted(c.still.size(), "finding"),
                finding_rows(c.still));
  return section("findings", "Findings", all);
}

Html changes(const Comparison& c) {
  if (c.same_cases == 0) return {};
  if (c.changes.empty())
    return section("verdicts", "Verdicts of the same cases",
                   html("<p>All {} as before.</p>", grouped(c.same_cases)));
  Html counts;
  for (const auto& [kinds, count] : c.change_counts)
    counts += html(
        R"(<span class="key"><span class="badge {}">{}</span>&#8594; <span class="badge {}">{}</span> {}</span>)",
        verdict_class(kinds.first), kinds.first, verdict_class(kinds.second), kinds.second, grouped(count));
  Html rows;
  for (std::size_t i = 0; i < std::min(c.changes.size(), most_rows); ++i) {
    const VerdictChange& v = c.changes[i];
    rows += html(R"(<tr><td>{}</td><td class="{}">{}</td><td><code>{}</code></td></tr>)", v.before,
                 v.worse ? "up" : "", v.after, v.reproduce);
  }
  Html all =
      html(R"(<p>{}</p>{})", counts, table(html("<th>before</th><th>after</th><th>reproduce</th>"), rows));
  if (c.changes.size() > most_rows) all += html("<p>and {} more</p>", c.changes.size() - most_rows);
  return section("verdicts", "Verdicts of the same cases", all);
}

std::string ratio(double before, double after) {
  if (std::isnan(before) || std::isnan(after) || before == 0) return "\xE2\x80\x93";
  return fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

Html drift_word(const KernelComparison& k) {
  if (k.no_more_tested) return html(R"(<span class="up">no more tested</span>)");
  switch (k.drift.verdict) {
    case Drift::Verdict::worse:
      return html(R"(<span class="up">less accurate</span>)");
    case Drift::Verdict::better:
      return html(R"(<span class="down">more accurate</span>)");
    case Drift::Verdict::none:
      break;
  }
  return k.drift.before == 0 || k.drift.after == 0 ? html("no passes to compare") : html("as before");
}

Html accuracy(const Comparison& c) {
  Html rows, charts;
  std::size_t shown = 0;
  for (const KernelComparison& k : c.kernels) {
    const Drift& d = k.drift;
    const std::string moved = d.case_by_case ? fmt::format("{} up, {} down", grouped(d.ups), grouped(d.downs))
                                             : std::string("other cases");
    rows += html(
        R"(<tr data-kernel="{}"><td><code>{}</code></td><td data-is="drift">{}</td><td class="num">{}</td><td class="num">{}</td>)"
        R"(<td class="num">{} &#8594; {}</td><td class="num">{} &#8594; {}</td><td class="num">{}</td></tr>)",
        k.name, k.name, drift_word(k),
        d.before == d.after ? grouped(d.before) : grouped(d.before) + ", " + grouped(d.after), moved,
        short_number(d.median_before), short_number(d.median_after), short_number(d.worst_before),
        short_number(d.worst_after), short_number(d.chance, 2));
    if (k.histogram_before.total() == 0 || k.histogram_after.total() == 0 || shown++ >= most_charts) continue;
    charts +=
        html(R"(<figure><figcaption><b>{}</b><br><span>median {}, {}</span></figcaption>{}</figure>)", k.name,
             ratio(d.median_before, d.median_after), d.case_by_case ? "same cases" : "other cases",
             histogram_chart(k.histogram_after, &k.histogram_before));
  }
  return section(
      "accuracy", "Accuracy of what passes",
      html(
          R"(<p class="note">Used budget: the largest error of a case, as a multiple of its bound. A case has moved when its )"
          R"(used budget changed by more than reordering its sums would change it. A kernel has drifted when so many moved up, )"
          R"(of those that moved, by chance in less than {} of comparisons; between runs of other cases, when the )"
          R"(distributions differ as rarely by chance. fuzz/report/drift.h derives both.</p>{}<div class="charts">{}</div>)"
          R"(<p class="note">Bars: later run. Line: earlier run. Shares of cases.</p>)",
          short_number(false_alarms),
          table(
              html(R"(<th>kernel</th><th>accuracy</th><th class="num">cases</th><th class="num">moved</th>)"
                   R"(<th class="num">median</th><th class="num">worst</th><th class="num">by chance</th>)"),
              rows),
          charts));
}

Html speed(const Comparison& c) {
  Html rows;
  for (const KernelComparison& k : c.kernels)
    rows += html(
        R"(<tr><td><code>{}</code></td><td class="num">{} &#8594; {}</td><td class="num">{}</td><td class="num">{}</td></tr>)",
        k.name, duration(k.seconds_before), duration(k.seconds_after),
        ratio(k.seconds_before, k.seconds_after),
        k.instructions_before == k.instructions_after
            ? std::string(k.same_cases > 0 && k.instructions_before > 0 ? "equal" : "\xE2\x80\x93")
            : ratio(static_cast<double>(k.instructions_before), static_cast<double>(k.instructions_after)));
  return section(
      "speed", "Speed",
      html(
          R"(<p class="note">Shown, and no verdict: seconds are of the machine. Wave instructions are of the kernel.</p>{})",
          table(html(R"(<th>kernel</th><th class="num">median s per case</th><th class="num">change</th>)"
                     R"(<th class="num">wave instructions</th>)"),
                rows)));
}

Html only(const Comparison& c) {
  Html all;
  for (const std::string& name : c.only_before)
    all += html(R"(<li><code>{}</code> <span class="up">no more tested</span></li>)", name);
  for (const std::string& name : c.only_after)
    all += html("<li><code>{}</code> only in the later run</li>", name);
  if (all.text.empty()) return {};
  return section("only", "Kernels of one run only", html("<ul>{}</ul>", all));
}

}  // namespace

std::string comparison_page(const RunNumbers& before, const RunNumbers& after, const Comparison& comparison) {
  const Headline top = headline(comparison);
  Html tiles;
  const auto count = [&](std::string_view words, std::string_view name, std::uint64_t n, bool bad) {
    tiles += tile(words, figure(name, n), bad && n > 0 ? "bad" : "");
  };
  count("new findings", "new-findings", comparison.fresh.size(), true);
  count("not met again", "vanished-findings", comparison.vanished.size(), false);
  count("in both", "same-findings", comparison.still.size(), false);
  count("drifted kernels", "drifted-kernels", comparison.drifted(), true);
  count("worse verdicts", "worse-verdicts", comparison.worse_verdicts(), true);
  count("same cases", "same-cases", comparison.same_cases, false);
  Html main = remarks_box(comparison.remarks);
  main += html(R"(<dl class="tiles">{}</dl>)", tiles);
  main += findings(comparison);
  main += only(comparison);
  main += changes(comparison);
  main += accuracy(comparison);
  main += speed(comparison);
  return document("attest: " + top.words,
                  "attest report \xC2\xB7 " + before.folder + " \xE2\x86\x92 " + after.folder, top, main);
}

}  // namespace attest::fuzz::report
