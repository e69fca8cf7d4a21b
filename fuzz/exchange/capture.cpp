// SPDX-License-Identifier: MIT
#include "fuzz/exchange/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "cases/vocabulary.h"
#include "fuzz/exchange/description.h"
#include "fuzz/exchange/safetensors.h"

namespace attest::fuzz::exchange {
namespace {

using cases::Format;
using cases::MlaDecode;
using Integers = std::vector<std::int32_t>;

constexpr std::uint64_t row = 576, v_columns = 512;

/// A dump under examination: every refusal begins with its name.
class Dump {
 public:
  explicit Dump(const std::string& path) : file_(path) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(fmt::format("{}: {}", file_.path(), what));
  }
  [[nodiscard]] const TensorView* find(std::string_view name) const { return file_.find(name); }
  [[nodiscard]] const TensorView& required(std::string_view name) const { return file_.required(name); }

  [[nodiscard]] Integers integers(const TensorView& t) const {
    if (t.dtype != Dtype::i32 && t.dtype != Dtype::i64)
      refuse(fmt::format("tensor {} is {}; it must be I32 or I64", t.name, name(t.dtype)));
    Integers values;
    for (std::size_t at = 0; at < t.bytes.size(); at += element_bytes(t.dtype)) {
      std::int64_t value = 0;
      if (t.dtype == Dtype::i64) {
        std::memcpy(&value, t.bytes.data() + at, sizeof value);
      } else {
        std::int32_t narrow = 0;
        std::memcpy(&narrow, t.bytes.data() + at, sizeof narrow);
        value = narrow;
      }
      if (value != static_cast<std::int32_t>(value))
        refuse(fmt::format("tensor {}: {} is more than 32 bits hold", t.name, value));
      values.push_back(static_cast<std::int32_t>(value));
    }
    return values;
  }
  /// Rising from 0.
  [[nodiscard]] Integers indptr(const char* name) const {
    Integers values = integers(required(name));
    if (values.size() < 2 || values.front() != 0 || !std::is_sorted(values.begin(), values.end()))
      refuse(fmt::format("{} must be the running sum of at least one request, from 0 on", name));
    return values;
  }

  /// From the metadata, or a tensor of one F32 element.
  [[nodiscard]] std::optional<float> scale(const char* name) const {
    if (const auto at = file_.metadata().find(name); at != file_.metadata().end())
      return number<float>(name, at->second);
    const TensorView* t = find(name);
    if (t == nullptr) return std::nullopt;
    if (t->dtype != Dtype::f32 || t->bytes.size() != sizeof(float))
      refuse(fmt::format("tensor {} must be one F32 value", name));
    float value = 0;
    std::memcpy(&value, t->bytes.data(), sizeof value);
    return value;
  }
  [[nodiscard]] int count(const char* name, int otherwise) const {
    const auto at = file_.metadata().find(name);
    return at == file_.metadata().end() ? otherwise : number<int>(name, at->second);
  }
  [[nodiscard]] bool flag(const char* name, bool otherwise) const {
    const auto at = file_.metadata().find(name);
    if (at == file_.metadata().end()) return otherwise;
    if (at->second != "true" && at->second != "false")
      refuse(fmt::format("{}: '{}' is neither true nor false", name, at->second));
    return at->second == "true";
  }
  [[nodiscard]] std::string word(const char* name, const std::string& otherwise) const {
    const auto at = file_.metadata().find(name);
    return at == file_.metadata().end() ? otherwise : at->second;
  }
  [[nodiscard]] Format format(const TensorView& t, std::initializer_list<Format> allowed) const {
    const auto f = format_of(t.dtype);
    if (!f || std::find(allowed.begin(), allowed.end(), *f) == allowed.end())
      refuse(fmt::format("tensor {} is {}; attest has no such {} in {}", t.name, name(t.dtype), t.name,
                         MlaDecode::op));
    return *f;
  }

