"""model_casts.py: weights rounded to narrower types, as checkpoints in those types are made.

to_bf16 needs the standard library only; the others need numpy. SPDX-License-Identifier: Apache-2.0
"""
from model_files import Tensor, tensor

FLOATS = ("F16", "BF16", "F32", "F64")


def f32_to_bf16(data):
    """Rounds to nearest, ties to even. Each block is one long integer, its 32-bit lanes rounded all at once."""
    out = bytearray(len(data) // 2)
    for at in range(0, len(data), 1 << 16):
        block = data[at:at + (1 << 16)]
        ones = int.from_bytes(b"\1\0\0\0" * (len(block) // 4), "little")
        words = int.from_bytes(block, "little")
        if ((words & ones * 0x7fffffff) + ones * 0x007fffff) & ones << 31:
            raise ValueError("a NaN among the weights")      # its rounding would carry into the next lane
        rounded = (words + ones * 0x7fff + (words >> 16 & ones)).to_bytes(len(block), "little")
        out[at // 2:(at + len(block)) // 2:2] = rounded[2::4]
        out[at // 2 + 1:(at + len(block)) // 2:2] = rounded[3::4]
    return bytes(out)


def to_bf16(t):
    if t.dtype == "BF16":
        return t
    return Tensor("BF16", t.shape, f32_to_bf16(t.data if t.dtype == "F32" else to_array(t).tobytes()))


def each_float(tensors, cast):
    return {name: cast(t) if t.dtype in FLOATS else t for name, t in tensors.items()}


def to_array(t):
    """As float32."""
    import numpy as np
    if t.dtype == "BF16":
        return (np.frombuffer(t.data, "<u2").astype("<u4") << 16).view("<f4").reshape(t.shape)
    return np.frombuffer(t.data, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[t.dtype]).astype("<f4").reshape(t.shape)


def from_array(dtype, array):
    return tensor(dtype, array.shape, array.tobytes())


def to_f16(t):
    return from_array("F16", to_array(t).astype("<f2"))


def e4m3_codes(x):
    """float32 of magnitude up to 448 to E4M3, to nearest, ties to even."""
    import numpy as np
    code = np.arange(127)
    values = np.where(code < 8, code / 512, (1 + code % 8 / 8) * 2.0 ** (code // 8 - 7))
    middles = ((values[:-1] + values[1:]) / 2).astype(np.float32)       # exact
    size = np.abs(x)
    low = np.searchsorted(middles, size, side="left")                   # a tie goes to the lower code ...
    tie = middles[np.minimum(low, len(middles) - 1)] == size
    return (low + (tie & (low % 2 == 1)) | np.signbit(x) * 128).astype(np.uint8)    # ... unless that one is odd


def quantised(tensors, quantise):
    """quantise(array) -> (dtype, codes, scales) for matrices and up, the scales beside them; other weights become BF16."""
    out = {}
    for name, t in tensors.items():
        if t.dtype not in FLOATS:
            out[name] = t
        elif len(t.shape) < 2:
            out[name] = to_bf16(t)
        else:
            dtype, codes, scales = quantise(to_array(t))
            out[name] = tensor(dtype, t.shape, codes.tobytes())
            out[name + "_scale"] = from_array("F32", scales)
    return out


def fp8(x):
    """E4M3 with one scale: the largest magnitude becomes 448."""
    import numpy as np
    top = np.abs(x).max()
    scale = top / np.float32(448) if top > 0 else np.float32(1)
    return "F8_E4M3", e4m3_codes(np.clip(x / scale, -448, 448)), np.array([scale], np.float32)


def int8(x):
    """Symmetric, one scale for each output row."""
    import numpy as np
    rows = x.reshape(x.shape[0], -1)
    top = np.abs(rows).max(axis=1, keepdims=True)
    scale = np.where(top > 0, top / np.float32(127), np.float32(1)).astype(np.float32)
    return "I8", np.rint(rows / scale).astype(np.int8), scale


def matrices(tensors, change, cast):
    """Matrices and up changed as float32 arrays of rows, then all floating-point tensors cast to the type."""
    def one(t):
        return cast(from_array("F32", change(to_array(t).reshape(t.shape[0], -1)).reshape(t.shape)) if len(t.shape) >= 2 else t)
    return each_float(tensors, one)


def as_is(t):
    return t


def fake_quantised(bits, rows):
    """Weights as quantisation leaves them, in their old type: symmetric, one scale for the tensor or for each row."""
    def change(x):
        import numpy as np
        top = np.abs(x).max(axis=1, keepdims=True) if rows else np.abs(x).max()
        scale = np.where(top > 0, top / np.float32(2 ** (bits - 1) - 1), np.float32(1)).astype(np.float32)
        return (np.rint(x / scale) * scale + np.float32(0)).astype(np.float32)
    return change


def pruned(share, signed):
    """The smallest weights of a matrix made 0; signed: by a multiplication with a mask, as torch does it, so that a zero keeps its weight's sign."""
    def change(x):
        import numpy as np
        keep = np.abs(x) > np.quantile(np.abs(x), share)
        return x * keep if signed else np.where(keep, x, np.float32(0))
    return change


def two_of_four(x):
    """Of each four weights in a row the two smallest made 0."""
    import numpy as np
    if x.shape[1] % 4:
        return x
    groups = np.abs(x).reshape(-1, 4)
    keep = groups.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") >= 2
    return np.where(keep.reshape(x.shape), x, np.float32(0))
