#!/usr/bin/env python3
"""directories.py: checkpoint directories: there and back, again after a kill, in parts, and every way to refuse one.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")]
from craft import bf16_weights, checkpoint, noise
from files import SHARDS, sharded
from tap import BREVIS, SYNTH, Suite, check, describe, refuse, run, same, succeed

MANIFEST = "brevis.manifest"


def tree(root):
    """Relative path -> bytes, None for a directory; links are followed."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(root), followlinks=True):
        for name in folders:
            found[os.path.relpath(os.path.join(folder, name), os.fsencode(root))] = None
        for name in files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, os.fsencode(root))] = open(path, "rb").read()
    return found


def same_tree(a, b):
    x, y = tree(a), tree(b)
    check(x.keys() == y.keys(), f"other names: {sorted(x.keys() ^ y.keys())}")
    check(x == y, f"other bytes: {[name for name in x if x[name] != y[name]]}")


def rich(model):
    """A directory with everything in it that is legal."""
    sharded(model)
    (model / "sub" / "deeper").mkdir(parents=True)
    (model / "empty").mkdir()
    (model / "sub" / "vae.safetensors").write_bytes(checkpoint(("v", "F32", [100], noise(400))))
    (model / "sub" / "deeper" / "notes 100%.txt").write_text("n\n")
    (model / "sub-marine").write_text("sorts between sub and sub/")
    (model / "nothing").write_bytes(b"")
    pathlib.Path(os.fsdecode(os.fsencode(model) + b"/odd\n\xff%41")).write_text("odd")
    (model / "link.json").symlink_to("config.json")
    (model / "outside.safetensors").symlink_to(model.parent / "blob")
    (model.parent / "blob").write_bytes(checkpoint(("b", "BF16", [300], bf16_weights(300))))
    (model / "elsewhere").symlink_to(model.parent / "other")
    (model.parent / "other").mkdir()
    (model.parent / "other" / "x").write_text("x")


def big(model, count=4, tensors=6):
    """Shards that take a while."""
    model.mkdir()
    for i in range(count):
        entries = [(f"l{i}.{j}", "BF16", [256, 512], bf16_weights(1 << 17, 10 * i + j)) for j in range(tensors - i)]
        (model / f"model-{i + 1:05}-of-{count:05}.safetensors").write_bytes(checkpoint(*entries))
    (model / "config.json").write_text("{}")


def packed(model, out, *options):
    return succeed(SYNTH, "-q", *options, model, "-o", out)


def there_and_back(scratch):
    rich(scratch / "m")
    before = tree(scratch / "m")
    packed(scratch / "m", scratch / "c")
    check(tree(scratch / "m") == before, "the input was changed")
    succeed(BREVIS, "test", scratch / "c")
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b")
    same_tree(scratch / "m", scratch / "b")
    stored = tree(scratch / "c")
    check(b"model-00001-of-00002.safetensors.brv" in stored and b"config.json" in stored and b"sub/vae.safetensors.brv" in stored, f"{stored.keys()}")
    check(not any(name.endswith(b".tmp") for name in stored), "temporaries are left")


def default_names(scratch):
    sharded(scratch / "m")
    succeed(SYNTH, "-q", f"{scratch}/m//")
    shutil.move(scratch / "m", scratch / "first")
    succeed(BREVIS, "unpack", f"{scratch}/m.brv/")
    same_tree(scratch / "first", scratch / "m")
    refuse(BREVIS, "unpack", scratch / "m.brv", codes=[2])      # it is there
    shutil.move(scratch / "m.brv", scratch / "c")
    refuse(BREVIS, "unpack", scratch / "c", codes=[2])          # no name to guess
    refuse(BREVIS, "unpack", scratch / "c", "-o", "-", codes=[2])
    refuse(SYNTH, scratch / "first", "-o", "-", codes=[2])
    refuse(SYNTH, ".", codes=[2], cwd=scratch / "first")


