# SPDX-License-Identifier: MIT
"""The worker's side of `attest fuzz --worker`, and safetensors files, in plain Python and NumPy.

    import attest_worker as aw

    def mla_decode(call):
        q, kv = call["q"], call.pages("kv_buffer")      # float32 of bf16 and fp8, integers as they are
        ...
        return {"out": out, "lse": lse}                 # converted to what the case asks for

    aw.serve("mine", {"mla_decode": aw.op(mla_decode, precision="bf16")})

fuzz/exchange/README.md describes the protocol. What a kernel prints on stdout goes to stderr: stdout is the
protocol's. An exception is reported as an error of the kernel, with its place; `Unsupported("why")` says that
the kernel does not do this case.
"""

import json
import os
import sys
import traceback

try:
    import numpy as np
except ImportError:
    np = None

PROTOCOL = 1


class Unsupported(Exception):
    """The kernel does not do this case; the text says why."""


# ---------------------------------------------------------------------------------------------- number formats

_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}
_NUMPY = {
    "BOOL": "?", "U8": "<u1", "I8": "<i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4",
    "F32": "<f4", "I64": "<i8", "U64": "<u8", "F64": "<f8",
}


def _fp8_table(mantissa_bits, bias, fnuz):
    """The 256 values of an 8-bit format, as the OCP specification and arXiv:2206.02915 (FNUZ) define them."""
    values = np.empty(256, np.float32)
    for byte in range(256):
        exponent = (byte & 0x7F) >> mantissa_bits
        mantissa = byte & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            value = mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            value = (1 + mantissa * 2.0**-mantissa_bits) * 2.0 ** (exponent - bias)
        if fnuz:
            value = np.nan if byte == 0x80 else value
        elif mantissa_bits == 3:
            value = np.nan if byte & 0x7F == 0x7F else value
        elif exponent == 31:
            value = np.inf if mantissa == 0 else np.nan
        values[byte] = -value if byte & 0x80 else value
    return values


_FP8 = {
    "F8_E4M3": (3, 7, False),
    "F8_E4M3FNUZ": (3, 8, True),
    "F8_E5M2": (2, 15, False),
    "F8_E5M2FNUZ": (2, 16, True),
}


def decode(raw, dtype):
    """Stored elements as numbers: bf16 and fp8 become float32, the rest stays as it is."""
    if dtype == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if dtype in _FP8:
        return _fp8_table(*_FP8[dtype])[raw]
    if dtype == "F8_E8M0":
        return np.where(raw == 255, np.nan, 2.0 ** (raw.astype(np.float64) - 127)).astype(np.float32)
    return raw


def encode(values, dtype):
    """The reverse; bf16 is rounded to nearest, ties to even."""
    if dtype == "BF16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, rounded).astype("<u2")
    if dtype in _NUMPY:
        return np.ascontiguousarray(values, _NUMPY[dtype])
    raise ValueError(f"no encoder for {dtype}; return its bytes as uint8")


# ------------------------------------------------------------------------------------------- safetensors files


class Tensors:
    """A safetensors file, mapped: `raw(name)` its elements as stored, `[name]` as numbers."""

    def __init__(self, path):
        self.path = path
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, 100_000_000):
                raise ValueError(f"{path}: no safetensors file, or cut off")
            header = json.loads(file.read(length))
        self.metadata = header.pop("__metadata__", {})
        self.entries = header
        self.start = 8 + length

    def __contains__(self, name):
        return name in self.entries

    def dtype(self, name):
        return self.entries[name]["dtype"]

    def shape(self, name):
        return tuple(self.entries[name]["shape"])

    def raw(self, name):
        entry = self.entries[name]
        begin, end = entry["data_offsets"]
        kind = _NUMPY.get(entry["dtype"], "<u2" if _BYTES[entry["dtype"]] == 2 else "<u1")
        if begin == end:
            return np.empty(self.shape(name), kind)
        mapped = np.memmap(self.path, np.uint8, "r", self.start + begin, (end - begin,))
        return mapped.view(kind).reshape(self.shape(name))

    def __getitem__(self, name):
        return decode(self.raw(name), self.dtype(name))


