// SPDX-License-Identifier: MIT
//
// MLA decode stage 1 behind AITER's argument block: kernels of our own that the `aiter` contract can launch
// where AITER's objects are absent, so that the host model, the checks and the diagnoses are tested without
// them.
//
// Problem. The contract drives binaries whose source nobody outside AMD has. Whether it drives them as AITER
// does, and whether the oracle would notice what such a binary does wrong, can only be tested with kernels
// that keep the same promises and are known to keep them, and with others that break exactly one.
//
// What stage 1 promises to the merge (device/contracts/aiter/stage2.h):
//
//   * Chunks of `chunk` tokens are dealt out to the splits in turn: split z of n has the chunks z, z + n, ...
//     A split whose first chunk lies behind the end is not counted, so it need not be written.
//   * A split that is counted is written for every row, also for a row whose causal bound ends before the
//     split's first key: output 0, lse -inf.
//   * Partials are normalised, f32, [total_q, splits, heads, 512]; their lse is natural.
//   * With one split the result is bf16, [total_q, heads, 512], where the partials would have been, and the
//     lse goes to ptr_LSEP. Except where the host merges all the same (q_len 1): there it stays f32.
//
// and to the reduction of a persistent launch: a work item with partial_qo_loc -1 writes the final bf16 rows
// (zeros for an empty range), others their f32 rows from partial_qo_loc on.
//
// Simple on purpose. A wave takes four heads of one token and walks the keys 64 at a time: lane j computes
// the scores of key j, with q from LDS, and then all lanes together add up V, eight of the 512 columns each.
// No matrix instructions, no staging of K: nothing here resembles mla_decode.hip, so a mistake in one is not
// a mistake in the other.
//
// The ATTEST_FAULT_ blocks are planted defects of the kind that cases/README.md lists for AITER's objects.

#include "device/contracts/aiter/argument_block.h"
#include "device/kernels/gfx9.h"

namespace attest::kernels {

using device::aiter::DecodeArguments;

constexpr int waves = 4;
constexpr int lanes = 64;
constexpr int row_width = 576;
constexpr int columns = 512;               // of V
constexpr int own = columns / lanes;       // columns of a lane
constexpr int row_chunks = row_width / 8;  // of eight elements
constexpr int rows = 4;                    // heads of one token that a wave takes at a time

constexpr int ds_latents = 512;  // bytes of a token in the first run of a page

struct Shared {
  float q[waves][rows][row_width];
};

/// The keys of one request in the order in which a split has them.
struct Keys {
  const char* pool;
  const std::int32_t* table;            ///< the request's entries of kv_page_indices
  std::uint32_t page_bytes, row_bytes;  ///< row_bytes: from a slot to the next, where the keys' rows begin
  int log2_page;
  int chunk, first, step;  ///< tokens; chunks

  [[nodiscard]] __device__ int position(int n) const {
    return (n / chunk * step + first) * chunk + n % chunk;
  }
  [[nodiscard]] __device__ const char* row(int at) const {
    const auto page = static_cast<std::uint32_t>(table[at >> log2_page]);
    const auto in_page = static_cast<std::uint32_t>(at & ((1 << log2_page) - 1)) * row_bytes;
#if defined(ATTEST_FAULT_PAGE_OFFSET_32BIT)
    return pool + (page * page_bytes + in_page);
#else
    return pool + (std::uint64_t{page} * page_bytes + in_page);
#endif
  }
};

struct Part {
  float out[rows][own];  ///< normalised
  float lse[rows];       ///< natural; -inf when nothing was visible
};

__device__ inline float max_of_wave(float x) {
  x = fmaxf(x, exchange_xor<1>(x));
  x = fmaxf(x, exchange_xor<2>(x));
  x = fmaxf(x, exchange_xor<4>(x));
  x = fmaxf(x, exchange_xor<8>(x));
  x = fmaxf(x, exchange_xor<16>(x));
  return fmaxf(x, exchange_halves(x));
}
__device__ inline float sum_of_wave(float x) {
  x += exchange_xor<1>(x);
  x += exchange_xor<2>(x);
  x += exchange_xor<4>(x);
  x += exchange_xor<8>(x);
  x += exchange_xor<16>(x);
  return x + exchange_halves(x);
}

__device__ inline void widen(u32x4 bf16, float (&to)[8]) {
  for (int word = 0; word < 4; ++word) {
    const std::uint32_t pair = bf16[word];
    to[2 * word] = __builtin_bit_cast(float, pair << 16);
    to[2 * word + 1] = __builtin_bit_cast(float, pair & 0xffff0000u);
  }
}

__device__ inline const char* pointer_of_lane(const char* pointer, int lane) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const auto low = static_cast<std::uint32_t>(
      __builtin_amdgcn_readlane(static_cast<int>(static_cast<std::uint32_t>(address)), lane));
  const auto high =
      static_cast<std::uint32_t>(__builtin_amdgcn_readlane(static_cast<int>(address >> 32), lane));
  return reinterpret_cast<const char*>(std::uint64_t{high} << 32 | low);
}