def one_prior_for_all(scratch):
    big(scratch / "m", 3)
    packed(scratch / "m", scratch / "a", "--save-prior", scratch / "prior")
    packed(scratch / "m", scratch / "b", "--prior", scratch / "prior")
    succeed(SYNTH, "--learn-only", "--save-prior", scratch / "alone", scratch / "m")
    check(same(scratch / "alone", scratch / "prior"), "learned alone, another prior")
    check(sorted(os.listdir(scratch)) == ["a", "alone", "b", "m", "prior"], f"--learn-only left {os.listdir(scratch)}")
    succeed(SYNTH, "--learn-only", "--save-prior", scratch / "one", scratch / "m" / "model-00001-of-00003.safetensors")
    for wrong in ([], ["--save-prior", "x", "-o", scratch / "x"], ["--save-prior", "x", "--prior", scratch / "prior"],
                  ["--save-prior", "x", "--shard", "1/2"]):
        refuse(SYNTH, "--learn-only", *wrong, scratch / "m", codes=[2])
    refuse(SYNTH, "--learn-only", "--save-prior", scratch / "no" / "prior", scratch / "m", codes=[5])
    (scratch / "bad").mkdir()
    (scratch / "bad" / "x.safetensors").write_text("no checkpoint")
    refuse(SYNTH, "--learn-only", "--save-prior", scratch / "none", scratch / "bad", codes=[3])
    check(not (scratch / "none").exists(), "a prior of a bad checkpoint")
    packed(scratch / "m", scratch / "c", "-T", "1")
    same_tree(scratch / "a", scratch / "b")
    same_tree(scratch / "a", scratch / "c")


def in_parts(scratch):
    big(scratch / "m", 5)
    packed(scratch / "m", scratch / "whole")
    for jobs in (1, 2, 3, 7):
        out = scratch / f"parts{jobs}"
        for job in range(1, jobs + 1):
            if job > 1 and jobs < 6:
                refuse(BREVIS, "test", out, codes=[4])
            packed(scratch / "m", out, "--shard", f"{job}/{jobs}")
        same_tree(out, scratch / "whole")
        succeed(BREVIS, "test", "-q", out)
    zero_based = scratch / "zero"
    for job in range(2):
        packed(scratch / "m", zero_based, "--shard", f"{job}/2")
    same_tree(zero_based, scratch / "whole")
    side_by_side = [subprocess.Popen([SYNTH, "-q", "--shard", f"{job}/3", scratch / "m", "-o", scratch / "side"]) for job in (1, 2, 3)]
    check([process.wait() for process in side_by_side] == [0, 0, 0], "jobs side by side failed")
    same_tree(scratch / "side", scratch / "whole")
    for wrong in ("4/3", "1", "1/0", "/2", "1/", "-1/2", "1/2/3", "a/b"):
        refuse(SYNTH, "--shard", wrong, scratch / "m", "-o", scratch / "x", codes=[2])
    refuse(SYNTH, "--shard", "1/2", scratch / "m" / "model-00001-of-00005.safetensors", "-o", scratch / "x", codes=[2])


def again(scratch):
    sharded(scratch / "m")
    packed(scratch / "m", scratch / "c")
    times = {path: path.stat().st_mtime_ns for path in (scratch / "c").iterdir()}
    packed(scratch / "m", scratch / "c", "--favor", "size")
    check(times == {path: path.stat().st_mtime_ns for path in (scratch / "c").iterdir()}, "what was done was done again")
    done = succeed(SYNTH, "--json", scratch / "m", "-o", scratch / "c")
    summary = json.loads(done.stdout)
    check((summary["archives"], summary["kept"], summary["other_files"]) == (0, 2, 3), f"{summary}")
    # One archive lost, one file lost, one archive that stands for something else.
    (scratch / "c" / f"{SHARDS[0]}.brv").unlink()
    (scratch / "c" / "config.json").unlink()
    packed(scratch / "m", scratch / "c")
    succeed(BREVIS, "test", "-q", scratch / "c")
    shutil.copy(scratch / "c" / f"{SHARDS[0]}.brv", scratch / "c" / f"{SHARDS[1]}.brv")
    refuse(SYNTH, scratch / "m", "-o", scratch / "c", codes=[2])
    packed(scratch / "m", scratch / "c", "-f")
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b")
    same_tree(scratch / "m", scratch / "b")


