// SPDX-License-Identifier: MIT
//
// Reading the JSON files that people edit: what is spelled wrong is refused by name, never ignored.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "fuzz/record.h"

namespace attest::fuzz {

/// The file as a JSON object with "schema": 1. Throws UsageError: cannot be opened, not JSON, another schema.
Json read_json_object(const std::string& path);

/// Throws UsageError, beginning with `where`, when `json` is no object, has a member that is not of
/// `required` or `optional`, or lacks one of `required`.
void check_members(const Json& json, const std::string& where,
                   std::initializer_list<std::string_view> required,
                   std::initializer_list<std::string_view> optional = {});

/// Throws UsageError when it is no string.
std::string string_member(const Json& json, const std::string& where, const char* name,
                          const std::string& otherwise = "");

}  // namespace attest::fuzz
