// SPDX-License-Identifier: MIT
#include "fuzz/exchange/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "device/kernel.h"
#include "fuzz/exchange/exported_case.h"
#include "fuzz/socket_lines.h"
#include "fuzz/strict_json.h"
#include "fuzz/usage_error.h"
#include "oracle/precision.h"

extern char** environ;

namespace attest::fuzz::exchange {
namespace {

/// A Python worker imports its frameworks before it greets.
constexpr std::chrono::seconds greeting_deadline{110};
constexpr std::chrono::milliseconds ending{2000};
constexpr off_t last_words_bytes = 8192;

/// Without `exec` the shell would stay, and its exit code hide the signal that the program died of.
std::string for_shell(const std::string& command) {
  const bool simple = command.find_first_of(";|&<>()`$\n#") == std::string::npos &&
                      command.substr(0, command.find(' ')).find('=') == std::string::npos;
  return simple ? "exec " + command : command;
}

std::string first_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t most = 400;
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

template <typename T>
void read(const Json& json, const char* key, T& to) {
  if (json.contains(key)) to = json.at(key).get<T>();
}

template <typename Enum>
Enum enumerator(const std::string& word, const std::string& where) {
  const auto all = cases::names(Enum{});
  const auto at = std::find(all.begin(), all.end(), word);
  if (at == all.end()) throw UsageError(fmt::format("{}: '{}' is not known", where, word));
  return static_cast<Enum>(at - all.begin());
}

cases::MlaDecodeDomain parse_domain(const Json& json, const std::string& where) {
  check_members(json, where, {},
                {"heads", "q_len_min", "q_len_max", "uniform_q_len", "q_format", "kv_format", "causal_only",
                 "return_lse", "page_sizes", "page_padding", "placements_excluded", "keys_for_every_row",
                 "num_splits_min", "num_splits_max", "unit_scales", "finite_unused"});
  cases::MlaDecodeDomain d;
  read(json, "heads", d.heads);
  read(json, "q_len_min", d.longest_q_len_min);
  read(json, "q_len_max", d.longest_q_len_max);
  read(json, "uniform_q_len", d.uniform_q_len);
  if (json.contains("q_format"))
    d.q_format = enumerator<cases::Format>(json.at("q_format").get<std::string>(), where);
  if (json.contains("kv_format"))
    d.kv_format = enumerator<cases::Format>(json.at("kv_format").get<std::string>(), where);
  read(json, "causal_only", d.causal_only);
  read(json, "return_lse", d.return_lse);
  read(json, "page_sizes", d.page_sizes);
  read(json, "page_padding", d.page_padding);
  if (json.contains("placements_excluded"))
    for (const auto& word : json.at("placements_excluded").get<std::vector<std::string>>())
      d.placements_excluded.push_back(enumerator<cases::Placement>(word, where));
  read(json, "keys_for_every_row", d.keys_for_every_row);
  read(json, "num_splits_min", d.num_splits_min);
  read(json, "num_splits_max", d.num_splits_max);
  read(json, "unit_scales", d.unit_scales);
  read(json, "finite_unused", d.finite_unused);
  return d;
}

Hello::Op parse_op(const std::string& op, const Json& json) {
  const std::string where = fmt::format("ops.{}", op);
  const std::vector<std::string> known = cases::op_names();
  if (std::find(known.begin(), known.end(), op) == known.end())
    throw UsageError(fmt::format("{}: there is no such op", where));
  check_members(json, where, {}, {"precision", "most_input_bytes", "domain"});
  Hello::Op found;
  found.op = op;
  found.precision = string_member(json, where, "precision", default_precision);
  oracle::profile(found.precision);
  read(json, "most_input_bytes", found.most_input_bytes);
  if (json.contains("domain")) {
    if (op != cases::MlaDecode::op) throw UsageError(fmt::format("{}: a domain is for mla_decode", where));
    found.domain = parse_domain(json.at("domain"), where + ".domain");
  }
  return found;
}

}  // namespace

Hello parse_hello(const std::string& line, const std::string& who) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("attest_worker"))
    throw device::DeviceError(fmt::format("{}: its first line is no greeting: {}", who, first_line(line)));
  try {
    if (json.at("attest_worker") != worker_protocol)
      throw UsageError(fmt::format("it speaks another version of the protocol, this is {}", worker_protocol));
    check_members(json, "greeting", {"attest_worker", "name"}, {"about", "ops", "unavailable"});
    Hello hello;
    hello.name = string_member(json, "greeting", "name");
    if (hello.name.empty() || hello.name.find_first_of(" /\"'\n\t") != std::string::npos)
      throw UsageError("name must be one word without '/' and quotes");
    if (json.contains("unavailable"))
      throw device::DeviceUnavailable(
          fmt::format("{}: {}", who, first_line(string_member(json, "greeting", "unavailable"))));
    hello.about = string_member(json, "greeting", "about");
    if (!json.contains("ops") || !json.at("ops").is_object() || json.at("ops").empty())
      throw UsageError("it offers no ops");
    for (const auto& [op, capabilities] : json.at("ops").items())
      hello.ops.push_back(parse_op(op, capabilities));
    return hello;
  } catch (const device::DeviceUnavailable&) {
    throw;
  } catch (const std::exception& error) {  // of another type, an unknown profile, a field spelled wrong
    throw device::DeviceError(fmt::format("{}: {}", who, first_line(error.what())));
  }
}

