// SPDX-License-Identifier: MIT
//
// Kernels for dataflow_test.cpp: NAME_bad lets never-written (or not bit-exact) data get where it matters,
// NAME_good is the same mended. Argument block: s[0:1] points to { u64 out, u64 in }; only `in` was written.
// Prologue: s[4:5] = out, s[6:7] = in, v1 = 4 * v0.

.include "kernels.inc"

.macro store value
  global_store_dword v1, \value, s[4:5]
.endm

// ---- vector registers

.macro register_stored fault
  .if \fault == 0
  v_mov_b32 v5, 7
  .endif
  v_add_u32 v6, 1, v5
  store v6
.endm
pair register_stored

.macro register_address fault
  .if \fault == 0
  v_mov_b32 v5, 7
  .endif
  v_and_b32 v5, 0xfc, v5
  global_load_dword v2, v5, s[6:7]
  s_waitcnt vmcnt(0)
  store v2
.endm
pair register_address

// Bytes that a mask or a shift takes away are no concern of anybody.
.macro register_bytes fault
  global_load_short_d16 v2, v1, s[6:7]
  global_load_short_d16 v3, v1, s[6:7]
  s_waitcnt vmcnt(0)
  .if \fault
  v_lshrrev_b32 v2, 8, v2
  .else
  v_and_b32 v2, 0xffff, v2
  .endif
  v_lshlrev_b32 v3, 16, v3
  v_or_b32 v4, v2, v3
  s_mov_b32 s8, 0x03020100
  v_perm_b32 v4, v4, v4, s8
  store v4
.endm
pair register_bytes

// Two halves, one after the other.
.macro register_halves fault
  global_load_short_d16 v2, v1, s[6:7]
  .if \fault == 0
  global_load_short_d16_hi v2, v1, s[6:7]
  .endif
  s_waitcnt vmcnt(0)
  store v2
.endm
pair register_halves

// Half of the lanes are written; all are stored.
.macro register_lanes fault
  s_mov_b64 s[8:9], exec
  s_mov_b32 exec_hi, 0
  v_mov_b32 v5, 7
  .if \fault
  s_mov_b64 exec, s[8:9]
  .endif
  v_add_u32 v6, v5, v0
  store v6
.endm
pair register_lanes

// Garbage lanes are compared, and selected away or not.
.macro register_selected fault
  s_mov_b64 s[8:9], exec
  s_mov_b32 exec_hi, 0
  v_mov_b32 v5, 7
  s_mov_b64 exec, s[8:9]
  v_cmp_u_f32 s[12:13], v5, v5
  v_cndmask_b32 v6, v5, v0, s[12:13]
  .if \fault
  s_mov_b32 s10, -1
  .else
  s_mov_b32 s10, 0
  .endif
  s_mov_b32 s11, s10
  s_mov_b32 s10, -1
  v_cndmask_b32 v6, v0, v6, s[10:11]
  store v6
.endm
pair register_selected

// DPP brings a neighbour's value.
.macro register_neighbour fault
  s_mov_b64 s[8:9], exec
  s_mov_b32 exec_lo, 0x7fffffff
  v_mov_b32 v5, 7
  s_mov_b64 exec, s[8:9]
  v_mov_b32 v6, 0
  s_nop 4
  .if \fault
  v_mov_b32_dpp v6, v5 row_shl:1 row_mask:0xf bank_mask:0xf
  .else
  v_mov_b32_dpp v6, v5 row_shr:1 row_mask:0xf bank_mask:0xf
  .endif
  store v6
.endm
pair register_neighbour

.macro register_permuted fault
  s_mov_b64 s[8:9], exec
  s_mov_b32 exec_hi, 0
  v_mov_b32 v5, 7
  s_mov_b64 exec, s[8:9]
  .if \fault
  v_xor_b32 v2, 0x80, v1
  .else
  v_and_b32 v2, 0x7c, v1
  .endif
  ds_bpermute_b32 v6, v2, v5
  s_waitcnt lgkmcnt(0)
  store v6
.endm
pair register_permuted

// Column 3 of B is garbage: it spoils column 3 of D and nothing else.
.macro register_matrix fault
  v_mov_b32 v8, 0x3f803f80
  v_mov_b32 v9, 0x3f803f80
  s_mov_b64 s[8:9], exec
  s_mov_b32 s10, 0xfff7fff7
  s_mov_b32 s11, s10
  s_mov_b64 exec, s[10:11]
  v_mov_b32 v10, 0x3f803f80
  v_mov_b32 v11, 0x3f803f80
  s_mov_b64 exec, s[8:9]
  s_nop 7
  v_mfma_f32_16x16x16_bf16 v[12:15], v[8:9], v[10:11], 0
  s_nop 15
  .if \fault == 0
  s_mov_b64 exec, s[10:11]
  .endif
  store v13
