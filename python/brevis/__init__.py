"""__init__.py: brevis: losslessly compressed model checkpoints (.brv), read with the interface of the safetensors library.

    import brevis
    weights = brevis.load_file("model.brv")                     # dict of NumPy arrays
    with brevis.safe_open("model.brv", framework="pt") as f:    # or torch tensors, as asked for
        rows = f.get_slice("lm_head.weight")[:100]

docs/PYTHON.md tells the rest. SPDX-License-Identifier: Apache-2.0
"""

from . import _native
from ._errors import BrevisError, DamagedError, FileError, InputError, LimitError, NotFoundError, Status, UsageError
from ._open import load, load_file, safe_open
from ._slices import Slice

__version__ = _native.version
isa = _native.isa
__all__ = [
    "BrevisError",
    "DamagedError",
    "FileError",
    "InputError",
    "LimitError",
    "NotFoundError",
    "Slice",
    "Status",
    "UsageError",
    "isa",
    "load",
    "load_file",
    "safe_open",
]
