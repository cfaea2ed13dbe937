#!/usr/bin/env python3
"""faults.py: every call that can fail is made to fail, one at a time, in every command; and commands are killed at 200 moments.

    faults.py [NAME...]       NAME: only cases whose names begin so; FAULTS_MOST=N: up to N calls of each class

A first run of a command counts its calls (tests/faults/fault_inject.c), then each is made to fail in each way of the table FAULTS, in a run of its own.
Of a long series
it is the first call from each place (by the whole stack), and an even sample of the others. Whatever fails: no crash; an exit code of the contract and one line on stderr; nothing left
under the final name but the right bytes; no temporary left; no memory lost. What a retry or another way can mend has to succeed.
SPDX-License-Identifier: Apache-2.0
"""
import array
import errno
import itertools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases"))
from craft import bf16_weights, checkpoint, f32_weights, noise
from tap import BREVIS, BUILD, SYNTH, TIMEOUT, Skip, Suite, check, run, succeed

LIBRARY = BUILD / "libfaults.so"
MOST, SITES, MOMENTS, WORKERS = 40, 400, 200, 2    # calls of a class that are made to fail in a command, beside one from each place; kills; commands at a time
EINTR, EIO, ENOSPC, ENOMEM, EAGAIN = (str(getattr(errno, name)) for name in ("EINTR", "EIO", "ENOSPC", "ENOMEM", "EAGAIN"))

# Of each class of calls: ways to fail that may end the command, and ways that must not.
FAULTS = {
    "open": ([EIO, ENOSPC, ENOMEM], [EINTR]),
    "read": ([EIO], [EINTR, "short"]),
    "pread": ([EIO], [EINTR, "short"]),
    "write": ([EIO, ENOSPC], [EINTR, "short"]),
    "pwrite": ([EIO, ENOSPC], [EINTR, "short"]),
    "fsync": ([EIO, ENOSPC], [EINTR]),
    "rename": ([EIO, ENOSPC], []),
    "fallocate": ([ENOSPC], [EIO, EINTR]),
    "ftruncate": ([EIO, ENOSPC], [EINTR]),
    "copy": ([ENOSPC], [EIO, EINTR, "short"]),
    "flock": ([], [EIO, EINTR]),
    "fstat": ([EIO], []),
    "mmap": ([ENOMEM], []),
    "malloc": ([ENOMEM, "+" + ENOMEM], []),
    "thread": ([], [EAGAIN, "+" + EAGAIN]),
}
IO, MEMORY = 5, 6                           # exit codes; of other classes than these, either
CODES = {"malloc": (0, MEMORY), "write": (0, IO), "pwrite": (0, IO), "read": (0, IO), "pread": (0, IO), "fsync": (0, IO)}


class Command(NamedTuple):
    name: str
    argv: list                  # of the directory's path
    outputs: tuple = ()         # files in the directory
    stdin: str = ""             # file behind a pipe
    most: int = MOST
    only: tuple = tuple(FAULTS)
    partial: bool = False       # an output is a directory that may be left with a part of its files, each of them whole


def contents(path):
    """Of a file its bytes, of a directory those of its files by name."""
    if not path.is_dir():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def sample():
    """A small checkpoint of several types, whose archive has most kinds of tables, classes and a ref."""
    rows = b"".join(struct.pack("<64h", *[(r * 7 + c * c) % 97 << r % 5 for c in range(64)]) for r in range(64))
    steps = array.array("q", range(0, 9000, 9)).tobytes()
    weights = bf16_weights(6000, 5)
    return checkpoint(("wte", "BF16", [60, 100], weights), ("f32", "F32", [40, 50], f32_weights(2000, 6)), ("rows", "I16", [64, 64], rows),
                      ("steps", "I64", [1000], steps), ("tied", "BF16", [60, 100], weights), ("bytes", "U8", [3000], noise(3000)),
                      ("empty", "F32", [0, 4], b""), ("scalar", "F32", [], f32_weights(1)), metadata={"format": "pt"})


