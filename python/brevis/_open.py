"""_open.py: safe_open: an archive, or a directory of them, with the interface of the safetensors library.

SPDX-License-Identifier: Apache-2.0
"""

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from . import _native, _types
from ._errors import DamagedError, InputError, LimitError, NotFoundError, Status, UsageError
from ._slices import Slice

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
INDEX = "model.safetensors.index.json"
MANIFEST = "brevis.manifest"
NUMA = (None, "none", "local", "interleave")  # in the order of brv_numa (runtime/brevis.h)
FIRST_LINE = "brevis-manifest 1"


def _open_file(path: str, verify: bool, mapped: bool) -> _native.Archive:
    """An archive from a path. FileNotFoundError and other OSErrors as open() raises them; errors name the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as error:  # a zero byte, or what no path can hold
        raise UsageError(f"{path!r}: {error}") from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISDIR(mode):
        os.close(fd)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(path))
        raise UsageError(f"{os.fsdecode(path)}: a pipe cannot be gone back in; read it and use brevis.load()")
    try:
        head = os.pread(fd, 9, 0)
    except OSError as error:
        os.close(fd)
        raise type(error)(error.errno, error.strerror, os.fsdecode(path)) from None
    try:
        archive = _native.Archive(fd, verify, mapped)
    except DamagedError as error:
        raise DamagedError(f"{os.fsdecode(path)}: {_explain(head) or error}", error.status) from None
    except OSError as error:
        if not error.filename and not error.strerror:
            raise type(error)(f"{os.fsdecode(path)}: {error}") from None
        raise
    return archive


def _explain(head: bytes) -> str | None:
    """What a file that is no archive seems to be instead."""
    if len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") <= 100_000_000:
        return "this is a .safetensors file, not a Brevis archive: safetensors.safe_open() reads it, `brevis-synth` makes a .brv of it"
    return None


def _metadata(header: bytes) -> dict[str, str] | None:
    """__metadata__ of a header, whose text nobody has checked so far: an archive keeps it as it was."""
    try:
        found = json.loads(header)
        found = found.get("__metadata__") if isinstance(found, dict) else 0
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"the header is no JSON: {error}") from None
    if found is not None and not (isinstance(found, dict) and all(isinstance(value, str) for value in found.values())):
        raise DamagedError("the header's __metadata__ is not a map of strings to strings")
    return found


def _manifest_archives(text: bytes) -> Iterator[str]:
    """The archives that a manifest lists (docs/FORMAT.md, 10), in its order; `brevis test` checks the whole of it."""
    lines = text.split(b"\n")
    if lines[0] != FIRST_LINE.encode() or not lines[-1] == b"" or not lines[-2].startswith(b"end "):
        raise DamagedError(f"{MANIFEST}: not a manifest that this version reads")
    for line in lines[1:-2]:
        kind, _, rest = line.partition(b" ")
        if kind == b"archive":
            raw = bytearray()
            parts = rest.partition(b" ")[2].split(b"%")
            raw += parts[0]
            for part in parts[1:]:
                raw += bytes([int(part[:2], 16)]) + part[2:]
            if not raw or b"\0" in raw or raw.startswith(b"/") or b".." in raw.split(b"/"):
                raise DamagedError(f"{MANIFEST}: a path that leads out of the directory")
            yield os.fsdecode(bytes(raw)) + ".brv"


def _index_archives(directory: str, text: bytes) -> Iterator[str]:
    """The archives of the shards that a checkpoint's index names: X.safetensors is there as X.safetensors.brv or X.brv."""
    try:
        shards = sorted(set(json.loads(text)["weight_map"].values()))
        for shard in shards:
            if os.path.isabs(shard) or ".." in shard.split("/") or b"\0" in os.fsencode(shard):
                raise ValueError("a path that leads out of the directory, or is none")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{os.path.join(directory, INDEX)}: not an index of shards: {error!r}") from None
    for shard in shards:
        short = shard.removesuffix(".safetensors") + ".brv"
        yield short if os.path.exists(os.path.join(directory, short)) else shard + ".brv"


def directory_archives(directory: str) -> list[str]:
    """Paths of the archives of a checkpoint directory, sorted by name: those of the shards that its index names; without an index those that
    its manifest lists; without both all files *.brv in it. InputError if there are none. That all are there, shows when they are opened."""

    def read(name: str) -> bytes | None:
        try:
            with open(os.path.join(directory, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    if index := read(INDEX):
        names = list(_index_archives(directory, index))
    elif manifest := read(MANIFEST):
        try:
            names = list(_manifest_archives(manifest))
        except ValueError as error:
            raise DamagedError(f"{os.path.join(directory, MANIFEST)}: {error}") from None
    else:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".brv"))
    if not names:
        raise InputError(f"{directory}: no .brv files in it")
    return [os.path.join(directory, name) for name in names]


