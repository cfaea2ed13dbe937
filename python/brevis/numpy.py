"""numpy.py: brevis.numpy: load_file and load into NumPy arrays, where safetensors.numpy has them.

BF16 and FP8 come in the types of ml_dtypes if that is installed, else as uint16 and uint8 with the same bits.
SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

from . import _open


def load_file(
    filename: _open.Path, *, threads: int | None = None, numa: str | None = None, backend: str = "pread", verify: bool = True
) -> dict[str, Any]:
    """dict of name to ndarray: everything in an archive or a directory of them. Arguments and errors as of brevis.safe_open."""
    return _open.load_file(filename, "np", threads=threads, numa=numa, backend=backend, verify=verify)


def load(data: Any, *, threads: int | None = None, numa: str | None = None, verify: bool = True) -> dict[str, Any]:
    """As load_file(), of an archive in memory: bytes or any object with a contiguous buffer."""
    return _open.load(data, "np", threads=threads, numa=numa, verify=verify)


__all__ = ["load", "load_file"]