/// Attention of the four rows at `q` over the keys in front of `visible`.
/// @param score_scale of base-2 exponents
/// A cache in rows of 576 elements.
template <typename Elements>
struct Rows {
  static constexpr std::uint32_t row_bytes = row_width * Elements::bytes;
  /// Elements 8 chunk to 8 chunk + 7 of the key at `key`.
  __device__ static void load(const Keys&, const char* key, int chunk, float (&to)[8]) {
    widen(Elements::to_bf16(reinterpret_cast<const typename Elements::Chunk*>(key)[chunk]), to);
  }
};

/// Pages in three runs: 512 fp8 a token, then 4 f32 scales a token, then 64 bf16 a token. `key` is in the
/// first run.
struct DsPages {
  static constexpr std::uint32_t row_bytes = ds_latents;
  __device__ static void load(const Keys& keys, const char* key, int chunk, float (&to)[8]) {
    const auto in_page =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(key - keys.pool) % keys.page_bytes);
    const int slot = static_cast<int>(in_page / ds_latents), tokens = 1 << keys.log2_page;
    const char* scales = key - in_page + tokens * ds_latents;
    if (chunk >= ds_latents / 8) {
      const auto* rope = reinterpret_cast<const u32x4*>(scales + tokens * 16 + slot * 128);
      return widen(rope[chunk - ds_latents / 8], to);
    }
    widen(Fp8::to_bf16(reinterpret_cast<const Fp8::Chunk*>(key)[chunk]), to);
#if defined(ATTEST_FAULT_FIRST_SCALE_FOR_ALL)
    const float scale = reinterpret_cast<const float*>(scales)[4 * slot];
#else
    const float scale = reinterpret_cast<const float*>(scales)[4 * slot + chunk / 16];
#endif
    u32x4 restored;
    for (int word = 0; word < 4; ++word) {
      const float low = to[2 * word] * scale, high = to[2 * word + 1] * scale;
#if defined(ATTEST_FAULT_LATENTS_TRUNCATED)
      restored[word] = __builtin_bit_cast(std::uint32_t, low) >> 16 |
                       (__builtin_bit_cast(std::uint32_t, high) & 0xffff0000u);
#else
      restored[word] = pack_bf16(low, high);
#endif
    }
    widen(restored, to);
  }
};

