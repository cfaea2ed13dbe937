"""check_living.py: results that own their memory, many threads, forks, signals, and memory that comes back.

SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import tracemalloc
import weakref

from pyarchives import bf16_weights, check, make, noise, run_cases

import numpy as np

import brevis

SHAPES = {"large": 3_000_000, "middle": 200_000, "small": 1000, "tiny": 3}


def an_archive(folder):
    return make(folder, *((name, "U16", [n], noise(2 * n, i)) for i, (name, n) in enumerate(SHAPES.items())))


def truth():
    return {name: noise(2 * n, i) for i, (name, n) in enumerate(SHAPES.items())}


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def ownership(scratch):
    archive, wanted = an_archive(scratch), truth()
    file = brevis.safe_open(archive)
    arrays, parts = file.get_tensors(), {name: file.get_slice(name)[1:] for name in wanted}
    file.close()
    os.unlink(archive)
    del file
    gc.collect()
    for name in list(arrays):
        check(arrays[name].flags.writeable and arrays[name].ctypes.data % 64 == 0, f"{name}: not writable, or not aligned")
        arrays.pop(name)[:] = 0x5555  # neither the others nor the parts change
        check(all(array.tobytes() == wanted[other] for other, array in arrays.items()), f"tensors share memory with {name}")
        gc.collect()
    check(all(part.tobytes() == wanted[name][2:] for name, part in parts.items()), "parts share memory with the whole")


def gives_back(scratch):
    """A tensor that goes gives back its pages although its neighbours stay."""
    archive = make(scratch, *((f"t{i}", "U8", [4 << 20], noise(4 << 20, i)) for i in range(8)))
    arrays = brevis.load_file(archive)
    before = resident()
    for i in range(0, 8, 2):
        del arrays[f"t{i}"]
    check(before - resident() > 12 << 20, f"{(before - resident()) >> 20} MiB of 16 came back")
    check(all(arrays[f"t{i}"].tobytes() == noise(4 << 20, i) for i in range(1, 8, 2)), "a neighbour is damaged")
    base = weakref.ref(arrays["t1"])
    del arrays
    check(base() is None, "an array stays")


def threads(scratch):
    archive, wanted = an_archive(scratch), truth()
    with brevis.safe_open(archive, threads=2) as file:

        def work(seed):
            for i in range(40):
                name = list(wanted)[(seed + i) % len(wanted)]
                if file.get_tensor(name).tobytes() != wanted[name] or file.get_slice(name)[1:3].tobytes() != wanted[name][2:6]:
                    return f"{name}: other bytes in thread {seed}"
            return None

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            check([found for found in pool.map(work, range(8)) if found] == [], "a thread read something else")


def placement(scratch):
    """Every placement gives the same bytes, and the calling thread gets its CPUs back."""
    archive, wanted, cpus = an_archive(scratch), truth(), os.sched_getaffinity(0)
    for numa in (None, "none", "local", "interleave"):
        for count in (None, 1, 2):
            found = {name: array.tobytes() for name, array in brevis.load_file(archive, threads=count, numa=numa).items()}
            check(found == wanted and os.sched_getaffinity(0) == cpus, f"{numa}, {count} threads")


def gil(scratch):
    """Another thread runs while one decodes."""
    archive = make(scratch, ("zeros", "U8", [400 << 20], bytes(400 << 20)))
    with brevis.safe_open(archive, threads=1) as file:
        buffer, count, done = np.empty(400 << 20, np.uint8), 0, threading.Event()

        def work():
            for _ in range(3):
                file.read_into("zeros", buffer)
            done.set()

        worker = threading.Thread(target=work)
        worker.start()
        while not done.is_set():
            count += 1
            time.sleep(0.001)
        worker.join()
    check(count > 10, f"the interpreter stood still: {count}")


def closing(scratch):
    """close() while others decode: they end as they should or are told that it is closed."""
    archive, wanted = an_archive(scratch), truth()
    for _ in range(30):
        file = brevis.safe_open(archive, threads=2)

        def work():
            try:
                return all(file.get_tensor("large").tobytes() == wanted["large"] for _ in range(5))
            except brevis.UsageError as error:
                return "closed" in str(error)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(work) for _ in range(3)]
            file.close()
            check(all(job.result() for job in jobs), "other bytes, or another error")


def in_child(work):
    """work() in a forked child; its value."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(start, work().encode())
        finally:
            os._exit(0)
    os.close(start)
    with os.fdopen(end) as file:
        text = file.read()
    check(os.waitpid(child, 0)[1] == 0, "the child was killed: it hung or crashed")
    return text


