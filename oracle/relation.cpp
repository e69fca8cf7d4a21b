// SPDX-License-Identifier: MIT
#include "oracle/relation.h"

namespace attest::oracle {

std::vector<Relation> relations(const cases::Case& c, const cases::Inputs& inputs) {
  struct Families {
    std::vector<Relation> operator()(const cases::MlaDecode&) const { return {}; }
    const cases::Case& c;
    const cases::Inputs& inputs;
  };
  return std::visit(Families{c, inputs}, c.problem);
}

}  // namespace attest::oracle
