// SPDX-License-Identifier: MIT
#include "fuzz/exchange/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "fuzz/record.h"

namespace attest::fuzz::exchange {
namespace {

using cases::Format;

constexpr std::pair<Format, Dtype> formats[] = {
    {Format::bf16, Dtype::bf16},
    {Format::f16, Dtype::f16},
    {Format::f32, Dtype::f32},
    {Format::fp8_e4m3fn, Dtype::f8_e4m3},
    {Format::fp8_e4m3fnuz, Dtype::f8_e4m3fnuz},
    {Format::fp8_e5m2, Dtype::f8_e5m2},
    {Format::fp8_e5m2fnuz, Dtype::f8_e5m2fnuz},
    {Format::e8m0, Dtype::f8_e8m0},
};

constexpr std::uint64_t mla_row = 576, mla_v = 512;

std::uint64_t size(std::integral auto n) {
  return static_cast<std::uint64_t>(n);
}

/// What one op's inputs are called and shaped, and what it gives. Lists keep the order of README.md.
class Describer {
 public:
  explicit Describer(Description& d) : d_(d) {}

  void describe(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
    const std::uint64_t rows = size(in.qo_indptr.back()), heads = size(p.heads);
    input("q", p.q_format, {rows, heads, mla_row}, in.q);
    decode_cache(p, in);
    input("qo_indptr", in.qo_indptr);
    input("kv_indptr", in.kv_indptr);
    input("kv_indices", in.kv_page_indices);
    input("kv_last_page_lens", in.kv_last_page_len);
    block_table(p.requests, in);
    attention_outputs(p.out_format, {rows, heads, mla_v}, p.return_lse);
  }

  void describe(const cases::VerifyAttention& p, const cases::VerifyAttentionInputs& in) {
    const std::uint64_t heads = size(p.heads);
    input("q", Format::bf16, {size(in.q_indptr.back()), heads, mla_row}, in.q);
    const cases::MlaDecode decode = cases::decode_problem(p);
    decode_cache(decode, in.decode);
    input("q_indptr", in.q_indptr);
    input("node_indptr", in.node_indptr);
    input("mask", Dtype::u64, {in.mask.size()}, bytes(in.mask));
    input("kv_indptr", in.decode.kv_indptr);
    input("kv_indices", in.decode.kv_page_indices);
    input("kv_last_page_lens", in.decode.kv_last_page_len);
    block_table(decode.requests, in.decode);
    attention_outputs(Format::bf16, {size(in.decode.qo_indptr.back()), heads, mla_v}, p.return_lse);
  }

  void describe(const cases::MlaPrefill& p, const cases::MlaPrefillInputs& in) {
    const std::uint64_t rows = size(in.qo_indptr.back()), keys = size(in.kv_indptr.back());
    const std::uint64_t heads = size(p.heads), k = cases::prefill_k_columns, v = cases::prefill_v_columns;
    input("q", p.qkv_format, {rows, heads, k}, in.q);
    input("k", p.qkv_format, {keys, heads, k}, in.k);
    input("v", p.qkv_format, {keys, heads, size(p.v_stride)}, in.v);
    pool("context_kv", dtype_of(p.cache_format), {size(p.page_size), heads, k + v}, in.context_pool,
         in.page_stride_bytes);
    input("qo_indptr", in.qo_indptr);
    input("kv_indptr", in.kv_indptr);
    input("context_lens", in.context_len);
    input("page_indptr", in.page_indptr);
    input("page_indices", in.page_indices);
    attention_outputs(Format::bf16, {rows, heads, v}, p.return_lse);
  }

