// SPDX-License-Identifier: MIT
//
// Kernels with one planted fault each, and the same kernels mended: NAME_bad and NAME_good for detect_test.cpp.
// Argument block: s[0:1] points to { u64 out, u64 in }. Prologue: s[4:5] = out, s[6:7] = in, v1 = 4 * v0.

.include "kernels.inc"

// A buffer descriptor of `in` in s[8:11].
.macro descriptor
  s_mov_b32 s8, s6
  s_and_b32 s9, s7, 0xffff
  s_mov_b32 s10, 0x10000
  s_mov_b32 s11, 0x00027000
.endm

// ---- waits

.macro wait_removed fault
  global_load_dword v2, v1, s[6:7]
  .if \fault == 0
  s_waitcnt vmcnt(0)
  .endif
  v_add_u32 v2, 1, v2
  global_store_dword v1, v2, s[4:5]
.endm
pair wait_removed

.macro wait_count fault
  global_load_dword v2, v1, s[6:7]
  global_load_dword v3, v1, s[6:7] offset:4
  .if \fault
  s_waitcnt vmcnt(1)
  .else
  s_waitcnt vmcnt(0)
  .endif
  v_add_u32 v2, v2, v3
  global_store_dword v1, v2, s[4:5]
.endm
pair wait_count

// A store in front of the load counts too.
.macro wait_store_counts fault
  global_load_dword v2, v1, s[6:7]
  global_store_dword v1, v0, s[4:5]
  .if \fault
  s_waitcnt vmcnt(2)
  .else
  s_waitcnt vmcnt(1)
  .endif
  v_add_u32 v3, 1, v2
  global_store_dword v1, v3, s[4:5] offset:256
.endm
pair wait_store_counts

// Scalar loads come in any order: lgkmcnt(1) after two says nothing.
.macro wait_scalar_order fault
  s_load_dword s16, s[6:7], 0x0
  s_load_dword s17, s[6:7], 0x4
  .if \fault
  s_waitcnt lgkmcnt(1)
  .else
  s_waitcnt lgkmcnt(0)
  .endif
  v_mov_b32 v2, s16
  s_waitcnt lgkmcnt(0)
  v_add_u32 v2, s17, v2
  global_store_dword v1, v2, s[4:5]
.endm
pair wait_scalar_order

// LDS comes in order: lgkmcnt(1) after two reads covers the first.
.macro wait_lds_order fault
  ds_write_b32 v1, v0
  ds_read_b32 v2, v1
  ds_read_b32 v3, v1
  .if \fault
  s_waitcnt lgkmcnt(2)
  .else
  s_waitcnt lgkmcnt(1)
  .endif
  v_add_u32 v4, 1, v2
  s_waitcnt lgkmcnt(0)
  v_add_u32 v4, v3, v4
  global_store_dword v1, v4, s[4:5]
.endm
pair wait_lds_order, 256

.macro wait_flat_both fault
  v_mov_b32 v4, s6
  v_mov_b32 v5, s7
  flat_load_dword v2, v[4:5]
  .if \fault
  s_waitcnt vmcnt(0)
  .else
  s_waitcnt vmcnt(0) lgkmcnt(0)
  .endif
  v_add_u32 v3, 1, v2
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
.endm
pair wait_flat_both

// The load may arrive after the move.
.macro wait_overwrite fault
  global_load_dword v2, v1, s[6:7]
  .if \fault == 0
  s_waitcnt vmcnt(0)
  .endif
  v_mov_b32 v2, 7
  s_waitcnt vmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair wait_overwrite

// Only in lanes that load: the others may use the register at once.
.macro wait_lanes fault
  s_mov_b64 s[16:17], exec
  v_mov_b32 v2, 0
  s_mov_b32 exec_hi, 0
  global_load_dword v2, v1, s[6:7]
  .if \fault == 0
  s_not_b64 exec, exec
  .endif
  v_add_u32 v3, 1, v2
  s_mov_b64 exec, s[16:17]
  s_waitcnt vmcnt(0)
  v_add_u32 v3, 1, v2
  global_store_dword v1, v3, s[4:5]
.endm
pair wait_lanes

// ---- LDS-DMA

.macro dma_wait fault
  descriptor
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  .if \fault == 0
  s_waitcnt vmcnt(0)
  .endif
  ds_read_b32 v2, v1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair dma_wait, 256

