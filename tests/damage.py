#!/usr/bin/env python3
"""damage.py: archives of every type, and every golden one, damaged in thousands of ways (tests/damage/damage.c): never wrong bytes without an error.

    damage.py [--quick] [NAME...]     NAME: only cases whose names begin so

Then what `--keep-going` brings out of a damaged archive. SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases"))
from craft import BITS, bf16_weights, checkpoint, f32_weights, noise
from tap import BREVIS, BUILD, ROOT, SYNTH, Suite, check, describe, run, succeed

HELPER = BUILD / "damage"
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.brv"))
SMALL_NBYTES, CUTS, FLIPS, SPLICES, JOINS = 8192, 1000, 100_000, 2000, 60
TALLY = re.compile(r"(\d+) tried: (\d+) refused, (\d+) right, (\d+) with")


def shaped(dtype, n):
    """n elements of a type: like weights where there is a wide float, else bytes of few values."""
    if dtype in ("BF16", "F16"):
        return bf16_weights(n, 11)
    if dtype in ("F32", "F64", "C64"):
        return f32_weights(n * BITS[dtype] // 32, 12)
    return bytes(64 + b % 24 for b in noise(n * BITS[dtype] // 8, 13))


def of_type(dtype, n, rows=8):
    """A checkpoint of one type: weights, a matrix with rows of other scales, the weights again, steps, one word, nothing."""
    words = shaped(dtype, n)
    size = max(1, BITS[dtype] // 8)
    steps = b"".join((i * 3 % 200).to_bytes(size, "little") for i in range(n // 4 * BITS[dtype] // 8 // size))
    return checkpoint(("w", dtype, [rows, n // rows], words), ("again", dtype, [n], words), ("steps", dtype, [n // 4], steps),
                      ("same", dtype, [n], words[:size] * (len(words) // size)), ("none", dtype, [0], b""))


def tool(*argv):
    done = subprocess.run([str(a) for a in (HELPER, *argv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
    text = done.stdout.decode(errors="replace")
    check(done.returncode == 0, f"damage {' '.join(map(str, argv))}: exit {done.returncode}: {text[-1500:]}")
    return [int(n) for n in TALLY.search(text).groups()]


class Totals(dict):
    def add(self, kind, numbers):
        self[kind] = [a + b for a, b in zip(self.get(kind, [0] * 4), numbers)]

    def text(self):
        return json.dumps({kind: dict(zip(("tried", "refused", "right", "others_readable"), n)) for kind, n in self.items()})


def damage(archive, totals, quick, others=()):
    small = archive.stat().st_size <= SMALL_NBYTES
    part = 20 if quick else 1
    flips = (1 << 30 if small else FLIPS // 10) // part if not (small and quick) else 2000
    totals.add("cut", tool("cut", archive, (SMALL_NBYTES if small else CUTS) // part))
    totals.add("flip", tool("flip", archive, flips, 1))
    totals.add("splice", tool("splice", archive, SPLICES // part, 2, *others[:2]))


def golden(suite, totals, quick, wanted):
    for number, archive in enumerate(GOLDEN):
        if wanted(f"golden {archive.stem}"):
            with suite.case(f"golden {archive.stem}"):
                damage(archive, totals, quick, [GOLDEN[number - 1], GOLDEN[number - 7]])


def types(suite, totals, quick, wanted):
    for dtype in BITS:
        if wanted(f"type {dtype}"):
            with suite.case(f"type {dtype}") as scratch:
                archives = []
                for name, n in (("small", 768), ("other", 768 + 64)):
                    (scratch / name).write_bytes(of_type(dtype, n))
                    archives.append(scratch / f"{name}.brv")
                    succeed(SYNTH, "-q", "-T1", scratch / name, "-o", archives[-1])
                damage(archives[0], totals, quick, archives[1:])


def large(suite, totals, quick, wanted):
    """Chunks, classes and refs enough, and as many flips as one has patience for."""
    if not wanted("large"):
        return
    with suite.case("large: random flips") as scratch:
        (scratch / "f").write_bytes(checkpoint(("a", "BF16", [64, 512], bf16_weights(64 * 512, 21)), ("f", "F32", [9000], f32_weights(9000, 22)),
                                               ("again", "BF16", [64, 512], bf16_weights(64 * 512, 21)), ("b", "U8", [20000], noise(20000, 23))))
        archive = scratch / "f.brv"
        succeed(SYNTH, "-q", "-T1", "--favor", "size", scratch / "f", "-o", archive)
        totals.add("cut", tool("cut", archive, 50 if quick else CUTS))
        flips = (2000 if quick else FLIPS) // 2
        with ThreadPoolExecutor(2) as pool:
            for numbers in pool.map(lambda seed: tool("flip", archive, flips, seed), (3, 4)):
                totals.add("flip", numbers)
        totals.add("splice", tool("splice", archive, SPLICES, 5, GOLDEN[0]))


# ---- --keep-going

LOST = re.compile(r'^brevis: \S+: tensor "(\w+)": bytes (\d+) to (\d+) of (\d+) are lost: .')


def salvage_sample(scratch):
    """Two tensors of several chunks and one that stands for the first again; and the archive's payload, chunk after chunk."""
    tensors = {"w": bf16_weights(400_000, 31), "f": f32_weights(300_000, 32), "again": bf16_weights(400_000, 31), "small": bf16_weights(500, 33)}
    (scratch / "f").write_bytes(checkpoint(("w", "BF16", [400, 1000], tensors["w"]), ("f", "F32", [300_000], tensors["f"]),
                                           ("again", "BF16", [400_000], tensors["again"]), ("small", "BF16", [500], tensors["small"])))
    succeed(SYNTH, "-q", scratch / "f", "-o", scratch / "f.brv")
    return tensors