def fork(scratch):
    archive, wanted = an_archive(scratch), truth()
    for backend in ("pread", "mmap"):
        file = brevis.safe_open(archive, threads=2, backend=backend)
        memory = brevis.safe_open._from_bytes(archive.read_bytes(), "np", "cpu", None, None, True)
        before, stop = file.get_tensor("large"), threading.Event()

        def busy():
            while not stop.is_set():
                file.get_tensor("large")

        workers = [threading.Thread(target=busy) for _ in range(2)]
        for worker in workers:
            worker.start()

        def child():
            for source in (file, memory):
                if any(source.get_tensor(name).tobytes() != wanted[name] for name in wanted):
                    return "other bytes"
            if before.tobytes() != wanted["large"]:
                return "the parent's array is damaged"
            nested = in_child(lambda: "good" if file.get_slice("middle")[:5].tobytes() == wanted["middle"][:10] else "bad")
            file.close()
            return nested

        try:
            for _ in range(5):
                check((found := in_child(child)) == "good", f"in the child ({backend}): {found}")
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        check(file.get_tensor("large").tobytes() == wanted["large"], "the parent reads something else after a fork")
        file.close()


def of_pool(arguments):
    path, name = arguments
    return brevis.load_file(path, threads=2)[name].tobytes()


def workers(scratch):
    """multiprocessing, as data loaders use it: forked and spawned."""
    archive, wanted = an_archive(scratch), truth()
    brevis.load_file(archive, threads=2)
    for how in ("fork", "spawn"):
        with multiprocessing.get_context(how).Pool(2) as pool:
            found = pool.map(of_pool, [(archive, name) for name in wanted], chunksize=1)
        check(found == list(wanted.values()), f"{how}: other bytes")


def interrupt(scratch):
    """Ctrl-C ends a long load."""
    archive = make(scratch, ("zeros", "U8", [400 << 20], bytes(400 << 20)))
    with brevis.safe_open(archive, threads=1) as file:
        buffer = np.empty(400 << 20, np.uint8)
        archive_object = file._archives[0]
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            archive_object.decode([(0, 0, buffer)] * 2000, 1, 0)  # 800 GB: minutes
            check(False, "not interrupted")
        except KeyboardInterrupt:
            pass
        timer.join()
        file.read_into("zeros", buffer)


def leaks(scratch):
    archive = an_archive(scratch)
    data, bad = archive.read_bytes(), bytearray(archive.read_bytes())
    bad[-20] ^= 1
    (scratch / "bad.brv").write_bytes(bad)

    def work(n):
        for _ in range(n):
            with brevis.safe_open(archive, threads=2, backend="mmap" if n % 2 else "pread") as file:
                file.get_tensors()
                file.get_slice("large")[5:900_000:3]
                file.read_into("small", bytearray(2000))
                file.metadata(), file.keys()
            brevis.load(data)
            for path in (scratch / "bad.brv", scratch / "missing.brv", scratch / "x.safetensors"):
                try:
                    brevis.load_file(path)
                except (brevis.BrevisError, FileNotFoundError):
                    pass
            brevis.safe_open(archive)  # never closed

    work(20)
    gc.collect()
    descriptors, memory = len(os.listdir("/proc/self/fd")), resident()
    tracemalloc.start()
    work(5)
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0]
    work(60)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    check(grown < 100_000, f"Python objects of {grown} bytes stay after 60 rounds")
    check(len(os.listdir("/proc/self/fd")) == descriptors, "descriptors stay open")
    check(resident() - memory < 24 << 20, f"{(resident() - memory) >> 20} MiB more after 65 rounds of 12 MiB")


def peak(scratch):
    """Loading takes the output and little more."""
    archive = make(scratch, *((f"t{i}", "BF16", [1024, 4096], bf16_weights(1 << 16, i) * 64) for i in range(12)))

    def run():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = resident()
        arrays = brevis.load_file(archive, threads=2)
        with open("/proc/self/status") as file:
            high = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
        return str(high - before - sum(array.nbytes for array in arrays.values()))

    extra = int(in_child(run))
    check(extra < 64 << 20, f"{extra >> 20} MiB beside the output")


CASES = (
    ("results own their memory", ownership),
    ("a tensor that goes gives its pages back", gives_back),
    ("eight threads on one file", threads),
    ("placement on memory nodes", placement),
    ("the GIL is released", gil),
    ("closing while others decode", closing),
    ("forks, while threads decode", fork),
    ("worker processes", workers),
    ("Ctrl-C", interrupt),
    ("nothing leaks", leaks),
    ("peak memory is the output and 64 MiB at most", peak),
)


if __name__ == "__main__":
    sys.exit(run_cases("python, living", CASES))
