#!/usr/bin/env python3
"""completion.py: what Tab offers in bash and zsh: by tables of lines, and typed into a real shell.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pty
import re
import select
import shutil
import sys
import time

sys.dont_write_bytecode = True
from tap import BUILD, ROOT, SYNTH, Skip, Suite, check, succeed

sys.path[:0] = [str(ROOT / "tests/cases"), str(ROOT / "scripts")]
import interface
from craft import bf16_weights, checkpoint

BASH, ZSH = ROOT / "completions/brevis.bash", ROOT / "completions/_brevis"
PATH = f"{BUILD}:{os.environ['PATH']}"
FUNCTION = {"brevis": "_brevis", "brevis-synth": "_brevis_synth"}

# Names that a shell would do something with; an archive may come from anybody.
HOSTILE = ["$(touch ran)", "`touch ran`", "a b", "it's", "a;b", "-x"]
NAMES = ["embed.weight", "layers.0.norm", "layers.0.mlp/up", "layers.1.norm"]

ARCHIVES = {"model.brv", "packed.brv", "dir"}

# Line up to the cursor -> what is offered, exactly. In the directory that ground() makes.
LINES = {
    "brevis ": set(interface.commands()),
    "brevis un": {"unpack"},
    "brevis -T 4 -q un": {"unpack"},
    "brevis --threads=4 un": {"unpack"},
    "brevis nothing ": set(),
    "brevis cpu ": set(),
    "brevis unpack ": ARCHIVES,
    "brevis unpack m": {"model.brv"},
    "brevis unpack -- ": ARCHIVES,
    "brevis unpack dir/": {"dir/in.brv"},
    "brevis unpack model.brv ": set(),
    "brevis -f unpack -o out.safetensors mo": {"model.brv"},
    "brevis unpack --output=out.safetensors mo": {"model.brv"},
    "brevis unpack model.brv -o x": {"x.safetensors"},
    "brevis unpack model.brv --output=x": {"x.safetensors"},
    "brevis unpack model.brv --output=": {*ARCHIVES, "x.safetensors", "learned.json"},
    "brevis test model.brv p": {"packed.brv"},
    "brevis list ": ARCHIVES,
    "brevis show ": ARCHIVES,
    "brevis bench mod": {"model.brv"},
    "brevis mount mod": {"model.brv"},
    "brevis mount model.brv ": {"dir", "packed.brv"},      # a directory of archives is one, too
    "brevis show model.brv ": set(NAMES),
    "brevis show packed.brv layers.0": {"layers.0.norm", "layers.0.mlp/up"},
    "brevis cat model.brv layers.0.m": {"layers.0.mlp/up"},
    "brevis cat ./model.brv e": {"embed.weight"},
    "brevis cat 'model.brv' e": {"embed.weight"},
    "brevis cat dir layers.1": {"layers.1.norm"},
    "brevis cat missing.brv e": set(),
    "brevis cat x.safetensors e": set(),
    "brevis cat model.brv embed.weight ": set(),
    "brevis -M ": {"256M", "512M", "1G", "2G", "4G", "8G", "16G"},
    "brevis unpack -M 2": {"256M", "2G"},
    "brevis --memory=2": {"256M", "2G"},
    "brevis unpack --numa ": {"none", "local", "interleave"},
    "brevis bench --repeat 9": {"9"},
    "brevis bench --metrics le": {"learned.json"},
    "brevis unpack --no": {"--no-progress"},
    "brevis unpack -- -": set(),
    "brevis-synth ": {"x.safetensors", "dir", "packed.brv"},
    "brevis-synth --favor ": {"size", "balanced", "speed"},
    "brevis-synth --favor=s": {"size", "speed"},
    "brevis-synth --favor=": {"size", "balanced", "speed"},
    "brevis-synth --favor speed x": {"x.safetensors"},
    "brevis-synth --favor=speed x": {"x.safetensors"},
    "brevis-synth --target a": {"avx512", "avx2"},
    "brevis-synth --prior l": {"learned.json"},
    "brevis-synth --save-prior=l": {"learned.json"},
    "brevis-synth --shard 1/": set(),
    "brevis-synth x.safetensors -o mo": {"model.brv"},
    "brevis-synth x.safetensors ": set(),
    "brevis-synth --max": {"--max-nodes", "--max-depth"},
}

def ground(scratch):
    """The files that the table speaks of."""
    tensors = [(name, "BF16", [10], bf16_weights(10)) for name in NAMES + HOSTILE]
    (scratch / "x.safetensors").write_bytes(checkpoint(*tensors))
    (scratch / "learned.json").write_text("{}")
    for folder in ("dir", "parts"):
        (scratch / folder).mkdir()
    (scratch / "parts/x.safetensors").write_bytes(checkpoint(*tensors))
    for source, target in (("x.safetensors", "model.brv"), ("x.safetensors", "dir/in.brv"), ("parts", "packed.brv")):
        succeed(SYNTH, "-q", scratch / source, "-o", scratch / target)
    shutil.rmtree(scratch / "parts")


def cut(line):
    """Words as bash cuts them for a completion: at spaces, and "=" and ":" are words of their own."""
    return [part for word in line.split(" ") for part in (re.findall(r"[=:]|[^=:]+", word) or [""])]


def offered(line, scratch):
    words = cut(line)
    script = f'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {FUNCTION[words[0]]}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = succeed("bash", "--norc", "-c", script, "bash", BASH, *words, cwd=scratch, env={"PATH": PATH})
    check(not done.stderr, done.stderr.decode())
    found = done.stdout.decode().split()
    check(len(found) == len(set(found)), f"offered twice: {found}")
    return set(found)


def forms(command, which=lambda value: True):
    """Of all options, or of those with a value."""
    rows = [(name, letter) for name, (letter, value) in interface.options(command).items() if which(value)]
    return {f"--{name}" for name, _ in rows} | {f"-{letter}" for _, letter in rows if letter}


def valued(command):
    return forms(command, bool)


def table_errors(scratch):
    for line, wanted in (LINES | {f"{command} -": forms(command) for command in FUNCTION}).items():
        if (found := offered(line, scratch)) != wanted:
            yield f"{line!r}: {sorted(found)}, expected {sorted(wanted)}"


def zsh_options(command):
    """The options in the function of _brevis."""
    function = {"brevis": "_brevis_main", "brevis-synth": "_brevis_synth"}[command]
    body = re.search(rf"^{function}\(\) {{\n(.*?)^}}", ZSH.read_text(), re.S | re.M).group(1)
    return {(name.rstrip("+="), name[-1] in "+=") for line in body.splitlines() if "[" in line
            for name in re.findall(r"(?<=[{,'])(-(?:\w\b|-[\w-]+)[+=]?)(?=[,}\[])", line)}


class Shell:
    """A shell on a terminal, in which lines are typed."""

    def __init__(self, argv, cwd, env):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "dumb", "PATH": PATH, "HOME": str(cwd), **env})

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text, seconds=60):
        """Reads on until the text has come, and forgets all up to its end."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            check(select.select([self.fd], [], [], max(0, end - time.monotonic()))[0], f"expected {text!r}, found {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the shell ended; expected {text!r}, found {self.seen!r}")
        self.seen = self.seen.split(text, 1)[1]

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


# What is typed, and what the line then is.
TYPED = {"brevis unp\t": "brevis unpack ", "brevis unpack mo\t": "brevis unpack model.brv",
         "brevis show model.brv emb\t": "brevis show model.brv embed.weight", "brevis unpack --no\t": "brevis unpack --no-progress",
         "brevis-synth --favor bal\t": "brevis-synth --favor balanced", "brevis-synth --favor=bal\t": "brevis-synth --favor=balanced",
         "brevis-synth x.s\t": "brevis-synth x.safetensors", "brevis list my\t": "brevis list my\\ own.brv ",
         "brevis list 'my o\t": "brevis list 'my own.brv' ", "brevis show my\\ own.brv emb\t": "own.brv embed.weight ",
         "brevis show ~/model.brv emb\t": "~/model.brv embed.weight ", "brevis cat 'my own.brv' emb\t[0:2]": "'my own.brv' embed.weight[0:2]",
         "brevis cat model.brv 'emb\t": "model.brv 'embed.weight"}


def typed(argv, setup, scratch):
    shell = Shell(argv, scratch, {"PS1": "ready> ", "ZDOTDIR": str(scratch)})
    try:
        shell.send(setup + "; echo set''up\n")
        shell.wait_for("setup\r\n")
        shell.wait_for("ready> ")
        for keys, line in TYPED.items():
            shell.send(keys)
            shell.wait_for(line)
            shell.send("\x15")          # Ctrl-U: forget the line
    finally:
        shell.close()


def main():
    suite = Suite()
    with suite.case("bash: what is offered for each line") as scratch:
        ground(scratch)
        errors = list(table_errors(scratch))
        check(not errors, "\n".join(errors))
        check(not (scratch / "ran").exists(), "a tensor's name was run as a command")
    with suite.case("bash: options with values are those of the commands") as scratch:
        for command, name in (("brevis", "_brevis_valued"), ("brevis-synth", "_brevis_synth_valued")):
            found = set(succeed("bash", "--norc", "-c", f'source "{BASH}"; echo ${name}').stdout.decode().split())
            check(found == valued(command), f"{name}: differs in {sorted(found ^ valued(command))}")
    with suite.case("bash: typed into a shell") as scratch:
        ground(scratch)
        shutil.copy(scratch / "model.brv", scratch / "my own.brv")
        typed(["bash", "--norc", "--noprofile", "-i"], f"PS1='ready> '; source {BASH}", scratch)
    with suite.case("zsh: options and commands are those of the commands") as scratch:
        for command in FUNCTION:
            known = {(form, form in valued(command)) for form in forms(command)}
            found = zsh_options(command)
            check(found == known, f"{command}: differs in {sorted(found ^ known)}")
        found = re.findall(r"^\t\t'(\w+):", re.search(r"^_brevis_commands.*?^}", ZSH.read_text(), re.S | re.M).group(), re.M)
        check(sorted(found) == sorted(interface.commands()), f"commands: {found}")
    with suite.case("zsh: syntax") as scratch:
        if not shutil.which("zsh"):
            raise Skip("zsh is not installed")
        succeed("zsh", "-n", ZSH)
    with suite.case("zsh: typed into a shell") as scratch:
        if not shutil.which("zsh"):
            raise Skip("zsh is not installed")
        ground(scratch)
        shutil.copy(scratch / "model.brv", scratch / "my own.brv")
        typed(["zsh", "-f", "-i"], f"PS1='ready> '; fpath=({ZSH.parent} $fpath); autoload -Uz compinit && compinit -u -D", scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
