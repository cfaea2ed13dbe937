#!/usr/bin/env python3
"""batch.py: a directory compressed by many jobs: the stages by hand, and on a real Slurm of one machine with tasks lost in every way.

The second half is skipped where Slurm is not installed or cannot start. SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")]
import kubernetes_job
from craft import bf16_weights, checkpoint
from directories import big, same_tree
from files import SHARDS, sharded
from tap import BREVIS, BUILD, ROOT, SYNTH, Skip, Suite, check, describe, refuse, run, succeed

BATCH = ROOT / "synth/batch"
STAGE, SUBMIT = BATCH / "brevis-stage", BATCH / "brevis-batch"
NODE = ROOT / "scripts/slurm-one-node"
CANNOT = 77
SLOW = ("--favor", "size", "--budget", "400")     # so that there is time to end a part in its middle
ENVIRONMENT = {"BREVIS_BIN": str(BUILD), "BREVIS_THREADS": "1"}


def stage(scratch, name, *options, check_code=0, **variables):
    done = run(STAGE, name, scratch / "m", scratch / "c", *options, env={**ENVIRONMENT, **variables})
    check(done.returncode == check_code, f"{describe(done)} (expected exit {check_code})")
    return done


def summary_of(scratch):
    return json.loads((scratch / "c.batch" / "summary.json").read_bytes())


def reports(scratch):
    return [json.loads(path.read_bytes()) for path in sorted((scratch / "c.batch").glob("part-*.json"))]


def adds_up(scratch, parts, reported=None):
    """The summary against the directories themselves and against what the parts said."""
    total, said = summary_of(scratch), reports(scratch)
    models, archives = list((scratch / "m").rglob("*.safetensors")), list((scratch / "c").rglob("*.brv"))
    check(total["complete"] is True and total["archives"] == len(models) == len(archives), f"{total}")
    check(total["input_bytes"] == sum(path.stat().st_size for path in models), f"input_bytes: {total}")
    check(total["output_bytes"] == sum(path.stat().st_size for path in archives), f"output_bytes: {total}")
    check((total["parts"], total["parts_reported"]) == (parts, len(said)) and len(said) == (parts if reported is None else reported), f"parts: {total}")
    for key, name in (("archives_made", "archives"), ("archives_kept", "kept"), ("expansions", "expansions")):
        if not total["archives_completed"] or key != "expansions":
            check(total[key] == sum(report[name] for report in said), f"{key}: {total}")
    if len(said) == parts:
        check(total["archives_made"] + total["archives_kept"] == total["archives"], f"parts overlap: {total}")
    if total["archives_made"] == total["archives"]:
        check(sum(kind["tensors"] for kind in total["by_dtype"].values()) == total["tensors"], f"by_dtype: {total}")
    check(not list((scratch / "c").rglob("*.tmp")), "temporaries are left")
    return total


def whole(scratch, *options):
    """What one process makes of it."""
    succeed(SYNTH, "-q", "-T", "1", *options, scratch / "m", "-o", scratch / "whole")


# ---- the stages by hand

ARRAY = {"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_STEP": "1"}
FROM_0, FROM_1 = {**ARRAY, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "2"}, {**ARRAY, "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "3"}
# Variables, and the part that they mean, or None for a refusal.
NUMBERS = [
    ({**FROM_1, "SLURM_ARRAY_TASK_ID": "1"}, "1-of-3"), ({**FROM_1, "SLURM_ARRAY_TASK_ID": "3"}, "3-of-3"),
    ({**FROM_0, "SLURM_ARRAY_TASK_ID": "0"}, "1-of-3"), ({**FROM_0, "SLURM_ARRAY_TASK_ID": "2"}, "3-of-3"),
    ({**FROM_0, "SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MAX": "4", "SLURM_ARRAY_TASK_STEP": "2"}, "3-of-3"),
    ({**FROM_1, "SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MAX": "5"}, None),
    ({**FROM_1, "SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MAX": "5", "BREVIS_PARTS": "8"}, "5-of-8"),
    ({"JOB_COMPLETION_INDEX": "0", "BREVIS_PARTS": "2"}, "0-of-2"), ({"JOB_COMPLETION_INDEX": "1", "BREVIS_PARTS": "2"}, "1-of-2"),
    ({"BREVIS_PART": "2", "BREVIS_PARTS": "2", "JOB_COMPLETION_INDEX": "1"}, "2-of-2"),
    ({"JOB_COMPLETION_INDEX": "3", "BREVIS_PARTS": "2"}, None), ({"JOB_COMPLETION_INDEX": "1"}, None), ({"BREVIS_PARTS": "2"}, None),
    ({"BREVIS_PART": "x", "BREVIS_PARTS": "2"}, None), ({"BREVIS_PART": "0", "BREVIS_PARTS": "0"}, None),
    ({"BREVIS_PART": "-1", "BREVIS_PARTS": "2"}, None), ({"BREVIS_PART": "1", "BREVIS_PARTS": "2/3"}, None),
]


def numbers(scratch):
    sharded(scratch / "m")
    stage(scratch, "learn")
    for variables, part in NUMBERS:
        done = stage(scratch, "part", check_code=0 if part else 2, **variables)
        found = [path.name for path in (scratch / "c.batch").glob("part-*.json")]
        check(found == ([f"part-{part}.json"] if part else []), f"{variables}: {found}")
        check(part or len(done.stderr.splitlines()) == 1, f"{variables}: not one line: {describe(done)}")
        for name in found:
            (scratch / "c.batch" / name).unlink()


def by_hand(scratch):
    big(scratch / "m", 3)
    whole(scratch)
    for parts in (1, 3, 5):
        stage(scratch, "learn")
        for part in range(parts):
            stage(scratch, "part", BREVIS_PARTS=str(parts), BREVIS_PART=str(part))
        done = stage(scratch, "finish", BREVIS_PARTS=str(parts))
        check(json.loads(done.stdout) == adds_up(scratch, parts), "another summary on stdout")
        same_tree(scratch / "c", scratch / "whole")
        shutil.rmtree(scratch / "c")


def lost_part(scratch):
    big(scratch / "m", 3)
    whole(scratch)
    stage(scratch, "learn")
    for part in (1, 3):
        stage(scratch, "part", BREVIS_PARTS="3", BREVIS_PART=str(part))
    stage(scratch, "finish", BREVIS_PARTS="3")
    total = adds_up(scratch, 3, reported=2)
    check((total["archives_made"], total["archives_completed"]) == (2, 1), f"{total}")
    same_tree(scratch / "c", scratch / "whole")
    # Once more: everything is kept, and the summary is of this batch.
    stage(scratch, "learn")
    check(not reports(scratch) and not (scratch / "c.batch" / "summary.json").exists(), "what the batch before said is still there")
    for part in (1, 2, 3):
        stage(scratch, "part", BREVIS_PARTS="3", BREVIS_PART=str(part))
    stage(scratch, "finish", BREVIS_PARTS="3")
    check(adds_up(scratch, 3)["archives_kept"] == 3, f"{summary_of(scratch)}")
    # A file that is lost after the parts were done.
    (scratch / "c" / "config.json").unlink()
    stage(scratch, "finish", BREVIS_PARTS="3")
    same_tree(scratch / "c", scratch / "whole")


def stopped(scratch):
    """SIGTERM: passed on, nothing half done is left, what was done stays; a part killed outright harms nothing either."""
    big(scratch / "m")
    whole(scratch, *SLOW)
    stage(scratch, "learn", *SLOW)
    for kill in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen([STAGE, "part", scratch / "m", scratch / "c", *SLOW], stderr=subprocess.PIPE,
                                   env={**os.environ, **ENVIRONMENT, "BREVIS_PART": "1", "BREVIS_PARTS": "1", "BREVIS_ON_STOP": f"echo stopped >'{scratch}/hook'"})
        wait_for(lambda: list((scratch / "c").glob("*.brv")), "the first archive")
        process.send_signal(kill)
        if kill == signal.SIGKILL:      # which leaves its brevis-synth behind
            for pid in processes("brevis-synth", scratch):
                os.kill(pid, signal.SIGKILL)
        text = process.communicate(timeout=60)[1]
        check(process.returncode == (143 if kill == signal.SIGTERM else -kill), f"exit {process.returncode}: {text}")
        wait_for(lambda: not processes("brevis-synth", scratch), "the end of brevis-synth")
        check(kill == signal.SIGKILL or not list((scratch / "c").glob(".*.tmp")), "a temporary is left")
        check((scratch / "hook").exists(), "the hook did not run")
        check(not reports(scratch), "an unfinished part has reported")
        made = {path: path.stat().st_mtime_ns for path in (scratch / "c").glob("*.brv")}
        check(len(made) < 4, "too late: all archives are there")
        stage(scratch, "part", *SLOW, BREVIS_PARTS="1", BREVIS_PART="1")
        check(all(path.stat().st_mtime_ns == when for path, when in made.items()), "a finished archive was made again")
        stage(scratch, "finish", *SLOW, BREVIS_PARTS="1")
        check(adds_up(scratch, 1)["archives_kept"] == len(made), f"{summary_of(scratch)}")
        same_tree(scratch / "c", scratch / "whole")
        shutil.rmtree(scratch / "c")
        (scratch / "c.batch" / "part-1-of-1.json").unlink()


def failed(scratch, code, word, **variables):
    done = stage(scratch, "finish", check_code=code, BREVIS_PARTS="2", **variables)
    total = summary_of(scratch)
    check(total["complete"] is False and total["exit"] == code and word in total["error"], f"{total}")
    check(b"NOT complete" in done.stderr and word.encode() in done.stderr and not done.stdout, describe(done))


def no_false_success(scratch):
    sharded(scratch / "m")
    path = scratch / "m" / SHARDS[1]
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    check(SHARDS[1].encode() in stage(scratch, "learn", check_code=3).stderr, "learn does not name the shard")
    stage(scratch, "part", check_code=2, BREVIS_PARTS="2", BREVIS_PART="1")
    failed(scratch, 1, "learn")
    # It becomes invalid after learning.
    path.write_bytes(good)
    stage(scratch, "learn")
    path.write_bytes(good[:-1])
    for part in "12":
        stage(scratch, "part", check_code=3, BREVIS_PARTS="2", BREVIS_PART=part)
    failed(scratch, 3, SHARDS[1])
    # An archive is damaged between its part and the end: not overwritten unasked.
    path.write_bytes(good)
    stage(scratch, "learn")
    for part in "12":
        stage(scratch, "part", BREVIS_PARTS="2", BREVIS_PART=part)
    archive = scratch / "c" / f"{SHARDS[0]}.brv"
    archive.write_bytes(archive.read_bytes()[:-1])
    failed(scratch, 2, archive.name)
    archive.unlink()
    stage(scratch, "finish", BREVIS_PARTS="2")
    # The output is that of another input, whole in itself, and no part has run.
    (scratch / "m" / "config.json").write_text("another")
    stage(scratch, "learn")
    failed(scratch, 2, "c")
    for wrong in (["learn"], ["learn", scratch / "m"], ["learn", scratch / "none", scratch / "c"], ["look", scratch / "m", scratch / "c"], []):
        refuse(STAGE, *wrong, codes=[2], env=ENVIRONMENT)
    refuse(STAGE, "learn", scratch / "m", scratch / "c", codes=[1], env={"BREVIS_BIN": str(scratch)})


def odd_names(scratch):
    for name in ('a b "q" \\ %41 $x', "-q", "x=y", "größe", "line\nfeed"):
        folder = scratch / "in" / name
        folder.mkdir(parents=True)
        sharded(folder / name)
        for words in (["learn"], ["part"], ["finish"]):
            done = run(STAGE, *words, name, f"{name}.out", env={**ENVIRONMENT, "BREVIS_PARTS": "1", "BREVIS_PART": "1"}, cwd=folder)
            check(done.returncode == 0, f"{name}: {describe(done)}")
        total = json.loads(done.stdout)
        check(total["archives"] == 2 and total["output"].endswith(f"{name}.out".replace("\n", "?")), f"{total}")


# ---- on a cluster


def processes(name, word):
    """Ids of processes of that name with this word in their arguments."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            argv = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[0].endswith(name.encode()) and os.fsencode(str(word)) in b"\0".join(argv):
            found.append(int(path.name))
    return found


