// SPDX-License-Identifier: MIT
//
// Files and folders of cases, as a campaign runs them before its fresh ones.
//
//   a case file           runs on every kernel under test of its op
//   a failure file        its smallest case runs on its own kernel when that is under test; when that kernel
//                         carries a planted fault (attest/mla_decode+qlen_mask), on the one without it too
//   a folder              every *.json in it and below, in order of path
#pragma once

#include <string>
#include <vector>

#include "fuzz/campaign.h"

namespace attest::fuzz {

/// The *.json files that `words` name. Throws UsageError when one names nothing.
std::vector<std::string> json_files(const std::vector<std::string>& words);

/// The cases of those files for `kernels`, as above. Throws cases::CaseError with a line that names the file.
std::vector<FileCase> file_cases(const std::string& source, const std::vector<std::string>& words,
                                 const std::vector<std::string>& kernels);

}  // namespace attest::fuzz
