// SPDX-License-Identifier: MIT
#include "fuzz/exchange/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "device/kernel.h"

namespace attest::fuzz::exchange {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "attest-exchange-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr)
    throw device::DeviceError(fmt::format("no folder for tensors can be made as {}: {}; set TMPDIR", pattern,
                                          error ? error.message() : std::strerror(errno)));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace attest::fuzz::exchange
