attest_fault(strict_accept OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/vllm-project/vllm-ascend/pull/13766
  WHAT "a draft is accepted when p/q > u, not >= u: equality and u = 0 are decided wrongly")
attest_fault(recovered_from_target OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/vllm-project/vllm/pull/8320
  WHAT "the token that replaces a rejected draft is drawn from p instead of max(p - q, 0)")
attest_fault(bonus_after_reject OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/vllm-project/vllm/pull/2658
  WHAT "the bonus token is emitted although a draft was rejected")
attest_fault(draw_reused OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/sgl-project/sglang/pull/7207
  WHAT "the draw of the first position decides the second as well")
attest_fault(tree_sibling OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/sgl-project/sglang/issues/39287
  WHAT "children told by depth alone: those of a sibling are admitted")
attest_fault(padded_lane OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/vllm-project/vllm/pull/50183
  WHAT "lanes past the vocabulary win the argmax of a row that is all NaN")
attest_fault(unfilled_row OP spec_verify OBJECT spec_verify
  IMITATES https://github.com/flashinfer-ai/flashinfer/issues/5015
  WHAT "rows of padded requests keep what the buffer held")
