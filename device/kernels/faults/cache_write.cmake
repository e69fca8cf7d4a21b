attest_fault(offset_32bit OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/pull/47671
  WHAT "32-bit byte offset of the page: wraps at 4 GiB")
attest_fault(minus_one_written OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/issues/13418
  WHAT "tokens that pad the batch are written although their slot is -1")
attest_fault(ds_rope_offset OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/issues/50576
  WHAT "the rope part of a 656-byte row begins where the scales are")
attest_fault(ocp_bytes OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/issues/45562
  WHAT "OCP fp8 written into a FNUZ cache: every value reads back as half of it")
attest_fault(negative_zero OP cache_write OBJECT cache_write
  IMITATES https://github.com/sgl-project/sglang/pull/28455
  WHAT "negative values that vanish keep their sign: 0x80, the NaN of FNUZ")
attest_fault(unit_scale OP cache_write OBJECT cache_write
  IMITATES https://github.com/sgl-project/sglang/pull/34765
  WHAT "cache written as if kv_scale were 1")
attest_fault(ocp_ceiling OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/pull/32976
  WHAT "group scales made for 448 where the format ends at 240: the largest values are cut off")
attest_fault(interleaved OP cache_write OBJECT cache_write
  IMITATES https://github.com/vllm-project/vllm/pull/50455
  WHAT "indexer scale written behind its token instead of behind all values of the page")
