// SPDX-License-Identifier: MIT
#include "fuzz/report/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace attest::fuzz::report {
namespace {

constexpr std::array<std::string_view, 9> kinds_worst_first = {
    "crash", "timeout", "fail", "hazard", "flaky", "harness_error", "mistrusted", "unsupported", "pass"};

Html svg(double width, double height, const std::string& label, const Html& content) {
  return html(R"(<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>)", width,
              height, width, height, label, content);
}

/// Coordinates to a tenth of a pixel.
std::string px(double v) {
  std::string text = fmt::format("{:.1f}", v);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

Html text(double x, double y, std::string_view classes, std::string_view words) {
  return html(R"(<text x="{}" y="{}" class="{}">{}</text>)", px(x), px(y), classes, words);
}

Html line(double x1, double y1, double x2, double y2, std::string_view classes) {
  return html(R"(<path d="M{} {}L{} {}" class="{}"/>)", px(x1), px(y1), px(x2), px(y2), classes);
}

/// About the width of a label in the 10 px font of the axes.
double width_of(std::string_view label) {
  return 6.2 * static_cast<double>(label.size());
}

/// Labels along an axis, only those that do not touch; the last one goes before its neighbours.
template <class Place>
void place_labels(const std::vector<std::string>& labels, double step, double room_between,
                  const Place& place, bool along_text) {
  const auto size = [&](std::size_t i) { return along_text ? width_of(labels[i]) : 10.0; };
  const auto centre = [&](std::size_t i) { return (static_cast<double>(i) + 0.5) * step; };
  if (labels.empty()) return;
  const std::size_t last = labels.size() - 1;
  const double last_begins = centre(last) - size(last) / 2;
  double free_from = -1e9;
  for (std::size_t i = 0; i < last; ++i) {
    const double begins = centre(i) - size(i) / 2, ends = centre(i) + size(i) / 2;
    if (begins < free_from || ends + room_between > last_begins) continue;
    place(i, centre(i));
    free_from = ends + room_between;
  }
  place(last, centre(last));
}

std::string edge_name(int i) {
  return short_number(BudgetHistogram::edge(i), 2);
}

std::string bin_name(int bin) {
  if (bin == 0) return "up to " + edge_name(0);
  if (bin == BudgetHistogram::bins - 1)
    return fmt::format("above {}, inf or nan", edge_name(BudgetHistogram::edges - 1));
  return fmt::format("{} to {}", edge_name(bin - 1), edge_name(bin));
}

/// 1, 2 or 5 times a power of ten, at least `value`.
double nice_ceiling(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (value <= factor * power) return factor * power;
  return 10 * power;
}

struct HeatClass {
  std::string_view css, words;
};
constexpr std::array<HeatClass, 8> heat_classes = {{{"h-none", "not checked"},
                                                    {"h-w0", "up to 0.1"},
                                                    {"h-w1", "up to 0.5"},
                                                    {"h-w2", "up to 1, the limit"},
                                                    {"h-f0", "up to 10"},
                                                    {"h-f1", "up to 1,000"},
                                                    {"h-f2", "above, inf"},
                                                    {"h-nan", "nan"}}};

std::size_t heat_class(double used) {
  if (std::isnan(used)) return 7;
  if (used < 0) return 0;
  constexpr std::array<double, 5> upper = {0.1, 0.5, 1, 10, 1000};
  return 1 + static_cast<std::size_t>(std::lower_bound(upper.begin(), upper.end(), used) - upper.begin());
}

struct CoverageClass {
  std::string_view css, words;
};
constexpr std::array<CoverageClass, 5> coverage_classes = {
    {{"c-0", "none"}, {"c-1", "under 50 %"}, {"c-2", "under 80 %"}, {"c-3", "under 100 %"}, {"c-4", "all"}}};

std::size_t coverage_class(const Coverage::OfFields& of) {
  if (of.covered == 0) return 0;
  if (of.covered >= of.reachable) return 4;
  if (of.covered * 10 < of.reachable * 5) return 1;
  return of.covered * 10 < of.reachable * 8 ? 2 : 3;
}

template <class Classes>
Html legend(const Classes& classes) {
  Html all;
  for (const auto& [css, words] : classes)
    all += html(
        R"(<span class="key"><svg width="12" height="12"><rect width="12" height="12" class="{}"/></svg>{}</span>)",
        css, words);
  return html(R"(<p class="legend">{}</p>)", all);
}

}  // namespace

std::string verdict_class(const std::string& kind) {
  const bool known =
      std::find(kinds_worst_first.begin(), kinds_worst_first.end(), kind) != kinds_worst_first.end();
  return known ? "v-" + kind : "v-other";
}

Html verdict_bar(const std::map<std::string, std::uint64_t>& verdicts) {
  std::vector<std::pair<std::string, std::uint64_t>> parts;
  for (const std::string_view kind : kinds_worst_first)
    if (const auto it = verdicts.find(std::string(kind)); it != verdicts.end()) parts.emplace_back(*it);
  for (const auto& part : verdicts)
    if (verdict_class(part.first) == "v-other") parts.emplace_back(part);
  Html all;
  for (const auto& [kind, count] : parts)
    all += html(R"(<i class="{}" style="flex-grow:{}" title="{}: {}"></i>)", verdict_class(kind), count, kind,
                grouped(count));
  return html(R"(<div class="bar">{}</div>)", all);
}

Html histogram_chart(const BudgetHistogram& histogram, const BudgetHistogram* before) {
  constexpr double width = 344, left = 14, top = 14, plot_height = 84, bar = 9.3;
  constexpr double bottom = top + plot_height, right = left + bar * BudgetHistogram::bins;
  const auto x_of = [](int bin) { return left + bar * bin; };
  const auto share = [](const BudgetHistogram& of, int bin) {
    return static_cast<double>(of.counts()[static_cast<std::size_t>(bin)]) /
           static_cast<double>(std::max<std::uint64_t>(1, of.total()));
  };
  double highest = 0;
  for (int bin = 0; bin < BudgetHistogram::bins; ++bin) {
    highest = std::max(highest, share(histogram, bin));
    if (before != nullptr) highest = std::max(highest, share(*before, bin));
  }
  if (highest == 0) highest = 1;
  const double limit = x_of(BudgetHistogram::limit_bin + 1);

  Html content = html(R"(<rect x="{}" y="{}" width="{}" height="{}" class="beyond"/>)", px(limit), px(top),
                      px(right - limit), px(plot_height));
  for (int bin = 0; bin < BudgetHistogram::bins; ++bin) {
    const std::uint64_t count = histogram.counts()[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    const double height = std::max(2.0, plot_height * share(histogram, bin) / highest);
    content += html(
        R"(<rect x="{}" y="{}" width="{}" height="{}" class="{}"><title>used budget {}: {}</title></rect>)",
        px(x_of(bin) + 0.6), px(bottom - height), px(bar - 1.2), px(height),
        bin > BudgetHistogram::limit_bin ? "b-bad" : "b-ok", bin_name(bin), counted(count, "case"));
  }
  if (before != nullptr) {
    std::string path = fmt::format("M{} {}", px(left), px(bottom));
    for (int bin = 0; bin < BudgetHistogram::bins; ++bin)
      path +=
          fmt::format("V{}H{}", px(bottom - plot_height * share(*before, bin) / highest), px(x_of(bin + 1)));
    content += html(R"(<path d="{}V{}" class="before"/>)", path, px(bottom));
  }
  content += line(left, bottom, right, bottom, "axis");
  content += line(limit, top - 4, limit, bottom, "limit");
  content += text(limit + 3, top - 4, "t limit-t", "limit 1");
  content += text(left, top - 4, "t", fmt::format("highest bar {} %", short_number(100 * highest, 2)));
  for (const auto& [edge, name] : std::initializer_list<std::pair<int, const char*>>{
           {0, "0.0001"}, {8, "0.01"}, {16, "1"}, {24, "100"}, {32, "10,000"}}) {
    const double x = x_of(edge + 1);
    content += line(x, bottom, x, bottom + 3, "axis");
    content += text(x, bottom + 14, edge == 32 ? "t e" : "t m", name);
  }
  return svg(width, bottom + 18, fmt::format("used budget of {}", counted(histogram.total(), "case")),
             content);
}

Html rate_chart(const RunNumbers& run) {
  constexpr double width = 520, height = 170, left = 44, right = 508, top = 16, bottom = 140;
  double highest = 0;
  const auto rate_of = [](const RateBucket& b) {
    return b.to > b.from ? static_cast<double>(b.cases) / (b.to - b.from) : 0;
  };
  for (const RateBucket& b : run.rate) highest = std::max(highest, rate_of(b));
  const double ceiling = nice_ceiling(highest);
  const auto x_of = [&](double t) { return left + (right - left) * t / run.seconds; };
  const auto y_of = [&](double rate) { return bottom - (bottom - top) * rate / ceiling; };

  Html content;
  for (const double part : {0.0, 0.5, 1.0}) {
    content += line(left, y_of(part * ceiling), right, y_of(part * ceiling), part == 0 ? "axis" : "grid");
    content += text(left - 5, y_of(part * ceiling) + 3.5, "t e", short_number(part * ceiling));
  }
  content += text(left, top - 6, "t", "cases/s");
  std::string path = fmt::format("M{} {}", px(left), px(bottom));
  for (const RateBucket& b : run.rate)
    path += fmt::format("L{} {}H{}", px(x_of(b.from)), px(y_of(rate_of(b))), px(x_of(b.to)));
  content += html(R"(<path d="{}V{}Z" class="rate"/>)", path, px(bottom));
  for (const double t : run.resumed_at) content += line(x_of(t), top, x_of(t), bottom, "resumed");
  for (const double t : run.lost_at) content += line(x_of(t), bottom - 10, x_of(t), bottom, "lost");
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double x = left + (right - left) * part;
    content += line(x, bottom, x, bottom + 3, "axis");
    content += text(x, bottom + 15,
                    part == 0   ? "t"
                    : part == 1 ? "t e"
                                : "t m",
                    duration(run.seconds * part));
  }
  return svg(width, height - 10, "cases per second over the time of the run", content);
}

Html heat_map(const MismatchMap& map) {
  const std::size_t columns = map.columns.size(), rows = map.rows.size();
  const double cell_width = columns <= 16 ? 22 : columns <= 40 ? 12 : 7;
  const double cell_height = rows <= 16 ? 18 : rows <= 32 ? 13 : 9;
  constexpr double left = 66, top = 20;
  const double right = left + cell_width * static_cast<double>(columns);
  const double bottom = top + cell_height * static_cast<double>(rows);

  Html content;
  const auto open =
      fmt::format(R"svg(<g transform="translate({},{}) scale({},{})" shape-rendering="crispEdges">)svg",
                  px(left), px(top), px(cell_width), px(cell_height));
  content += Html{open};
  if (constexpr std::size_t most_titles = 400; columns * rows <= most_titles) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        const double used = map.used[r][c];
        content += html(
            R"(<rect x="{}" y="{}" width="1" height="1" class="{}"><title>request {}, position {}, {} {}: {}</title></rect>)",
            c, r, heat_classes[heat_class(used)].css, map.rows[r].request, map.rows[r].position, map.axis,
            map.columns[c], used < 0 ? "not checked" : short_number(used));
      }
  } else {
    std::array<std::string, heat_classes.size()> paths;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0, next = 0; c < columns; c = next) {
        const std::size_t of = heat_class(map.used[r][c]);
        for (next = c + 1; next < columns && heat_class(map.used[r][next]) == of;) ++next;
        paths[of] += fmt::format("M{} {}h{}v1h-{}z", c, r, next - c, next - c);
      }
    for (std::size_t of = 0; of < paths.size(); ++of)
      if (!paths[of].empty())
        content += html(R"(<path d="{}" class="{}"/>)", paths[of], heat_classes[of].css);
  }
  content += Html{"</g>"};
  if (cell_width > 10 && cell_height > 10) {
    std::string lattice;
    for (std::size_t c = 1; c < columns; ++c)
      lattice +=
          fmt::format("M{} {}V{}", px(left + cell_width * static_cast<double>(c)), px(top), px(bottom));
    for (std::size_t r = 1; r < rows; ++r)
      lattice +=
          fmt::format("M{} {}H{}", px(left), px(top + cell_height * static_cast<double>(r)), px(right));
    content += html(R"(<path d="{}" class="lattice"/>)", lattice);
  }
  std::vector<std::string> row_labels;
  for (const MismatchMap::Row& row : map.rows)
    row_labels.push_back(fmt::format("r{} p{}", row.request, row.position));
  place_labels(
      row_labels, cell_height, 1.5,
      [&](std::size_t i, double at) { content += text(left - 5, top + at + 3.5, "t e", row_labels[i]); },
      false);
  place_labels(
      map.columns, cell_width, 4,
      [&](std::size_t i, double at) { content += text(left + at, bottom + 13, "t m", map.columns[i]); },
      true);
  content += text(left - 5, top - 7, "t e", "query row");
  content += text(left, top - 7, "t", map.axis + " \xE2\x86\x92");  // an arrow to the right
  const double widest = std::max(right + 10, left + 80);
  return svg(widest, bottom + 20, "used budget by query row and " + map.axis, content);
}

