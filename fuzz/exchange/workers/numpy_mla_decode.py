#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""MLA decode in plain NumPy: an example of a worker, and a peer whose arithmetic is not attest's.

    attest fuzz --worker 'python3 fuzz/exchange/workers/numpy_mla_decode.py'

--fault NAME plants a defect, to see what attest says of it:
    drop_last_key   the last key of every row is not seen
    large_q         the same, where some |q| is above 64: data that attest does not make by itself
    crash, killed, hang, bloat, exit, nonsense, nan, wrong_shape, missing_lse, exception
"""

import argparse
import os
import signal
import sys
import time

import attest_worker as aw

try:
    import numpy as np
except ImportError:
    np = None


def attend(call, fault):
    heads, page_size = call.scalar("heads"), call.scalar("page_size")
    causal = call.scalar("causal")
    q_scale, kv_scale = call.scalar("q_scale"), call.scalar("kv_scale")
    scale = call.scalar("sm_scale") * q_scale * kv_scale
    q = call["q"].astype(np.float32)
    if fault == "large_q" and (np.abs(q) > 64).any():
        fault = "drop_last_key"
    qo_indptr, kv_indptr = call["qo_indptr"], call["kv_indptr"]
    kv_indices, last = call["kv_indices"], call["kv_last_page_lens"]
    out = np.full((len(q), heads, 512), np.nan, np.float32)
    lse = np.full((len(q), heads), np.nan, np.float32)
    for r in range(len(last)):
        ids = kv_indices[kv_indptr[r] : kv_indptr[r + 1]]
        kv_len = (len(ids) - 1) * page_size + last[r] if len(ids) else 0
        kv = call.pages("kv_buffer", ids).reshape(-1, 576)[:kv_len]
        q_len = qo_indptr[r + 1] - qo_indptr[r]
        for i in range(q_len):
            row = qo_indptr[r] + i
            visible = max(0, kv_len - q_len + i + 1) if causal else kv_len
            if fault == "drop_last_key":
                visible = max(0, visible - 1)
            if visible == 0:
                out[row], lse[row] = 0, -np.inf
                continue
            scores = (q[row] @ kv[:visible].T) * np.float32(scale)
            most = scores.max(axis=1)
            weights = np.exp(scores - most[:, None])
            total = weights.sum(axis=1)
            out[row] = (weights @ kv[:visible, :512]) / total[:, None] * np.float32(kv_scale)
            lse[row] = most + np.log(total)
    return out, lse


def run(call, fault):
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "bloat":
        held = bytearray(b"x" * 2**30)
        time.sleep(3600 + len(held))
    if fault == "exit":
        os._exit(3)
    if fault == "hang":
        time.sleep(3600)
    if fault == "nonsense":
        os.write(0, b"no JSON at all\n")  # stdin and stdout are one socket
        time.sleep(3600)
    if fault == "exception":
        raise RuntimeError("planted, as an assertion of a library would be")
    out, lse = attend(call, fault)
    if fault == "nan" and lse.size:
        out[-1, -1, -1] = np.nan
    if fault == "wrong_shape":
        out = out[..., :511]
    results = {"out": out, "lse": lse}
    if fault == "missing_lse":
        del results["lse"]
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", default=os.environ.get("ATTEST_NUMPY_FAULT", ""))
    fault = parser.parse_args().fault
    name = "numpy+" + fault if fault else "numpy"
    aw.serve(name, {"mla_decode": aw.op(lambda call: run(call, fault), precision="fp32p",
                                        most_input_bytes=2**34)})


if __name__ == "__main__":
    sys.exit(main())
