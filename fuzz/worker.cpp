// SPDX-License-Identifier: MIT
#include "fuzz/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "device/kernel.h"
#include "fuzz/record.h"

extern char** environ;

namespace attest::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

bool send_line(int socket, std::string text) {
  text += '\n';
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

/// Blocks for one line; nullopt when the other side is gone.
std::optional<std::string> receive_line(int socket, std::string& inbox) {
  for (;;) {
    if (const auto end = inbox.find('\n'); end != std::string::npos) {
      std::string line = inbox.substr(0, end);
      inbox.erase(0, end + 1);
      return line;
    }
    char buffer[65536];
    const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    inbox.append(buffer, static_cast<std::size_t>(n));
  }
}

Evaluation lost(oracle::VerdictKind kind, std::string diagnosis, std::string detail) {
  Evaluation e;
  e.verdict.kind = kind;
  e.verdict.stage = "worker";
  e.verdict.diagnosis = std::move(diagnosis);
  e.verdict.detail = std::move(detail);
  return e;
}

}  // namespace

int serve(int socket, const std::string& device_kind, int ordinal) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::unique_ptr<device::Device> device;
  try {
    device = device::open_device(device_kind, ordinal);
  } catch (const device::DeviceUnavailable& error) {
    send_line(socket, Json{{"hello", record_schema}, {"error", error.what()}, {"exit", 3}}.dump());
    return 3;
  } catch (const std::exception& error) {
    send_line(socket, Json{{"hello", record_schema}, {"error", error.what()}, {"exit", 2}}.dump());
    return 2;
  }
  if (!send_line(socket, Json{{"hello", record_schema}}.dump())) return 4;

  std::string inbox;
  while (const auto line = receive_line(socket, inbox)) {
    Evaluation evaluation;
    try {
      const Json request = Json::parse(*line);
      const auto kernel_name = request.at("kernel").get<std::string>();
      const device::Kernel* kernel = device::find_kernel(kernel_name);
      if (kernel == nullptr) throw std::runtime_error("no kernel " + kernel_name);
      evaluation = evaluate(*device, *kernel, cases::parse_case(request.at("case").dump()));
    } catch (const device::DeviceError& error) {
      send_line(socket, Json{{"fatal", error.what()}, {"exit", 2}}.dump());
      return 2;
    } catch (const std::exception& error) {
      evaluation = lost(oracle::VerdictKind::harness_error, "bad request", error.what());
    }
    if (!send_line(socket, to_json(evaluation).dump())) return 4;
  }
  return 0;
}

Pool::Pool(PoolOptions options) : options_(std::move(options)) {
  workers_.resize(static_cast<std::size_t>(std::max(1, options_.jobs)));
  try {
    for (std::size_t i = 0; i < workers_.size(); ++i) start(workers_[i], static_cast<int>(i));
  } catch (...) {
    for (Worker& worker : workers_) stop(worker, true);
    throw;
  }
}

Pool::~Pool() {
  for (Worker& worker : workers_) stop(worker, worker.task.has_value());
}

void Pool::start(Worker& worker, int ordinal) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw PoolError(fmt::format("cannot make a worker's socket: {}", std::strerror(errno)), 4);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (pair[1] == 3)  // dup2 onto itself would keep close-on-exec
    ::fcntl(3, F_SETFD, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);  // a chatty HIP runtime must not write into our results
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<std::string> words = options_.command;
  words.push_back(options_.device);
  words.push_back(std::to_string(ordinal));
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&worker.pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(pair[1]);
  worker.socket = pair[0];
  worker.inbox.clear();
  worker.task.reset();
  if (error != 0) {
    worker.pid = -1;
    throw PoolError(fmt::format("cannot start a worker ({}): {}", words[0], std::strerror(error)), 4);
  }

  const auto hello = receive_line(worker.socket, worker.inbox);
  if (!hello) throw PoolError(fmt::format("a worker died before its greeting: {}", reap(worker)), 4);
  const Json greeting = Json::parse(*hello, nullptr, false);
  if (!greeting.is_object() || greeting.value("hello", 0) != record_schema)
    throw PoolError("a worker speaks another protocol version; is it another build of attest?", 4);
  if (greeting.contains("error"))
    throw PoolError(greeting.at("error").get<std::string>(), greeting.value("exit", 4));
}