def save(path, tensors, metadata=None):
    """Writes {name: (dtype, array as stored)} or {name: array}."""
    entries = {}
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (None, value)
        array = np.asarray(array, order="C")
        if dtype is None:
            dtype = next(d for d, n in _NUMPY.items() if np.dtype(n) == array.dtype)
        entries[name] = (dtype, array)
    header, end = {}, 0
    if metadata:
        header["__metadata__"] = {key: str(value) for key, value in metadata.items()}
    ordered = sorted(entries.items(), key=lambda item: -_BYTES[item[1][0]])
    for name, (dtype, array) in ordered:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, (_, array) in ordered:
            file.write(array.tobytes())
    os.replace(path + ".part", path)


# ------------------------------------------------------------------------------------------------------- calls


class Call(Tensors):
    """The inputs of one case. `scalar("heads")` is a number, bool or word of its metadata."""

    def __init__(self, path):
        super().__init__(path)
        self.op = self.metadata["op"]
        self.outputs = json.loads(self.metadata["outputs"])

    def scalar(self, name):
        text = self.metadata[name]
        if text in ("true", "false"):
            return text == "true"
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    def raw_pages(self, name):
        """[pages, page_size, 576] of a paged MLA cache as stored; a view with strides where pages are padded."""
        pool, page_size = self.raw(name), self.scalar("page_size")
        flat = pool.reshape(pool.shape[0], -1)[:, : page_size * 576]
        return np.lib.stride_tricks.as_strided(
            flat, (flat.shape[0], page_size, 576), (flat.strides[0], 576 * flat.itemsize, flat.itemsize),
            writeable=False)

    def pages(self, name, ids):
        """[len(ids), page_size, 576] numbers of those pages."""
        return decode(self.raw_pages(name)[ids], self.dtype(name))

    def wanted(self, name):
        return name in self.outputs

    def torch(self, name, device):
        """The tensor as torch has it, bits unchanged, on a device."""
        import torch

        kinds = {"BF16": torch.bfloat16, "F8_E4M3": getattr(torch, "float8_e4m3fn", None),
                 "F8_E4M3FNUZ": getattr(torch, "float8_e4m3fnuz", None)}
        raw = np.array(self.raw(name))
        if self.dtype(name) not in kinds:
            return torch.from_numpy(raw).to(device)
        kind = kinds[self.dtype(name)]
        if kind is None:
            raise Unsupported(f"this torch has no {self.dtype(name)}")
        return torch.from_numpy(raw.view(np.int16 if raw.itemsize == 2 else np.uint8)).view(kind).to(device)


def bf16_of_torch(tensor):
    """A torch.bfloat16 result as `serve` takes it, bits unchanged."""
    import torch

    return "BF16", tensor.contiguous().view(torch.int16).cpu().numpy().view("<u2")


def op(function, **capabilities):
    """An op for `serve`: function(call) -> {output: array}, and what hello says of it."""
    return function, capabilities


def write_outputs(call, results, path):
    """The results of a function as `attest check` reads them."""
    tensors = {}
    for name, wanted in call.outputs.items():
        if name not in results:
            continue  # attest names what is missing
        value = results[name]
        if isinstance(value, tuple):
            tensors[name] = value  # (dtype, as stored)
        else:
            tensors[name] = (wanted["dtype"], encode(np.asarray(value), wanted["dtype"]))
    save(path, tensors)


def _last_frame(error):
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {frames[-1].name}" if frames else ""


def serve(name, ops, needs=None, about=""):
    """Speaks the protocol until stdin ends.

    name   one word
    ops    {"mla_decode": op(function, precision="bf16", domain={...}, most_input_bytes=...)}
    needs  why it cannot run here, in one line, or None
    """
    channel = os.dup(1)
    os.dup2(2, 1)  # prints of libraries must not mix with the protocol

    def say(message):
        os.write(channel, (json.dumps(message) + "\n").encode())

    if np is None:
        needs = "needs NumPy (python3-numpy)"
    if needs:
        say({"attest_worker": PROTOCOL, "name": name, "unavailable": needs})
        return
    say({"attest_worker": PROTOCOL, "name": name, "about": about,
         "ops": {op_name: capabilities for op_name, (_, capabilities) in ops.items()}})
    for line in sys.stdin:
        request = json.loads(line)
        reply = {"id": request["id"]}
        try:
            call = Call(request["inputs"])
            write_outputs(call, ops[request["op"]][0](call), request["outputs"])
            reply["ok"] = True
        except Unsupported as why:
            reply["unsupported"] = str(why)
        except Exception as error:  # the kernel's, whatever it is: reported, never swallowed
            traceback.print_exc()
            reply["error"] = type(error).__name__ + _last_frame(error)
            reply["detail"] = " ".join(str(error).split())[:500]
        say(reply)
