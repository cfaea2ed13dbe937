#!/usr/bin/env python3
"""roundtrip.py: real models and odd files, there and back, by every road that the commands offer.

    roundtrip.py [--small] [FILE.safetensors...]      default: the test group of scripts/fetch-models; --small: files up to 25 MB

For each: the same archive whatever the threads and the instruction set; the file back byte for byte; list, cat and show agree with the file's
own header; never much larger than the file; no safetensors loader takes the archive. SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
from tap import BREVIS, MODELS, ROOT, SYNTH, Skip, Suite, check, refuse, run, same, succeed

SMALL = 25_000_000
LOADER = "import sys, safetensors\ntry: safetensors.safe_open(sys.argv[1], 'numpy').__enter__()\nexcept safetensors.SafetensorError: sys.exit(3)\n"


def header_of(path):
    """Tensors in the order of their data; where the data begins."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return sorted(header.items(), key=lambda item: item[1]["data_offsets"]), 8 + size


def make_archive(path, scratch):
    archive = scratch / "x.brv"
    succeed(SYNTH, "-T", "1", path, "-o", archive)
    for what, options, env in (("two threads", ["-T", "2"], {}), ("the scalar kernels", [], {"BREVIS_ISA": "scalar"})):
        succeed(SYNTH, *options, path, "-o", scratch / "again.brv", env=env)
        check(same(archive, scratch / "again.brv"), f"another archive with {what}")
        (scratch / "again.brv").unlink()
    size, limit = archive.stat().st_size, path.stat().st_size * 1.005 + 4096
    check(size <= limit, f"{size:,} bytes from {path.stat().st_size:,}")
    return archive


def check_unpack(path, archive, scratch):
    succeed(BREVIS, "test", archive)
    for options, env in ((["-T", "1"], {}), (["-T", "2"], {}), ([], {"BREVIS_ISA": "scalar"})):
        succeed(BREVIS, "unpack", "-f", *options, archive, "-o", scratch / "back", env=env)
        check(same(path, scratch / "back"), f"comes back different: {options} {env}")
    (scratch / "back").unlink()


def check_pipes(path, archive, scratch):
    """Archive and output both as pipes: nothing can be read or written twice."""
    for threads in ("1", "3"):
        piped = run("sh", "-c", 'cat "$1" | "$0" unpack -T "$2" - -o - | cat >"$3"', BREVIS, archive, threads, scratch / "piped")
        check(piped.returncode == 0 and not piped.stderr and same(path, scratch / "piped"), f"{threads} threads, through pipes: {piped.stderr}")


def check_list(tensors, archive):
    listed = json.loads(succeed(BREVIS, "list", "--json", archive).stdout)
    check(len(listed["tensors"]) == len(tensors), f"{len(listed['tensors'])} tensors listed, {len(tensors)} in the file")
    found = {t["name"]: (t["dtype"], t["shape"], t["data_nbytes"]) for t in listed["tensors"]}
    wanted = {name: (e["dtype"], e["shape"], e["data_offsets"][1] - e["data_offsets"][0]) for name, e in tensors}
    check(found == wanted, f"listed otherwise: {[name for name in wanted if found.get(name) != wanted[name]][:3]}")
    check(all(t["program"] for t in listed["tensors"] if t["data_nbytes"]), "a tensor without a program")
    check(listed["archive_nbytes"] == archive.stat().st_size, "the archive's size is listed wrong")
    check(sum(t["archive_nbytes"] for t in listed["tensors"]) <= listed["archive_nbytes"], "tensors take more than the archive")


def check_parts(path, tensors, start, archive):
    """Whole tensors and rows: the first, the last, the largest, and every so many between."""
    data = path.read_bytes()
    largest = max(range(len(tensors)), key=lambda i: tensors[i][1]["data_offsets"][1] - tensors[i][1]["data_offsets"][0])
    for i in sorted({0, len(tensors) - 1, largest, *range(0, len(tensors), len(tensors) // 10 + 1)}):
        name, entry = tensors[i]
        begin, end = (start + offset for offset in entry["data_offsets"])
        check(succeed(BREVIS, "cat", "--", archive, name).stdout == data[begin:end], f"cat {name!r} differs")
        succeed(BREVIS, "show", "--", archive, name)
        rows = entry["shape"][0] if entry["shape"] else 0
        if rows > 1 and end > begin:
            row = (end - begin) // rows
            for low, high in ((0, 1), (rows // 3, rows // 2 + 1), (rows - 1, rows)):
                part = succeed(BREVIS, "cat", "--", archive, f"{name}[{low}:{high}]").stdout
                check(part == data[begin + low * row:begin + high * row], f"cat {name!r}[{low}:{high}] differs")
            refuse(BREVIS, "cat", "--", archive, f"{name}[0:{rows + 1}]", codes=[2])
    refuse(BREVIS, "cat", archive, "no such tensor", codes=[2])


def roundtrip(suite, path):
    name = path.relative_to(MODELS).with_suffix("") if path.is_relative_to(MODELS) else path.name
    tensors, start = header_of(path)
    with suite.case(f"roundtrip {name}: one archive by all roads") as scratch:
        archive = make_archive(path, scratch)
        for what, function in (("back byte for byte", lambda: check_unpack(path, archive, scratch)),
                               ("through pipes", lambda: check_pipes(path, archive, scratch)),
                               ("list agrees with the header", lambda: check_list(tensors, archive)),
                               ("cat gives tensors and rows", lambda: tensors and check_parts(path, tensors, start, archive)),
                               ("the safetensors library refuses it", lambda: check_loader(path, archive))):
            with suite.case(f"roundtrip {name}: {what}"):
                function()


def check_loader(path, archive):
    python = ROOT / "build" / "venv" / "bin" / "python"
    if not python.exists():
        raise Skip("no build/venv: run scripts/make-venv")
    succeed(python, "-c", LOADER, path)
    check(run(python, "-c", LOADER, archive).returncode == 3, "it loads the archive")


def main(args):
    small = "--small" in args
    paths = [pathlib.Path(a).resolve() for a in args if a != "--small"]
    if not paths:
        done = succeed(sys.executable, ROOT / "scripts" / "fetch-models", "--list", "test", timeout=60)
        paths = [MODELS / line for line in done.stdout.decode().splitlines()]
    suite = Suite()
    for path in paths:
        if not path.exists():
            with suite.case(f"roundtrip {path.name}"):
                raise AssertionError("missing: run scripts/fetch-models test")
        elif not small or path.stat().st_size <= SMALL:
            roundtrip(suite, path)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