.endm
pair register_matrix

// ---- scalar registers, branches

.macro scalar_branch fault
  .if \fault == 0
  s_mov_b32 s20, 1
  .endif
  s_cmp_eq_u32 s20, 0
  s_cbranch_scc1 .Lend\@
  store v0
.Lend\@:
.endm
pair scalar_branch

.macro scalar_memory fault
  .if \fault
  s_load_dword s20, s[4:5], 0x40
  .else
  s_load_dword s20, s[6:7], 0x40
  .endif
  s_waitcnt lgkmcnt(0)
  s_and_b32 s20, s20, 0xff00
  s_cbranch_scc1 .Lend\@
  store v0
.Lend\@:
.endm
pair scalar_memory

// A mask with a known lane is not empty, whatever the other lanes are.
.macro mask_branch fault
  s_mov_b64 s[8:9], exec
  .if \fault
  s_mov_b64 exec, 0
  .else
  s_mov_b64 exec, 1
  .endif
  v_mov_b32 v5, 0
  s_mov_b64 exec, s[8:9]
  v_cmp_gt_u32 vcc, 1, v5
  s_nop 4
  s_cbranch_vccz .Lend\@
  store v0
.Lend\@:
.endm
pair mask_branch

// Whether a lane stores hangs on garbage.
.macro mask_store fault
  .if \fault == 0
  v_mov_b32 v5, 7
  .endif
  v_cmp_ne_u32 vcc, 0, v5
  s_nop 4
  s_and_saveexec_b64 s[8:9], vcc
  store v0
.endm
pair mask_store

// The lane mask of all lanes but the last 32, through a spill to a lane of a register.
.macro scalar_spilled fault
  s_mov_b32 s20, 5
  v_writelane_b32 v9, s20, 3
  s_nop 4
  .if \fault
  v_readlane_b32 s21, v9, 4
  .else
  v_readlane_b32 s21, v9, 3
  .endif
  s_cmp_lg_u32 s21, 9
  s_cbranch_scc1 .Lend\@
  store v0
.Lend\@:
.endm
pair scalar_spilled

// A lane mask that is spilled while lane 1 is off: the bit of lane 1 is garbage, the other 31 of its half are not.
.macro mask_spilled fault
  s_mov_b64 s[8:9], exec
  s_mov_b64 s[10:11], ~2
  .if \fault
  s_mov_b64 exec, 0
  .else
  s_mov_b64 exec, s[10:11]
  .endif
  v_mov_b32 v5, 0
  s_mov_b64 exec, s[8:9]
  v_cmp_gt_u32 vcc, 1, v5
  s_nop 4
  v_writelane_b32 v9, vcc_lo, 3
  s_nop 4
  v_readlane_b32 s20, v9, 3
  s_and_b32 s20, s20, s10
  s_cbranch_scc0 .Lend\@
  store v0
.Lend\@:
.endm
pair mask_spilled

// ---- memory

.macro memory_global fault
  .if \fault
  global_load_dword v2, v1, s[4:5] offset:256
  .else
  global_load_dword v2, v1, s[6:7] offset:256
  .endif
  s_waitcnt vmcnt(0)
  store v2
.endm
pair memory_global

// The kernel's own store makes it written.
.macro memory_own fault
  .if \fault == 0
  global_store_dword v1, v0, s[4:5] offset:256
  s_waitcnt vmcnt(0)
  .endif
  global_load_dword v2, v1, s[4:5] offset:256
  s_waitcnt vmcnt(0)
  store v2
.endm
pair memory_own

.macro memory_lds fault
  .if \fault == 0
  ds_write_b32 v1, v0
  .else
  ds_write_b16 v1, v0
  .endif
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  store v2
.endm
pair memory_lds, 1024

// Garbage travels through LDS.
.macro memory_through fault
  .if \fault == 0
  v_mov_b32 v5, 7
  .endif
  ds_write2_b32 v1, v5, v0 offset0:64 offset1:0
  ds_read2_b32 v[2:3], v1 offset0:64 offset1:0
  s_waitcnt lgkmcnt(0)
  store v2
.endm
pair memory_through, 1024

