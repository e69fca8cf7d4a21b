attest_fault(last_page_len OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/31282
  WHAT "last_page_len left at the engine's block size although a page is one token")
attest_fault(block_size_one OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/39616
  WHAT "only block size 1 handled: entry t of the table taken for the slot of token t")
attest_fault(block_ratio_missing OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/27224
  WHAT "id of a manager block used as the id of its first kernel block")
attest_fault(dummy_rows_empty OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/45227
  WHAT "padded requests of a verify batch get queries and no keys: their rows read page -1")
attest_fault(qo_indptr_arange OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/39616
  WHAT "qo_indptr is 0, 1, 2, ... whatever the q_len")
attest_fault(offsets_run_on OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/15893
  WHAT "padded requests get one entry each: offsets run on after the first of them")
attest_fault(stale_tail OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/flashinfer-ai/flashinfer/issues/5015
  WHAT "the tail of a captured graph's index list keeps what a longer batch left")
attest_fault(state_on_builder OP block_table_expand OBJECT block_table_expand
  IMITATES https://github.com/vllm-project/vllm/pull/46993
  WHAT "lengths kept by the builder, not by the metadata: the next batch overwrites them")