std::string Pool::reap(Worker& worker) {
  if (worker.socket >= 0) ::close(worker.socket);
  worker.socket = -1;
  std::string how = "unknown";
  if (worker.pid > 0) {
    ::kill(-worker.pid, SIGKILL);
    int status = 0;
    while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) how = fmt::format("killed by SIG{}", ::sigabbrev_np(WTERMSIG(status)));
    if (WIFEXITED(status)) how = fmt::format("exited with {}", WEXITSTATUS(status));
  }
  worker.pid = -1;
  return how;
}

void Pool::stop(Worker& worker, bool force) {
  if (worker.pid <= 0) return;
  if (force) ::kill(-worker.pid, SIGKILL);
  if (worker.socket >= 0) ::close(worker.socket);  // an idle worker ends when its socket closes
  worker.socket = -1;
  while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  worker.pid = -1;
}

void Pool::run(const std::function<std::optional<Task>()>& next,
               const std::function<bool(std::size_t, Evaluation)>& done, const std::function<void()>& tick) {
  std::map<std::size_t, Evaluation> ready;  // finished out of order
  std::size_t given = 0, delivered = 0;
  bool asking = true, delivering = true;

  const auto deliver = [&] {
    for (auto it = ready.find(delivered); it != ready.end(); it = ready.find(delivered)) {
      Evaluation evaluation = std::move(it->second);
      ready.erase(it);
      const std::size_t index = delivered++;
      if (delivering && !done(index, std::move(evaluation))) asking = delivering = false;
    }
  };
  const auto finish = [&](Worker& worker, Evaluation evaluation) {
    ready.emplace(*worker.task, std::move(evaluation));
    worker.task.reset();
  };

  for (;;) {
    for (std::size_t i = 0; i < workers_.size() && asking; ++i) {
      Worker& worker = workers_[i];
      if (worker.task) continue;
      auto task = next();
      if (!task) {
        asking = false;
        break;
      }
      const std::string line = Json{{"kernel", task->kernel}, {"case", to_json(task->c)}}.dump();
      if (worker.pid <= 0 || !send_line(worker.socket, line)) {  // died while idle: not this case's fault
        reap(worker);
        start(worker, static_cast<int>(i));
        if (!send_line(worker.socket, line)) throw PoolError("a fresh worker does not listen", 4);
      }
      worker.task = given++;
      worker.deadline = Clock::now() + options_.deadline;
    }
    if (!asking && delivered == given) return;

    std::vector<pollfd> fds;
    std::vector<std::size_t> owner;
    auto wake = Clock::now() + std::chrono::milliseconds(250);
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].task) {
        fds.push_back({workers_[i].socket, POLLIN, 0});
        owner.push_back(i);
        wake = std::min(wake, workers_[i].deadline);
      }
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(wake - Clock::now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<long>(0, wait + 1)));

    for (std::size_t k = 0; k < fds.size(); ++k) {
      Worker& worker = workers_[owner[k]];
      if (fds[k].revents != 0) {
        const auto line = receive_line(worker.socket, worker.inbox);
        std::optional<Evaluation> evaluation;
        if (line) {
          const Json answer = Json::parse(*line, nullptr, false);
          if (answer.is_object() && answer.contains("fatal"))
            throw PoolError(answer.at("fatal").get<std::string>(), answer.value("exit", 4));
          try {
            evaluation = evaluation_from_json(answer);
          } catch (const std::exception& error) {
            evaluation = lost(oracle::VerdictKind::harness_error, "bad answer", error.what());
          }
        } else {
          const std::string how = reap(worker);
          evaluation = lost(oracle::VerdictKind::crash, "worker " + how, "the worker process " + how);
        }
        finish(worker, std::move(*evaluation));
      } else if (Clock::now() >= worker.deadline) {
        reap(worker);
        finish(worker, lost(oracle::VerdictKind::timeout, "deadline",
                            fmt::format("no answer within {} s", options_.deadline.count() / 1000)));
      }
      if (worker.pid <= 0) start(worker, static_cast<int>(owner[k]));
    }
    deliver();
    if (tick) tick();
  }
}

}  // namespace attest::fuzz