 private:
  template <typename T>
  [[nodiscard]] T number(const char* name, const std::string& text) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
      refuse(fmt::format("{}: '{}' is no number", name, text.substr(0, 40)));
    return value;
  }
  SafetensorsFile file_;
};

std::uint64_t size(std::integral auto n) {
  return static_cast<std::uint64_t>(n);
}

/// Tokens of a page, from the shapes that engines give their caches: [pages, page_size, 1, 576],
/// [pages, page_size, 576], or [slots, 1, 576] and [slots, 576] with pages of one token.
int page_size_of(const Dump& dump, const TensorView& kv) {
  Shape s = kv.shape;
  if (s.size() < 2 || s.back() != row)
    dump.refuse(fmt::format("kv_buffer is {}; its rows must have {} elements", shown(s), row));
  s.pop_back();
  if (s.size() == 3) {
    if (s.back() != 1) dump.refuse(fmt::format("kv_buffer is {}; it must have one KV head", shown(kv.shape)));
    s.pop_back();
  }
  if (s.size() > 2)
    dump.refuse(fmt::format("kv_buffer is {}; it must be [pages, page_size, 1, 576]", shown(kv.shape)));
  const std::uint64_t found = s.size() == 1 ? 1 : s[1];
  const int said = dump.count("page_size", static_cast<int>(std::min<std::uint64_t>(found, 1U << 20U)));
  if (size(said) != found)
    dump.refuse(fmt::format("page_size is {}, kv_buffer is {}", said, shown(kv.shape)));
  return said;
}

/// Page lists as kernels take them, out of AITER's arguments or of vLLM's.
void read_pages(const Dump& dump, MlaDecode& p, cases::MlaDecodeInputs& in) {
  Integers lens;
  if (dump.find("kv_indptr") != nullptr) {
    in.kv_indptr = dump.indptr("kv_indptr");
    in.kv_page_indices = dump.integers(dump.required("kv_indices"));
    const std::size_t batch = in.kv_indptr.size() - 1;
    if (size(in.kv_indptr.back()) > in.kv_page_indices.size())
      dump.refuse(fmt::format("kv_indptr ends at {}, kv_indices has {} entries", in.kv_indptr.back(),
                              in.kv_page_indices.size()));
    Integers last(batch, 1);
    if (dump.find("kv_last_page_lens") != nullptr)
      last = dump.integers(dump.required("kv_last_page_lens"));
    else if (p.page_size > 1)
      dump.refuse("pages of more than one token need kv_last_page_lens");
    if (last.size() < batch)
      dump.refuse(fmt::format("kv_last_page_lens has {} entries for {} requests", last.size(), batch));
    for (std::size_t r = 0; r < batch; ++r) {
      const int pages = in.kv_indptr[r + 1] - in.kv_indptr[r];
      if (pages > 0 && (last[r] < 1 || last[r] > p.page_size))
        dump.refuse(
            fmt::format("kv_last_page_lens: {} of request {} is outside 1..{}", last[r], r, p.page_size));
      lens.push_back(pages == 0 ? 0 : (pages - 1) * p.page_size + last[r]);
    }
  } else {
    const TensorView& table = dump.required("block_table");
    lens = dump.integers(dump.required("seq_lens"));
    if (table.shape.size() != 2 || table.shape[0] < lens.size())
      dump.refuse(fmt::format("block_table is {}; it must be [requests, pages], and seq_lens has {} entries",
                              shown(table.shape), lens.size()));
    const Integers entries = dump.integers(table);
    in.kv_indptr.push_back(0);
    for (std::size_t r = 0; r < lens.size(); ++r) {
      const int pages = (std::max(0, lens[r]) + p.page_size - 1) / p.page_size;
      if (lens[r] < 0 || size(pages) > table.shape[1])
        dump.refuse(fmt::format("seq_lens: {} of request {} does not fit block_table {}", lens[r], r,
                                shown(table.shape)));
      const auto first = entries.begin() + static_cast<std::ptrdiff_t>(r * table.shape[1]);
      in.kv_page_indices.insert(in.kv_page_indices.end(), first, first + pages);
      in.kv_indptr.push_back(in.kv_indptr.back() + pages);
    }
  }
  for (const int len : lens) {
    p.requests.push_back({.q_len = 1, .kv_len = len});
    in.kv_last_page_len.push_back(len == 0 ? 0 : (len - 1) % p.page_size + 1);
  }
}

