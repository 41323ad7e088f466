"""Whole files: written so that a crash leaves the old one or the new one, read or said why not."""

import contextlib
import os
import tempfile
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from semcache.errors import StoreCorrupt, StoreUnavailable


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


# What to say of a file that cannot be read or written: what is there, and the way out.

LOOKED_AT = 1_000  # names of a directory; more are no help against a slip of the pen

_PACKED = {
    b"\x1f\x8b": ("compressed by gzip", "unpack it by `gunzip -k`"),
    b"PK\x03\x04": ("a zip archive", "unpack it by `unzip`"),
    b"(\xb5/\xfd": ("compressed by zstd", "unpack it by `unzstd`"),
    b"PAR1": ("a Parquet table", "write its rows as JSON lines"),
    b"SQLite format 3\0": ("a SQLite database", "write what is in it as text"),
    b"\xff\xfe": ("UTF-16 text", "write it as UTF-8: `iconv -f utf-16 -t utf-8`"),
    b"\xfe\xff": ("UTF-16 text", "write it as UTF-8: `iconv -f utf-16 -t utf-8`"),
}
"""First bytes → what such a file is, and what to do with it."""


def unreadable(path: Path, error: OSError | UnicodeError, *, expected: str) -> str:
    """Return the message for `path`, which `error` kept from being read as text.

    `expected`: what should have been there, as in "a plan as JSON".
    """
    name = repr(str(path))
    if isinstance(error, UnicodeError):
        what, way = binary(_start(path)) or (
            "not UTF-8 text",
            "write it as UTF-8, as in `iconv -f latin1 -t utf-8`",
        )
        return f"{name} is {what}; expected {expected}: {way}"
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return f"{name} cannot be read: {_missing(path)}; expected {expected}{_meant(path)}"
        case IsADirectoryError():
            return f"{name} is a directory; expected {expected}{_inside(path)}"
        case PermissionError():
            return f"{name} cannot be read: you may not; let its owner run `chmod +r` on it"
        case _:
            return f"{name} cannot be read: {error.strerror or error}; expected {expected}"


def unwritable(path: Path, error: OSError) -> str:
    """Return the message for `path`, which `error` kept from being written."""
    name = repr(str(path))
    match error:
        case IsADirectoryError():
            return f"{name} cannot be written: it is a directory; name a file in it"
        case FileNotFoundError() | NotADirectoryError():
            return f"{name} cannot be written: {_missing(path)}; make it, or name another place"
        case PermissionError():
            place = repr(str(path.parent))
            return f"{name} cannot be written: you may not write to {place}; name another place"
        case _:
            return f"{name} cannot be written: {error.strerror or error}"


def binary(start: bytes) -> tuple[str, str] | None:
    """Return what a file that begins with `start` is and the way out; None if it may be text."""
    for first, said in _PACKED.items():
        if start.startswith(first):
            return said
    return ("binary", "name a file of text") if b"\0" in start else None


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1024)
    except OSError:
        return b""  # it went meanwhile: what was known before must do


def _missing(path: Path) -> str:
    if path.parent.is_dir():
        return f"there is no such file in {str(path.parent.resolve())!r}"
    return f"there is no directory {str(path.parent)!r}"


def _meant(path: Path) -> str:
    near = get_close_matches(path.name, _names(path.parent), 1)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def _inside(path: Path) -> str:
    files = sorted(name for name in _names(path) if (path / name).is_file())
    return f", such as {str(path / files[0])!r} in it" if files else ""


def _names(directory: Path) -> list[str]:
    try:
        return [found.name for found in islice(directory.iterdir(), LOOKED_AT)]
    except OSError:
        return []
