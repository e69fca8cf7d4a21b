// SPDX-License-Identifier: MIT
//
// Loops for simulator_bench. Argument block: { u64 buffer, u64 trips }. One trip is the body and four instructions of loop.

.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.amdhsa_code_object_version 5

.macro kernel name, vgprs, lds, accum=4
  .section .rodata,"a"
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_next_free_vgpr \vgprs
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset \accum
    .amdhsa_group_segment_fixed_size \lds
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_float_denorm_mode_32 3
    .amdhsa_kernarg_size 16
  .end_amdhsa_kernel
  .text
  .p2align 8
  .globl \name
  .type \name,@function
\name:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x8
  v_lshlrev_b32 v1, 4, v0
  v_mov_b32 v2, 1.0
  v_mov_b32 v3, 0.5
  v_mov_b32 v4, 2.0
  v_mov_b32 v5, 4.0
  s_waitcnt lgkmcnt(0)
.L\name:
.endm

.macro finish name
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .L\name
  s_endpgm
  .size \name, . - \name
.endm

// 32 plain instructions of the kinds compilers emit most
kernel valu, 32, 0
.rept 4
  v_add_f32 v6, v2, v3
  v_mul_f32 v7, v6, v4
  v_fma_f32 v8, v6, v7, v5
  v_add_u32 v9, v0, v1
  v_lshlrev_b32 v10, 3, v9
  v_and_b32 v11, v10, v9
  v_max_f32 v12, v8, v7
  v_mov_b32 v13, v12
.endr
finish valu

// 32 from the inner loop of an attention kernel
kernel valu_attention, 32, 0
.rept 4
  v_pk_mul_f32 v[6:7], v[2:3], v[4:5]
  v_pk_fma_f32 v[8:9], v[2:3], v[4:5], v[6:7]
  v_exp_f32 v10, v2
  v_perm_b32 v11, v8, v9, v10
  v_cmp_u_f32 s[12:13], v8, v8
  v_cndmask_b32 v12, v11, v9, s[12:13]
  v_add3_u32 v13, v8, v9, v0
  v_mul_f32_dpp v14, v2, v3 row_newbcast:3 row_mask:0xf bank_mask:0xf
.endr
finish valu_attention

kernel salu, 32, 0
.rept 8
  s_add_u32 s12, s12, 5
  s_lshl_b32 s13, s12, 3
  s_and_b32 s14, s13, s12
  s_mul_i32 s15, s14, s12
.endr
finish salu

kernel lds_b128, 64, 65536
.rept 8
  ds_read_b128 v[8:11], v1
  ds_read_b128 v[12:15], v1 offset:4096
  ds_write_b128 v1, v[8:11] offset:8192
  ds_read_b64 v[16:17], v1 offset:128
.endr
finish lds_b128

kernel global_dword, 64, 0
  v_lshlrev_b32 v6, 2, v0
.rept 16
  global_load_dword v7, v6, s[8:9]
  global_store_dword v6, v7, s[8:9] offset:1024
.endr
finish global_dword

kernel global_dwordx4, 64, 0
.rept 16
  global_load_dwordx4 v[8:11], v1, s[8:9]
  global_store_dwordx4 v1, v[8:11], s[8:9] offset:2048
.endr
finish global_dwordx4

// rows of a table, as a gather of 16-byte pieces
kernel gather, 64, 0
  v_mul_u32_u24 v6, 0x468, v0
.rept 32
  global_load_dwordx4 v[8:11], v6, s[8:9]
.endr
finish gather

kernel empty, 8, 0
  s_mov_b32 s10, 1
finish empty

// as many registers and as much LDS as a large attention kernel has
kernel empty_large, 512, 65536, 256
  s_mov_b32 s10, 1
finish empty_large