  void describe(const cases::MergeStates& p, const cases::MergeStatesInputs& in) {
    const std::uint64_t rows = size(p.tokens), heads = size(p.heads);
    const Shape lse = p.lse_layout == cases::LseLayout::heads_first ? Shape{heads, rows} : Shape{rows, heads};
    for (std::size_t s = 0; s < in.states.size(); ++s) {
      input(fmt::format("state{}.out", s), p.state_format, {rows, size(p.token_stride(p.states[s]))},
            in.states[s].out);
      input(fmt::format("state{}.lse", s), Dtype::f32, lse, bytes(in.states[s].lse));
    }
    output("out", dtype_of(p.out_format), {rows, size(p.token_stride(p.out_layout()))});
    if (p.return_lse) output("lse", Dtype::f32, lse);
  }

  void describe(const cases::IndexRemap& p, const cases::IndexRemapInputs& in) {
    const std::uint64_t rows = in.request_of_row.size();
    input("indices", in.indices, {rows, size(p.k)});
    input("request_of_row", in.request_of_row);
    input("block_table", in.block_table, {p.requests.size(), size(in.table_stride)});
    input("slot_indptr", in.slot_indptr);
    if (p.layout == cases::SlotLayout::dense)
      output("slots", Dtype::i32, {rows, size(p.k)});
    else
      output("slots", Dtype::i32, {size(in.slot_indptr.back())});
  }

  void describe(const cases::TopK& p, const cases::TopKInputs& in) {
    const std::uint64_t rows = in.row_begin.size();
    input("logits", Dtype::f32, {rows, size(in.row_stride)}, bytes(in.logits));
    input("row_begin", in.row_begin);
    input("row_end", in.row_end);
    input("kv_lens", in.kv_lens);
    scalar("next_n", in.next_n);
    scalar("width", in.width);
    output("positions", Dtype::i32, {rows, size(p.k)});
  }

  void describe(const cases::SpecVerify& p, const cases::SpecVerifyInputs& in) {
    const std::uint64_t vocab = size(p.vocab), rows = in.uniforms.size(), requests = in.greedy.size();
    input("cu_num_drafts", in.cu_num_drafts);
    input("draft_tokens", in.draft_tokens);
    input("greedy", in.greedy);
    input("target_probs", Dtype::f32, {rows, vocab}, bytes(in.target_probs));
    if (p.draft_probs) input("draft_probs", Dtype::f32, {rows, vocab}, bytes(in.draft_probs));
    input("uniforms", Dtype::f64, {rows}, bytes(in.uniforms));
    input("exponentials", Dtype::f32, {requests, vocab}, bytes(in.exponentials));
    input("bonus", in.bonus);
    if (p.tree) {
      input("ancestors", Dtype::u32, {in.ancestors.size()}, bytes(in.ancestors));
      input("depth", in.depth);
    }
    const std::uint64_t padded = requests + size(p.padded_requests);
    output("tokens", Dtype::i32, {padded, size(p.max_spec_len) + 1});
    output("nodes", Dtype::i32, {padded, size(p.max_spec_len)});
  }

  void describe(const cases::CacheWrite& p, const cases::CacheWriteInputs& in) {
    const std::uint64_t tokens = in.slot_mapping.size();
    const bool indexer = p.layout == cases::CacheLayout::indexer;
    input("latent", Format::bf16, {tokens, indexer ? 128U : mla_v}, in.latent);
    if (!indexer) input("rope", Format::bf16, {tokens, 64}, in.rope);
    input("slot_mapping", Dtype::i64, {tokens}, bytes(in.slot_mapping));
    const Shape page = {size(p.page_size), size(cases::cache_token_bytes(p.layout))};
    const Shape whole = pool("pool", Dtype::u8, page, in.pool, in.page_stride_bytes);
    d_.outputs.push_back({"pool", Dtype::u8, whole, &in.pool});
  }