def check_salvage(archive, tensors, damaged, rows=""):
    """cat --keep-going of every tensor: right, but for zeros where stderr says so; which tensors have lost something."""
    lossy = set()
    for name, expected in tensors.items():
        done = run(BREVIS, "cat", "--keep-going", archive, name)
        lines = done.stderr.decode().splitlines()
        ranges = [(int(m[2]), int(m[3]) + 1) for m in map(LOST.match, lines) if m and m[1] == name and int(m[4]) == len(expected)]
        wanted = bytearray(expected)
        for low, high in ranges:
            wanted[low:high] = bytes(high - low)
        check(done.stdout == wanted, f"{name}: not the right bytes, or not zeros where they are lost: {describe(done)}")
        check(done.returncode == (4 if ranges else 0), f"{name}: {describe(done)}")
        check(not ranges or len(lines) == len(ranges) + 1 and lines[-1].endswith("bytes are lost"), f"{name}: {describe(done, 2000)}")
        if ranges:
            lossy.add(name)
            check(sum(high - low for low, high in ranges) < len(expected) or name == "small", f"{name}: everything is lost")
    check(lossy == damaged, f"lost: {sorted(lossy)}, expected {sorted(damaged)}")


def keep_going(suite, wanted):
    if not wanted("keep-going"):
        return
    with suite.case("keep-going: what is not damaged comes out, what is damaged is named") as scratch:
        tensors = salvage_sample(scratch)
        whole = (scratch / "f.brv").read_bytes()
        check_salvage(scratch / "f.brv", tensors, set())
        succeed(BREVIS, "test", "--keep-going", scratch / "f.brv")
        listed = json.loads(succeed(BREVIS, "list", "--json", scratch / "f.brv").stdout)["tensors"]
        # Payload is at the end, in the order of the data; its last bytes belong to the last tensor that has any.
        from_end = {"small": 100, "f": 100 + sum(t["archive_nbytes"] for t in listed if t["name"] in ("small", "again")) + 5000}
        from_end["w"] = from_end["f"] + next(t["archive_nbytes"] for t in listed if t["name"] == "f")
        for name, also in (("small", set()), ("f", set()), ("w", {"again"})):
            broken = bytearray(whole)
            broken[-from_end[name]] ^= 4
            (scratch / name).write_bytes(broken)
            check_salvage(scratch / name, tensors, {name} | also)
            done = run(BREVIS, "test", "--keep-going", scratch / name)
            found = {m[1] for m in map(LOST.match, done.stderr.decode().splitlines()) if m}
            check(done.returncode == 4 and found == {name} | also, describe(done, 1000))
            for command in (["test"], ["cat", name]):
                done = run(BREVIS, command[0], scratch / name, *command[1:])
                check(done.returncode == 4 and len(done.stderr.splitlines()) == 1, describe(done))
    with suite.case("keep-going: rows, and a pipe") as scratch:
        tensors = salvage_sample(scratch)
        broken = bytearray((scratch / "f.brv").read_bytes())
        broken[-100] ^= 1
        (scratch / "b").write_bytes(broken)
        done = run(BREVIS, "cat", "--keep-going", scratch / "b", "w[7:9]")
        check(done.returncode == 0 and done.stdout == tensors["w"][14000:18000], describe(done))
        done = run(BREVIS, "cat", "--keep-going", scratch / "b", "small[10:20]")
        check(done.returncode == 4 and done.stdout == bytes(20) and b"bytes 20 to 39 of 1000" in done.stderr, describe(done))
        with open(scratch / "b", "rb") as file:
            done = run("sh", "-c", 'cat | "$1" cat --keep-going - small', "-", BREVIS, stdin=file)
        check(done.returncode == 4 and done.stdout == bytes(1000), f"through a pipe: {describe(done)}")
        done = run(BREVIS, "unpack", "--keep-going", scratch / "b", "-o", scratch / "o")
        check(done.returncode == 2 and not (scratch / "o").exists(), describe(done))


def main(args):
    quick = "--quick" in args
    prefixes = tuple(a for a in args if a != "--quick")
    suite, totals = Suite(), Totals()
    if not HELPER.exists():
        raise SystemExit(f"not there: {HELPER}; run make tests")

    def wanted(name):
        return not prefixes or name.startswith(prefixes)

    golden(suite, totals, quick, wanted)
    types(suite, totals, quick, wanted)
    large(suite, totals, quick, wanted)
    keep_going(suite, wanted)
    print(f"# {totals.text()}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