def wait_for(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what} does not come")
        time.sleep(0.05)


class Cluster:
    def __init__(self, folder):
        self.folder, self.why = folder, ""
        done = run(NODE, "start", folder)
        if done.returncode:
            self.why = done.stderr.decode().strip().splitlines()[-1] if done.returncode == CANNOT else describe(done)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def stop(self):
        run(NODE, "stop", self.folder)

    def submit(self, scratch, *options):
        """-> numbers of the three jobs."""
        done = succeed(SUBMIT, scratch / "m", "-o", scratch / "c", *options, env=ENVIRONMENT)
        found = re.fullmatch(r"learn (\d+)\npart (\d+)\nfinish (\d+)\n", done.stdout.decode())
        check(found, f"it printed {done.stdout}")
        return found.groups()

    def state(self, job):
        text = run("scontrol", "-o", "show", "job", job).stdout.decode()
        return re.findall(r"JobState=(\w+)", text)

    def finished(self, job):
        """Waits for its end. What was queued again has to wait for two minutes, so that nothing of it is alive: some seconds are enough here."""
        since = {}

        def over():
            for waiting in run("squeue", "-h", "-t", "PENDING", "-o", "%i %r").stdout.decode().splitlines():
                if waiting.endswith("BeginTime") and time.monotonic() - since.setdefault(waiting, time.monotonic()) > 5:
                    run("scontrol", "update", f"jobid={waiting.split()[0]}", "starttime=now")
            return all(state not in ("PENDING", "RUNNING", "COMPLETING", "REQUEUED") for state in self.state(job))
        wait_for(over, f"the end of job {job}")
        return self.state(job)

    def log(self, scratch, name):
        path = scratch / "c.batch" / "log" / f"{name}.log"
        return path.read_text() if path.exists() else ""


