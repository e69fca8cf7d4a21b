// SPDX-License-Identifier: MIT
#include "fuzz/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace attest::fuzz {
namespace {

void write_all(int fd, const std::string& text, const std::string& path) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw RunFolderError(fmt::format("{}: cannot be written: {}; what was written before is valid", path,
                                       std::strerror(errno)),
                           4);
    written += static_cast<std::size_t>(n);
  }
}

}  // namespace

RunFolder::RunFolder(const std::string& path) : path_(path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path) / "failures", error);
  if (error)
    throw RunFolderError(
        fmt::format("{}: cannot make the run folder: {}; choose another --out", path, error.message()), 2);
  const std::string events = path + "/events.jsonl";
  events_ = ::open(events.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (events_ < 0) {
    if (errno == EEXIST)
      throw RunFolderError(fmt::format("{}: already holds a run; choose another --out or remove it", path),
                           2);
    throw RunFolderError(
        fmt::format("{}: cannot be made: {}; choose another --out", events, std::strerror(errno)), 2);
  }
}

RunFolder::~RunFolder() {
  if (events_ >= 0) ::close(events_);
}

void RunFolder::append(const Json& event) {
  write_all(events_, event.dump() + "\n", path_ + "/events.jsonl");
}

void RunFolder::write(const std::string& relative, const Json& json) {
  const std::string target = path_ + "/" + relative, beside = target + ".new";
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw RunFolderError(fmt::format("{}: cannot be made: {}", beside, std::strerror(errno)), 4);
  try {
    write_all(fd, json.dump(2) + "\n", beside);
  } catch (...) {
    ::close(fd);
    throw;
  }
  if (::close(fd) != 0 || ::rename(beside.c_str(), target.c_str()) != 0)
    throw RunFolderError(fmt::format("{}: cannot be written: {}", target, std::strerror(errno)), 4);
}

std::string next_run_path() {
  for (int n = 1;; ++n) {
    std::string path = fmt::format("attest-runs/{:04}", n);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace attest::fuzz
