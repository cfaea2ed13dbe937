#!/usr/bin/env python3
"""python_suite.py: the Python package as its users get it: a wheel, installed; and every check_*.py run against that.

    python_suite.py [NAME...]         default: reading errors living torch

Interpreters: the one that runs this; for torch one that has it (/usr/bin/python3 with Debian's python3-torch).
SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from pyarchives import ROOT, check, small_model, succeed
from tap import BUILD, Skip, Suite

HERE = pathlib.Path(__file__).resolve().parent
SITE = BUILD / "python-site"  # the package, installed as pip does it
PARTS = ("reading", "errors", "living", "torch")


def pip(*arguments, python=sys.executable):
    return succeed(
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        *arguments,
        env={"BREVIS_BUILD": str(BUILD.relative_to(ROOT))},
        timeout=600,
    )


def build():
    """The wheel, from nothing but the tree and what is installed; and the package in SITE."""
    folder = BUILD / "python-wheel"
    for old in (folder, SITE, BUILD / "python-build"):
        shutil.rmtree(old, ignore_errors=True)
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, ROOT / "python")
    found = list(folder.glob("*.whl"))
    check(len(found) == 1, f"wheels: {found}")
    pip("install", "--no-deps", "--no-index", "--target", SITE, found[0])
    return found[0]


def check_wheel(wheel):
    check(re.fullmatch(r"brevis-[\d.]+-cp311-abi3-linux_\w+\.whl", wheel.name), wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("brevis/_native.abi3.so", "brevis/_native.pyi", "brevis/py.typed", "brevis/vllm.py", "brevis/LICENSE"):
        check(name in names, f"{name} is not in it")
    check(not [name for name in names if "test" in name or name.endswith((".c", ".h", ".pyc"))], f"what should not be in it: {names}")
    extension = next(SITE.glob("brevis/_native*.so"))
    given = [line.split()[-1] for line in succeed("nm", "-D", "--defined-only", extension).stdout.decode().splitlines()]
    check(given == ["PyInit__native"], f"the extension gives out {given[:5]}")
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\.so", succeed("readelf", "-d", extension).stdout.decode())
    check(
        set(needed) <= {"libxxhash", "libhwloc", "libc", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"},
        f"the extension needs {needed}",
    )


def fresh_venv(scratch, wheel):
    """pip install in a new environment, which has NumPy and nothing of the tree; the package's own libraries are used."""
    succeed(sys.executable, "-m", "venv", scratch / "venv", timeout=300)
    python = scratch / "venv/bin/python"
    pip("install", "--no-deps", "--no-index", wheel, python=python)
    import numpy

    numpy_folder = pathlib.Path(numpy.__file__).parent
    site = next((scratch / "venv/lib").glob("python*/site-packages"))
    for path in numpy_folder.parent.glob("numpy*"):
        (site / path.name).symlink_to(path)
    archive = small_model(scratch)
    program = """
import brevis, sys
weights = brevis.load_file(sys.argv[1])
print(brevis.__version__, brevis.__file__, weights["embed"].dtype, weights["bias"].shape)
print(*{line.split()[-1] for line in open("/proc/self/maps") if "xxhash" in line or "hwloc" in line or "udev" in line})
"""
    text = succeed(python, "-I", "-c", program, archive, cwd=scratch).stdout.decode()
    check(str(site) in text.splitlines()[0] and "uint16 (7,)" in text, text)
    foreign = [path for path in text.splitlines()[1].split() if not path.startswith(str(site / "brevis"))]
    check(text.splitlines()[1] and not foreign, f"libraries that the wheel did not bring: {foreign}")


def torch_interpreter():
    for python in (sys.executable, "/usr/bin/python3"):
        if (
            os.access(python, os.X_OK)
            and subprocess.run(
                [python, "-c", "import sys, torch, numpy; sys.exit(sys.version_info < (3, 11))"], capture_output=True
            ).returncode
            == 0
        ):
            return python
    raise Skip("no interpreter from 3.11 on with torch (Debian: python3-torch, which scripts/install-deps full brings)")


def main(wanted):
    suite = Suite()
    with suite.case("python: a wheel builds without a network"):
        wheel = build()
    if suite.failed:
        return suite.end()
    with suite.case("python: the wheel has what it needs and gives out one name"):
        check_wheel(wheel)
    with suite.case("python: the wheel in a fresh environment") as scratch:
        fresh_venv(scratch, wheel)
    for part in wanted or PARTS:
        python = sys.executable
        if part == "torch":
            python = None
            with suite.case("python: an interpreter with torch"):
                python = torch_interpreter()
        if python:
            env = dict(
                os.environ,
                PYTHONPATH=str(SITE),
                BREVIS_TEST_SITE=os.pathsep.join(path for path in sys.path if path.endswith("site-packages")),
            )
            suite.failed |= subprocess.run([python, HERE / f"check_{part}.py"], env=env).returncode != 0
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
