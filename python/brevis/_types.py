"""_types.py: element types of checkpoints, and the arrays that NumPy and torch make of decoded memory.

A type that the framework at hand does not know comes as a raw view: the same shape, unsigned (torch before 2.3: signed) integers of
the same width, the same bits. Types narrower than a byte, and types that Brevis does not know, come as bytes: one dimension, uint8.
SPDX-License-Identifier: Apache-2.0
"""

import functools
import importlib

from typing import Any

import numpy as np

from ._errors import LimitError, UsageError

# Name -> bits, NumPy's or ml_dtypes' name, torch's name. The order is that of docs/FORMAT.md.
TABLE = {
    "BOOL": (8, "bool", "bool"),
    "F4": (4, None, None),
    "F6_E2M3": (6, None, None),
    "F6_E3M2": (6, None, None),
    "U8": (8, "uint8", "uint8"),
    "I8": (8, "int8", "int8"),
    "F8_E5M2": (8, "float8_e5m2", "float8_e5m2"),
    "F8_E4M3": (8, "float8_e4m3fn", "float8_e4m3fn"),
    "F8_E8M0": (8, "float8_e8m0fnu", "float8_e8m0fnu"),
    "F8_E4M3FNUZ": (8, "float8_e4m3fnuz", "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": (8, "float8_e5m2fnuz", "float8_e5m2fnuz"),
    "I16": (16, "int16", "int16"),
    "U16": (16, "uint16", "uint16"),
    "F16": (16, "float16", "float16"),
    "BF16": (16, "bfloat16", "bfloat16"),
    "I32": (32, "int32", "int32"),
    "U32": (32, "uint32", "uint32"),
    "F32": (32, "float32", "float32"),
    "C64": (64, "complex64", "complex64"),
    "F64": (64, "float64", "float64"),
    "I64": (64, "int64", "int64"),
    "U64": (64, "uint64", "uint64"),
}


def bits(dtype: str) -> int:
    """Bits of an element; 0 if the type is unknown."""
    return TABLE.get(dtype, (0,))[0]


@functools.cache
def numpy_dtype(name: str) -> Any:
    """The np.dtype of a type, with ml_dtypes where NumPy has none; None: only bytes."""
    width, numpy_name, _ = TABLE.get(name, (0, None, None))
    if not numpy_name:
        return None
    if not name.startswith(("BF", "F8")):
        return np.dtype(numpy_name).newbyteorder("<")
    try:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), numpy_name))
    except (ImportError, AttributeError):
        return np.dtype(f"<u{width // 8}")


@functools.cache
def torch_dtype(torch: Any, name: str) -> Any:
    """The torch.dtype of a type; None: only bytes."""
    width, _, torch_name = TABLE.get(name, (0, None, None))
    if not torch_name:
        return None
    return getattr(torch, torch_name, None) or getattr(torch, "uint8" if width == 8 else f"int{width}")


class Numpy:
    """Decoded memory as ndarrays."""

    name = "numpy"

    def __init__(self, device: Any) -> None:
        if device not in ("cpu", None):
            raise UsageError(f"device {device!r} is not supported for framework numpy: expected 'cpu'")

    def wrap(self, memory: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        """An array over a Memory object or a flat array, which it keeps alive."""
        kind = numpy_dtype(dtype)
        try:
            return np.frombuffer(memory, np.uint8) if kind is None else np.ndarray(shape, kind, memory)
        except (ValueError, OverflowError) as error:
            raise LimitError(f"NumPy cannot hold an array of {len(shape)} dimensions, {list(shape)[:8]}...: {error}") from None


class Torch:
    """Decoded memory as tensors."""

    name = "torch"

    def __init__(self, device: Any) -> None:
        self.torch = importlib.import_module("torch")
        try:
            self.device = self.torch.device("cpu" if device is None else device)
        except (RuntimeError, TypeError) as error:
            raise UsageError(f"device {device!r}: {error}") from None

    def wrap(self, memory: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        kind = torch_dtype(self.torch, dtype)
        if kind is None:
            shape, kind = (len(memory),), self.torch.uint8
        if not len(memory):  # which torch.frombuffer() refuses
            return self.torch.empty(shape, dtype=kind, device=self.device)
        return self.torch.frombuffer(memory, dtype=kind).reshape(shape).to(self.device)


def framework_of(name: str, device: Any) -> Numpy | Torch:
    """The framework of that name; the names that the safetensors library takes."""
    if name in ("np", "numpy"):
        return Numpy(device)
    if name in ("pt", "torch", "pytorch"):
        return Torch(device)
    raise UsageError(f"framework {name!r}: expected 'np' or 'numpy', or 'pt', 'torch' or 'pytorch'")


def writable_bytes(buffer: Any, dtype: str, shape: tuple[int, ...], nbytes: int) -> Any:
    """A caller's buffer as flat bytes, for decoding into. It has to be writable and contiguous, and either hold bytes (nbytes of them, any
    shape) or have the tensor's own element type and shape. UsageError says what was expected; TypeError for what is no buffer."""
    want = f"{nbytes} bytes, or {dtype} of shape {list(shape)}"
    if hasattr(buffer, "data_ptr") and hasattr(buffer, "is_contiguous"):
        return _torch_bytes(buffer, dtype, shape, nbytes, want)
    if not isinstance(buffer, np.ndarray):
        try:
            buffer = np.asarray(memoryview(buffer))
        except TypeError:
            raise TypeError(f"expected a buffer of {want}, found {type(buffer).__name__}") from None
    if not buffer.flags.c_contiguous:
        raise UsageError(f"expected contiguous memory for {want}, found strides {buffer.strides}")
    if not buffer.flags.writeable:
        raise UsageError(f"expected writable memory for {want}")
    kind, found = numpy_dtype(dtype), buffer.dtype
    same = kind is not None and found == kind and buffer.shape == tuple(shape)
    if not same and not (found.itemsize == 1 and found.kind in "uS" and buffer.nbytes == nbytes):
        raise UsageError(f"expected a buffer of {want}, found {found} of shape {list(buffer.shape)}")
    return buffer.reshape(-1).view(np.uint8)


def _torch_bytes(tensor: Any, dtype: str, shape: tuple[int, ...], nbytes: int, want: str) -> Any:
    """The bytes of a torch tensor, sharing its memory."""
    torch = importlib.import_module("torch")
    if tensor.device.type != "cpu":
        raise UsageError(f"expected memory of the CPU for {want}, found a tensor on {tensor.device}")
    if not tensor.is_contiguous():
        raise UsageError(f"expected contiguous memory for {want}, found strides {tuple(tensor.stride())}")
    same = tensor.dtype == torch_dtype(torch, dtype) and tuple(tensor.shape) == tuple(shape)
    if not same and not (tensor.dtype == torch.uint8 and tensor.numel() == nbytes):
        raise UsageError(f"expected a buffer of {want}, found {tensor.dtype} of shape {list(tensor.shape)}")
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()
