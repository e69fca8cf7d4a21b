// SPDX-License-Identifier: MIT
#include "device/simulator/exec/fidelity.h"

namespace attest::device::sim {

Fidelity fidelity(Op op) {
  switch (op) {
    case Op::v_exp_f32:
    case Op::v_exp_legacy_f32:
    case Op::v_log_f32:
    case Op::v_log_legacy_f32:
    case Op::v_rcp_f32:
    case Op::v_rcp_iflag_f32:
    case Op::v_rsq_f32:
    case Op::v_sqrt_f32:
    case Op::v_sin_f32:
    case Op::v_cos_f32:
    case Op::v_exp_f16:
    case Op::v_log_f16:
    case Op::v_rcp_f16:
    case Op::v_rsq_f16:
    case Op::v_sqrt_f16:
    case Op::v_sin_f16:
    case Op::v_cos_f16:
      return {Exactness::approximate, 1, "the hardware's tables are not public"};
    case Op::v_rcp_f64:
    case Op::v_rsq_f64:
    case Op::v_sqrt_f64:
      return {Exactness::approximate, 0x1p29,
              "a first approximation, as documented; its bits are not public"};
    case Op::v_cvt_sr_fp8_f32:
    case Op::v_cvt_sr_bf8_f32:
      return {Exactness::approximate, 1, "whether the random bits carry into the exponent is not settled"};
    case Op::v_dot2_f32_f16:
    case Op::v_dot2c_f32_f16:
      return {Exactness::unverified, 0, "order of the two additions and denormal handling"};
    case Op::v_div_scale_f32:
    case Op::v_div_scale_f64:
    case Op::v_div_fmas_f32:
    case Op::v_div_fmas_f64:
      return {Exactness::unverified, 0, "outside the division sequence manual and measurements disagree"};
    case Op::v_cvt_pk_u8_f32:
    case Op::v_cvt_pkaccum_u8_f32:
    case Op::v_cvt_pknorm_i16_f32:
    case Op::v_cvt_pknorm_u16_f32:
    case Op::v_cvt_pknorm_i16_f16:
    case Op::v_cvt_pknorm_u16_f16:
    case Op::v_cvt_norm_i16_f16:
    case Op::v_cvt_norm_u16_f16:
      return {Exactness::unverified, 0, "the rounding of these conversions is not documented"};
    case Op::v_screen_partition_4se_b32:
      return {Exactness::not_modelled, 0, "graphics only"};
    default:
      return {};
  }
}

}  // namespace attest::device::sim
