#!/usr/bin/env python3
"""packages.py: what is given to others: the release tarball, built without a network and used; the Debian packages, checked by lintian and used.

They are made of the tree as it is, committed or not. SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
from tap import ROOT, Skip, Suite, check, run, same, succeed

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "cases")]
import interface
from craft import bf16_weights, checkpoint

VERSION = re.search(r'BRV_VERSION_STRING "(.*?)"', (ROOT / "runtime/brevis.h").read_text()).group(1)
LIMIT = 900         # seconds for a build
BINARY = {"brevis", "libbrevis0", "libbrevis-dev", "python3-brevis"}
TOOLS = ("dpkg-buildpackage", "dh", "dh_python3", "lintian")
UNSTATED = ("MAKE", "MFLAGS", "CFLAGS", "CPPFLAGS", "LDFLAGS", "BREVIS_", "PYTHON")

# Package -> files that it has to have; {} stands for the multiarch triplet.
CONTENTS = {
    "brevis": ["usr/bin/brevis", "usr/bin/brevis-synth", "usr/share/man/man1/brevis.1.gz", "usr/share/man/man1/brevis-synth.1.gz",
               "usr/share/bash-completion/completions/brevis", "usr/share/bash-completion/completions/brevis-synth",
               "usr/share/zsh/vendor-completions/_brevis", "usr/share/brevis/batch/brevis-batch", "usr/share/doc/brevis/README.md.gz", "usr/share/doc/brevis/docs/FORMAT.md.gz"],
    "libbrevis0": ["usr/lib/{}/libbrevis.so.0", f"usr/lib/{{}}/libbrevis.so.{VERSION}"],
    "libbrevis-dev": ["usr/include/brevis.h", "usr/lib/{}/libbrevis.a", "usr/lib/{}/libbrevis.so", "usr/lib/{}/pkgconfig/brevis.pc",
                      "usr/share/man/man3/libbrevis.3.gz", "usr/share/doc/libbrevis-dev/examples/load_checkpoint.c"],
    "python3-brevis": ["usr/lib/python3/dist-packages/brevis/__init__.py", "usr/lib/python3/dist-packages/brevis/_native.abi3.so",
                       f"usr/lib/python3/dist-packages/brevis-{VERSION}.egg-info/PKG-INFO"],
}
DEPENDS = {"brevis": ["libfuse3-3", "libhwloc15", "libjansson4", "libxxhash0"], "libbrevis0": ["libhwloc15", "libxxhash0"],
           "libbrevis-dev": ["libbrevis0 (= ", "libhwloc-dev", "libxxhash-dev"], "python3-brevis": ["libbrevis0 (>= ", "python3:any (>= 3.11", "python3-numpy"]}


def clean_environment(**more):
    return {key: value for key, value in os.environ.items() if not key.startswith(UNSTATED)} | more


def quiet(argv, **options):
    """A command that neither make nor the flags of this build reach; its output only if it fails."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT,
                          **{"env": clean_environment(), **options})
    text = done.stdout.decode(errors="replace")
    check(done.returncode == 0, f"{' '.join(map(str, argv))}: exit {done.returncode}\n{text[-3000:]}")
    return text


