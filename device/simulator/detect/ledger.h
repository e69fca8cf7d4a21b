// SPDX-License-Identifier: MIT
//
// The fidelity ledger: what a run executed, and how far each operation's result can be trusted to be the
// hardware's (exec/fidelity.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

/// Counts into findings.executed.
std::unique_ptr<LaunchObserver> keep_ledger(const LaunchContext& launch);

/// [{"op", "count", "exactness": "exact" | "approximate" | "unverified" | "not modelled", "ulp", "reason"}],
/// least trusted first, then by count; ulp and reason only where they say something.
nlohmann::json ledger_json(const std::map<Op, std::uint64_t>& executed);

}  // namespace attest::device::sim::detect
