// SPDX-License-Identifier: MIT
#include "fuzz/report/page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "fuzz/build_info.h"
#include "fuzz/report/case_view.h"
#include "fuzz/report/charts.h"
#include "fuzz/report/document.h"

namespace attest::fuzz::report {
namespace {

// What a page may hold at most, so that it opens on a phone. What is left out is said.
constexpr std::size_t most_findings_whole = 60;  ///< with case, map and elements; the others as a table
constexpr std::size_t most_findings_open = 12;
constexpr std::size_t most_map_bytes = 700'000;
constexpr std::size_t most_matrices = 12;
constexpr std::size_t most_histograms = 120;
constexpr std::size_t most_rows = 200;
constexpr std::size_t most_missing = 12;

Html command(const std::string& line) {
  return html("<pre>{}</pre>", line);
}

Html badge(const std::string& kind) {
  return html(R"(<span class="badge {}">{}</span>)", verdict_class(kind), kind);
}

std::string names_of(const RunNumbers& run) {
  std::vector<std::string> names;
  if (const auto it = run.options.find("kernels"); it != run.options.end() && it->is_array())
    for (const Json& name : *it)
      if (name.is_string()) names.push_back(name.get<std::string>());
  if (names.empty()) names = run.kernel_names;
  if (names.size() > 3) return counted(names.size(), "kernel");
  return names.empty() ? "no kernel" : fmt::format("{}", fmt::join(names, ", "));
}

std::string option(const RunNumbers& run, const char* name) {
  const auto it = run.options.find(name);
  if (it == run.options.end() || it->is_null()) return "unknown";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

std::string cases_per_second(const RunNumbers& run) {
  return run.seconds > 0 ? short_number(static_cast<double>(run.cases_run) / run.seconds) : "unknown";
}

Headline headline(const RunNumbers& run) {
  Headline h;
  std::set<std::string> failing;
  for (const FindingNumbers& f : run.findings) failing.insert(f.kernel);
  if (run.tested == 0) {
    h.mood = Headline::Mood::nothing;
    h.words = run.cases_run == 0 ? "Nothing was tested: no case ran"
                                 : fmt::format("Nothing was tested: not one of {} put a kernel to the test",
                                               counted(run.cases_run, "case"));
  } else if (!run.findings.empty()) {
    h.mood = Headline::Mood::bad;
    h.words = fmt::format("{} in {}", counted(run.findings.size(), "finding"),
                          failing.size() == 1 ? *failing.begin() : counted(failing.size(), "kernel"));
  } else if (!run.complete || !run.untested.empty()) {
    h.words = "No finding so far";
    if (run.complete)
      h.words = fmt::format("No finding, but {} not tested",
                            counted(run.untested.size(), "kernel was", "kernels were"));
  } else {
    h.mood = Headline::Mood::good;
    const auto passed = run.verdicts.find("pass");
    h.words = fmt::format("No findings: {} tested, {} passed", counted(run.tested, "case"),
                          grouped(passed == run.verdicts.end() ? 0 : passed->second));
  }
  if (!run.complete)
    h.words += run.ended ? " \xE2\x80\x94 the run was interrupted" : " \xE2\x80\x94 the run has not ended";
  h.below = html("<p>{} on {} ({}), seed {}: {} in {}.</p>{}", names_of(run),
                 option(run, "device") == "sim" ? "the simulator" : "device " + option(run, "device"),
                 option(run, "arch"), option(run, "seed"), counted(run.cases_run, "case"),
                 duration(run.seconds), verdict_bar(run.verdicts));
  return h;
}

std::vector<std::string> remarks(const RunNumbers& run) {
  std::vector<std::string> all;
  if (!run.complete)
    all.push_back(fmt::format(
        "{} These are the numbers of the cases that were finished. It goes on with: attest fuzz --resume {}",
        run.ended ? "The run was interrupted." : "The run has not ended: it still runs, or was killed.",
        run.folder));
  if (!run.untested.empty() && run.tested > 0)
    all.push_back(fmt::format("Not tested at all, though asked for: {}.", fmt::join(run.untested, ", ")));
  if (const auto it = run.options.find("shard"); it != run.options.end() && it->is_object())
    if (const Json count = it->value("count", Json(1)); count != 1)
      all.push_back(fmt::format("This is shard {} of {} only (the first is 0).",
                                it->value("index", Json(0)).dump(), count.dump()));
  all.insert(all.end(), run.remarks.begin(), run.remarks.end());
  return all;
}

/// Rounded down: 100 % is all of them.
std::string percent(std::size_t part, std::size_t all) {
  return fmt::format("{:.0f} %", std::floor(100.0 * static_cast<double>(part) / static_cast<double>(all)));
}

Html tiles(const RunNumbers& run) {
  Html all;
  all += tile("findings", figure("findings", run.findings.size()), run.findings.empty() ? "" : "bad");
  all += tile("cases", figure("cases", run.cases_run));
  all += tile("tested", figure("tested", run.tested), run.tested == 0 ? "bad" : "");
  for (const auto& [kind, count] : run.verdicts)
    all += tile(kind, figure("verdict-" + kind, count),
                kind == "pass" || kind == "unsupported" ? ""
                : kind == "mistrusted"                  ? "warn"
                                                        : "bad");
  if (run.excused > 0) all += tile("of these known", figure("excused", run.excused));
  if (run.quarantined > 0) all += tile("quarantined", figure("quarantined", run.quarantined), "warn");
  if (run.workers_lost > 0) all += tile("workers lost", figure("workers-lost", run.workers_lost), "warn");
  all += tile("cases/s", figure("cases-per-second", cases_per_second(run)));
  all += tile("time", figure("time", duration(run.seconds)));
  if (const auto [covered, reachable] = run.pairs(); reachable > 0)
    all += tile("pairs covered", figure("pairs", percent(covered, reachable)));
  if (const auto [executed, there] = run.branches(); there > 0)
    all += tile("branches executed", figure("branches", percent(executed, there)));
  return html(R"(<dl class="tiles">{}</dl>)", all);
}

Html elements(const Json& verdict) {
  const auto worst = verdict.find("worst");
  if (worst == verdict.end() || !worst->is_array() || worst->empty()) return {};
  const auto value = [](const Json& element, const char* name) {
    const Json v = element.value(name, Json());
    return v.is_number_float() ? fmt::format("{:.9g}", v.get<double>())
           : v.is_string()     ? v.get<std::string>()
                               : v.dump();
  };
  Html rows;
  for (const Json& e : *worst) {
    if (!e.is_object()) continue;
    const Json column = e.value("column", Json());
    rows += html(
        R"(<tr><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td>{}</td></tr>)",
        value(e, "request"), value(e, "position"), value(e, "head"), column == -1 ? "lse" : column.dump(),
        value(e, "got"), value(e, "expected"), value(e, "bound"), value(e, "term"));
  }
  return html(
      "<h4>Worst elements</h4>{}",
      table(html(R"(<th>request</th><th>position</th><th>head</th><th>column</th><th class="num">got</th>)"
                 R"(<th class="num">expected</th><th class="num">bound</th><th>term</th>)"),
            rows));
}

Html map_figure(const std::string& title, const MismatchMap& map, std::size_t& bytes_left) {
  Html chart = heat_map(map);
  if (chart.text.size() > bytes_left)
    return html(R"(<p class="note">{}: the map was left out to keep this page small.</p>)", title);
  bytes_left -= chart.text.size();
  Html blocks;
  if (map.row_block > 1 || map.column_block > 1)
    blocks = html(R"(<p class="note">Each cell is the worst of {} by {}.</p>)",
                  counted(static_cast<std::uint64_t>(map.row_block), "row"),
                  counted(static_cast<std::uint64_t>(map.column_block), "column"));
  if (!map.says.empty()) blocks += html(R"(<p class="note">{}</p>)", map.says);
  return html(R"(<div><h4>{}</h4><div class="scroll">{}</div>{}</div>)", title, chart, blocks);
}

Html facts(const RunNumbers& run, const FindingNumbers& f) {
  const auto kernel =
      std::find_if(run.kernels.begin(), run.kernels.end(), [&](const auto& k) { return k.name == f.kernel; });
  Html all;
  if (kernel != run.kernels.end())
    all += html("In <b>{}</b> of its {}", grouped(f.count), counted(kernel->cases, "case"));
  else
    all += html("In <b>{}</b>", counted(f.count, "case"));
  all += f.source == "fresh"       ? html(", first in case {}", f.number)
         : f.source == "neighbour" ? html(", first in neighbour {}", f.number)
                                   : html(", first in {} ({})", f.from_file, f.source);
  if (f.confirmed || f.runs > 1) all += html("; repeats <b>{} of {}</b>", f.same, f.runs);
  const Json used = f.verdict.value("used_budget", Json());
  if (used.is_number() && used.get<double>() > 1 && f.verdict.value("lane", Json()) != "exact")
    all += html("; error up to <b>{} times</b> the bound", short_number(used.get<double>()));
  if (f.verdict.value("elements_failed", Json(0)) != 0)
    all += html("; {} of {} elements wrong", f.verdict.value("elements_failed", Json(0)).dump(),
                f.verdict.value("elements_checked", Json(0)).dump());
  all += html(". ");
  if (f.minimal)
    all +=
        html("Smallest case: nothing simpler fails the same way ({}).", counted(f.evaluations, "evaluation"));
  else if (f.steps > 0)
    all += html("Made smaller in {}, {}.", counted(f.evaluations, "evaluation"),
                f.done ? "not to the end" : "and not finished");
  else
    all += html("Not made smaller.");
  return html(R"(<p class="facts">{}</p>)", all);
}

Html finding_card(const RunNumbers& run, const FindingNumbers& f, std::size_t number,
                  std::size_t& map_bytes) {
  Html maps;
  const auto add = [&](const std::string& of, const MismatchMap& map) {
    maps += map_figure("Mismatch, " + of, map, map_bytes);
    for (const MismatchMap& other : map.others)
      maps += map_figure("By " + other.axis + ", " + of, other, map_bytes);
  };
  if (f.minimised_map) add("minimised case", *f.minimised_map);
  if (f.original_map && f.original != f.minimised) add("case as found", *f.original_map);
  if (!maps.text.empty()) maps = html(R"(<div class="maps">{}</div>{})", maps, heat_map_legend());
  Html more = elements(f.verdict);
  if (!f.original.is_null() && f.original != f.minimised)
    more += html("<h4>Case as found</h4>{}", case_view(f.original));
  more +=
      html("<h4>Minimised case, as JSON</h4><pre>{}</pre><p class=\"note\">signature: <code>{}</code></p>",
           f.minimised.dump(), f.signature);
  const Html body = html(
      "<p>{}</p>{}{}<h4>Minimised case</h4>{}{}<details><summary>Worst elements, case as found, "
      "JSON</summary>{}</details>",
      f.detail, facts(run, f), command(f.reproduce), case_view(f.minimised), maps, more);
  const Html title =
      html(R"(<h3>{}{}</h3><p class="where"><code>{}</code></p>)", badge(f.kind), f.diagnosis, f.kernel);
  if (number < most_findings_open)
    return html(R"(<article class="finding" id="f{}" data-kind="{}">{}{}</article>)", number, f.kind, title,
                body);
  return html(
      R"(<article class="finding" id="f{}" data-kind="{}">{}<details><summary>{}</summary>{}</details></article>)",
      number, f.kind, title, counted(f.count, "case"), body);
}

/// The findings at a glance, when they are too many to be seen at once.
Html contents(const RunNumbers& run) {
  constexpr std::size_t few = 3;
  if (run.findings.size() <= few) return {};
  Html rows;
  for (std::size_t i = 0; i < std::min(run.findings.size(), most_findings_whole); ++i) {
    const FindingNumbers& f = run.findings[i];
    rows += html(
        R"(<tr><td>{}</td><td><a href="#f{}">{}</a></td><td><code>{}</code></td><td class="num">{}</td></tr>)",
        badge(f.kind), i, f.diagnosis.empty() ? f.signature : f.diagnosis, f.kernel, grouped(f.count));
  }
  const Html all =
      table(html(R"(<th></th><th>diagnosis</th><th>kernel</th><th class="num">cases</th>)"), rows);
  constexpr std::size_t many = 20;
  return run.findings.size() <= many ? all
                                     : html("<details><summary>All at a glance</summary>{}</details>", all);
}

Html findings(const RunNumbers& run) {
  Html all;
  if (run.findings.empty())
    all = html("<p>None{}.</p>",
               run.excused > 0 ? "; " + counted(run.excused, "failure was", "failures were") + " known" : "");
  std::size_t map_bytes = most_map_bytes, number = 0;
  all += contents(run);
  Html rest;
  for (const FindingNumbers& f : run.findings) {
    if (number < most_findings_whole)
      all += finding_card(run, f, number, map_bytes);
    else if (number < most_findings_whole + most_rows)
      rest +=
          html(R"(<tr><td>{}</td><td>{}</td><td>{}</td><td class="num">{}</td><td><code>{}</code></td></tr>)",
               badge(f.kind), f.kernel, f.diagnosis, grouped(f.count), f.reproduce);
    ++number;
  }
  if (!rest.text.empty())
    all += html(
        "<h4>And these</h4>{}",
        table(
            html(R"(<th></th><th>kernel</th><th>diagnosis</th><th class="num">cases</th><th>reproduce</th>)"),
            rest));
  if (number > most_findings_whole + most_rows)
    all += html("<p>{} more are in {}/failures.</p>", number - most_findings_whole - most_rows, run.folder);
  if (!run.excuses.empty()) {
    Html known;
    for (const auto& [why, count] : run.excuses)
      known += html("<li>{}: {}</li>", why, counted(count, "case"));
    all += html("<h4>Expected or known failures, not counted as findings</h4><ul>{}</ul>", known);
  }
  return section("findings", "Findings, worst first", all);
}

Html kernels(const RunNumbers& run) {
  Html rows, reasons;
  for (const std::size_t i : run.worst_first()) {
    const KernelNumbers& k = run.kernels[i];
    const double worst = k.worst_within();
    const auto share = [](std::size_t part, std::size_t all) {
      return all == 0 ? std::string("\xE2\x80\x93") : percent(part, all);
    };
    rows += html(
        R"(<tr data-kernel="{}"><td><code>{}</code></td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td>)"
        R"(<td>{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td></tr>)",
        k.name, k.name, k.findings == 0 ? html("0") : html(R"(<span class="up">{}</span>)", k.findings),
        grouped(k.cases),
        k.tested == 0 ? html(R"(<span class="up">0</span>)") : html("{}", grouped(k.tested)),
        verdict_bar(k.verdicts), std::isnan(worst) ? "\xE2\x80\x93" : short_number(worst),
        k.coverage ? share(k.coverage->covered(), k.coverage->reachable()) : share(0, 0),
        share(k.branches.executed(), k.branches.total()),
        k.seconds > 0 ? duration(k.seconds / static_cast<double>(k.cases)) : "\xE2\x80\x93");
    if (k.reasons.empty()) continue;
    Html list;
    std::size_t shown = 0;
    for (const auto& [why, count] : k.reasons) {
      if (++shown > 12) break;
      list += html("<li>{} ({})</li>", why, counted(count, "case"));
    }
    if (k.reasons.size() > 12) list += html("<li>and {} more reasons</li>", k.reasons.size() - 12);
    const Html open{k.tested == 0 ? " open" : ""};
    reasons += html("<details{}><summary>{}: {} not put to the test, why</summary><ul>{}</ul></details>",
                    open, k.name, counted(k.cases - k.tested, "case"), list);
  }
  return section(
      "kernels", "Kernels",
      table(
          html(
              R"(<th>kernel</th><th class="num">findings</th><th class="num">cases</th><th class="num">tested</th>)"
              R"(<th>verdicts</th><th class="num">worst within 1</th><th class="num">pairs</th><th class="num">branches</th><th class="num">per case</th>)"),
          rows) += reasons);
}

Html accuracy(const RunNumbers& run) {
  Html charts;
  std::vector<std::string> exact;
  std::size_t shown = 0, left_out = 0;
  for (const std::size_t i : run.worst_first())
    for (const auto& [lane, histogram] : run.kernels[i].budgets) {
      if (shown >= most_histograms) {
        ++left_out;
        continue;
      }
      const double worst = histogram.quantile_within(1);
      if (lane == "exact" && !(worst > 0)) {
        exact.push_back(fmt::format("{} ({})", run.kernels[i].name, counted(histogram.total(), "case")));
        continue;
      }
      ++shown;
      const std::string within =
          std::isnan(worst) ? "none within the limit"
                            : fmt::format("median {}, worst within the limit {}",
                                          short_number(histogram.quantile_within(0.5)), short_number(worst));
      charts += html(R"(<figure><figcaption><b>{}</b> {}<br><span>{}, {}{}</span></figcaption>{}</figure>)",
                     run.kernels[i].name, lane, counted(histogram.total(), "case"), within,
                     histogram.beyond() > 0 ? ", " + grouped(histogram.beyond()) + " beyond" : "",
                     histogram_chart(histogram));
    }
  if (charts.text.empty() && exact.empty()) return {};
  Html all = html(
      R"(<p class="note">Used budget of a case: its largest error, as a multiple of the bound derived for that element. )"
      R"(Logarithmic; above 1 fails. By kernel, and by the lane of the oracle that decided.</p><div class="charts">{}</div>)",
      charts);
  if (left_out > 0) all += html("<p>{} more are in attest report --json.</p>", left_out);
  if (!exact.empty())
    all += html(R"(<p class="note">Compared bit for bit, without a budget: {}.</p>)",
                fmt::format("{}", fmt::join(exact, ", ")));
  return section("accuracy", "Used budget", all);
}

/// What of its functions a kernel never executed: conditional branches, numbered from 0 in order of address.
Html unexecuted(const BranchCoverage& branches) {
  Html all;
  const Json said = branches.json();
  for (const auto& [function, of] : said.at("functions").items()) {
    std::vector<std::size_t> never, not_taken, only_taken;
    const auto ways = of.at("ways").get<std::string>();
    for (std::size_t n = 0; n < ways.size(); ++n) {
      if (ways[n] == '0') never.push_back(n);
      if (ways[n] == '1') not_taken.push_back(n);
      if (ways[n] == '2') only_taken.push_back(n);
    }
    std::string missing;
    const auto list = [&](const std::vector<std::size_t>& numbers, const char* what) {
      if (!numbers.empty()) missing += fmt::format("; {} {}", what, fmt::join(numbers, ", "));
    };
    list(never, "not reached");
    list(not_taken, "never taken");
    list(only_taken, "always taken");
    all += html("<li><code>{}</code>: {} of {}{}</li>", function, of.at("executed").get<std::size_t>(),
                of.at("total").get<std::size_t>(), missing);
  }
  return all;
}

Html coverage(const RunNumbers& run) {
  Html all;
  std::size_t shown = 0;
  for (const std::size_t i : run.worst_first()) {
    const KernelNumbers& k = run.kernels[i];
    if (!k.coverage) continue;
    if (shown++ == most_matrices) {
      all += html(R"(<p class="note">The other kernels are in the table above.</p>)");
      break;
    }
    const Html open{shown == 1 ? " open" : ""};
    Html missing;
    std::size_t named = 0;
    const Json said = k.coverage->json();
    for (const Json& pair : said.at("pairs").at("missing"))
      if (named++ < most_missing) missing += html("<li>{}</li>", pair.get<std::string>());
    if (!missing.text.empty())
      missing = html("<h4>The commonest that are missing</h4><ul class=\"small\">{}</ul>", missing);
    Html sides;
    if (k.branches.total() > 0) {
      missing += html("<h4>Sides of conditional branches executed</h4><ul class=\"small\">{}</ul>",
                      unexecuted(k.branches));
      sides =
          html(", {} of {} sides of branches", grouped(k.branches.executed()), grouped(k.branches.total()));
    }
    all += html(
        R"(<details{}><summary>{}: {} of {} pairs{}</summary><div class="maps"><div class="scroll">{}</div><div>{}</div></div></details>)",
        open, k.name, grouped(k.coverage->covered()), grouped(k.coverage->reachable()), sides,
        coverage_matrix(*k.coverage), missing);
  }
  if (all.text.empty()) return {};
  return section(
      "coverage", "Coverage",
      html(
          R"(<p class="note">Of all pairs of values of two fields that generated cases can have, those that a tested )"
          R"(case had. Rows and columns are fields, numbered alike. And which ways the conditional branches of the )"
          R"(kernels' functions went, where the device tells, numbered in order of address.</p>{}{})",
          coverage_legend(), all));
}

Html speed(const RunNumbers& run) {
  Html all;
  if (!run.rate.empty()) {
    all += html(R"(<div class="fits">{}</div>)", rate_chart(run));
    if (!run.lost_at.empty() || !run.resumed_at.empty())
      all += html(R"(<p class="note">Red ticks: a worker was lost. Dashed lines: the run was resumed.</p>)");
  }
  Html rows;
  for (const CaseNumbers* c : run.slowest(10))
    rows += html(
        R"(<tr><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td>{}</td><td><code>{}</code></td></tr>)",
        duration(c->seconds()), duration(c->run_seconds), duration(c->judge_seconds), badge(c->kind),
        run.reproduction(*c));
  if (!rows.text.empty())
    all += html(
        "<h4>Slowest cases</h4>{}",
        table(
            html(
                R"(<th class="num">in all</th><th class="num">kernel</th><th class="num">oracle</th><th></th><th>again</th>)"),
            rows));
  if (all.text.empty()) return {};
  return section("speed", "Speed", all);
}

Html fidelity(const RunNumbers& run) {
  if (option(run, "device") != "sim" && run.fidelity.empty()) return {};
  if (run.fidelity.empty())
    return section("fidelity", "Fidelity",
                   html("<p>Not recorded. <code>attest fuzz --detect fidelity</code> records what the "
                        "simulator executed and "
                        "how exactly it models each instruction.</p>"));
  std::uint64_t exact = 0, all = 0, exact_ops = 0;
  Html rows;
  for (const FidelityRow& row : run.fidelity) {
    all += row.count;
    if (row.exactness == "exact") {
      exact += row.count;
      ++exact_ops;
      continue;
    }
    rows +=
        html(R"(<tr><td><code>{}</code></td><td>{}</td><td class="num">{}</td><td>{}</td></tr>)", row.op,
             row.ulp > 0 ? fmt::format("{}, {} ulp", row.exactness, short_number(row.ulp)) : row.exactness,
             grouped(row.count), row.reason);
  }
  const double share = all > 0 ? 100.0 * static_cast<double>(exact) / static_cast<double>(all) : 0;
  Html content =
      html("<p>{} of {} wave instructions in {} were of {} that the simulator models bit for bit ({} %).</p>",
           figure("exact-instructions", exact), figure("instructions", all),
           counted(run.fidelity_cases, "case"), counted(exact_ops, "opcode"), fmt::format("{:.4g}", share));
  if (!rows.text.empty())
    content +=
        table(html(R"(<th>opcode</th><th>modelled</th><th class="num">executed</th><th>why</th>)"), rows);
  return section("fidelity", "Fidelity", content);
}

Html environment(const RunNumbers& run) {
  Html rows;
  const auto row = [&](std::string_view group, const std::string& name, const Json& value) {
    std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    if (name == "fmt" && value.is_number_integer())
      shown = fmt::format("{}.{}.{}", value.get<int>() / 10000, value.get<int>() / 100 % 100,
                          value.get<int>() % 100);
    if (name == "kernels" && value.is_array() && value.size() > 3) shown = counted(value.size(), "kernel");
    if (name == "files" && value.is_array()) shown = value.empty() ? "none" : counted(value.size(), "file");
    if (shown.empty() || shown == "null") shown = "none";
    rows += html(R"(<tr><td>{}</td><th>{}</th><td data-env="{}.{}">{}</td></tr>)", group, name, group, name,
                 shown);
  };
  for (const auto& [name, value] : run.build.items()) row("build", name, value);
  for (const auto& [name, value] : run.device.items()) row("device", name, value);
  for (const auto& [name, value] : run.options.items())
    if (name != "attest" && name != "event") row("run", name, value);
  row("run", "jobs", run.jobs);
  for (const std::string& folder : run.merged) row("run", "joined from", folder);
  if (build_info() != run.build)
    row("report", "written by another build",
        build_info().value("version", "") + ", " + build_info().value("compiler", ""));
  return section("environment", "Environment",
                 html(R"(<div class="scroll"><table class="case"><tbody>{}</tbody></table></div>)", rows));
}

}  // namespace

std::string page(const RunNumbers& run) {
  const std::vector<std::pair<const char*, Html>> parts = {
      {"findings", findings(run)},      {"kernels", kernels(run)}, {"accuracy", accuracy(run)},
      {"coverage", coverage(run)},      {"speed", speed(run)},     {"fidelity", fidelity(run)},
      {"environment", environment(run)}};
  Html links, sections;
  for (const auto& [id, content] : parts) {
    if (content.text.empty()) continue;
    links += html("<a href=\"#{}\">{}</a>", id, id);
    sections += content;
  }
  const Headline top = headline(run);
  return document("attest: " + top.words, "attest report \xC2\xB7 " + run.folder, top,
                  html("{}{}<nav>{}</nav>\n{}", remarks_box(remarks(run)), tiles(run), links, sections));
}

}  // namespace attest::fuzz::report
