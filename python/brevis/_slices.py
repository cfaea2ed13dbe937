"""_slices.py: parts of tensors: which bytes an index expression needs, and only those chunks decoded.

An expression becomes, for each dimension, a first index, a number of indices and a step. What is selected of the inner dimensions spans a
run of bytes; runs that lie close together are decoded as one, since they share chunks; runs far apart are decoded alone.
SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import itertools
import math
import operator

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _types
from ._errors import LimitError, NotFoundError, Status, UsageError

if TYPE_CHECKING:
    from ._open import safe_open

GAP = 1 << 18  # bytes nobody asked for that are decoded rather than cutting a run in two: about a chunk
Part = tuple[int, int, int, bool]
SPAN = 32 << 20  # most bytes decoded at once beside the result


def normalise(key: Any, shape: tuple[int, ...]) -> list[Part]:
    """[(first, count, step, keep)] for each dimension: keep says whether it stays in the result. NotFoundError (a LookupError) outside the
    tensor; UsageError for steps that are not positive, lists, masks and None, which the safetensors library refuses too."""
    keys = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise UsageError("an index has one ellipsis at most")
    if len(keys) - len(dots) > len(shape):
        raise NotFoundError(f"too many indices: {len(keys) - len(dots)} for the shape {list(shape)}")
    at = dots[0] if dots else len(keys)
    keys[at : at + len(dots)] = [slice(None)] * (len(shape) - len(keys) + len(dots))
    return [_one(k, n, d) for d, (k, n) in enumerate(zip(keys, shape))]


def _one(key: Any, n: int, dimension: int) -> Part:
    if isinstance(key, slice):
        try:
            start, stop, step = key.indices(n)
        except (TypeError, ValueError) as error:
            raise UsageError(f"dimension {dimension}: {error}") from None
        if step < 1:
            raise UsageError(f"dimension {dimension}: expected a positive step, found {step}")
        count = max(0, -(-(stop - start) // step))
        return start, count, step if count > 1 else 1, True  # what is taken once has no step, however large
    try:
        index = operator.index(key)
    except TypeError:
        raise UsageError(f"dimension {dimension}: expected an int, a slice or an ellipsis, found {type(key).__name__}") from None
    if not -n <= index < n:
        raise NotFoundError(f"dimension {dimension}: index {index} is outside 0 .. {n - 1}")
    return index % n, 1, 1, False


def _pieces(parts: list[Part], strides: list[int], itemsize: int) -> Iterator[tuple[tuple[Any, ...], int, tuple[tuple[int, int], ...]]]:
    """Cuts a selection: yields (index of the result's part, byte offset of its first element, parts of one element or more)."""
    spans = [0] * (len(parts) + 1)  # bytes that dimensions d.. span, less one element
    for d in reversed(range(len(parts))):
        spans[d] = spans[d + 1] + (parts[d][1] - 1) * parts[d][2] * strides[d]
    outer = 0  # dimensions whose indices are taken one at a time
    for d, (_, count, step, _) in enumerate(parts):
        if count > 1 and step * strides[d] - spans[d + 1] - itemsize > GAP:
            outer = d + 1
    base = sum(first * stride for (first, *_), stride in zip(parts, strides))
    while outer < len(parts) and parts[outer][1] == 1:
        outer += 1
    batch = 1
    if outer < len(parts):
        batch = max(1, SPAN // (parts[outer][2] * strides[outer]))
    for index in itertools.product(*(range(count) for _, count, _, _ in parts[:outer])):
        offset = base + sum(i * step * stride for i, (_, _, step, _), stride in zip(index, parts, strides))
        if outer == len(parts):
            yield index, offset, ()
            continue
        _, count, step, _ = parts[outer]
        for low in range(0, count, batch):
            n = min(batch, count - low)
            yield (*index, slice(low, low + n)), offset + low * step * strides[outer], (
                (n, step),
                *((c, s) for _, c, s, _ in parts[outer + 1 :]),
            )


class Slice:
    """A tensor that is decoded when it is indexed: s[2], s[10:20], s[..., ::4], s[:, 5:6]. From safe_open.get_slice().

    Indexing gives what get_tensor(name)[...] would give, for ints, slices with a positive step and an ellipsis. Bounds of slices are cut
    to the tensor, as Python does it; a bool is the int that it is, as in the safetensors library. Of types narrower than a byte, only parts that are whole bytes in one run can be had; they come as
    bytes.
    """

    def __init__(self, opened: safe_open, archive: _native.Archive, number: int) -> None:
        self._opened, self._archive, self._number = opened, archive, number
        self._name, self._dtype, self._shape, self._nbytes, _, _ = archive.tensor(number)

    def get_shape(self) -> list[int]:
        """list of int: elements in each dimension."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """str: the type's name in the header: "F32", "BF16"."""
        return self._dtype

    def __repr__(self) -> str:
        return f"<brevis.Slice of {self._name!r}: {self._dtype} {list(self._shape)}>"

    def __getitem__(self, key: Any) -> Any:
        """The part, as an array of the file's framework that owns its memory. NotFoundError, UsageError; what decoding raises."""
        parts = normalise(key, self._shape)
        framework = self._opened._framework
        kind = _types.numpy_dtype(self._dtype)
        if kind is None:
            low, high = self._byte_range(parts)
            array = np.empty(high - low, np.uint8)
            self._decode(low, array)
            return framework.wrap(array, self._dtype, (high - low,))
        sizes = [count for _, count, _, _ in parts]
        array = self._gather(parts, sizes, kind.itemsize)
        kept = tuple(count for _, count, _, keep in parts if keep)
        return framework.wrap(array.reshape(-1), self._dtype, kept)

    def _gather(self, parts: list[Part], sizes: list[int], itemsize: int) -> Any:
        """The selected elements as unsigned integers or void, contiguous, in the full number of dimensions."""
        raw = np.dtype(f"<u{itemsize}")
        try:
            out = np.empty(sizes, raw)
        except MemoryError:
            raise LimitError(f"no memory for {math.prod(sizes) * itemsize} bytes", Status.MEMORY) from None
        except ValueError as error:
            raise LimitError(f"NumPy cannot hold an array of {len(sizes)} dimensions: {error}") from None
        if out.size == 0:
            self._opened._check_open()
            return out
        strides = [itemsize * math.prod(self._shape[d + 1 :]) for d in range(len(self._shape))]
        for index, offset, inner in _pieces(parts, strides, itemsize):
            target = out[index]
            inner_strides = strides[len(strides) - len(inner) :]
            nbytes = itemsize + sum((n - 1) * step * stride for (n, step), stride in zip(inner, inner_strides))
            if nbytes == target.nbytes:
                self._decode(offset, out[index + (Ellipsis,)].reshape(-1).view(np.uint8))
                continue
            run = np.empty(nbytes, np.uint8)
            self._decode(offset, run)
            steps = [step * stride for (_, step), stride in zip(inner, inner_strides)]
            out[index] = np.ndarray([n for n, _ in inner], raw, run, 0, steps)
        return out

    def _byte_range(self, parts: list[Part]) -> tuple[int, int]:
        """First and last byte of a selection that is one run of whole bytes."""
        width = _types.bits(self._dtype)
        total = math.prod(self._shape)
        if all((first, count) == (0, n) for (first, count, _, _), n in zip(parts, self._shape)):
            return 0, self._nbytes
        low, count, stride, whole = 0, 1, total, True
        for (first, n, step, _), size in zip(parts, self._shape):
            stride = stride // size if size else 0
            low += first * stride
            if count > 1 and n != size or n > 1 and step > 1:
                whole = False
            count *= n
        if not width or not whole or low * width % 8 or count * width % 8:
            raise UsageError(f"of {self._dtype}, narrower than a byte or unknown, only parts that are whole bytes in one run can be had")
        return low * width // 8, (low + count) * width // 8

    def _decode(self, offset: int, array: Any) -> None:
        self._archive.decode([(self._number, offset, array)], *self._opened._team)
