#!/usr/bin/env python3
"""run.py: every awkward file (files.py) and every recipe (recipes.py), against the commands in $BREVIS_BUILD.

    run.py [--big] [NAME...]          NAME: only cases whose names begin so
    run.py --reference                what the safetensors library says of the files, against the table (needs build/venv)
    run.py --make DIRECTORY           write the files, test nothing

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
sys.dont_write_bytecode = True
from files import BIG, FILES, KEEP, REFUSE, TREES
from recipes import RECIPES
from tap import BREVIS, ROOT, SYNTH, Skip, Suite, check, describe, run, same, succeed

INPUT_REFUSED, OVER_A_LIMIT = 3, 6


def outcome(path, scratch):
    """What the commands make of a file; raises if that is none of the outcomes."""
    archive, back = scratch / "out" / "x.brv", scratch / "back"
    archive.parent.mkdir()
    done = run(SYNTH, path, "-o", archive)
    if done.returncode:
        check(done.returncode in (INPUT_REFUSED, OVER_A_LIMIT), f"{describe(done)} (expected exit 3 or 6)")
        check(len(done.stderr.strip().splitlines()) == 1, f"not one line on stderr: {describe(done)}")
        check(not os.listdir(archive.parent), "refused, but left something behind")
        return REFUSE
    succeed(BREVIS, "test", archive)
    succeed(BREVIS, "list", "--json", archive)
    succeed(BREVIS, "unpack", archive, "-o", back)
    check(same(path, back), "comes back different")
    size, limit = archive.stat().st_size, path.stat().st_size * 1.005 + 4096
    check(size <= limit, f"{size:,} bytes from {path.stat().st_size:,}")
    return KEEP


def file_case(case, scratch, in_place=False):
    path = scratch / "x.safetensors"
    if in_place:
        case.make(path)
    else:
        path.write_bytes(case.make())
    found = outcome(path, scratch)
    check(found in case.outcomes, f"{found}, expected {' or '.join(case.outcomes)}: {case.reason}")


def tree_case(case, scratch):
    model, back = scratch / "model", scratch / "back"
    case.make(model)
    done = run(SYNTH, model, "-o", scratch / "out")
    if REFUSE in case.outcomes:
        check(done.returncode == INPUT_REFUSED, f"{describe(done)} (expected exit 3)")
        check(not (scratch / "out").exists(), "refused, but left something behind")
        return
    check(done.returncode == 0, describe(done))
    succeed(BREVIS, "test", scratch / "out")
    succeed(BREVIS, "unpack", scratch / "out", "-o", back)
    differ = run("diff", "-r", model, back)
    check(differ.returncode == 0, f"comes back different: {differ.stdout.decode()[:400]}")


def reference():
    """Where the table knows one outcome only, the library must agree: what it takes is kept, what it refuses is refused."""
    from safetensors import SafetensorError, deserialize
    suite = Suite()
    for case in FILES:
        with suite.case(f"reference {case.name}"):
            try:
                deserialize(case.make())
                found = KEEP
            except SafetensorError:
                found = REFUSE
            check(len(case.outcomes) > 1 or case.outcomes == (found,), f"the library would {found} it")
    return suite.end()


def make(folder):
    for case in FILES:
        path = pathlib.Path(folder) / case.name
        path.mkdir(parents=True)
        (path / "x.safetensors").write_bytes(case.make())
    for case in TREES:
        case.make(pathlib.Path(folder) / case.name / "model")


def main(args):
    if args[:1] == ["--reference"]:
        return reference()
    if args[:1] == ["--make"]:
        return make(args[1])
    big = "--big" in args
    prefixes = tuple(a for a in args if a != "--big")
    suite = Suite()

    def wanted(name):
        return not prefixes or name.startswith(prefixes)

    for case in FILES:
        if wanted(case.name):
            with suite.case(case.name) as scratch:
                file_case(case, scratch)
    for case in BIG:
        if wanted(case.name):
            with suite.case(case.name) as scratch:
                if not big:
                    raise Skip("big: with --big only")
                file_case(case, scratch, in_place=True)
    for case in TREES:
        if wanted(case.name):
            with suite.case(case.name) as scratch:
                tree_case(case, scratch)
    sample_case = next(case for case in FILES if case.name == "f50-weights")
    with tempfile.TemporaryDirectory(prefix="brevis-sample.") as folder:
        os.chmod(folder, 0o755)
        sample = pathlib.Path(folder) / "sample.safetensors"
        sample.write_bytes(sample_case.make())
        for name, recipe in RECIPES:
            if wanted(name):
                with suite.case(name) as scratch:
                    recipe(scratch, sample)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