CLUSTER = None


def on_cluster(function):
    def case(scratch):
        if CLUSTER.why:
            raise Skip(CLUSTER.why)
        try:
            function(scratch)
        finally:
            run("scancel", "--user", str(os.getuid()))
            wait_for(lambda: not run("squeue", "-h").stdout, "an empty queue")
    case.__name__ = function.__name__
    return case


@on_cluster
def slurm_parts(scratch):
    big(scratch / "m", 4)
    whole(scratch)
    for parts in (1, 3):
        succeed(SUBMIT, scratch / "m", "-o", scratch / "c", "-n", str(parts), "--wait", env=ENVIRONMENT)
        adds_up(scratch, parts)
        same_tree(scratch / "c", scratch / "whole")
        shutil.rmtree(scratch / "c")


def kill_chain(scratch, words, generations):
    """SIGKILL to every brevis-synth with these words, and to so many of its ancestors: brevis-stage, slurmstepd."""
    for pid in processes("brevis-synth", scratch):
        chain = [pid]
        if words not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            continue
        for _ in range(generations):
            chain.append(int(pathlib.Path(f"/proc/{chain[-1]}/stat").read_text().rsplit(")", 1)[1].split()[1]))
        for each in reversed(chain):
            os.kill(each, signal.SIGKILL)


