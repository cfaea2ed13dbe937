"""_errors.py: the exceptions of the package: one class for each exit code of the commands, the library's message kept.

SPDX-License-Identifier: Apache-2.0
"""

import enum


class Status(enum.IntEnum):
    """Status codes of libbrevis (runtime/brevis.h)."""

    SUCCESS = 0
    OTHER = 1
    USAGE = 2
    INPUT = 3
    DAMAGED = 4
    IO = 5
    LIMIT = 6
    MEMORY = 7
    VERSION = 8
    NOTFOUND = 9
    CANCELLED = 10


class BrevisError(Exception):
    """Anything that Brevis refuses. `status` is the library's code, `exit_code` what the commands end with for it."""

    status: Status = Status.OTHER
    exit_code: int = 1

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = Status(status)

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UsageError(BrevisError, ValueError):
    """An argument makes no sense: a closed file, a buffer of another size or type, an unknown framework or device."""

    status = Status.USAGE
    exit_code = 2


class NotFoundError(UsageError, LookupError):
    """No tensor of that name, or an index outside it."""

    status = Status.NOTFOUND


class InputError(BrevisError, ValueError):
    """Not a valid checkpoint."""

    status = Status.INPUT
    exit_code = 3


class DamagedError(BrevisError, ValueError):
    """Not a Brevis archive, a damaged one, or (status VERSION) one of a newer format."""

    status = Status.DAMAGED
    exit_code = 4


class FileError(BrevisError, OSError):
    """Reading failed; the message names the system's reason."""

    status = Status.IO
    exit_code = 5


class LimitError(BrevisError, MemoryError):
    """Over a limit, or out of memory (status MEMORY)."""

    status = Status.LIMIT
    exit_code = 6


_CLASS = {
    Status.USAGE: UsageError,
    Status.INPUT: InputError,
    Status.DAMAGED: DamagedError,
    Status.IO: FileError,
    Status.LIMIT: LimitError,
    Status.MEMORY: LimitError,
    Status.VERSION: DamagedError,
    Status.NOTFOUND: NotFoundError,
}


def error_of(status: int, message: str) -> BrevisError:
    """The exception for a status of the library."""
    return _CLASS.get(Status(status), BrevisError)(message, status)
