attest_fault(later_drafts OP verify_attention OBJECT verify_attention
  IMITATES https://github.com/vllm-project/vllm/pull/50476
  WHAT "a draft row sees the drafts that come after it")
attest_fault(sibling OP verify_attention OBJECT verify_attention
  IMITATES https://github.com/sgl-project/sglang/pull/39287
  WHAT "the mask goes by the order of the nodes: a node on another branch is seen")
attest_fault(row0_window OP verify_attention OBJECT verify_attention
  IMITATES https://github.com/ROCm/aiter/issues/2720
  WHAT "every row of a request has the window of row 0")
attest_fault(leading_rows OP verify_attention OBJECT verify_attention
  IMITATES https://github.com/vllm-project/vllm/pull/45227
  WHAT "padded leading rows leak: they count as nodes and every window moves by them")
attest_fault(fold_as_position OP verify_attention OBJECT verify_attention
  IMITATES https://github.com/ROCm/aiter/pull/2636
  WHAT "folded heads are taken for query positions: each group of heads has another window")
