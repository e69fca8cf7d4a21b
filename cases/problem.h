// SPDX-License-Identifier: MIT
//
// All ops. A new one is a header and sources under cases/ops and one more alternative in each of these two;
// the compiler then names every place that has to know it.
#pragma once

#include <variant>

#include "cases/ops/block_table_expand.h"
#include "cases/ops/cache_write.h"
#include "cases/ops/dense_switch.h"
#include "cases/ops/index_remap.h"
#include "cases/ops/indexer_logits.h"
#include "cases/ops/merge_states.h"
#include "cases/ops/mla_decode.h"
#include "cases/ops/mla_prefill.h"
#include "cases/ops/mla_sparse.h"
#include "cases/ops/spec_verify.h"
#include "cases/ops/topk.h"
#include "cases/ops/verify_attention.h"
#include "cases/ops/work_plan.h"

namespace attest::cases {

/// What is asked. Alternative k of Problem becomes alternative k of Inputs.
using Problem =
    std::variant<MlaDecode, BlockTableExpand, SpecVerify, WorkPlan, MergeStates, MlaPrefill, VerifyAttention,
                 IndexRemap, TopK, CacheWrite, IndexerLogits, MlaSparse, DenseSwitch>;

/// The bytes it becomes.
using Inputs =
    std::variant<MlaDecodeInputs, BlockTableExpandInputs, SpecVerifyInputs, WorkPlanInputs, MergeStatesInputs,
                 MlaPrefillInputs, VerifyAttentionInputs, IndexRemapInputs, TopKInputs, CacheWriteInputs,
                 IndexerLogitsInputs, MlaSparseInputs, DenseSwitchInputs>;

}  // namespace attest::cases