// M0 is no multiple of 4: the other halves of the first dword and of the last are nobody's.
.macro dma_bytes fault
  descriptor
  v_mov_b32 v3, 0
  ds_write_b32 v1, v0
  ds_write_b32 v1, v0 offset:256
  s_waitcnt lgkmcnt(0)
  s_mov_b32 m0, 2
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  .if \fault
  ds_read_u16 v2, v3 offset:2
  ds_read_u16 v4, v3 offset:256
  .else
  ds_read_u16 v2, v3
  ds_read_u16 v4, v3 offset:258
  .endif
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_add_u32 v2, v2, v4
  global_store_dword v1, v2, s[4:5]
.endm
pair dma_bytes, 512

// Two that meet in one dword: the first has come.
.macro dma_halves fault
  descriptor
  v_mov_b32 v3, 0
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[16:17], exec
  s_mov_b64 exec, 1
  s_mov_b32 m0, 2
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_mov_b32 m0, 6
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_mov_b64 exec, s[16:17]
  s_waitcnt vmcnt(1)
  .if \fault
  ds_read_u16 v2, v3 offset:6
  .else
  ds_read_u16 v2, v3 offset:4
  .endif
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair dma_halves, 256

// The second takes half of a dword from the first: the other half is still the first's.
.macro dma_over fault
  descriptor
  v_mov_b32 v3, 0
  s_mov_b64 s[16:17], exec
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_mov_b64 exec, 1
  s_mov_b32 m0, 2
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen offset:4 lds
  s_mov_b64 exec, s[16:17]
  .if \fault == 0
  s_waitcnt vmcnt(1)
  .endif
  ds_read_u16 v2, v3 offset:4
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair dma_over, 512

// 128 work-items: wave 1 writes beside what wave 0 has filled, or over it.
.macro dma_beside fault
  descriptor
  v_readfirstlane_b32 s16, v1
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 .Lother\@
  s_mov_b32 m0, 2
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  s_branch .Lend\@
.Lother\@:
  .rept 16
  s_nop 0
  .endr
  v_mov_b32 v3, 0
  v_mov_b32 v4, 0x5555
  .if \fault
  ds_write_b16 v3, v4 offset:2
  .else
  ds_write_b16 v3, v4
  .endif
.Lend\@:
.endm
pair dma_beside, 512

// 128 work-items: each wave fills its half, reads the other's.
.macro dma_barrier fault
  descriptor
  v_readfirstlane_b32 s16, v1
  s_mov_b32 m0, s16
  s_nop 4
  buffer_load_dword v1, s[8:11], 0 offen lds
  .if \fault
  s_barrier
  s_waitcnt vmcnt(0)
  .else
  s_waitcnt vmcnt(0)
  s_barrier
  .endif
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair dma_barrier, 512

// ---- LDS races: 256 work-items

.macro lds_barrier fault
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  v_sub_u32 v3, 0x3fc, v1
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
.endm
pair lds_barrier, 1024

// Rows of dwords, each wave its own; the first reads into the row of the second: 16 bytes of it, or four.
.macro read_further bytes
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  v_add_u32 v2, \bytes, v1
  v_cmp_gt_u32 vcc, 64, v0
  s_nop 1
  v_cndmask_b32 v2, v1, v2, vcc
  ds_read_b32 v4, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
.endm

.macro lds_edge fault
  read_further 16 * \fault
.endm
pair lds_edge, 1024

.macro lds_edge_dword fault
  read_further 4 * \fault
.endm
pair lds_edge_dword, 1024

// The same, 16 bytes a lane.
.macro lds_wide fault
  v_lshlrev_b32 v8, 4, v0
  v_mov_b32 v4, v0
  v_mov_b32 v5, v0
  v_mov_b32 v6, v0
  v_mov_b32 v7, v0
  ds_write_b128 v8, v[4:7]
  s_waitcnt lgkmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  v_sub_u32 v9, 0xff0, v8
  ds_read_b128 v[12:15], v9
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v12, s[4:5]
.endm
pair lds_wide, 4096

