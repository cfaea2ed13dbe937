"""check_errors.py: what the Python package refuses, with which exception and in what words; damage of every kind.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import os
import pickle
import random
import sys

from pyarchives import ROOT, bf16_weights, check, contents, every_type, f32_weights, make, noise, raises, run_cases, small_model

import numpy as np

import brevis
from brevis import BrevisError, DamagedError, FileError, InputError, LimitError, NotFoundError, Status, UsageError

# What raises it -> class, base of Python's own, status, exit code of the commands.
CLASSES = [
    (UsageError, ValueError, Status.USAGE, 2),
    (NotFoundError, LookupError, Status.NOTFOUND, 2),
    (InputError, ValueError, Status.INPUT, 3),
    (DamagedError, ValueError, Status.DAMAGED, 4),
    (FileError, OSError, Status.IO, 5),
    (LimitError, MemoryError, Status.LIMIT, 6),
]


def classes():
    from brevis._errors import error_of

    for kind, base, status, code in CLASSES:
        error = error_of(status, "what was found")
        check(
            type(error) is kind and isinstance(error, (base, BrevisError)) and isinstance(error, base), f"{status}: {type(error).__mro__}"
        )
        check(
            (error.status, error.exit_code, str(error)) == (status, code, "what was found"), f"{error!r}: {error.status}, {error.exit_code}"
        )
    check(type(error_of(Status.VERSION, "x")) is DamagedError and error_of(Status.VERSION, "x").status == Status.VERSION, "a newer format")
    check(type(error_of(Status.MEMORY, "x")) is LimitError and error_of(Status.MEMORY, "x").exit_code == 6, "memory")
    for error in (BrevisError(), BrevisError("a"), error_of(Status.VERSION, "b"), FileError("c"), NotFoundError("d")):
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            check(
                type(again) is type(error) and (again.args, again.status, str(again)) == (error.args, error.status, str(error)),
                f"{error!r} does not survive pickle",
            )


def opening(scratch):
    archive = small_model(scratch)
    for data in (0, True, 2**80, -1, object()):
        raises(TypeError, "contiguous buffer", brevis.load, data)
    for data in (memoryview(archive.read_bytes())[::2], np.zeros((3, 3), np.uint8)[:, :2]):
        raises(TypeError, "contiguous buffer", brevis.load, data)
    fd = os.open(archive, os.O_RDONLY)
    raises(TypeError, "contiguous buffer", brevis.load, fd)
    os.close(fd)        # it is still ours
    (scratch / "odd" / "x.brv").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        raises(IsADirectoryError, "x.brv", brevis.load_file, scratch / "odd")
    check(len(os.listdir("/proc/self/fd")) == before, "descriptors are left open")
    for name, text, kind in (("model.safetensors.index.json", '{"weight_map": {"a": "x\\u0000"}}', InputError),
                             ("model.safetensors.index.json", '{"weight_map": {"a": "\\ud800.safetensors"}}', InputError),
                             ("brevis.manifest", "brevis-manifest 1\narchive 5 a%00b\nend 0\n", DamagedError)):
        hostile = scratch / "hostile"
        hostile.mkdir(exist_ok=True)
        (hostile / name).write_text(text)
        raises(kind, name, brevis.load_file, hostile)
        (hostile / name).unlink()
    missing = scratch / "missing.brv"
    for call in (brevis.safe_open, brevis.load_file):
        raises(FileNotFoundError, str(missing), call, missing)
        raises(DamagedError, "this is a .safetensors file", call, scratch / "x.safetensors")
        raises(UsageError, "framework 'tf'", call, archive, "tf")
        raises(UsageError, "device 'cuda'", call, archive, "np", "cuda")
        raises(UsageError, "device 0", call, archive, "np", 0)
        raises(UsageError, "backend 'tape'", call, archive, backend="tape")
        raises(TypeError, "", call, 3.5)
        for threads in (0, -1, 1025, "2", 1.5, True):
            raises(UsageError, "threads", call, archive, threads=threads)
        for numa in ("everywhere", 1, True):
            raises(UsageError, "numa", call, archive, numa=numa)
    raises(DamagedError, "this is a .safetensors file", brevis.load, (scratch / "x.safetensors").read_bytes())
    raises(TypeError, "", brevis.load, "text")
    raises(FileNotFoundError, "", brevis.load_file, "")
    (scratch / "empty").mkdir()
    raises(InputError, "no .brv files", brevis.safe_open, scratch / "empty")
    (scratch / "twice").mkdir()
    for name in "ab":
        (scratch / "twice" / f"{name}.brv").write_bytes(archive.read_bytes())
    raises(InputError, "'embed'", brevis.safe_open, scratch / "twice")
    (scratch / "twice" / "brevis.manifest").write_text("something else\n")
    raises(DamagedError, "manifest", brevis.safe_open, scratch / "twice")
    os.mkfifo(scratch / "pipe")
    keep = os.open(scratch / "pipe", os.O_RDWR)
    raises(UsageError, "a pipe", brevis.safe_open, scratch / "pipe")
    os.close(keep)
    if os.getuid():
        archive.chmod(0)
        raises(PermissionError, str(archive), brevis.safe_open, archive)


def asking(scratch):
    with brevis.safe_open(small_model(scratch)) as file:
        for call in (
            file.get_tensor,
            file.get_slice,
            lambda name: file.get_tensors(["bias", name]),
            lambda name: file.read_into(name, bytearray(1)),
        ):
            raises(NotFoundError, "'nothing'", call, "nothing")
            raises(TypeError, "int", call, 3)
            raises(NotFoundError, "", call, "\ud800")
        raises(TypeError, "several names", file.get_tensors, "bias")
        part = file.get_slice("embed")
        for key, kind, text in (
            (300, NotFoundError, "300"),
            (-301, NotFoundError, "-301"),
            ((0, 64), NotFoundError, "dimension 1"),
            ((0, 0, 0), NotFoundError, "3"),
            (slice(None, None, -1), UsageError, "positive"),
            (slice(None, None, 0), UsageError, "step"),
            ([0, 1], UsageError, "list"),
            (None, UsageError, "NoneType"),
            (1.0, UsageError, "float"),
            ("x", UsageError, "str"),
            (np.array([1, 2]), UsageError, "ndarray"),
            ((..., ...), UsageError, "one ellipsis"),
            (slice("a", None), UsageError, "indices"),
        ):
            raises(kind, text, part.__getitem__, key)
        raises(NotFoundError, "too many", file.get_slice("scale").__getitem__, 0)
        raises(NotFoundError, "too many", file.get_slice("scale").__getitem__, slice(None))
    with brevis.safe_open(make(scratch, *every_type(), name="types")) as file:
        for key in (0, (0, slice(1, 3)), (slice(0, 2), 0), slice(0, 4, 2)):
            if key == 0:
                continue  # six bits times eight are whole bytes
            raises(UsageError, "whole bytes", file.get_slice("of F6_E2M3").__getitem__, key)
        raises(UsageError, "whole bytes", file.get_slice("of F4").__getitem__, (0, 1))


def buffers(scratch):
    archive = small_model(scratch)
    truth = contents(archive.with_suffix(".safetensors"))["embed"][2]
    with brevis.safe_open(archive) as file:
        wide = np.zeros((300, 130), np.uint8)
        for buffer, kind, text in (
            (bytearray(5), UsageError, "38400 bytes"),
            (np.zeros((64, 300), np.uint16), UsageError, "uint16"),
            (bytes(len(truth)), UsageError, "writable"),
            (wide[:, :128], UsageError, "contiguous"),
            (np.zeros((300, 64), np.float16), UsageError, "BF16 of shape [300, 64]"),
            (3, TypeError, "int"),
            ([0] * 5, TypeError, "list"),
            (None, TypeError, "NoneType"),
            (np.zeros(len(truth), np.int8).view("S1")[::2], UsageError, "contiguous"),
            (np.zeros(len(truth), bool), UsageError, "bool"),
            (memoryview(bytearray(2 * len(truth)))[::2], UsageError, "contiguous"),
        ):
            raises(kind, text, file.read_into, "embed", buffer)
        check(not wide.any(), "written into what was refused")


def closed(scratch):
    file = brevis.safe_open(small_model(scratch))
    part, array = file.get_slice("embed"), file.get_tensor("embed")
    with file as again:
        check(again is file, "another object inside with")
    file.close()
    for call in (
        file.keys,
        file.offset_keys,
        file.metadata,
        file.get_tensors,
        lambda: file.get_tensor("bias"),
        lambda: file.get_slice("bias"),
        lambda: part[0],
        lambda: part[0:0],
        lambda: file.read_into("bias", bytearray(28)),
        lambda: "bias" in file,
        file.__enter__,
        lambda: file.get_tensors(["bias"]),
    ):
        raises(UsageError, "closed", call)
    check(part.get_shape() == [300, 64] and "closed" in repr(file), "a closed file can still be described")
    check(array.sum() == array.copy().sum(), "results go with the file")


def damage(scratch):
    """Any byte changed, any length: refused or, where nothing depends on the byte, the same tensors. Never a wrong one."""
    archive = make(
        scratch, ("a", "BF16", [40, 64], bf16_weights(40 * 64)), ("b", "F32", [200], f32_weights(200)), ("c", "U8", [100], noise(100))
    )
    whole, rng = archive.read_bytes(), random.Random(1)
    truth = {name: data for name, (_, _, data) in contents(archive.with_suffix(".safetensors")).items()}
    refused = 0
    for i in range(600):
        bad = bytearray(whole)
        if i % 4 == 0:
            del bad[rng.randrange(len(bad)) :]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        (scratch / "bad.brv").write_bytes(bad)
        for call in (
            lambda: brevis.load(bytes(bad)),
            lambda: brevis.load_file(scratch / "bad.brv", threads=2),
            lambda: brevis.load_file(scratch / "bad.brv", backend="mmap"),
        ):
            try:
                found = {name: array.tobytes() for name, array in call().items()}
                check(found == truth, f"variant {i}: other tensors, and no error")
            except BrevisError as error:
                check(error.exit_code in (4, 6) and str(error), f"{error!r}")
                refused += 1
    check(refused > 1500, f"only {refused} of 1800 refused")
    for bad in (b"", b"x", whole[:8], whole[:144], noise(1000), bytes(1000), whole + b"\0"):
        raises(DamagedError, "", brevis.load, bad)
        (scratch / "bad.brv").write_bytes(bad)
        raises(DamagedError, str(scratch / "bad.brv"), brevis.load_file, scratch / "bad.brv")


def half_filled(scratch):
    """What is behind a damaged chunk is not handed out, neither is what is before it."""
    archive = make(scratch, ("a", "U8", [1 << 20], noise(1 << 20)), ("b", "U8", [1 << 20], noise(1 << 20, 2)))
    bad = bytearray(archive.read_bytes())
    bad[-1000] ^= 1
    (scratch / "bad.brv").write_bytes(bad)
    with brevis.safe_open(scratch / "bad.brv") as file:
        error = raises(DamagedError, "", file.get_tensors)
        raises(DamagedError, "", file.get_tensor, "b")
        check(error.status == Status.DAMAGED and file.get_tensor("a").tobytes() == noise(1 << 20), "the whole tensor is still there")
    for backend in ("pread", "mmap"):
        with brevis.safe_open(archive, backend=backend) as file:
            os.truncate(archive, 1000)
            raises(DamagedError, "cut short", file.get_tensor, "b")
        archive.write_bytes(bytes(bad[:-1000]) + bytes([bad[-1000] ^ 1]) + bytes(bad[len(bad) - 999 :]))


def legal_but_large(scratch):
    """Shapes that a header may have and NumPy has no arrays for."""
    archive = make(scratch, ("deep", "U8", [1] * 100, b"x"), ("wide", "U8", [0, 1 << 62, 4], b""), ("good", "U8", [1], b"y"))
    with brevis.safe_open(archive) as file:
        raises(LimitError, "100 dimensions", file.get_tensor, "deep")
        raises(LimitError, "", file.get_tensors)
        raises(LimitError, "100 dimensions", file.get_slice("deep").__getitem__, 0)
        check(file.get_tensor("good").tobytes() == b"y" and file.get_slice("deep").get_shape() == [1] * 100, "the others can still be had")
        buffer = bytearray(1)
        file.read_into("deep", buffer)
        check(buffer == b"x", "as bytes it can be had")


def foreign_types(scratch):
    """A type that Brevis does not know comes as bytes."""
    archive = make(scratch, ("t", "E5\u00e9", [3], b"abc"))
    with brevis.safe_open(archive) as file:
        check(
            file.get_tensor("t").tobytes() == b"abc"
            and file.get_slice("t").get_dtype() == "E5\u00e9"
            and file.get_slice("t")[...].tobytes() == b"abc",
            "not its bytes",
        )
        raises(UsageError, "whole bytes", file.get_slice("t").__getitem__, 0)


def headers(_):
    """The header is kept as it was and read only for metadata."""
    from brevis._open import _metadata

    for bad in (b"", b"{", b"[]", b"\xff", b"[" * 200_000, b'{"__metadata__": 3}', b'{"__metadata__": {"a": 1}}'):
        raises(DamagedError, "", _metadata, bad)
    check(_metadata(b"{}") is None and _metadata(b'{"__metadata__": {}}') == {}, "right ones")


def fuzz_corpus(_):
    """The seeds of the fuzzers, which crashed something once."""
    seeds = sorted((ROOT / "tests/fuzz/corpus/fuzz_archive").iterdir())
    for seed in seeds:
        for data in (seed.read_bytes(), seed.read_bytes()[1:]):
            try:
                brevis.load(data)
            except BrevisError as error:
                check(error.exit_code in (4, 6), f"{seed.name}: {error!r}")
    check(len(seeds) > 10, "no seeds")


CASES = (
    ("one exception class for each exit code; they survive pickle", lambda _: classes()),
    ("opening", opening),
    ("asking for what is not there", asking),
    ("buffers that do not fit", buffers),
    ("a closed file", closed),
    ("garbage, truncation and flipped bits", damage),
    ("no result from a damaged archive", half_filled),
    ("the fuzzers' seeds", fuzz_corpus),
    ("shapes beyond NumPy", legal_but_large),
    ("foreign types", foreign_types),
    ("headers that are no JSON", headers),
)


if __name__ == "__main__":
    sys.exit(run_cases("python, errors", CASES))