  void describe(const cases::IndexerLogits& p, const cases::IndexerLogitsInputs& in) {
    const std::uint64_t rows = in.row_begin.size(), heads = size(p.heads), columns = 128;
    input("q", Format::fp8_e4m3fnuz, {rows, heads, columns}, in.q);
    input("q_scale", Dtype::f32, {rows, heads}, bytes(in.q_scale));
    input("weights", Dtype::f32, {rows, heads}, bytes(in.weights));
    input("row_begin", in.row_begin);
    input("row_end", in.row_end);
    if (p.form == cases::TopKForm::prefill) {
      input("keys", Format::fp8_e4m3fnuz, {in.k_scale.size(), columns}, in.keys);
      input("k_scale", Dtype::f32, {in.k_scale.size()}, bytes(in.k_scale));
    } else {
      const Shape page = {size(p.page_size) * size(cases::cache_token_bytes(cases::CacheLayout::indexer))};
      pool("pool", Dtype::u8, page, in.pool, in.page_stride_bytes);
      input("kv_lens", in.kv_lens);
      input("block_table", in.block_table, {p.requests.size(), size(in.table_stride)});
    }
    scalar("next_n", in.next_n);
    scalar("width", in.width);
    output("logits", Dtype::f32, {rows, size(in.width)});
  }

  void describe(const cases::MlaSparse& p, const cases::MlaSparseInputs& in) {
    const std::uint64_t rows = in.lengths.size(), heads = size(p.heads);
    input("q", p.q_format, {rows, heads, mla_row}, in.q);
    if (p.kv_layout == cases::KvLayout::ds)
      pool("kv_buffer", Dtype::u8, {size(p.page_size), 656}, in.kv_pool, in.page_stride_bytes);
    else
      pool("kv_buffer", dtype_of(p.kv_format), {size(p.page_size), 1, mla_row}, in.kv_pool,
           in.page_stride_bytes);
    input("indices", in.indices, {rows, size(p.topk)});
    input("lengths", in.lengths);
    scalar("num_slots", static_cast<int>(in.num_slots));
    attention_outputs(p.out_format, {rows, heads, mla_v}, p.return_lse);
  }

  void describe(const cases::DenseSwitch& p, const cases::DenseSwitchInputs& in) {
    const std::uint64_t rows = size(in.qo_indptr.back()), heads = size(p.heads), requests = p.requests.size();
    const std::uint64_t keys = size(in.k_indptr.back()), k = cases::dense_width, v = cases::value_width;
    input("q", Format::bf16, {rows, heads, k}, in.q);
    input("absorbed", Format::bf16, {rows, heads, mla_row}, in.absorbed);
    input("k", Format::bf16, {keys, heads, k}, in.k);
    input("v", Format::bf16, {keys, heads, v}, in.v);
    input("v_columns", in.v_columns, {heads, v});
    pool("kv_buffer", dtype_of(p.kv_format), {size(p.page_size), 1, mla_row}, in.kv_pool,
         in.page_stride_bytes);
    input("block_table", in.block_table, {requests, size(in.table_width)});
    input("qo_indptr", in.qo_indptr);
    input("kv_lens", in.kv_lens);
    if (!in.previous_kv_lens.empty()) input("previous_kv_lens", in.previous_kv_lens);
    input("k_indptr", in.k_indptr);
    input("topk_ids", in.topk_ids, {rows, size(p.topk)});
    output("out", Dtype::bf16, {rows, heads, v});
  }

  void describe(const cases::BlockTableExpand& p, const cases::BlockTableExpandInputs& in) {
    for (std::size_t i = 0; i < in.steps.size(); ++i) {
      const auto& s = in.steps[i];
      const std::string step = fmt::format("step{}.", i);
      const std::uint64_t rows = s.seq_lens.size(), width = size(in.table_width);
      input(step + "query_start_loc", s.query_start_loc);
      input(step + "seq_lens", s.seq_lens);
      input(step + "block_table", s.block_table, {rows, width});
      scalar(step + "num_tokens", s.num_tokens);
      std::uint64_t tokens = 0;
      for (const std::int32_t length : s.seq_lens) tokens += size(length);
      const std::uint64_t requests = p.graph ? size(p.max_requests) : rows;
      const std::uint64_t per_block = size(p.manager_block / p.kernel_block);
      output(step + "qo_indptr", Dtype::i32, {requests + 1});
      output(step + "kv_indptr", Dtype::i32, {requests + 1});
      output(step + "last_page_len", Dtype::i32, {requests});
      output(step + "kernel_block_table", Dtype::i32, {requests, width * per_block});
      output(step + "kv_indices", Dtype::i32, {p.graph ? size(p.index_capacity) : tokens});
    }
  }

