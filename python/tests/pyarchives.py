"""pyarchives.py: what the tests of the Python package share: archives made for them, and what a checkpoint's bytes really are.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "cases")]
from craft import BITS, bf16_weights, checkpoint, f32_weights, noise
from tap import MODELS, SYNTH, Suite, check, succeed


def compress(path):
    """The archive beside a checkpoint."""
    target = path.with_suffix(".brv")
    succeed(SYNTH, "-q", path, "-o", target)
    return target


def make(folder, *tensors, name="x", **options):
    """An archive of handmade tensors: (name, dtype, shape, bytes)."""
    path = folder / f"{name}.safetensors"
    path.write_bytes(checkpoint(*tensors, **options))
    return compress(path)


def contents(path):
    """What a .safetensors file holds, by its own header: name -> (dtype, shape, bytes), in the order of the data."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    return {name: (e["dtype"], e["shape"], data[start + e["data_offsets"][0] : start + e["data_offsets"][1]]) for name, e in entries}


def every_type():
    """One tensor of each element type, 6 x 8 elements; the types of whole bytes are noise."""
    return [
        (f"of {dtype}", dtype, [6, 8], noise(48 * bits // 8, i) if dtype != "BOOL" else bytes(i % 2 for i in range(48)))
        for i, (dtype, bits) in enumerate(BITS.items())
    ]


def small_model(folder, name="x"):
    """Three tensors of ordinary sizes, with metadata."""
    return make(
        folder,
        ("embed", "BF16", [300, 64], bf16_weights(300 * 64)),
        ("bias", "F32", [7], f32_weights(7)),
        ("scale", "F32", [], f32_weights(1, 5)),
        name=name,
        metadata={"format": "np", "made by": "hand"},
    )


def example(document, number=0):
    """The n-th Python example in a document."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.S | re.M)[number]


def raises(kind, text, call, *arguments, **options):
    """The call must raise exactly that class, with the text in its message."""
    try:
        result = call(*arguments, **options)
    except Exception as error:
        check(type(error) is kind, f"expected {kind.__name__}, found {type(error).__name__}: {error}")
        check(text in str(error), f"expected {text!r} in the message, found: {error}")
        return error
    check(False, f"expected {kind.__name__} ({text}), found {result!r}")


def run_cases(kind, cases):
    """A suite of (what, function of a fresh directory); its exit code."""
    suite = Suite()
    for what, test in cases:
        with suite.case(f"{kind}: {what}") as scratch:
            test(scratch)
    return suite.end()
