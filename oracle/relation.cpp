// SPDX-License-Identifier: MIT
#include "oracle/relation.h"

#include "oracle/plans/block_table_judge.h"

namespace attest::oracle {

std::vector<Relation> relations(const cases::Case& c, const cases::Inputs& inputs) {
  struct Families {
    std::vector<Relation> operator()(const cases::MlaDecode&) const { return {}; }
    std::vector<Relation> operator()(const cases::BlockTableExpand&) const {
      return block_table_relations(c, inputs);
    }
    std::vector<Relation> operator()(const cases::MergeStates&) const { return {}; }
    const cases::Case& c;
    const cases::Inputs& inputs;
  };
  return std::visit(Families{c, inputs}, c.problem);
}

}  // namespace attest::oracle
