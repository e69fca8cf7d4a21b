// SPDX-License-Identifier: MIT
#include "fuzz/exchange/worker_option.h"

namespace attest::fuzz::exchange {

std::string worker_option(const std::string& command) {
  if (command.empty()) return {};
  std::string option = " --worker '";
  for (const char c : command) {
    if (c == '\'')
      option += R"('\'')";
    else
      option += c;
  }
  return option + "'";
}

}  // namespace attest::fuzz::exchange
