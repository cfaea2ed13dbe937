"""interface.py: what a user can name, read out of the sources: options, commands, environment, exit codes, and the declarations of brevis.h.

The manual pages (scripts/check-manual) and the completions (tests/completion.py) are compared with it. SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {"brevis": "runtime/*.c", "brevis-synth": "synth/*.c"}
MAIN = {"brevis": "runtime/brevis_main.c", "brevis-synth": "synth/synth_main.c"}
LIBRARY = [path for path in (ROOT / "runtime").glob("*.c") if not re.match(r"cli|cmd_|brevis_main", path.name)]
SHARED = [path for folder in ("common", "kernels") for path in (ROOT / folder).rglob("*.c")]


def texts(paths):
    return "\n".join(path.read_text() for path in sorted(paths))


def options(command):
    """Long name -> its letter or None, whether it takes a value: the rows of the tables for getopt_long."""
    rows = re.findall(r"""\{ "([\w-]+)", (required|no)_argument, NULL, (?:'(\w)'|\w+) \}""", texts(ROOT.glob(SOURCES[command])))
    return {name: (letter or None, value == "required") for name, value, letter in rows}


def help_options(command):
    """Every option that the text of -h names: lines of string literals that begin with one."""
    lines = re.findall(r'"( {2,}-[^"]*)"', (ROOT / MAIN[command]).read_text())
    return {name for line in lines for name in re.findall(r"(?<![\w-])--?(\w[\w-]*)", line)}


def commands():
    return re.findall(r'^\t\{ "(\w+)", "[^"]*", "[^"]*", \d', (ROOT / MAIN["brevis"]).read_text(), re.M)


def exit_codes(command):
    line = re.search(r'[Ee]xit(?: codes)?: (0 done.*?)(?:\\n)?"', (ROOT / MAIN[command]).read_text()).group(1)
    return set(re.findall(r"\d+", line))


def environment(paths):
    return set(re.findall(r'getenv\("(\w+)"\)', texts(paths)))


def header():
    """brevis.h without comments."""
    return re.sub(r"/\*.*?\*/", "", (ROOT / "runtime/brevis.h").read_text(), flags=re.S)


def functions():
    """Name -> declaration, in one form of spaces."""
    found = re.findall(r"^BRV_API\s+([^;()]*?)(\w+)\(([^;]*)\);", header(), re.M)
    return {name: declaration(result, name, arguments.split(",")) for result, name, arguments in found}


def declaration(result, name, arguments):
    return f"{' '.join(result.split())} {name}({', '.join(' '.join(a.split()) for a in arguments)})"


def structs():
    """Name -> names of its members, for those whose members are public."""
    members = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header(), re.S):
        names = set()
        for part in filter(None, map(str.strip, body.split(";"))):
            if pointer := re.search(r"\(\*(\w+)\)\(", part):
                names.add(pointer.group(1))
            else:
                names |= {re.sub(r"\[.*", "", word).split()[-1].lstrip("*") for word in part.split(",")}
        members[name] = names
    return members


def types():
    return set(re.findall(r"^typedef [^;{]*?(\w+);", header(), re.M)) | set(re.findall(r"^\} (\w+);", header(), re.M)) | \
        set(re.findall(r"^typedef \w+ \(\*(\w+)\)\(", header(), re.M))


def constants():
    """Value of an enum -> the exit code that brevis.h has in brackets, or None."""
    bodies = re.findall(r"typedef enum \w+ \{(.*?)\n\}", (ROOT / "runtime/brevis.h").read_text(), re.S)
    return {name: code or None for body in bodies for name, code in re.findall(r"^\t(BRV_\w+) = \d+,?\s*/\* (?:\[(\d+)\])?", body, re.M)}


def macros():
    return set(re.findall(r"^#define (BRV_\w+)", header(), re.M))
