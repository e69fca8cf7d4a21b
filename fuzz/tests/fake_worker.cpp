// SPDX-License-Identifier: MIT
//
// A worker that speaks the protocol of fuzz/worker.h and has no device: the kernel's name says how it
// misbehaves.
//
//   pass        answers pass
//   ladder      has a branch behind each of six conditions on the case that must hold together, and fails
//               with "bug at the top" when all do
//   slow        answers pass, the later the smaller the first request's kv_len
//   two_bugs    fails with "bug A" when some q_len is no power of two, else with "bug B" when some kv_len >
//   100 coin        fails in every second call crash, mute, hang, garbage   dies by a signal, exits, never
//   answers, answers nonsense gpu_fault   says what the ROCm runtime says and aborts bloat       takes memory
//   until it is killed killed      is killed with SIGKILL each time killed_once the first time only: when the
//   file $FAKE_WORKER_ONCE is there, which it removes
//
// Started as `fake_worker <device> <ordinal>`; the device "none" greets with an error, and so does every
// device while the file $FAKE_WORKER_SICK is there.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cases/case.h"
#include "fuzz/record.h"

namespace {

using namespace attest;

void send_line(const std::string& text) {
  const std::string line = text + "\n";
  if (::send(3, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) ::_exit(1);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fuzz::Evaluation failing(const std::string& diagnosis) {
  fuzz::Evaluation e;
  e.verdict.kind = oracle::VerdictKind::fail;
  e.verdict.stage = "element";
  e.verdict.diagnosis = diagnosis;
  e.output_digest = "0123456789abcdef";
  return e;
}

fuzz::Evaluation answer(const std::string& kernel, const cases::Case& c) {
  static int calls = 0;
  ++calls;
  const auto& problem = std::get<cases::MlaDecode>(c.problem);
  if (kernel == "crash") std::raise(SIGSEGV);
  if (kernel == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (kernel == "mute") ::_exit(7);
  if (kernel == "killed" || (kernel == "killed_once" && ::unlink(variable("FAKE_WORKER_ONCE").c_str()) == 0))
    std::raise(SIGKILL);
  if (kernel == "gpu_fault") {
    std::fputs(
        "Memory access fault by GPU node-1 (Agent handle: 0x55d0c0) on address 0x7f5a00000000. Reason: Page "
        "not "
        "present or supervisor privilege.\n",
        stderr);
    std::abort();
  }
  if (kernel == "bloat") {
    std::vector<std::vector<char>> held;
    for (;;) {
      held.emplace_back(std::size_t{8} << 20U, 'x');
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  if (kernel == "coin" && calls % 2 == 1) return failing("heads");
  if (kernel == "slow")
    std::this_thread::sleep_for(std::chrono::milliseconds(20 - std::min(20, problem.requests[0].kv_len)));
  if (kernel == "ladder") {
    std::this_thread::sleep_for(std::chrono::microseconds(c.seed % 3 * 500));
    const bool rungs[] = {!problem.causal,
                          !problem.return_lse,
                          problem.num_splits == 2,
                          problem.requests.size() == 3,
                          c.memory.placement == cases::Placement::shuffled,
                          problem.heads == 16};
    fuzz::Evaluation e;
    std::string ways(std::size(rungs), '0');
    std::size_t height = 0;
    while (height < std::size(rungs) && rungs[height]) ways[height++] = '2';
    if (height == std::size(rungs))
      e = failing("bug at the top");
    else
      ways[height] = '1';
    e.branches["ladder"] = ways;
    return e;
  }
  if (kernel == "two_bugs") {
    for (const auto& r : problem.requests)
      if ((r.q_len & (r.q_len - 1)) != 0) return failing("bug A");
    for (const auto& r : problem.requests)
      if (r.kv_len > 100) return failing("bug B");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): a worker that dies is what it is for
  if (argc != 3) return 2;
  const bool sick = ::access(variable("FAKE_WORKER_SICK").c_str(), F_OK) == 0;
  if (sick || std::string(argv[1]) == "none") {
    const char* why =
        sick ? "the health probe reads back other bytes than it wrote" : "none: there is no such device";
    send_line(fuzz::Json{{"hello", fuzz::record_schema}, {"error", why}, {"exit", 3}}.dump());
    return 3;
  }
  send_line(fuzz::Json{{"hello", fuzz::record_schema}}.dump());
  std::string inbox;
  char buffer[65536];
  for (ssize_t n; (n = ::recv(3, buffer, sizeof buffer, 0)) > 0;) {
    inbox.append(buffer, static_cast<std::size_t>(n));
    for (auto end = inbox.find('\n'); end != std::string::npos; end = inbox.find('\n')) {
      const auto request = fuzz::Json::parse(inbox.substr(0, end));
      inbox.erase(0, end + 1);
      const auto kernel = request.at("kernel").get<std::string>();
      if (kernel == "garbage")
        send_line("{\"verdict\": 12");
      else
        send_line(fuzz::to_json(answer(kernel, cases::parse_case(request.at("case").dump()))).dump());
    }
  }
  return 0;
}
