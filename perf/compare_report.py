"""compare_report.py: the tables of perf/compare in Markdown, and their places in a document.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import pathlib
import platform
import re
import statistics

from compare_plot import plot
from compare_stats import compare

OURS = "brevis-balanced"
TENSOR_NBYTES = 4096            # smaller tensors say more of containers than of compressors
PAPER = {"off": .3393, "zipnn": -.0072, "zstd": -.1294}
FAILED = {"crash": "crash", "timeout": "timeout", "missing": "", "error": "error"}


def short(name):
    return name.removesuffix(".safetensors").replace("-titler", "").replace("whisper-base", "whisper").replace("odd/", "").replace("3-270m-q4km", " q4")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value):
    return f"{value:.4f}".removeprefix("0")


def is_good(result):
    return bool(result) and result["outcome"] == "ok" and result["equal"] != "no"


def ratio(result):
    return result["coded"] / result["nbytes"]


def without_figure(result):
    """What a cell says that has no figure, or None."""
    if not result:
        return ""
    if result["outcome"] != "ok":
        return FAILED[result["outcome"]]
    return "WRONG" if result["equal"] == "no" else None


def ratio_cell(result, best):
    if (text := without_figure(result)) is not None:
        return text
    cell = number(ratio(result))
    return (f"**{cell}**" if best else cell) + " (t)" * (result["equal"] == "tensors")


def ratios(results, codecs, files):
    """Rows are compressors; the smallest of a column in bold."""
    least = {f: min((results["size"][c][f]["coded"] for c in codecs if is_good(results["size"][c].get(f))), default=None) for f in files}
    rows = [[c] + [ratio_cell(r := results["size"][c].get(f), is_good(r) and r["coded"] == least[f]) for f in files] for c in codecs]
    return table([""] + [short(f) for f in files], rows)


def speed_cell(result, what):
    if (text := without_figure(result)) is not None:
        return text
    if not result[what]:
        return "slow"
    fraction = result[what]["of_memcpy"]
    return f"{fraction:.{3 if fraction >= .1 else 4 if fraction >= .001 else 5}f} ({result['nbytes'] / result[what]['seconds'] / 1e9:.2g})"


def speeds(results, codecs, files, what):
    rows = []
    for c in codecs:
        found = [results["speed"][c].get(f) for f in files]
        io = next((r["io"] for r in found if r and "io" in r), "")
        rows.append([c, io] + [speed_cell(r, what) for r in found])
    return table(["", "io"] + [short(f) for f in files], rows)


def pairs_of_files(results, peer, files):
    found = [(results["size"][OURS].get(f), results["size"][peer].get(f)) for f in files]
    return [(a["coded"], b["coded"]) for a, b in found if is_good(a) and is_good(b)]


def by_tensor(result, sizes):
    """Bytes of each tensor, with its share (by size) of what the archive spends on all together."""
    total = sum(sizes[name] for name in result["tensors"])
    return {name: coded + result["rest"] * sizes[name] / total for name, coded in result["tensors"].items()}


def pairs_of_tensors(results, peer, files, tensor_sizes):
    pairs = []
    for f in files:
        a, b = results["size"][OURS].get(f), results["size"][peer].get(f)
        if is_good(a) and is_good(b) and "tensors" in a and "tensors" in b:
            ours, theirs = by_tensor(a, tensor_sizes[f]), by_tensor(b, tensor_sizes[f])
            pairs += [(ours[n], theirs[n]) for n in ours if n in theirs and tensor_sizes[f][n] >= TENSOR_NBYTES]
    return pairs


def chance(p):
    return "" if p is None else "< 1e-15" if p < 1e-15 else f"{p:.2g}"


def significance(results, codecs, files, tensor_sizes):
    rows = []
    for peer in codecs:
        if peer.startswith("brevis"):
            continue
        for what, pairs in (("files", pairs_of_files(results, peer, files)), ("tensors", pairs_of_tensors(results, peer, files, tensor_sizes))):
            if pairs:
                r = compare(pairs)
                rows.append([peer, what, f"{r['smaller']} of {r['pairs']}", f"{r['median']:+.2%}", f"{r['mean']:+.2%}", f"{r['low']:+.2%} to {r['high']:+.2%}",
                             f"{r['total']:+.2%}", chance(r["p"])])
    return table(["peer", "over", "Brevis is smaller in", "median difference", "mean", "95 % interval of the mean", "difference of totals", "p (Wilcoxon)"], rows)


def paper(results, files):
    """The paper's three figures beside ours: the mean over the files of BF16."""
    files = [f for f in files if "bf16" in f and "upcast" not in f]
    rows = []
    for what, figure, peer in (("smaller than the original", -PAPER["off"], None), ("than ZipNN", PAPER["zipnn"], "zipnn"),
                               ("than zstd (here: level 3)", PAPER["zstd"], "zstd-3"), ("than zstd (here: level 19)", PAPER["zstd"], "zstd-19")):
        found = [(results["size"][OURS].get(f), results["size"].get(peer, {}).get(f)) for f in files]
        found = [a["coded"] / (b["coded"] if b else a["nbytes"]) - 1 for a, b in found if is_good(a) and (peer is None or is_good(b))]
        if found:
            rows.append([what, f"{figure:+.2%}", f"{statistics.mean(found):+.2%}", f"{min(found):+.2%} to {max(found):+.2%}", str(len(found))])
    return table(["", "paper", "here: mean", "range", "files"], rows)


def losses(results, codecs, files):
    """Where somebody else's archive is smaller than that of each favor."""
    rows = []
    for f in files:
        others = [(results["size"][c][f]["coded"], c) for c in codecs if not c.startswith("brevis") and is_good(results["size"][c].get(f))]
        for ours in ("brevis-size", "brevis-balanced", "brevis-speed"):
            a = results["size"].get(ours, {}).get(f)
            if others and is_good(a) and min(others)[0] < a["coded"]:
                rows.append([short(f), ours, number(ratio(a)), f"{min(others)[1]} {number(min(others)[0] / a['nbytes'])}",
                             ", ".join(c for n, c in sorted(others) if n < a["coded"])])
    return table(["file", "", "ratio", "best of the others", "all that are smaller"], rows) if rows else "Nowhere among these files."


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    return f"{datetime.date.today()}, {cpu_model()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}."


def versions_line(versions):
    return "Versions: " + ", ".join(f"{name} {v['version']}" if "version" in v else f"{name} is not here" for name, v in versions.items()
                                    if not name.startswith("brevis")) + "."


def notes(codecs, classes):
    return "\n".join(f"- {c}: {classes[c].note}." for c in codecs if classes[c].note)


def write_plots(results, codecs, files, prefix):
    """An SVG file for each model that was timed; their paths."""
    paths = []
    for f in files:
        points = []
        for c in codecs:
            r = results["speed"][c].get(f)
            if is_good(r) and "decode" in r:
                points.append((r["decode"]["of_memcpy"], ratio(r), c, r["io"], c.startswith("brevis")))
        if points:
            path = pathlib.Path(f"{prefix}{pathlib.PurePath(f).stem}.svg")
            path.write_text(plot(f"{short(f)}: size and decoding speed", points))
            paths.append(path)
    return paths


def fill(document, parts):
    """Replaces what stands between `<!-- compare NAME -->` and `<!-- end -->`."""
    text = document.read_text()
    for name, content in parts.items():
        text, count = re.subn(rf"(<!-- compare {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{content}\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"{document}: {count} places for <!-- compare {name} -->, not 1")
    document.write_text(text)