 private:
  template <typename T>
  static std::span<const std::byte> bytes(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
  }
  void input(std::string name, Dtype dtype, Shape shape, std::span<const std::byte> data) {
    d_.inputs.push_back({.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .bytes = data});
  }
  void input(std::string name, Format format, Shape shape, std::span<const std::byte> data) {
    input(std::move(name), dtype_of(format), std::move(shape), data);
  }
  void input(std::string name, const std::vector<std::int32_t>& values, Shape shape = {}) {
    if (shape.empty()) shape = {values.size()};
    input(std::move(name), Dtype::i32, std::move(shape), bytes(values));
  }
  /// [pages, ...page], or [pages, elements from one page to the next] where there is padding behind each.
  Shape pool(std::string name, Dtype dtype, const Shape& page, const cases::SparseBytes& data,
             std::uint64_t stride_bytes) {
    std::uint64_t page_bytes = element_bytes(dtype);
    for (const std::uint64_t extent : page) page_bytes *= extent;
    if (stride_bytes == 0) stride_bytes = page_bytes;
    Shape shape = {data.size / stride_bytes};
    if (stride_bytes == page_bytes)
      shape.insert(shape.end(), page.begin(), page.end());
    else
      shape.push_back(stride_bytes / element_bytes(dtype));
    d_.inputs.push_back({.name = std::move(name), .dtype = dtype, .shape = shape, .sparse = &data});
    return shape;
  }
  void decode_cache(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
    if (p.kv_layout == cases::KvLayout::ds_page) {
      pool("kv_buffer", Dtype::u8, {size(p.page_size) * 656}, in.kv_pool, in.page_stride_bytes);
      return;
    }
    pool("kv_buffer", dtype_of(p.kv_format), {size(p.page_size), 1, mla_row}, in.kv_pool,
         in.page_stride_bytes);
  }
  /// The page lists as vLLM has them: a row per request; behind its pages, what lies behind all of them.
  void block_table(const std::vector<cases::Request>& requests, const cases::MlaDecodeInputs& in) {
    const auto pages_of = [&](std::size_t r) { return in.kv_indptr[r + 1] - in.kv_indptr[r]; };
    int width = 1;
    for (std::size_t r = 0; r < requests.size(); ++r) width = std::max(width, pages_of(r));
    std::vector<std::int32_t> table, seq_lens;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const auto first = in.kv_page_indices.begin() + in.kv_indptr[r];
      table.insert(table.end(), first, first + pages_of(r));
      table.resize((r + 1) * static_cast<std::size_t>(width), in.kv_page_indices[size(in.kv_indptr.back())]);
      seq_lens.push_back(requests[r].kv_len);
    }
    derived("block_table", {requests.size(), size(width)}, table);
    derived("seq_lens", {requests.size()}, seq_lens);
  }
  void derived(const char* name, Shape shape, const std::vector<std::int32_t>& values) {
    const auto view = bytes(values);
    const auto& kept = d_.derived.emplace_back(view.begin(), view.end());
    input(name, Dtype::i32, std::move(shape), kept);
  }
  void output(std::string name, Dtype dtype, Shape shape) {
    d_.outputs.push_back({.name = std::move(name), .dtype = dtype, .shape = std::move(shape)});
  }
  void attention_outputs(Format out, Shape shape, bool lse) {
    const Shape rows(shape.begin(), shape.end() - 1);
    output("out", dtype_of(out), std::move(shape));
    if (lse) output("lse", Dtype::f32, rows);
  }
  void scalar(const std::string& name, int value) { d_.metadata[name] = std::to_string(value); }

