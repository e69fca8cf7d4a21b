// SPDX-License-Identifier: MIT
#include "oracle/tests/software_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "reference/formats.h"

namespace attest::oracle::testing {
namespace {

constexpr int width = 576, columns = 512;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float log2_e = 1.44269504F, ln_2 = 0.69314718F;

float to_bf16(float x) {
  if (!std::isfinite(x)) return x;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  bits += 0x7fffU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(bits & 0xffff0000U);
}
float truncate_bf16(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
}
float to_fp8(float x) {
  const auto format = reference::Format::fp8_e4m3fnuz;
  return static_cast<float>(
      reference::decode(format, reference::encode(format, double{x}, reference::Overflow::saturate)));
}

reference::Format convert(cases::Format format) {
  return format == cases::Format::bf16 ? reference::Format::bf16 : reference::Format::fp8_e4m3fnuz;
}

using Row = std::vector<float>;

Row decode_row(reference::Format format, const std::byte* bytes) {
  Row row(width);
  const auto size = static_cast<std::size_t>(reference::bytes_per_element(format));
  for (std::size_t d = 0; d < width; ++d) {
    std::uint32_t code = 0;
    std::memcpy(&code, bytes + d * size, size);
    row[d] = static_cast<float>(reference::decode(format, code));
  }
  return row;
}

/// One split of one row.
struct Partial {
  std::vector<float> o = std::vector<float>(columns, 0.0F);  // normalised
  float m = -infinity, l = 0;
  [[nodiscard]] float lse() const { return l == 0 ? -infinity : (m + std::log2(l)) * ln_2; }
};

class Kernel {
 public:
  Kernel(const cases::Case& c, const cases::Inputs& inputs, const Model& model)
      : problem_(std::get<cases::MlaDecode>(c.problem)),
        in_(std::get<cases::MlaDecodeInputs>(inputs)),
        model_(model) {
    const auto rows = static_cast<std::size_t>(in_.qo_indptr.back() * problem_.heads);
    out_ = cases::poison_bytes(c, c.memory.output, cases::Format::bf16, rows * columns, "out");
    lse_ = cases::poison_bytes(c, c.memory.output, cases::Format::f32, rows, "lse");
  }

  cases::Outputs run() {
    for (std::size_t b = 0; b < problem_.requests.size(); ++b) run_request(b);
    cases::Outputs outputs;
    outputs.tensors.push_back({"out", std::move(out_)});
    if (problem_.return_lse) outputs.tensors.push_back({"lse", std::move(lse_)});
    return outputs;
  }

 private:
  [[nodiscard]] bool has(Fault fault) const { return model_.fault == fault; }

  [[nodiscard]] Row key(std::size_t request, int token) const {
    const int page_size = has(Fault::page_size_one) ? 1 : problem_.page_size;
    const auto entry = static_cast<std::size_t>(in_.kv_indptr[request] + token / page_size);
    const auto page = static_cast<std::uint64_t>(in_.kv_page_indices.at(entry));
    const auto format = convert(problem_.kv_format);
    const auto row_bytes = static_cast<std::uint64_t>(width * reference::bytes_per_element(format));
    std::uint64_t offset =
        page * in_.page_stride_bytes + static_cast<std::uint64_t>(token % page_size) * row_bytes;
    if (has(Fault::offset_wraps)) offset &= 0xffffffffULL;
    try {
      return decode_row(format, in_.kv_pool.at(offset, row_bytes).data());
    } catch (const std::out_of_range&) {
      return Row(width, 0.0F);
    }
  }

  void run_request(std::size_t b) {
    const cases::Request& request = problem_.requests[b];
    int kv_len = request.kv_len;
    if (has(Fault::page_size_one)) kv_len = (kv_len + problem_.page_size - 1) / problem_.page_size;
    int readable = kv_len;
    if (has(Fault::over_read) && kv_len > 0)
      readable = (kv_len + problem_.page_size - 1) / problem_.page_size * problem_.page_size;
    keys_.clear();
    for (int t = 0; t < readable; ++t) keys_.push_back(key(b, t));
    for (int p = 0; p < request.q_len; ++p)
      for (int h = 0; h < problem_.heads; ++h) run_row(b, request.q_len, kv_len, readable - kv_len, p, h);
  }

