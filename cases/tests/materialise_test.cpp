// SPDX-License-Identifier: MIT
//
// What the data promises, checked by reading it back the way a kernel does: through the block table, decoding
// with reference/formats.h, with plain arithmetic.
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "cases/tests/arbitrary_case.h"
#include "reference/formats.h"

namespace attest::cases {
namespace {

constexpr int width = 576;
constexpr int v_width = 512;

using Bytes = std::vector<std::byte>;
using Row = std::vector<double>;

std::size_t element_bytes(Format f) {
  return f == Format::bf16 ? 2 : 1;
}

double element(Format format, const std::byte* at) {
  if (format == Format::bf16) {
    std::uint16_t code = 0;
    std::memcpy(&code, at, 2);
    return reference::decode(reference::Format::bf16, code);
  }
  return reference::decode(reference::Format::fp8_e4m3fnuz, static_cast<std::uint32_t>(*at));
}

Row decoded(Format format, std::span<const std::byte> bytes) {
  Row row;
  for (std::size_t i = 0; i < bytes.size(); i += element_bytes(format))
    row.push_back(element(format, bytes.data() + i));
  return row;
}

/// Bytes as a key of a set.
std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Made {
  Case c;
  MlaDecode p;
  MlaDecodeInputs in;

  explicit Made(const Case& from)
      : c(from), p(std::get<MlaDecode>(from.problem)), in(std::get<MlaDecodeInputs>(materialise(from))) {}

  [[nodiscard]] std::size_t row_bytes() const { return width * element_bytes(p.kv_format); }
  [[nodiscard]] std::uint64_t offset(int request, int token) const {
    const auto entry =
        static_cast<std::size_t>(in.kv_indptr[static_cast<std::size_t>(request)] + token / p.page_size);
    return static_cast<std::uint64_t>(in.kv_page_indices[entry]) * in.page_stride_bytes +
           static_cast<std::uint64_t>(token % p.page_size) * row_bytes();
  }
  [[nodiscard]] Bytes kv_bytes(int request, int token) const {
    const auto bytes = in.kv_pool.at(offset(request, token), row_bytes());
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] Row kv(int request, int token) const {
    return decoded(p.kv_format, kv_bytes(request, token));
  }
  [[nodiscard]] Bytes q_bytes(int request, int position, int head) const {
    const std::size_t bytes = width * element_bytes(p.q_format);
    const int row = in.qo_indptr[static_cast<std::size_t>(request)] + position;
    const auto begin =
        in.q.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row * p.heads + head) * bytes);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
  }
  [[nodiscard]] Row q(int request, int position, int head) const {
    return decoded(p.q_format, q_bytes(request, position, head));
  }
  [[nodiscard]] int batch() const { return static_cast<int>(p.requests.size()); }
  [[nodiscard]] const Request& request(int i) const { return p.requests[static_cast<std::size_t>(i)]; }
  [[nodiscard]] double score(const Row& q_row, const Row& kv_row) const {
    double sum = 0;
    for (std::size_t d = 0; d < width; ++d) sum += q_row[d] * kv_row[d];
    return sum * double{p.sm_scale} * double{p.q_scale} * double{p.kv_scale};
  }
  [[nodiscard]] int visible(int i, int position) const {
    return std::max(0, p.causal ? request(i).kv_len - request(i).q_len + position + 1 : request(i).kv_len);
  }
  /// [begin, end) of every live row of the pool, once each.
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t> live_rows() const {
    std::map<std::uint64_t, std::uint64_t> rows;
    for (int i = 0; i < batch(); ++i) {
      for (int t = 0; t < request(i).kv_len; ++t) rows[offset(i, t)] = offset(i, t) + row_bytes();
    }
    return rows;
  }
};

MlaDecode small_problem() {
  MlaDecode p;
  p.heads = 5;
  p.page_size = 7;
  p.num_splits = 3;
  p.requests = {{3, 37}, {1, 0}, {0, 9}, {2, 14}};
  return p;
}

Case small_case(Fill fill, bool fp8_q = false, bool fp8_kv = false) {
  MlaDecode p = small_problem();
  if (fp8_q) p.q_format = Format::fp8_e4m3fnuz;
  if (fp8_kv) p.kv_format = Format::fp8_e4m3fnuz;
  Case c;
  c.seed = 20260921;
  c.problem = p;
  c.data.fill = fill;
  return c;
}

std::vector<Case> every_fill_and_format() {
  std::vector<Case> cases;
  for (int fill = 0; fill <= static_cast<int>(Fill::exact); ++fill) {
    cases.push_back(small_case(static_cast<Fill>(fill)));
    cases.push_back(small_case(static_cast<Fill>(fill), false, true));
    cases.push_back(small_case(static_cast<Fill>(fill), true, true));
  }
  return cases;
}

std::uint64_t fnv(std::uint64_t hash, const void* data, std::size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3U;
  return hash;
}

