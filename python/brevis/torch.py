"""torch.py: brevis.torch: archives into torch tensors and modules, where safetensors.torch has these functions.

A tensor is decoded into memory of the CPU that it then owns, and copied from there if it shall be on another device.
SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

import torch

from . import _open


def load_file(
    filename: _open.Path,
    device: Any = "cpu",
    *,
    threads: int | None = None,
    numa: str | None = None,
    backend: str = "pread",
    verify: bool = True,
) -> dict[str, torch.Tensor]:
    """dict of name to tensor: everything in an archive or a directory of them. device: whatever torch.device() takes. Other arguments and
    errors as of brevis.safe_open."""
    return _open.load_file(filename, "pt", device, threads=threads, numa=numa, backend=backend, verify=verify)


def load(
    data: Any, device: Any = "cpu", *, threads: int | None = None, numa: str | None = None, verify: bool = True
) -> dict[str, torch.Tensor]:
    """As load_file(), of an archive in memory: bytes or any object with a contiguous buffer."""
    return _open.load(data, "pt", device, threads=threads, numa=numa, verify=verify)


def load_model(
    model: torch.nn.Module,
    filename: _open.Path,
    strict: bool = True,
    device: Any = "cpu",
    *,
    threads: int | None = None,
    numa: str | None = None,
    backend: str = "pread",
    verify: bool = True,
) -> tuple[set[str], list[str]]:
    """Loads an archive, or a directory of them, into a torch.nn.Module. Weights that the module ties together may be in the file under any
    one of their names.

    Returns (missing, unexpected): a set of names in the module that got nothing, a list of names in the file that went nowhere; strict
    makes a RuntimeError of either. Nothing has been changed in the module if the file cannot be decoded."""
    weights = load_file(filename, device, threads=threads, numa=numa, backend=backend, verify=verify)
    tied = _tied_names(model)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    missing, unexpected = set(missing), list(unexpected)
    for names in tied:
        stored = [name for name in names if name in weights]
        if stored:
            missing.difference_update(names)
            unexpected += stored[1:]  # several tensors for one weight: which of them counts is not for us to guess
    if strict and (missing or unexpected):
        lines = [
            f"{what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(names))
            for what, names in (("Missing", missing), ("Unexpected", unexpected))
            if names
        ]
        raise RuntimeError("\n    ".join([f"Error(s) in loading state_dict for {type(model).__name__}:", *lines]))
    return missing, unexpected


def _tied_names(model: torch.nn.Module) -> list[list[str]]:
    """Lists of two or more names under which the module has the same memory in the same layout."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta" and tensor.numel():
            groups.setdefault((tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype), []).append(name)
    return [sorted(names) for names in groups.values() if len(names) > 1]


__all__ = ["load", "load_file", "load_model"]
