#!/usr/bin/env python3
"""instrumented.py: threads under ThreadSanitizer, the commands under valgrind with the kernel sets that it can run, the work of refusing a bomb.

    instrumented.py [NAME...]        NAME: only cases whose names begin so

Valgrind sees what sanitizers of the compiler do not: decisions that depend on what was never written. It has no AVX-512.
SPDX-License-Identifier: Apache-2.0
"""
import re
import shutil
import sys

sys.dont_write_bytecode = True
from bombs import BOMBS
from faults import sample
from tap import BREVIS, ROOT, SYNTH, Skip, Suite, check, describe, run, same

THREADS = ROOT / "build-tsan" / "threads"
VALGRIND = ["valgrind", "-q", "--error-exitcode=98", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"]
CALLGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
MOST_INSTRUCTIONS = 200_000_000      # 0.1 s of a slow processor; a clock would measure who else runs
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.brv"))


def thread_sanitizer(scratch):
    if not THREADS.exists():
        raise Skip("not built: make tsan")
    (scratch / "f").write_bytes(sample())
    done = run(THREADS, scratch / "f", scratch, env={"TSAN_OPTIONS": "halt_on_error=1:exitcode=97"})
    check(done.returncode == 0, f"{done.stdout.decode()}{describe(done, 6000)}")


def valgrind(scratch, isa):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed: scripts/install-deps full")
    plain, archive, back = scratch / "f", scratch / "f.brv", scratch / "b"
    plain.write_bytes(sample())
    commands = [[SYNTH, "-q", "-T2", plain, "-o", archive], [BREVIS, "unpack", "-T2", archive, "-o", back], [BREVIS, "list", archive],
                [BREVIS, "show", archive, "wte"], [BREVIS, "cat", archive, "rows[3:9]"], [BREVIS, "test", "-T1", *GOLDEN]]
    # memcheck loses track of which bytes of a vector are defined in the AVX2 bodies of lit.rans; results do not depend on them (-ftrivial-auto-var-init
    # with any pattern gives the same). Bad reads, bad writes and leaks are seen all the same.
    options = ["--undef-value-errors=no"] * (isa != "scalar")
    for command in commands:
        done = run(*VALGRIND, *options, *command, env={"BREVIS_ISA": isa}, timeout=600)
        if isa != "scalar" and done.returncode == 2:
            raise Skip(f"no {isa} here")
        check(done.returncode == 0, describe(done, 6000))
    check(same(plain, back), "comes back different")


def bombs(scratch):
    """Every bomb is refused after a bounded number of instructions; the largest goes into the log."""
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed: scripts/install-deps full")
    archive, most = scratch / "bomb.brv", (0, "")
    for name, codes, _, make in BOMBS:
        archive.write_bytes(make())
        for command in (["list", archive], ["test", archive], ["unpack", archive, "-o", scratch / "out"]):
            done = run(*CALLGRIND, BREVIS, *command)
            count = re.search(rb"Collected : (\d+)", done.stderr)
            check(done.returncode in codes and count, f"{name}: {describe(done, 2000)}")
            most = max(most, (int(count[1]), f"{command[0]} of {name}"))
            check(int(count[1]) <= MOST_INSTRUCTIONS, f"{name}: {command[0]} took {int(count[1]):,} instructions, at most {MOST_INSTRUCTIONS:,} are allowed")
    print(f"# {len(BOMBS)} bombs: at most {most[0]:,} instructions ({most[1]})")


def main(prefixes):
    suite = Suite()
    cases = [("ThreadSanitizer: pool, readers of one archive, synthesis", thread_sanitizer), ("callgrind: bombs are refused with little work", bombs)]
    cases += [(f"valgrind: the commands with {isa} kernels", lambda scratch, isa=isa: valgrind(scratch, isa)) for isa in ("scalar", "avx2")]
    for name, function in cases:
        if not prefixes or name.startswith(tuple(prefixes)):
            with suite.case(name) as scratch:
                function(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
