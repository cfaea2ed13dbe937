#!/usr/bin/env python3
"""check_reference.py: every golden archive through tests/reference_decoder.py, so that document, second decoder and archives agree.

    check_reference.py [FILE.brv...]      default: tests/golden/*.brv; NAME.safetensors beside each is what has to come out

Also: the same archive with its last byte cut off, and with a bit of each of its parts turned over, is refused. Prints the Test Anything
Protocol, then what the archives use of the format, then  N passed, N failed. Exit: 1 if something failed.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import io
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import reference_decoder as reference

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ops():
    return re.findall(r'^OP\(0x[0-9a-f]+, *\d+, *\w+, *"([a-z.]+)"', (ROOT / "common/ops.def").read_text(), re.M)


def decoded(data, count=None):
    out = io.BytesIO()
    reference.decode(data, count=count).write(out)
    return out.getvalue()


def refused(data):
    try:
        decoded(data)
    except reference.Damaged:
        return True
    return False


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]


def problem(path, count):
    """What is wrong with an archive, or None."""
    data, expected = path.read_bytes(), path.with_suffix(".safetensors").read_bytes()
    try:
        found = decoded(data, count)
    except reference.Damaged as why:
        return f"damaged: {why}"
    if found != expected:
        at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        return f"byte {at} of {len(expected)} differs; {len(found)} came out"
    if not refused(data[:-1]):
        return "accepted without its last byte"
    for at in (3, 40, 140, 150, len(data) - 1):
        if at < len(data) and not refused(flipped(data, at)):
            return f"accepted with a wrong byte {at}"
    return None


def main(argv):
    paths = [pathlib.Path(a) for a in argv] or sorted((ROOT / "tests/golden").glob("*.brv"))
    count, failed = collections.Counter(), 0
    for number, path in enumerate(paths, 1):
        why = problem(path, count)
        failed += why is not None
        print(f"{'not ok' if why else 'ok'} {number} - {path.stem}" + (f"\n  {why}" if why else ""), flush=True)
    total = len(paths)
    if not argv:
        met = {name.split("+")[0] for name in count}
        for op in ops():
            total += 1
            failed += op not in met
            print(f"{'ok' if op in met else 'not ok'} {total} - some golden archive has {op}")
    print(f"1..{total}")
    for name, times in sorted(count.items()):
        print(f"# {times:5} {name}")
    print(f"{total - failed} passed, {failed} failed")
    return int(failed > 0 or not paths)


sys.exit(main(sys.argv[1:]))
