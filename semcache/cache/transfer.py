"""Transfer: a tenant's entries as a file of text, to carry them to another cache or to keep in git.

    {"entries":2,"kind":"semcache plans","sha256":"…","version":2}
    {"catalog":"…",…}                                       one entry a line, keys sorted

Entries stand in the order of their template texts, so that exports differ where entries do.
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from semcache.cache.entry import Entry, faults, from_json
from semcache.canonical import Json, JsonObject, dumps, loads, plain
from semcache.errors import (
    BindingError,
    InvalidInput,
    InvalidJson,
    NewerFormat,
    StoreCorrupt,
    StoreUnavailable,
)
from semcache.file_errors import unreadable, unwritable

KIND = "semcache plans"
EXPECTED = "what `semcache export` writes"
VERSION = 2


def write_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Write `entries` to `path`, in place of what was there, once all of them are written.

    Tenant and vectors stay behind: the reader names its own tenant and has its own embedder.

    Raises:
        StoreUnavailable: the file cannot be written; what was there stays.
    """
    ordered = sorted(entries, key=lambda entry: (entry.template.text, entry.id))
    body = "".join(f"{dumps(entry.to_json())}\n" for entry in ordered)
    head: JsonObject = {
        "entries": len(entries),
        "kind": KIND,
        "sha256": hashlib.sha256(body.encode()).hexdigest(),
        "version": VERSION,
    }
    try:
        replace_text(path, f"{dumps(head)}\n{body}")
    except OSError as error:
        raise StoreUnavailable(unwritable(path, error)) from error


def read_entries(path: Path, *, tenant: str) -> tuple[Entry, ...]:
    """Return the entries in the file at `path` as entries of `tenant`; all of them or none.

    Raises:
        StoreUnavailable: the file cannot be read.
        StoreCorrupt: it is not what `write_entries` wrote.
        NewerFormat: a later semcache wrote it.
    """
    name = repr(str(path))
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        _check(loads(head.decode(), what="its first line"), body, name)
        lines = body.decode().split("\n")[:-1]
    except OSError as error:
        raise StoreUnavailable(unreadable(path, error, expected=EXPECTED)) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(unreadable(path, error, expected=EXPECTED)) from error
    except InvalidJson as error:
        raise StoreCorrupt(_strange(name, f": {error}")) from error
    try:
        return tuple(_entry(tenant, line, number) for number, line in enumerate(lines, start=2))
    except (InvalidInput, BindingError) as error:
        raise StoreCorrupt(
            f"{name} has an entry that cannot be used: {error}; nothing of the file was taken"
        ) from error


def _entry(tenant: str, line: str, number: int) -> Entry:
    what = f"line {number}"
    entry = from_json(tenant, plain(loads(line, what=what), what=what), what=what)
    wrong = next(faults(entry), None)
    if wrong is not None:
        raise InvalidInput(f"{what}: {wrong}")
    return entry


def _check(head: Json, body: bytes, name: str) -> None:
    if not isinstance(head, dict) or head.get("kind") != KIND:
        raise StoreCorrupt(_strange(name))
    version = head.get("version")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(f"{name} has version {version}; this semcache reads {VERSION}: update it")
    if version != VERSION:
        raise StoreCorrupt(f"{name} has version {version!r}; expected {VERSION}: export it anew")
    if head.get("sha256") != hashlib.sha256(body).hexdigest():
        raise StoreCorrupt(
            f"{name} is not what was written: it was cut short or edited after its checksum was "
            "made; export it anew"
        )


def _strange(name: str, why: str = "") -> str:
    return (
        f"{name} holds no exported plans{why}; expected {EXPECTED} (prompts and plans of your own, "
        "one a line, are taken by `semcache warm`)"
    )


def replace_text(path: Path, text: str) -> None:
    """Write aside and rename, so that a crash leaves the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
