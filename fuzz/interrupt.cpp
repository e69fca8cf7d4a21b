// SPDX-License-Identifier: MIT
#include "fuzz/interrupt.h"

#include <csignal>

namespace attest::fuzz {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int signal) {
  noted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

bool interrupted() {
  return noted != 0;
}

}  // namespace attest::fuzz