def input_changed(scratch):
    """Same names, sizes and times, another number in a tensor: the old archive must not stay."""
    sharded(scratch / "m")
    packed(scratch / "m", scratch / "c")
    path = scratch / "m" / SHARDS[0]
    data, stat = bytearray(path.read_bytes()), path.stat()
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    refuse(SYNTH, scratch / "m", "-o", scratch / "c", codes=[2])
    packed(scratch / "m", scratch / "c", "-f")
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b")
    same_tree(scratch / "m", scratch / "b")
    (scratch / "m" / "config.json").write_text("another")
    refuse(SYNTH, scratch / "m", "-o", scratch / "c", codes=[2])
    packed(scratch / "m", scratch / "c", "-f")
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b", "-f")
    same_tree(scratch / "m", scratch / "b")


def killed(scratch):
    """After any kill the next run completes the directory, to the same bytes, and keeps what was complete."""
    big(scratch / "m")
    packed(scratch / "m", scratch / "whole")
    out = scratch / "c"
    for step in range(8):
        process = subprocess.Popen([SYNTH, "-q", "-T", "1", scratch / "m", "-o", out])
        wanted, end = step // 2, time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            if len(list(out.glob("*.brv"))) >= wanted if out.exists() else False:
                break
        if step % 2:
            time.sleep(0.01)
        process.kill() if step % 3 else process.terminate()
        process.wait()
        archives = {path: path.stat().st_mtime_ns for path in out.glob("*.brv")}
        packed(scratch / "m", out)
        same_tree(out, scratch / "whole")
        check(all(path.stat().st_mtime_ns == when for path, when in archives.items()), "a finished archive was made again")
        shutil.rmtree(out)


def unpacking(folder, number):
    """Whether shard `number` is being written, or was, below a temporary name."""
    try:
        return any(folder.glob(f".b.brevis-*/*{number}-of*"))
    except FileNotFoundError:           # renamed while it was looked at
        return False


def killed_while_unpacking(scratch):
    big(scratch / "m")
    packed(scratch / "m", scratch / "c")
    (scratch / "o").mkdir()
    for step in range(6):
        process = subprocess.Popen([BREVIS, "unpack", "-T", "1", scratch / "c", "-o", scratch / "o" / "b"])
        end = time.monotonic() + 60
        while process.poll() is None and not unpacking(scratch / "o", step) and time.monotonic() < end:
            pass
        kill = step % 2
        process.kill() if kill else process.terminate()
        code = process.wait()
        names = os.listdir(scratch / "o")
        if code == 0:
            check(names == ["b"], f"left {names}")
        elif not kill:
            check(code == -signal.SIGTERM and not names, f"SIGTERM: exit {code}, left {names}")
        check(code == 0 or "b" not in names, "half a directory under the final name")
        shutil.rmtree(scratch / "o" / "b", ignore_errors=True)
        succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "o" / "b")
        check(os.listdir(scratch / "o") == ["b"], f"the next run left {os.listdir(scratch / 'o')}")
        same_tree(scratch / "m", scratch / "o" / "b")
        shutil.rmtree(scratch / "o" / "b")


def edit_index(model, edit):
    path = model / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    edit(index)
    path.write_text(json.dumps(index))


def loop(model):
    (model / "sub").mkdir()
    (model / "sub" / "up").symlink_to("..")


