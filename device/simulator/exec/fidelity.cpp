// SPDX-License-Identifier: MIT
#include "device/simulator/exec/fidelity.h"

namespace attest::device::sim {

Fidelity fidelity(Op op) {
  const OpInfo& shape = info(op);
  const bool scalar = shape.name.starts_with("s_");
  if ((scalar && shape.has(op_flag::store)) || shape.name.starts_with("s_scratch_load") ||
      shape.name.starts_with("scratch_load_lds"))
    return {Exactness::unverified, 0, "inherited from older parts; no compiler emits it"};
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
    case Op::s_memtime:
    case Op::s_memrealtime:
      return {Exactness::unverified, 0, "time is made up from the number of instructions"};
    case Op::v_screen_partition_4se_b32:
    case Op::s_endpgm_ordered_ps_done:
      return {Exactness::not_modelled, 0, "graphics only"};
    case Op::ds_gws_init:
    case Op::ds_gws_sema_br:
    case Op::ds_gws_sema_p:
    case Op::ds_gws_sema_release_all:
    case Op::ds_gws_sema_v:
      return {Exactness::not_modelled, 0, "of global wave sync only the barrier is in use"};
    case Op::buffer_store_lds_dword:
    case Op::ds_condxchg32_rtn_b64:
      return {Exactness::not_modelled, 0, "not documented for this part"};
    case Op::s_cbranch_g_fork:
    case Op::s_cbranch_i_fork:
    case Op::s_cbranch_join:
    case Op::s_setvskip:
      return {Exactness::not_modelled, 0, "structured control flow of the first parts"};
    case Op::s_rfe_b64:
    case Op::s_rfe_restore_b64:
    case Op::s_sendmsghalt:
      return {Exactness::not_modelled, 0, "belongs to trap handlers"};
    default:
      return {};
  }
}

}  // namespace attest::device::sim