def commands(home):
    plain, archive, prior = home / "in.safetensors", home / "in.brv", home / "in.prior"
    return [
        Command("synth", lambda d: [SYNTH, "-q", "-T1", plain, "-o", d / "o"], ("o",)),
        Command("synth-threads", lambda d: [SYNTH, "-q", "-T3", plain, "-o", d / "o"], ("o",), only=("thread", "pread", "malloc"), most=20),
        Command("synth-stdout", lambda d: [SYNTH, "-q", "-T1", plain, "-o", "-"], most=20),
        Command("synth-save-prior", lambda d: [SYNTH, "-q", "-T1", "--save-prior", d / "p", plain, "-o", d / "o"], ("p", "o"), most=40),
        Command("synth-prior", lambda d: [SYNTH, "-q", "-T1", "--prior", prior, plain, "-o", d / "o"], ("o",), most=40),
        Command("synth-explain", lambda d: [SYNTH, "-q", "-T1", "--explain", "wte", plain], most=20),
        Command("synth-spool", lambda d: [SYNTH, "-q", "-T2", "--favor", "speed", home / "large.safetensors", "-o", d / "o"], ("o",), most=3,
                only=("open", "write", "copy")),
        Command("unpack", lambda d: [BREVIS, "unpack", "-T1", archive, "-o", d / "o"], ("o",)),
        Command("unpack-threads", lambda d: [BREVIS, "unpack", "-T3", archive, "-o", d / "o"], ("o",)),
        Command("unpack-force", lambda d: [BREVIS, "unpack", "-T1", "-f", archive, "-o", d / "o"], ("o",), only=("rename", "open", "fsync")),
        Command("unpack-pipe", lambda d: [BREVIS, "unpack", "-T2", "-", "-o", "-"], stdin="in.brv"),
        Command("unpack-pipe-refs", lambda d: [BREVIS, "unpack", "-T1", "-", "-o", d / "o"], ("o",), stdin="in.brv"),
        Command("synth-directory", lambda d: [SYNTH, "-q", "-T1", home / "model", "-o", d / "o"], ("o",), most=12, partial=True),
        Command("unpack-directory", lambda d: [BREVIS, "unpack", "-T1", home / "model.brv", "-o", d / "o"], ("o",), most=12),
        Command("test-directory", lambda d: [BREVIS, "test", "-T1", home / "model.brv"], most=12),
        Command("test", lambda d: [BREVIS, "test", "-T1", archive]),
        Command("test-threads", lambda d: [BREVIS, "test", "-T3", archive]),
        Command("list", lambda d: [BREVIS, "list", archive]),
        Command("list-json", lambda d: [BREVIS, "list", "--json", archive]),
        Command("show", lambda d: [BREVIS, "show", archive, "wte"]),
        Command("cat", lambda d: [BREVIS, "cat", "-T2", archive, "rows[3:60]"]),
        Command("cat-keep-going", lambda d: [BREVIS, "cat", "-T1", "--keep-going", archive, "wte"]),
        Command("cpu", lambda d: [BREVIS, "cpu"], only=("open",)),
    ]