FIRST = b"--shard\0001/2"


def end_slurmd(kill):
    pid = int((CLUSTER.folder / "run/slurmd.pid").read_text())
    os.kill(pid, kill)
    wait_for(lambda: pid not in processes("slurmd", ""), "the end of slurmd")


def kill_step(job, scratch):
    """slurmctld hears of it when slurmd next says what it runs: here, when it starts. At first it thinks that the task is about to begin."""
    kill_chain(scratch, FIRST, 2)

    def noticed():
        if CLUSTER.state(f"{job}_1") != ["RUNNING"]:
            return True
        end_slurmd(signal.SIGTERM)
        succeed(NODE, "node", CLUSTER.folder)
        time.sleep(4)
        return False
    wait_for(noticed, "word of the killed step")


def lose_node(_, scratch):
    end_slurmd(signal.SIGKILL)
    kill_chain(scratch, b"", 2)
    name = run("hostname", "-s").stdout.decode().strip()
    succeed("scontrol", "update", f"nodename={name}", "state=down", "reason=lost")
    succeed(NODE, "node", CLUSTER.folder)

    def back():
        run("scontrol", "update", f"nodename={name}", "state=resume")       # refused if the node is back by itself
        return "down" not in run("sinfo", "-h", "-p", "main", "-o", "%T").stdout.decode()
    wait_for(back, "the node's return")