template <typename Q, typename KV>
__device__ Part attend(Shared& shared, const char* q, const Keys& keys, int visible, float score_scale,
                       float out_scale) {
  const int wave = uniform(static_cast<int>(threadIdx.x) / lanes);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  float(&own_q)[rows][row_width] = shared.q[wave];
  for (int n = lane; n < rows * row_chunks; n += lanes) {
    float values[8];
    widen(Q::to_bf16(reinterpret_cast<const typename Q::Chunk*>(q)[n]), values);
    for (int e = 0; e < 8; ++e) own_q[n / row_chunks][8 * (n % row_chunks) + e] = values[e];
  }
  // Only this wave reads what it wrote, and LDS serves a wave in order.
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();

  float m[rows], l[rows];
  Part part = {};
  for (int r = 0; r < rows; ++r) {
    m[r] = -__builtin_inff();
    l[r] = 0.0F;
  }
  for (int n = 0; keys.position(n) < visible; n += lanes) {
    const int at = keys.position(n + lane);
    const bool seen = at < visible;
    const int count = __builtin_popcountll(__builtin_amdgcn_ballot_w64(seen));
    const char* key = keys.row(seen ? at : keys.position(n));
    float p[rows] = {};
    for (int c = 0; c < row_chunks; ++c) {
      float k[8];
      KV::load(keys, key, c, k);
      for (int r = 0; r < rows; ++r)
        for (int e = 0; e < 8; ++e) p[r] += own_q[r][8 * c + e] * k[e];
    }
    for (int r = 0; r < rows; ++r) {
      const float s = seen ? p[r] * score_scale : -__builtin_inff();
      const float m_new = fmaxf(m[r], max_of_wave(s));
      const float rescale = exp2_hw(m[r] - m_new);
      p[r] = exp2_hw(s - m_new);
      l[r] = l[r] * rescale + p[r];
      for (float& value : part.out[r]) value *= rescale;
      m[r] = m_new;
    }
    for (int j = 0; j < count; ++j) {
      float v[8];
      KV::load(keys, pointer_of_lane(key, j), lane, v);
      for (int r = 0; r < rows; ++r)
        for (int e = 0; e < own; ++e) part.out[r][e] += from_lane(p[r], j) * v[e];
    }
  }
  for (int r = 0; r < rows; ++r) {
    const float sum = sum_of_wave(l[r]);
    const bool empty = sum == 0.0F;
    for (float& value : part.out[r]) value *= empty ? 0.0F : out_scale / sum;
    part.lse[r] = empty ? -__builtin_inff() : (m[r] + log2_hw(sum)) * ln_2;
  }
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
  return part;
}

__device__ inline void store_bf16(std::uint64_t base, std::int64_t row, const float (&out)[own]) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  auto* to = reinterpret_cast<std::uint16_t*>(base) + row * columns;
  reinterpret_cast<u32x4*>(to)[lane] = {pack_bf16(out[0], out[1]), pack_bf16(out[2], out[3]),
                                        pack_bf16(out[4], out[5]), pack_bf16(out[6], out[7])};
}

__device__ inline void store_f32(std::uint64_t base, std::int64_t row, const float (&out)[own]) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  auto* to = reinterpret_cast<f32x4*>(reinterpret_cast<float*>(base) + row * columns) + 2 * lane;
  to[0] = {out[0], out[1], out[2], out[3]};
  to[1] = {out[4], out[5], out[6], out[7]};
}

__device__ inline void store_lse(std::uint64_t base, std::int64_t row, float lse) {
  if (threadIdx.x % lanes == 0) reinterpret_cast<float*>(base)[row] = lse;
}

__device__ inline float scale_at(std::uint64_t pointer) {
  return pointer == 0 ? 1.0F : *reinterpret_cast<const float*>(pointer);
}

template <typename Q>
__device__ const char* query(const DecodeArguments& args, std::int64_t row) {
  return reinterpret_cast<const char*>(args.ptr_q.value) + row * (row_width * Q::bytes);
}

