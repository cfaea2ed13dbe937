#!/usr/bin/env python3
"""examples.py: the programs in examples/, run on real weights: what they load is what the .safetensors file holds.

As `make tests` built them; tests/install.py builds them as a user would. SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
from tap import BUILD, MODELS, ROOT, SYNTH, Skip, Suite, check, refuse, succeed

RANKS = (1, 3, 4)
FILES = ("fracast-fp32", "fracast-int8", "odd/tied-duplicates", "odd/mixed-edge-cases", "odd/unaligned-unsorted", "odd/no-tensors",
         *["minilm-bf16"] * ("asan" not in BUILD.name))
EXAMPLES = {name: BUILD / "examples" / name for name in ("load_checkpoint", "load_slice")}


def tensors(path):
    """Name, shape, bytes of each tensor, in the order of their data."""
    blob = pathlib.Path(path).read_bytes()
    size, = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8:8 + size])
    header.pop("__metadata__", None)
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        low, high = entry["data_offsets"]
        yield name, entry, blob[8 + size + low:8 + size + high]


def share(entry, data, rank, ranks):
    """The rank's rows of a matrix, all of anything else."""
    rows = entry["shape"][0] if len(entry["shape"]) >= 2 else 0
    if not rows or len(data) % rows:
        return data
    each, rest, width = rows // ranks, rows % ranks, len(data) // rows
    first = each * rank + min(rank, rest)
    return data[first * width:(first + each + (rank < rest)) * width]


def line_of(data, name, prefix=""):
    return f"{zlib.adler32(data):08x} {len(data):12} bytes  {prefix}{name}"


def printed(*argv):
    return sorted(succeed(*argv).stdout.decode().split("\n")[:-1])


def packed(file, archive):
    model = MODELS / f"{file}.safetensors"
    if not model.exists():
        raise Skip("scripts/fetch-models test brings this model")
    succeed(SYNTH, "-q", "--favor", "speed", model, "-o", archive)
    return model


def same_as_file(file, scratch):
    model, archive = packed(file, scratch / "x.brv"), scratch / "x.brv"
    held = list(tensors(model))
    wanted = [line_of(data, name, f"{entry['dtype']} [{','.join(map(str, entry['shape']))}]  ") for name, entry, data in held]
    check(printed(EXAMPLES["load_checkpoint"], archive) == sorted(wanted), "load_checkpoint: other bytes")
    for rank, ranks in [(rank, ranks) for ranks in RANKS for rank in range(ranks)]:
        wanted = [line_of(share(entry, data, rank, ranks), name) for name, entry, data in held]
        check(printed(EXAMPLES["load_slice"], archive, str(rank), str(ranks)) == sorted(wanted), f"load_slice {rank} {ranks}: other bytes")


def interrupted(scratch):
    """The archive comes through a pipe which is held up: what was read so far shows that the program runs, and much is still to come."""
    packed("odd/tied-duplicates", scratch / "x.brv")
    archive, fifo = (scratch / "x.brv").read_bytes(), scratch / "fifo"
    os.mkfifo(fifo)
    child = subprocess.Popen([EXAMPLES["load_checkpoint"], fifo], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(fifo, "wb", buffering=0) as pipe:
        half = len(archive) // 2
        check(half > 1 << 20, "the archive is too small for this test")
        pipe.write(archive[:half])
        child.send_signal(signal.SIGINT)
        try:
            pipe.write(archive[half:])
        except BrokenPipeError:
            pass
    out, err = child.communicate(timeout=60)
    check(child.returncode == 1 and b": cancelled" in err and not out, f"exit {child.returncode}: {err.decode()}")


def refused(scratch):
    (scratch / "x.brv").write_bytes(b"BREV" + bytes(100))
    for argv, code in ((["load_checkpoint", scratch / "none.brv"], 1), (["load_slice", scratch / "x.brv", "0", "2"], 1),
                       (["load_slice", scratch / "x.brv", "2", "2"], 2), (["load_checkpoint"], 2)):
        refuse(EXAMPLES[argv[0]], *argv[1:], codes=[code])


def main():
    suite = Suite()
    with suite.case("examples: every program in the directory is tested") as scratch:
        found = {path.stem for path in ROOT.glob("examples/*.c")}
        check(found == set(EXAMPLES), f"examples/ has {sorted(found)}")
    for file in FILES:
        with suite.case(f"examples: {file}: what is loaded is what the file holds") as scratch:
            same_as_file(file, scratch)
    with suite.case("examples: Ctrl-C stops load_checkpoint, which then says so") as scratch:
        interrupted(scratch)
    with suite.case("examples: what cannot be loaded is refused in one line") as scratch:
        refused(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
