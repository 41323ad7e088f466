"""Whether a store has changed, in a quarter of a microsecond: eight bytes that its processes share.

Whoever commits a change writes eight random bytes into a file that all of them have in memory.
While a reader finds the bytes that it found before, the number of the last change that it read then
still holds, and it asks no database: that would cost six microseconds, and, worse, let go of the
interpreter, for which all threads queue. The bytes are written after the commit and before the call
returns. Only a process that is killed between the two leaves a change untold, and that is why a
reader looks for itself now and then: after `RECHECK_S` at the latest every change is seen.
"""

import mmap
import os
from pathlib import Path

NAME = "ticks"
RECHECK_S = 0.5
"""Seconds after which a reader asks the database although it was told of no change."""

_SIZE = 8


class ChangeSignal:
    """The shared bytes of one directory. Safe from several threads and processes."""

    def __init__(self, directory: Path, *, writable: bool = True) -> None:
        self._writable = writable
        self._bytes = _mapped(directory / NAME, writable=writable)

    def read(self) -> bytes | None:
        """Return the bytes as they are now; None where there are none to rely on."""
        shared = self._bytes
        return None if shared is None else shared[:_SIZE]

    def bump(self) -> None:
        """Tell every process that something was committed."""
        shared = self._bytes
        if shared is not None and self._writable:
            shared[:_SIZE] = os.urandom(_SIZE)

    def close(self) -> None:
        """Let go of the file; a thread that is reading it just now may end that."""
        self._bytes = None


def _mapped(path: Path, *, writable: bool) -> mmap.mmap | None:
    """Return the file in memory; None if it cannot be had, and then the database is asked."""
    flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
    try:
        handle = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        if writable and os.fstat(handle).st_size < _SIZE:
            os.pwrite(handle, os.urandom(_SIZE), 0)  # not truncated to size: that may find no room
        return mmap.mmap(handle, _SIZE, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
