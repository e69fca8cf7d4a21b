// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <iostream>

#include "device/kernel.h"
#include "fuzz/record.h"
#include "fuzz/verbs.h"

namespace attest::fuzz {
namespace {

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

int verb_kernels(const Common& common) {
  const auto& all = device::kernels();
  if (common.json) {
    Json list = Json::array();
    for (const device::Kernel* k : all)
      list.push_back({{"name", k->name()},
                      {"op", k->op()},
                      {"arch", k->arch()},
                      {"contract", k->contract()},
                      {"fault", or_null(k->fault())},
                      {"imitates", or_null(k->imitates())},
                      {"precision", k->precision()},
                      {"supports", k->supports()}});
    std::cout << list.dump(2) << "\n";
  } else {
    for (const device::Kernel* k : all) {
      fmt::print("{:<40} {} {}  {}\n", k->name(), k->arch(), k->contract(), k->supports());
      if (!k->fault().empty()) fmt::print("{:<40} planted fault, imitates {}\n", "", k->imitates());
    }
  }
  if (all.empty()) {
    fmt::print(
        stderr,
        "attest: no kernels: no code objects beside the program; set ATTEST_KERNELS to their folder\n");
    return exit_nothing_tested;
  }
  return exit_ok;
}

int verb_devices(const Common& common) {
  Json list = Json::array();
  bool any = false;
  for (const char* kind : {"sim", "hip"}) {
    Json entry = {{"device", kind}};
    try {
      const auto device = device::open_device(kind, 0);
      entry["available"] = true;
      entry["arch"] = device->arch();
      any = true;
    } catch (const std::exception& error) {
      entry["available"] = false;
      entry["why"] = error.what();
    }
    if (!common.json)
      fmt::print("{:<4} {}\n", kind,
                 entry["available"].get<bool>() ? entry["arch"].get<std::string>()
                                                : "not available: " + entry["why"].get<std::string>());
    list.push_back(std::move(entry));
  }
  if (common.json) std::cout << list.dump(2) << "\n";
  return any ? exit_ok : exit_nothing_tested;
}

}  // namespace attest::fuzz
