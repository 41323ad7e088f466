"""Transfer: a tenant's entries as a file of JSON text, to carry them to another cache."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from semcache.cache.entry import Entry, from_json
from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson, NewerFormat, StoreCorrupt, StoreUnavailable

KIND = "semcache plans"
VERSION = 1


def write_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Write `entries` to `path`, in place of what was there, once all of them are written.

    Tenant and vectors stay behind: the reader names its own tenant and has its own embedder.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    document: Json = {
        "kind": KIND,
        "version": VERSION,
        "entries": [entry.to_json() for entry in entries],
    }
    try:
        replace_text(path, dumps(document) + "\n")
    except OSError as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be written: {error}") from error


def read_entries(path: Path, *, tenant: str) -> tuple[Entry, ...]:
    """Return the entries in the file at `path` as entries of `tenant`; all of them or none.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it is not what `write_entries` wrote.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    try:
        document = loads(path.read_text(encoding="utf-8"), what=name)
    except OSError as error:
        raise StoreUnavailable(f"{name} cannot be read: {error}") from error
    except (InvalidJson, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"{name} holds no exported plans: {error}") from error
    listed = _listed(document, name)
    try:
        return tuple(from_json(tenant, one) for one in listed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreCorrupt(f"{name} has an entry that cannot be read: {error!r}") from error


def _listed(document: Json, name: str) -> list[Json]:
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise StoreCorrupt(f"{name} holds no exported plans; expected what `export` writes")
    version, entries = document.get("version"), document.get("entries")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(f"{name} has version {version}; this semcache reads {VERSION}: update it")
    if version != VERSION or not isinstance(entries, list):
        raise StoreCorrupt(f"{name} has version {version!r}; expected {VERSION} and its entries")
    return entries


def replace_text(path: Path, text: str) -> None:
    """Write aside and rename, so that a crash leaves the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
