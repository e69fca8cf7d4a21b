// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace attest::device::aiter {
namespace {

struct Key {
  int gqa, q_len;
  bool persistent;
};

const AsmRow* find_row(const std::vector<AsmRow>& table, const DecodeCall& call, const Key& key, bool causal,
                       bool lse) {
  for (const AsmRow& row : table)
    if (row.fault.empty() && row.q_type == call.q_type && row.kv_type == call.kv_type && row.gqa == key.gqa &&
        row.persistent == key.persistent && !row.prefill && row.causal == causal && row.lse == lse &&
        row.q_len == key.q_len)
      return &row;
  return nullptr;
}

int split_granularity(const DecodeCall& call) {
  const bool bf16 = call.q_type == "bf16" && call.kv_type == "bf16";
  const bool fp8 = call.q_type == "fp8" && call.kv_type == "fp8";
  if ((call.heads == 128 && fp8) || (call.heads == 64 && bf16 && call.max_q_len == 1)) return 32;
  if ((call.heads == 8 || call.heads == 16) && call.max_q_len == 1) return 64;
  if (call.heads == 8 && call.max_q_len == 2) return 64;
  return 16;
}

/// Head counts that the persistent path runs as they are on gfx942; others are folded into groups of 16.
bool persistent_native(const DecodeCall& call) {
  const bool fp8 = call.q_type == "fp8" && call.kv_type == "fp8";
  const bool bf16 = call.q_type == "bf16" && call.kv_type == "bf16";
  return call.heads == 16 || (call.heads == 128 && fp8) || (call.heads == 64 && fp8 && call.max_q_len == 1) ||
         (call.heads == 8 && bf16 && call.max_q_len == 2);
}

/// The host's numbers before it looks into the table, and the key that it looks for.
struct Choice {
  DecodeLaunch launch;
  Key key{};
};

std::variant<Choice, Refusal> choose(const DecodeCall& call) {
  Choice choice;
  DecodeLaunch& launch = choice.launch;
  int heads = call.heads;
  if (call.persistent && !persistent_native(call)) {
    if (heads < 32 || heads > 128 || heads % 16 != 0)
      return Refusal{fmt::format("mla_decode_fwd asserts: nhead={} and max_seqlen_q={} not supported", heads,
                                 call.max_q_len)};
    launch.fold = heads / 16;
    heads = 16;
  }

  const bool bf16_q = call.q_type == "bf16";
  const bool bf16 = bf16_q && call.kv_type == "bf16";
  const bool fp8 = call.q_type == "fp8" && call.kv_type == "fp8";
  Key& key = choice.key;
  key = {heads, call.max_q_len, call.persistent};
  launch.s_mqa = static_cast<std::uint32_t>(heads * call.max_q_len);
  const int q_len = call.max_q_len;
  if (heads == 128) {
    key.q_len = 0;
    if (bf16) key.persistent = false;
  } else if (heads == 16) {
    if (bf16_q) {
      if (call.persistent) {
        if (q_len <= 4) key.q_len = 4;
      } else if (bf16) {
        key.q_len = q_len == 1 ? 1 : q_len <= 4 ? 4 : 8;
        if (q_len == 1) launch.sub_q = 16;
      }
    } else if (q_len == 3 || q_len == 4) {
      key.q_len = 4;
      launch.sub_q = 64;
    } else if (q_len > 4) {
      return Refusal{"asm_mla.cu checks: gqa_ratio=16 fp8 needs qo_len <= 4 on gfx942"};
    }
  } else if (heads == 32) {
    if (bf16 && !call.persistent) {
      key.q_len = 0;
      launch.sub_q = 64;
    } else if (fp8) {
      if (q_len == 1)
        launch.sub_q = 32;
      else if (!(q_len == 2 && call.persistent))
        return Refusal{"asm_mla.cu checks: fp8 with gqa_ratio=32 is for q_len 1 or persistent mode"};
    }
  } else if (heads == 64) {
    if (bf16 && !call.persistent) {
      key.q_len = q_len == 1 ? 1 : 0;
      launch.sub_q = 64;
    } else if (fp8) {
      if (!call.persistent)
        return Refusal{"asm_mla.cu checks: fp8 with gqa_ratio=64 only supports persistent mode"};
      key.q_len = q_len == 1 ? 1 : 4;
    }
  } else if (heads == 8) {
    if (bf16 && !call.persistent && q_len <= 2) {
      launch.sub_q = heads * q_len;
      if (q_len == 2) launch.s_mqa = static_cast<std::uint32_t>(heads);
    } else if (fp8 && !call.persistent && q_len == 1) {
      launch.sub_q = 8;
    }
  }

  if (!call.persistent) {
    launch.split_granularity = split_granularity(call);
    launch.output_is_partial =
        call.num_kv_splits == 1 && (!bf16_q || q_len == 4 || (bf16 && heads == 32) || (bf16 && heads == 8));
    launch.may_copy_final = !((heads == 8 || heads == 16) && q_len == 1);
  }
  return choice;
}

}  // namespace