// Never-written memory by way of LDS: the buffer is to blame, not the LDS.
.macro bring reg, offset, fault
  .if \fault
  global_load_dword \reg, v1, s[4:5] offset:\offset
  .else
  global_load_dword \reg, v1, s[6:7] offset:\offset
  .endif
  s_waitcnt vmcnt(0)
.endm

.macro through_lds fault
  bring v2, 256, \fault
  ds_write_b32 v1, v2 offset:512
  ds_read_b32 v3, v1 offset:512
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_lds, 1024

// Wave 0 leaves it there, wave 1 takes it up, backwards.
.macro through_waves fault
  v_readfirstlane_b32 s8, v0
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lother\@
  bring v2, 256, \fault
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
.Lother\@:
  s_barrier
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 .Lend\@
  v_sub_u32 v2, 0x1fc, v1
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  v_and_b32 v3, 0xfc, v3
  global_load_dword v4, v3, s[6:7]
  s_waitcnt vmcnt(0)
  store v4
.Lend\@:
.endm
pair through_waves, 256

// The same with a register of wave 0.
.macro through_waves_register fault
  v_readfirstlane_b32 s8, v0
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lother\@
  .if \fault == 0
  v_mov_b32 v5, 7
  .endif
  ds_write_b32 v1, v5
  s_waitcnt lgkmcnt(0)
.Lother\@:
  s_barrier
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 .Lend\@
  v_subrev_u32 v2, 0x100, v1
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  store v3
.Lend\@:
.endm
pair through_waves_register, 256

.macro through_scratch fault
  bring v2, 256, \fault
  scratch_store_dword off, v2, off offset:8
  s_waitcnt vmcnt(0)
  scratch_load_dword v3, off, off offset:8
  s_waitcnt vmcnt(0)
  v_cmp_gt_u32 vcc, 0, v3
  s_nop 4
  s_cbranch_vccz .Lend\@
  store v0
.Lend\@:
.endm
pair through_scratch, 0, 16

// Each lane and each wave has a scratch of its own.
.macro through_scratch_lanes fault
  bring v2, 256, \fault
  s_mov_b64 s[8:9], exec
  s_mov_b32 exec_lo, 0
  scratch_store_dword off, v2, off offset:8
  s_mov_b64 exec, s[8:9]
  s_mov_b32 exec_hi, 0
  scratch_store_dword off, v0, off offset:8
  s_mov_b64 exec, s[8:9]
  s_waitcnt vmcnt(0)
  scratch_load_dword v3, off, off offset:8
  s_waitcnt vmcnt(0)
  store v3
.endm
pair through_scratch_lanes, 0, 16

.macro through_scratch_waves fault
  v_readfirstlane_b32 s8, v0
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lother\@
  bring v2, 256, \fault
  scratch_store_dword off, v2, off offset:8
  s_waitcnt vmcnt(0)
  s_barrier
  scratch_load_dword v3, off, off offset:8
  s_waitcnt vmcnt(0)
  store v3
  s_branch .Lend\@
.Lother\@:
  bring v3, 512, 1
  scratch_store_dword off, v3, off offset:8
  s_waitcnt vmcnt(0)
  s_barrier
.Lend\@:
.endm
pair through_scratch_waves, 0, 16

// Only what is stored matters: the upper half. Straight, and by way of LDS-DMA, backwards.
.macro memory_upper fault
  .if \fault
  global_load_dword v2, v1, s[4:5] offset:256
  .else
  global_load_dword v2, v1, s[6:7] offset:256
  .endif
  s_waitcnt vmcnt(0)
  s_mov_b32 exec_lo, 0
  store v2
.endm
pair memory_upper

// A flat load goes to LDS in the lower lanes, to memory in the upper: these are stored.
.macro memory_flat fault
  s_mov_b64 s[8:9], src_shared_base
  v_add_co_u32 v2, vcc, s6, v1
  v_mov_b32 v3, s7
  v_addc_co_u32 v3, vcc, 0, v3, vcc
  .if \fault
  v_mov_b32 v4, s5
  v_add_co_u32 v2, vcc, s4, v1
  v_addc_co_u32 v3, vcc, 0, v4, vcc
  .endif
  s_mov_b64 s[10:11], exec
  s_mov_b32 exec_hi, 0
  v_mov_b32 v2, v1
  v_mov_b32 v3, s9
  s_mov_b64 exec, s[10:11]
  flat_load_dword v5, v[2:3]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_mov_b32 exec_lo, 0
  store v5
.endm
pair memory_flat, 1024

