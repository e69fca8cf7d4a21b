attest_fault(one_short OP topk OBJECT topk
  IMITATES https://github.com/sgl-project/sglang/pull/30645
  WHAT "stops at k - 1: the last entry is -1 although there are enough scores")
attest_fault(tail_counted OP topk OBJECT topk
  IMITATES https://github.com/NVIDIA/cudnn-frontend/issues/446
  WHAT "lanes past the end of a row count as candidates: its last position comes twice")
attest_fault(row_start_ignored OP topk OBJECT topk
  IMITATES https://github.com/sgl-project/sglang/pull/12583
  WHAT "scores read from column 0 whatever the row's first column")
attest_fault(absolute_columns OP topk OBJECT topk
  IMITATES https://github.com/vllm-project/vllm/pull/56749
  WHAT "columns of the logits returned where positions in the row are asked for")
attest_fault(chunk_only OP topk OBJECT topk
  IMITATES https://github.com/vllm-project/vllm/issues/39303
  WHAT "selects within chunks of 2048 columns and never between them")
attest_fault(coarse_key OP topk OBJECT topk
  IMITATES https://github.com/sgl-project/sglang/pull/37591
  WHAT "compares the upper 16 bits of scores: among those that share them the first positions win")
attest_fault(tie_buffer OP topk OBJECT topk
  IMITATES https://github.com/sgl-project/sglang/issues/35257
  WHAT "keeps 1024 equal scores at the boundary and drops the rest")
attest_fault(rows_16bit OP topk OBJECT topk
  IMITATES https://github.com/sgl-project/sglang/pull/34948
  WHAT "row number in 16 bits: row 65536 is row 0 again")
