#!/usr/bin/env python3
"""bench.py: what `brevis bench` reports: every phase, thread count and instruction set once, in all three forms. No figure is judged.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")]
from craft import bf16_weights, checkpoint
from tap import BREVIS, SYNTH, Suite, check, describe, refuse, run, succeed

PHASES = {"memcpy", "read", "decode", "test", "write", "unpack", "copy"}
SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\d+(?:\.\d+)?)$')


def archive(scratch, rows=512):
    (scratch / "m").write_bytes(checkpoint(("w", "BF16", [rows, 512], bf16_weights(512 * rows))))
    succeed(SYNTH, "-q", scratch / "m", "-o", scratch / 'a "b"\\.brv')
    return scratch / 'a "b"\\.brv'


def rows(scratch):
    path = archive(scratch)
    found = json.loads(succeed(BREVIS, "bench", "--json", "--repeat", "1", "-T", "3", path).stdout)
    check({row["phase"] for row in found["rows"]} == PHASES, f"{found['rows']}")
    check(found["archive_nbytes"] == path.stat().st_size and found["repeats"] == 1 and found["in_memory"], f"{found}")
    for phase in ("memcpy", "decode", "test", "unpack"):
        check({row["threads"] for row in found["rows"] if row["phase"] == phase} == {1, 2, 3}, f"{phase}: other thread counts")
    sets = {row["isa"] for row in found["rows"] if row["phase"] == "decode"}
    usable = [isa for isa in ("scalar", "avx2", "avx512", "avx512i", "neon") if not run(BREVIS, "list", path, env={"BREVIS_ISA": isa}).returncode]
    check(sets == set(usable), f"{sets}, usable {usable}")
    check(all(row["seconds"] > 0 and row["of_memcpy"] > 0 and row["of_copy"] > 0 for row in found["rows"]), f"{found['rows']}")
    check({row["checksums"] for row in found["rows"] if row["phase"] == "decode"} == {True, False}, "checksums")
    check(sorted(os.listdir(scratch)) == sorted(["m", path.name]), "left something behind")


def metrics(scratch):
    path, out = archive(scratch), scratch / "metrics.prom"
    succeed(BREVIS, "bench", "-q", "--repeat", "2", "--metrics", out, path)
    lines = out.read_text().splitlines()
    kinds = set()
    for line in lines:
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            check(match, f"not a sample: {line}")
            kinds.add(match[1])
            check('a \\"b\\"' in match[2], f"label: {line}")
    check(kinds == {"brevis_archive_bytes", "brevis_file_bytes", "brevis_bench_seconds", "brevis_bench_bytes"}, f"{kinds}")
    check(all(any(line == f"# TYPE {kind} gauge" for line in lines) for kind in kinds), "a TYPE line is missing")
    refuse(BREVIS, "bench", "-q", "--repeat", "1", "--metrics", scratch / "no" / "x", path, codes=[5])


def from_the_file(scratch):
    """An archive over the memory limit is decoded from its file."""
    path = archive(scratch, 4096)
    found = json.loads(succeed(BREVIS, "bench", "--json", "--repeat", "1", "--drop-cache", "-T", "1", "-M", "4M", path, env={"BREVIS_ISA": "scalar"}).stdout)
    check(not found["in_memory"] and {row["isa"] for row in found["rows"]} == {None, "scalar"}, f"{found}")


def directory(scratch):
    """Of a directory, the archive of the largest file."""
    (scratch / "m").mkdir()
    for name, rows in (("a", 8), ("b", 64), ("c", 16)):
        (scratch / "m" / f"{name}.safetensors").write_bytes(checkpoint(("w", "BF16", [rows, 512], bf16_weights(512 * rows))))
    succeed(SYNTH, "-q", scratch / "m", "-o", scratch / "c")
    found = json.loads(succeed(BREVIS, "bench", "--json", "--repeat", "1", scratch / "c").stdout)
    check(found["archive"].endswith("b.safetensors.brv"), f"{found['archive']}")


def refusals(scratch):
    path = archive(scratch)
    data = path.read_bytes()
    (scratch / "cut").write_bytes(data[:-1])
    refuse(BREVIS, "bench", scratch / "cut", codes=[4])
    (scratch / "flipped").write_bytes(data[:-1000] + bytes([data[-1000] ^ 1]) + data[-999:])
    refuse(BREVIS, "bench", "--no-progress", scratch / "flipped", codes=[4])
    (scratch / "e").write_bytes(checkpoint())
    succeed(SYNTH, "-q", scratch / "e", "-o", scratch / "e.brv")
    refuse(BREVIS, "bench", scratch / "e.brv", codes=[2])
    with open(path, "rb") as file:
        piped = run("sh", "-c", 'cat | exec "$0" bench -', BREVIS, stdin=file)
    check(piped.returncode == 2, describe(piped))
    for repeat in ("0", "100", "x"):
        refuse(BREVIS, "bench", "--repeat", repeat, path, codes=[2])


def main():
    suite = Suite()
    for case in (rows, metrics, from_the_file, directory, refusals):
        with suite.case(case.__name__.replace("_", "-")) as scratch:
            case(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