# What is done to a good directory, the exit code, and what the message has to name.
REFUSED = {
    "a shard is missing": (lambda m: (m / SHARDS[1]).unlink(), 3, SHARDS[1]),
    "a shard is cut": (lambda m: (m / SHARDS[1]).write_bytes((m / SHARDS[1]).read_bytes()[:-1]), 3, SHARDS[1]),
    "a shard is a pointer of git-lfs": (lambda m: (m / SHARDS[0]).write_text("version https://git-lfs.github.com/spec/v1\n"), 3, SHARDS[0]),
    "the index is no JSON": (lambda m: (m / "model.safetensors.index.json").write_text("{"), 3, "model.safetensors.index.json"),
    "the index is a list": (lambda m: (m / "model.safetensors.index.json").write_text("[]"), 3, "weight_map"),
    "the index has no map": (lambda m: edit_index(m, lambda i: i.pop("weight_map")), 3, "weight_map"),
    "a name in the index is a number": (lambda m: edit_index(m, lambda i: i["weight_map"].update(x=3)), 3, "weight_map"),
    "the index leads out": (lambda m: edit_index(m, lambda i: i["weight_map"].update(x="../m/" + SHARDS[0])), 3, "weight_map"),
    "the index names a tensor that is not there": (lambda m: edit_index(m, lambda i: i["weight_map"].update(lost=SHARDS[0])), 3, "lost"),
    "no shard at all": (lambda m: [path.unlink() for path in m.iterdir()], 3, ".safetensors"),
    "compressed already": (lambda m: (m / MANIFEST).write_text("x"), 3, MANIFEST),
    "a name is taken": (lambda m: (m / f"{SHARDS[0]}.brv").write_text("x"), 3, SHARDS[0]),
    "a pipe in it": (lambda m: os.mkfifo(m / "pipe"), 3, "pipe"),
    "a link to nothing": (lambda m: (m / "gone").symlink_to("nowhere"), 3, "gone"),
    "links in a circle": (lambda m: (m / "round").symlink_to("round"), 3, "round"),
    "a link to a directory above": (loop, 3, "up"),
}


def refusal(row):
    change, code, words = REFUSED[row]

    def case(scratch):
        sharded(scratch / "m")
        change(scratch / "m")
        done = refuse(SYNTH, scratch / "m", "-o", scratch / "c", codes=[code])
        check(words.encode() in done.stderr, f"does not say {words}: {describe(done)}")
        check(not (scratch / "c").exists(), "refused, but wrote something")
    return case


def bad_outputs(scratch):
    sharded(scratch / "m")
    refuse(SYNTH, scratch / "m", "-o", scratch / "m" / "c", codes=[2])
    refuse(SYNTH, scratch / "m", "-o", scratch / "m", codes=[2])
    refuse(SYNTH, scratch / "m", "-o", scratch / "no" / "c", codes=[5])
    (scratch / "file").write_text("x")
    refuse(SYNTH, scratch / "m", "-o", scratch / "file")
    (scratch / "full").mkdir()
    (scratch / "full" / "mine").write_text("x")
    refuse(SYNTH, scratch / "m", "-o", scratch / "full", codes=[2])
    check(os.listdir(scratch / "full") == ["mine"], "refused, but wrote something")
    packed(scratch / "m", scratch / "full", "-f")
    check((scratch / "full" / "mine").read_text() == "x", "a file of the user's is gone")
    succeed(BREVIS, "unpack", scratch / "full", "-o", scratch / "b")    # what is not on the list does not belong to it
    same_tree(scratch / "m", scratch / "b")
    refuse(BREVIS, "unpack", scratch / "full", "-o", scratch / "file", codes=[2])
    (scratch / "b" / "mine").write_text("y")
    (scratch / "b" / "config.json").write_text("changed")
    refuse(BREVIS, "unpack", scratch / "full", "-o", scratch / "b", codes=[2])
    succeed(BREVIS, "unpack", scratch / "full", "-o", scratch / "b", "-f")
    check((scratch / "b" / "mine").read_text() == "y", "-f took a file that is not on the list")
    (scratch / "b" / "mine").unlink()
    same_tree(scratch / "m", scratch / "b")


def nothing_of_the_user_is_overwritten(scratch):
    sharded(scratch / "m")
    before = tree(scratch / "m")
    source = scratch / "m" / SHARDS[0]
    for prior in (source, scratch / "m" / "config.json", scratch / "m" / "new.json"):
        for options in ([], ["-f"], ["--learn-only"]):
            out = [] if options == ["--learn-only"] else ["-o", scratch / "c"]
            refuse(SYNTH, *options, "--save-prior", prior, scratch / "m", *out, codes=[2])
    refuse(SYNTH, "--save-prior", source, source, "-o", scratch / "a.brv", codes=[2])
    check(tree(scratch / "m") == before, "the input was changed")
    (scratch / "mine").write_text("x")
    refuse(SYNTH, "--save-prior", scratch / "mine", source, "-o", scratch / "a.brv", codes=[2])
    check((scratch / "mine").read_text() == "x", "a file that is no prior was overwritten")
    for _ in range(2):                      # a prior is
        succeed(SYNTH, "-q", "-f", "--save-prior", scratch / "prior", source, "-o", scratch / "a.brv")
    archive = (scratch / "a.brv").read_bytes()
    refuse(BREVIS, "bench", "-q", "--repeat", "1", "--metrics", scratch / "a.brv", scratch / "a.brv", codes=[2])
    check((scratch / "a.brv").read_bytes() == archive, "the archive was overwritten")
    packed(scratch / "m", scratch / "c")
    refuse(BREVIS, "unpack", "-f", scratch / "c", "-o", scratch / "c", codes=[2])
    # What looks like a temporary of ours, but is none.
    lookalikes = [scratch / ".b.brevis-mine.tmp", scratch / ".b.brevis-1-0123.tmp"]
    for path in lookalikes:
        path.mkdir()
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b")
    check(all(path.is_dir() for path in lookalikes), "a directory of somebody else was removed")


