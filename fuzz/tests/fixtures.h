// SPDX-License-Identifier: MIT
//
// What tests of the command line and of run folders stand on: a folder that goes away, whole files, and the
// program as its users run it.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace attest::fuzz::testing {

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

/// Empty when there is none.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Makes the folders above it.
inline void write_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Ran {
  int code = -1;
  std::string out, err;
};

/// @param command as the shell takes it, which may begin with variables of the environment
inline Ran run(const std::string& command) {
  const TemporaryFolder folder;
  const int status =
      std::system((command + " >" + folder.file("out") + " 2>" + folder.file("err") + " </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder.file("out")),
          read_file(folder.file("err"))};
}

#ifdef ATTEST_PROGRAM
inline Ran run_attest(const std::string& arguments, const std::string& environment = "") {
  return run(environment + " '" ATTEST_PROGRAM "' " + arguments);
}
#endif

}  // namespace attest::fuzz::testing