Html heat_map_legend() {
  return legend(heat_classes);
}

Html coverage_matrix(const Coverage& coverage) {
  const auto by_fields = coverage.by_fields();
  std::set<std::string> names;
  for (const auto& [fields, of] : by_fields) names.insert({fields.first, fields.second});
  const std::vector<std::string> fields(names.begin(), names.end());
  constexpr double cell = 16, top = 6;
  std::size_t longest = 0;
  for (const std::string& name : fields) longest = std::max(longest, name.size() + 4);
  const double left = 12 + width_of(std::string(std::min<std::size_t>(longest, 44), 'x'));
  const auto at = [](std::size_t i) { return cell * static_cast<double>(i); };

  Html content;
  for (std::size_t row = 0; row < fields.size(); ++row) {
    content += text(left - 6, top + at(row) + 11.5, "t e", fmt::format("{}  {}", fields[row], row + 1));
    for (std::size_t column = 0; column < row; ++column) {
      const auto it = by_fields.find({fields[column], fields[row]});
      if (it == by_fields.end()) continue;
      content += html(
          R"(<rect x="{}" y="{}" width="15" height="15" class="{}"><title>{} and {}: {} of {}</title></rect>)",
          px(left + at(column)), px(top + at(row)), coverage_classes[coverage_class(it->second)].css,
          fields[row], fields[column], it->second.covered, counted(it->second.reachable, "pair"));
    }
    if (row + 1 < fields.size())
      content += text(left + at(row) + 7.5, top + at(fields.size()) + 11, "t m", std::to_string(row + 1));
  }
  return svg(left + at(fields.size()) + 4, top + at(fields.size()) + 18, "pairwise coverage by fields",
             content);
}

Html coverage_legend() {
  return legend(coverage_classes);
}

}  // namespace attest::fuzz::report