def snapshot(scratch):
    """A commit of the tree as it is, which no branch names."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        raise Skip("this is no git repository, or there is no git; releases are made of one")
    env = {"GIT_INDEX_FILE": str(scratch / "index"), **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "tests"), ("EMAIL", "tests@localhost"), ("DATE", "2026-12-01T00:00:00Z"))}}
    git = lambda *argv: succeed("git", "-C", ROOT, *argv, env=env).stdout.decode().strip()
    git("read-tree", "HEAD")
    git("add", "--all")
    return git("commit-tree", "-m", "The tree as it is.", git("write-tree"))


def reproducible(scratch, commit):
    """Another place, another mask, another zone: the same bytes."""
    first, second = (scratch / name / f"brevis-{VERSION}.tar.xz" for name in ("a", "b"))
    quiet([ROOT / "scripts/make-dist", commit, first.parent])
    quiet(["sh", "-c", 'umask 077; TZ=Asia/Tokyo exec "$0" "$@"', ROOT / "scripts/make-dist", commit, second.parent])
    check(same(first, second), "two tarballs of one commit differ")
    with tarfile.open(first) as tar:
        members = tar.getmembers()
    names = [member.name for member in members]
    check(all(name.startswith(f"brevis-{VERSION}/") or name == f"brevis-{VERSION}" for name in names), "not all in one directory")
    check({(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "root", "root", members[0].mtime)}, "owners or times differ")
    check(not [m.name for m in members if m.mode & 0o22], "others may write")
    inside = {name.partition("/")[2] for name in names}
    check({"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "runtime/brevis.h", "docs/FORMAT.md"} <= inside, "files are missing")
    check(not [name for name in inside if name.split("/")[0] in ("build", "debian", ".git", ".gitattributes")], "has what no release has")


def offline():
    """A command before another that takes the network from it."""
    for argv in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and run(*argv, "true").returncode == 0:
            return argv
    nowhere = "http://127.0.0.1:9"
    return ["env", f"http_proxy={nowhere}", f"https_proxy={nowhere}", f"HTTPS_PROXY={nowhere}"]


def unpacked_release(scratch, commit):
    quiet([ROOT / "scripts/make-dist", commit, scratch])
    quiet(["tar", "-C", scratch, "-xf", scratch / f"brevis-{VERSION}.tar.xz"])
    tree = scratch / f"brevis-{VERSION}"
    quiet([*offline(), "make", "-s", "-C", tree, "-j2", "CFLAGS=-O1", "build"])     # -O1: whether it builds and works is asked here
    for rule in ("check-includes", "check-docs"):
        quiet([tree / "scripts" / rule])
    (scratch / "x.safetensors").write_bytes(checkpoint(("w", "BF16", [100, 100], bf16_weights(10_000))))
    succeed(tree / "build/brevis-synth", scratch / "x.safetensors")
    succeed(tree / "build/brevis", "unpack", scratch / "x.brv", "-o", scratch / "y.safetensors")
    check(same(scratch / "x.safetensors", scratch / "y.safetensors"), "another file comes back")
    check(succeed(tree / "build/brevis", "--version").stdout.decode().split()[1] == VERSION, "another version")


def debian_agrees():
    if not (ROOT / "debian").exists():
        raise Skip("debian/ is in the repository, not in releases")
    symbols = re.findall(r"^ (\w+)@Base ", (ROOT / "debian/libbrevis0.symbols").read_text(), re.M)
    check(set(symbols) == set(interface.functions()), f"libbrevis0.symbols or brevis.h alone has {set(symbols) ^ set(interface.functions())}")
    newest = re.match(r"brevis \((.*)-\w+\)", (ROOT / "debian/changelog").read_text()).group(1)
    check(newest == VERSION, f"the changelog is at {newest}, brevis.h at {VERSION}")


def need_tools():
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        raise Skip(f"{', '.join(missing)} not installed (scripts/install-deps full)")
    done = run("dpkg-checkbuilddeps", "debian/control", cwd=ROOT)
    if done.returncode:
        raise Skip(done.stderr.decode().strip().splitlines()[-1])


def flags_are_kept(log):
    """Every file of ours is compiled with Debian's flags, and none for a processor of its own but through its kernel set."""
    lines = re.findall(r"^gcc .* -c .*$|^\S*gcc .*\.c -o .*$", log, re.M)
    check(len(lines) > 100, f"{len(lines)} files compiled")
    for flag in ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-ffile-prefix-map=", "-Werror=format-security"):
        check(not (bare := [line for line in lines if flag not in line]), f"without {flag}: {bare[:1]}")
    tuned = [line for line in lines if re.search(r" -m(arch|tune|avx|bmi|cpu)", line) and " -DKN_SET=avx" not in line]
    check(not tuned, f"for some processors only: {tuned[:1]}")
    check(re.search(r" -mavx512vbmi2? .*-DKN_SET=avx512", log) or "x86_64" not in log, "the sets have lost their flags")


