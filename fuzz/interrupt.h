// SPDX-License-Identifier: MIT
//
// SIGINT and SIGTERM: the first ends the run cleanly, between cases, so that it can be resumed; the second
// ends it at once. Schedulers send SIGTERM before they kill.
#pragma once

namespace attest::fuzz {

/// From here on the first signal is only noted.
void catch_interrupts();
bool interrupted();

}  // namespace attest::fuzz
