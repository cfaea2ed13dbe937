"""recipes.py: how the commands behave around their work: full disks, kills, pipes, names, CPUs.

A recipe is a function of the scratch directory and a valid 2 MiB checkpoint; it raises what is wrong. Those that need root say so by Skip.
SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from tap import BREVIS, BUILD, ROOT, SYNTH, Skip, check, describe, refuse, run, same, succeed

RECIPES = []


def recipe(name):
    def add(function):
        RECIPES.append((name, function))
        return function
    return add


def pack(source, target, *options, **kwargs):
    return succeed(SYNTH, *options, source, "-o", target, **kwargs)


def unpack(source, target, *options, **kwargs):
    return succeed(BREVIS, "unpack", *options, source, "-o", target, **kwargs)


def packed(scratch, sample):
    pack(sample, scratch / "sample.brv")
    return scratch / "sample.brv"


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


class SmallDisk:
    """A file system of 512 KiB, unmounted at the end."""
    def __init__(self, scratch):
        need_root()
        self.path = scratch / "disk"

    def __enter__(self):
        self.path.mkdir()
        if run("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", self.path).returncode:
            raise Skip("cannot mount here")
        return self.path

    def __exit__(self, *_):
        run("umount", self.path)


@recipe("r01-output-exists")
def _(scratch, sample):
    out = scratch / "o"
    for command in ([SYNTH, sample], [BREVIS, "unpack", packed(scratch, sample)]):
        out.write_text("precious")
        refuse(*command, "-o", out)
        check(out.read_text() == "precious", "an existing file was touched without -f")
        succeed(*command, "-f", "-o", out)
        check(out.stat().st_size > 8, "-f did not replace it")


@recipe("r02-input-is-output")
def _(scratch, sample):
    file, link, symlink = scratch / "a", scratch / "b", scratch / "c"
    shutil.copy(sample, file)
    os.link(file, link)
    symlink.symlink_to("a")
    for target in (file, link, symlink):
        for options in ([], ["-f"]):
            refuse(SYNTH, *options, file, "-o", target)
            check(same(file, sample), f"the input was damaged by -o {target.name} {options}")


@recipe("r03-never-asks")
def _(scratch, sample):
    (scratch / "o").write_text("x")
    refuse(SYNTH, sample, "-o", scratch / "o")
    succeed("bash", "-c", 'exec "$@" <&-', "-", SYNTH, sample, "-o", scratch / "p")
    unpack(scratch / "p", scratch / "q")
    check(same(scratch / "q", sample), "differs with stdin closed")


@recipe("r04-pipes")
def _(scratch, sample):
    fifo = scratch / "fifo"
    os.mkfifo(fifo)
    end = os.open(fifo, os.O_RDWR)          # opened both ways, so that nobody waits for the other side
    writer = subprocess.Popen(["cat", sample], stdin=subprocess.DEVNULL, stdout=end, stderr=subprocess.DEVNULL)
    os.close(end)
    try:
        done = run(SYNTH, fifo, "-o", scratch / "o")
    finally:
        writer.kill()
        writer.wait()
    if done.returncode == 0:
        unpack(scratch / "o", scratch / "b")
        check(same(scratch / "b", sample), "differs")
    else:
        check(done.returncode in range(1, 7) and not (scratch / "o").exists(), describe(done))
    with open(packed(scratch, sample), "rb") as archive, open(scratch / "p", "wb") as out:
        piped = run("bash", "-c", 'cat | "$1" unpack - -o - | cat', "-", BREVIS, stdin=archive, stdout=out)
    check(piped.returncode == 0 and same(scratch / "p", sample), f"through pipes: {describe(piped)}")


@recipe("r05-every-instruction-set")
def _(scratch, sample):
    archive = packed(scratch, sample)
    for isa in ("scalar", "avx2", "avx512", "avx512i", "neon"):
        done = run(BREVIS, "unpack", "-f", archive, "-o", scratch / isa, env={"BREVIS_ISA": isa})
        if done.returncode == 0:
            check(same(scratch / isa, sample), f"BREVIS_ISA={isa} decodes other bytes")
        else:
            check(isa != "scalar" and done.returncode == 2, describe(done))
    refuse(BREVIS, "unpack", archive, "-o", scratch / "x", env={"BREVIS_ISA": "abacus"}, codes=[2])


def full_disk(scratch, *command):
    with SmallDisk(scratch) as disk:
        done = refuse(*command, "-o", disk / "o", codes=[5])
        check(not os.listdir(disk), f"left behind: {os.listdir(disk)}")
        check(b"space" in done.stderr and b"disk" in done.stderr, f"names neither the path nor the reason: {describe(done)}")


@recipe("r06-disk-full-packing")
def _(scratch, sample):
    full_disk(scratch, SYNTH, sample)


@recipe("r07-disk-full-unpacking")
def _(scratch, sample):
    full_disk(scratch, BREVIS, "unpack", packed(scratch, sample))


@recipe("r08-killed")
def _(scratch, sample):
    folder = scratch / "k"
    folder.mkdir()
    for milliseconds in (5, 10, 20, 40, 80, 160, 300, 500):
        process = subprocess.Popen([SYNTH, sample, "-o", folder / "o"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(milliseconds / 1000)
        process.kill()
        process.wait()
        if (folder / "o").exists():
            unpack(folder / "o", scratch / "b", "-f")
            check(same(scratch / "b", sample), f"killed after {milliseconds} ms: a file under the final name that is not whole")
            (folder / "o").unlink()
    pack(sample, folder / "o")
    check(os.listdir(folder) == ["o"], f"the next run left {os.listdir(folder)}")
    process = subprocess.Popen([SYNTH, sample, "-o", folder / "t"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.05)
    process.terminate()
    check(process.wait() in (0, -signal.SIGTERM), f"SIGTERM gave {process.returncode}")
    check(sorted(os.listdir(folder)) in (["o"], ["o", "t"]), f"SIGTERM left {os.listdir(folder)}")


@recipe("r09-no-safetensors-loader-takes-it")
def _(scratch, sample):
    python = ROOT / "build" / "venv" / "bin" / "python"
    if not python.exists():
        raise Skip("no build/venv: run scripts/make-venv")
    pack(sample, scratch / "o.safetensors")
    script = ("import sys; from safetensors import safe_open, deserialize, SafetensorError\n"
              "for load in (lambda p: safe_open(p, framework='numpy').__enter__(), lambda p: deserialize(open(p, 'rb').read())):\n"
              "    load(sys.argv[1])\n"
              "    try: load(sys.argv[2])\n"
              "    except SafetensorError as error: print('refused:', error)\n"
              "    else: sys.exit('taken')\n")
    done = succeed(python, "-c", script, sample, scratch / "o.safetensors")
    check(done.stdout.count(b"refused:") == 2, describe(done))


@recipe("r10-quiet-logs")
def _(scratch, sample):
    done = pack(sample, scratch / "o")
    check(done.stdout == b"", f"on stdout: {done.stdout[:80]}")
    check(not re.search(b"[\r\x1b]", done.stderr), "a progress line or colour in a log")
    done = unpack(scratch / "o", scratch / "b")
    check(done.stdout == b"" and not re.search(b"[\r\x1b]", done.stderr), "unpack chatters in a log")


@recipe("r11-lost-output")
def _(scratch, sample):
    archive = packed(scratch, sample)
    for command in (["list", archive], ["list", "--json", archive], ["cat", archive, "w.0"], ["show", archive, "w.0"], ["unpack", archive, "-o", "-"], ["cpu"]):
        with open("/dev/full", "wb") as full:
            refuse(BREVIS, *command, stdout=full, codes=[5])


@recipe("r12-one-cpu")
def _(scratch, sample):
    cpu = min(os.sched_getaffinity(0))
    succeed("taskset", "-c", str(cpu), SYNTH, sample, "-o", scratch / "1")
    check(same(packed(scratch, sample), scratch / "1"), "other bytes on one CPU")
    report = succeed("taskset", "-c", str(cpu), BREVIS, "cpu").stdout.decode()
    check(re.search(r"threads\D*1\b", report), f"more threads than CPUs: {report}")


@recipe("r13-no-topology")
def _(scratch, sample):
    need_root()
    script = 'mount -t tmpfs tmpfs /sys && echo hidden; "$1" "$3" -o "$4/o" && "$2" unpack "$4/o" -o "$4/b"'
    done = run("unshare", "-m", "sh", "-c", script, "-", SYNTH, BREVIS, sample, scratch)
    if b"hidden" not in done.stdout:
        raise Skip("cannot hide /sys here")
    check(done.returncode == 0 and same(scratch / "b", sample), describe(done))


@recipe("r14-cut-archive")
def _(scratch, sample):
    whole = packed(scratch, sample).read_bytes()
    for i in range(40):
        (scratch / "cut").write_bytes(whole[:len(whole) * i // 40])
        refuse(BREVIS, "unpack", scratch / "cut", "-o", scratch / "o", codes=[4])
        check(not (scratch / "o").exists(), f"cut to {i}/40: an output is there")


@recipe("r15-unwritable-directory")
def _(scratch, sample):
    need_root()
    folder = scratch / "ro"
    folder.mkdir(mode=0o555)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for path in (SYNTH, sample):
        if run(*nobody, "test", "-r", path).returncode:
            raise Skip("an ordinary user cannot read the build or the sample here")
    done = refuse(*nobody, SYNTH, sample, "-o", folder / "o", codes=[5])
    check(b"ro" in done.stderr and not os.listdir(folder), describe(done))


@recipe("r16-odd-file-names")
def _(scratch, sample):
    for name in (b"a b", b"a\nb", b"\xff\xfe", b"-rf", b"--", b"%s%n"):
        file = name + b".safetensors"
        shutil.copy(os.fsencode(sample), os.fsencode(scratch) + b"/" + file)
        succeed(SYNTH, b"-o", b"./" + name + b".c", b"--", file, cwd=scratch)
        succeed(BREVIS, "unpack", b"-o", b"./" + name + b".b", b"--", b"./" + name + b".c", cwd=scratch)
        check(same(os.fsencode(scratch) + b"/" + name + b".b", sample), f"{name} differs")
    done = refuse(BREVIS, "list", b"a\n\x1b[31m\xff", cwd=scratch)
    check(not re.search(rb"[\x1b\xff]|\n.", done.stderr), f"a name reaches the terminal raw: {done.stderr}")


@recipe("r17-directory-or-missing")
def _(scratch, sample):
    (scratch / "folder").mkdir()
    for command in ([SYNTH], [BREVIS, "unpack"]):
        done = refuse(*command, scratch / "nope", "-o", scratch / "o")
        check(b"nope" in done.stderr, f"the path is not named: {describe(done)}")
        refuse(*command, sample if command == [SYNTH] else packed(scratch, sample), "-o", scratch / "folder" / "none" / "o", codes=[5])
    refuse(BREVIS, "test", scratch / "folder")
    check(not (scratch / "o").exists(), "an output is there")


@recipe("r18-something-else")
def _(scratch, sample):
    (scratch / "zip").write_bytes(b"PK\3\4junk")
    (scratch / "noise").write_bytes(os.urandom(5000))
    for file in (sample, scratch / "zip", scratch / "noise", "/dev/null"):
        for command in (["unpack", file, "-o", scratch / "o"], ["list", file], ["test", file]):
            refuse(BREVIS, *command, codes=[4])
    check(not (scratch / "o").exists(), "an output is there")


@recipe("r19-directory-again-after-a-kill")
def _(scratch, sample):
    model, out = scratch / "m", scratch / "out"
    model.mkdir()
    for i in range(1, 5):
        shutil.copy(sample, model / f"model-0000{i}-of-00004.safetensors")
    process = subprocess.Popen([SYNTH, "-q", model, "-o", out], stdin=subprocess.DEVNULL)
    while process.poll() is None and not (out.exists() and any(out.glob("*.brv"))):
        pass
    process.kill()
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.brv")}
    check(before, "nothing was finished before the kill")
    pack(model, out)
    check(all(path.stat().st_mtime_ns == when for path, when in before.items()), "a finished archive was made again")
    unpack(out, scratch / "back")
    check(run("diff", "-r", model, scratch / "back").returncode == 0, "comes back different")


@recipe("r20-memory-nodes")
def _(scratch, sample):
    archive = packed(scratch, sample)
    machines = {"this one": {}, "two nodes": {"HWLOC_SYNTHETIC": "node:2 core:2 pu:1"}, "nodes that are not there": {
        "HWLOC_SYNTHETIC": "node:2 core:512 pu:1", "HWLOC_THISSYSTEM": "1"}}
    for machine, env in machines.items():
        for mode in ("none", "local", "interleave"):
            options = ["-T", "4", "--numa", mode]
            done = unpack(archive, scratch / "out", "-f", "-v", *options, env=env)
            check(done.stderr.startswith(b"threads 4"), f"{machine}, {mode}: {describe(done)}")
            check(same(sample, scratch / "out"), f"{machine}, {mode}: unpack differs")
            check(succeed(BREVIS, "unpack", *options, archive, "-o", "-", env=env).stdout == sample.read_bytes(), f"{machine}, {mode}: other bytes on stdout")
            with open(archive, "rb") as pipe:
                check(not run(BREVIS, "test", "-q", *options, "-", env=env, stdin=pipe).returncode, f"{machine}, {mode}: test of stdin")
        check(b"2 nodes" in succeed(BREVIS, "test", "-v", "-T", "2", "--numa", "local", archive, env=machines["two nodes"]).stderr, "not two nodes")
    refuse(BREVIS, "test", "--numa", "far", archive, codes=[2])
    check(b"placement:" in succeed(BREVIS, "cpu").stdout, "cpu does not say where")
