#!/usr/bin/env python3
"""compare_measure.py: one measurement of one compressor on one file, in a process of its own, so that a crash is a result; perf/compare starts it.

    compare_measure.py version NAME...                  what is there, as JSON
    compare_measure.py size CODEC FILE                  bytes of the archive, whether it comes back, bytes by tensor
    compare_measure.py speed CODEC FILE [--cpu N] [--lock FILE] [--budget SECONDS] [--repeat N] [--slow SECONDS]
                                                        encoding and decoding beside memcpy of the same bytes

Each repetition times a copy of the file in memory and then the compressor, in CPU time; what is reported is the median of the quotients. All runs on one
CPU. The buffers are touched first, and the compressor has coded a small file before, so that imports and the like are not in it. Encoding that would take more than
--slow seconds is not timed, and done before the lock is taken. SPDX-License-Identifier: Apache-2.0
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import resource
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import numpy as np

from compare_codecs import CODECS, version
from compare_files import miniature, sha256, tensor_hashes


def as_array(restored, out):
    if restored is None:
        return out
    return np.fromfile(restored, np.uint8) if isinstance(restored, pathlib.Path) else np.frombuffer(restored, np.uint8)


def equality(restored, data):
    """file: the same bytes; tensors: only the header differs; no."""
    if len(restored) == len(data) and np.array_equal(restored, data):
        return "file"
    try:
        return "tensors" if tensor_hashes(restored) == tensor_hashes(data) else "no"
    except (ValueError, KeyError, TypeError):
        return "no"


def nbytes_of(archive):
    return archive.stat().st_size if isinstance(archive, pathlib.Path) else len(archive)


def size(args, codec, data):
    archive = codec.encode(data)
    out = np.zeros(len(data), np.uint8)
    result = {"nbytes": len(data), "coded": nbytes_of(archive), "equal": equality(as_array(codec.decode(archive, out), out), data)}
    if (found := codec.tensors(archive)) is not None:
        result["tensors"], result["rest"] = found
    return result


def cpu_seconds():
    """Of this process, all its threads, and the commands that it ran: what is left of the truth on a machine that others use too."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def seconds(function):
    start = cpu_seconds()
    function()
    return cpu_seconds() - start


def series(args, copy, function):
    """CPU seconds of function, and those of a copy right before it over them; as many times as the budget allows, at least once."""
    took, quotients, end = [], [], time.perf_counter() + args.budget
    while len(took) < args.repeat and (not took or time.perf_counter() + took[-1] < end):
        copied = seconds(copy)
        took.append(seconds(function))
        quotients.append(copied / took[-1])
    return {"seconds": statistics.median(took), "of_memcpy": statistics.median(quotients), "repeats": len(took)}


def warm_up(codec, data, scratch):
    """Codes a small file of the same types; about how long encoding the whole one will take."""
    small = miniature(data)
    path = scratch / "small.safetensors"
    path.write_bytes(small)
    real, codec.path = codec.path, path
    words = np.frombuffer(small, np.uint8).copy()
    out = np.zeros(len(words), np.uint8)
    codec.decode(codec.encode(words), out)
    took = seconds(lambda: codec.encode(words))
    codec.path = real
    return took * len(data) / len(words)


@contextlib.contextmanager
def locked(path):
    with open(path, "a") if path else contextlib.nullcontext() as file:
        if file:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def speed(args, codec, data):
    out, kept = np.ones(len(data), np.uint8), {}

    def copy():
        np.copyto(out, data)

    def encode():
        kept["archive"] = None
        kept["archive"] = codec.encode(data)

    def decode():
        kept["restored"] = codec.decode(kept["archive"], out)

    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})
    slow = warm_up(codec, data, codec.scratch) > args.slow
    if slow:
        encode()
    with locked(args.lock):
        copy()
        memcpy = statistics.median(seconds(copy) for _ in range(5))
        encoded = None if slow else series(args, copy, encode)
        out[:] = 1
        decode()
        equal = equality(as_array(kept["restored"], out), data)
        decoded = series(args, copy, decode)
        copied = seconds(lambda: shutil.copyfile(args.file, codec.scratch / "copy")) if codec.io == "file" else None
    return {"nbytes": len(data), "coded": nbytes_of(kept["archive"]), "equal": equal, "io": codec.io, "memcpy_seconds": memcpy, "encode": encoded,
            "decode": decoded, "filecopy_seconds": copied}


def versions(names):
    found = {}
    for name in names:
        try:
            found[name] = {"version": version(name), "revision": CODECS[name].revision}
        except Exception as error:      # a package may fail in its own ways
            found[name] = {"missing": f"{type(error).__name__}: {error}"}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("version", "size", "speed"))
    parser.add_argument("names", nargs="+")
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--lock")
    parser.add_argument("--budget", type=float, default=5)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--slow", type=float, default=40)
    args = parser.parse_args()
    if args.task == "version":
        print(json.dumps(versions(args.names)))
        return
    name, args.file = args.names
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None      # files that no disk has to take
    with tempfile.TemporaryDirectory(prefix="brevis-compare.", dir=memory) as scratch:
        data = np.fromfile(args.file, np.uint8)
        codec = CODECS[name]()
        codec.start(args.file, scratch)
        print(json.dumps((size if args.task == "size" else speed)(args, codec, data)), flush=True)


if __name__ == "__main__":
    main()