def hardened(root, triplet):
    for name in ("usr/bin/brevis", "usr/bin/brevis-synth", f"usr/lib/{triplet}/libbrevis.so.0", "usr/lib/python3/dist-packages/brevis/_native.abi3.so"):
        text = succeed("readelf", "-W", "-h", "-d", "-l", root / name).stdout.decode()
        check("GNU_RELRO" in text and re.search(r"BIND_NOW|\bNOW\b", text), f"{name}: no full RELRO")
        check("Type:                              DYN" in text, f"{name}: not position-independent")
        check(not re.search(r"R(UN)?PATH", text), f"{name}: looks for libraries in places of its own")
    needed = succeed("readelf", "-d", root / "usr/lib/python3/dist-packages/brevis/_native.abi3.so").stdout.decode()
    check("[libbrevis.so.0]" in needed, "the Python module has a library of its own")


def contents(folder, root, triplet):
    found = {path.name.split("_")[0]: path for path in folder.glob("*.deb") if "-dbgsym_" not in path.name}
    check(set(found) == BINARY, f"packages: {sorted(found)}")
    for name, path in found.items():
        files = {line.split()[5].removeprefix("./") for line in succeed("dpkg-deb", "-c", path).stdout.decode().splitlines()}
        succeed("dpkg-deb", "-x", path, root)
        wanted = {file.format(triplet) for file in CONTENTS[name]}
        check(wanted <= files, f"{name} has no {sorted(wanted - files)}")
        depends = succeed("dpkg-deb", "-f", path, "Depends").stdout.decode()
        check(not (lost := [what for what in DEPENDS[name] if what not in depends]), f"{name} does not depend on {lost}: {depends}")


def used(root, triplet, which):
    library = root / "usr/lib" / triplet
    env = clean_environment(PATH=f"{root}/usr/bin:{os.environ['PATH']}", LD_LIBRARY_PATH=str(library), PYTHONDONTWRITEBYTECODE="1",
                            PYTHONPATH=f"{root}/usr/lib/python3/dist-packages", PKG_CONFIG_PATH=f"{library}/pkgconfig",
                            PKG_CONFIG_SYSROOT_DIR=str(root), BREVIS_EXAMPLES=f"{root}/usr/share/doc/libbrevis-dev/examples")
    for line in quiet([ROOT / "debian/tests" / which], env=env, cwd=root).splitlines():
        print(f"  # {line}")


def debian(suite, scratch, commit):
    built = False
    with suite.case("packages: Debian packages build from the tarball, without a network"):
        need_tools()
        quiet([*offline(), ROOT / "scripts/make-deb", commit, scratch], env=clean_environment(DEB_BUILD_OPTIONS="brevis-quick"))
        built = True
    if not built:
        return
    folder, root = scratch / "deb", scratch / "root"
    root.mkdir()
    triplet = succeed("dpkg-architecture", "-qDEB_HOST_MULTIARCH").stdout.decode().strip()
    with suite.case("packages: lintian has neither errors nor warnings"):
        text = quiet(["lintian", "--allow-root", "--fail-on", "error,warning", next(folder.glob("*.changes"))])
        check(not text.strip(), text)
    with suite.case("packages: Debian's flags reach every file, and each set keeps its own"):
        flags_are_kept((folder / "build.log").read_text())
    with suite.case("packages: each has its files and names what it needs"):
        contents(folder, root, triplet)
    with suite.case("packages: what is in them is hardened"):
        hardened(root, triplet)
    for which in ("roundtrip", "examples"):
        with suite.case(f"packages: debian/tests/{which} with what is in them"):
            used(root, triplet, which)


def main():
    suite = Suite()
    with suite.case("packages: debian/ agrees with brevis.h"):
        debian_agrees()
    with suite.case("packages: scratch") as scratch:
        commit = None
        with suite.case("packages: a commit of the tree as it is"):
            commit = snapshot(scratch)
        if commit:
            with suite.case("packages: a release is the same bytes whenever it is made") as folder:
                reproducible(folder, commit)
            with suite.case("packages: a release builds without a network, and works") as folder:
                unpacked_release(folder, commit)
            debian(suite, scratch, commit)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
