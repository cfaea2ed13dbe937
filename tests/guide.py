#!/usr/bin/env python3
"""guide.py: runs the commands of docs/GUIDE.md and of the README's quick start as they stand, and compares the output that is shown.

    guide.py [HEADING...]         default: every ## section of the guide that has blocks, and the quick start

A section is run from top to bottom in a fresh directory with model/, two shards of real weights. ```sh has to end well; of ```console each `$` line has to
print the lines behind it, in which ... is anything. "*Not run by the tests: WHY.*" or <!-- needs WHAT --> before a block can leave it out.
SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
from tap import BUILD, MODELS, ROOT, Skip, Suite, check, run, succeed

sys.path.insert(0, str(ROOT / "python" / "tests"))
from python_suite import SITE, build as build_python

GUIDE, README = ROOT / "docs/GUIDE.md", ROOT / "README.md"
REAL = MODELS / "minilm-bf16.safetensors"
LIMIT = 600
BLOCK = re.compile(r"(?:^\*Not run by the tests: (?P<why>.*?)\.?\*\n\n)?(?:^<!-- needs (?P<needs>.*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.S | re.M)
NEEDS = {"/dev/fuse": lambda: os.access("/dev/fuse", os.R_OK | os.W_OK)}


# ---- what the text says

def sections(text):
    """Heading of each ## section -> its text; headings inside blocks are none."""
    bare = re.sub(r"^```.*?^```", lambda block: re.sub(r"^#", "\0", block.group(), flags=re.M), text, flags=re.S | re.M)
    parts = re.split(r"^## (.*)\n", bare, flags=re.M)
    return {heading: body.replace("\0", "#") for heading, body in zip(parts[1::2], parts[2::2])}


def blocks(body):
    for match in BLOCK.finditer(body):
        if match["kind"] in ("sh", "console"):
            title = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", body[:match.start()], flags=re.S | re.M), re.M)
            yield (title[-1] if title else "", *match.group("kind", "text", "why", "needs"))


def steps(text):
    """A console block: (command, expected output) of each $ line."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def agrees(expected, printed):
    """... is anything within its line; alone on a line, any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in expected.splitlines())
    return re.fullmatch(pattern, printed)


# ---- what is there to be used

def split(source, folder):
    """The tensors of a checkpoint dealt into two shards, with the index and a config: a directory as models are published."""
    blob = source.read_bytes()
    size, = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8:8 + size])
    metadata = header.pop("__metadata__", {})
    names = sorted(header, key=lambda name: header[name]["data_offsets"])
    middle = next(i for i, name in enumerate(names) if header[name]["data_offsets"][1] * 2 > len(blob)) + 1
    weight_map = {}
    for number, part in enumerate((names[:middle], names[middle:]), 1):
        file, entries, data = f"model-{number:05}-of-00002.safetensors", {"__metadata__": metadata}, []
        for name in part:
            low, high = header[name]["data_offsets"]
            begin = sum(map(len, data))
            data.append(blob[8 + size + low:8 + size + high])
            entries[name] = header[name] | {"data_offsets": [begin, begin + high - low]}
            weight_map[name] = file
        text = json.dumps(entries, separators=(",", ":")).encode()
        (folder / file).write_bytes(b"".join([struct.pack("<Q", len(text)), text, *data]))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=1))
    (folder / "config.json").write_text('{"model_type": "bert"}\n')


def installed(folder):
    """The library as make install puts it, for the blocks in C; the Python package as pip does. -> environment."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "BREVIS_"))}
    subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={BUILD.relative_to(ROOT)}", f"DESTDIR={folder}", "PREFIX=/usr", "install"], check=True, env=env,
                   stdin=subprocess.DEVNULL)
    if not any(SITE.glob("brevis/_native*.so")):
        build_python()
    return env | {"PATH": f"{BUILD}:{pathlib.Path(sys.executable).parent}:{env['PATH']}", "PYTHONPATH": str(SITE), "PYTHONDONTWRITEBYTECODE": "1",
                  "PKG_CONFIG_PATH": f"{folder}/usr/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(folder), "LD_LIBRARY_PATH": f"{folder}/usr/lib",
                  "BREVIS_SOURCE": str(ROOT), "LC_ALL": "C.UTF-8"}


def unmount(scratch):
    for line in open("/proc/self/mountinfo"):
        if line.split()[4].startswith(f"{scratch}/"):
            run("fusermount3", "-u", "-z", line.split()[4])


# ---- running

def shell(command, cwd, env, stderr):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                          timeout=LIMIT)
    return done, done.stdout.decode(errors="replace")


def run_block(kind, text, cwd, env):
    if kind == "sh":
        done, out = shell(text, cwd, env, subprocess.STDOUT)
        check(done.returncode == 0, f"exit {done.returncode}\n{text}\nprinted:\n{out[-2000:]}")
        return
    for command, expected in steps(text):
        done, out = shell(command, cwd, env, subprocess.STDOUT)
        check(done.returncode == 0 or "||" in command, f"$ {command}\nexit {done.returncode}, printed:\n{out[-2000:]}")
        check(agrees(expected, out), f"$ {command}\nprinted:\n{out[-2000:]}the guide shows:\n{expected}")


def section(suite, heading, body):
    with suite.case(f"guide: {heading}: from top to bottom") as scratch, contextlib.ExitStack() as stack:
        check(REAL.exists(), f"{REAL} is not there: scripts/fetch-models test")
        stack.callback(unmount, scratch)
        work = scratch / "work"
        (work / "model").mkdir(parents=True)
        split(REAL, work / "model")
        env = installed(scratch / "installed")
        for number, (title, kind, text, why, needs) in enumerate(blocks(body), 1):
            with suite.case(f"guide: {heading}: {title}, block {number}"):
                if why:
                    raise Skip(why)
                if needs and not NEEDS[needs]():
                    raise Skip(f"{needs} cannot be used")
                run_block(kind, text, work, env)


def quick_start(suite):
    """The lines in a directory that looks like the repository, so that what they make lies elsewhere."""
    with suite.case("guide: the quick start of the README") as scratch:
        (_, _, text, _, _), = blocks(sections(README.read_text())["Quick start"])
        if BUILD != ROOT / "build":
            raise Skip(f"it uses build/, not {BUILD.name}/")
        lines = text.splitlines()
        check(len(lines) == 10, f"{len(lines)} lines, not ten")
        for path in ROOT.iterdir():
            if path.name not in (".git", ".venv") and path.suffix not in (".brv", ".safetensors"):
                (scratch / path.name).symlink_to(path)
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "BREVIS_", "PYTHONPATH"))}
        python = next(i for i, line in enumerate(lines) if "pip" in line)
        run_block("sh", "\n".join(lines[:python]), scratch, env)
        if run(sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", scratch, "wheel").returncode:
            raise Skip("all but the lines for Python, which need the package index")
        run_block("sh", "\n".join(lines[python:]), scratch, env)


def main(wanted):
    suite = Suite()
    found = sections(GUIDE.read_text())
    with suite.case("guide: has its sections"):
        check(set(wanted or ("Serving", "Batch", "Benchmarking")) <= {*found, "Quick start"}, f"sections: {list(found)}")
    for heading, body in found.items():
        if not wanted or heading in wanted:
            section(suite, heading, body)
    if not wanted or "Quick start" in wanted:
        quick_start(suite)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
