// SPDX-License-Identifier: MIT
#include "device/simulator/matrix/matrix.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/simulator/core/fault.h"
#include "device/simulator/matrix/forms.h"
#include "device/simulator/matrix/kernels.h"

namespace attest::device::sim::matrix {
namespace {

const Form& form_at(const Instruction& instruction) {
  static const auto table = [] {
    std::array<const Form*, op_count> forms{};
    for (const Form& form : all_forms()) forms[static_cast<std::size_t>(form.op)] = &form;
    return forms;
  }();
  return *table[static_cast<std::size_t>(instruction.op)];
}

bool is_vector(std::uint16_t code) {
  return code >= operand::vgpr0 && code != operand::none;
}
std::uint32_t row(std::uint16_t code) {
  return code - operand::vgpr0;
}

/// Inline constants as an f32 or i32 operand, and as an f64 operand.
bool inline_constant(std::uint16_t code, std::uint32_t* bits32, std::uint64_t* bits64) {
  if (code >= 128 && code <= 208) {
    const int value = code <= 192 ? code - 128 : 192 - code;
    *bits32 = static_cast<std::uint32_t>(value);
    *bits64 = static_cast<std::uint64_t>(std::int64_t{value});
    return true;
  }
  if (code < 240 || code > 248) return false;
  static constexpr float values[] = {0.5f, -0.5f, 1.0f, -1.0f, 2.0f, -2.0f, 4.0f, -4.0f};
  if (code == 248) {
    *bits32 = 0x3e22f983u;  // 1 / (2 pi)
    *bits64 = 0x3fc45f306dc9c882u;
  } else {
    *bits32 = std::bit_cast<std::uint32_t>(values[code - 240]);
    *bits64 = std::bit_cast<std::uint64_t>(double{values[code - 240]});
  }
  return true;
}

/// C as it lies in registers, [registers_d][64].
void load_c(const Wave& wave, const Instruction& instruction, const Form& form, std::uint32_t* c) {
  const std::uint16_t code = form.sparse ? instruction.dst : instruction.src[2];
  const std::size_t count = static_cast<std::size_t>(form.registers_d()) * lanes;
  if (is_vector(code)) {
    std::memcpy(c, wave.v(row(code)), count * sizeof *c);
    return;
  }
  std::uint32_t low = 0;
  std::uint64_t wide = 0;
  inline_constant(code, &low, &wide);
  for (std::size_t i = 0; i < count; ++i) {
    const bool high_half = (i / lanes) % 2 == 1;
    c[i] = form.a == Element::f64 ? static_cast<std::uint32_t>(high_half ? wide >> 32 : wide) : low;
  }
}

/// Element `item` of a lane, of 32 bits or less.
std::uint32_t element(const std::uint32_t* registers, int bits, Place place) {
  const int bit = place.item * bits;
  const std::uint32_t word = registers[bit / 32 * lanes + place.lane];
  return bits == 32 ? word : (word >> (bit % 32)) & ((1u << bits) - 1);
}

std::uint64_t element64(const std::uint32_t* registers, Place place) {
  return registers[2 * place.item * lanes + place.lane] |
         std::uint64_t{registers[(2 * place.item + 1) * lanes + place.lane]} << 32;
}

void multiply_f64(const Form& form, int blgp, const std::uint32_t* a, const std::uint32_t* b,
                  const std::uint32_t* c, std::uint32_t* d) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t flip_a = (blgp & 1) != 0 ? sign : 0, flip_b = (blgp & 2) != 0 ? sign : 0,
                      flip_c = (blgp & 4) != 0 ? sign : 0;
  for (int block = 0; block < form.blocks; ++block)
    for (int i = 0; i < form.m; ++i)
      for (int j = 0; j < form.n; ++j) {
        std::uint64_t row_a[4], column_b[4];
        for (int k = 0; k < form.k; ++k) {
          row_a[k] = element64(a, place_a(form, block, i, k)) ^ flip_a;
          column_b[k] = element64(b, place_b(form, block, k, j)) ^ flip_b;
        }
        const Place at = place_d(form, block, i, j);
        const std::uint64_t result = fma_chain(row_a, column_b, form.k, element64(c, at) ^ flip_c);
        d[2 * at.item * lanes + at.lane] = static_cast<std::uint32_t>(result);
        d[(2 * at.item + 1) * lanes + at.lane] = static_cast<std::uint32_t>(result >> 32);
      }
}

struct Sparsity {
  const std::uint32_t* indices = nullptr;  // [64], of a sparse A
  int cbsz = 0, abid = 0;
};

void multiply(const Form& form, SumRule rule, bool flush, const Sparsity& sparsity, const std::uint32_t* a,
              const std::uint32_t* b, const std::uint32_t* c, std::uint32_t* d) {
  const int bits_a = bits_of(form.a), bits_b = bits_of(form.b), k = form.stored_k();
  const auto fetch = [flush](const std::uint32_t* registers, int bits, Place place) {
    const std::uint32_t value = element(registers, bits, place);
    return flush ? flush_subnormal(value) : value;
  };
  for (int block = 0; block < form.blocks; ++block)
    for (int i = 0; i < form.m; ++i) {
      std::uint32_t row_a[32], column_b[32];
      int dense_k[32];
      for (int s = 0; s < k; ++s) {
        const Place at = place_a(form, block, i, s);
        row_a[s] = fetch(a, bits_a, at);
        dense_k[s] = s;
        if (form.sparse) {
          const int first = s / form.per_lane_a() * form.per_lane_b();
          dense_k[s] =
              first + sparse_k(form, sparsity.indices[at.lane], sparsity.cbsz, sparsity.abid, at.item);
        }
      }
      for (int j = 0; j < form.n; ++j) {
        for (int s = 0; s < k; ++s) column_b[s] = fetch(b, bits_b, place_b(form, block, dense_k[s], j));
        const Place at = place_d(form, block, i, j);
        const std::size_t index =
            static_cast<std::size_t>(at.item) * lanes + static_cast<std::size_t>(at.lane);
        switch (form.a) {
          case Element::i8:
            d[index] = integer_chain(row_a, column_b, k, c[index]);
            break;
          case Element::f32:
            d[index] = fma_chain(row_a, column_b, k, c[index]);
            break;
          default:
            d[index] = dot_accumulate(rule, form.a, form.b, row_a, column_b, k, c[index]);
        }
      }
    }
}

bool flushes_inputs(const Wave& wave, const Form& form) {
  return (form.a == Element::f32 || form.a == Element::xf32) && (wave.mode & mode::denorm32_in) == 0;
}

template <SumRule rule>
void execute_by_model(Wave& wave, const Instruction& instruction) {
  const Form& form = form_at(instruction);
  std::uint32_t a[4 * lanes], b[4 * lanes], c[32 * lanes];
  const bool broadcasts = !form.sparse && form.a != Element::f64;
  for (int r = 0; r < form.registers_a(); ++r)
    for (int lane = 0; lane < lanes; ++lane)
      a[r * lanes + lane] =
          wave.v(row(instruction.src[0]) +
                 r)[broadcasts ? broadcast_a(lane, instruction.cbsz, instruction.abid) : lane];
  for (int r = 0; r < form.registers_b(); ++r)
    for (int lane = 0; lane < lanes; ++lane)
      b[r * lanes + lane] =
          wave.v(row(instruction.src[1]) + r)[broadcasts ? permute_b(lane, instruction.blgp) : lane];
  load_c(wave, instruction, form, c);
  std::uint32_t* d = wave.v(row(instruction.dst));
  if (form.a == Element::f64) {
    multiply_f64(form, instruction.blgp, a, b, c, d);
    return;
  }
  std::uint32_t indices[lanes] = {};
  if (form.sparse) std::memcpy(indices, wave.v(row(instruction.src[2])), sizeof indices);
  multiply(form, rule, flushes_inputs(wave, form), {indices, instruction.cbsz, instruction.abid}, a, b, c, d);
}

Kernel kernel_of(const Form& form, SimdLevel level) {
  if (form.sparse || form.m != form.n) return nullptr;
  const KernelShape shape{form.m, form.k, form.blocks, form.a, form.b};
  switch (level) {
    case SimdLevel::baseline:
      return baseline_kernel(shape);
    case SimdLevel::avx2:
      return avx2_kernel(shape);
    case SimdLevel::avx512:
      return avx512_kernel(shape);
  }
  return nullptr;
}

template <SimdLevel level>
const std::array<Kernel, op_count>& kernels() {
  static const auto table = [] {
    std::array<Kernel, op_count> found{};
    for (const Form& form : all_forms()) found[static_cast<std::size_t>(form.op)] = kernel_of(form, level);
    return found;
  }();
  return table;
}

constexpr std::size_t most_rows_c = 32;
alignas(64) constexpr std::uint32_t zeros[most_rows_c * lanes] = {};

bool overlap(const std::uint32_t* x, const std::uint32_t* y, std::size_t count) {
  return x < y + count && y < x + count;
}

template <SimdLevel level, SumRule rule>
void execute_by_kernel(Wave& wave, const Instruction& instruction) {
  const Form& form = form_at(instruction);
  alignas(64) std::uint32_t a[2 * lanes], b[2 * lanes], c[most_rows_c * lanes];
  Operands operands{wave.v(row(instruction.src[0])),
                    wave.v(row(instruction.src[1])),
                    zeros,
                    wave.v(row(instruction.dst)),
                    rule,
                    flushes_inputs(wave, form)};
  if (instruction.cbsz != 0) {
    for (int r = 0; r < form.registers_a(); ++r)
      for (int lane = 0; lane < lanes; ++lane)
        a[r * lanes + lane] = operands.a[r * lanes + broadcast_a(lane, instruction.cbsz, instruction.abid)];
    operands.a = a;
  }
  if (instruction.blgp != 0) {
    for (int r = 0; r < form.registers_b(); ++r)
      for (int lane = 0; lane < lanes; ++lane)
        b[r * lanes + lane] = operands.b[r * lanes + permute_b(lane, instruction.blgp)];
    operands.b = b;
  }
  const std::uint16_t code = instruction.src[2];
  const std::size_t count = static_cast<std::size_t>(form.registers_d()) * lanes;
  if (is_vector(code)) {
    operands.c = wave.v(row(code));
    if (operands.c != operands.d && overlap(operands.c, operands.d, count)) {
      std::memcpy(c, operands.c, count * sizeof *c);
      operands.c = c;
    }
  } else if (code != operand::zero) {
    load_c(wave, instruction, form, c);
    operands.c = c;
  }
  kernels<level>()[static_cast<std::size_t>(instruction.op)](operands);
}

template <SumRule rule>
Handler kernel_handler(Op op, SimdLevel level) {
  const auto index = static_cast<std::size_t>(op);
  switch (level) {
    case SimdLevel::baseline:
      return kernels<SimdLevel::baseline>()[index] ? execute_by_kernel<SimdLevel::baseline, rule> : nullptr;
    case SimdLevel::avx2:
      return kernels<SimdLevel::avx2>()[index] ? execute_by_kernel<SimdLevel::avx2, rule> : nullptr;
    case SimdLevel::avx512:
      return kernels<SimdLevel::avx512>()[index] ? execute_by_kernel<SimdLevel::avx512, rule> : nullptr;
  }
  return nullptr;
}

void refuse_modifiers(Wave&, const Instruction& instruction) {
  const Form& form = form_at(instruction);
  throw Fault(FaultKind::illegal_instruction,
              std::string(info(instruction.op).name) + " with cbsz:" + std::to_string(instruction.cbsz) +
                  " abid:" + std::to_string(instruction.abid) + ": cbsz chooses among 2^cbsz of the " +
                  std::to_string(form.blocks) + " block(s), abid one of those");
}

bool legal_modifiers(const Instruction& instruction, const Form& form) {
  if (form.a == Element::f64 || form.sparse) return true;
  return (1 << instruction.cbsz) <= form.blocks && instruction.abid < (1 << instruction.cbsz);
}

bool operands_supported(const Instruction& instruction, const Form& form) {
  if (!is_vector(instruction.dst) || !is_vector(instruction.src[0]) || !is_vector(instruction.src[1]))
    return false;
  if (form.sparse) return is_vector(instruction.src[2]);
  std::uint32_t low = 0;
  std::uint64_t wide = 0;
  return is_vector(instruction.src[2]) || inline_constant(instruction.src[2], &low, &wide);
}

/// Also catches a process that flushes subnormals: the sum is one then.
void require_default_rounding() {
  volatile float one = 1.0f, half_ulp = 0x1p-24f, tiny = std::numeric_limits<float>::denorm_min();
  const bool nearest = one + half_ulp == 1.0f && -one - half_ulp == -1.0f && one + 1.5f * half_ulp > 1.0f;
  if (!nearest || tiny * one == 0.0f)
    throw std::runtime_error(
        "the simulator needs rounding to nearest and subnormals kept; this thread's floating-point "
        "environment was changed (see fesetround, -ffast-math, DAZ/FTZ)");
}

}  // namespace

