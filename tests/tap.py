"""tap.py: what the Python tests share: results in the Test Anything Protocol (as criterion prints them), and running commands.

    suite = Suite()
    with suite.case("name"):
        check(condition, "what was expected")       # or raise Skip("why")
    sys.exit(suite.end())

The directory of the commands is $BREVIS_BUILD, by default build. SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = (ROOT / os.environ.get("BREVIS_BUILD", "build")).resolve()
SYNTH, BREVIS = str(BUILD / "brevis-synth"), str(BUILD / "brevis")
MODELS = ROOT / "build" / "models"
SANITIZER_EXIT = 99     # scripts/run-tests asks for it
TIMEOUT = 180       # seconds; generous, for sanitizers on a busy machine. A hang is a failure, not a slow test.


class Skip(Exception):
    pass


def check(condition, text):
    if not condition:
        raise AssertionError(text)


class Suite:
    def __init__(self):
        self.failed = False
        if missing := [path for path in (SYNTH, BREVIS) if not os.access(path, os.X_OK)]:
            raise SystemExit(f"not there: {' '.join(missing)}; run make build, or set BREVIS_BUILD")

    @contextlib.contextmanager
    def case(self, name):
        """One test. Its value is a fresh directory, removed afterwards."""
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="brevis-test."))
        scratch.chmod(0o755)
        verdict, note, detail = "ok", "", []
        try:
            yield scratch
        except Skip as skip:
            note = f" # SKIP {skip}"
        except subprocess.TimeoutExpired as error:
            verdict, detail = "not ok", [f"no end after {error.timeout:.0f} s: {' '.join(map(os.fsdecode, error.cmd))}"]
        except AssertionError as error:
            verdict, detail = "not ok", str(error).splitlines()
        except Exception:
            verdict, detail = "not ok", traceback.format_exc().splitlines()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self.failed |= verdict != "ok"
        print(f"{verdict} - {name}{note}", *("  " + line for line in detail), sep="\n", flush=True)

    @contextlib.contextmanager
    def scratch(self):
        """A directory for what several tests share."""
        with tempfile.TemporaryDirectory(prefix="brevis-test.") as folder:
            yield pathlib.Path(folder)

    def end(self):
        return int(self.failed)


def run(*argv, env=None, **options):
    """A command without a terminal, to its end."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("timeout", TIMEOUT)
    done = subprocess.run([os.fspath(a) for a in argv], env={**os.environ, **(env or {})}, **options)
    check(done.returncode != SANITIZER_EXIT, f"a sanitizer's report: {describe(done, 4000)}")
    return done


def describe(done, limit=400):
    text = (done.stderr or b"").decode("utf-8", "replace").strip()
    return f"{' '.join(os.fsdecode(a) for a in done.args)}: exit {done.returncode}: {text[:limit]}"


def succeed(*argv, **options):
    done = run(*argv, **options)
    check(done.returncode == 0, describe(done))
    return done


def refuse(*argv, codes=range(1, 7), **options):
    """The command must say no in its own words: an exit code of the contract (not a signal, not a crash) and one line on stderr."""
    done = run(*argv, **options)
    check(done.returncode in codes, f"{describe(done)} (expected exit {'/'.join(map(str, codes))})")
    check(done.stderr is None or len(done.stderr.strip().splitlines()) == 1, f"not one line on stderr: {describe(done)}")
    return done


def same(a, b):
    """Equal bytes, compared in pieces."""
    with open(a, "rb") as x, open(b, "rb") as y:
        while True:
            p, q = x.read(1 << 20), y.read(1 << 20)
            if p != q:
                return False
            if not p:
                return True