.macro through_dma_backwards fault
  .if \fault
  s_mov_b32 s8, s4
  s_and_b32 s9, s5, 0xffff
  .else
  s_mov_b32 s8, s6
  s_and_b32 s9, s7, 0xffff
  .endif
  s_mov_b32 s10, 0x100
  s_mov_b32 s11, 0x00027000
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  v_sub_u32 v2, 0xf8, v1
  s_mov_b64 exec, 7
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_dma_backwards, 1024

.macro through_both fault
  bring v2, 256, \fault
  ds_write_b32 v1, v2
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  scratch_store_dword off, v3, off offset:8
  s_waitcnt vmcnt(0)
  scratch_load_dword v2, off, off offset:8
  s_waitcnt vmcnt(0)
  store v2
.endm
pair through_both, 1024, 16

// Two loads, one ds_read2: each register has its own.
.macro through_two fault
  bring v2, 256, 1
  bring v3, 512, \fault
  ds_write2st64_b32 v1, v2, v3 offset1:1
  ds_read2st64_b32 v[4:5], v1 offset1:1
  s_waitcnt lgkmcnt(0)
  store v5
.endm
pair through_two, 1024

// One store of two registers, by its upper one.
.macro through_wide fault
  v_lshlrev_b32 v8, 1, v1
  bring v2, 256, 1
  bring v3, 512, \fault
  ds_write_b64 v8, v[2:3]
  ds_read_b64 v[4:5], v8
  s_waitcnt lgkmcnt(0)
  store v5
.endm
pair through_wide, 1024

// What lies beside it was not stored at all.
.macro through_beside fault
  bring v2, 256, 1
  ds_write_b32 v1, v2 offset:512
  .if \fault == 0
  ds_write_b32 v1, v0
  .endif
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_beside, 1024

// One load, one of its dwords stored and the other not.
.macro through_mixed fault
  bring v2, 256, 1
  ds_write_b32 v1, v2
  .if \fault == 0
  ds_write_b32 v1, v0 offset:256
  .endif
  ds_read2st64_b32 v[4:5], v1 offset1:1
  s_waitcnt lgkmcnt(0)
  store v5
.endm
pair through_mixed, 1024

// A later store forgets it: wholly, in part, and for something else that nobody wrote.
.macro through_replaced fault
  bring v2, 256, 1
  ds_write_b32 v1, v2
  .if \fault
  ds_write_b16 v1, v0
  .else
  ds_write_b32 v1, v0
  .endif
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_replaced, 1024

.macro through_again fault
  bring v2, 256, 1
  ds_write_b32 v1, v2
  ds_write_b32 v1, v0
  .if \fault
  ds_write_b16 v1, v5
  .endif
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_again, 1024

// Three turns of a loop, of which the second's value is stored: it does not matter that the load came again.
.macro through_loop fault
  v_mov_b32 v4, v1
  s_mov_b32 s8, 0
.Lnext\@:
  .if \fault
  global_load_dword v2, v1, s[4:5] offset:256
  .else
  global_load_dword v2, v1, s[6:7] offset:256
  .endif
  s_waitcnt vmcnt(0)
  ds_write_b32 v4, v2
  v_add_u32 v1, 0x100, v1
  v_add_u32 v4, 0x100, v4
  s_add_u32 s8, s8, 1
  s_cmp_lt_u32 s8, 3
  s_cbranch_scc1 .Lnext\@
  v_lshlrev_b32 v1, 2, v0
  ds_read_b32 v3, v1 offset:256
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_loop, 1024

// Each workgroup's LDS and scratch begin anew: workgroup 0 leaves it there, the others read what they never stored.
.macro through_groups fault
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .Lsecond\@
  bring v2, 256, 1
  ds_write_b32 v1, v2
  s_endpgm
.Lsecond\@:
  bring v2, 256, 1
  ds_write_b32 v1, v2 offset:512
  .if \fault == 0
  ds_write_b32 v1, v0
  .endif
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_groups, 1024

.macro through_groups_scratch fault
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .Lsecond\@
  bring v2, 256, 1
  scratch_store_dword off, v2, off offset:8
  s_endpgm
.Lsecond\@:
  bring v2, 256, 1
  scratch_store_dword off, v2, off offset:12
  .if \fault == 0
  scratch_store_dword off, v0, off offset:8
  .endif
  s_waitcnt vmcnt(0)
  scratch_load_dword v3, off, off offset:8
  s_waitcnt vmcnt(0)
  store v3
.endm
pair through_groups_scratch, 0, 16

