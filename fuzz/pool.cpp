// SPDX-License-Identifier: MIT
#include "fuzz/pool.h"

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
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>

#include "fuzz/socket_lines.h"
#include "fuzz/worker.h"

extern char** environ;

namespace attest::fuzz {
namespace {

/// Killed from outside so often over one case, a worker is taken to have died of the case. A killer that
/// knows nothing of cases, and strikes during one run of a long case with probability p, gets there with p^8:
/// one such case in 1500 at p = 0.4, where p^3 would be one in 16.
constexpr int most_losses = 8;

/// Opening a GPU and its runtime can take many seconds.
constexpr std::chrono::seconds greeting_deadline{120};

/// How long a process whose socket has closed may take to end.
constexpr std::chrono::milliseconds dying{2000};

/// What is read of a dead worker's stderr: its end.
constexpr off_t last_words_bytes = 8192;

/// Bytes in RAM of a process alone; 0 when it is gone.
std::uint64_t resident_bytes_alone(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/statm", pid);
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

/// Of a worker and of the program that it may have started (fuzz/exchange/worker_process.h).
std::uint64_t resident_bytes(pid_t pid) {
  std::uint64_t bytes = resident_bytes_alone(pid);
  const std::string path = fmt::format("/proc/{0}/task/{0}/children", pid);
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    for (int child = 0; std::fscanf(file, "%d", &child) == 1;) bytes += resident_bytes_alone(child);
    std::fclose(file);
  }
  return bytes;
}

std::string tail_of(int fd) {
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0) return {};
  const off_t from = std::max<off_t>(0, status.st_size - last_words_bytes);
  std::string text(static_cast<std::size_t>(status.st_size - from), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

class OneStream final : public Pool::Stream {
 public:
  OneStream(const std::function<std::optional<Pool::Task>()>& next,
            const std::function<bool(std::size_t, Evaluation)>& done)
      : next_(next), done_(done) {}
  std::optional<Pool::Task> next() override {
    if (stopped_) return std::nullopt;
    auto task = next_();
    if (!task) stopped_asking_ = true;
    return stopped_asking_ ? std::nullopt : std::move(task);
  }
  void take(std::size_t index, Evaluation evaluation) override {
    if (!stopped_ && !done_(index, std::move(evaluation))) stopped_ = true;
  }

 private:
  const std::function<std::optional<Pool::Task>()>& next_;
  const std::function<bool(std::size_t, Evaluation)>& done_;
  bool stopped_ = false, stopped_asking_ = false;
};

}  // namespace

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
  for (Worker& worker : workers_) stop(worker, worker.held.has_value());
}

void Pool::start(Worker& worker, int ordinal) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw PoolError(fmt::format("cannot make a worker's socket: {}", std::strerror(errno)), 4);
  worker.socket = pair[0];
  worker.words = ::memfd_create("attest-worker-stderr", MFD_CLOEXEC);
  if (worker.words >= 0) ::fcntl(worker.words, F_SETFL, O_APPEND);
  worker.inbox.clear();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (pair[1] == 3)  // dup2 onto itself would keep close-on-exec
    ::fcntl(3, F_SETFD, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (worker.words >= 0) posix_spawn_file_actions_adddup2(&actions, worker.words, 2);
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
  if (error != 0) {
    worker.pid = -1;
    throw PoolError(fmt::format("cannot start a worker ({}): {}", words[0], std::strerror(error)), 4);
  }

  std::optional<std::string> hello;
  const auto until = Clock::now() + greeting_deadline;
  bool open = true;
  while (!hello && open && Clock::now() < until) {
    pollfd fd{worker.socket, POLLIN, 0};
    if (::poll(&fd, 1, 250) > 0) open = receive_available(worker.socket, worker.inbox);
    hello = take_line(worker.inbox);
  }
  if (!hello) {
    const CauseOfDeath cause = reap(worker, open ? std::chrono::milliseconds(0) : dying);
    throw PoolError(open ? fmt::format("a worker gave no greeting within {} s", greeting_deadline.count())
                         : fmt::format("a worker died before its greeting: {}", cause.detail),
                    4);
  }
  const Json greeting = Json::parse(*hello, nullptr, false);
  if (!greeting.is_object() || greeting.value("hello", 0) != record_schema)
    throw PoolError("a worker speaks another protocol version; is it another build of attest?", 4);
  if (greeting.contains("error"))
    throw PoolError(greeting.at("error").get<std::string>(), greeting.value("exit", 4));
  if (device_.is_null()) device_ = greeting.value("device", Json());
}

/// A fresh worker in place of a lost one. The device may need a moment: a GPU resets, a driver recovers.
void Pool::restart(Worker& worker, int ordinal) {
  std::string why;
  for (int attempt = 0; attempt < options_.recovery_attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(options_.recovery_pause);
    reap(worker, {});
    try {
      start(worker, ordinal);
      return;
    } catch (const PoolError& error) {
      why = error.what();
      tell(worker, worker.pid, "no healthy worker", why, false);
    }
  }
  reap(worker, {});
  worker.given_up = true;
  if (std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.given_up; }))
    throw PoolError(fmt::format("the device does not recover: {}; what is done is kept", why), 4);
}

