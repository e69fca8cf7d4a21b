// SPDX-License-Identifier: MIT
//
// What the gate hands over, three times the same:
//
//   JUnit XML   one suite per kernel, one for the ledger, one for the support manifest; for CI systems.
//               https://github.com/testmoapp/junitxml describes what they read
//   JSON        {"schema": 1, "outcome", "exit_code", "commit", "seed", "device", "arch", "seconds",
//               "folder", "cells": [{"kernel", ..., "tested", "failed", "known", ...}],
//               "checks": [{"group", "what", "result", "outcome", "why", "seconds"}], "remarks": [...]}
//   Markdown    for a job's summary page
#pragma once

#include <string>

#include "fuzz/gate.h"

namespace attest::fuzz {

std::string junit_xml(const GateReport& report);
Json to_json(const GateReport& report);
std::string markdown(const GateReport& report);

}  // namespace attest::fuzz