def urgent(*_):
    """A job that takes the node away."""
    succeed("sbatch", "--wait", "-p", "urgent", "--exclusive", "-o", "/dev/null", "--wrap", "true")


# How a part is lost in its middle: what is done to it, and whether it comes back by itself (else the last stage does its work).
LOSSES = {
    "scancel --signal=KILL": (lambda job, scratch: succeed("scancel", "--signal=KILL", "--full", f"{job}_1"), False),
    "scancel": (lambda job, scratch: succeed("scancel", f"{job}_1"), False),
    "kill -9 of brevis-synth": (lambda _, scratch: kill_chain(scratch, FIRST, 0), False),
    "kill -9 of the step": (kill_step, None),
    "scontrol requeue": (lambda job, scratch: succeed("scontrol", "requeue", f"{job}_1"), True),
    "SIGTERM before the time limit": (lambda job, scratch: succeed("scancel", "--signal=TERM", "--batch", f"{job}_1"), True),
    "preempted": (urgent, True),
    "the node is lost": (lose_node, True),
}


def loss(name):
    harm, returns = LOSSES[name]

    @on_cluster
    def case(scratch):
        big(scratch / "m")
        whole(scratch, *SLOW)
        _, array, last = CLUSTER.submit(scratch, "-n", "2", "--", *SLOW)
        wait_for(lambda: list((scratch / "c").glob("*.brv")) and processes("brevis-synth", f"{scratch}/c.batch/prior.json\0--json\0--shard\x001/2"), "part 1 at work")
        harm(array, scratch)
        made = {path: path.stat().st_mtime_ns for path in (scratch / "c").glob("*.brv")}
        check(CLUSTER.finished(last) == ["COMPLETED"], f"the last stage: {CLUSTER.state(last)}: {CLUSTER.log(scratch, 'finish')}")
        total = adds_up(scratch, 2, reported=summary_of(scratch)["parts_reported"])
        same_tree(scratch / "c", scratch / "whole")
        check(all(path.stat().st_mtime_ns == when for path, when in made.items()), "a finished archive was made again")
        log = CLUSTER.log(scratch, "part-1")
        if returns is not None:
            check((total["parts_reported"] == 2) == returns, f"{total}; {CLUSTER.state(array)}; {log}")
    return case


@on_cluster
def slurm_invalid(scratch):
    sharded(scratch / "m")
    path = scratch / "m" / SHARDS[1]
    path.write_bytes(path.read_bytes()[:-1])
    done = run(SUBMIT, scratch / "m", "-o", scratch / "c", "--wait", env=ENVIRONMENT)
    check(done.returncode == 1, describe(done))
    check(SHARDS[1] in CLUSTER.log(scratch, "learn") and "NOT complete" in CLUSTER.log(scratch, "finish"), CLUSTER.log(scratch, "finish"))
    check(summary_of(scratch)["complete"] is False and not (scratch / "c").exists(), f"{summary_of(scratch)}")


@on_cluster
def slurm_by_hand(scratch):
    """The array alone, counted from 0, without brevis-batch."""
    big(scratch / "m", 3)
    whole(scratch)
    variables = {**ENVIRONMENT, "BREVIS_HOME": str(BATCH)}
    stage(scratch, "learn")
    succeed("sbatch", "--wait", "--array=0-2", "-o", scratch / "log-%a", BATCH / "brevis-array.sbatch", "part", scratch / "m", scratch / "c", env=variables)
    stage(scratch, "finish", BREVIS_PARTS="3")
    adds_up(scratch, 3)
    same_tree(scratch / "c", scratch / "whole")


