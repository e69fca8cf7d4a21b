# Our kernels behind AITER's argument block, laid out as AITER's hsa folder is: ${CMAKE_BINARY_DIR}/kernels/aiter_block is
# what --aiter-hsa takes. The registry has the format of AITER's mla_asm.csv and two columns more: the planted fault of a
# row and what it imitates.
set(block_folder aiter_block/${ATTEST_KERNEL_ARCH}/mla)
file(MAKE_DIRECTORY ${ATTEST_KERNEL_DIR}/${block_folder})
attest_code_object(${block_folder}/decode SOURCE aiter_block/decode.hip)

# qType,kvType,Gqa,ps,qSeqLen,prefill,causal,lse,knl_name
set(block_rows
  "bf16,bf16,16,0,1,0,1,0,attest_bf16_qh16_q1"
  "bf16,bf16,16,0,4,0,1,0,attest_bf16_qh16_q4"
  "bf16,bf16,16,0,8,0,1,0,attest_bf16_qh16_q8"
  "bf16,bf16,16,1,4,0,1,0,attest_bf16_qh16_q4_ps"
  "bf16,fp8,16,1,4,0,1,0,attest_bf16_fp8_qh16_q4_ps"
  "bf16,byte,16,1,4,0,1,0,attest_bf16_ds_qh16_q4_ps"
  "fp8,fp8,16,0,4,0,1,0,attest_fp8_qh16_q4"
  "fp8,fp8,64,1,1,0,1,0,attest_fp8_qh64_q1_ps"
  "fp8,fp8,64,1,1,0,1,1,attest_fp8_qh64_q1_lse_ps")
set(block_table "qType,kvType,Gqa,ps,qSeqLen,prefill,causal,lse,knl_name,co_name,fault,imitates\n")
foreach(row ${block_rows})
  string(APPEND block_table "${row},decode.co,,\n")
endforeach()

# attest_block_fault(<name> ROWS <kernel>... IMITATES <link, or a finding's file>): decode+<name>.co, compiled with
# ATTEST_FAULT_<NAME>, and for each named kernel a row that dispatch never takes and a name reaches:
# aiter/<kernel>+<name>.
function(attest_block_fault name)
  cmake_parse_arguments(ARG "" "IMITATES" "ROWS" ${ARGN})
  string(TOUPPER ${name} upper)
  attest_code_object(${block_folder}/decode+${name} SOURCE aiter_block/decode.hip DEFINES ATTEST_FAULT_${upper})
  foreach(row ${block_rows})
    string(REGEX REPLACE ".*," "" kernel ${row})
    if(kernel IN_LIST ARG_ROWS)
      string(APPEND block_table "${row},decode+${name}.co,${name},${ARG_IMITATES}\n")
    endif()
  endforeach()
  set(block_table "${block_table}" PARENT_SCOPE)
endfunction()

attest_block_fault(page_size_overwritten ROWS attest_bf16_qh16_q4
  IMITATES https://github.com/ROCm/aiter/issues/2996)
attest_block_fault(null_result_pointer ROWS attest_bf16_qh16_q4
  IMITATES https://github.com/ROCm/aiter/pull/2983)
attest_block_fault(causal_bound_missing ROWS attest_bf16_qh16_q4
  IMITATES cases/findings/aiter/bf16-128-heads-no-causal-mask.json)
attest_block_fault(granularity_mismatch ROWS attest_bf16_qh16_q4
  IMITATES cases/findings/aiter/fp8-16-heads-q2-merge-counts-unwritten-splits.json)
attest_block_fault(f32_into_bf16 ROWS attest_bf16_qh16_q4
  IMITATES cases/findings/aiter/bf16-8-heads-one-split-f32-into-bf16.json)
attest_block_fault(page_offset_32bit ROWS attest_bf16_qh16_q4 attest_bf16_qh16_q4_ps
  IMITATES https://github.com/ROCm/aiter/issues/2768)
attest_block_fault(latents_truncated ROWS attest_bf16_ds_qh16_q4_ps
  IMITATES cases/findings/aiter/bf16-ds-16-heads-persistent-latents-truncated.json)
attest_block_fault(first_scale_for_all ROWS attest_bf16_ds_qh16_q4_ps
  IMITATES https://github.com/vllm-project/vllm/pull/32976)
file(CONFIGURE OUTPUT ${ATTEST_KERNEL_DIR}/${block_folder}/mla_asm.csv CONTENT "${block_table}" @ONLY)
