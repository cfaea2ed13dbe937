#!/usr/bin/env python3
"""compare.py: perf/compare and perf/ablation from a file to tables and plots, with the compressors that are here; no figure of speed is judged.

SPDX-License-Identifier: Apache-2.0
"""
import itertools
import json
import os
import re
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "cases"), os.path.join(os.path.dirname(HERE), "perf")]
import compare_stats
from compare_plot import front
from compare_stats import bootstrap, compare, wilcoxon
from craft import bf16_weights, checkpoint
from tap import BREVIS, BUILD, ROOT, SYNTH, Suite, check, describe, run, succeed

COMPARE, ABLATION = ROOT / "perf" / "compare", ROOT / "perf" / "ablation"
ALWAYS = ("brevis-size", "brevis-balanced", "brevis-speed", "zstd-3", "zstd-19", "gzip-6")      # need nothing but what building needs
PLACES = ("machine", "ratios", "more-ratios", "losses", "paper", "significance", "encode", "decode", "notes", "plots", "ablation", "ablation-claim",
          "ablation-machine")


def model(scratch, name="m.safetensors", seed=0):
    weights = bf16_weights(256 * 128)
    path = scratch / name
    path.write_bytes(checkpoint(("w", "BF16", [256, 128], weights), ("v", "BF16", [256, 128], weights[seed:] + weights[:seed]), ("b", "F32", [4], bytes(16))))
    return path


def options(scratch):
    return "--store", scratch / "store", "--budget", "0.01", "--repeat", "2"


def end_to_end(scratch):
    path, document = model(scratch), scratch / "R.md"
    document.write_text("".join(f"<!-- compare {name} -->\nold\n<!-- end -->\n" for name in PLACES))
    some = "--codecs", ",".join(ALWAYS + ("brevis-balanced-file", "zipnn"))
    done = run(COMPARE, *options(scratch), *some, "--write", document, "--json", scratch / "r.json", "--lock", scratch / "lock", path,
               timeout=900)
    found = json.loads((scratch / "r.json").read_text())
    missing = {name for name, v in found["versions"].items() if "missing" in v}
    check(done.returncode == 0 and not missing & set(ALWAYS), f"{describe(done)}; missing {missing}")
    for name in ALWAYS:
        sized, timed = found["size"][name][path.name], found["speed"][name][path.name]
        check(sized["equal"] == timed["equal"] == "file" and sized["nbytes"] == path.stat().st_size, f"{name}: {sized}")
        check(all(timed[way][what] > 0 for way in ("encode", "decode") for what in ("seconds", "of_memcpy", "repeats")), f"{name}: {timed}")
    succeed(SYNTH, "-q", path, "-o", scratch / "m.brv")
    check(found["size"]["brevis-balanced"][path.name]["coded"] == (scratch / "m.brv").stat().st_size, "another size than brevis-synth makes")
    check(set(found["size"]["brevis-balanced"][path.name]["tensors"]) == {"w", "v", "b"}, "sizes by tensor")
    succeed(ABLATION, "--store", scratch / "store", "--budgets", "1,2", "--write", document, path, timeout=900)
    text = document.read_text()
    check("old" not in text and all(f"| {name} |" in text for name in ALWAYS) and "no classes" in text, text)
    xml.etree.ElementTree.parse(scratch / "results-m.svg")
    again = succeed(COMPARE, *options(scratch), *some, path)
    check(not again.stderr, f"measured again: {again.stderr[:200]}")


def bad_codecs(scratch):
    """Commands that die, or compress something else, are shown as what they are."""
    path, other, build = model(scratch), model(scratch, "other", seed=6), scratch / "build"
    build.mkdir()
    for name, target in (("brevis", BREVIS), ("libbrevis.so", BUILD / "libbrevis.so")):
        (build / name).symlink_to(target)
    for body, cell in ((f'exec {SYNTH} "$1" "$2" "$3" "$4" "$5" "$6" {other} "$8" "$9"', "WRONG"), ("kill -SEGV $$", "crash"), ("exit 1", "error")):
        (build / "brevis-synth").write_text(f"#!/bin/bash\n{body}\n")
        (build / "brevis-synth").chmod(0o755)
        done = run(COMPARE, *options(scratch), "--codecs", "brevis-balanced,gzip-6", path, env={"BREVIS_BUILD": str(build)}, timeout=900)
        check(done.returncode == 1 and f"| brevis-balanced | {cell} |" in done.stdout.decode(), f"no {cell}: {describe(done)}\n{done.stdout.decode()[:900]}")
        check(re.search(r"\| gzip-6 \| \*\*\.\d{4}\*\* \|", done.stdout.decode()), "the other one's figure went with it")


def by_hand(differences):
    """p by trying all signs."""
    sizes = [abs(d) for d in differences if d]
    ranks = [sum(s < size for s in sizes) + (sum(s == size for s in sizes) + 1) / 2 for size in sizes]
    observed = abs(sum(r * ((d > 0) - (d < 0)) for r, d in zip(ranks, [d for d in differences if d])))
    signs = list(itertools.product((-1, 1), repeat=len(sizes)))
    return sum(abs(sum(s * r for s, r in zip(sign, ranks))) >= observed - 1e-9 for sign in signs) / len(signs)


def statistics(scratch):
    for differences in ([1, 2, 3, 4, 5], [-1, 2, 3, -4, 5, 6], [1, 1, -1, 2, 2, 3, 0], [5, -5], [-3, -1, -2, -7, 9, -4, -8]):
        check(abs(wilcoxon(differences) - by_hand(differences)) < 1e-12, f"{differences}: {wilcoxon(differences)}, not {by_hand(differences)}")
    check(wilcoxon([0, 0]) is None, "no differences, no test")
    differences = [(-1) ** (i % 3 == 0) * (i + 1) for i in range(50)]
    exact, compare_stats.EXACT_UP_TO = wilcoxon(differences), 0
    check(abs(exact - wilcoxon(differences)) < .002, f"exact: {exact}, approximation: {wilcoxon(differences)}")
    low, high = bootstrap([1.0, 2.0, 3.0, 4.0])
    check(1 <= low < 2.5 < high <= 4 and bootstrap([5.0, 5.0]) == (5.0, 5.0), f"{low}, {high}")
    result = compare([(90, 100), (45, 50), (200, 200)])
    check((result["smaller"], result["pairs"]) == (2, 3) and abs(result["mean"] + .2 / 3) < 1e-12 and abs(result["total"] + 15 / 350) < 1e-12, f"{result}")
    check(front([(1, 5), (2, 4), (3, 6), (2, 3), (0, 2)]) == [(3, 6), (2, 3), (0, 2)], "front")


def main():
    suite = Suite()
    for case in (end_to_end, bad_codecs, statistics):
        with suite.case(case.__name__.replace("_", "-")) as scratch:
            case(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