/// The bytes of every page in use, at the offset where the call had it.
void read_cache(const Dump& dump, const TensorView& kv, const MlaDecode& p, cases::MlaDecodeInputs& in) {
  const std::uint64_t pages = kv.shape.front();
  in.page_stride_bytes = size(p.page_size) * row * element_bytes(kv.dtype);
  std::map<std::int32_t, std::uint64_t> place;  // of a page in the dump
  if (const TensorView* ids = dump.find("kv_page_ids")) {
    const Integers listed = dump.integers(*ids);
    if (listed.size() != pages)
      dump.refuse(fmt::format("kv_page_ids has {} entries, kv_buffer {} pages", listed.size(), pages));
    for (std::size_t i = 0; i < listed.size(); ++i) place[listed[i]] = i;
  }
  const bool all = place.empty();
  std::set<std::int32_t> used(in.kv_page_indices.begin(), in.kv_page_indices.begin() + in.kv_indptr.back());
  std::int64_t highest = 0;
  for (const std::int32_t page : used) {
    const auto found = place.find(page);
    if (page < 0 || (all ? size(page) >= pages : found == place.end()))
      dump.refuse(fmt::format("kv_indices names page {}, which the dump does not hold", page));
    const auto from =
        kv.bytes.subspan((all ? size(page) : found->second) * in.page_stride_bytes, in.page_stride_bytes);
    in.kv_pool.extents.push_back(
        {.offset = size(page) * in.page_stride_bytes, .bytes = {from.begin(), from.end()}});
    highest = page;
  }
  in.num_pages = std::max<std::int64_t>(all ? static_cast<std::int64_t>(pages) : 0, highest + 1);
  in.kv_pool.size = size(in.num_pages) * in.page_stride_bytes;
}

/// How the call's pages lie, in the words of a case.
void describe_memory(const MlaDecode& p, const cases::MlaDecodeInputs& in, cases::MemoryRecipe& memory) {
  using cases::Placement;
  const std::span pages(in.kv_page_indices.data(), size(in.kv_indptr.back()));
  const std::int32_t highest = pages.empty() ? 0 : *std::max_element(pages.begin(), pages.end());
  const std::uint64_t end = (size(highest) + 1) * in.page_stride_bytes;
  bool ordered = true;
  for (std::size_t i = 1; i < pages.size(); ++i) ordered = ordered && pages[i] == pages[i - 1] + 1;
  memory.placement = end > std::uint64_t{1} << 32U   ? Placement::beyond_4gib
                     : end > std::uint64_t{1} << 31U ? Placement::beyond_2gib
                     : highest >= 1 << 16            ? Placement::high
                     : ordered                       ? Placement::ordered
                                                     : Placement::shuffled;
  std::set<std::int32_t> first_pages;
  int with_pages = 0;
  for (std::size_t r = 0; r < p.requests.size(); ++r)
    if (p.requests[r].kv_len >= p.page_size) {
      ++with_pages;
      first_pages.insert(in.kv_page_indices[size(in.kv_indptr[r])]);
    }
  memory.prefix_sharing = with_pages > 1 && first_pages.size() == 1;
}

/// 64-bit FNV-1a, as everywhere.
std::uint64_t digest(const cases::MlaDecodeInputs& in) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte b : in.q) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3U;
  return hash;
}