std::variant<DecodeLaunch, Refusal> dispatch_decode(const std::vector<AsmRow>& table,
                                                    const DecodeCall& call) {
  auto chosen = choose(call);
  if (auto* refusal = std::get_if<Refusal>(&chosen)) return std::move(*refusal);
  auto& [launch, key] = std::get<Choice>(chosen);
  const bool causal = call.causal || call.max_q_len == 1;
  const bool lse = call.return_lse && call.persistent;
  const AsmRow* row = find_row(table, call, key, causal, lse);
  if (row == nullptr)
    return Refusal{fmt::format(
        "asm_mla.cu: cannot find suitable kernel: no row for {}/{}, gqa {}, ps {}, q_len {}, causal {}, "
        "lse {} in mla_asm.csv",
        call.q_type, call.kv_type, key.gqa, static_cast<int>(key.persistent), key.q_len,
        static_cast<int>(causal), static_cast<int>(lse))};
  launch.row = *row;
  return std::move(launch);
}

std::variant<DecodeLaunch, Refusal> dispatch_by_hand(const AsmRow& row, const DecodeCall& call) {
  if (row.q_type != call.q_type || row.kv_type != call.kv_type || row.persistent != call.persistent ||
      row.prefill)
    return Refusal{fmt::format("the row is for {}/{}, ps {}, prefill {}", row.q_type, row.kv_type,
                               static_cast<int>(row.persistent), static_cast<int>(row.prefill))};
  auto chosen = choose(call);
  if (auto* refusal = std::get_if<Refusal>(&chosen)) return std::move(*refusal);
  DecodeLaunch& launch = std::get<Choice>(chosen).launch;
  launch.row = row;
  return std::move(launch);
}

int automatic_split_count(int batch, std::int64_t total_kv, int heads, int max_q_len, bool fp8_q,
                          int cu_count) {
  const double average = static_cast<double>(total_kv) / batch;
  int best = 1;
  double best_score = -1;
  for (int splits = 1; splits <= 16; ++splits) {
    const int groups = batch * splits;
    const int rounded = (groups + cu_count - 1) / cu_count * cu_count;
    const double score = static_cast<double>(groups) / rounded * average / (average + 84.1 * splits);
    if (score > best_score) {
      best_score = score;
      best = splits;
    }
  }
  if (!fp8_q) return best;
  static const std::map<int, int> block{{8, 64},  {16, 128}, {24, 128}, {32, 128}, {48, 64},
                                        {64, 64}, {128, 32}, {256, 32}, {384, 32}, {512, 32}};
  const auto it = block.find(heads * max_q_len);
  if (it == block.end()) return 0;
  const std::int64_t tokens = it->second;
  best = static_cast<int>(std::min<std::int64_t>(best, (total_kv + batch * tokens - 1) / (batch * tokens)));
  if (best > 1)
    best = std::min(
        best, static_cast<int>(std::floor(std::abs(average - max_q_len) / static_cast<double>(tokens))) + 1);
  return best;
}

}  // namespace attest::device::aiter
