// SPDX-License-Identifier: MIT
#include "fuzz/report/document.h"

#include "fuzz/report/style.h"

namespace attest::fuzz::report {
namespace {

std::string_view name(Headline::Mood mood) {
  switch (mood) {
    case Headline::Mood::good:
      return "good";
    case Headline::Mood::bad:
      return "bad";
    case Headline::Mood::unsure:
      return "unsure";
    case Headline::Mood::nothing:
      return "nothing";
  }
  return "unsure";
}

}  // namespace

std::string document(const std::string& title, const std::string& eyebrow, const Headline& headline,
                     const Html& main) {
  return html(R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{}</style></head><body>
<header><p class="eyebrow">{}</p>
<div class="headline {}"><h1 id="headline" data-mood="{}">{}</h1>{}</div></header>
<main>
{}</main>
<footer>Written by attest report. This file is complete: it loads nothing and runs nothing.</footer>
</body></html>
)",
              title, Html{std::string(style)}, eyebrow, name(headline.mood), name(headline.mood),
              headline.words, headline.below, main)
      .text;
}

Html section(std::string_view id, std::string_view title, const Html& content) {
  return html("<section id=\"{}\"><h2>{}</h2>{}</section>\n", id, title, content);
}

Html tile(std::string_view title, const Html& value, std::string_view mood) {
  return html(R"(<div class="{}"><dt>{}</dt><dd>{}</dd></div>)", mood, title, value);
}

Html table(const Html& head, const Html& body) {
  return html(R"(<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>)", head,
              body);
}

Html remarks_box(const std::vector<std::string>& remarks) {
  if (remarks.empty()) return {};
  Html items;
  for (const std::string& remark : remarks) items += html("<li>{}</li>", remark);
  return html(R"(<ul class="remarks" id="remarks">{}</ul>)", items);
}

}  // namespace attest::fuzz::report