// Four of the sixteen bytes are written once more, and the other wave reads all of them.
.macro lds_part fault
  v_lshlrev_b32 v8, 4, v0
  v_mov_b32 v4, v0
  v_mov_b32 v5, v0
  v_mov_b32 v6, v0
  v_mov_b32 v7, v0
  ds_write_b128 v8, v[4:7]
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b128 v[12:15], v8
  s_waitcnt lgkmcnt(0)
  ds_write_b32 v8, v12 offset:4
  s_waitcnt lgkmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  v_sub_u32 v9, 0xff0, v8
  ds_read_b128 v[12:15], v9
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v13, s[4:5]
.endm
pair lds_part, 4096

// Written again before all have read.
.macro lds_reuse fault
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_sub_u32 v3, 0x3fc, v1
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  ds_write_b32 v1, v4
  global_store_dword v1, v4, s[4:5]
.endm
pair lds_reuse, 1024

// All waves write one dword. The mended kernel adds to it, which may be done at once.
.macro lds_writers fault
  v_mov_b32 v3, 0
  .if \fault
  ds_write_b32 v3, v0
  .else
  v_cmp_eq_u32 vcc, 0, v0
  s_and_saveexec_b64 s[16:17], vcc
  ds_write_b32 v3, v3
  s_mov_b64 exec, s[16:17]
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_add_u32 v3, v0
  .endif
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
.endm
pair lds_writers, 256

// Each wave has its byte of every dword; with the fault two waves share one.
.macro lds_bytes fault
  .if \fault
  v_lshrrev_b32 v3, 7, v0
  .else
  v_lshrrev_b32 v3, 6, v0
  .endif
  v_and_b32 v5, 63, v0
  v_lshl_add_u32 v5, v5, 2, v3
  ds_write_b8 v5, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_u8 v4, v5
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
.endm
pair lds_bytes, 256

// The barrier waits for no counter: advisory.
.macro lds_unwaited fault
  ds_write_b32 v1, v0
  .if \fault == 0
  s_waitcnt lgkmcnt(0)
  .endif
  s_barrier
  v_sub_u32 v3, 0x3fc, v1
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
.endm
pair lds_unwaited, 1024

// ---- races in memory

// 4 workgroups of 64 store their number.
.macro global_overlap fault
  v_mov_b32 v2, s2
  .if \fault == 0
  s_lshl_b32 s16, s2, 8
  v_add_u32 v1, s16, v1
  .endif
  global_store_dword v1, v2, s[4:5]
.endm
pair global_overlap

// A workgroup reads what its neighbour stores.
.macro global_neighbour fault
  s_lshl_b32 s16, s2, 8
  v_add_u32 v2, s16, v1
  global_store_dword v2, v0, s[4:5]
  .if \fault
  s_xor_b32 s16, s16, 0x100
  .endif
  v_add_u32 v3, s16, v1
  s_waitcnt vmcnt(0)
  global_load_dword v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
  s_lshl_b32 s16, s2, 8
  v_add_u32 v3, s16, v1
  global_store_dword v3, v4, s[4:5] offset:2048
.endm
pair global_neighbour

// Waves of a workgroup exchange through memory.
.macro global_barrier fault
  global_store_dword v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  v_sub_u32 v3, 0x3fc, v1
  global_load_dword v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_dword v1, v4, s[4:5] offset:1024
.endm
pair global_barrier

// More writers of one page, one after the other, than it has dwords; then it is read, and written again.
.macro global_epochs fault
  s_movk_i32 s16, 1200
global_epochs_\fault:
  global_store_dword v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
  s_barrier
  s_sub_u32 s16, s16, 1
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 global_epochs_\fault
  v_sub_u32 v3, 0x3fc, v1
  global_load_dword v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
  .if \fault == 0
  s_barrier
  .endif
  global_store_dword v1, v4, s[4:5]
.endm
pair global_epochs

// Each workgroup stores its part and counts itself; the last one (of 4) adds them up. The fault counts first.
.macro global_last fault
  s_lshl_b32 s16, s2, 8
  v_add_u32 v2, s16, v1
  v_mov_b32 v3, 0
  v_mov_b32 v4, 1
  .if \fault
  global_atomic_add v5, v3, v4, s[6:7] sc0
  s_waitcnt vmcnt(0)
  global_store_dword v2, v0, s[4:5]
  s_waitcnt vmcnt(0)
  .else
  global_store_dword v2, v0, s[4:5]
  buffer_wbl2 sc1
  s_waitcnt vmcnt(0)
  global_atomic_add v5, v3, v4, s[6:7] sc0
  s_waitcnt vmcnt(0)
  buffer_inv sc1
  .endif
  v_readfirstlane_b32 s17, v5
  s_cmp_lt_u32 s17, 192
  s_cbranch_scc1 .Lnot_last_\fault
  global_load_dword v6, v1, s[4:5]
  global_load_dword v7, v1, s[4:5] offset:256
  s_waitcnt vmcnt(0)
  v_add_u32 v6, v6, v7
  global_store_dword v1, v6, s[4:5] offset:1024
