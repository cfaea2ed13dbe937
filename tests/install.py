#!/usr/bin/env python3
"""install.py: what `make install` gives: a program of somebody else's builds with it, shared and static, and sees no name but brv_.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
from tap import BUILD, ROOT, SYNTH, Suite, check, run, succeed

sys.path.insert(0, str(ROOT / "tests" / "cases"))
from craft import bf16_weights, checkpoint

PROGRAM = r"""
#include <brevis.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	brv_archive *archive;
	brv_error error;
	brv_tensor tensor;
	if (argc != 2 || brv_open_path(argv[1], NULL, &archive, &error) != BRV_SUCCESS || brv_get_tensor(archive, 0, &tensor, &error) != BRV_SUCCESS)
		return 1;
	void *bytes = malloc(tensor.data_nbytes);
	if (brv_decode_tensor(archive, 0, bytes, tensor.data_nbytes, NULL, &error) != BRV_SUCCESS)
		return 2;
	fwrite(bytes, 1, tensor.data_nbytes, stdout);
	free(bytes);
	brv_close(archive);
	return 0;
}
"""


def foreign(listing):
    """Defined names that are not ours to give out."""
    names = [line.split()[-1] for line in listing.splitlines() if re.match(r"[0-9a-f]+ [A-TV-Z] ", line)]
    check(names, "no names at all")
    return [name for name in names if not name.startswith("brv_")]


def main():
    suite = Suite()
    with suite.case("the shared library gives out brv_ names only"):
        found = foreign(succeed("nm", "-D", "--defined-only", BUILD / "libbrevis.so").stdout.decode())
        check(not found, f"also: {found[:10]}")
    with suite.case("the static library gives out brv_ names only"):
        found = foreign(succeed("nm", "-g", "--defined-only", BUILD / "libbrevis.a").stdout.decode())
        check(not found, f"also: {found[:10]}")
    with suite.case("the soname has the major version"):
        version = re.search(r'BRV_VERSION_STRING "(\d+)', (ROOT / "runtime/brevis.h").read_text()).group(1)
        check(f"[libbrevis.so.{version}]" in succeed("readelf", "-d", BUILD / "libbrevis.so").stdout.decode(), "another soname")
    with suite.case("the library needs xxhash, hwloc and the C library, no more; the command, to mount, libfuse3"):
        for file, more in (("brevis", {"libfuse3"}), ("libbrevis.so", set())):
            needed = re.findall(r"\(NEEDED\).*\[(.*?)\.so", succeed("readelf", "-d", BUILD / file).stdout.decode())
            check(set(needed) <= {"libxxhash", "libhwloc", "libc", "ld-linux-x86-64", "ld-linux-aarch64"} | more, f"{file} needs {needed}")
    with suite.case("a program builds and runs with what make install puts in place") as scratch:
        root = scratch / "root"
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
        subprocess.run(["make", "-s", "-C", str(ROOT), f"BUILD={BUILD.relative_to(ROOT)}", f"DESTDIR={root}", "PREFIX=/usr", "install"], check=True, env=env)
        weights = bf16_weights(10_000)
        (scratch / "x.safetensors").write_bytes(checkpoint(("w", "BF16", [100, 100], weights)))
        succeed(root / "usr/bin/brevis-synth", scratch / "x.safetensors")
        (scratch / "program.c").write_text(PROGRAM)
        pkg = {"PKG_CONFIG_PATH": str(root / "usr/lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(root)}
        for how, options in (("shared", []), ("static", ["--static"])):
            flags = succeed("pkg-config", *options, "--cflags", "--libs", "brevis", env=pkg).stdout.decode().split()
            if how == "static":
                flags = [f"{root}/usr/lib/libbrevis.a" if flag == "-lbrevis" else flag for flag in flags]
            succeed("gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", scratch / how, scratch / "program.c", *flags)
            done = succeed(scratch / how, scratch / "x.brv", env={"LD_LIBRARY_PATH": str(root / "usr/lib")})
            check(done.stdout == weights, f"{how}: other bytes")
        for source in (ROOT / "examples").iterdir():
            (scratch / source.name).write_bytes(source.read_bytes())
        succeed("make", "-s", "-C", scratch, "CFLAGS=-O2 -Wall -Wextra -Werror", env={**pkg, "MAKEFLAGS": ""})
        header = succeed(scratch / "load_checkpoint", scratch / "x.brv", env={"LD_LIBRARY_PATH": str(root / "usr/lib")}).stdout.decode()
        check(header.split() == [f"{zlib.adler32(weights):08x}", "20000", "bytes", "BF16", "[100,100]", "w"], f"load_checkpoint prints {header}")
        linked = succeed("readelf", "-d", scratch / "shared").stdout.decode()
        check("[libbrevis.so.0]" in linked, "not linked with the shared library")
        text = (ROOT / "man/libbrevis.3").read_text()
        (scratch / "manual.c").write_text(re.search(r"^#include <brevis\.h>\n.*?(?=^\.Ed)", text, re.S | re.M).group().replace("\\e", "\\"))
        succeed("gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", scratch / "manual", scratch / "manual.c", *flags)
        for page in ("man1/brevis.1", "man1/brevis-synth.1", "man3/libbrevis.3"):
            check((root / "usr/share/man" / page).read_text().startswith(".\\\" "), f"no page {page}")
        for command in ("brevis", "brevis-synth"):
            file = root / "usr/share/bash-completion/completions" / command
            wanted = succeed("bash", "--norc", "-c", f"source {file}; complete -p {command}").stdout.decode()
            check(wanted.startswith("complete -F _brevis"), f"no completion of {command} in bash")
        check((root / "usr/share/zsh/site-functions/_brevis").read_text().startswith("#compdef brevis brevis-synth\n"), "no completion in zsh")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
