attest_fault(switch_strict OP dense_switch OBJECT dense_switch
  IMITATES https://github.com/vllm-project/vllm/pull/52512
  WHAT "the switch compares with < for <=: a batch of exactly topk runs sparse over lists nobody filled")
attest_fault(route_on_q_len OP dense_switch OBJECT dense_switch
  IMITATES https://github.com/vllm-project/vllm/pull/47327
  WHAT "the switch looks at the query length, not at the whole sequence")
attest_fault(stale_metadata OP dense_switch OBJECT dense_switch
  IMITATES https://github.com/vllm-project/vllm/issues/47042
  WHAT "metadata of the previous batch reused when batch size and longest list are the same")
attest_fault(ids_not_remapped OP dense_switch OBJECT dense_switch
  IMITATES https://github.com/sgl-project/sglang/pull/12583
  WHAT "the indexer's request-local token numbers used as cache slots")
