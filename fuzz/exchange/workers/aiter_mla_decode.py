#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""aiter.mla.mla_decode_fwd, without persistent metadata, on the GPU that torch sees.

    attest fuzz --worker 'python3 fuzz/exchange/workers/aiter_mla_decode.py' --deadline 600 --worker-memory 0

The first case takes as long as AITER compiles its modules. By default only cases are drawn that its gfx942
kernels do (ROCm/aiter csrc/py_itfs_cu/asm_mla.cu): bf16, 16 or 128 heads, pages of one token, every request
with the same q_len and, for each of its queries, a key. Wider ones are for --heads, --q-len and --page-size:
what it does not do it refuses, or gets wrong.
"""

import argparse
import inspect

import attest_worker as aw


def what_is_missing():
    try:
        import torch
    except ImportError as error:
        return f"needs PyTorch for ROCm: {error}"
    if not torch.cuda.is_available():
        return "needs a GPU that PyTorch can use; torch.cuda.is_available() is false"
    try:
        import aiter.mla  # noqa: F401
    except Exception as error:  # its import compiles and loads libraries
        return f"needs AITER (github.com/ROCm/aiter): {' '.join(str(error).split())}"
    return None


def mla_decode(call):
    import torch
    from aiter.mla import mla_decode_fwd

    if len(call.shape("kv_buffer")) != 4:
        raise aw.Unsupported("padding between pages")
    gpu = torch.device("cuda")
    q = call.torch("q", gpu)
    q_lens = call["qo_indptr"][1:] - call["qo_indptr"][:-1]
    out = torch.full((q.shape[0], q.shape[1], 512), float("nan"), dtype=torch.bfloat16, device=gpu)
    arguments = {
        "q": q,
        "kv_buffer": call.torch("kv_buffer", gpu),
        "o": out,
        "qo_indptr": call.torch("qo_indptr", gpu),
        "kv_indptr": call.torch("kv_indptr", gpu),
        "kv_indices": call.torch("kv_indices", gpu),
        "kv_last_page_lens": call.torch("kv_last_page_lens", gpu),
        "max_seqlen_q": int(q_lens.max()),
        "page_size": call.scalar("page_size"),
        "nhead_kv": 1,
        "sm_scale": call.scalar("sm_scale"),
        "num_kv_splits": call.scalar("num_splits"),
    }
    if q.dtype != torch.bfloat16:
        arguments["q_scale"] = torch.tensor([call.scalar("q_scale")], dtype=torch.float32, device=gpu)
        arguments["kv_scale"] = torch.tensor([call.scalar("kv_scale")], dtype=torch.float32, device=gpu)
    # page_size and nhead_kv came with a later version.
    known = inspect.signature(mla_decode_fwd).parameters
    mla_decode_fwd(**{name: value for name, value in arguments.items() if name in known})
    torch.cuda.synchronize()
    return {"out": aw.bf16_of_torch(out)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, nargs="+", default=[16, 128])
    parser.add_argument("--q-len", type=int, default=4, help="longest")
    parser.add_argument("--page-size", type=int, nargs="+", default=[1])
    parser.add_argument("--fp8", action="store_true", help="fp8 q and cache (gfx942's FNUZ) instead of bf16")
    options = parser.parse_args()
    tensors = "fp8_e4m3fnuz" if options.fp8 else "bf16"
    domain = {
        "heads": options.heads, "q_len_min": 1, "q_len_max": options.q_len, "uniform_q_len": True,
        "q_format": tensors, "kv_format": tensors, "causal_only": True, "return_lse": False,
        "page_sizes": options.page_size, "page_padding": False, "keys_for_every_row": True,
        "num_splits_max": 16,
    }
    precision = "fp8p-fnuz+emptyany" if options.fp8 else "bf16-any+emptyany"
    aw.serve("aiter", {"mla_decode": aw.op(mla_decode, precision=precision, domain=domain,
                                           most_input_bytes=2**33)}, needs=what_is_missing())


if __name__ == "__main__":
    main()