  void run_row(std::size_t b, int q_len, int kv_len, int beyond, int position, int head) {
    const auto out_row = static_cast<std::size_t>((in_.qo_indptr[b] + position) * problem_.heads + head);
    if (has(Fault::rows_unwritten) && out_row % 3 == 1) return;
    int q_position = position, causal_position = position;
    if (has(Fault::q_len_mask)) q_position = causal_position = position & (q_len - 1);
    if (has(Fault::q_len_shift)) q_position = position >> (std::bit_width(static_cast<unsigned>(q_len)) - 1);
    const int q_head = has(Fault::heads_rotated) ? (head + 1) % problem_.heads : head;
    const auto q_format = convert(problem_.q_format);
    const auto q_row = static_cast<std::size_t>((in_.qo_indptr[b] + q_position) * problem_.heads + q_head);
    const Row q = decode_row(
        q_format,
        in_.q.data() + q_row * static_cast<std::size_t>(width * reference::bytes_per_element(q_format)));

    int visible = problem_.causal ? kv_len - q_len + causal_position + 1 : kv_len;
    if (has(Fault::causal_too_far)) visible = std::min(kv_len, visible + 1);
    if (has(Fault::causal_too_short)) visible -= 1;
    if (has(Fault::causal_missing) || (has(Fault::front_rows_unmasked) && visible <= 0)) visible = kv_len;
    visible = std::max(0, visible);
    if (visible > 0) visible += beyond;

    const int tile = model_.tile, splits = problem_.num_splits;
    int tiles = (kv_len + beyond + tile - 1) / tile;
    if (has(Fault::last_tile_dropped)) tiles = std::max((kv_len + beyond) / tile, std::min(kv_len, 1));
    const int each = (tiles + splits - 1) / splits;
    const int used_splits = has(Fault::split_forgotten) && splits > 1 ? splits - 1 : splits;
    std::vector<Partial> partials(static_cast<std::size_t>(splits));
    for (int s = 0; s < splits; ++s) {
      std::vector<int> mine;
      for (int t = 0; t < tiles; ++t)
        if ((model_.strided ? t % splits : t / each) == s) mine.push_back(t);
      run_split(q, visible, tiles, mine, partials[static_cast<std::size_t>(s)]);
    }
    partials.resize(static_cast<std::size_t>(used_splits));
    merge(partials, out_row);
  }

  [[nodiscard]] float dot(const Row& q, const Row& k) const {
    float sum = 0;
    const auto chunk = static_cast<std::size_t>(model_.chunk);
    for (std::size_t d = 0; d < width; d += chunk) {
      float part = 0;
      for (std::size_t i = d; i < d + chunk; ++i) part += q[i] * k[i];
      sum += part;
    }
    return sum;
  }

  [[nodiscard]] float round_p(float p) const {
    if (has(Fault::p_in_fp8)) return to_fp8(p);
    switch (model_.p) {
      case Model::P::f32:
        return p;
      case Model::P::bf16:
        return to_bf16(p);
      case Model::P::bf16_truncated:
        return truncate_bf16(p);
      case Model::P::fp8_fnuz:
        return to_fp8(p);
    }
    return p;
  }

  void run_split(const Row& q, int visible, int tiles, const std::vector<int>& mine, Partial& part) const {
    float scale = problem_.sm_scale * problem_.q_scale * problem_.kv_scale * log2_e;
    if (has(Fault::softmax_scale)) scale *= 1.01F;
    const Row zeros(width, 0.0F);
    std::vector<float> accumulated(columns, 0.0F);
    std::vector<int> walk = mine;
    if (has(Fault::middle_tile_dropped))
      std::erase_if(walk, [&](int t) { return tiles > 2 && t == tiles / 2; });
    if (has(Fault::tile_twice) && tiles > 1 && !walk.empty() && walk.front() == 0) walk.push_back(0);
    for (const int t : walk) {
      const int first = t * model_.tile;
      const int last_zero = has(Fault::zero_slots) ? model_.tile : 0;
      if (first >= visible && !has(Fault::inf_first_tile)) continue;
      std::vector<float> s(static_cast<std::size_t>(model_.tile), -infinity);
      std::vector<const Row*> v(s.size(), &zeros);
      float tile_max = -infinity;
      for (int i = 0; i < model_.tile; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int token = first + i;
        if (token < visible && !(has(Fault::one_key_missing) && token == visible / 2 && visible > 1)) {
          v[at] = &keys_[static_cast<std::size_t>(token)];
          s[at] = dot(q, *v[at]) * scale;
        } else if (token >= visible && i < last_zero) {
          s[at] = 0;
        }
        tile_max = std::max(tile_max, s[at]);
      }
      const float m = std::max(part.m, tile_max);
      const float origin = m == -infinity && !has(Fault::inf_first_tile) ? 0.0F : m;
      const float rescale = std::exp2(part.m - origin);
      part.m = m;
      part.l *= rescale;
      for (float& o : accumulated) o *= rescale;
      std::vector<float> p(s.size());
      for (std::size_t i = 0; i < s.size(); ++i) {
        const float exact = std::exp2(s[i] - origin);
        p[i] = round_p(exact);
        part.l += model_.sum_of_rounded ? p[i] : exact;
      }
      for (std::size_t d = 0; d < columns; ++d) {
        for (std::size_t i = 0; i < s.size(); i += 16) {
          float sum = 0;
          for (std::size_t j = i; j < std::min(i + 16, s.size()); ++j) sum += p[j] * (*v[j])[d];
          accumulated[d] += sum;
        }
        if (has(Fault::accumulate_bf16)) accumulated[d] = to_bf16(accumulated[d]);
      }
    }
    const float out_scale = has(Fault::kv_scale_missing) ? 1.0F : problem_.kv_scale;
    const float normalise = part.l == 0 ? 0.0F : has(Fault::unnormalised) ? out_scale : out_scale / part.l;
    for (std::size_t d = 0; d < columns; ++d) {
      part.o[d] = accumulated[d] * normalise;
      if (model_.partials_bf16 && problem_.num_splits > 1) part.o[d] = to_bf16(part.o[d]);
    }
  }

