// SPDX-License-Identifier: MIT
//
// The program as its users run it, for the tests of the exchange.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace attest::fuzz::exchange::testing {

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    char name[] = "/tmp/attest-test-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path + "/" + name; }
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct Ran {
  int code = -1;
  std::string out, err;
};

/// @param command as the shell takes it
inline Ran run(const std::string& command) {
  const TemporaryFolder folder;
  const int status =
      std::system((command + " >" + folder.file("out") + " 2>" + folder.file("err") + " </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder.file("out")),
          read_file(folder.file("err"))};
}

}  // namespace attest::fuzz::exchange::testing