.Lnot_last_\fault:
.endm
pair global_last

// ---- barriers

// Wave 1 leaves the loop one trip before wave 0. 128 work-items.
.macro barrier_trips fault
  s_mov_b32 s17, 3
  .if \fault
  v_readfirstlane_b32 s16, v0
  s_lshr_b32 s16, s16, 6
  s_sub_u32 s17, s17, s16
  .endif
.Ltrip_\fault:
  s_barrier
  s_sub_u32 s17, s17, 1
  s_cmp_lg_u32 s17, 0
  s_cbranch_scc1 .Ltrip_\fault
  global_store_dword v1, v0, s[4:5]
.endm
pair barrier_trips

// Two barriers, one wave at each: advisory.
.macro barrier_sides fault
  v_readfirstlane_b32 s16, v0
  .if \fault
  s_cmp_eq_u32 s16, 0
  s_cbranch_scc1 .Lother_side
  s_barrier
  s_branch .Lsides_end
.Lother_side:
  .endif
  s_barrier
  .if \fault
.Lsides_end:
  .endif
  global_store_dword v1, v0, s[4:5]
.endm
pair barrier_sides

// ---- wait states. `gap` n is n wait states in the mended kernel and n - 1 with the fault.

.macro gap fault, states
  .if \states - \fault > 0
  s_nop \states - \fault - 1
  .endif
.endm

.macro state_trans fault
  v_exp_f32 v2, v0
  gap \fault, 1
  v_mul_f32 v3, 2.0, v2
  global_store_dword v1, v3, s[4:5]
.endm
pair state_trans

.macro state_partial fault
  v_mov_b32 v2, 0
  v_add_u32_sdwa v2, v0, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD
  gap \fault, 1
  v_add_u32 v3, 1, v2
  global_store_dword v1, v3, s[4:5]
.endm
pair state_partial

.macro state_readlane fault
  v_add_u32 v2, 1, v0
  gap \fault, 1
  v_readfirstlane_b32 s16, v2
  s_nop 1
  v_mov_b32 v3, s16
  global_store_dword v1, v3, s[4:5]
.endm
pair state_readlane

.macro state_dpp fault
  v_add_u32 v2, 1, v0
  gap \fault * 2, 2
  v_mov_b32_dpp v3, v2 row_newbcast:0 row_mask:0xf bank_mask:0xf
  global_store_dword v1, v3, s[4:5]
.endm
pair state_dpp

.macro state_dpp_near fault
  v_add_u32 v2, 1, v0
  gap \fault, 2
  v_mov_b32_dpp v3, v2 row_newbcast:0 row_mask:0xf bank_mask:0xf
  global_store_dword v1, v3, s[4:5]
.endm
pair state_dpp_near

.macro state_sgpr_valu fault
  v_cmp_lt_u32 s[16:17], v0, v1
  gap \fault * 2, 2
  v_cndmask_b32 v2, 0, 1, s[16:17]
  global_store_dword v1, v2, s[4:5]
.endm
pair state_sgpr_valu

.macro state_sgpr_vmem fault
  v_mov_b32 v2, s4
  s_mov_b32 s19, s5
  v_readfirstlane_b32 s18, v2
  gap \fault, 5
  global_store_dword v1, v0, s[18:19]
.endm
pair state_sgpr_vmem

.macro state_lane_select fault
  v_readfirstlane_b32 s16, v0
  gap \fault, 4
  v_readlane_b32 s17, v1, s16
  s_nop 1
  v_mov_b32 v3, s17
  global_store_dword v1, v3, s[4:5]
.endm
pair state_lane_select

// The reader is where a branch leads, or behind one that is not taken.
.macro state_lane_select_branch fault
  v_readfirstlane_b32 s16, v0
  s_branch 9f
  s_endpgm
9:
  s_nop 0
  gap \fault, 2
  v_readlane_b32 s17, v1, s16
  s_nop 1
  v_mov_b32 v3, s17
  global_store_dword v1, v3, s[4:5]