  Description& d_;
};

template <typename P, typename I>
concept Described = requires(Describer d, const P& p, const I& in) { d.describe(p, in); };

template <typename P, std::size_t... k>
constexpr bool described(std::index_sequence<k...>) {
  return (Described<P, std::variant_alternative_t<k, cases::Inputs>> || ...);
}

/// Scalars by their names in the case file: those of the shape as they are, formats as "<tensor>_format",
/// scales by value.
void add_scalars(Metadata& metadata, const Json& c) {
  for (const auto& [key, value] : c.at("shape").items())
    if (value.is_primitive()) metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  if (c.contains("formats"))
    for (const auto& [key, value] : c.at("formats").items())
      metadata[key + "_format"] = value.get<std::string>();
  if (c.contains("scales"))
    for (const auto& [key, value] : c.at("scales").items()) {
      const auto bits = static_cast<std::uint32_t>(std::stoul(value.get<std::string>(), nullptr, /*base=*/0));
      metadata[key] = fmt::format("{}", std::bit_cast<float>(bits));
    }
}

}  // namespace

Dtype dtype_of(Format format) {
  for (const auto& [f, d] : formats)
    if (f == format) return d;
  throw std::logic_error("a format without an element type");
}

std::optional<Format> format_of(Dtype dtype) {
  for (const auto& [f, d] : formats)
    if (d == dtype) return f;
  return std::nullopt;
}

std::optional<std::string> why_not_exchanged(const cases::Problem& problem) {
  if (std::holds_alternative<cases::WorkPlan>(problem))
    return "op work_plan is judged by the plan that a kernel makes on the device; it is not exchanged";
  const bool known = std::visit(
      []<typename P>(const P&) {
        return described<P>(std::make_index_sequence<std::variant_size_v<cases::Inputs>>());
      },
      problem);
  if (!known) return fmt::format("op {} is not exchanged yet", cases::op_name(problem));
  return std::nullopt;
}

Description describe(const cases::Case& c, const cases::Inputs& inputs) {
  if (const auto why = why_not_exchanged(c.problem)) throw UsageError(*why);
  Description d;
  add_scalars(d.metadata, to_json(c));
  Describer describer(d);
  std::visit(
      [&]<typename P, typename I>(const P& p, const I& in) {
        if constexpr (Described<P, I>)
          describer.describe(p, in);
        else
          throw std::logic_error("inputs of another op than the case's");
      },
      c.problem, inputs);
  d.metadata["attest"] = std::to_string(exchange_schema);
  d.metadata["op"] = cases::op_name(c.problem);
  d.metadata["case"] = cases::canonical_json(c);
  d.metadata["case_id"] = cases::case_id(c);
  Json outputs = Json::object();
  for (const OutputTensor& t : d.outputs) outputs[t.name] = {{"dtype", name(t.dtype)}, {"shape", t.shape}};
  d.metadata["outputs"] = outputs.dump();
  return d;
}

cases::Outputs outputs_of(const Description& description, const SafetensorsFile& file) {
  cases::Outputs outputs;
  for (const OutputTensor& wanted : description.outputs) {
    const TensorView& got = file.required(wanted.name);
    if (got.dtype != wanted.dtype || got.shape != wanted.shape)
      throw UsageError(fmt::format("{}: tensor {} is {} {}; the case asks for {} {}", file.path(),
                                   wanted.name, name(got.dtype), shown(got.shape), name(wanted.dtype),
                                   shown(wanted.shape)));
    auto& tensor = outputs.tensors.emplace_back();
    tensor.name = wanted.name;
    if (wanted.judged == nullptr) {
      tensor.bytes.assign(got.bytes.begin(), got.bytes.end());
      continue;
    }
    for (const auto& extent : wanted.judged->extents) {
      const auto part = got.bytes.subspan(extent.offset, extent.bytes.size());
      tensor.bytes.insert(tensor.bytes.end(), part.begin(), part.end());
    }
  }
  return outputs;
}

}  // namespace attest::fuzz::exchange
