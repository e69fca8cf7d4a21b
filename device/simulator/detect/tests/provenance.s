// SPDX-License-Identifier: MIT
//
// Kernels for provenance_test.cpp. Argument block: s[0:1] points to { u64 out, u64 in }. Prologue:
// s[4:5] = out, s[6:7] = in, v1 = 4 * v0.

.include "kernels.inc"

// out[l] = 3 * (in[256 + in[l]] + 5): through an index, the LDS of the neighbour lane and back by DPP. v8 and
// in[1024 + l] have nothing to do with it.
kernel chain, 256
  global_load_dword v2, v1, s[6:7]
  global_load_dword v8, v1, s[6:7] offset:2048
  s_waitcnt vmcnt(0)
  v_lshlrev_b32 v3, 2, v2
  global_load_dword v4, v3, s[6:7] offset:1024
  s_waitcnt vmcnt(0)
  ds_write_b32 v1, v4
  v_xor_b32 v5, 4, v1
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v6, v5
  s_waitcnt lgkmcnt(0)
  v_add_u32 v7, 5, v6
  v_add_u32 v8, 1, v8
  s_nop 1
  v_mov_b32_dpp v9, v7 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  v_mul_u32_u24 v10, 3, v9
  global_store_dword v1, v8, s[4:5]
  global_store_dword v1, v10, s[4:5]
  s_endpgm
  .size chain, . - chain

// out[l] = row 4 * (l / 16) + 2, column l % 16 of A times B; lane l loads 8 bytes of each.
kernel matrix, 0
  v_lshlrev_b32 v2, 3, v0
  global_load_dwordx2 v[4:5], v2, s[6:7]
  global_load_dwordx2 v[6:7], v2, s[6:7] offset:512
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 0
  s_waitcnt vmcnt(0)
  s_nop 4
  v_mfma_f32_16x16x16_bf16 v[8:11], v[4:5], v[6:7], v[8:11]
  s_nop 15
  global_store_dword v1, v10, s[4:5]
  s_endpgm
  .size matrix, . - matrix

// Lanes below 32 choose in[l] or in[64 + l] by the sign of in[128 + l]; the others write nothing.
kernel select, 0
  global_load_dword v2, v1, s[6:7]
  global_load_dword v3, v1, s[6:7] offset:256
  global_load_dword v4, v1, s[6:7] offset:512
  s_waitcnt vmcnt(0)
  v_cmp_gt_i32 vcc, 0, v4
  v_cndmask_b32 v5, v2, v3, vcc
  s_mov_b64 exec, 0xffffffff
  global_store_dword v1, v5, s[4:5]
  s_endpgm
  .size select, . - select
