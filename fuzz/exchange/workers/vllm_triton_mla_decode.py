#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""vLLM's Triton MLA decode (decode_attention_fwd), called as its TRITON_MLA backend does.

    attest fuzz --worker 'python3 fuzz/exchange/workers/vllm_triton_mla_decode.py' --deadline 600 --worker-memory 0

One query per request, bf16, any head count and page size. Requests without keys are not drawn: it divides 0 by
0 there.
"""

import inspect

import attest_worker as aw


def decode_attention_fwd():
    try:
        from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd as function
    except ImportError:
        from vllm.attention.ops.triton_decode_attention import decode_attention_fwd as function
    return function


def what_is_missing():
    try:
        import torch
    except ImportError as error:
        return f"needs PyTorch: {error}"
    if not torch.cuda.is_available():
        return "needs a GPU that PyTorch can use; torch.cuda.is_available() is false"
    try:
        decode_attention_fwd()
    except Exception as error:  # vLLM's import loads compiled extensions
        return f"needs vLLM and Triton: {' '.join(str(error).split())}"
    return None


def mla_decode(call):
    import torch

    if len(call.shape("kv_buffer")) != 4:
        raise aw.Unsupported("padding between pages")
    q_lens = call["qo_indptr"][1:] - call["qo_indptr"][:-1]
    if (q_lens != 1).any():
        raise aw.Unsupported("one query per request")
    gpu = torch.device("cuda")
    q, kv = call.torch("q", gpu), call.torch("kv_buffer", gpu)
    batch, heads = q.shape[0], q.shape[1]
    splits = call.scalar("num_splits")
    nan = float("nan")
    out = torch.full((batch, heads, 512), nan, dtype=q.dtype, device=gpu)
    lse = torch.full((batch, heads), nan, dtype=torch.float32, device=gpu)
    arguments = {
        "q": q,
        "k_buffer": kv,
        "v_buffer": kv[..., :512],
        "o": out,
        "lse": lse,
        "req_to_token": call.torch("block_table", gpu),
        "b_seq_len": call.torch("seq_lens", gpu),
        "attn_logits": torch.full((batch, heads, splits, 513), nan, dtype=torch.float32, device=gpu),
        "num_kv_splits": splits,
        "sm_scale": call.scalar("sm_scale"),
        "page_size": call.scalar("page_size"),
        "is_mla": True,
    }
    function = decode_attention_fwd()
    known = inspect.signature(function).parameters  # lse and is_mla came with later versions
    function(**{name: value for name, value in arguments.items() if name in known})
    torch.cuda.synchronize()
    results = {"out": aw.bf16_of_torch(out)}
    if "lse" in known:
        results["lse"] = lse.cpu().numpy()
    return results


def main():
    needs = what_is_missing()
    lse = needs is None and "lse" in inspect.signature(decode_attention_fwd()).parameters
    domain = {
        "q_len_min": 1, "q_len_max": 1, "q_format": "bf16", "kv_format": "bf16", "return_lse": lse,
        "page_padding": False, "keys_for_every_row": True,
    }
    aw.serve("vllm-triton", {"mla_decode": aw.op(mla_decode, precision="bf16-any", domain=domain,
                                                 most_input_bytes=2**33)}, needs=needs)


if __name__ == "__main__":
    main()
