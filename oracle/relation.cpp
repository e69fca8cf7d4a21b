// SPDX-License-Identifier: MIT
#include "oracle/relation.h"

#include "oracle/mla_relation.h"
#include "oracle/plans/block_table_judge.h"
#include "oracle/verify_relations.h"

namespace attest::oracle {

std::vector<Relation> relations(const cases::Case& c, const cases::Inputs& inputs,
                                const PrecisionProfile& profile) {
  struct Families {
    std::vector<Relation> operator()(const cases::MlaDecode&) const {
      return mla_decode_relations(c, inputs, profile);
    }
    std::vector<Relation> operator()(const cases::MlaSparse&) const {
      return mla_sparse_relations(c, inputs, profile);
    }
    std::vector<Relation> operator()(const cases::DenseSwitch&) const { return {}; }
    std::vector<Relation> operator()(const cases::SpecVerify&) const { return {}; }
    std::vector<Relation> operator()(const cases::WorkPlan&) const { return {}; }
    std::vector<Relation> operator()(const cases::BlockTableExpand&) const {
      return block_table_relations(c, inputs);
    }
    std::vector<Relation> operator()(const cases::MergeStates&) const { return {}; }
    std::vector<Relation> operator()(const cases::MlaPrefill&) const { return {}; }
    std::vector<Relation> operator()(const cases::VerifyAttention&) const {
      return verify_relations(c, inputs);
    }
    std::vector<Relation> operator()(const cases::IndexRemap&) const { return {}; }
    std::vector<Relation> operator()(const cases::TopK&) const { return {}; }
    std::vector<Relation> operator()(const cases::CacheWrite&) const { return {}; }
    std::vector<Relation> operator()(const cases::IndexerLogits&) const { return {}; }
    const cases::Case& c;
    const cases::Inputs& inputs;
    const PrecisionProfile& profile;
  };
  return std::visit(Families{c, inputs, profile}, c.problem);
}

}  // namespace attest::oracle
