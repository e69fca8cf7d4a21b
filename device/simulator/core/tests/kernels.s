// SPDX-License-Identifier: MIT
//
// Kernels for dispatch_test.cpp. Argument block: s[0:1] points to { u64 out, ... }.

.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.amdhsa_code_object_version 5

// descriptor name, vgprs, lds, more...
.macro descriptor name, vgprs, lds, scratch=0, ids=0, packet=0
  .p2align 6
  .section .rodata,"a"
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_next_free_vgpr \vgprs
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset ((\vgprs + 3) / 4) * 4
    .amdhsa_group_segment_fixed_size \lds
    .amdhsa_private_segment_fixed_size \scratch
    .amdhsa_user_sgpr_dispatch_ptr \packet
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_system_sgpr_workgroup_id_y \ids
    .amdhsa_system_sgpr_workgroup_id_z \ids
    .amdhsa_system_vgpr_workitem_id \ids * 2
    .amdhsa_kernarg_size 64
  .end_amdhsa_kernel
  .text
  .p2align 8
  .globl \name
  .type \name,@function
.endm

.macro end name
  s_endpgm
  .size \name, . - \name
.endm

// out[(((z * 5 + y) * 3 + x) * 192 + local linear id)] = packed id, for a 3 x 5 x 2 grid of 192 work-items
descriptor ids, 8, 0, 0, 1
ids:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_mul_i32 s10, s4, 5
  s_add_u32 s10, s10, s3
  s_mul_i32 s10, s10, 3
  s_add_u32 s10, s10, s2
  s_mul_i32 s10, s10, 192
  // local linear id of an 8 x 6 x 4 workgroup
  v_bfe_u32 v1, v0, 0, 10
  v_bfe_u32 v2, v0, 10, 10
  v_bfe_u32 v3, v0, 20, 10
  v_lshlrev_b32 v2, 3, v2
  v_mul_u32_u24 v3, 48, v3
  v_add3_u32 v1, v1, v2, v3
  v_add_lshl_u32 v1, v1, s10, 2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[8:9]
end ids

// 256 work-items: LDS[i] = i * 3; barrier; out[i] = LDS[255 - i]
descriptor reverse, 8, 1024
reverse:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mul_u32_u24 v2, 3, v0
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_sub_u32 v3, 0x3fc, v1
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[8:9]
end reverse

// out[i] = sum of 1..n with n = second argument, by a loop
descriptor loop, 8, 0
loop:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x8
  s_mov_b32 s11, 0
  s_waitcnt lgkmcnt(0)
.Lagain:
  s_add_u32 s11, s11, s10
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lagain
  v_mov_b32 v2, s11
  v_lshlrev_b32 v1, 2, v0
  global_store_dword v1, v2, s[8:9]
end loop

descriptor endless, 8, 0
endless:
  s_branch endless
end endless

// wave 0 waits at a barrier, wave 1 never comes
descriptor lonely, 8, 0
lonely:
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 .Lwait
.Lspin:
  s_branch .Lspin
.Lwait:
  s_barrier
end lonely

// wave 1 ends, wave 0 waits at a barrier and goes on: ended waves count as arrived
descriptor leaver, 8, 0
leaver:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_readfirstlane_b32 s10, v0
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lleave
  s_barrier
  v_mov_b32 v1, 0
  v_mov_b32 v2, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[8:9]
.Lleave:
end leaver

// every workgroup adds one to out[0] and waits until all of the second argument have
descriptor rendezvous, 8, 0
rendezvous:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x8
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_mov_b64 exec, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add v1, v2, s[8:9]
.Lpoll:
  global_load_dword v3, v1, s[8:9] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s11, v3
  s_cmp_lt_u32 s11, s10
  s_cbranch_scc1 .Lpoll
end rendezvous

// out[0] += (float)(1 / (1 + work-item)) from every work-item: the sum depends on the order
descriptor float_sum, 8, 0
float_sum:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshl_add_u32 v1, s2, 8, v0
  v_cvt_f32_u32 v1, v1
  v_add_f32 v1, 1.0, v1
  v_rcp_f32 v1, v1
  v_mov_b32 v2, 0
  s_waitcnt lgkmcnt(0)
  global_atomic_add_f32 v2, v1, s[8:9]
end float_sum

// a few thousand vector instructions per wave; out[global id] = a hash of it
descriptor hash, 8, 0
hash:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshl_add_u32 v1, s2, 8, v0
  v_lshlrev_b32 v2, 2, v1
  s_movk_i32 s10, 300
  s_mov_b32 s11, 0x9e3779b1
.Lmix:
  v_mul_lo_u32 v1, v1, s11
  v_lshrrev_b32 v3, 15, v1
  v_xor_b32 v1, v1, v3
  v_add_u32 v1, 0x1234567, v1
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lmix
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v1, s[8:9]
end hash

// writes out[global id], one dword too far in the last work-item of the second argument's workgroup
descriptor overrun, 8, 0
overrun:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshl_add_u32 v1, s2, 7, v0
  v_lshlrev_b32 v2, 2, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v1, s[8:9]
