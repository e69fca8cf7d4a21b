// SPDX-License-Identifier: MIT
#include "fuzz/cause_of_death.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <functional>
#include <optional>

namespace attest::fuzz {
namespace {

/// The line of `text` that contains `what`; empty when there is none.
std::string_view line_with(std::string_view text, std::string_view what) {
  const auto at = text.find(what);
  if (at == std::string_view::npos) return {};
  const auto before = text.rfind('\n', at);
  const auto start = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(start, std::min(text.find('\n', at), text.size()) - start);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// What follows `mark`, up to the first character that `ends` accepts.
std::string_view after(std::string_view line, std::string_view mark, const std::function<bool(char)>& ends) {
  const auto at = line.find(mark);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + mark.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest.substr(0,
                     static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), ends) - rest.begin()));
}

struct Words {
  std::string diagnosis;
  std::string_view line;
};

std::optional<Words> understood(std::string_view text) {
  const auto stop = [](char c) { return c == '.' || c == ','; };
  const auto not_a_word = [](char c) {
    return c != '-' && c != '_' && std::isalnum(static_cast<unsigned char>(c)) == 0;
  };
  if (const auto line = line_with(text, "Memory access fault by GPU"); !line.empty()) {
    std::string reason = lower(after(line, "Reason:", stop));
    if (const auto alternative = reason.find(" or "); alternative != std::string::npos)
      reason.resize(alternative);
    return Words{reason.empty() ? "gpu memory fault" : "gpu memory fault: " + reason, line};
  }
  if (const auto line = line_with(text, "HW Exception by GPU"); !line.empty()) {
    const std::string reason = lower(after(line, "reason :", stop));
    return Words{reason.empty() ? "gpu hardware exception" : "gpu hardware exception: " + reason, line};
  }
  if (const auto line = line_with(text, "HSA_STATUS_ERROR"); !line.empty())
    return Words{fmt::format("gpu runtime: HSA_STATUS_ERROR{}", after(line, "HSA_STATUS_ERROR", not_a_word)),
                 line};
  if (const auto line = line_with(text, "AddressSanitizer: "); !line.empty())
    return Words{fmt::format("sanitizer: {}", after(line, "AddressSanitizer: ", not_a_word)), line};
  if (const auto line = line_with(text, "runtime error: "); !line.empty())
    return Words{"sanitizer: undefined behaviour", line};
  if (const auto line = line_with(text, "std::bad_alloc"); !line.empty())
    return Words{"out of host memory", line};
  return std::nullopt;
}

}  // namespace

CauseOfDeath cause_of_death(int wait_status, std::string_view last_words) {
  std::string how = "ended for an unknown reason";
  if (WIFSIGNALED(wait_status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(wait_status));
    how = name != nullptr ? fmt::format("killed by SIG{}", name)
                          : fmt::format("killed by signal {}", WTERMSIG(wait_status));
  }
  if (WIFEXITED(wait_status)) how = fmt::format("exited with {}", WEXITSTATUS(wait_status));

  CauseOfDeath cause;
  cause.from_outside = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (const auto words = understood(last_words)) {
    cause.diagnosis = words->diagnosis;
    cause.detail = fmt::format("the worker process {}; it said: {}", how, words->line);
  } else {
    cause.diagnosis = "worker " + how;
    cause.detail = "the worker process " + how;
  }
  return cause;
}

}  // namespace attest::fuzz