void check(const Capture& capture, const std::string& path) {
  try {
    cases::validate(capture.call);
  } catch (const cases::CaseError& error) {
    throw UsageError(fmt::format("{}: no case can be such a call: {}", path, error.what()));
  }
}

/// The call with other requests, each some of its queries and keys; `heads` of all.
Capture part(const Capture& from, const std::vector<std::size_t>& which, int heads,
             const std::vector<cases::Request>& lens) {
  const auto& p = std::get<MlaDecode>(from.call.problem);
  Capture to;
  to.call = from.call;
  auto& q = std::get<MlaDecode>(to.call.problem);
  q.heads = heads;
  q.requests = lens;
  auto& in = to.inputs;
  in.page_stride_bytes = from.inputs.page_stride_bytes;
  in.kv_pool = from.inputs.kv_pool;
  in.num_pages = from.inputs.num_pages;
  in.qo_indptr = in.kv_indptr = {0};
  const std::size_t row_bytes = row * (p.q_format == Format::bf16 ? 2 : 1);
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::size_t r = which[i];
    const int pages = (lens[i].kv_len + p.page_size - 1) / p.page_size;
    const auto first = from.inputs.kv_page_indices.begin() + from.inputs.kv_indptr[r];
    in.kv_page_indices.insert(in.kv_page_indices.end(), first, first + pages);
    in.kv_indptr.push_back(in.kv_indptr.back() + pages);
    in.kv_last_page_len.push_back(lens[i].kv_len == 0 ? 0 : (lens[i].kv_len - 1) % p.page_size + 1);
    in.qo_indptr.push_back(in.qo_indptr.back() + lens[i].q_len);
    for (int t = 0; t < lens[i].q_len; ++t) {
      const auto at = from.inputs.q.begin() + static_cast<std::ptrdiff_t>(size(from.inputs.qo_indptr[r] + t) *
                                                                          size(p.heads) * row_bytes);
      in.q.insert(in.q.end(), at, at + static_cast<std::ptrdiff_t>(size(heads) * row_bytes));
    }
  }
  // What lies behind the live entries is no part of a call; the case's rule for it is.
  in.kv_page_indices.resize(in.kv_page_indices.size() + cases::index_slack, 0);
  return to;
}

}  // namespace

