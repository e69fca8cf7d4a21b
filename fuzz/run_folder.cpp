// SPDX-License-Identifier: MIT
#include "fuzz/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace attest::fuzz {
namespace {

/// False, errno set, when not all of it could be written.
bool write_all(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    written += static_cast<std::size_t>(n);
  }
  return true;
}

off_t size_of(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? status.st_size : 0;
}

/// Length of the file up to its last newline.
off_t whole_lines(int fd) {
  off_t end = size_of(fd);
  for (char c = 0; end > 0; --end)
    if (::pread(fd, &c, 1, end - 1) != 1 || c == '\n') break;
  return end;
}

}  // namespace

RunFolder::RunFolder(const std::string& path, Open how) : path_(path) {
  const std::string events = path + "/events.jsonl";
  if (how == Open::fresh) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path) / "failures", error);
    if (error)
      throw RunFolderError(
          fmt::format("{}: cannot make the run folder: {}; choose another --out", path, error.message()), 2);
    events_ = ::open(events.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (events_ < 0 && errno == EEXIST)
      throw RunFolderError(
          fmt::format("{}: already holds a run; choose another --out, remove it, or --resume it", path), 2);
    if (events_ < 0)
      throw RunFolderError(
          fmt::format("{}: cannot be made: {}; choose another --out", events, std::strerror(errno)), 2);
  } else {
    events_ = ::open(events.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
    if (events_ < 0)
      throw RunFolderError(
          fmt::format("{}: cannot be opened: {}; name the folder of a run", events, std::strerror(errno)), 2);
  }
  if (::flock(events_, LOCK_EX | LOCK_NB) != 0) {
    ::close(events_);
    throw RunFolderError(fmt::format("{}: another attest is writing to it", path), 2);
  }
  if (how == Open::resume) {
    const off_t whole = whole_lines(events_);
    if (whole != size_of(events_) && ::ftruncate(events_, whole) != 0) {
      const std::string why = std::strerror(errno);
      ::close(events_);
      throw RunFolderError(fmt::format("{}: cannot be written: {}", events, why), 2);
    }
  }
}

RunFolder::~RunFolder() {
  if (events_ >= 0) ::close(events_);
}

void RunFolder::append(const std::vector<Json>& events) {
  std::string lines;
  for (const Json& event : events) lines += event.dump() + "\n";
  const off_t before = size_of(events_);
  if (!write_all(events_, lines)) {
    const std::string why = std::strerror(errno);
    const bool cut = ::ftruncate(events_, before) == 0;
    throw RunFolderError(
        fmt::format("{}/events.jsonl: cannot be written: {}; {}", path_, why,
                    cut ? "what was written before is valid, attest fuzz --resume goes on from there"
                        : "its last line may be broken, attest fuzz --resume cuts it off"),
        4);
  }
}

void RunFolder::flush() {
  if (::fdatasync(events_) != 0)
    throw RunFolderError(fmt::format("{}/events.jsonl: cannot be flushed: {}", path_, std::strerror(errno)),
                         4);
}

void RunFolder::write(const std::string& relative, const Json& json) {
  write_whole_file(path_ + "/" + relative, json.dump(2) + "\n");
}

void write_whole_file(const std::string& path, const std::string& text) {
  const std::string beside = path + ".new";
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw RunFolderError(fmt::format("{}: cannot be made: {}", beside, std::strerror(errno)), 4);
  const bool written = write_all(fd, text) && ::fdatasync(fd) == 0;
  int error = written ? 0 : errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(beside.c_str());
    throw RunFolderError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)), 4);
  }
}

void read_events(const std::string& run_folder, const std::function<void(const Json&)>& event) {
  const std::string path = run_folder + "/events.jsonl";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RunFolderError(fmt::format("{}: cannot be opened; name the folder of a run", path), 2);
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // no newline: not written whole
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("event"))
      throw RunFolderError(
          fmt::format("{}: line {} is no event; the file was changed or damaged", path, number), 2);
    event(json);
  }
  if (number == 0) throw RunFolderError(fmt::format("{}: is empty; start a new run", path), 2);
}

std::string next_run_path() {
  for (int n = 1;; ++n) {
    std::string path = fmt::format("attest-runs/{:04}", n);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace attest::fuzz