WorkerProcess::WorkerProcess(std::string command) : command_(std::move(command)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) reap(ending);
}

void WorkerProcess::start() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw std::runtime_error(fmt::format("cannot make a worker's socket: {}", std::strerror(errno)));
  socket_ = pair[0];
  words_ = ::memfd_create("attest-external-stderr", MFD_CLOEXEC);
  if (words_ >= 0) ::fcntl(words_, F_SETFL, O_APPEND);
  inbox_.clear();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
  posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
  if (words_ >= 0) posix_spawn_file_actions_adddup2(&actions, words_, 2);
  std::string shell = "sh", option = "-c", text = for_shell(command_);
  std::array<char*, 4> argv = {shell.data(), option.data(), text.data(), nullptr};
  const int error = ::posix_spawn(&pid_, "/bin/sh", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pair[1]);
  if (error != 0) {
    pid_ = -1;
    reap({});
    throw std::runtime_error(fmt::format("cannot start a shell: {}", std::strerror(error)));
  }

  const std::string who = fmt::format("worker '{}'", first_line(command_));
  const auto until = std::chrono::steady_clock::now() + greeting_deadline;
  std::optional<std::string> line;
  bool open = true;
  while (!line && open && std::chrono::steady_clock::now() < until) {
    pollfd fd{socket_, POLLIN, 0};
    if (::poll(&fd, 1, 250) > 0) open = receive_available(socket_, inbox_);
    line = take_line(inbox_);
  }
  if (!line) {
    const std::string said = first_line(last_words());
    const CauseOfDeath cause = reap(open ? std::chrono::milliseconds(0) : ending);
    throw device::DeviceError(
        open ? fmt::format("{}: gave no greeting within {} s", who, greeting_deadline.count())
             : fmt::format("{}: ended before its greeting: {}{}{}", who, cause.detail,
                           said.empty() ? "" : "; it said: ", said));
  }
  try {
    hello_ = parse_hello(*line, who);
  } catch (...) {
    reap(ending);
    throw;
  }
}

const Hello& WorkerProcess::hello() {
  if (pid_ <= 0) start();
  return *hello_;
}

std::string WorkerProcess::last_words() const {
  struct stat status{};
  if (words_ < 0 || ::fstat(words_, &status) != 0) return {};
  const off_t from = std::max<off_t>(0, status.st_size - last_words_bytes);
  std::string text(static_cast<std::size_t>(status.st_size - from), '\0');
  const ssize_t n = ::pread(words_, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

CauseOfDeath WorkerProcess::reap(std::chrono::milliseconds patience) {
  const std::string said = last_words();
  if (socket_ >= 0) ::close(socket_);
  if (words_ >= 0) ::close(words_);
  socket_ = words_ = -1;
  CauseOfDeath cause;
  if (pid_ <= 0) return cause;
  const auto until = std::chrono::steady_clock::now() + patience;
  int status = 0;
  pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  while (ended == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended = ::waitpid(pid_, &status, WNOHANG);
  }
  if (ended == pid_) {
    cause = cause_of_death(status, said);
  } else {
    cause = {false, "worker fell silent", "the worker process closed its stdout and lived on"};
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return cause;
}

WorkerProcess::Answer WorkerProcess::run(const std::string& op, const std::string& inputs,
                                         const std::string& outputs) {
  hello();
  if (words_ >= 0) (void)::ftruncate(words_, 0);
  const std::uint64_t id = ++asked_;
  send_line(socket_, Json{{"id", id}, {"op", op}, {"inputs", inputs}, {"outputs", outputs}}.dump());
  const std::optional<std::string> line = receive_line(socket_, inbox_);
  if (!line) {
    const std::string said = last_words();
    CauseOfDeath cause = reap(ending);
    if (cause.from_outside) ::kill(::getpid(), SIGKILL);
    if (cause.detail.find("it said") == std::string::npos && !said.empty()) {
      const std::string trimmed = said.substr(0, said.find_last_not_of(" \n") + 1);
      cause.detail += "; the last it said: " + first_line(trimmed.substr(trimmed.rfind('\n') + 1));
    }
    return {Answer::Kind::died, cause.diagnosis, cause.detail};
  }
  const Json reply = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  const auto says = [&](const char* key) { return reply.contains(key) && reply.at(key).is_string(); };
  if (reply.is_object() && reply.contains("id") && reply.at("id") == id) {
    if (reply.contains("ok") && reply.at("ok") == true) return {};
    if (says("unsupported"))
      return {Answer::Kind::unsupported, "", first_line(reply.at("unsupported").get<std::string>())};
    if (says("error"))
      return {Answer::Kind::error, first_line(reply.at("error").get<std::string>()),
              says("detail") ? first_line(reply.at("detail").get<std::string>()) : ""};
  }
  reap({});
  return {Answer::Kind::nonsense, "", first_line(*line)};
}

}  // namespace attest::fuzz::exchange
