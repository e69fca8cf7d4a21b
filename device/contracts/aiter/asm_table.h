// SPDX-License-Identifier: MIT
//
// AITER's registry of hand-written MLA kernels: hsa/<arch>/mla/mla_asm.csv, one kernel a row.
//
//   qType,kvType,Gqa,ps,qSeqLen,prefill,causal,lse,knl_name,co_name
//   bf16,bf16,16,0,4,0,1,0,_ZN5aiter39mla_a16w16_qh16_m16x4_n16x1_coex0_mask1E,mla_a16w16_qh16_m16x4_n16x1_coex0_mask1.co
//
// Columns are found by name; columns we do not know are ignored, as AITER adds some with time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attest::device::aiter {

struct AsmRow {
  std::string q_type, kv_type;  ///< "bf16", "fp8", "byte"
  int gqa = 0;                  ///< query heads per KV head the row is registered for
  bool persistent = false;      ///< column ps
  int q_len = 0;                ///< column qSeqLen; 0 = any
  bool prefill = false, causal = false, lse = false;
  std::string symbol;  ///< mangled kernel name
  std::string object;  ///< file name of the code object, relative to the table's folder
  /// Of our own tables (device/kernels/aiter_block/): the planted fault and what it imitates, in the optional
  /// columns `fault` and `imitates`. Dispatch passes over a row with a fault.
  std::string fault, imitates;

  /// The kernel's name without mangling and file ending: "mla_a16w16_qh16_m16x4_n16x1_coex0_mask1".
  [[nodiscard]] std::string base_name() const;
};

/// Throws DeviceError with file, line and column name when the table is not one.
std::vector<AsmRow> parse_asm_table(std::string_view csv, const std::string& file_name);

/// `hsa` is the folder that holds gfx942/mla/mla_asm.csv. Throws DeviceError when there is no such table.
std::vector<AsmRow> read_asm_table(const std::filesystem::path& hsa, const std::string& arch);

}  // namespace attest::device::aiter
