attest_fault(trailing_ids OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/flashinfer-ai/flashinfer/issues/5015
  WHAT "a list's length ignored: ids of an earlier step behind it are attended to")
attest_fault(inf_first_tile OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/issues/48364
  WHAT "running maximum of -inf not guarded: NaN where a list begins with a tile of -1")
attest_fault(holes_slot_zero OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/issues/57156
  WHAT "-1 and ids past the pool taken as slot 0, which is attended to")
attest_fault(list_stride OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/pull/51318
  WHAT "lists read at the width of the longest one, not of the buffer: row 0 right, later rows stale")
attest_fault(ds_rope_offset OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/issues/50576
  WHAT "ds layout: rope read where the scales are")
attest_fault(ds_first_scale OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/sgl-project/sglang/pull/34765
  WHAT "ds layout: the scale of the first 128 columns used for all 512")
attest_fault(fnuz_as_ocp OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/issues/45562
  WHAT "fp8 FNUZ bytes of the cache read as OCP: every latent twice as large")
attest_fault(page_padding_ignored OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/vllm-project/vllm/pull/47493
  WHAT "slot times row bytes: wrong once pages are farther apart than their rows are long")
attest_fault(offset_32bit OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/ROCm/aiter/issues/5765
  WHAT "32-bit byte offset of a slot: wraps at 4 GiB")
attest_fault(kv_scale_missing OP mla_sparse OBJECT mla_sparse
  IMITATES https://github.com/sgl-project/sglang/pull/34765
  WHAT "kv_scale restores K in the scores but not V in the output")