std::uint64_t hash_of(const MlaDecodeInputs& in) {
  std::uint64_t hash = fnv(0xcbf29ce484222325U, in.q.data(), in.q.size());
  for (const SparseBytes::Extent& e : in.kv_pool.extents) {
    hash = fnv(hash, &e.offset, sizeof e.offset);
    hash = fnv(hash, e.bytes.data(), e.bytes.size());
  }
  for (const auto* table : {&in.qo_indptr, &in.kv_indptr, &in.kv_page_indices, &in.kv_last_page_len}) {
    hash = fnv(hash, table->data(), table->size() * sizeof(std::int32_t));
  }
  return hash;
}

/// The byte a NaN-poisoned place of the format holds everywhere.
std::byte nan_byte(Format format) {
  return static_cast<std::byte>(format == Format::bf16 ? 0xff : 0x80);
}

CaseBounds small_bounds() {
  return {.requests = 4, .kv_len = 70, .heads = 8, .page_size = 40, .padding = 2048};
}

}  // namespace

TEST_CASE("Bytes of a case are fixed: the same on every machine and compiler, and in every later version") {
  // Changing one of these changes what every committed case and every reported seed means.
  std::vector<std::string> lines;
  for (Case c : every_fill_and_format()) {
    const MlaDecode& p = std::get<MlaDecode>(c.problem);
    lines.push_back(std::string(name(c.data.fill)) + " " + name(p.q_format) + " " + name(p.kv_format) + " " +
                    std::to_string(hash_of(Made(c).in)));
  }
  Case c = small_case(Fill::normal, false, true);
  c.memory = {Placement::beyond_4gib, Poison::stale, Poison::large, Poison::inf, 48, 512, true};
  lines.push_back("stale beyond_4gib " + std::to_string(hash_of(Made(c).in)));
  c.memory.unused = Poison::large;
  lines.push_back("large beyond_4gib " + std::to_string(hash_of(Made(c).in)));
  const std::vector<std::string> expected = {
      "normal bf16 bf16 7377377242092823964",
      "normal bf16 fp8_e4m3fnuz 16946012014651984218",
      "normal fp8_e4m3fnuz fp8_e4m3fnuz 322440334774470108",
      "mean_shifted bf16 bf16 3113620292188645236",
      "mean_shifted bf16 fp8_e4m3fnuz 8138756316161118598",
      "mean_shifted fp8_e4m3fnuz fp8_e4m3fnuz 5855936209548355256",
      "outlier_channels bf16 bf16 8893872496635011632",
      "outlier_channels bf16 fp8_e4m3fnuz 17013034441814537180",
      "outlier_channels fp8_e4m3fnuz fp8_e4m3fnuz 2693869014978198450",
      "needle bf16 bf16 5755710978694404177",
      "needle bf16 fp8_e4m3fnuz 13668666671480066257",
      "needle fp8_e4m3fnuz fp8_e4m3fnuz 16549728301649387700",
      "position_coded bf16 bf16 16627165858403024500",
      "position_coded bf16 fp8_e4m3fnuz 1762514060906071894",
      "position_coded fp8_e4m3fnuz fp8_e4m3fnuz 9607445960333125407",
      "constant_scores bf16 bf16 8732117159339673693",
      "constant_scores bf16 fp8_e4m3fnuz 17032748907391705599",
      "constant_scores fp8_e4m3fnuz fp8_e4m3fnuz 18206845804657318911",
      "wide_scores bf16 bf16 13149986611312239867",
      "wide_scores bf16 fp8_e4m3fnuz 12673041788016781589",
      "wide_scores fp8_e4m3fnuz fp8_e4m3fnuz 15999168223687412048",
      "negative_offset bf16 bf16 17563668087495233679",
      "negative_offset bf16 fp8_e4m3fnuz 12882716595850728159",
      "negative_offset fp8_e4m3fnuz fp8_e4m3fnuz 16161066546337826349",
      "deep_offset bf16 bf16 1198800638407179791",
      "deep_offset bf16 fp8_e4m3fnuz 11632690368970532447",
      "deep_offset fp8_e4m3fnuz fp8_e4m3fnuz 14903468333229796697",
      "tiny bf16 bf16 6329994418171394573",
      "tiny bf16 fp8_e4m3fnuz 1798121183391118075",
      "tiny fp8_e4m3fnuz fp8_e4m3fnuz 12061439913785835913",
      "cancelling bf16 bf16 4876951118301054038",
      "cancelling bf16 fp8_e4m3fnuz 14578238982952659529",
      "cancelling fp8_e4m3fnuz fp8_e4m3fnuz 16594168810460404228",
      "saturating bf16 bf16 95911128515652886",
      "saturating bf16 fp8_e4m3fnuz 11566414229463925145",
      "saturating fp8_e4m3fnuz fp8_e4m3fnuz 11595167566553058028",
      "exact bf16 bf16 6677104888559739277",
      "exact bf16 fp8_e4m3fnuz 13590736232365360655",
      "exact fp8_e4m3fnuz fp8_e4m3fnuz 14764833129630973967",
      "stale beyond_4gib 1941060238326714514",
      "large beyond_4gib 7035915285578170176",

  };
  CHECK(lines == expected);
}