// From scratch straight to LDS, the byte sign-extended: its sign decides what lies above it.
.macro through_scratch_dma fault
  bring v2, 256, \fault
  scratch_store_dword off, v2, off offset:8
  s_waitcnt vmcnt(0)
  s_mov_b32 m0, 0
  s_nop 0
  scratch_load_lds_sbyte off, off offset:8
  s_waitcnt vmcnt(0)
  ds_read_u8 v3, v1 offset:11
  s_waitcnt lgkmcnt(0)
  store v3
.endm
pair through_scratch_dma, 1024, 16

.macro memory_scratch fault
  .if \fault == 0
  scratch_store_dword off, v0, off offset:8
  .else
  scratch_store_dword off, v0, off offset:4
  .endif
  s_waitcnt vmcnt(0)
  scratch_load_dword v2, off, off offset:8
  s_waitcnt vmcnt(0)
  store v2
.endm
pair memory_scratch, 0, 16

// Straight to LDS, and out of it.
.macro memory_dma fault
  .if \fault
  s_mov_b32 s8, s4
  s_and_b32 s9, s5, 0xffff
  .else
  s_mov_b32 s8, s6
  s_and_b32 s9, s7, 0xffff
  .endif
  s_mov_b32 s10, 0x100
  s_mov_b32 s11, 0x00027000
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  store v2
.endm
pair memory_dma, 1024

// M0 is no multiple of 4: half of the first dword is filled.
.macro memory_dma_bytes fault
  s_mov_b32 s8, s6
  s_and_b32 s9, s7, 0xffff
  s_mov_b32 s10, 0x100
  s_mov_b32 s11, 0x00027000
  s_mov_b32 m0, 2
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  v_mov_b32 v3, 0
  .if \fault
  ds_read_u16 v2, v3 offset:0
  .else
  ds_read_u16 v2, v3 offset:2
  .endif
  s_waitcnt lgkmcnt(0)
  store v2
.endm
pair memory_dma_bytes, 1024

// Lanes past the descriptor's end get 0, which is something.
.macro memory_clipped fault
  s_mov_b32 s8, s4
  s_and_b32 s9, s5, 0xffff
  .if \fault
  s_mov_b32 s10, 0x80
  .else
  s_mov_b32 s10, 0
  .endif
  s_mov_b32 s11, 0x00027000
  buffer_load_dword v2, v1, s[8:11], 0 offen
  s_waitcnt vmcnt(0)
  store v2
.endm
pair memory_clipped

// ---- results that are not bit-exact

.macro inexact_address fault
  v_mov_b32 v2, 2.0
  .if \fault
  v_exp_f32 v2, v2
  .endif
  s_nop 0
  v_cvt_u32_f32 v2, v2
  v_lshlrev_b32 v2, 2, v2
  global_load_dword v3, v2, s[6:7]
  s_waitcnt vmcnt(0)
  store v3
.endm
pair inexact_address

.macro inexact_branch fault
  v_cvt_f32_u32 v2, v0
  v_exp_f32 v3, v2
  s_nop 0
  .if \fault
  v_cmp_eq_f32 vcc, 1.0, v3
  .else
  v_cmp_eq_f32 vcc, 1.0, v2
  .endif
  s_nop 4
  s_and_b64 vcc, vcc, 1
  s_cbranch_vccz .Lend\@
  store v3
.Lend\@:
.endm
pair inexact_branch

// exp2(0) and 1 may differ by the last bit, exp2(3) and 1 may not.
.macro inexact_close fault
  .if \fault
  v_mov_b32 v2, 0
  .else
  v_mov_b32 v2, 0x40400000
  .endif
  v_exp_f32 v3, v2
  s_nop 0
  v_cmp_lt_f32 vcc, 1.0, v3
  s_nop 4
  s_cbranch_vccz .Lend\@
  store v3
.Lend\@:
.endm
pair inexact_close

// The low half of a 64-bit sum does not see garbage in the upper half of what is added.
.macro register_wide fault
  .if \fault == 0
  v_mov_b32 v4, 3
  .endif
  v_mad_u64_u32 v[2:3], s[8:9], v0, v0, v[4:5]
  store v2
.endm
pair register_wide

// Through LDS and a reduction.
.macro inexact_through fault
  v_cvt_f32_u32 v2, v0
  .if \fault
  v_rcp_f32 v2, v2
  .else
  v_rcp_iflag_f32 v2, v2
  .endif
  s_nop 0
  ds_write_b32 v1, v2
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  v_mov_b32_dpp v4, v3 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0
  v_readlane_b32 s20, v4, 5
  s_cmp_gt_u32 s20, 7
  s_cbranch_scc1 .Lend\@
  store v0
.Lend\@:
.endm
pair inexact_through, 1024