/// grid (ceil(max q_len * heads / rows_per_group), batch, splits). `always_f32`: the host merges even one
/// split.
template <typename Q, typename KV, int heads, int rows_per_group, int chunk, bool always_f32>
__device__ void split_decode(const DecodeArguments& args) {
  __shared__ Shared shared;
  const int wave = uniform(static_cast<int>(threadIdx.x) / lanes);
  const int request = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  const auto* qo_indptr = reinterpret_cast<const std::int32_t*>(args.ptr_qtp.value);
  const auto* kv_indptr = reinterpret_cast<const std::int32_t*>(args.ptr_ltp.value);
  const auto* splits_indptr = reinterpret_cast<const std::int32_t*>(args.ptr_stp.value);
  const int q_begin = qo_indptr[request];
  const int q_len = qo_indptr[request + 1] - q_begin;
  const int splits = splits_indptr[request + 1] - splits_indptr[request];
  const bool final = !always_f32 && args.s_kv_split.value == 1;

#if defined(ATTEST_FAULT_PAGE_SIZE_OVERWRITTEN)
  const int log2_page = 0;
#else
  const int log2_page = static_cast<int>(args.s_log2_plen.value);
#endif
  const int pages = kv_indptr[request + 1] - kv_indptr[request];
  int kv_len = pages;
  if (log2_page > 0 && pages > 0)
    kv_len = ((pages - 1) << log2_page) + reinterpret_cast<const std::int32_t*>(args.ptr_ltl.value)[request];
#if defined(ATTEST_FAULT_GRANULARITY_MISMATCH)
  constexpr int own_chunk = 4 * chunk;
#else
  constexpr int own_chunk = chunk;
#endif
  if (!final && split * own_chunk >= kv_len) return;

  const Keys keys{reinterpret_cast<const char*>(args.ptr_kv.value),
                  reinterpret_cast<const std::int32_t*>(args.ptr_ltd.value) + kv_indptr[request],
                  args.s_bs.value,
                  KV::row_bytes,
                  log2_page,
                  own_chunk,
                  split,
                  splits};
  const float q_scale = scale_at(args.ptr_qscale.value), kv_scale = scale_at(args.ptr_kvscale.value);
  const float score_scale = args.scalar.value * q_scale * kv_scale * log2_e;
  const int end = min(static_cast<int>(blockIdx.x + 1) * rows_per_group, q_len * heads);
  for (int row = static_cast<int>(blockIdx.x) * rows_per_group + rows * wave; row < end;
       row += rows * waves) {
#if defined(ATTEST_FAULT_CAUSAL_BOUND_MISSING)
    const int visible = kv_len;
#else
    const int visible = kv_len - q_len + row / heads + 1;
#endif
    const std::int64_t first = std::int64_t{q_begin} * heads + row;
    const Part part = attend<Q, KV>(shared, query<Q>(args, first), keys, visible, score_scale, kv_scale);
    for (int r = 0; r < rows; ++r) {
      if (final) {
#if defined(ATTEST_FAULT_NULL_RESULT_POINTER)
        store_bf16(args.ptr_rp.value, first + r, part.out[r]);
#elif defined(ATTEST_FAULT_F32_INTO_BF16)
        store_f32(args.ptr_r.value, first + r, part.out[r]);
#else
        store_bf16(args.ptr_r.value, first + r, part.out[r]);
#endif
        if (args.ptr_lsep.value != 0) store_lse(args.ptr_lsep.value, first + r, part.lse[r]);
      } else {
        const std::int64_t token = q_begin + row / heads;
        const std::int64_t partial =
            (token * static_cast<std::int64_t>(args.s_kv_split.value) + split) * heads + row % heads + r;
        store_f32(args.ptr_r.value, partial, part.out[r]);
        store_lse(args.ptr_lse.value, partial, part.lse[r]);
      }
    }
  }
}

