// SPDX-License-Identifier: MIT
#include "cases/domain.h"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "cases/tests/arbitrary_case.h"

using namespace attest::cases;

TEST_CASE("a fitted case is valid, lies in the domain, and a case of the domain stays as it is") {
  rc::prop("fit", [] {
    const Case drawn = *any_case({});
    MlaDecodeDomain domain;
    domain.heads = *rc::gen::element(std::vector<int>{16}, std::vector<int>{8, 128});
    domain.longest_q_len_min = *rc::gen::inRange(1, 6);
    domain.longest_q_len_max = *rc::gen::inRange(domain.longest_q_len_min, 9);
    domain.uniform_q_len = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) domain.kv_format = Format::fp8_e4m3fnuz;
    domain.page_padding = false;
    domain.return_lse = false;
    const Case fitted = fit(drawn, domain);
    validate(fitted);
    const auto& p = std::get<MlaDecode>(fitted.problem);
    RC_ASSERT(std::find(domain.heads.begin(), domain.heads.end(), p.heads) != domain.heads.end());
    RC_ASSERT(p.kv_format == domain.kv_format);
    RC_ASSERT(fitted.memory.page_padding_bytes == 0);
    RC_ASSERT(!p.return_lse);
    int longest = 0;
    for (const Request& r : p.requests) longest = std::max(longest, r.q_len);
    RC_ASSERT(longest >= domain.longest_q_len_min);
    RC_ASSERT(longest <= domain.longest_q_len_max);
    if (domain.uniform_q_len)
      for (const Request& r : p.requests) RC_ASSERT(r.q_len == longest);
    RC_ASSERT(fit(fitted, domain) == fitted);
  });
}

TEST_CASE("fitted to where a kernel is right, a case is valid and keeps every promise") {
  rc::prop("fit", [] {
    const Case drawn = *any_case({});
    MlaDecodeDomain domain;
    domain.heads = {16};
    domain.longest_q_len_max = *rc::gen::inRange(1, 9);
    domain.q_format = domain.kv_format = Format::fp8_e4m3fnuz;
    domain.page_sizes = {2, 64};
    domain.keys_for_every_row = true;
    domain.num_splits_min = *rc::gen::inRange(1, 3);
    domain.num_splits_max = *rc::gen::inRange(domain.num_splits_min, 17);
    domain.lse_with_one_split = false;
    domain.tokens_per_split = *rc::gen::element(0, 16, 64);
    domain.unit_scales = domain.finite_unused = true;
    const Case fitted = fit(drawn, domain);
    validate(fitted);
    const auto& p = std::get<MlaDecode>(fitted.problem);
    RC_ASSERT(p.num_splits >= domain.num_splits_min);
    RC_ASSERT(p.num_splits <= domain.num_splits_max);
    RC_ASSERT(p.page_size == 2 || p.page_size == 64);
    RC_ASSERT(p.q_scale == 1 && p.kv_scale == 1);
    RC_ASSERT(p.num_splits > 1 || !p.return_lse);
    RC_ASSERT(fitted.memory.unused != Poison::nan && fitted.memory.unused != Poison::inf);
    for (const Request& r : p.requests) {
      RC_ASSERT(r.q_len >= 1 && r.kv_len >= r.q_len);
      RC_ASSERT((p.num_splits - 1) * domain.tokens_per_split <= r.kv_len - r.q_len);
    }
    RC_ASSERT(fit(fitted, domain) == fitted);
  });
}