CauseOfDeath Pool::reap(Worker& worker, std::chrono::milliseconds patience) {
  const std::string last_words = tail_of(worker.words);
  if (worker.socket >= 0) ::close(worker.socket);
  if (worker.words >= 0) ::close(worker.words);
  worker.socket = worker.words = -1;
  CauseOfDeath cause;
  if (worker.pid > 0) {
    const auto ended = [&] {
      siginfo_t info{};
      return ::waitid(P_PID, static_cast<id_t>(worker.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             info.si_pid != 0;
    };
    // The status must be its own: a dying process gets the time to die before its group is killed.
    const auto until = Clock::now() + patience;
    bool by_itself = ended();
    while (!by_itself && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      by_itself = ended();
    }
    ::kill(-worker.pid, SIGKILL);
    int status = 0;
    while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (by_itself)
      cause = cause_of_death(status, last_words);
    else
      cause = {false, "worker fell silent", "the worker process closed its socket and lived on"};
  }
  worker.pid = -1;
  return cause;
}

void Pool::stop(Worker& worker, bool force) {
  if (worker.pid <= 0) return;
  if (force) ::kill(-worker.pid, SIGKILL);
  if (worker.socket >= 0) ::close(worker.socket);  // an idle worker ends when its socket closes
  if (worker.words >= 0) ::close(worker.words);
  worker.socket = worker.words = -1;
  while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  worker.pid = -1;
}

void Pool::tell(const Worker& worker, pid_t pid, const std::string& diagnosis, const std::string& detail,
                bool rerun) {
  if (!told_) return;
  told_({{"ordinal", &worker - workers_.data()},
         {"pid", pid},
         {"diagnosis", diagnosis},
         {"detail", detail},
         {"kernel", worker.held ? Json(worker.held->kernel) : Json(nullptr)},
         {"rerun", rerun}});
}

void Pool::run(const std::function<std::optional<Task>()>& next,
               const std::function<bool(std::size_t, Evaluation)>& done, const std::function<void()>& tick) {
  OneStream stream(next, done);
  std::vector<Stream*> streams = {&stream};
  run(streams, tick);
}

void Pool::run(std::vector<Stream*>& streams, const std::function<void()>& tick) {
  struct Progress {
    std::size_t given = 0, taken = 0;
    std::map<std::size_t, Evaluation> ready;  // finished out of order
  };
  std::vector<Progress> progress;
  std::deque<Held> again;  // lost with their worker
  std::size_t turn = 0, under_way = 0;

  const auto ask = [&]() -> std::optional<Held> {
    if (!again.empty()) {
      Held held = std::move(again.front());
      again.pop_front();
      return held;
    }
    progress.resize(streams.size());
    for (std::size_t tried = 0; tried < streams.size(); ++tried) {
      const std::size_t s = turn++ % streams.size();
      if (auto task = streams[s]->next()) {
        ++under_way;
        const std::string& detectors = task->detectors.empty() ? options_.detectors : task->detectors;
        const std::string& schedule = task->schedule.empty() ? options_.schedule : task->schedule;
        Json line = {{"kernel", task->kernel},
                     {"case", to_json(task->c)},
                     {"detectors", detectors},
                     {"schedule", schedule}};
        if (!task->capture.empty()) line["capture"] = task->capture;
        return Held{.stream = s, .index = progress[s].given++, .kernel = task->kernel, .line = line.dump()};
      }
    }
    return std::nullopt;
  };
  const auto finish = [&](Worker& worker, Evaluation evaluation) {
    const Held held = std::move(*worker.held);
    worker.held.reset();
    Progress& p = progress[held.stream];
    p.ready.emplace(held.index, std::move(evaluation));
    for (auto it = p.ready.find(p.taken); it != p.ready.end(); it = p.ready.find(p.taken)) {
      Evaluation e = std::move(it->second);
      p.ready.erase(it);
      --under_way;
      streams[held.stream]->take(p.taken++, std::move(e));
    }
  };
  /// The worker is gone with its case.
  const auto bury = [&](Worker& worker, const CauseOfDeath& cause, pid_t pid) {
    const bool rerun = cause.from_outside && ++worker.held->lost < most_losses;
    tell(worker, pid, cause.diagnosis, cause.detail, rerun);
    if (rerun) {
      again.push_back(std::move(*worker.held));
      worker.held.reset();
    } else {
      finish(worker, lost(oracle::VerdictKind::crash, cause.diagnosis, cause.detail));
    }
  };

  auto next_census = Clock::now();
  for (;;) {
    bool asked_all = false;
    for (std::size_t i = 0; i < workers_.size() && !asked_all; ++i) {
      Worker& worker = workers_[i];
      if (worker.held || worker.given_up) continue;
      auto held = ask();
      if (!held) {
        asked_all = true;
        break;
      }
      if (worker.words >= 0) (void)::ftruncate(worker.words, 0);
      if (worker.pid <= 0 ||
          !send_line(worker.socket, held->line)) {  // died while idle: not this case's fault
        const pid_t pid = worker.pid;
        if (pid > 0) {
          const CauseOfDeath cause = reap(worker, dying);
          tell(worker, pid, cause.diagnosis, "while idle: " + cause.detail, false);
        }
        restart(worker, static_cast<int>(i));
        if (worker.given_up || !send_line(worker.socket, held->line)) {
          again.push_back(std::move(*held));
          continue;
        }
      }
      worker.held = std::move(held);
      worker.deadline = Clock::now() + options_.deadline;
    }
    if (under_way == 0) return;

    std::vector<pollfd> fds;
    std::vector<std::size_t> owner;
    const auto now = Clock::now();
    auto wake = now + std::chrono::milliseconds(options_.memory_bytes > 0 ? 50 : 250);
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].held) {
        fds.push_back({workers_[i].socket, POLLIN, 0});
        owner.push_back(i);
        wake = std::min(wake, workers_[i].deadline);
      }
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(wake - now).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<long>(0, wait + 1)));
    const bool census = options_.memory_bytes > 0 && Clock::now() >= next_census;
    if (census) next_census = Clock::now() + std::chrono::milliseconds(50);

    for (std::size_t k = 0; k < fds.size(); ++k) {
      Worker& worker = workers_[owner[k]];
      if (fds[k].revents != 0) {
        const bool open = receive_available(worker.socket, worker.inbox);
        if (const auto line = take_line(worker.inbox)) {
          const Json answer = Json::parse(*line, nullptr, false);
          if (answer.is_object() && answer.contains("fatal"))
            throw PoolError(answer.at("fatal").get<std::string>(), answer.value("exit", 4));
          Evaluation evaluation;
          try {
            evaluation = evaluation_from_json(answer);
          } catch (const std::exception& error) {
            evaluation = lost(oracle::VerdictKind::harness_error, "bad answer", error.what());
          }
          finish(worker, std::move(evaluation));
        } else if (!open) {
          const pid_t pid = worker.pid;
          bury(worker, reap(worker, dying), pid);
        }
      } else if (Clock::now() >= worker.deadline) {
        const pid_t pid = worker.pid;
        reap(worker, {});
        tell(worker, pid, "deadline", "killed at its deadline", false);
        finish(worker, lost(oracle::VerdictKind::timeout, "deadline",
                            fmt::format("no answer within {} s",
                                        std::chrono::duration<double>(options_.deadline).count())));
      } else if (census) {
        const std::uint64_t held = resident_bytes(worker.pid);
        if (held > options_.memory_bytes) {
          const pid_t pid = worker.pid;
          reap(worker, {});
          const std::string detail = fmt::format("the worker held {} MiB, its limit is {} MiB", held >> 20U,
                                                 options_.memory_bytes >> 20U);
          tell(worker, pid, "memory blow-up", detail, false);
          finish(worker, lost(oracle::VerdictKind::crash, "memory blow-up", detail));
        }
      }
      if (worker.pid <= 0 && !worker.given_up) restart(worker, static_cast<int>(owner[k]));
    }
    if (tick) tick();
  }
}

}  // namespace attest::fuzz