class safe_open:
    """Opens an archive (.brv), or all archives of a directory as one, and decodes tensors as they are asked for.

    Args:
        filename: path of a .brv file, or of a directory that holds some.
        framework: "np" or "numpy" for NumPy arrays; "pt", "torch" or "pytorch" for torch tensors.
        device: where tensors go: "cpu"; for torch whatever torch.device() takes.
        threads: most threads that a call uses; None: as many as this process may use (affinity, cgroup, BREVIS_THREADS).
        numa: on a machine with several memory nodes: "local" keeps threads on their nodes, and what they decode beside them; "interleave"
            spreads large tensors over the nodes; "none" leaves all to the kernel; None: "local" where there are several nodes.
        backend: "pread" copies from the file; "mmap" maps it: faster, but a file that shrinks or is written to while it is decoded then ends
            the process (as it does with safetensors, whose default that is).
        verify: compare every decoded chunk with its checksum. False is about a tenth faster, and damage may go unseen.

    Every result owns its memory and outlives the file. An object may be used by any number of threads at once, and after a fork.
    Raises FileNotFoundError, other OSErrors of open(), and the subclasses of BrevisError.

        with safe_open("model.brv", framework="np") as f:
            for name in f.keys():
                array = f.get_tensor(name)
            rows = f.get_slice("embedding")[100:200]
    """

    _where: dict[str, tuple[_native.Archive, int]] | None  # of several archives
    _archives: list[_native.Archive]

    def __init__(
        self,
        filename: Path,
        framework: str = "np",
        device: Any = "cpu",
        *,
        threads: int | None = None,
        numa: str | None = None,
        backend: str = "pread",
        verify: bool = True,
    ) -> None:
        self._framework = _types.framework_of(framework, device)
        self._team = _team(threads, numa)
        if backend not in ("pread", "mmap"):
            raise UsageError(f"backend {backend!r}: expected 'pread' or 'mmap'")
        self._path = os.fsdecode(os.fspath(filename))
        paths = directory_archives(self._path) if os.path.isdir(self._path) else [self._path]
        self._archives = []
        self._closed = False
        self._where = None
        try:
            for path in paths:
                self._archives.append(_open_file(path, verify, backend == "mmap"))
        except BaseException:
            self.close()
            raise
        if len(paths) > 1:
            self._index_shards(paths)

    @classmethod
    def _from_bytes(cls, data: Any, framework: str, device: Any, threads: int | None, numa: str | None, verify: bool) -> "safe_open":
        self = cls.__new__(cls)
        self._framework = _types.framework_of(framework, device)
        self._team = _team(threads, numa)
        self._path, self._closed, self._where = "<bytes>", False, None
        try:
            data = memoryview(data).cast("B")  # an int would be a descriptor to the extension, and be closed
        except TypeError as error:
            raise TypeError(f"expected bytes, or an object with a contiguous buffer: {error}") from None
        except (ValueError, BufferError) as error:
            raise UsageError(f"expected bytes, or an object with a contiguous buffer: {error}") from None
        try:
            self._archives = [_native.Archive(data, verify)]
        except DamagedError as error:
            raise DamagedError(_explain(bytes(data[:9])) or str(error), error.status) from None
        return self

    def _index_shards(self, paths: list[str]) -> None:
        where = self._where = {}
        for path, archive in zip(paths, self._archives):
            for number, tensor in enumerate(archive.tensors()):
                if tensor[0] in where:
                    self.close()
                    raise InputError(f"{path}: the tensor {tensor[0]!r} is in another archive of this directory too")
                where[tensor[0]] = archive, number

    def __enter__(self) -> "safe_open":
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<brevis.safe_open {self._path!r}, framework {self._framework.name!r}{', closed' if self._closed else ''}>"

    def __len__(self) -> int:
        return sum(archive.info()["tensor_count"] for archive in self._archives)

    def __contains__(self, name: str) -> bool:
        return self._lookup(name)[1] >= 0

    def close(self) -> None:
        """Frees the archive; results stay. Calls of other threads that are in it end first. May be called again."""
        self._closed = True
        for archive in self._archives:
            archive.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self._path}: the file is closed")

    def _lookup(self, name: str) -> tuple[_native.Archive | None, int]:
        self._check_open()
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a tensor, a str, found {type(name).__name__}")
        if self._where is not None:
            return self._where.get(name, (None, -1))
        try:
            return self._archives[0], self._archives[0].find(name)
        except UnicodeEncodeError:
            return None, -1

    def _find(self, name: str) -> tuple[_native.Archive, int]:
        archive, number = self._lookup(name)
        if archive is None or number < 0:
            raise NotFoundError(f"{self._path}: no tensor {name!r} in it")
        return archive, number

    def keys(self) -> list[str]:
        """list of str: the names of all tensors, sorted."""
        return sorted(self.offset_keys())

    def offset_keys(self) -> list[str]:
        """list of str: the names of all tensors, in the order of their data (a directory: archive by archive)."""
        self._check_open()
        return [tensor[0] for archive in self._archives for tensor in archive.tensors()]

    def metadata(self) -> dict[str, str] | None:
        """dict of str to str: `__metadata__` of the header, None if there is none. A directory: of all, the first archive's values
        winning."""
        self._check_open()
        merged = None
        for archive in self._archives:
            found = _metadata(archive.header())
            if found is not None:
                merged = {**found, **(merged or {})}
        return merged

    def get_tensor(self, name: str) -> Any:
        """The tensor of that name, decoded into memory of its own. NotFoundError; what decoding raises."""
        archive, number = self._find(name)
        return self._read(archive, [number])[0]

    def get_tensors(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """dict of name to tensor, for these names (None: all, in the order of their data), decoded by one call and so with all threads even
        if they are small. All or none. A name that is given twice is decoded once."""
        if names is None:
            wanted = [(archive, range(archive.info()["tensor_count"])) for archive in self._open_archives()]
            return {name: tensor for archive, numbers in wanted for name, tensor in self._read_named(archive, list(numbers))}
        if isinstance(names, str):
            raise TypeError("expected several names of tensors, found one str")
        found = {name: self._find(name) for name in names}
        result = dict.fromkeys(found)
        for archive in self._archives:
            mine = sorted(number for other, number in found.values() if other is archive)
            if mine:
                result.update(self._read_named(archive, mine))
        return result

    def get_slice(self, name: str) -> Slice:
        """A Slice of the tensor: indexing it decodes only the chunks that the part needs. NotFoundError."""
        return Slice(self, *self._find(name))

    def read_into(self, name: str, buffer: Any) -> None:
        """Decodes a tensor into memory of the caller: a writable, contiguous buffer (NumPy array, bytearray, mmap, CPU tensor of torch,
        ...), either of bytes and exactly as many, or of the tensor's element type and shape. UsageError says what was expected; after an
        error of decoding the buffer's contents are undefined."""
        archive, number = self._find(name)
        _, dtype, shape, nbytes, _, _ = archive.tensor(number)
        archive.decode([(number, 0, _types.writable_bytes(buffer, dtype, shape, nbytes))], *self._team)

    def _sizes(self) -> list[tuple[str, int]]:
        """(name, nbytes) of every tensor, in the order of the data."""
        return [(tensor[0], tensor[3]) for archive in self._open_archives() for tensor in archive.tensors()]

    def _open_archives(self) -> list[_native.Archive]:
        self._check_open()
        return self._archives

    def _read(self, archive: _native.Archive, numbers: list[int]) -> list[Any]:
        wrap = self._framework.wrap
        memories = _memory(archive.read, numbers, *self._team)
        return [wrap(memory, *archive.tensor(number)[1:3]) for number, memory in zip(numbers, memories)]

    def _read_named(self, archive: _native.Archive, numbers: list[int]) -> Iterator[tuple[str, Any]]:
        wrap = self._framework.wrap
        tensors = archive.tensors() if len(numbers) > 1 else {numbers[0]: archive.tensor(numbers[0])} if numbers else []
        for number, memory in zip(numbers, _memory(archive.read, numbers, *self._team)):
            name, dtype, shape, *_ = tensors[number]
            yield name, wrap(memory, dtype, shape)


def _memory(allocate: Any, *arguments: Any) -> Any:
    """What allocates memory for results; LimitError if there is none."""
    try:
        return allocate(*arguments)
    except LimitError:
        raise
    except MemoryError:
        raise LimitError("no memory for the result", Status.MEMORY) from None


def _team(threads: int | None, numa: str | None) -> tuple[int, int]:
    """The numbers that libbrevis has for these."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= 1024):
        raise UsageError(f"threads: expected 1 to 1024, or None, found {threads!r}")
    if numa not in NUMA:
        raise UsageError(f"numa: expected {', '.join(repr(mode) for mode in NUMA if mode)}, or None, found {numa!r}")
    return threads or 0, NUMA.index(numa)


def load_file(
    filename: Path,
    framework: str = "np",
    device: Any = "cpu",
    *,
    threads: int | None = None,
    numa: str | None = None,
    backend: str = "pread",
    verify: bool = True,
) -> dict[str, Any]:
    """dict of name to tensor: everything in an archive or a directory of them, in the order of the data. Arguments and errors as of
    safe_open.

    weights = brevis.load_file("model.brv")
    """
    with safe_open(filename, framework, device, threads=threads, numa=numa, backend=backend, verify=verify) as file:
        return file.get_tensors()


def load(
    data: Any, framework: str = "np", device: Any = "cpu", *, threads: int | None = None, numa: str | None = None, verify: bool = True
) -> dict[str, Any]:
    """As load_file(), of an archive that is in memory: bytes, or any object with a contiguous buffer, which is not kept."""
    with safe_open._from_bytes(data, framework, device, threads, numa, verify) as file:
        return file.get_tensors()