  void merge(const std::vector<Partial>& partials, std::size_t row) {
    std::vector<float> o(columns, 0.0F);
    float lse = -infinity;
    if (problem_.num_splits == 1) {
      o = partials.front().o;
      lse = partials.front().lse();
    } else {
      const auto stored = [&](const Partial& p) {
        return p.lse() * (has(Fault::lse_base2_merged) ? log2_e : 1.0F);
      };
      float max = -infinity, sum = 0;
      for (const Partial& p : partials) max = std::max(max, stored(p));
      if (max != -infinity) {
        for (const Partial& p : partials) {
          const float weight = std::exp2((stored(p) - max) * log2_e);
          sum += weight;
          if (weight != 0)
            for (std::size_t d = 0; d < columns; ++d) o[d] += weight * p.o[d];
        }
        for (float& x : o) x /= sum;
        lse = max + std::log2(sum) * ln_2;
      }
      for (const Partial& p : partials)
        if (std::isnan(p.l))
          lse = std::numeric_limits<float>::quiet_NaN(), std::fill(o.begin(), o.end(), lse);
    }
    if (has(Fault::lse_base2_returned)) lse *= log2_e;
    if (has(Fault::columns_shifted)) std::rotate(o.begin() + 64, o.begin() + 65, o.begin() + 96);
    for (std::size_t d = 0; d < columns; ++d) {
      const float rounded = model_.truncate_output ? truncate_bf16(o[d]) : to_bf16(o[d]);
      const auto code = static_cast<std::uint16_t>(
          std::isnan(rounded) ? 0x7fc0U : std::bit_cast<std::uint32_t>(rounded) >> 16);
      std::memcpy(out_.data() + (row * columns + d) * 2, &code, 2);
    }
    std::memcpy(lse_.data() + row * 4, &lse, 4);
  }

  const cases::MlaDecode& problem_;
  const cases::MlaDecodeInputs& in_;
  const Model& model_;
  std::vector<std::byte> out_, lse_;
  std::vector<Row> keys_;
};

constexpr std::array<const char*, 27> fault_names = {"none",
                                                     "q_len_mask",
                                                     "q_len_shift",
                                                     "causal_too_far",
                                                     "causal_too_short",
                                                     "causal_missing",
                                                     "last_tile_dropped",
                                                     "middle_tile_dropped",
                                                     "tile_twice",
                                                     "split_forgotten",
                                                     "lse_base2_merged",
                                                     "lse_base2_returned",
                                                     "kv_scale_missing",
                                                     "page_size_one",
                                                     "over_read",
                                                     "zero_slots",
                                                     "inf_first_tile",
                                                     "heads_rotated",
                                                     "rows_unwritten",
                                                     "softmax_scale",
                                                     "p_in_fp8",
                                                     "accumulate_bf16",
                                                     "one_key_missing",
                                                     "unnormalised",
                                                     "columns_shifted",
                                                     "offset_wraps",
                                                     "front_rows_unmasked"};

}  // namespace

const char* name(Fault fault) {
  return fault_names.at(static_cast<std::size_t>(fault));
}

std::vector<Fault> all_faults() {
  std::vector<Fault> faults;
  for (std::size_t i = 1; i < fault_names.size(); ++i) faults.push_back(static_cast<Fault>(i));
  return faults;
}

cases::Outputs run(const cases::Case& c, const cases::Inputs& inputs, const Model& model) {
  return Kernel(c, inputs, model).run();
}

}  // namespace attest::oracle::testing