Capture read_capture(const std::string& path) {
  const Dump dump(path);
  if (const std::string op = dump.word("op", MlaDecode::op); op != MlaDecode::op)
    dump.refuse(fmt::format("op {} is not captured; {} is", op.substr(0, 40), MlaDecode::op));
  Capture capture;
  MlaDecode p;
  auto& in = capture.inputs;

  const TensorView& q = dump.required("q");
  const TensorView& kv = dump.required("kv_buffer");
  if (q.shape.size() != 3 || q.shape[2] != row)
    dump.refuse(fmt::format("q is {}; it must be [total_q, heads, {}]", shown(q.shape), row));
  p.q_format = dump.format(q, {Format::bf16, Format::fp8_e4m3fnuz});
  p.kv_format = dump.format(kv, {Format::bf16, Format::fp8_e4m3fnuz});
  p.heads = static_cast<int>(std::min<std::uint64_t>(q.shape[1], 1U << 20U));
  p.page_size = page_size_of(dump, kv);
  p.causal = dump.flag("causal", true);
  p.num_splits = dump.count("num_splits", 1);
  const auto sm_scale = dump.scale("sm_scale");
  if (!sm_scale) dump.refuse("sm_scale is missing; kernels disagree on its default, so it must be said");
  p.sm_scale = *sm_scale;
  p.q_scale = dump.scale("q_scale").value_or(1.0F);
  p.kv_scale = dump.scale("kv_scale").value_or(1.0F);

  read_pages(dump, p, in);
  const std::size_t batch = p.requests.size();
  if (dump.find("qo_indptr") != nullptr) {
    in.qo_indptr = dump.indptr("qo_indptr");
    if (in.qo_indptr.size() != batch + 1)
      dump.refuse(fmt::format("qo_indptr has {} entries for {} requests", in.qo_indptr.size(), batch));
    for (std::size_t r = 0; r < batch; ++r) p.requests[r].q_len = in.qo_indptr[r + 1] - in.qo_indptr[r];
  } else {
    for (std::size_t r = 0; r <= batch; ++r) in.qo_indptr.push_back(static_cast<std::int32_t>(r));
  }
  const std::uint64_t rows = size(in.qo_indptr.back());
  if (rows > q.shape[0]) dump.refuse(fmt::format("qo_indptr ends at {}, q is {}", rows, shown(q.shape)));
  // Graph padding: rows behind the last request belong to nobody.
  const auto live = q.bytes.first(rows * size(p.heads) * row * element_bytes(q.dtype));
  in.q.assign(live.begin(), live.end());

  const TensorView* out = dump.find("out");
  const TensorView* lse = dump.find("lse");
  p.return_lse = lse != nullptr;
  if (out != nullptr) {
    auto& outputs = capture.outputs.emplace();
    const auto take = [&](const TensorView& t, Dtype dtype, const Shape& shape) {
      if (t.dtype != dtype || t.shape.size() != shape.size() || t.shape[0] < shape[0] ||
          !std::equal(shape.begin() + 1, shape.end(), t.shape.begin() + 1))
        dump.refuse(fmt::format("tensor {} is {} {}; the call gives {} {}", t.name, name(t.dtype),
                                shown(t.shape), name(dtype), shown(shape)));
      std::uint64_t bytes = element_bytes(dtype);
      for (const std::uint64_t extent : shape) bytes *= extent;
      outputs.tensors.push_back(
          {t.name, {t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(bytes)}});
    };
    take(*out, Dtype::bf16, {rows, size(p.heads), v_columns});
    if (lse != nullptr) take(*lse, Dtype::f32, {rows, size(p.heads)});
  }

  capture.call.problem = p;
  // Of the fills it is the one that claims least: neither equal weights nor random values.
  capture.call.data.fill = cases::Fill::cancelling;
  check(capture, path);
  read_cache(dump, kv, p, in);
  describe_memory(p, in, capture.call.memory);
  capture.call.seed = digest(in);
  // A dump may end with the live entries; kernels may look at a few more.
  const std::size_t enough = size(in.kv_indptr.back()) + cases::index_slack;
  if (in.kv_page_indices.size() < enough) in.kv_page_indices.resize(enough, 0);
  check(capture, path);
  return capture;
}

