// SPDX-License-Identifier: MIT
#include "device/contracts/aiter/aiter_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "device/contracts/aiter/argument_block.h"
#include "device/contracts/aiter/asm_table.h"
#include "device/contracts/aiter/dispatch.h"
#include "device/contracts/aiter/sound_domain.h"
#include "device/contracts/aiter/stage2.h"
#include "device/contracts/aiter/work_plan.h"
#include "device/hip/buffer_set.h"
#include "device/hip/device.h"

namespace attest::device::aiter {
namespace {

using cases::Format;

constexpr int threads = 256;
constexpr int row_width = 576;
constexpr int ds_row_bytes = 656;   // of a "byte" cache, whose pages cannot be taken apart into tokens
constexpr int ds_page_size = 64;    // built into the object for it
constexpr int compute_units = 304;  // MI300X
constexpr std::uint64_t instruction_budget = 400'000'000;

constexpr const char* truncating_object = "mla_a16w8_qh16_m16x4_n16x1_coex0_mask1_ps_page64_ds32";

enum class Planner { aiter, simple };

/// How the caller hands over the cache: as vLLM does, one list entry per token and page size 1; or page by
/// page, with the page size that mla_decode_fwd takes and no check refuses.
enum class Paging { tokens, pages };

/// Which row of the table runs: the kernel's own when AITER's dispatch takes the case there; the kernel's own
/// whatever dispatch says; or whichever dispatch takes, the kernel standing for the call.
enum class Selection { dispatched, by_hand, any };

struct Variant {
  Selection selection = Selection::dispatched;
  Planner planner = Planner::aiter;
  Paging paging = Paging::tokens;
  bool sound = false;  ///< draws only the cases on which the kernel is known to be right
};

const char* type_name(Format format) {
  if (format == Format::bf16) return "bf16";
  return format == Format::fp8_e4m3fnuz ? "fp8" : "unsupported";
}

const char* kv_type_name(const cases::MlaDecode& p) {
  return p.kv_layout == cases::KvLayout::ds_page ? "byte" : type_name(p.kv_format);
}

int element_bytes(Format format) {
  return format == Format::bf16 ? 2 : 1;
}

int longest_q_len(const cases::MlaDecode& p) {
  int longest = 0;
  for (const auto& request : p.requests) longest = std::max(longest, request.q_len);
  return longest;
}

bool uniform_q_len(const cases::MlaDecode& p) {
  return std::all_of(p.requests.begin(), p.requests.end(),
                     [&](const cases::Request& r) { return r.q_len == p.requests.front().q_len; });
}

/// What vLLM hands to AITER: one list entry per token, page size 1, every last page full.
struct TokenTable {
  std::vector<std::int32_t> kv_indptr, kv_indices, kv_last_page_lens;
};

TokenTable expand_to_tokens(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
  TokenTable table;
  table.kv_indptr.push_back(0);
  for (std::size_t b = 0; b < p.requests.size(); ++b) {
    for (int token = 0; token < p.requests[b].kv_len; ++token) {
      const auto entry = static_cast<std::size_t>(in.kv_indptr[b] + token / p.page_size);
      const std::int64_t slot = std::int64_t{in.kv_page_indices[entry]} * p.page_size + token % p.page_size;
      table.kv_indices.push_back(static_cast<std::int32_t>(slot));
    }
    table.kv_indptr.push_back(static_cast<std::int32_t>(table.kv_indices.size()));
    table.kv_last_page_lens.push_back(1);
  }
  return table;
}

TokenTable table_of_pages(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) {
  TokenTable table;
  table.kv_indptr.push_back(0);
  for (std::size_t b = 0; b < p.requests.size(); ++b) {
    const int kv_len = p.requests[b].kv_len, pages = (kv_len + p.page_size - 1) / p.page_size;
    const auto first = in.kv_page_indices.begin() + in.kv_indptr[b];
    table.kv_indices.insert(table.kv_indices.end(), first, first + pages);
    table.kv_indptr.push_back(static_cast<std::int32_t>(table.kv_indices.size()));
    table.kv_last_page_lens.push_back(pages == 0 ? 0 : kv_len - (pages - 1) * p.page_size);
  }
  return table;
}

/// [batch, q_len, groups, 16, d] <-> [batch, groups, q_len, 16, d] over rows of `row_bytes` = 16 * d
/// elements.
std::vector<std::byte> fold_heads(std::span<const std::byte> rows, int q_len, int groups,
                                  std::size_t row_bytes, bool inverse) {
  std::vector<std::byte> result(rows.size());
  const std::size_t count = rows.size() / row_bytes;
  const auto q = static_cast<std::size_t>(q_len), g = static_cast<std::size_t>(groups);
  for (std::size_t plain = 0; plain < count; ++plain) {
    const std::size_t group = plain % g, position = plain / g % q, request = plain / g / q;
    const std::size_t folded = (request * g + group) * q + position;
    std::memcpy(result.data() + (inverse ? plain : folded) * row_bytes,
                rows.data() + (inverse ? folded : plain) * row_bytes, row_bytes);
  }
  return result;
}

template <typename T>
std::vector<T> download(const hip::DeviceBuffer& buffer) {
  const std::vector<std::byte> bytes = buffer.download();
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::uint64_t address(const hip::DeviceBuffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

class AiterDecode final : public Kernel {
 public:
  /// With Selection::any only the types and the mode of `row` count.
  AiterDecode(std::filesystem::path folder, std::shared_ptr<const std::vector<AsmRow>> table, AsmRow row,
              Variant variant)
      : folder_(std::move(folder)), table_(std::move(table)), row_(std::move(row)), variant_(variant) {}

  [[nodiscard]] std::string name() const override {
    if (variant_.selection == Selection::any)
      return fmt::format("aiter/mla_decode_fwd@{}{}{}", row_.q_type,
                         row_.q_type == row_.kv_type ? "" : "_" + row_.kv_type,
                         row_.persistent ? "_persistent" : "");
    const char* variant = variant_.sound                                                   ? "@sound"
                          : variant_.paging == Paging::pages                               ? "@paged"
                          : variant_.planner == Planner::simple                            ? "@simple_plan"
                          : variant_.selection == Selection::by_hand && row_.fault.empty() ? "@by_hand"
                                                                                           : "";
    return fmt::format("aiter/{}{}{}", row_.base_name(), row_.fault.empty() ? "" : "+" + row_.fault, variant);
  }
  [[nodiscard]] std::string op() const override { return "mla_decode"; }
  [[nodiscard]] std::string arch() const override { return "gfx942"; }
  [[nodiscard]] std::string contract() const override { return "aiter"; }
  [[nodiscard]] std::string fault() const override { return row_.fault; }
  [[nodiscard]] std::string imitates() const override { return row_.imitates; }
  [[nodiscard]] bool by_hand() const override {
    return variant_.selection == Selection::by_hand || variant_.sound;
  }
  [[nodiscard]] std::string precision() const override {
    // What truncates is a finding; beside it the object is right in this sense.
    if (variant_.sound && row_.base_name() == truncating_object) return "bf16+dstrunc";
    return row_.q_type == "fp8" ? "fp8p-fnuz" : "bf16";
  }
  [[nodiscard]] std::string supports() const override {
    const std::string types = fmt::format("q/kv {}/{}; ", row_.q_type, row_.kv_type);
    if (variant_.selection == Selection::any)
      return fmt::format("{}the object that AITER {} dispatches a call {} work metadata to", types,
                         modelled_commit, row_.persistent ? "with" : "without");
    return fmt::format("{}{} heads; q_len {}; {}{}{}; AITER {}", types, row_.gqa,
                       row_.q_len == 0 ? "any" : fmt::format("up to {}", row_.q_len),
                       row_.prefill      ? "mla_prefill_fwd"
                       : row_.persistent ? "mla_decode_fwd with work metadata"
                                         : "mla_decode_fwd",
                       row_.lse ? ", lse" : "", variant_.paging == Paging::pages ? ", page_size > 1" : "",
                       modelled_commit);
  }

  [[nodiscard]] std::optional<std::string> refuses(const cases::Case& c) const override {
    const auto* p = std::get_if<cases::MlaDecode>(&c.problem);
    if (p == nullptr) return fmt::format("does mla_decode, not {}", cases::op_name(c.problem));
    if (p->out_format != Format::bf16) return "out is bf16";
    if (c.memory.page_padding_bytes != 0)
      return "the cache is viewed as [num_blocks * block_size, 1, 1, 576], which page padding prevents";
    if (longest_q_len(*p) == 0) return "no query at all";
    if (variant_.paging == Paging::pages &&
        (p->page_size == 1 || !std::has_single_bit(unsigned(p->page_size))))
      return "page sizes here are powers of two from 2 on";
    if (row_.kv_type == "byte" && variant_.paging == Paging::tokens && p->page_size != ds_page_size)
      return fmt::format("the object is for pages of {}", ds_page_size);
    if (row_.prefill) return refuses_prefill(*p);
    const auto choice = dispatch(*p);
    if (const auto* refusal = std::get_if<Refusal>(&choice)) return "AITER refuses: " + refusal->why;
    const auto& launch = std::get<DecodeLaunch>(choice);
    if (whole_pages() && launch.fold > 1)
      return "with folded heads AITER's planner reads kv_last_page_lens past its end";
    if (variant_.selection == Selection::dispatched && launch.row.symbol != row_.symbol)
      return fmt::format("AITER dispatches this to {}", launch.row.base_name());
    if (launch.fold > 1 && longest_q_len(*p) > 1 && !uniform_q_len(*p))
      return "AITER refuses: folding heads reshapes q to [batch, q_len, ...], which ragged q_len prevents";
    if (!std::filesystem::exists(folder_ / launch.row.object))
      return fmt::format("{} is not shipped", launch.row.object);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<cases::MlaDecodeDomain> domain() const override {
    return variant_.sound ? sound_domain(row_, whole_domain()) : whole_domain();
  }

  [[nodiscard]] Outcome run(Device& device, const cases::Case& c,
                            const cases::Inputs& inputs) const override {
    hip::HipDevice& gpu = hip::hip_device(device);
    if (const auto why = refuses(c)) throw DeviceError(fmt::format("{}: {}", name(), *why));
    Outcome outcome;
    try {
      const auto& p = std::get<cases::MlaDecode>(c.problem);
      const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
      if (row_.prefill) {
        Run(*this, row_, gpu, c, p, in, outcome).prefill();
      } else {
        const auto plan = std::get<DecodeLaunch>(dispatch(p));
        Run run(*this, plan.row, gpu, c, p, in, outcome);
        if (row_.persistent)
          run.persistent(plan);
        else
          run.split(plan);
      }
    } catch (const hip::CallFailed& failure) {
      outcome.status = Status::harness_error;
      outcome.diagnosis = "a HIP call failed outside of the kernel";
      outcome.detail = failure.what();
    }
    return outcome;
  }

  [[nodiscard]] bool persistent() const { return row_.persistent; }

  [[nodiscard]] std::vector<PlannedPart> parts(const cases::Case& c, const cases::Inputs& inputs,
                                               std::int64_t token, int head) const {
    if (const auto why = refuses(c)) throw DeviceError(fmt::format("{}: {}", name(), *why));
    const auto& p = std::get<cases::MlaDecode>(c.problem);
    const auto& in = std::get<cases::MlaDecodeInputs>(inputs);
    const auto launch = std::get<DecodeLaunch>(dispatch(p));
    const WorkPlan plan = plan_of(p, in, table_for(p, in), launch);
    const int heads = p.heads / launch.fold;
    // Folded, [batch, q_len, groups] is [batch, groups, q_len] (fold_heads).
    const std::int64_t q_len = launch.fold > 1 ? longest_q_len(p) : 1;
    const std::int64_t row = (token / q_len * launch.fold + head / heads) * q_len + token % q_len;
    std::vector<PlannedPart> found;
    for (std::size_t group = 0; group + 1 < plan.work_indptr.size(); ++group)
      for (int w = plan.work_indptr[group]; w < plan.work_indptr[group + 1]; ++w) {
        const WorkInfo& work = plan.work_info_set[static_cast<std::size_t>(w)];
        if (row < work.qo_start || row >= work.qo_end) continue;
        const bool final = work.partial_qo_loc < 0;
        const std::int64_t stored = final ? row : row - work.qo_start + work.partial_qo_loc;
        found.push_back(
            {static_cast<int>(group), w, work.kv_start, work.kv_end, final, stored * heads + head % heads});
      }
    return found;
  }

 private:
  /// The object gets the case's pages, not a list of its tokens.
  [[nodiscard]] bool whole_pages() const {
    return variant_.paging == Paging::pages || row_.kv_type == "byte";
  }

  /// The cases that dispatch takes to the row.
  [[nodiscard]] cases::MlaDecodeDomain whole_domain() const {
    cases::MlaDecodeDomain d;
    d.page_padding = false;
    d.q_format = row_.q_type == "bf16" ? Format::bf16 : Format::fp8_e4m3fnuz;
    d.kv_format = row_.kv_type == "bf16" ? Format::bf16 : Format::fp8_e4m3fnuz;
    if (row_.kv_type == "byte") {
      d.kv_layout = cases::KvLayout::ds_page;
      d.page_sizes = {ds_page_size};
    }
    if (variant_.selection == Selection::any) return d;
    d.causal_only = true;
    if (variant_.selection == Selection::by_hand && row_.fault.empty()) {
      d.heads = {8, 16, 32, 64, 128};
      return d;
    }
    d.heads = {row_.gqa};
    if (row_.prefill) d.num_splits_max = 1;
    if (variant_.paging == Paging::pages) d.page_sizes = {2, 16, 32, 64, 128};
    d.return_lse = row_.prefill || !row_.persistent || row_.lse;
    if (row_.q_len != 0) d.longest_q_len_max = row_.q_len;
    if (row_.prefill || row_.q_len == 0) return d;
    if (row_.persistent) {
      // Called with pages, the others are refused.
      if (row_.gqa == 16 && d.q_format == Format::bf16 && row_.kv_type != "byte")
        d.heads = {16, 32, 64, 128};  // the others are folded
      d.longest_q_len_min = d.q_format == Format::bf16 && row_.gqa == 16 ? 1
                            : row_.q_len == 4                            ? 3
                                                                         : row_.q_len;
    } else if (row_.q_len == 8) {
      d.longest_q_len_min = 5;
      d.longest_q_len_max = 16;
    } else {
      d.longest_q_len_min = row_.q_len == 4 ? (d.q_format == Format::bf16 ? 2 : 3) : row_.q_len;
    }
    return d;
  }

  [[nodiscard]] TokenTable table_for(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in) const {
    return whole_pages() && p.page_size > 1 ? table_of_pages(p, in) : expand_to_tokens(p, in);
  }

  [[nodiscard]] WorkPlan plan_of(const cases::MlaDecode& p, const cases::MlaDecodeInputs& in,
                                 const TokenTable& table, const DecodeLaunch& launch) const {
    const int page_size = whole_pages() ? p.page_size : 1, heads = p.heads / launch.fold;
    const PlanRequest request{.qo_indptr = in.qo_indptr,
                              .kv_indptr = table.kv_indptr,
                              .fold = launch.fold,
                              .heads = heads,
                              .max_q_len = longest_q_len(p),
                              .granularity = page_size > 1 ? std::max(page_size, 16)
                                             : launch.row.q_type == "fp8" && heads == 64 ? 32
                                                                                         : 16,
                              .slots = compute_units,
                              .max_split_per_batch = p.num_splits,
                              .causal = p.causal,
                              .page_size = page_size,
                              .kv_last_page_lens = table.kv_last_page_lens};
    return variant_.planner == Planner::aiter ? plan_v1_2(request) : plan_simple(request, p.num_splits);
  }

  [[nodiscard]] DecodeCall call(const cases::MlaDecode& p) const {
    return {.q_type = type_name(p.q_format),
            .kv_type = kv_type_name(p),
            .heads = p.heads,
            .max_q_len = longest_q_len(p),
            .num_kv_splits = p.num_splits,
            .persistent = row_.persistent,
            .causal = p.causal,
            .return_lse = p.return_lse};
  }

  [[nodiscard]] std::variant<DecodeLaunch, Refusal> dispatch(const cases::MlaDecode& p) const {
    return variant_.selection == Selection::by_hand ? dispatch_by_hand(row_, call(p))
                                                    : dispatch_decode(*table_, call(p));
  }

  [[nodiscard]] std::optional<std::string> refuses_prefill(const cases::MlaDecode& p) const {
    if (p.q_format != Format::bf16 || p.kv_format != Format::bf16) return "AITER refuses: unsupport dtype";
    if (p.heads != 16 && p.heads != 128)
      return "AITER refuses: only support num_q_heads/num_kv_heads==16 or 128";
    if (p.heads != row_.gqa) return "AITER dispatches this to the kernel for another head count";
    if (!p.causal) return "the kernel is causal";
    if (p.num_splits != 1) return "mla_prefill_fwd always uses one split";
    if (!std::filesystem::exists(folder_ / row_.object)) return fmt::format("{} is not shipped", row_.object);
    return std::nullopt;
  }

  /// One run: its buffers, its launches, its results.
  class Run {
   public:
    /// @param row what is launched
    Run(const AiterDecode& kernel, const AsmRow& row, hip::HipDevice& gpu, const cases::Case& c,
        const cases::MlaDecode& p, const cases::MlaDecodeInputs& in, Outcome& outcome)
        : kernel_(kernel),
          row_(row),
          gpu_(gpu),
          case_(c),
          p_(p),
          in_(in),
          outcome_(outcome),
          buffers_(gpu, static_cast<std::uint64_t>(c.memory.guard_bytes)),
          page_size_(kernel.whole_pages() ? p.page_size : 1),
          tokens_(kernel.table_for(p, in)),
          heads_(static_cast<std::size_t>(p.heads)),
          total_q_(static_cast<std::size_t>(in.qo_indptr.back())),
          max_q_len_(longest_q_len(p)) {}

    void split(const DecodeLaunch& plan) {
      const auto splits = static_cast<std::size_t>(p_.num_splits);
      DecodeArguments args = common_arguments(in_.q, in_.qo_indptr);
      hip::DeviceBuffer& out =
          add_poisoned("out", case_.memory.output, Format::bf16, total_q_ * heads_ * v_head_dim);
      hip::DeviceBuffer& final_lse =
          add_poisoned("lse", case_.memory.output, Format::f32, p_.return_lse ? total_q_ * heads_ : 0);
      hip::DeviceBuffer& partial = plan.output_is_partial
                                       ? out
                                       : add_poisoned("splitData", case_.memory.scratch, Format::f32,
                                                      total_q_ * splits * heads_ * v_head_dim);
      hip::DeviceBuffer& partial_lse =
          add_poisoned("splitLse", case_.memory.scratch, Format::f32, total_q_ * splits * heads_);
      std::vector<std::int32_t> splits_indptr;
      for (std::size_t b = 0; b <= p_.requests.size(); ++b)
        splits_indptr.push_back(static_cast<std::int32_t>(b * splits));
      args.ptr_r.value = address(partial);
      args.ptr_lse.value = address(partial_lse);
      args.s_mqa.value = plan.s_mqa;
      args.s_kv_split.value = static_cast<std::uint32_t>(splits);
      args.ptr_stp.value = address(buffers_.add_input("num_kv_splits_indptr", splits_indptr));
      args.out_16_nosplit.value = splits == 1 ? 1 : 0;
      args.ptr_lsep.value = p_.return_lse ? address(final_lse) : 0;
      const auto rows = static_cast<unsigned>(max_q_len_ * p_.heads),
                 sub_q = static_cast<unsigned>(plan.sub_q);
      if (!launch({(rows + sub_q - 1) / sub_q, static_cast<unsigned>(p_.requests.size()),
                   static_cast<unsigned>(splits)},
                  args))
        return;
      if (!plan.output_is_partial) {
        auto merged = download<std::uint16_t>(out);
        auto lse = download<float>(final_lse);
        const std::vector<std::byte> partial_bytes = partial.download();
        const auto partial_lse_values = download<float>(partial_lse);
        merge_splits({.heads = p_.heads,
                      .splits = p_.num_splits,
                      .split_granularity = plan.split_granularity,
                      .may_copy_final = plan.may_copy_final,
                      .page_size = page_size_,
                      .qo_indptr = in_.qo_indptr,
                      .kv_indptr = tokens_.kv_indptr,
                      .kv_last_page_lens = tokens_.kv_last_page_lens,
                      .num_kv_splits_indptr = splits_indptr,
                      .partial = partial_bytes,
                      .partial_lse = partial_lse_values,
                      .out = merged,
                      .lse = lse});
        finish(bytes_of(merged), bytes_of(lse));
      } else {
        finish(out.download(), final_lse.download());
      }
    }

    void persistent(const DecodeLaunch& plan) {
      const auto fold = static_cast<std::size_t>(plan.fold);
      const std::size_t heads = heads_ / fold, rows = total_q_ * fold;
      const bool permute = plan.fold > 1 && max_q_len_ > 1;
      const std::size_t q_row = heads * row_width * static_cast<std::size_t>(element_bytes(p_.q_format));
      const std::vector<std::byte> q =
          permute ? fold_heads(in_.q, max_q_len_, plan.fold, q_row, false) : in_.q;

      const WorkPlan work = kernel_.plan_of(p_, in_, tokens_, plan);

      DecodeArguments args = common_arguments(q, in_.qo_indptr);
      hip::DeviceBuffer& out =
          add_poisoned("out", case_.memory.output, Format::bf16, rows * heads * v_head_dim);
      hip::DeviceBuffer& final_lse =
          add_poisoned("lse", case_.memory.output, Format::f32, p_.return_lse ? rows * heads : 0);
      const auto partial_rows = static_cast<std::size_t>(work.partial_rows);
      hip::DeviceBuffer& partial =
          add_poisoned("splitData", case_.memory.scratch, Format::f32, partial_rows * heads * v_head_dim);
      hip::DeviceBuffer& partial_lse =
          add_poisoned("splitLse", case_.memory.scratch, Format::f32, partial_rows * heads);
      const std::vector<std::uint64_t> metadata{
          address(buffers_.add_input("work_indptr", work.work_indptr)),
          address(buffers_.add_input("work_info_set", work.work_info_set))};
      args.ptr_r.value = address(partial);
      args.ptr_lse.value = address(partial_lse);
      args.s_mqa.value = plan.s_mqa;
      args.s_kv_split.value = 1;  // splitData.size(1)
      args.ptr_stp.value = address(buffers_.add_input("work_meta_data", metadata));
      args.ptr_rp.value = address(out);
      args.out_16_nosplit.value = 1;
      args.ptr_lsep.value = p_.return_lse ? address(final_lse) : 0;
      if (!launch({compute_units, 1, 1}, args)) return;

      auto reduced = download<std::uint16_t>(out);
      auto lse = download<float>(final_lse);
      const auto partial_values = download<float>(partial), partial_lse_values = download<float>(partial_lse);
      reduce_partials({.heads = static_cast<int>(heads),
                       .reduce_indptr = work.reduce_indptr,
                       .reduce_final_map = work.reduce_final_map,
                       .reduce_partial_map = work.reduce_partial_map,
                       .partial = partial_values,
                       .partial_lse = partial_lse_values,
                       .out = reduced,
                       .lse = lse});
      std::vector<std::byte> out_bytes = bytes_of(reduced), lse_bytes = bytes_of(lse);
      if (permute) {
        out_bytes = fold_heads(out_bytes, max_q_len_, plan.fold, heads * v_head_dim * 2, true);
        lse_bytes = fold_heads(lse_bytes, max_q_len_, plan.fold, heads * 4, true);
      }
      finish(std::move(out_bytes), std::move(lse_bytes));
    }

    void prefill() {
      DecodeArguments args = common_arguments(in_.q, in_.qo_indptr);
      hip::DeviceBuffer& out =
          add_poisoned("out", case_.memory.output, Format::bf16, total_q_ * heads_ * v_head_dim);
      // The caller gets this buffer as the lse, so it holds what the oracle expects an unwritten lse to hold.
      const std::size_t rows_of_lse = total_q_ * heads_;
      hip::DeviceBuffer& lse = buffers_.add_unwritten(
          "splitLse", cases::poison_bytes(case_, case_.memory.output, Format::f32, rows_of_lse, "lse"),
          Format::f32);
      args.ptr_r.value = address(out);
      args.ptr_lse.value = address(lse);
      args.s_mqa.value = static_cast<std::uint32_t>(p_.heads);
      args.s_kv_split.value = 1;
      args.s_q_bs.value /= static_cast<std::uint32_t>(max_q_len_);
      const auto rows = static_cast<unsigned>(max_q_len_ * p_.heads);
      if (!launch({(rows + 127) / 128, static_cast<unsigned>(p_.requests.size()), 1}, args)) return;
      finish(out.download(), lse.download());
    }

   private:
    hip::DeviceBuffer& add_poisoned(const char* name, cases::Poison poison, Format format,
                                    std::size_t count) {
      return buffers_.add_unwritten(name, cases::poison_bytes(case_, poison, format, count, name), format);
    }

    /// Everything that the three paths fill alike.
    DecodeArguments common_arguments(const std::vector<std::byte>& q,
                                     const std::vector<std::int32_t>& qo_indptr) {
      hip::DeviceBuffer& pool = buffers_.add_input("KV", in_.kv_pool, p_.kv_format);
      const bool in_runs = p_.kv_layout == cases::KvLayout::ds_page;
      const auto kv_row =
          static_cast<std::uint32_t>(in_runs ? ds_row_bytes : row_width * element_bytes(p_.kv_format));
      DecodeArguments args;
      args.ptr_q.value = address(buffers_.add_input("Q", q, p_.q_format));
      args.ptr_kv.value = address(pool);
      args.ptr_ltp.value = address(buffers_.add_input("kv_indptr", tokens_.kv_indptr));
      args.ptr_ltd.value = address(buffers_.add_input("kv_page_indices", tokens_.kv_indices));
      args.ptr_ltl.value = address(buffers_.add_input("kv_last_page_lens", tokens_.kv_last_page_lens));
      args.ptr_qtp.value = address(buffers_.add_input("qo_indptr", qo_indptr));
      args.scalar.value = p_.sm_scale;
      args.s_q_bs.value =
          static_cast<std::uint32_t>(p_.heads * row_width * element_bytes(p_.q_format) * max_q_len_);
      args.s_bs.value = kv_row * static_cast<std::uint32_t>(page_size_);
      args.s_log2_plen.value = static_cast<std::uint32_t>(std::countr_zero(unsigned(page_size_)));
      args.s_cp_world_size.value = 1;
      if (p_.kv_format != Format::bf16 && !in_runs) {
        if (p_.q_format != Format::bf16) args.ptr_qscale.value = address(add_scale("q_scale", p_.q_scale));
        args.ptr_kvscale.value = address(add_scale("kv_scale", p_.kv_scale));
      }
      return args;
    }

    hip::DeviceBuffer& add_scale(const char* name, float scale) {
      return buffers_.add(name, std::as_bytes(std::span(&scale, 1)));
    }

    bool launch(const std::array<unsigned, 3>& grid, const DecodeArguments& args) {
      const hip::Function function = gpu_.function(kernel_.folder_ / row_.object, row_.symbol);
      hip::LaunchReport report = gpu_.launch(function, {grid, threads}, args, instruction_budget);
      outcome_.stage = "stage1";
      outcome_.status = report.status;
      outcome_.diagnosis = std::move(report.diagnosis);
      outcome_.detail = std::move(report.detail);
      outcome_.wave_instructions += report.wave_instructions;
      outcome_.seconds += report.seconds;
      return outcome_.status == Status::ok;
    }

    void finish(std::vector<std::byte> out, std::vector<std::byte> lse) {
      outcome_.outputs.tensors.push_back({"out", std::move(out)});
      if (p_.return_lse) outcome_.outputs.tensors.push_back({"lse", std::move(lse)});
      outcome_.outputs.guard_damage = buffers_.damage();
    }

    const AiterDecode& kernel_;
    const AsmRow& row_;
    hip::HipDevice& gpu_;
    const cases::Case& case_;
    const cases::MlaDecode& p_;
    const cases::MlaDecodeInputs& in_;
    Outcome& outcome_;
    hip::BufferSet buffers_;
    int page_size_;  ///< as the kernel is told
    TokenTable tokens_;
    std::size_t heads_, total_q_;
    int max_q_len_;
  };

  std::filesystem::path folder_;
  std::shared_ptr<const std::vector<AsmRow>> table_;
  AsmRow row_;
  Variant variant_;
};

}  // namespace

std::optional<std::vector<PlannedPart>> planned_parts(const Kernel& kernel, const cases::Case& c,
                                                      const cases::Inputs& inputs, std::int64_t token,
                                                      int head) {
  const auto* decode = dynamic_cast<const AiterDecode*>(&kernel);
  if (decode == nullptr || !decode->persistent()) return std::nullopt;
  return decode->parts(c, inputs, token, head);
}

std::vector<std::unique_ptr<const Kernel>> aiter_kernels(const std::filesystem::path& hsa) {
  const auto table = std::make_shared<const std::vector<AsmRow>>(read_asm_table(hsa, "gfx942"));
  std::vector<std::unique_ptr<const Kernel>> found;
  const auto add = [&](const AsmRow& row, Variant variant) {
    found.push_back(std::make_unique<AiterDecode>(hsa / "gfx942" / "mla", table, row, variant));
  };
  for (const AsmRow& row : *table) {
    if (row.gqa == 1) continue;  // fp8 MHA prefill: another op, and its objects are not shipped
    const Selection selection = row.fault.empty() ? Selection::dispatched : Selection::by_hand;
    add(row, {.selection = selection});
    if (sound_domain(row, {})) add(row, {.sound = true});
    if (row.prefill) continue;
    if (row.fault.empty()) add(row, {.selection = Selection::by_hand});
    if (row.persistent) add(row, {.selection = selection, .planner = Planner::simple});
    add(row, {.selection = selection, .paging = Paging::pages});
  }
  for (const bool persistent : {false, true})
    for (const auto& [q_type, kv_type] : {std::pair{"bf16", "bf16"}, {"bf16", "fp8"}, {"fp8", "fp8"}}) {
      AsmRow call;
      call.q_type = q_type;
      call.kv_type = kv_type;
      call.persistent = persistent;
      add(call, {.selection = Selection::any});
    }
  return found;
}

}  // namespace attest::device::aiter