@on_cluster
def the_page(scratch):
    """docs/BATCH.md, section Slurm: its commands as they stand."""
    page = (ROOT / "docs/BATCH.md").read_text().split("\n## Slurm\n")[1].split("\n## ")[0]
    commands = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    check(len(commands) >= 4, f"{commands}")
    sharded(scratch / "model")
    variables = {"PATH": f"{BATCH}:{BUILD}:{os.environ['PATH']}"}
    done = run("bash", "-euo", "pipefail", "-c", "\n".join(commands), cwd=scratch, env=variables)
    check(done.returncode == 0, describe(done))
    succeed(BREVIS, "unpack", scratch / "model.brv", "-o", scratch / "back")
    same_tree(scratch / "back", scratch / "model")


def kubernetes(scratch):
    """The manifest: its structure, and its commands as plain processes, one for each index. Not run on a cluster."""
    try:
        import jsonschema
        import yaml
    except ImportError as error:
        raise Skip(f"{error.name} is not installed (scripts/make-venv)") from None
    jobs = list(yaml.safe_load_all((BATCH / "brevis-job.yaml").read_text()))
    for job in jobs:
        jsonschema.validate(job, kubernetes_job.JOB)
        check(not list(kubernetes_job.rules(job)), f"{job['metadata']['name']}: {list(kubernetes_job.rules(job))}")
        check(job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"], "labels of job and pod differ")
    check([job["metadata"]["labels"]["stage"] for job in jobs] == ["learn", "part", "finish"], "not the three stages")
    sharded(scratch / "m")
    whole(scratch)
    for job in jobs:
        container = job["spec"]["template"]["spec"]["containers"][0]
        variables = {**ENVIRONMENT, "PATH": f"{BATCH}:{os.environ['PATH']}", **{each["name"]: each["value"] for each in container.get("env", [])}}
        count = job["spec"].get("completions", 1)
        check(count == 1 or variables["BREVIS_PARTS"] == str(count), "BREVIS_PARTS is not completions")
        places = {"/models/in/model": str(scratch / "m"), "/models/out/model.brv": str(scratch / "c")}
        for index in range(count):
            succeed(*[places.get(word, word) for word in container["command"]], env={**variables, "JOB_COMPLETION_INDEX": str(index)})
    adds_up(scratch, jobs[1]["spec"]["completions"])
    same_tree(scratch / "c", scratch / "whole")


def submitting(scratch):
    """What brevis-batch refuses before it submits anything."""
    sharded(scratch / "m")
    (scratch / "empty").mkdir()
    for wrong in ([], [scratch / "none"], [scratch / "empty"], [scratch / "m", scratch / "m"], [scratch / "m", "-n", "0"], [scratch / "m", "-n", "x"],
                  [scratch / "m", "-c", "0"], [scratch / "m", "--grace", "a"], [scratch / "m", "--what"], [scratch / "m", "-o"]):
        refuse(SUBMIT, *wrong, codes=[2])
    check(sorted(os.listdir(scratch)) == ["empty", "m"], f"left {os.listdir(scratch)}")


def main(names):
    global CLUSTER
    suite = Suite()
    cases = {case.__name__.replace("_", "-"): case for case in (numbers, by_hand, lost_part, stopped, no_false_success, odd_names, submitting, kubernetes)}
    cases |= {case.__name__.replace("_", "-"): case for case in (slurm_parts, slurm_by_hand, slurm_invalid, the_page)}
    cases |= {f"lost: {name}": loss(name) for name in LOSSES}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="brevis-slurm."))
    CLUSTER = Cluster(folder)
    try:
        for name, case in cases.items():
            if not names or any(word in name for word in names):
                with suite.case(f"batch: {name}") as scratch:
                    case(scratch)
    finally:
        CLUSTER.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
