# SPDX-License-Identifier: MIT
"""Writes the arguments of a live MLA decode call as `attest capture` reads them. Needs NumPy; tensors may be torch's.

    import aiter.mla, attest_dump
    original = aiter.mla.mla_decode_fwd

    def watched(q, kv_buffer, o, qo_indptr, kv_indptr, kv_indices, kv_last_page_lens, max_seqlen_q, **more):
        result = original(q, kv_buffer, o, qo_indptr, kv_indptr, kv_indices, kv_last_page_lens, max_seqlen_q, **more)
        attest_dump.mla_decode("call.safetensors", q=q, kv_buffer=kv_buffer, out=o, qo_indptr=qo_indptr,
                               kv_indptr=kv_indptr, kv_indices=kv_indices, kv_last_page_lens=kv_last_page_lens,
                               sm_scale=more["sm_scale"])
        return result

    aiter.mla.mla_decode_fwd = watched

Of the cache only the pages in use are written, with their ids: a dump of a 100 GB cache is as large as the batch.
"""

import attest_worker as aw
import numpy as np

_TORCH = {
    "torch.bfloat16": "BF16", "torch.float8_e4m3fnuz": "F8_E4M3FNUZ", "torch.float8_e4m3fn": "F8_E4M3",
}


def _stored(tensor):
    """(dtype, array of its bits), from a torch tensor, such a pair, or an array."""
    if isinstance(tensor, tuple):
        return tensor
    if not hasattr(tensor, "detach"):
        array = np.asarray(tensor)
        return next(d for d, n in aw._NUMPY.items() if np.dtype(n) == array.dtype), array
    import torch

    kind = _TORCH.get(str(tensor.dtype))
    tensor = tensor.detach().contiguous()
    if kind is None:
        return _stored(tensor.cpu().numpy())
    bits = torch.int16 if tensor.element_size() == 2 else torch.uint8
    return kind, tensor.view(bits).cpu().numpy().view("<u2" if bits == torch.int16 else "u1")


def _pages_in_use(kv_indptr, kv_indices, block_table, seq_lens, page_size):
    if kv_indptr is not None:
        return np.unique(kv_indices[1][: kv_indptr[1][-1]])
    used = [row[: -(-length.item() // page_size)] for row, length in zip(block_table[1], seq_lens[1])]
    return np.unique(np.concatenate(used))


def mla_decode(path, *, q, kv_buffer, sm_scale, kv_indptr=None, kv_indices=None, kv_last_page_lens=None,
               block_table=None, seq_lens=None, qo_indptr=None, q_scale=1.0, kv_scale=1.0, num_splits=1,
               causal=True, out=None, lse=None):
    """AITER's page lists (kv_indptr, kv_indices, kv_last_page_lens) or vLLM's (block_table, seq_lens).

    Without qo_indptr every request has one query. `out` is what the call returned.
    """
    given = {
        "q": q, "kv_indptr": kv_indptr, "kv_indices": kv_indices, "kv_last_page_lens": kv_last_page_lens,
        "block_table": block_table, "seq_lens": seq_lens, "qo_indptr": qo_indptr, "out": out, "lse": lse,
    }
    tensors = {name: _stored(tensor) for name, tensor in given.items() if tensor is not None}
    shape = (kv_buffer[1] if isinstance(kv_buffer, tuple) else kv_buffer).shape
    slots = len(shape) == 2 or (len(shape) == 3 and shape[1] == 1)
    page_size = 1 if slots else shape[1]
    ids = _pages_in_use(tensors.get("kv_indptr"), tensors.get("kv_indices"), tensors.get("block_table"),
                        tensors.get("seq_lens"), page_size)
    if hasattr(kv_buffer, "detach"):
        import torch

        pages = _stored(kv_buffer[torch.from_numpy(ids.astype(np.int64)).to(kv_buffer.device)])
    else:
        dtype, array = _stored(kv_buffer)
        pages = dtype, array[ids]
    tensors["kv_buffer"] = pages[0], pages[1].reshape(len(ids), page_size, 1, 576)
    tensors["kv_page_ids"] = "I64", ids.astype("<i8")
    aw.save(path, tensors, {
        "op": "mla_decode", "sm_scale": repr(float(sm_scale)), "q_scale": repr(float(q_scale)),
        "kv_scale": repr(float(kv_scale)), "num_splits": int(num_splits),
        "causal": "true" if causal else "false",
    })