TEST_CASE("Tables are what the requests say") {
  rc::prop("indptr, last page, slack, extents", [] {
    const Made m(*any_case(small_bounds()));
    RC_ASSERT(m.in.qo_indptr.size() == m.p.requests.size() + 1);
    RC_ASSERT(m.in.kv_indptr.size() == m.p.requests.size() + 1);
    int queries = 0;
    for (int i = 0; i < m.batch(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int pages = m.in.kv_indptr[at + 1] - m.in.kv_indptr[at];
      RC_ASSERT(m.in.qo_indptr[at] == queries);
      queries += m.request(i).q_len;
      RC_ASSERT(pages == (m.request(i).kv_len + m.p.page_size - 1) / m.p.page_size);
      if (m.request(i).kv_len == 0) {
        RC_ASSERT(m.in.kv_last_page_len[at] == 0);
      } else {
        RC_ASSERT((pages - 1) * m.p.page_size + m.in.kv_last_page_len[at] == m.request(i).kv_len);
      }
    }
    RC_ASSERT(m.in.q.size() ==
              static_cast<std::size_t>(queries * m.p.heads) * width * element_bytes(m.p.q_format));
    RC_ASSERT(m.in.kv_page_indices.size() == static_cast<std::size_t>(m.in.kv_indptr.back() + index_slack));
    for (int e = 0; e < m.in.kv_indptr.back(); ++e) {
      const std::int32_t page = m.in.kv_page_indices[static_cast<std::size_t>(e)];
      RC_ASSERT(page >= 0);
      RC_ASSERT(page < m.in.num_pages);
    }
    RC_ASSERT(m.in.page_stride_bytes == static_cast<std::uint64_t>(m.p.page_size) * m.row_bytes() +
                                            static_cast<std::uint64_t>(m.c.memory.page_padding_bytes));
    RC_ASSERT(m.in.kv_pool.size == static_cast<std::uint64_t>(m.in.num_pages) * m.in.page_stride_bytes);
    std::uint64_t end = 0;
    for (const SparseBytes::Extent& e : m.in.kv_pool.extents) {
      RC_ASSERT(e.offset >= end);
      RC_ASSERT(!e.bytes.empty());
      end = e.offset + e.bytes.size();
    }
    RC_ASSERT(end <= m.in.kv_pool.size);
  });
}

TEST_CASE("No page has two owners unless a prefix is shared, and then the tables share it") {
  rc::prop("ownership", [] {
    const Made m(*any_case(small_bounds()));
    std::map<std::int32_t, std::set<int>> owners;
    for (int i = 0; i < m.batch(); ++i) {
      std::set<std::int32_t> own;
      for (int e = m.in.kv_indptr[static_cast<std::size_t>(i)];
           e < m.in.kv_indptr[static_cast<std::size_t>(i) + 1]; ++e) {
        const std::int32_t page = m.in.kv_page_indices[static_cast<std::size_t>(e)];
        RC_ASSERT(own.insert(page).second);
        owners[page].insert(i);
      }
    }
    int with_full_pages = 0;
    for (const Request& r : m.p.requests) with_full_pages += r.kv_len >= m.p.page_size ? 1 : 0;
    std::size_t most = 0;
    for (const auto& [page, who] : owners) most = std::max(most, who.size());
    if (m.c.memory.prefix_sharing && with_full_pages > 1) {
      RC_ASSERT(most == static_cast<std::size_t>(with_full_pages));
    } else {
      RC_ASSERT(most <= 1U);
    }
    // Somebody reading one page too far must be able to find a page of nobody.
    RC_ASSERT(m.in.num_pages > static_cast<std::int64_t>(owners.size()));
  });
}

TEST_CASE("Placement, padding, poison and splits move bytes and change no row") {
  rc::prop("same rows", [] {
    const Case c = *any_case(small_bounds());
    Case other = c;
    other.memory = {*any_of(Placement::beyond_4gib),
                    *any_of(Poison::zero),
                    Poison::zero,
                    Poison::zero,
                    16 * *rc::gen::inRange(0, 64),
                    256,
                    c.memory.prefix_sharing};
    std::get<MlaDecode>(other.problem).num_splits = 1;
    const Made a(c);
    const Made b(other);
    RC_ASSERT(a.in.q == b.in.q);
    for (int i = 0; i < a.batch(); ++i) {
      for (int t = 0; t < a.request(i).kv_len; ++t) RC_ASSERT(a.kv_bytes(i, t) == b.kv_bytes(i, t));
    }
  });
}

TEST_CASE("The page size moves bytes and changes no row") {
  rc::prop("same rows", [] {
    Case c = *any_case(small_bounds());
    c.memory.prefix_sharing = false;  // what is shared is counted in pages
    c.memory.placement = Placement::shuffled;
    Case other = c;
    std::get<MlaDecode>(other.problem).page_size = *rc::gen::inRange(1, 64);
    const Made a(c);
    const Made b(other);
    for (int i = 0; i < a.batch(); ++i) {
      for (int t = 0; t < a.request(i).kv_len; ++t) RC_ASSERT(a.kv_bytes(i, t) == b.kv_bytes(i, t));
    }
  });
}

TEST_CASE("A smaller case keeps the rows it still has") {
  rc::prop("shorter, fewer heads, fewer queries", [] {
    Case c = *any_case(small_bounds());
    c.memory.prefix_sharing = false;
    c.memory.unused = Poison::zero;
    Case other = c;
    MlaDecode& p = std::get<MlaDecode>(other.problem);
    p.heads = *rc::gen::inRange(1, p.heads + 1);
    p.requests.resize(
        static_cast<std::size_t>(*rc::gen::inRange(1, static_cast<int>(p.requests.size()) + 1)));
    for (Request& r : p.requests) r.kv_len = *rc::gen::inRange(0, r.kv_len + 1);
    const Made a(c);
    const Made b(other);
    if (c.data.fill != Fill::exact) {  // its rows depend on how many of them the queries see
      for (int i = 0; i < b.batch(); ++i) {
        for (int t = 0; t < b.request(i).kv_len; ++t) RC_ASSERT(a.kv_bytes(i, t) == b.kv_bytes(i, t));
      }
    }
    if (c.data.fill != Fill::needle) {  // its queries aim at the edges of what they see
      for (int i = 0; i < b.batch(); ++i) {
        for (int s = 0; s < b.request(i).q_len; ++s) {
          for (int h = 0; h < b.p.heads; ++h) RC_ASSERT(a.q_bytes(i, s, h) == b.q_bytes(i, s, h));
        }
      }
    }
  });
}

TEST_CASE("Rows of different requests, tokens, positions and heads differ") {
  for (const Case& c : every_fill_and_format()) {
    const Made m(c);
    CAPTURE(name(c.data.fill), name(m.p.q_format), name(m.p.kv_format));
    std::set<std::string> kv;
    std::size_t kv_rows = 0;
    std::set<std::string> q;
    std::size_t q_rows = 0;
    for (int i = 0; i < m.batch(); ++i) {
      for (int t = 0; t < m.request(i).kv_len; ++t, ++kv_rows) kv.insert(text(m.kv_bytes(i, t)));
      for (int s = 0; s < m.request(i).q_len; ++s) {
        for (int h = 0; h < m.p.heads; ++h, ++q_rows) q.insert(text(m.q_bytes(i, s, h)));
      }
    }
    CHECK(kv.size() == kv_rows);
    const bool zero_q = c.data.fill == Fill::exact || c.data.fill == Fill::constant_scores;
    CHECK(q.size() == (zero_q ? 1 : q_rows));
  }
}

TEST_CASE("Live data is finite, whatever the poison") {
  rc::prop("finite", [] {
    const Made m(*any_case(small_bounds()));
    for (int i = 0; i < m.batch(); ++i) {
      for (int t = 0; t < m.request(i).kv_len; ++t) {
        for (const double x : m.kv(i, t)) RC_ASSERT(std::isfinite(x));
      }
      for (int s = 0; s < m.request(i).q_len; ++s) {
        for (int h = 0; h < m.p.heads; ++h) {
          for (const double x : m.q(i, s, h)) RC_ASSERT(std::isfinite(x));
        }
      }
    }
  });
}

TEST_CASE("Every byte of the pool that is no live row is poison") {
  rc::prop("page tails, padding, unowned pages, wrap landings", [] {
    Case c = *any_case(small_bounds());
    c.memory.unused = Poison::nan;
    const Made m(c);
    const auto live = m.live_rows();
    std::size_t live_bytes = 0;
    for (const SparseBytes::Extent& e : m.in.kv_pool.extents) {
      std::size_t at = 0;
      while (at < e.bytes.size()) {
        if (const auto row = live.find(e.offset + at); row != live.end()) {
          live_bytes += row->second - row->first;
          at += row->second - row->first;
          continue;
        }
        RC_ASSERT(e.bytes[at] == nan_byte(m.p.kv_format));
        ++at;
      }
    }
    RC_ASSERT(live_bytes == live.size() * m.row_bytes());
  });
}

TEST_CASE("A page offset that wraps lands in poison, not in fresh zeros") {
  for (const Placement placement : {Placement::high, Placement::beyond_2gib, Placement::beyond_4gib}) {
    for (const int page_size : {1, 7, 100}) {
      Case c = small_case(Fill::normal, false, true);
      std::get<MlaDecode>(c.problem).page_size = page_size;
      c.memory.placement = placement;
      const Made m(c);
      CAPTURE(name(placement), page_size);
      int below = 0;
      int wrapped = 0;
      for (int e = 0; e < m.in.kv_indptr.back(); ++e) {
        const auto page = static_cast<std::uint64_t>(m.in.kv_page_indices[static_cast<std::size_t>(e)]);
        const std::uint64_t offset = page * m.in.page_stride_bytes;
        const std::uint64_t frontier = placement == Placement::beyond_4gib ? 1ULL << 32 : 1ULL << 31;
        if (placement != Placement::high && offset < frontier) ++below;
        for (const std::uint64_t landing :
             {offset % (std::uint64_t{1} << 31), offset % (std::uint64_t{1} << 32),
              (page % 65536) * m.in.page_stride_bytes}) {
          if (landing == offset) continue;
          ++wrapped;
          for (const std::byte b : m.in.kv_pool.at(landing, m.in.page_stride_bytes)) {
            if (b != nan_byte(m.p.kv_format)) FAIL("live byte at a wrapped address");
          }
        }
      }
      CHECK(wrapped > 0);
      if (placement != Placement::high && m.in.kv_indptr.back() > 1) CHECK(below > 0);
      if (placement == Placement::high) {
        for (int e = 0; e < m.in.kv_indptr.back(); ++e)
          CHECK(m.in.kv_page_indices[static_cast<std::size_t>(e)] >= 65536);
      }
      std::size_t content = 0;
      for (const auto& extent : m.in.kv_pool.extents) content += extent.bytes.size();
      CHECK(content < (std::size_t{32} << 20));
    }
  }
}

TEST_CASE("A single page goes beyond the frontier") {
  for (const Placement placement : {Placement::beyond_2gib, Placement::beyond_4gib}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Case c;
      MlaDecode p;
      p.requests = {{1, 1}};
      c.problem = p;
      c.seed = seed;
      c.memory.placement = placement;
      CHECK(Made(c).offset(0, 0) >= (placement == Placement::beyond_4gib ? 1ULL << 32 : 1ULL << 31));
    }
  }
}

