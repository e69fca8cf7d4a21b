attest_fault(both_empty_nan OP merge_states OBJECT merge_states
  IMITATES https://github.com/vllm-project/vllm/issues/27491
  WHAT "no guard for a maximum of -inf: NaN where no state has a key")
attest_fault(plus_inf_is_a_maximum OP merge_states OBJECT merge_states
  IMITATES https://github.com/vllm-project/vllm/pull/15492
  WHAT "an lse of +inf, one producer's sign for no key, taken as a number")
attest_fault(empty_lse_zero OP merge_states OBJECT merge_states
  IMITATES https://github.com/sgl-project/sglang/pull/22688
  WHAT "a state without keys enters as output 0 with lse 0: it takes weight")
attest_fault(skips_state_16 OP merge_states OBJECT merge_states
  IMITATES https://github.com/ROCm/aiter/issues/4350
  WHAT "with exactly 16 states the last one is not merged")
attest_fault(base_mixed OP merge_states OBJECT merge_states
  IMITATES https://github.com/sgl-project/sglang/issues/33064
  WHAT "weights are powers of 2 whatever the base of the lse")
attest_fault(first_strides OP merge_states OBJECT merge_states
  IMITATES https://github.com/local-inference-lab/vllm/pull/17
  WHAT "every state is read with the strides of the first")
