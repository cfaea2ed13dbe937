#!/usr/bin/env python3
"""mount.py: archives and compressed directories mounted for real: loaders, many readers, damage, and how mounts end.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import contextlib
import errno
import hashlib
import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tap import BREVIS, MODELS, ROOT, SYNTH, Skip, Suite, check, describe, refuse, run, same, succeed

sys.path.insert(0, str(ROOT / "tests" / "cases"))
from craft import bf16_weights, checkpoint, f32_weights, noise

SMALL = 25_000_000
PATIENCE = 60       # seconds for what takes milliseconds
VENV = ROOT / "build" / "venv" / "bin" / "python"
# Prints a SHA-256 of every tensor, read from mappings of the file: the library's, and NumPy's for the types that it does not know.
TENSORS = """
import hashlib, json, numpy, sys
from safetensors import safe_open
with open(sys.argv[1], "rb") as opened:
    size = int.from_bytes(opened.read(8), "little")
    header = json.loads(opened.read(size))
mapped = numpy.memmap(sys.argv[1], dtype=numpy.uint8, mode="r")
with safe_open(sys.argv[1], framework="numpy") as file:
    for name in file.keys():
        part = file.get_slice(name)
        begin, end = (8 + size + offset for offset in header[name]["data_offsets"])
        try: data = file.get_tensor(name).tobytes()
        except (TypeError, AttributeError): data = mapped[begin:end].tobytes()
        print(name, part.get_dtype(), part.get_shape(), hashlib.sha256(data).hexdigest())