.endm
pair state_lane_select_branch

.macro state_dpp_branch fault
  s_cmp_eq_u32 s4, s4
  v_add_u32 v2, 1, v0
  s_cbranch_scc0 9f
  gap \fault, 1
  v_mov_b32_dpp v3, v2 row_newbcast:0 row_mask:0xf bank_mask:0xf
  global_store_dword v1, v3, s[4:5]
9:
.endm
pair state_dpp_branch

.macro state_div_fmas fault
  v_cmp_lt_u32 vcc, v0, v1
  gap \fault, 4
  v_div_fmas_f32 v2, v0, v0, v0
  global_store_dword v1, v2, s[4:5]
.endm
pair state_div_fmas

.macro state_exec_dpp fault
  v_cmpx_le_u32 vcc, v0, v1
  gap \fault, 5
  v_mov_b32_dpp v3, v0 row_newbcast:0 row_mask:0xf bank_mask:0xf
  global_store_dword v1, v3, s[4:5]
.endm
pair state_exec_dpp

.macro state_store_data fault
  v_mov_b32 v4, 1
  v_mov_b32 v5, 2
  v_mov_b32 v6, 3
  v_mov_b32 v7, 4
  v_lshlrev_b32 v8, 4, v0
  global_store_dwordx4 v8, v[4:7], s[4:5]
  gap \fault, 2
  v_mov_b32 v5, 9
  global_store_dword v1, v5, s[4:5] offset:1024
.endm
pair state_store_data

.macro state_setreg fault
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0
  gap \fault, 2
  s_getreg_b32 s16, hwreg(HW_REG_MODE)
  v_mov_b32 v2, s16
  global_store_dword v1, v2, s[4:5]
.endm
pair state_setreg

.macro state_m0_dma fault
  descriptor
  s_mov_b32 m0, 0
  gap \fault, 1
  buffer_load_dword v1, s[8:11], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm
pair state_m0_dma, 256

.macro matrix_inputs
  v_cvt_f32_u32 v8, v0
  v_cvt_f32_u32 v9, v0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 0
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  v_mov_b32 v14, 0
  v_mov_b32 v15, 0
  s_nop 1
.endm

.macro state_valu_mfma fault
  matrix_inputs
  v_mov_b32 v8, 1.0
  gap \fault, 2
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  s_nop 6
  global_store_dword v1, v16, s[4:5]
.endm
pair state_valu_mfma

// P = 4: 7
.macro state_mfma_valu fault
  matrix_inputs
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  gap \fault, 7
  v_add_f32 v20, 1.0, v16
  global_store_dword v1, v20, s[4:5]
.endm
pair state_mfma_valu

// P = 16: 19
.macro state_mfma_store fault
  matrix_inputs
  v_mfma_f32_32x32x4_2b_bf16 v[16:47], v[8:9], v[10:11], 0
  s_nop 8
  s_nop 8
  gap \fault, 1
  global_store_dword v1, v47, s[4:5]
.endm
pair state_mfma_store

.macro state_mfma_operand fault
  matrix_inputs
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  gap \fault, 7
  v_mfma_f32_16x16x16_bf16 v[20:23], v[16:17], v[10:11], 0
  s_nop 6
  global_store_dword v1, v20, s[4:5]
.endm
pair state_mfma_operand

// The same registers as accumulator need nothing; one off needs P + 1.
.macro state_mfma_overlap fault
  matrix_inputs
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], v[16:19]
  s_nop 6
  v_mov_b32 v20, 0
  v_mov_b32 v21, 0
  s_nop 1
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  gap \fault, 5
  v_mfma_f32_16x16x16_bf16 v[22:25], v[8:9], v[10:11], v[18:21]
  s_nop 6
  global_store_dword v1, v22, s[4:5]
.endm
pair state_mfma_overlap

.macro state_mfma_waw fault
  matrix_inputs
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], 0
  gap \fault, 7
  v_mov_b32 v16, 0
  global_store_dword v1, v16, s[4:5]
.endm
pair state_mfma_waw

// P = 4 reads C for 3 states
.macro state_mfma_war fault
  matrix_inputs
  v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], v[12:15]
  gap \fault, 3
  v_mov_b32 v12, 0
  s_nop 6
  global_store_dword v1, v16, s[4:5]
.endm
pair state_mfma_war
