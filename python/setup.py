"""setup.py: builds brevis._native: libbrevis with make, then the extension around it, in one shared object of the stable ABI.

The wheel brings everything: libbrevis.a is linked in, and the shared libraries that it needs beyond the C library's lie beside the extension,
each with its licence. Environment: BREVIS_ROOT, the tree that python/ belongs to, if it is not the folder above; BREVIS_BUILD, make's build
directory in that tree (default: build); BREVIS_SYSTEM_LIBS=1, bring nothing: libbrevis.so is a shared library of the system, too (for distributions,
whose flags and debug information are kept).
SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ.get("BREVIS_ROOT") or HERE.parent).resolve()
BUILD = os.environ.get("BREVIS_BUILD", "build")
BRING_LIBRARIES = not os.environ.get("BREVIS_SYSTEM_LIBS")
C_LIBRARY = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|gcc_s))\.so")
SOURCES = sorted(path.relative_to(HERE).as_posix() for path in (HERE / "native").glob("*.c"))


def version():
    try:
        return re.search(r'BRV_VERSION_STRING "(.*?)"', (ROOT / "runtime/brevis.h").read_text()).group(1)
    except FileNotFoundError:
        raise SystemExit(f"setup.py: {ROOT} is not the Brevis tree: run from a checkout, or set BREVIS_ROOT") from None


def libraries_of(extension):
    """The shared libraries that an extension needs, and these need, but for those of the C library: soname -> file."""
    text = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout
    if "not found" in text:
        raise SystemExit(f"setup.py: a library is missing:\n{text}")
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.M))
    return {name: pathlib.Path(path).resolve() for name, path in found.items() if not C_LIBRARY.match(name)}


def licence_of(library):
    """The text that comes with the package that a library is from; None where that cannot be found out."""
    for path in (library, pathlib.Path("/", *library.parts[2:]) if library.parts[1] == "usr" else library):
        owner = (
            subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True).stdout.split(":")[0]
            if shutil.which("dpkg-query")
            else ""
        )
        text = pathlib.Path("/usr/share/doc", owner or "-", "copyright")
        if text.exists():
            return text
    return None


class Build(build_ext):
    def run(self):
        library = ROOT / BUILD / ("libbrevis.a" if BRING_LIBRARIES else "libbrevis.so")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
        subprocess.run(
            ["make", "-s", "-C", str(ROOT), f"-j{os.cpu_count() or 1}", f"BUILD={BUILD}", f"{BUILD}/{library.name}"], check=True, env=env
        )
        for extension in self.extensions:
            extension.extra_objects = [str(library)]
            extension.depends = [str(library), *(str(path) for path in (HERE / "native").glob("*.h"))]
        super().run()
        if BRING_LIBRARIES:
            self.bring_libraries()

    def bring_libraries(self):
        target = pathlib.Path(self.get_ext_fullpath("brevis._native")).resolve()
        for old in target.parent.glob("lib*.so*"):
            old.unlink()
        shutil.copyfile(ROOT / "LICENSE", target.parent / "LICENSE")
        for name, library in libraries_of(target).items():
            shutil.copyfile(library, target.parent / name)
            if licence := licence_of(library):
                shutil.copyfile(licence, target.parent / f"LICENSE.{name.split('.')[0]}")
            else:
                print(f"setup.py: the licence of {library} has to be added by hand")


class Wheel(bdist_wheel):
    def get_tag(self):
        python, _, platform = super().get_tag()
        return "cp311", "abi3", platform


native = Extension(
    "brevis._native",
    SOURCES,
    include_dirs=[str(ROOT)],
    define_macros=[("Py_LIMITED_API", "0x030b0000"), ("_GNU_SOURCE", None)],
    py_limited_api=True,
    extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden", *["-O2", "-g0"] * BRING_LIBRARIES],
    libraries=["xxhash", "hwloc", "pthread"] * BRING_LIBRARIES,
    extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,--strip-debug", "-Wl,--disable-new-dtags,-rpath,$ORIGIN"] * BRING_LIBRARIES,
)

os.chdir(HERE)
version_string, scratch = version(), ROOT / BUILD / "python-build"
scratch.mkdir(parents=True, exist_ok=True)  # nothing is written into the source tree
setup(
    version=version_string,
    ext_modules=[native],
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
    options={"build": {"build_base": str(scratch)}, "egg_info": {"egg_base": str(scratch)}},
)
