attest_fault(top_left OP mla_prefill OBJECT mla_prefill
  IMITATES https://github.com/ROCm/rocm-libraries/pull/10999
  WHAT "causal mask aligned to the top left: wrong when there are more keys than queries")
attest_fault(row0_window OP mla_prefill OBJECT mla_prefill
  IMITATES https://github.com/ROCm/aiter/issues/2720
  WHAT "all rows share the causal window of row 0")
attest_fault(chunk_boundary_twice OP mla_prefill OBJECT mla_prefill
  IMITATES https://github.com/vllm-project/vllm/issues/55609
  WHAT "a chunk of context ends one key too late: the key at each boundary is counted twice")
attest_fault(empty_chunk_lse_zero OP mla_prefill OBJECT mla_prefill
  IMITATES https://github.com/sgl-project/sglang/pull/22688
  WHAT "a chunk without keys has an lse of 0 and takes weight in the merge")
attest_fault(v_stride OP mla_prefill OBJECT mla_prefill
  IMITATES https://github.com/local-inference-lab/vllm/pull/17
  WHAT "V is read with the head stride of K: wrong unless it is padded to that")
