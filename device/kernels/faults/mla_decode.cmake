attest_fault(qlen_mask OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/ROCm/aiter/issues/2720
  WHAT "query position taken modulo q_len with & (q_len - 1): wrong rows when q_len is no power of two")
attest_fault(last_page_len OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/vllm-project/vllm/pull/31282
  WHAT "last-page length of the original page size used on a token-level list: reads past the end")
attest_fault(causal_off_by_one OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/vllm-project/vllm/pull/50476
  WHAT "a query row sees one draft token that comes after it")
attest_fault(last_tile_dropped OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/ROCm/aiter/pull/2319
  WHAT "number of KV tiles rounded down: a partial last tile is not read")
attest_fault(split_forgotten OP mla_decode OBJECT split_reduce
  IMITATES https://github.com/ROCm/aiter/pull/3069
  WHAT "the merge takes one split fewer than were computed")
attest_fault(lse_base2 OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/sgl-project/sglang/issues/40903
  WHAT "splits store a base-2 log-sum-exp that the merge takes as natural")
attest_fault(kv_scale_missing OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/sgl-project/sglang/pull/34765
  WHAT "kv_scale restores K in the scores but not V in the output")
attest_fault(page_size_one OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/ROCm/aiter/issues/2996
  WHAT "page size ignored: every page taken as one token")
attest_fault(inf_first_tile OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/vllm-project/vllm/issues/48364
  WHAT "running maximum of -inf not guarded: NaN where a row's first tile is fully masked")
attest_fault(offset_32bit OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/ROCm/aiter/issues/2768
  WHAT "32-bit byte offset into the KV pool: wraps at 4 GiB")
# Right in the plain order of waves; another order, or the detector lds-race, shows it.
attest_fault(barrier_missing OP mla_decode OBJECT mla_decode
  IMITATES https://github.com/deepseek-ai/DeepGEMM/issues/392
  WHAT "no barrier between staging a tile in LDS and its use: a race that the order of waves decides")
