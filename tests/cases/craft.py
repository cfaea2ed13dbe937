"""craft.py: safetensors files put together by hand, right ones and wrong ones, from the standard library alone; the same bytes every time.

SPDX-License-Identifier: Apache-2.0
"""
import array
import json
import random
import struct

BITS = dict(BOOL=8, F4=4, F6_E2M3=6, F6_E3M2=6, U8=8, I8=8, F8_E5M2=8, F8_E4M3=8, F8_E8M0=8, F8_E4M3FNUZ=8, F8_E5M2FNUZ=8, I16=16, U16=16,
            F16=16, BF16=16, I32=32, U32=32, F32=32, C64=64, F64=64, I64=64, U64=64)


def noise(nbytes, seed=1):
    return random.Random(seed).randbytes(nbytes)


def f32_weights(n, seed=1):
    """Gaussian, as trained weights nearly are."""
    gauss = random.Random(seed).gauss
    return array.array("f", [gauss(0, 0.02) for _ in range(n)]).tobytes()


def bf16_weights(n, seed=1):
    wide = f32_weights(n, seed)
    out = bytearray(2 * n)
    out[0::2], out[1::2] = wide[2::4], wide[3::4]
    return bytes(out)


def frame(header, data=b"", length=None):
    """The 8 bytes of length, the header's text, the data; `length` may lie."""
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end, name="t"):
    return json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}, separators=(",", ":"))[1:-1]


def one(dtype, shape, begin, end, data=b"", tail="", lead=""):
    """A file with one tensor, which need not make sense."""
    return frame(f"{lead}{{{entry(dtype, shape, begin, end)}}}{tail}", data)


def checkpoint(*tensors, metadata=None, order=None, align=8):
    """A right file. tensors: (name, dtype, shape, data) in the order of their data; order: in which the header names them."""
    entries, end = [], 0
    for name, dtype, shape, data in tensors:
        begin, end = end, end + len(data)
        entries.append(entry(dtype, shape, begin, end, name))
    if order:
        entries = [entries[i] for i in order]
    if metadata is not None:
        entries.insert(0, '"__metadata__":' + json.dumps(metadata, separators=(",", ":")))
    text = "{" + ",".join(entries) + "}"
    return frame(text + " " * (-len(text) % align), b"".join(data for *_, data in tensors))
