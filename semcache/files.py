"""Whole files: written so that a crash leaves the old one or the new one, read or said why not."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from semcache.errors import StoreCorrupt, StoreUnavailable
from semcache.file_errors import unreadable, unwritable


def read_content(path: Path, *, expected: str) -> bytes:
    """Return what the file holds; `expected`: what it should be, for the message of an error.

    Raises:
        StoreUnavailable: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreUnavailable(unreadable(path, error, expected=expected)) from error


def text_of(content: bytes, path: Path, *, expected: str) -> str:
    """Return the text of what was read from `path`.

    Raises:
        StoreCorrupt: it is no UTF-8 text.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise StoreCorrupt(unreadable(path, error, expected=expected)) from error


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, in place of what was there, once all of it is written.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    try:
        write_aside(path, [text.encode()])
    except OSError as error:
        raise StoreUnavailable(unwritable(path, error)) from error


def write_aside(path: Path, parts: Sequence[bytes | memoryview]) -> None:
    """Write `parts` to a file beside `path` (mode 0600), sync it, and rename it to `path`.

    Raises:
        OSError: the file cannot be written; `path` is as it was.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(aside).unlink()
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    # Without this a power cut can undo the rename; where directories cannot be opened (Windows)
    # there is nothing to sync.
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