class Harness:
    """Runs of one command, with and without faults, each in a directory of its own."""
    def __init__(self, command, home, scratch):
        self.command, self.home, self.scratch, self.numbers, self.sites = command, home, scratch, itertools.count(), {}
        self.environment = dict(os.environ, TMPDIR=str(scratch), LD_PRELOAD=str(LIBRARY))
        done, folder, counts = self.run("", log=True)
        check(done.returncode == 0, f"without a fault: exit {done.returncode}: {done.stderr[:300]}")
        self.counts, self.stdout, self.expected = counts, done.stdout, {name: contents(folder / name) for name in command.outputs}
        check(sorted(os.listdir(folder)) == sorted(command.outputs), f"made {os.listdir(folder)}")
        # Blocks that live on are compared with a run in which a fault is set and never comes: places are then not looked up, which allocates too.
        counts["blocks"] = self.run("open:1000000:5", log=True)[2]["blocks"]

    def run(self, fault, log=False, folder=None):
        number = next(self.numbers)             # of several threads
        folder = folder or self.scratch / f"{number}"
        folder.mkdir(exist_ok=True)
        record = self.scratch / f"{number}.log"
        environment = dict(self.environment, BREVIS_FAULT=fault, **({"BREVIS_FAULT_LOG": str(record)} if log else {}))
        feed = subprocess.Popen(["cat", self.home / self.command.stdin], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if self.command.stdin else None
        try:
            done = subprocess.run([os.fspath(a) for a in self.command.argv(folder)], env=environment, stdin=feed.stdout if feed else subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
        finally:
            if feed:
                feed.stdout.close()
                feed.wait()
        lines = [line.split() for line in record.read_text().splitlines()] if log and record.exists() else []
        for _, name, n in (line for line in lines if line[0] == "site"):
            self.sites.setdefault(name, []).append(int(n))
        return done, folder, {line[0]: int(line[1]) for line in lines if line[0] != "site"}

    def wrong(self, fault, must_succeed):
        """What is wrong with the command under this fault, or None."""
        done, folder, counts = self.run(fault, log=True)
        left = sorted(os.listdir(folder))
        stderr = done.stderr.decode(errors="replace").strip()
        says = f"{fault}: exit {done.returncode}: {stderr[:200]}: "
        if done.returncode not in range(0, 7):
            return says + "a crash"
        if done.returncode and must_succeed:
            return says + "this has to succeed"
        if done.returncode not in CODES.get(fault.split(":")[0], (0, IO, MEMORY)):
            return says + "another exit code than that of the reason"
        if done.returncode and len(stderr.splitlines()) != 1:
            return says + "not one line on stderr"
        if done.returncode == 0 and (not self.right_stdout(done.stdout, fault) or left != sorted(self.command.outputs)):
            return says + f"success, but other output: {left}"
        if done.returncode and not self.stdout.startswith(done.stdout):
            return says + "wrong bytes on stdout"
        if any(name not in self.command.outputs for name in left):
            return says + f"left behind: {left}"
        if not all(self.right(folder, name, fault) for name in left):
            return says + "a wrong file under the final name"
        # Threads' stacks stay in a cache, and so does memory for them.
        if "-T3" not in self.argv_text() and "-T2" not in self.argv_text() and counts.get("blocks", 0) > self.counts["blocks"]:
            return says + f"{counts['blocks'] - self.counts['blocks']} blocks of memory lost"
        shutil.rmtree(folder)
        return None

    def right_stdout(self, bytes_, fault):
        if bytes_ == self.stdout or (self.command.name == "cpu" and bytes_):    # it says what it can find out
            return True
        if not fault.startswith("malloc") or not self.command.name.startswith("synth"):
            return False
        return self.command.name == "synth-explain" or self.unpacked(bytes_)    # fewer candidates; another archive

    def unpacked(self, archive):
        done = subprocess.run([BREVIS, "unpack", "-", "-o", "-"], input=archive, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.returncode == 0 and done.stdout == (self.home / "in.safetensors").read_bytes()

    def right(self, folder, name, fault, killed=False):
        """A search that memory fails may find less, so the archive may be larger. It is the checkpoint's all the same."""
        path = folder / name
        found, expected = contents(path), self.expected[name]
        if found == expected:
            return True
        if self.command.partial:
            return all(part in expected and (bytes_ == expected[part] or (fault.startswith("malloc") and not run(BREVIS, "test", path / part).returncode))
                       for part, bytes_ in found.items() if not (killed and part.endswith(".tmp")))
        if not self.command.name.startswith("synth") or not fault.startswith("malloc"):
            return False
        if name == "p":
            return json.loads(path.read_text())["brevis_prior"] == 1
        return self.unpacked(path.read_bytes())

    def argv_text(self):
        return " ".join(map(str, self.command.argv(self.scratch)))


def calls_to_fail(harness, name):
    """The first call from each place in the program, and some of the others."""
    most = int(os.environ.get("FAULTS_MOST", harness.command.most))
    first = sorted(harness.sites.get(name, []))
    return sorted({first[i - 1] for i in spread(len(first), SITES)} | set(spread(harness.counts[name], most)))


def spread(count, most):
    """1..count, or `most` of them, evenly and with both ends."""
    return list(range(1, count + 1)) if count <= most else sorted({1 + i * (count - 1) // (most - 1) for i in range(most)})


def fail_all(harness, name):
    """Every call of one class, in every way."""
    deadly, harmless = FAULTS[name]
    faults = [(f"{name}:{n}{'+' * kind.startswith('+')}:{kind.lstrip('+')}", kind in harmless)
              for kind in deadly + harmless for n in calls_to_fail(harness, name)]
    with ThreadPoolExecutor(WORKERS) as pool:
        wrongs = [wrong for wrong in pool.map(lambda fault: harness.wrong(*fault), faults) if wrong]
    check(not wrongs, f"{len(wrongs)} of {len(faults)} faults:\n" + "\n".join(wrongs[:12]))
    return len(faults)


def kill_everywhere(harness):
    """SIGKILL at moments spread over all calls of the run, or some time after one; afterwards the same command runs to its end and finds nothing in
    its way."""
    def killed(moment, delay):
        done, folder, _ = harness.run(f"any:{moment}:kill{delay or ''}")
        if done.returncode not in (0, -9) or (done.returncode == 0 and not delay):
            return f"call {moment} of {harness.counts['any']}: was not killed: exit {done.returncode}"
        for name in harness.command.outputs:
            if (folder / name).exists() and not harness.right(folder, name, "", killed=True):
                return f"killed at call {moment}: {name} is not whole"
        complete = not harness.command.partial and all((folder / name).exists() for name in harness.command.outputs)
        again, folder, _ = harness.run("", folder=folder)
        if again.returncode not in ((2,) if complete else (0,)):
            return f"killed at call {moment}: the next run: exit {again.returncode}: {again.stderr[:200]}"
        if any(contents(folder / name) != harness.expected[name] for name in harness.command.outputs):
            return f"killed at call {moment}: the next run made something else"
        if not complete and sorted(os.listdir(folder)) != sorted(harness.command.outputs):
            return f"killed at call {moment}: the next run left {os.listdir(folder)}"
        return None
    # The number of calls of a run with threads varies by a few: the last moments are left out.
    calls = max(1, harness.counts["any"] * 98 // 100)
    moments = [(n, delay) for delay in (0, 25, 60, 120, 250, 500) for n in spread(calls, MOMENTS)][:MOMENTS]
    with ThreadPoolExecutor(WORKERS) as pool:
        wrongs = [wrong for wrong in pool.map(lambda moment: killed(*moment), moments) if wrong]
    check(not wrongs, f"{len(wrongs)} of {len(moments)} moments:\n" + "\n".join(wrongs[:12]))
    return len(moments)


def prepare(home):
    (home / "in.safetensors").write_bytes(sample())
    (home / "large.safetensors").write_bytes(checkpoint(("noise", "U8", [70 << 20], random.Random(7).randbytes(70 << 20))))
    succeed(SYNTH, "-q", "-T1", "--save-prior", home / "in.prior", home / "in.safetensors", "-o", home / "in.brv")
    (home / "model" / "sub").mkdir(parents=True)
    (home / "model" / "sub" / "a.safetensors").write_bytes(checkpoint(("a", "BF16", [60, 100], bf16_weights(6000, 5))))
    (home / "model" / "b.safetensors").write_bytes(checkpoint(("b", "F32", [40, 50], f32_weights(2000, 6))))
    (home / "model" / "b.safetensors.index.json").write_text('{"weight_map": {"b": "b.safetensors"}}')
    (home / "model" / "config.json").write_text("{}")
    succeed(SYNTH, "-q", "-T1", home / "model", "-o", home / "model.brv")


def main(prefixes):
    suite, total = Suite(), {"faults": 0, "kills": 0}
    if not LIBRARY.exists():
        with suite.case("faults"):
            raise Skip(f"no {LIBRARY.name} in this build: it cannot be preloaded under sanitizers")
        return suite.end()
    with suite.scratch() as home:
        prepare(home)
        for command in commands(home):
            if prefixes and not f"{command.name}:".startswith(tuple(prefixes)):
                continue
            with suite.case(f"{command.name}: calls counted") as scratch:
                harness = Harness(command, home, scratch)
                for name in command.only:
                    if harness.counts[name]:
                        with suite.case(f"{command.name}: {harness.counts[name]} calls of {name} fail"):
                            total["faults"] += fail_all(harness, name)
                if command.name in ("synth", "unpack", "unpack-threads", "synth-directory", "unpack-directory"):
                    with suite.case(f"{command.name}: killed at {MOMENTS} moments"):
                        total["kills"] += kill_everywhere(harness)
    print(f"# {json.dumps(total)}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