Handler model_handler(const Instruction& instruction, SumRule rule) {
  const Form* form = form_of(instruction.op);
  if (form == nullptr || !operands_supported(instruction, *form)) return nullptr;
  if (!legal_modifiers(instruction, *form)) return refuse_modifiers;
  require_default_rounding();
  return rule == SumRule::aligned ? execute_by_model<SumRule::aligned>
                                  : execute_by_model<SumRule::renormalised>;
}

Handler handler(const Instruction& instruction, SimdLevel level, SumRule rule) {
  const Handler slow = model_handler(instruction, rule);
  if (slow == nullptr || slow == refuse_modifiers) return slow;
  const Handler fast = rule == SumRule::aligned
                           ? kernel_handler<SumRule::aligned>(instruction.op, level)
                           : kernel_handler<SumRule::renormalised>(instruction.op, level);
  return fast != nullptr ? fast : slow;
}

}  // namespace attest::device::sim::matrix

namespace attest::device::sim {

Handler matrix_handler(const Instruction& instruction, SimdLevel level) {
  const char* wish = std::getenv("ATTEST_SIM_MFMA");  // hip_api/runtime.cpp refuses names that are none
  const auto rule = matrix::sum_rule_named(wish != nullptr ? wish : "");
  return matrix::handler(instruction, level, rule.value_or(matrix::default_sum_rule));
}

}  // namespace attest::device::sim
