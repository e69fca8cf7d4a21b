// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

namespace attest::fuzz::exchange {

/// A folder for files on their way to another program, gone with the object. In $TMPDIR, else /tmp.
class ScratchFolder {
 public:
  /// Throws device::DeviceError when it cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace attest::fuzz::exchange