TEST_CASE("Page orders are what their names say") {
  Case c = small_case(Fill::normal);
  const auto pages = [&](Placement placement) {
    c.memory.placement = placement;
    const Made m(c);
    return std::vector<std::int32_t>(m.in.kv_page_indices.begin(), m.in.kv_page_indices.end() - index_slack);
  };
  CHECK(pages(Placement::ordered) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(pages(Placement::reversed) == std::vector<std::int32_t>{12, 11, 10, 9, 8, 7, 6, 5, 4, 3});
  const auto shuffled = pages(Placement::shuffled);
  CHECK(shuffled != pages(Placement::ordered));
  CHECK(std::set<std::int32_t>(shuffled.begin(), shuffled.end()).size() == shuffled.size());
}

TEST_CASE("Index slack: poisoned pages, other requests' pages, sentinels, or page 0") {
  const auto slack = [](Poison poison) {
    Case c = small_case(Fill::normal);
    c.memory.unused = poison;
    const Made m(c);
    std::set<std::int32_t> live(m.in.kv_page_indices.begin(), m.in.kv_page_indices.end() - index_slack);
    const std::set<std::int32_t> ids(m.in.kv_page_indices.end() - index_slack, m.in.kv_page_indices.end());
    std::size_t owned = 0;
    std::size_t outside = 0;
    for (const std::int32_t id : ids) {
      owned += live.count(id);
      outside += id < 0 || id >= m.in.num_pages ? 1 : 0;
    }
    return std::vector<std::size_t>{ids.size(), owned, outside};
  };
  CHECK(slack(Poison::nan) == std::vector<std::size_t>{3, 0, 0});
  CHECK(slack(Poison::large) == std::vector<std::size_t>{3, 0, 0});
  CHECK(slack(Poison::stale) == std::vector<std::size_t>{10, 10, 0});
  CHECK(slack(Poison::inf) == std::vector<std::size_t>{2, 0, 2});
  CHECK(slack(Poison::zero)[0] == 1);
}

TEST_CASE("Finite poison is as large, or as plausible, as it says, and no copy of live rows") {
  for (const bool fp8 : {false, true}) {
    Case c = small_case(Fill::normal, false, fp8);
    const auto spread_of_unused = [&](Poison poison) {
      c.memory.unused = poison;
      const Made m(c);
      std::set<std::string> live;
      for (int i = 0; i < m.batch(); ++i) {
        for (int t = 0; t < m.request(i).kv_len; ++t) live.insert(text(m.kv_bytes(i, t)));
      }
      double squares = 0;
      double count = 0;
      for (int k = 0; k < index_slack; ++k) {
        c.memory.unused = Poison::nan;  // whose slack names the unowned pages
        const Made names(c);
        const std::int32_t page =
            names.in.kv_page_indices[names.in.kv_page_indices.size() - 1 - static_cast<std::size_t>(k)];
        for (int t = 0; t < m.p.page_size; ++t) {
          const auto bytes = m.in.kv_pool.at(static_cast<std::uint64_t>(page) * m.in.page_stride_bytes +
                                                 static_cast<std::uint64_t>(t) * m.row_bytes(),
                                             m.row_bytes());
          REQUIRE(live.count(text(bytes)) == 0);
          for (const double x : decoded(m.p.kv_format, bytes)) {
            REQUIRE(std::isfinite(x));
            squares += x * x;
            count += 1;
          }
        }
        if (k > 4) break;
      }
      return std::sqrt(squares / count);
    };
    CHECK(spread_of_unused(Poison::stale) == Approx(1.0).margin(0.05));
    CHECK(spread_of_unused(Poison::large) == Approx(32.0).margin(2.0));
  }
}

TEST_CASE("Result poison per format") {
  const Case c = small_case(Fill::normal);
  const auto codes = [&](Poison poison, Format format) {
    const Bytes bytes = poison_bytes(c, poison, format, 3, "out");
    std::vector<unsigned> values;
    for (const std::byte b : bytes) values.push_back(static_cast<unsigned>(b));
    return values;
  };
  using Codes = std::vector<unsigned>;
  CHECK(codes(Poison::nan, Format::bf16) == Codes(6, 0xff));
  CHECK(codes(Poison::nan, Format::f32) == Codes(12, 0xff));
  CHECK(codes(Poison::nan, Format::fp8_e4m3fnuz) == Codes(3, 0x80));
  CHECK(codes(Poison::nan, Format::fp8_e4m3fn) == Codes(3, 0xff));
  CHECK(codes(Poison::nan, Format::e8m0) == Codes(3, 0xff));
  CHECK(codes(Poison::inf, Format::f32) == Codes{0, 0, 0x80, 0x7f, 0, 0, 0x80, 0x7f, 0, 0, 0x80, 0x7f});
  CHECK(codes(Poison::inf, Format::bf16) == Codes{0x80, 0x7f, 0x80, 0x7f, 0x80, 0x7f});
  CHECK(codes(Poison::inf, Format::fp8_e5m2) == Codes(3, 0x7c));
  CHECK(codes(Poison::inf, Format::fp8_e4m3fn) == Codes(3, 0x7f));
  CHECK(codes(Poison::zero, Format::f16) == Codes(6, 0));
  for (const Poison poison : {Poison::nan, Poison::inf, Poison::large, Poison::stale}) {
    for (int f = 0; f <= static_cast<int>(Format::e8m0); ++f) {
      const auto format = static_cast<reference::Format>(f);
      CAPTURE(name(poison), name(static_cast<Format>(f)));
      REQUIRE(std::string(name(static_cast<Format>(f))) == reference::name(format));
      const Bytes bytes = poison_bytes(c, poison, static_cast<Format>(f), 1000, "out");
      const auto size = static_cast<std::size_t>(reference::bytes_per_element(format));
      REQUIRE(bytes.size() == 1000 * size);
      for (std::size_t i = 0; i < 1000; ++i) {
        std::uint32_t code = 0;
        std::memcpy(&code, bytes.data() + i * size, size);
        const double value = reference::decode(format, code);
        if (poison == Poison::nan) REQUIRE(std::isnan(value));
        if (poison == Poison::inf) REQUIRE(!std::isfinite(value));
        if (poison == Poison::large || poison == Poison::stale) REQUIRE(std::isfinite(value));
      }
    }
  }
  CHECK(poison_bytes(c, Poison::stale, Format::f32, 100, "out") !=
        poison_bytes(c, Poison::stale, Format::f32, 100, "lse"));
  CHECK(poison_bytes(c, Poison::stale, Format::f32, 100, "out") ==
        poison_bytes(c, Poison::stale, Format::f32, 100, "out"));
}

TEST_CASE("Parts of a poisoned tensor are parts of the whole") {
  Case c;
  c.seed = 7;
  for (const Poison poison : {Poison::nan, Poison::inf, Poison::large, Poison::stale, Poison::zero}) {
    for (const Format format : {Format::f32, Format::bf16, Format::f16}) {
      const std::size_t element = format == Format::f32 ? 4 : 2, count = 3 * poison_block + 100;
      const Bytes whole = poison_bytes(c, poison, format, count, "out");
      Bytes parts(whole.size());
      for (std::size_t first = 0; first < count; first += 2 * poison_block)
        poison_part(
            c, poison, format, first, "out",
            std::span(parts).subspan(first * element, std::min(2 * poison_block, count - first) * element));
      CAPTURE(name(poison), name(format));
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("exact: the mean over what each query sees is a small integer, whatever its length") {
  rc::prop("representable", [] {
    CaseBounds bounds = small_bounds();
    bounds.kv_len = 120;
    Case c = *any_case(bounds);
    c.data.fill = Fill::exact;
    if (std::get<MlaDecode>(c.problem).kv_format != Format::bf16)
      std::get<MlaDecode>(c.problem).kv_scale = 0.25F;
    const Made m(c);
    for (int i = 0; i < m.batch(); ++i) {
      std::vector<double> sum(v_width, 0.0);
      std::vector<std::vector<double>> prefix_sums = {sum};
      int rows_with_noise = 0;
      for (int t = 0; t < m.request(i).kv_len; ++t) {
        const Row row = m.kv(i, t);
        for (std::size_t d = 0; d < v_width; ++d) {
          RC_ASSERT(row[d] == std::floor(row[d]));
          RC_ASSERT(std::abs(row[d]) <= 16);
          sum[d] += row[d];
        }
        rows_with_noise += std::abs(row[0]) > 2 || std::abs(row[1]) > 2 || std::abs(row[2]) > 2 ? 1 : 0;
        prefix_sums.push_back(sum);
      }
      for (int s = 0; s < m.request(i).q_len; ++s) {
        for (const double x : m.q(i, s, 0)) RC_ASSERT(x == 0.0);
        const int n = m.visible(i, s);
        if (n == 0) continue;
        for (std::size_t d = 0; d < v_width; ++d) {
          const double total = prefix_sums[static_cast<std::size_t>(n)][d];
          const double mean = total / n;
          RC_ASSERT(mean * n == total);
          RC_ASSERT((std::abs(mean) == 1 || std::abs(mean) == 2));
        }
      }
      // Not trivially so: rows before the last q_len are far from their mean.
      if (!c.memory.prefix_sharing && m.request(i).kv_len > 40) RC_ASSERT(rows_with_noise > 10);
    }
  });
}

TEST_CASE("Scores lie where their family says, for every format and scale") {
  const struct {
    Fill fill;
    double low, high;
  } families[] = {
      {Fill::negative_offset, -40, -20}, {Fill::deep_offset, -200, -100}, {Fill::constant_scores, 0, 0}};
  for (const auto& family : families) {
    rc::prop(name(family.fill), [&] {
      Case c = *any_case(small_bounds());
      c.data.fill = family.fill;
      MlaDecode& p = std::get<MlaDecode>(c.problem);
      if (p.q_format != Format::bf16) {
        p.sm_scale = *any_scale(0.04F, 0.2F);
        p.q_scale = *any_scale(0.06F, 64.0F);
      }
      if (p.kv_format != Format::bf16)
        p.kv_scale = family.fill == Fill::constant_scores ? 2.0F : *any_scale(0.06F, 64.0F);
      const Made m(c);
      std::set<double> seen;
      for (int i = 0; i < m.batch(); ++i) {
        for (int s = 0; s < m.request(i).q_len; s += 5) {
          const Row q = m.q(i, s, m.p.heads - 1);
          for (int t = 0; t < m.request(i).kv_len; ++t) {
            const double score = m.score(q, m.kv(i, t));
            RC_ASSERT(score >= family.low);
            RC_ASSERT(score <= family.high);
            seen.insert(score);
          }
        }
      }
      if (family.low != family.high && seen.size() > 20)
        RC_ASSERT(*seen.rbegin() - *seen.begin() > 0.05 * -family.high);
    });
  }
}

TEST_CASE("needle: one key takes the row, and hidden keys are needles too") {
  int hidden = 0;
  int last = 0;
  rc::prop("needle", [&] {
    Case c = *any_case(small_bounds());
    c.data.fill = Fill::needle;
    MlaDecode& p = std::get<MlaDecode>(c.problem);
    if (p.q_format != Format::bf16) {
      p.sm_scale = *any_scale(0.04F, 0.2F);
      p.q_scale = *any_scale(0.06F, 64.0F);
      p.kv_scale = *any_scale(0.06F, 64.0F);
    }
    const Made m(c);
    for (int i = 0; i < m.batch(); ++i) {
      for (int s = 0; s < m.request(i).q_len && m.request(i).kv_len > 0; ++s) {
        const Row q = m.q(i, s, 0);
        std::vector<double> scores;
        for (int t = 0; t < m.request(i).kv_len; ++t) scores.push_back(m.score(q, m.kv(i, t)));
        std::size_t needle = 0;
        for (std::size_t t = 0; t < scores.size(); ++t) needle = scores[t] > scores[needle] ? t : needle;
        RC_ASSERT(scores[needle] > 19.0);
        RC_ASSERT(scores[needle] < 29.0);
        for (std::size_t t = 0; t < scores.size(); ++t)
          RC_ASSERT((t == needle || scores[t] < scores[needle] - 3.0));
        hidden += static_cast<int>(needle) == m.visible(i, s) ? 1 : 0;
        last += static_cast<int>(needle) == m.visible(i, s) - 1 ? 1 : 0;
      }
    }
  });
  CHECK(hidden > 0);
  CHECK(last > 0);
}

TEST_CASE("Each remaining family has the property it is named for") {
  for (const bool fp8 : {false, true}) {
    CAPTURE(fp8);
    const auto made = [&](Fill fill) {
      Case c = small_case(fill, fp8, fp8);
      std::get<MlaDecode>(c.problem).requests = {{1, 200}};
      return Made(c);
    };
    const auto over_rows = [](const Made& m, auto&& visit) {
      for (int t = 0; t < m.request(0).kv_len; ++t) visit(t, m.kv(0, t));
    };
    SECTION(fp8 ? "normal fp8" : "normal bf16") {
      double sum = 0;
      double squares = 0;
      over_rows(made(Fill::normal), [&](int, const Row& row) {
        for (const double x : row) {
          sum += x;
          squares += x * x;
        }
      });
      CHECK(sum / (200 * width) == Approx(0).margin(0.015));
      CHECK(squares / (200 * width) == Approx(1).margin(0.02));
    }
    SECTION(fp8 ? "mean_shifted fp8" : "mean_shifted bf16") {
      std::vector<double> mean(width, 0.0);
      over_rows(made(Fill::mean_shifted), [&](int, const Row& row) {
        for (std::size_t d = 0; d < width; ++d) mean[d] += row[d] / 200;
      });
      double squares = 0;
      for (const double x : mean) squares += x * x;
      CHECK(squares / width == Approx(1).margin(0.15));
    }
    SECTION(fp8 ? "outlier_channels fp8" : "outlier_channels bf16") {
      std::vector<double> squares(width, 0.0);
      over_rows(made(Fill::outlier_channels), [&](int, const Row& row) {
        for (std::size_t d = 0; d < width; ++d) squares[d] += row[d] * row[d] / 200;
      });
      int large = 0;
      for (const double x : squares) large += x > 15 * 15 ? 1 : 0;
      CHECK(large == 4);
    }
    SECTION(fp8 ? "position_coded fp8" : "position_coded bf16") {
      std::set<std::size_t> columns;
      over_rows(made(Fill::position_coded), [&](int, const Row& row) {
        int ones = 0;
        for (std::size_t d = 0; d < v_width; ++d) {
          REQUIRE((row[d] == 0 || row[d] == 1));
          if (row[d] == 1) columns.insert(d);
          ones += row[d] == 1 ? 1 : 0;
        }
        REQUIRE(ones == 1);
      });
      CHECK(columns.size() == 200);
    }
    SECTION(fp8 ? "wide_scores fp8" : "wide_scores bf16") {
      const Made m = made(Fill::wide_scores);
      double largest = 0;
      over_rows(
          m, [&](int, const Row& row) { largest = std::max(largest, std::abs(m.score(m.q(0, 0, 0), row))); });
      CHECK(largest > 60);
    }
    SECTION(fp8 ? "tiny fp8" : "tiny bf16") {
      const Made m = made(Fill::tiny);
      const double smallest_normal = fp8 ? 0x1p-7 : 0x1p-126;
      std::size_t small = 0;
      double squares = 0;
      over_rows(m, [&](int, const Row& row) {
        for (const double x : row) {
          REQUIRE(x != 0);
          REQUIRE(std::abs(x) <= smallest_normal * (fp8 ? 2 : 0x1p16));
          small += std::abs(x) < smallest_normal * (fp8 ? 1 : 2) ? 1U : 0U;
        }
        const double score = m.score(m.q(0, 0, 0), row);
        squares += score * score / 200;
      });
      CHECK(small > 200 * width / 20);
      CHECK(std::sqrt(squares) > 0.5);
      CHECK(std::sqrt(squares) < 4);
    }
    SECTION(fp8 ? "cancelling fp8" : "cancelling bf16") {
      const Made m = made(Fill::cancelling);
      const Row q = m.q(0, 0, 0);
      for (int t = 0; t < 200; t += 2) {
        const Row a = m.kv(0, t);
        const Row b = m.kv(0, t + 1);
        for (std::size_t d = 0; d < v_width; ++d) REQUIRE(a[d] == -b[d]);
        const double difference = std::abs(m.score(q, a) - m.score(q, b));
        REQUIRE(difference > 0);
        REQUIRE(difference < 2);
      }
    }
    SECTION(fp8 ? "saturating fp8" : "saturating bf16") {
      const Made m = made(Fill::saturating);
      double at_max = 0;
      double squares = 0;
      over_rows(m, [&](int, const Row& row) {
        for (const double x : row) at_max += std::abs(x) == (fp8 ? 240 : 448) ? 1 : 0;
        const double score = m.score(m.q(0, 0, 0), row);
        squares += score * score / 200;
      });
      CHECK(at_max / (200 * width) == Approx(0.2).margin(0.01));
      CHECK(std::sqrt(squares) > 0.7);
      CHECK(std::sqrt(squares) < 6);
    }
  }
}

TEST_CASE("SparseBytes::at wants one extent") {
  SparseBytes bytes;
  bytes.size = 1000;
  bytes.extents = {{10, Bytes(5, std::byte{1})}, {20, Bytes(5, std::byte{2})}};
  CHECK(bytes.at(10, 5).size() == 5);
  CHECK(bytes.at(22, 3)[0] == std::byte{2});
  CHECK(bytes.at(25, 0).empty());
  CHECK_THROWS_AS(bytes.at(9, 1), std::out_of_range);
  CHECK_THROWS_AS(bytes.at(10, 6), std::out_of_range);
  CHECK_THROWS_AS(bytes.at(14, 7), std::out_of_range);
  CHECK_THROWS_AS(bytes.at(26, 1), std::out_of_range);
  CHECK_THROWS_AS(SparseBytes{}.at(0, 1), std::out_of_range);
}

TEST_CASE("An invalid case is not materialised") {
  Case c = small_case(Fill::normal);
  std::get<MlaDecode>(c.problem).heads = 0;
  CHECK_THROWS_WITH(materialise(c), "shape.heads: 0 is outside 1..128");
}

}  // namespace attest::cases
