attest_fault(relu_missing OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/huggingface/transformers/issues/44360
  WHAT "negative products count: no relu before the weighted sum")
attest_fault(weight_scale_missing OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/NVIDIA/TensorRT-LLM/issues/18658
  WHAT "the scale of the query is left out of the weights")
attest_fault(neighbour_scale OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/vllm-project/vllm/issues/50576
  WHAT "a key's scale is read from its neighbour in the page")
attest_fault(interleaved OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/vllm-project/vllm/pull/50455
  WHAT "pages read as 132-byte tokens instead of values, then scales")
attest_fault(fnuz_as_ocp OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/vllm-project/vllm/issues/45562
  WHAT "FNUZ keys read as OCP fp8: twice as large")
attest_fault(offset_32bit OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/vllm-project/vllm/issues/52109
  WHAT "32-bit byte offset of the page: wraps at 4 GiB")
attest_fault(block_offset_dropped OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/ROCm/aiter/pull/5591
  WHAT "the offset inside the block is lost: only the first token of each page is read")
attest_fault(row_start_ignored OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/sgl-project/sglang/pull/12583
  WHAT "a row looks at keys from column 0 on, those of other requests too")
attest_fault(odd_next_n OP indexer_logits OBJECT indexer_logits
  IMITATES https://github.com/deepseek-ai/DeepGEMM/pull/324
  WHAT "rows assigned to requests in pairs: wrong tables when next_n is odd")