end overrun

descriptor illegal, 8, 0
illegal:
  s_load_dword s10, s[0:1], 0x8
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s10, 0
  s_cbranch_scc1 .Lfine
  .long 0xbfff0000
.Lfine:
end illegal

descriptor register, 8, 0
register:
  s_load_dword s10, s[0:1], 0x8
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s10, 0
  s_cbranch_scc1 .Lsmall
  v_mov_b32 v9, 1
.Lsmall:
end register

// second argument 1: branch outside; 2: into the middle of an instruction; 3: computed jump to nowhere; 4: past the end
descriptor jump, 8, 0
jump:
  s_load_dword s10, s[0:1], 0x8
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s10, 1
  s_cbranch_scc1 .Loutside
  s_cmp_eq_u32 s10, 2
  s_cbranch_scc1 .Lmiddle
  s_cmp_eq_u32 s10, 3
  s_cbranch_scc1 .Lnowhere
  s_endpgm
.Loutside:
  s_branch 0x7fff
.Lmiddle:
  s_branch 1
.Lnowhere:
  s_mov_b32 s4, 0x12345678
  s_mov_b32 s5, 0x1
  s_setpc_b64 s[4:5]
end jump

descriptor fallthrough, 8, 0
fallthrough:
  v_mov_b32 v0, v0
  .size fallthrough, . - fallthrough

descriptor trap, 8, 0
trap:
  s_trap 2
end trap

// out = { scratch round trip per work-item }: v0 * 7 through 16 bytes of scratch
descriptor private, 8, 0, 16
private:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_mul_u32_u24 v1, 7, v0
  scratch_store_dword off, v1, off offset:12
  s_waitcnt vmcnt(0)
  scratch_load_dword v2, off, off offset:12
  v_lshlrev_b32 v3, 2, v0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v3, v2, s[8:9]
end private

// out[global id] = a hash of it, mixed as often as the second argument says in the last dword of the stack; the
// store makes it a kernel that may communicate
.macro stacked name, scratch
descriptor \name, 8, 0, \scratch
\name:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x8
  s_mov_b32 s11, 0x9e3779b1
  s_mov_b32 s12, \scratch - 4
  v_lshl_add_u32 v1, s2, 6, v0
  v_lshlrev_b32 v2, 2, v1
  scratch_store_dword off, v1, s12
  s_waitcnt vmcnt(0) lgkmcnt(0)
.Lmix_\name:
  scratch_load_dword v3, off, s12
  s_waitcnt vmcnt(0)
  v_mul_lo_u32 v3, v3, s11
  v_add_u32 v3, 0x1234567, v3
  scratch_store_dword off, v3, s12
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lmix_\name
  global_store_dword v2, v3, s[8:9] sc1
end \name
.endm
stacked stacked_small, 16
stacked stacked_large, 262144

// rendezvous with large stacks: every workgroup adds one to out[0] and waits until all of the second argument have;
// then out[64 + global id] = global id, which lay in the stack meanwhile
descriptor stacked_rendezvous, 8, 0, 262144
stacked_rendezvous:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dword s10, s[0:1], 0x8
  s_mov_b32 s12, 262140
  v_lshl_add_u32 v4, s2, 6, v0
  scratch_store_dword off, v4, s12
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_mov_b64 s[14:15], exec
  s_mov_b64 exec, 1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_atomic_add v1, v2, s[8:9]
.Lpoll_stacked:
  global_load_dword v3, v1, s[8:9] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s11, v3
  s_cmp_lt_u32 s11, s10
  s_cbranch_scc1 .Lpoll_stacked
  s_mov_b64 exec, s[14:15]
  v_lshlrev_b32 v4, 2, v4
  scratch_load_dword v3, off, s12
  s_waitcnt vmcnt(0)
  global_store_dword v4, v3, s[8:9] offset:256
end stacked_rendezvous

// out[0..3] = grid size x from the dispatch packet, workgroup size x and y, sentinel register s20
descriptor packet, 8, 0, 0, 0, 1
packet:
  s_load_dwordx2 s[8:9], s[2:3], 0x0
  s_load_dword s10, s[0:1], 0xc
  s_load_dword s11, s[0:1], 0x4
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v1, 0
  v_mov_b32 v2, s10
  v_mov_b32 v3, s11
  v_mov_b32 v4, s20
  v_mov_b32 v5, v7
  global_store_dwordx4 v1, v[2:5], s[8:9]
end packet

// calls a function through s_swappc
descriptor caller, 8, 0
caller:
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, callee@rel32@lo+4
  s_addc_u32 s5, s5, callee@rel32@hi+12
  s_swappc_b64 s[30:31], s[4:5]
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[8:9]
end caller

  .p2align 6
  .type callee,@function
callee:
  v_add_u32 v2, 100, v0
  s_setpc_b64 s[30:31]
  .size callee, . - callee