void write_capture(const Capture& capture, const std::string& path) {
  const auto& p = std::get<MlaDecode>(capture.call.problem);
  const auto& in = capture.inputs;
  Metadata metadata = {{"op", MlaDecode::op},
                       {"page_size", std::to_string(p.page_size)},
                       {"causal", p.causal ? "true" : "false"},
                       {"num_splits", std::to_string(p.num_splits)},
                       {"sm_scale", fmt::format("{}", p.sm_scale)},
                       {"q_scale", fmt::format("{}", p.q_scale)},
                       {"kv_scale", fmt::format("{}", p.kv_scale)}};
  const std::set<std::int32_t> used(in.kv_page_indices.begin(),
                                    in.kv_page_indices.begin() + in.kv_indptr.back());
  const Integers ids(used.begin(), used.end());
  const Integers live(in.kv_page_indices.begin(), in.kv_page_indices.begin() + in.kv_indptr.back());
  std::vector<std::byte> pages;
  for (const std::int32_t id : ids) {
    const auto page = in.kv_pool.at(size(id) * in.page_stride_bytes, in.page_stride_bytes);
    pages.insert(pages.end(), page.begin(), page.end());
  }
  const auto integers = [](const char* name, const Integers& values) {
    return TensorSource{.name = name,
                        .dtype = Dtype::i32,
                        .shape = {values.size()},
                        .bytes = std::as_bytes(std::span(values))};
  };
  std::vector<TensorSource> tensors = {{.name = "q",
                                        .dtype = dtype_of(p.q_format),
                                        .shape = {size(in.qo_indptr.back()), size(p.heads), row},
                                        .bytes = in.q},
                                       {.name = "kv_buffer",
                                        .dtype = dtype_of(p.kv_format),
                                        .shape = {ids.size(), size(p.page_size), 1, row},
                                        .bytes = pages},
                                       integers("kv_page_ids", ids),
                                       integers("qo_indptr", in.qo_indptr),
                                       integers("kv_indptr", in.kv_indptr),
                                       integers("kv_indices", live),
                                       integers("kv_last_page_lens", in.kv_last_page_len)};
  if (capture.outputs)
    for (const auto& t : capture.outputs->tensors) {
      Shape shape = {size(in.qo_indptr.back()), size(p.heads)};
      if (t.name == "out") shape.push_back(v_columns);
      tensors.push_back({.name = t.name,
                         .dtype = t.name == "out" ? Dtype::bf16 : Dtype::f32,
                         .shape = shape,
                         .bytes = t.bytes});
    }
  write_safetensors(path, metadata, tensors);
}

cases::Case case_like(const Capture& capture) {
  cases::Case c = capture.call;
  c.data.fill = cases::Fill::normal;
  cases::validate(c);
  return c;
}

std::vector<Capture> smaller_captures(const Capture& capture) {
  const auto& p = std::get<MlaDecode>(capture.call.problem);
  std::vector<Capture> smaller;
  const auto offer = [&](const std::vector<std::size_t>& which, int heads,
                         const std::vector<cases::Request>& lens) {
    Capture c = part(capture, which, heads, lens);
    try {
      cases::validate(c.call);
    } catch (const cases::CaseError&) {
      return;  // no query is left
    }
    smaller.push_back(std::move(c));
  };
  std::vector<std::size_t> all;
  for (std::size_t r = 0; r < p.requests.size(); ++r) all.push_back(r);
  if (all.size() > 1) {
    for (const std::size_t r : all) offer({r}, p.heads, {p.requests[r]});
    for (const std::size_t without : all) {
      std::vector<std::size_t> rest;
      std::vector<cases::Request> lens;
      for (const std::size_t r : all)
        if (r != without) {
          rest.push_back(r);
          lens.push_back(p.requests[r]);
        }
      offer(rest, p.heads, lens);
    }
  }
  for (int heads = 1; heads < p.heads; heads *= 2) offer(all, heads, p.requests);
  const auto cut = [&](auto change) {
    std::vector<cases::Request> lens = p.requests;
    for (cases::Request& r : lens) change(r);
    if (lens != p.requests) offer(all, p.heads, lens);
  };
  cut([](cases::Request& r) { r.q_len = std::min(r.q_len, 1); });
  cut([](cases::Request& r) { r.q_len = r.q_len > 1 ? r.q_len - 1 : r.q_len; });
  for (const int divisor : {8, 4, 2})
    cut([&](cases::Request& r) { r.kv_len = std::min(r.kv_len, std::max(r.q_len, r.kv_len / divisor)); });
  cut([&](cases::Request& r) {
    r.kv_len = r.kv_len > p.page_size ? (r.kv_len - 1) / p.page_size * p.page_size : r.kv_len;
  });
  cut([](cases::Request& r) { r.kv_len = r.kv_len > 1 ? r.kv_len - 1 : r.kv_len; });
  if (p.num_splits > 1) {
    Capture one = part(capture, all, p.heads, p.requests);
    std::get<MlaDecode>(one.call.problem).num_splits = 1;
    smaller.push_back(std::move(one));
  }
  return smaller;
}

}  // namespace attest::fuzz::exchange
