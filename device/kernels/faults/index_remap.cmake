attest_fault(local_as_global OP index_remap OBJECT index_remap
  IMITATES https://github.com/vllm-project/vllm/pull/47493
  WHAT "positions in the request written as if they were slots of the cache")
attest_fault(minus_one_is_slot_zero OP index_remap OBJECT index_remap
  IMITATES https://github.com/vllm-project/vllm/pull/45324
  WHAT "entries without a key become slot 0 where -1 is asked for")
attest_fault(table_unbounded OP index_remap OBJECT index_remap
  IMITATES https://github.com/vllm-project/vllm/pull/55692
  WHAT "a position past the block table is looked up all the same")
attest_fault(block_offset_dropped OP index_remap OBJECT index_remap
  IMITATES https://github.com/ROCm/aiter/pull/5591
  WHAT "the offset inside the block is lost: every entry names the first token of its page")
