attest_fault(weak_key OP work_plan OBJECT work_plan
  IMITATES https://github.com/vllm-project/vllm/issues/47042
  WHAT "a plan is taken for current when batch and longest context agree: built for another batch")
attest_fault(memo_outlives_plan OP work_plan OBJECT work_plan
  IMITATES https://github.com/ROCm/aiter/issues/5193
  WHAT "the caller remembers that a plan was made; its memory has been used for something else since")
attest_fault(qlen_gate_missing OP work_plan OBJECT work_plan
  IMITATES https://github.com/vllm-project/vllm/pull/39616
  WHAT "a plan is made for a q_len that no persistent kernel supports")
attest_fault(empty_work_ends OP work_plan OBJECT work_plan
  IMITATES https://github.com/ROCm/aiter/pull/3641
  WHAT "a row without a key in its piece ends the workgroup: its later works are not done")
attest_fault(empty_split_lse_zero OP work_plan OBJECT work_plan
  IMITATES https://github.com/ROCm/aiter/pull/4711
  WHAT "a piece in which a row sees no key is stored as (0, lse 0), which weighs as much as one key")
attest_fault(sixteenth_split_skipped OP work_plan OBJECT work_plan
  IMITATES https://github.com/ROCm/aiter/pull/2319
  WHAT "the merge of exactly 16 pieces leaves out the last one")