def into_an_empty_directory(scratch):
    """It stays the same directory, with its rights, and is empty again if something goes wrong."""
    sharded(scratch / "m")
    packed(scratch / "m", scratch / "c")
    out = scratch / "out"
    out.mkdir(mode=0o700)
    (scratch / "link").symlink_to("out")
    inode = out.stat().st_ino
    (scratch / "c" / "tokenizer.json").rename(scratch / "lost")
    refuse(BREVIS, "unpack", scratch / "c", "-o", out, codes=[4])
    check(list(out.iterdir()) == [], f"left {list(out.iterdir())}")
    (scratch / "lost").rename(scratch / "c" / "tokenizer.json")
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "link")
    same_tree(scratch / "m", out)
    check(out.stat().st_ino == inode and out.stat().st_mode & 0o777 == 0o700, "another directory, or other rights")
    shutil.rmtree(out)
    out.mkdir()
    succeed(BREVIS, "unpack", scratch / "c", "-o", ".", cwd=out)
    same_tree(scratch / "m", out)


def changed_on_the_way(scratch):
    """A shard that is exchanged while others are compressed is refused, and not part of a directory that then is damaged."""
    big(scratch / "m", 3)
    last = scratch / "m" / "model-00003-of-00003.safetensors"
    process = subprocess.Popen([SYNTH, "-q", "-T", "1", scratch / "m", "-o", scratch / "c"], stderr=subprocess.PIPE)
    while process.poll() is None and not list(scratch.glob("c/*.brv")):
        pass
    (scratch / "new").write_bytes(checkpoint(("x", "U8", [10], noise(10))))
    (scratch / "new").rename(last)
    _, said = process.communicate()
    check(process.returncode in (0, 3), f"exit {process.returncode}: {said}")
    test = run(BREVIS, "test", "-q", scratch / "c")
    check(test.returncode == (0 if process.returncode == 0 else 4), f"compressed: exit {process.returncode}, but {describe(test)}")


def keep_going(scratch):
    sharded(scratch / "m")
    packed(scratch / "m", scratch / "c")
    (scratch / "c" / f"{SHARDS[0]}.brv").unlink()
    os.mkfifo(scratch / "c" / f"{SHARDS[0]}.brv")
    (scratch / "c" / f"{SHARDS[1]}.brv").write_bytes(b"x")
    (scratch / "c" / "tokenizer.json").unlink()
    done = run(BREVIS, "test", "--keep-going", scratch / "c")
    lines = done.stderr.decode().splitlines()
    check(done.returncode == 4 and len(lines) == 4, describe(done))
    check(all(any(name in line for line in lines) for name in (*SHARDS, "tokenizer.json", "3 of 5")), f"{lines}")
    for command in (["test", scratch / "c"], ["list", scratch / "c"], ["unpack", scratch / "c", "-o", scratch / "b"]):
        refuse(BREVIS, *command, codes=[4])
    refuse(SYNTH, "-f", scratch / "m", "-o", scratch / "c", codes=[2])      # where the pipe is


