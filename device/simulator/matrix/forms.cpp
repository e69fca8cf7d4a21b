// SPDX-License-Identifier: MIT
#include "device/simulator/matrix/forms.h"

#include <algorithm>
#include <iterator>

namespace attest::device::sim::matrix {
namespace {

constexpr Form forms[] = {
    {Op::v_mfma_f32_16x16x8_xf32, 16, 16, 8, 1, Element::xf32, Element::xf32},
    {Op::v_mfma_f32_32x32x4_xf32, 32, 32, 4, 1, Element::xf32, Element::xf32},
    {Op::v_mfma_f32_32x32x1_2b_f32, 32, 32, 1, 2, Element::f32, Element::f32},
    {Op::v_mfma_f32_16x16x1_4b_f32, 16, 16, 1, 4, Element::f32, Element::f32},
    {Op::v_mfma_f32_4x4x1_16b_f32, 4, 4, 1, 16, Element::f32, Element::f32},
    {Op::v_mfma_f32_32x32x2_f32, 32, 32, 2, 1, Element::f32, Element::f32},
    {Op::v_mfma_f32_16x16x4_f32, 16, 16, 4, 1, Element::f32, Element::f32},
    {Op::v_mfma_f32_32x32x4_2b_f16, 32, 32, 4, 2, Element::f16, Element::f16},
    {Op::v_mfma_f32_16x16x4_4b_f16, 16, 16, 4, 4, Element::f16, Element::f16},
    {Op::v_mfma_f32_4x4x4_16b_f16, 4, 4, 4, 16, Element::f16, Element::f16},
    {Op::v_mfma_f32_32x32x8_f16, 32, 32, 8, 1, Element::f16, Element::f16},
    {Op::v_mfma_f32_16x16x16_f16, 16, 16, 16, 1, Element::f16, Element::f16},
    {Op::v_mfma_i32_32x32x4_2b_i8, 32, 32, 4, 2, Element::i8, Element::i8},
    {Op::v_mfma_i32_16x16x4_4b_i8, 16, 16, 4, 4, Element::i8, Element::i8},
    {Op::v_mfma_i32_4x4x4_16b_i8, 4, 4, 4, 16, Element::i8, Element::i8},
    {Op::v_mfma_i32_32x32x16_i8, 32, 32, 16, 1, Element::i8, Element::i8},
    {Op::v_mfma_i32_16x16x32_i8, 16, 16, 32, 1, Element::i8, Element::i8},
    {Op::v_mfma_f32_32x32x4_2b_bf16, 32, 32, 4, 2, Element::bf16, Element::bf16},
    {Op::v_mfma_f32_16x16x4_4b_bf16, 16, 16, 4, 4, Element::bf16, Element::bf16},
    {Op::v_mfma_f32_4x4x4_16b_bf16, 4, 4, 4, 16, Element::bf16, Element::bf16},
    {Op::v_mfma_f32_32x32x8_bf16, 32, 32, 8, 1, Element::bf16, Element::bf16},
    {Op::v_mfma_f32_16x16x16_bf16, 16, 16, 16, 1, Element::bf16, Element::bf16},
    {Op::v_smfmac_f32_16x16x32_f16, 16, 16, 32, 1, Element::f16, Element::f16, true},
    {Op::v_smfmac_f32_32x32x16_f16, 32, 32, 16, 1, Element::f16, Element::f16, true},
    {Op::v_smfmac_f32_16x16x32_bf16, 16, 16, 32, 1, Element::bf16, Element::bf16, true},
    {Op::v_smfmac_f32_32x32x16_bf16, 32, 32, 16, 1, Element::bf16, Element::bf16, true},
    {Op::v_smfmac_i32_16x16x64_i8, 16, 16, 64, 1, Element::i8, Element::i8, true},
    {Op::v_smfmac_i32_32x32x32_i8, 32, 32, 32, 1, Element::i8, Element::i8, true},
    {Op::v_mfma_f64_16x16x4_f64, 16, 16, 4, 1, Element::f64, Element::f64},
    {Op::v_mfma_f64_4x4x4_4b_f64, 4, 4, 4, 4, Element::f64, Element::f64},
    {Op::v_mfma_f32_16x16x32_bf8_bf8, 16, 16, 32, 1, Element::bf8, Element::bf8},
    {Op::v_mfma_f32_16x16x32_bf8_fp8, 16, 16, 32, 1, Element::bf8, Element::fp8},
    {Op::v_mfma_f32_16x16x32_fp8_bf8, 16, 16, 32, 1, Element::fp8, Element::bf8},
    {Op::v_mfma_f32_16x16x32_fp8_fp8, 16, 16, 32, 1, Element::fp8, Element::fp8},
    {Op::v_mfma_f32_32x32x16_bf8_bf8, 32, 32, 16, 1, Element::bf8, Element::bf8},
    {Op::v_mfma_f32_32x32x16_bf8_fp8, 32, 32, 16, 1, Element::bf8, Element::fp8},
    {Op::v_mfma_f32_32x32x16_fp8_bf8, 32, 32, 16, 1, Element::fp8, Element::bf8},
    {Op::v_mfma_f32_32x32x16_fp8_fp8, 32, 32, 16, 1, Element::fp8, Element::fp8},
    {Op::v_smfmac_f32_16x16x64_bf8_bf8, 16, 16, 64, 1, Element::bf8, Element::bf8, true},
    {Op::v_smfmac_f32_16x16x64_bf8_fp8, 16, 16, 64, 1, Element::bf8, Element::fp8, true},
    {Op::v_smfmac_f32_16x16x64_fp8_bf8, 16, 16, 64, 1, Element::fp8, Element::bf8, true},
    {Op::v_smfmac_f32_16x16x64_fp8_fp8, 16, 16, 64, 1, Element::fp8, Element::fp8, true},
    {Op::v_smfmac_f32_32x32x32_bf8_bf8, 32, 32, 32, 1, Element::bf8, Element::bf8, true},
    {Op::v_smfmac_f32_32x32x32_bf8_fp8, 32, 32, 32, 1, Element::bf8, Element::fp8, true},
    {Op::v_smfmac_f32_32x32x32_fp8_bf8, 32, 32, 32, 1, Element::fp8, Element::bf8, true},
    {Op::v_smfmac_f32_32x32x32_fp8_fp8, 32, 32, 32, 1, Element::fp8, Element::fp8, true},
};

}  // namespace

const Form* form_of(Op op) {
  const Form* found =
      std::find_if(std::begin(forms), std::end(forms), [op](const Form& f) { return f.op == op; });
  return found == std::end(forms) ? nullptr : found;
}

FormList all_forms() {
  return {std::begin(forms), std::end(forms)};
}

}  // namespace attest::device::sim::matrix
