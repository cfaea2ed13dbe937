#!/usr/bin/env python3
"""numa_guest.py: on which memory nodes the output of a call lies, asked of the kernel of an emulated machine that has several.

Each row of MACHINES boots once (scripts/numa-guest) and runs all its rows of uses (tests/numa/node_pages.c). Skipped where no such machine can be had.
SPDX-License-Identifier: Apache-2.0
"""
import json
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import BREVIS, BUILD, ROOT, SYNTH, Skip, Suite, check, describe, run, succeed

sys.path.insert(0, str(ROOT / "tests" / "cases"))
from craft import checkpoint, noise

CANNOT = 77
NBYTES = 24 << 20
PAGE, HUGE = 4096, 2 << 20
PAGES = NBYTES // PAGE
# A page that two nodes write to counts for one of them: as many as there may be cells.
SLACK = 400


def total(seen):
    return [sum(region[node] for region in seen["pages"]) for node in range(4)]


def spread(seen, nodes, unit):
    """Round robin over these nodes, in pages of so many bytes, but for the ends."""
    found = total(seen)
    check(sum(found) == PAGES and not any(n for i, n in enumerate(found) if i not in nodes), f"pages {found}")
    check(all(abs(found[i] - PAGES / len(nodes)) <= 2 * unit // PAGE for i in nodes), f"not even: {found}")
    check(abs(seen["changes"] - NBYTES // unit) <= 2 + (unit > PAGE) * HUGE // PAGE, f"{seen['changes']} changes of node")


def by_decoder(seen, first, last):
    """Every page is on the node that decoded it, and each node began with its own part."""
    for node, (pages, nbytes) in enumerate(zip(total(seen), seen["decoded"])):
        check(abs(pages - nbytes // PAGE) <= SLACK, f"node {node}: {pages} pages, {nbytes // PAGE} decoded there")
    check(seen["pages"][0][first] > 0 and seen["pages"][7][last] + seen["pages"][4][last] > 0, f"regions {seen['pages']}")


def only(seen, node):
    check(total(seen)[node] == PAGES, f"pages {total(seen)}, expected all on {node}")


# Command around it, arguments of node_pages, what the pool says, what has to be so.
TWO = [
    ("", "default 0 0", "threads 4 on 2 nodes, each on its core", lambda s: by_decoder(s, 0, 1)),
    ("", "local 0 0", "threads 4 on 2 nodes, each on its core", lambda s: by_decoder(s, 0, 1)),
    ("", "local 3 0", "threads 3 on 2 nodes, each on its node", lambda s: by_decoder(s, 0, 1)),
    ("", "local 9 0", "threads 9 on 2 nodes, each on its core", lambda s: by_decoder(s, 0, 1)),
    ("", "local 0 1", "huge pages: yes", lambda s: check(sum(total(s)) == PAGES, "pages are missing")),
    ("", "none 0 0", "threads 4, left to the kernel", lambda s: check(sum(total(s)) == PAGES, "pages are missing")),
    ("", "default 1 0", "threads 1, left to the kernel", lambda s: check(sum(total(s)) == PAGES, "pages are missing")),
    ("", "interleave 0 0", "threads 4 on 2 nodes, output interleaved", lambda s: spread(s, [0, 1], PAGE)),
    ("", "interleave 1 0", "threads 1 on 2 nodes, output interleaved", lambda s: spread(s, [0, 1], PAGE)),
    ("", "interleave 0 1", "output interleaved, huge pages: yes", lambda s: spread(s, [0, 1], HUGE)),
    ("taskset 8", "default 0 0", "threads 1, left to the kernel", lambda s: only(s, 1)),
    ("taskset 8", "local 2 0", "threads 2 on 1 node, each on its core", lambda s: only(s, 1)),
    ("taskset c", "default 0 0", "threads 2 on 1 node, left to the kernel", lambda s: only(s, 1)),
    ("taskset c", "interleave 0 0", "threads 2 on 1 node, output interleaved", lambda s: only(s, 1)),
    ("taskset a", "default 0 0", "threads 2 on 2 nodes, each on its core", lambda s: by_decoder(s, 0, 1)),
    ("umount /sys;", "default 0 0", "threads 4 on 1 node, left to the kernel, huge pages: no", lambda s: check(sum(total(s)) == PAGES, "pages")),
    ("", "local 0 0", "threads 4 on 1 node, left to the kernel, huge pages: no", lambda s: check(sum(total(s)) == PAGES, "pages")),
]
NO_MEMORY = [
    ("", "default 0 0", "threads 6 on 3 nodes, each on its core", lambda s: check(sum(total(s)[:2]) == PAGES, "pages")),
    ("", "interleave 0 0", "threads 6 on 3 nodes, output interleaved", lambda s: spread(s, [0, 1], PAGE)),
    ("taskset 30", "local 0 0", "threads 2 on 1 node, each on its core", lambda s: check(sum(total(s)[:2]) == PAGES, "pages")),
    ("taskset 30", "interleave 0 0", "threads 2 on 1 node, left to the kernel", lambda s: check(sum(total(s)[:2]) == PAGES, "pages")),
]
NO_CPUS = [("", "interleave 0 0", "threads 4 on 2 nodes, output interleaved", lambda s: spread(s, [0, 1], PAGE)),
           ("", "default 0 0", "threads 4 on 2 nodes, each on its core", lambda s: by_decoder(s, 0, 1))]
MACHINES = {"two nodes": ("2:384,2:384", TWO), "a node without memory": ("2:384,2:384,2:0", NO_MEMORY),
            "a node without CPUs": ("2:384,2:384,0:128", NO_CPUS)}


def build(scratch):
    """The program and an archive whose decoding is little more than copying."""
    succeed("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", f"-I{ROOT}", "-o", scratch / "node_pages", ROOT / "tests/numa/node_pages.c",
            BUILD / "libbrevis.a", "-lxxhash", "-lhwloc", "-lpthread")
    (scratch / "x.safetensors").write_bytes(checkpoint(("noise", "U8", [NBYTES], noise(NBYTES))))
    succeed(SYNTH, "--favor", "speed", scratch / "x.safetensors")


def boot(scratch, nodes, uses):
    """A line of JSON for each use."""
    script = "".join(f"{around} node_pages /bin/x.brv {arguments} || echo null\n" for around, arguments, *_ in uses)
    (scratch / "uses.sh").write_text(script)
    done = run(ROOT / "scripts/numa-guest", nodes, scratch / "node_pages", scratch / "x.brv", scratch / "uses.sh", "--", "sh", "/bin/uses.sh", timeout=240)
    if done.returncode == CANNOT:
        raise Skip(done.stderr.decode().strip())
    check(done.returncode == 0, describe(done, 3000))
    lines = done.stdout.decode().splitlines()
    check(len(lines) == len(uses), f"{len(lines)} lines of {len(uses)}: {lines[:3]}")
    return lines


def main():
    suite = Suite()
    with suite.case("numa: the program that looks at pages builds") as scratch:
        build(scratch)
        for name, (nodes, uses) in MACHINES.items():
            lines = []
            with suite.case(f"numa: a machine with {name}"):
                lines = boot(scratch, nodes, uses)
            for (around, arguments, said, rule), line in zip(uses, lines):
                with suite.case(f"numa: {name}: {f'{around} {arguments}'.strip()}"):
                    check(line.startswith("{"), line)
                    seen = json.loads(line)
                    check(said in seen["described"], f"it says: {seen['described']}")
                    check(seen["kept"], "the calling thread did not get its CPUs back")
                    rule(seen)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