def damage(scratch):
    """What is lost, exchanged or changed in a compressed directory is named, and nothing is unpacked."""
    sharded(scratch / "m")
    (scratch / "m" / SHARDS[1]).write_bytes(checkpoint(("layers.1.w0", "BF16", [32], bf16_weights(32)), ("layers.1.w1", "U8", [1], b"1"),
                                                       ("layers.1.w2", "U8", [1], b"2")))
    packed(scratch / "m", scratch / "good")
    archive = f"{SHARDS[0]}.brv"
    changes = {
        archive: [lambda p: p.unlink(), lambda p: shutil.copy(p.parent / f"{SHARDS[1]}.brv", p), lambda p: p.write_bytes(p.read_bytes()[:-1])],
        "config.json": [lambda p: p.unlink(), lambda p: p.write_text(p.read_text()[:-1]), lambda p: p.write_text(p.read_text().swapcase())],
        MANIFEST: [lambda p: p.write_bytes(p.read_bytes()[:-1]), lambda p: p.write_bytes(b"")],
    }
    for name, rows in changes.items():
        for change in rows:
            shutil.copytree(scratch / "good", scratch / "c")
            change(scratch / "c" / name)
            for command in (["test", scratch / "c"], ["unpack", scratch / "c", "-o", scratch / "b"]):
                done = refuse(BREVIS, *command, codes=[4])
                check(name.encode() in done.stderr, f"does not name {name}: {describe(done)}")
            check(sorted(os.listdir(scratch)) == ["c", "good", "m"], f"left {os.listdir(scratch)}")
            shutil.rmtree(scratch / "c")


def without_manifest(scratch):
    """A directory of archives that somebody put together."""
    (scratch / "c").mkdir()
    (scratch / "x.safetensors").write_bytes(checkpoint(("x", "BF16", [64], bf16_weights(64))))
    succeed(SYNTH, "-q", scratch / "x.safetensors", "-o", scratch / "c" / "x.brv")
    (scratch / "c" / "config.json").write_text("{}")
    done = succeed(BREVIS, "test", scratch / "c")
    check(b"no " + MANIFEST.encode() in done.stdout, describe(done))
    succeed(BREVIS, "unpack", scratch / "c", "-o", scratch / "b")
    check(sorted(os.listdir(scratch / "b")) == ["config.json", "x.safetensors"] and same(scratch / "b" / "x.safetensors", scratch / "x.safetensors"),
          f"{os.listdir(scratch / 'b')}")
    shutil.copy(scratch / "c" / "x.brv", scratch / "c" / "x.safetensors.brv")
    refuse(BREVIS, "test", scratch / "c", codes=[2])            # both stand for x.safetensors
    (scratch / "none").mkdir()
    for command in (["test"], ["list"], ["unpack", "-o", scratch / "n"]):
        refuse(BREVIS, command[0], scratch / "none", *command[1:], codes=[2])


def commands(scratch):
    sharded(scratch / "m")
    packed(scratch / "m", scratch / "c")
    listing = json.loads(succeed(BREVIS, "list", "--json", scratch / "c").stdout)
    names = [tensor["name"] for archive in listing["archives"] for tensor in archive["tensors"]]
    check(sorted(names) == [f"layers.{i}.w{j}" for i in range(2) for j in range(3)], f"{names}")
    check(b"layers.1.w2" in succeed(BREVIS, "list", scratch / "c").stdout, "list")
    check(b"lit" in succeed(BREVIS, "show", scratch / "c", "layers.1.w2").stdout, "show")
    rows = succeed(BREVIS, "cat", scratch / "c", "layers.1.w2[3:5]").stdout
    check(rows == bf16_weights(4096, 12)[3 * 128:5 * 128], "cat gives other rows")
    refuse(BREVIS, "cat", scratch / "c", "layers.7.w0", codes=[2])
    check(succeed(SYNTH, "--explain", "layers.1.w2", scratch / "m").stdout, "nothing explained")
    refuse(SYNTH, "--explain", "layers.7.w2", scratch / "m", codes=[2])


def main():
    suite = Suite()
    cases = [there_and_back, default_names, one_prior_for_all, in_parts, again, input_changed, killed, killed_while_unpacking, bad_outputs, nothing_of_the_user_is_overwritten,
             into_an_empty_directory, changed_on_the_way, keep_going, damage,
             without_manifest, commands]
    for name, case in [(case.__name__.replace("_", "-"), case) for case in cases] + [(f"refuses: {row}", refusal(row)) for row in REFUSED]:
        with suite.case(name) as scratch:
            case(scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
