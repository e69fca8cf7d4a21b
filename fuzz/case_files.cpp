// SPDX-License-Identifier: MIT
#include "fuzz/case_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "device/kernel.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz {

std::vector<std::string> json_files(const std::vector<std::string>& words) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code error;
    if (fs::is_directory(word, error)) {
      std::vector<std::string> inside;
      for (const auto& entry : fs::recursive_directory_iterator(word))
        if (entry.is_regular_file() && entry.path().extension() == ".json")
          inside.push_back(entry.path().string());
      std::sort(inside.begin(), inside.end());
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (fs::exists(word, error)) {
      files.push_back(word);
    } else {
      throw UsageError(fmt::format("{}: there is no such case file or folder", word));
    }
  }
  return files;
}

std::vector<FileCase> file_cases(const std::string& source, const std::vector<std::string>& words,
                                 const std::vector<std::string>& kernels) {
  std::vector<FileCase> found;
  for (const std::string& file : json_files(words)) {
    const Reproduction r = read_reproduction(file);
    for (const std::string& kernel : kernels) {
      const device::Kernel* k = device::find_kernel(kernel);
      const bool runs = r.kernel.empty()
                            ? k != nullptr && k->op() == cases::op_name(r.c.problem)
                            : kernel == r.kernel || kernel == r.kernel.substr(0, r.kernel.find('+'));
      if (runs)
        found.push_back({.source = source,
                         .file = file,
                         .kernel = kernel,
                         .c = r.c,
                         .detectors = own_choice(r.detectors),
                         .schedule = own_choice(r.schedule)});
    }
  }
  return found;
}

}  // namespace attest::fuzz
