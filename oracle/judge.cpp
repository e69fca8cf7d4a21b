// SPDX-License-Identifier: MIT
#include "oracle/judge.h"

#include <fmt/format.h>

#include "oracle/dense_switch_judge.h"
#include "oracle/merge_judge.h"
#include "oracle/mla_judge.h"
#include "oracle/plans/block_table_judge.h"
#include "oracle/plans/spec_verify_judge.h"
#include "oracle/plans/work_plan_judge.h"
#include "oracle/prefill_judge.h"
#include "oracle/sparse/cache_write_judge.h"
#include "oracle/sparse/index_remap_judge.h"
#include "oracle/sparse/indexer_judge.h"
#include "oracle/sparse/topk_judge.h"

namespace attest::oracle {

Verdict judge(const cases::Case& c, const cases::Inputs& inputs, const cases::Outputs& outputs,
              const PrecisionProfile& profile, JudgeCost* cost) {
  if (!outputs.guard_damage.empty()) {
    Verdict verdict;
    verdict.kind = VerdictKind::fail;
    verdict.stage = "guard";
    verdict.diagnosis = "wrote outside its buffers";
    verdict.detail = outputs.guard_damage.front();
    if (outputs.guard_damage.size() > 1)
      verdict.detail += fmt::format(" and {} more", outputs.guard_damage.size() - 1);
    return verdict;
  }
  struct Judges {
    Verdict operator()(const cases::MlaDecode&) const { return judge_mla(c, inputs, outputs, profile, cost); }
    Verdict operator()(const cases::SpecVerify&) const { return judge_spec_verify(c, inputs, outputs); }
    Verdict operator()(const cases::WorkPlan&) const { return judge_work_plan(c, inputs, outputs); }
    Verdict operator()(const cases::MlaSparse&) const { return judge_mla(c, inputs, outputs, profile, cost); }
    Verdict operator()(const cases::DenseSwitch&) const {
      return judge_dense_switch(c, inputs, outputs, profile);
    }
    Verdict operator()(const cases::BlockTableExpand&) const {
      return judge_block_table_expand(c, inputs, outputs);
    }
    Verdict operator()(const cases::MlaPrefill&) const {
      return judge_mla_prefill(c, inputs, outputs, profile);
    }
    Verdict operator()(const cases::VerifyAttention&) const {
      return judge_mla(c, inputs, outputs, profile, cost);
    }
    Verdict operator()(const cases::MergeStates&) const {
      return judge_merge_states(c, inputs, outputs, profile);
    }
    Verdict operator()(const cases::IndexRemap&) const { return judge_index_remap(c, inputs, outputs); }
    Verdict operator()(const cases::TopK&) const { return judge_topk(c, inputs, outputs); }
    Verdict operator()(const cases::CacheWrite&) const { return judge_cache_write(c, inputs, outputs); }
    Verdict operator()(const cases::IndexerLogits&) const { return judge_indexer_logits(c, inputs, outputs); }
    const cases::Case& c;
    const cases::Inputs& inputs;
    const cases::Outputs& outputs;
    const PrecisionProfile& profile;
    JudgeCost* cost;
  };
  return std::visit(Judges{c, inputs, outputs, profile, cost}, c.problem);
}

}  // namespace attest::oracle
