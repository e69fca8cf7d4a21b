// SPDX-License-Identifier: MIT
//
// The page as a browser sees it: written from a run whose numbers are known, loaded in headless Chromium, its
// figures read from the document that came of it and held against the run. Without Chromium (package
// `chromium`) a test ends the program with 77, which CTest reports as skipped.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "fuzz/report/html.h"
#include "fuzz/report/page.h"
#include "fuzz/report/run_numbers.h"
#include "fuzz/report/tests/written_run.h"

namespace {

using namespace attest;
using namespace attest::fuzz;
using namespace attest::fuzz::report;
using namespace attest::fuzz::report::testing;

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return output;
  std::array<char, 65536> buffer{};
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), n);
  return ::pclose(pipe) == 0 ? output : std::string();
}

std::string chromium() {
  std::string path =
      output_of("command -v chromium || command -v chromium-browser || command -v google-chrome");
  while (!path.empty() && path.back() == '\n') path.pop_back();
  return path;
}

/// Ends the program with 77 where there is no browser.
std::string browser() {
  static const std::string path = chromium();
  if (path.empty()) {
    fmt::print("skipped: chromium is not installed (.ci/setup installs it)\n");
    std::exit(77);
  }
  return path;
}

/// The document that a browser of this width makes of a page, as HTML again.
std::string loaded(const TemporaryFolder& folder, const std::string& page, int width = 1200) {
  std::ofstream(folder.path + "/page.html") << page;
  const std::string dom = output_of(fmt::format(
      "'{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir={}/profile "
      "--window-size={},900 --dump-dom file://{}/page.html 2>/dev/null",
      browser(), folder.path, width, folder.path));
  REQUIRE(dom.find("</html>") != std::string::npos);
  return dom;
}

/// What the elements with data-is show, without thousands separators.
std::map<std::string, std::string> figures_of(const std::string& dom) {
  std::map<std::string, std::string> all;
  const std::string mark = "data-is=\"";
  for (auto at = dom.find(mark); at != std::string::npos; at = dom.find(mark, at + 1)) {
    const auto name_end = dom.find('"', at + mark.size());
    const auto text = dom.find('>', name_end) + 1;
    std::string shown = dom.substr(text, dom.find('<', text) - text);
    std::erase(shown, ',');
    all[dom.substr(at + mark.size(), name_end - at - mark.size())] = shown;
  }
  return all;
}

/// The figures that are not what the run's events say; counted here anew, from the lines of the file.
std::vector<std::string> wrong_figures(const std::string& folder, const std::string& dom) {
  std::map<std::string, std::uint64_t> true_figures;
  std::ifstream events(folder + "/events.jsonl");
  true_figures["tested"] = true_figures["findings"] = 0;
  for (std::string line; std::getline(events, line);) {
    const Json event = Json::parse(line);
    if (event.at("event") == "finding") ++true_figures["findings"];
    if (event.at("event") != "verdict") continue;
    const Json& evaluation = event.at("evaluation");
    const auto kind = evaluation.at("verdict").at("kind").get<std::string>();
    ++true_figures["cases"];
    ++true_figures["verdict-" + kind];
    if (kind != "unsupported" && kind != "mistrusted" && kind != "harness_error") ++true_figures["tested"];
    for (const Json& row : evaluation.value("observed", Json::object()).value("fidelity", Json::array())) {
      true_figures["instructions"] += row.at("count").get<std::uint64_t>();
      if (row.at("exactness") == "exact")
        true_figures["exact-instructions"] += row.at("count").get<std::uint64_t>();
    }
  }
  const auto shown = figures_of(dom);
  std::vector<std::string> wrong;
  for (const auto& [name, n] : true_figures)
    if (const auto it = shown.find(name); it == shown.end() || it->second != std::to_string(n))
      wrong.push_back(fmt::format("{}: {} and not {}", name, it == shown.end() ? "missing" : it->second, n));
  return wrong;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the figures that a browser shows are those of the run") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const std::string text = page(read_run(folder.path));
  const std::string dom = loaded(folder, text);
  CHECK(wrong_figures(folder.path, dom) == std::vector<std::string>{});
  CHECK(figures_of(dom).at("time") == "10 s");
  CHECK(times(dom, "<article ") == 2);
  CHECK(dom.find("data-kind=\"crash\"") < dom.find("data-kind=\"fail\""));
  CHECK(times(dom, "<svg ") >= 5);
  CHECK(times(dom, "class=\"h-f1\"") == 2);  // a cell of the map and its key
}

TEST_CASE("planted: a page with a wrong figure, or without one, is noticed") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const std::string text = page(read_run(folder.path));
  const auto wrong = [&](const std::string& what, const std::string& with) {
    return wrong_figures(folder.path, loaded(folder, replaced(text, what, with)));
  };
  CHECK(wrong("data-is=\"cases\">102<", "data-is=\"cases\">103<") ==
        std::vector<std::string>{"cases: 103 and not 102"});
  CHECK(wrong("data-is=\"verdict-crash\">2<", "data-is=\"verdict-crash\">0<") ==
        std::vector<std::string>{"verdict-crash: 0 and not 2"});
  CHECK(wrong("data-is=\"findings\"", "data-was=\"findings\"") ==
        std::vector<std::string>{"findings: missing and not 2"});
}

TEST_CASE("a name that is a script stays a name") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  const std::string text = page(read_run(folder.path));
  // Without the page's own policy: it is the escaping that must hold.
  const std::string policy = "Content-Security-Policy";
  const std::string dom = loaded(folder, replaced(text, policy, "no-policy"));
  CHECK(dom.find("<script") == std::string::npos);
  CHECK(dom.find("<title>taken") == std::string::npos);
  // Planted: were it not escaped, this would show it.
  const std::string taken = loaded(folder, replaced(replaced(text, policy, "no-policy"), "</main>",
                                                    "<script>document.title='taken'</script></main>"));
  CHECK(taken.find("<title>taken") != std::string::npos);
  // And with the policy even that does not run.
  const std::string refused =
      loaded(folder, replaced(text, "</main>", "<script>document.title='taken'</script></main>"));
  CHECK(refused.find("<title>taken") == std::string::npos);
}

TEST_CASE("no page scrolls sideways, on a phone or a desk") {
  const TemporaryFolder folder;
  write_full_run(folder.path);
  // In a frame: a headless window is never narrower than 500 pixels.
  const auto too_wide = [&](const std::string& text, int width) {
    const std::string dom = loaded(
        folder,
        fmt::format("<!doctype html><html><title>none</title><body><iframe id=page style='border:0' width={} "
                    "height=800 srcdoc=\"{}\"></iframe><script>onload=()=>{{const it=document.getElementById("
                    "'page');document.title=it.contentDocument.documentElement.scrollWidth+' of '+"
                    "it.contentWindow.innerWidth}}</script></body></html>",
                    width, escaped(text)),
        1600);
    const auto at = dom.find("<title>") + 7;
    const std::string measured = dom.substr(at, dom.find('<', at) - at);
    CAPTURE(measured);
    const auto of = measured.find(" of ");
    REQUIRE(of != std::string::npos);
    REQUIRE(std::stoi(measured.substr(of + 4)) == width);
    return std::stoi(measured.substr(0, of)) > width;
  };
  const std::string text = page(read_run(folder.path));
  CHECK_FALSE(too_wide(text, 390));
  CHECK_FALSE(too_wide(text, 1400));
  CHECK(too_wide(replaced(text, "</main>", "<p style='width:500px'>wide</p></main>"), 390));  // planted
}