"""


def mounted(point):
    """Also true for what is broken, unlike os.path.ismount."""
    return any(line.split()[4] == os.fspath(point) for line in open("/proc/self/mountinfo"))


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, f"not within {PATIENCE} s: {what}")
        time.sleep(0.01)


class Mount:
    """In the foreground, unmounted at the end; then the process must have ended well, and told nothing unless damage is expected."""
    def __init__(self, source, scratch, *options, damaged=False):
        self.point, self.damaged = scratch / "mnt", damaged
        self.point.mkdir(exist_ok=True)
        self.argv = [BREVIS, "mount", "--foreground", *options, os.fspath(source), os.fspath(self.point)]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: mounted(self.point) or self.process.poll() is not None, "the mount")
        if self.process.poll() is not None:
            raise AssertionError(f"ended at once: exit {self.process.returncode}: {self.process.stderr.read()}")
        return self.point

    def __exit__(self, kind, *_):
        self.end(lambda: run("fusermount3", "-u", self.point), kind)

    def end(self, how, kind=None):
        how()
        try:
            self.out, self.err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            run("fusermount3", "-u", "-z", self.point)
            self.out, self.err = self.process.communicate()
            check(kind, "does not end when it is unmounted")
        if kind:
            return
        check(self.process.returncode == 0, f"exit {self.process.returncode}: {self.err}")
        check(self.damaged or self.err == b"", f"on stderr: {self.err}")
        check(not mounted(self.point), "still mounted")


def need_fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise Skip(f"/dev/fuse: {error.strerror}")
    if run("sh", "-c", "command -v fusermount3").returncode:
        raise Skip("no fusermount3 here")
    done = run(BREVIS, "mount", "/", "/nowhere")
    if b"built without" in done.stderr:
        raise Skip("brevis was built without libfuse3")


def packed(file, scratch):
    succeed(SYNTH, file, "-o", scratch / "x.safetensors.brv")
    return scratch / "x.safetensors.brv"


def sample(scratch, name="x.safetensors"):
    """Several pieces of a MiB, many tiny tensors, an empty one, a long header."""
    tensors = [(f"tiny.{i}", "F32", [i % 7], f32_weights(i % 7, seed=i)) for i in range(3000)]
    tensors += [("a", "BF16", [1000, 1500], bf16_weights(1_500_000)), ("empty", "F32", [0], b""), ("b", "U8", [3_000_001], noise(3_000_001))]
    (scratch / name).write_bytes(checkpoint(*tensors, metadata={"format": "pt"}))
    return scratch / name


def read_parts(path, wanted, seed, count):
    """Random preads by a process of its own; the first that is wrong, or None."""
    rng, nbytes = random.Random(seed), os.path.getsize(wanted)
    with open(path, "rb") as file, open(wanted, "rb") as plain:
        for _ in range(count):
            offset = rng.choice((rng.randrange(nbytes + 1), rng.randrange(4096), nbytes - rng.randrange(4096)))
            size = rng.choice((1, 4096, rng.randrange(1 << 16), rng.randrange(1 << 22)))
            found, right = os.pread(file.fileno(), size, offset), os.pread(plain.fileno(), size, offset)
            if found != right:
                return f"{size} bytes at {offset} differ: {len(found)} of {len(right)}"
    return None


def many_readers(path, wanted, count=40, readers=4):
    with concurrent.futures.ProcessPoolExecutor(readers) as pool:
        wrong = [answer for answer in pool.map(read_parts, *zip(*((path, wanted, seed, count) for seed in range(readers)))) if answer]
    check(not wrong, wrong)


def whole(suite, name, file=None):
    with suite.case(f"mount: {name}: read whole, by a loader, and by several processes in no order") as scratch:
        file = file or sample(scratch, "plain")
        archive = packed(file, scratch)
        with Mount(archive, scratch) as point:
            shown = point / "x.safetensors"
            check(os.listdir(point) == ["x.safetensors"], f"shown: {os.listdir(point)}")
            many_readers(shown, file)
            check(same(shown, file), "other bytes")
            with open(shown, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                check(hashlib.sha256(mapped).digest() == hashlib.sha256(file.read_bytes()).digest(), "other bytes by mmap")
        if not VENV.exists():
            raise Skip("the loader: no build/venv: run scripts/make-venv")
        with Mount(archive, scratch) as point:       # again, so that the loader reads and not the page cache
            through = succeed(VENV, "-c", TENSORS, point / "x.safetensors").stdout
        check(through == succeed(VENV, "-c", TENSORS, file).stdout, "the loader finds other tensors")


def attributes(suite):
    with suite.case("mount: sizes, modes, times and inodes; nothing can be changed") as scratch:
        file = sample(scratch)
        archive = packed(file, scratch)
        inodes = []
        for _ in range(2):
            with Mount(archive, scratch) as point:
                shown, from_ = (point / "x.safetensors").stat(), archive.stat()
                check(shown.st_size == file.stat().st_size and shown.st_mode == 0o100444, f"{shown}")
                check(shown.st_mtime_ns == from_.st_mtime_ns and shown.st_uid == from_.st_uid, "time or owner")
                check(point.stat().st_mode == 0o040555, f"the root's mode: {point.stat().st_mode:o}")
                inodes.append((shown.st_ino, point.stat().st_ino))
                disk = os.statvfs(point)
                check(disk.f_bfree == 0 and disk.f_blocks * disk.f_frsize >= shown.st_size, f"statvfs: {disk}")
                for what in (lambda: open(point / "new", "wb"), lambda: open(point / "x.safetensors", "r+b"), lambda: os.unlink(point / "x.safetensors"),
                             lambda: os.mkdir(point / "d"), lambda: os.truncate(point / "x.safetensors", 0), lambda: os.chmod(point / "x.safetensors", 0o777),
                             lambda: os.rename(point / "x.safetensors", point / "y")):
                    try:
                        what()
                        check(False, "a change was allowed")
                    except OSError as error:
                        check(error.errno == errno.EROFS, f"{error}")
                try:
                    check(os.listxattr(point / "x.safetensors") == [], "extended attributes")
                except OSError as error:
                    check(error.errno == errno.ENOTSUP, f"{error}")
                check(not (point / "nothing").exists(), "a name that is not there")
                with open(point / "x.safetensors", "rb") as opened:
                    check(os.pread(opened.fileno(), 10, shown.st_size) == b"" and os.pread(opened.fileno(), 10, 1 << 50) == b"", "bytes behind the end")
        check(inodes[0] == inodes[1], f"inodes: {inodes}")


def little_memory(suite):
    with suite.case("mount: a cache of next to nothing, one thread, and many readers") as scratch:
        file = sample(scratch)
        with Mount(packed(file, scratch), scratch, "-M", "1K", "-T", "1") as point:
            many_readers(point / "x.safetensors", file, readers=6)
            check(same(point / "x.safetensors", file), "other bytes")


def damage(suite):
    with suite.case("mount: a damaged chunk fails alone, and is told once") as scratch:
        file = sample(scratch)
        archive = packed(file, scratch)
        tensors = {t["name"]: t for t in json.loads(succeed(BREVIS, "list", "--json", archive).stdout)["tensors"]}
        check(tensors["b"]["archive_nbytes"] >= 3_000_000, "noise that shrank")
        broken = bytearray(archive.read_bytes())
        broken[-1_000_000] ^= 1         # in the noise: the last two thirds of the payload, which the archive ends with
        archive.write_bytes(broken)
        plain, bad = file.read_bytes(), []
        mount = Mount(archive, scratch, damaged=True)
        with mount as point, open(point / "x.safetensors", "rb") as opened:
            for offset in range(0, len(plain), 4096):
                try:
                    check(os.pread(opened.fileno(), 4096, offset) == plain[offset:offset + 4096], f"other bytes at {offset}")
                except OSError as error:
                    check(error.errno == errno.EIO, f"{error}")
                    bad.append(offset)
            damaged_at = len(plain) - 1_000_000
            check(bad and bad[0] <= damaged_at <= bad[-1] + 4096, f"fails at {bad[:1]}..{bad[-1:]}, not at {damaged_at}")
            check(bad[-1] - bad[0] <= 1 << 20, f"{bad[-1] - bad[0]} bytes fail around one damaged byte")
            try:
                (point / "x.safetensors").read_bytes()
                check(False, "read whole in spite of the damage")
            except OSError as error:
                check(error.errno == errno.EIO, f"{error}")
        check(len(mount.err.splitlines()) == 1 and b"x.safetensors.brv" in mount.err, f"on stderr: {mount.err}")


def background(suite):
    for how in ("fusermount3 -u", "SIGTERM", "SIGINT"):
        with suite.case(f"mount: in the background, until {how}") as scratch:
            file = sample(scratch)
            packed(file, scratch)
            point = scratch / "mnt"
            point.mkdir()
            done = succeed(BREVIS, "mount", "x.safetensors.brv", "mnt", cwd=scratch)       # relative: the mount must not need its directory
            try:
                check(done.stdout == b"" and done.stderr == b"", describe(done))
                check(same(point / "x.safetensors", file), "other bytes")
                process = daemon_of(point)
                if how == "fusermount3 -u":
                    succeed("fusermount3", "-u", point)
                else:
                    os.kill(process, getattr(signal, how))
                until(lambda: not mounted(point), "no longer mounted")
                until(lambda: not alive(process), "the process ended")
            finally:
                if mounted(point):
                    run("fusermount3", "-u", "-z", point)
            check(os.listdir(point) == [] and sorted(os.listdir(scratch)) == ["mnt", "x.safetensors", "x.safetensors.brv"], "something was left")


def alive(process):
    """A zombie that init has not yet fetched has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def daemon_of(point):
    """The process that was told to mount there."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"mount" in argv and (argv[-2].startswith(b"mnt") and os.path.realpath(entry / "exe") == os.path.realpath(BREVIS)) and alive(entry.name) \
                    and (entry / "cwd").resolve() == pathlib.Path("/"):
                return int(entry.name)
        except OSError:
            pass
    raise AssertionError("no such process")


def killed_readers(suite):
    with suite.case("mount: ends on SIGTERM while a file is open and mapped") as scratch:
        mount = Mount(packed(sample(scratch), scratch), scratch)
        point = mount.__enter__()
        fd = os.open(point / "x.safetensors", os.O_RDONLY)
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
            check(mapped[0] != 0, "the header's size")
            mount.end(mount.process.terminate)
        with contextlib.suppress(OSError):      # the kernel says that nobody is there any more
            os.close(fd)


def refusals(suite):
    with suite.case("mount: what cannot be mounted is refused in one line, in the background too") as scratch:
        archive, point = packed(sample(scratch), scratch), scratch / "mnt"
        point.mkdir()
        (scratch / "junk.brv").write_bytes(b"junk" * 1000)
        (scratch / "cut.brv").write_bytes(archive.read_bytes()[:-100])
        for options in ([], ["--foreground"]):
            for source, target, code in ((scratch / "none.brv", point, 5), (scratch / "junk.brv", point, 4), (scratch / "cut.brv", point, 4),
                                         (archive, scratch / "none", 5), (archive, archive, 2), ("-", point, 2), ("/dev/null", point, 4)):
                done = refuse(BREVIS, "mount", *options, source, target, codes=[code])
                check(done.stdout == b"", describe(done))
        refuse(BREVIS, "mount", archive, codes=[2])
        refuse(BREVIS, "mount", "-o", "x", archive, point, codes=[2])
        check(not mounted(point), "mounted all the same")


def directory(suite):
    with suite.case("mount: a directory of archives and other files, without a list") as scratch:
        source, deep = scratch / "ckpt", scratch / "ckpt" / "a" / "b"
        deep.mkdir(parents=True)
        (source / "empty").mkdir()
        plain = {"a/b/x.safetensors": sample(scratch), "config.json": scratch / "config", "a.b/y.safetensors": sample(scratch, "y"), "a/odd\n%name": scratch / "odd"}
        (scratch / "config").write_bytes(b"{}\n" * 100_000)
        (scratch / "odd").write_bytes(b"")
        for name, file in plain.items():
            (source / name).parent.mkdir(exist_ok=True)
            if name.endswith(".safetensors"):
                succeed(SYNTH, file, "-o", source / f"{name}.brv")
            else:
                (source / name).write_bytes(file.read_bytes())
        check_directory(source, plain, scratch, {"a", "a/b", "a.b", "empty"})
    with suite.case("mount: a compressed directory, by its list") as scratch:
        origin = scratch / "origin"
        (origin / "sub").mkdir(parents=True)
        sample(origin, "model-1.safetensors")
        (origin / "sub" / "other.safetensors").write_bytes(checkpoint(("w", "BF16", [100, 100], bf16_weights(10_000))))
        (origin / "tokenizer.json").write_bytes(b'{"a": 1}\n' * 9999)
        made = run(SYNTH, origin, "-o", scratch / "packed")
        if made.returncode:
            raise Skip(f"brevis-synth takes no directories yet: {describe(made)}")
        files = {f.relative_to(origin).as_posix(): f for f in origin.rglob("*") if f.is_file()}
        check_directory(scratch / "packed", files, scratch, {"sub"})
        (scratch / "packed" / "model-1.safetensors.brv").unlink()
        refuse(BREVIS, "mount", scratch / "packed", scratch / "mnt", codes=[5])
    with suite.case("mount: more archives than stay open") as scratch:
        source = scratch / "many"
        source.mkdir()
        plain = {}
        for i in range(30):
            file = scratch / f"{i:02}.safetensors"
            file.write_bytes(checkpoint(("w", "BF16", [300, 500], bf16_weights(150_000, seed=i % 3)), metadata={"i": str(i)}))
            succeed(SYNTH, file, "-o", source / f"{file.name}.brv")
            plain[file.name] = file
        check_directory(source, plain, scratch, set())


def check_directory(source, plain, scratch, folders):
    with Mount(source, scratch) as point:
        found = {p.relative_to(point).as_posix(): p for p in point.rglob("*")}
        check(found.keys() == plain.keys() | folders, f"shown: {sorted(found)}")
        check(all(found[name].is_dir() for name in folders), "a directory that is none")
        for name, file in plain.items():
            check(same(found[name], file) and found[name].stat().st_size == file.stat().st_size, f"{name}: other bytes")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            check(all(pool.map(lambda name: same(found[name], plain[name]), plain)), "other bytes, side by side")


def changed(suite):
    with suite.case("mount: an archive that is replaced under the mount fails, and gives no other bytes") as scratch:
        source = scratch / "many"
        source.mkdir()
        for i in range(12):
            (scratch / "f").write_bytes(checkpoint(("w", "BF16", [300, 500], bf16_weights(150_000, seed=i))))
            succeed(SYNTH, scratch / "f", "-o", source / f"{i:02}.safetensors.brv")
        with Mount(source, scratch) as point:
            os.replace(source / "11.safetensors.brv", source / "00.safetensors.brv")
            for i in range(1, 11):
                (point / f"{i:02}.safetensors").read_bytes()       # closes what was open
            try:
                (point / "00.safetensors").read_bytes()
                check(False, "read")
            except OSError as error:
                check(error.errno == errno.EIO, f"{error}")


def main():
    suite = Suite()
    try:
        need_fuse()
    except Skip as skip:
        with suite.case("mount"):
            raise skip
        return suite.end()
    for test in (attributes, little_memory, damage, background, killed_readers, refusals, directory, changed):
        test(suite)
    whole(suite, "a sample")
    for file in sorted(MODELS.glob("*.safetensors")):
        if file.stat().st_size <= SMALL:
            whole(suite, file.stem, file)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