/// grid (slots, 1, 1): a workgroup does the works that work_indptr gives it.
template <typename Q, typename KV, int heads>
__device__ void persistent_decode(const DecodeArguments& args) {
  __shared__ Shared shared;
  const int wave = uniform(static_cast<int>(threadIdx.x) / lanes);
  const auto* metadata = reinterpret_cast<const std::uint64_t*>(args.ptr_stp.value);
  const auto* work_indptr = reinterpret_cast<const std::int32_t*>(metadata[0]);
  const auto* work_info_set = reinterpret_cast<const std::int32_t*>(metadata[1]);
  const float q_scale = scale_at(args.ptr_qscale.value), kv_scale = scale_at(args.ptr_kvscale.value);
  const float score_scale = args.scalar.value * q_scale * kv_scale * log2_e;

  for (int work = work_indptr[blockIdx.x]; work < work_indptr[blockIdx.x + 1]; ++work) {
    const std::int32_t* info = work_info_set + 8 * work;
    const int partial_qo_loc = info[1], qo_start = info[2], qo_end = info[3];
    const int kv_start = info[4], kv_offset = info[6];
    const int log2_page = static_cast<int>(args.s_log2_plen.value);
    int kv_len = info[5] - kv_start;
    if (log2_page > 0 && kv_len > 0) {
      const int last = reinterpret_cast<const std::int32_t*>(args.ptr_ltl.value)[info[0]];
      kv_len = ((kv_len - 1) << log2_page) + (kv_offset == 0 ? last : 1 << log2_page);
    }
    const Keys keys{reinterpret_cast<const char*>(args.ptr_kv.value),
                    reinterpret_cast<const std::int32_t*>(args.ptr_ltd.value) + kv_start,
                    args.s_bs.value,
                    KV::row_bytes,
                    log2_page,
                    lanes,
                    0,
                    1};
    for (int row = rows * wave; row < (qo_end - qo_start) * heads; row += rows * waves) {
      const int visible = min(kv_len, kv_len + kv_offset - (qo_end - qo_start) + row / heads + 1);
      const std::int64_t first = std::int64_t{qo_start} * heads + row;
      const Part part = attend<Q, KV>(shared, query<Q>(args, first), keys, visible, score_scale, kv_scale);
      for (int r = 0; r < rows; ++r) {
        if (partial_qo_loc < 0) {
          store_bf16(args.ptr_rp.value, first + r, part.out[r]);
          if (args.ptr_lsep.value != 0) store_lse(args.ptr_lsep.value, first + r, part.lse[r]);
        } else {
          const std::int64_t partial = std::int64_t{partial_qo_loc} * heads + row + r;
          store_f32(args.ptr_r.value, partial, part.out[r]);
          store_lse(args.ptr_lse.value, partial, part.lse[r]);
        }
      }
    }
  }
}

}  // namespace attest::kernels

#define ATTEST_BLOCK_KERNEL(name, body)                                                                 \
  extern "C" __global__ __launch_bounds__(256) void name(attest::device::aiter::DecodeArguments args) { \
    using namespace attest::kernels;                                                                    \
    body(args);                                                                                         \
  }

ATTEST_BLOCK_KERNEL(attest_bf16_qh16_q1, (split_decode<Bf16, Rows<Bf16>, 16, 16, 64, true>))
ATTEST_BLOCK_KERNEL(attest_bf16_qh16_q4, (split_decode<Bf16, Rows<Bf16>, 16, 128, 16, false>))
ATTEST_BLOCK_KERNEL(attest_bf16_qh16_q8, (split_decode<Bf16, Rows<Bf16>, 16, 128, 16, false>))
ATTEST_BLOCK_KERNEL(attest_fp8_qh16_q4, (split_decode<Fp8, Rows<Fp8>, 16, 64, 16, false>))
ATTEST_BLOCK_KERNEL(attest_bf16_qh16_q4_ps, (persistent_decode<Bf16, Rows<Bf16>, 16>))
ATTEST_BLOCK_KERNEL(attest_bf16_fp8_qh16_q4_ps, (persistent_decode<Bf16, Rows<Fp8>, 16>))
ATTEST_BLOCK_KERNEL(attest_bf16_ds_qh16_q4_ps, (persistent_decode<Bf16, DsPages, 16>))
ATTEST_BLOCK_KERNEL(attest_fp8_qh64_q1_ps, (persistent_decode<Fp8, Rows<Fp8>, 64>))
ATTEST_BLOCK_KERNEL(attest_fp8_qh64_q1_lse_ps, (persistent_decode<Fp8, Rows<Fp8>, 64>))
