"""Taking over a directory of version 1: its rows, in a table of diskcache, become tables.

Rows of version 1, all of them text; each part of a key is escaped, so that no part has a slash.
Of plans:

    r/<tenant>/<id>             the record, sealed
    u/<tenant>/<id>             how a record was used: [count, last_s, worth, …], sealed
    m/<tenant>/<name>           a note, sealed
    c/<number>                  a change: [tenant, id, kind]
    bad/<tenant>/<id>/<number>  a record or note that was not what was written

Of responses, their keys as they are:

    e/<key>                     the text, sealed below the key that it belongs to
    a/<key>                     [number of its last use, epoch seconds of that, ttl, bytes, group]

The other rows follow from these, or are of the moment (leases). The new file is written aside and
takes its name when it is whole; then the manifest says the new version, and only then is the old
file emptied. So a process that dies on the way leaves a directory of version 1, and one of an
earlier semcache that still has it open finds that its table is gone, instead of writing there what
nobody reads any more.
"""

import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from semcache.canonical import loads
from semcache.errors import ForeignDirectory, InvalidJson, StoreUnavailable
from semcache.ports import Use
from semcache.schemas import Name, read
from semcache.stores.disk.database import Connection, uri
from semcache.stores.disk.directory import DATABASE, MANIFEST, VERSION, mark
from semcache.stores.disk.failures import failure, no_room
from semcache.stores.disk.tables import PLANS, RESPONSES, DiskSchema, DiskTables
from semcache.stores.eviction import unused
from semcache.stores.records import decode, unseal

OLD = "cache.db"
"""The file of version 1, named by diskcache."""

_LATE = ConfigDict(defer_build=True)
"""Few directories are of version 1."""
_CHANGE = TypeAdapter(tuple[Name, Name, Literal["put", "remove"]], config=_LATE)
_AGE = TypeAdapter(tuple[int, float, float | None, int, str], config=_LATE)
_Used = Annotated[list[Annotated[float, Field(ge=0, le=1e15)]], Field(min_length=3)]
_USE = TypeAdapter(_Used, config=_LATE)

_log = logging.getLogger(__name__)


def take_over(directory: Path, schema: DiskSchema, *, timeout_s: float) -> None:
    """Bring `directory` from version 1 to this one; nothing, if another process was first.

    Raises:
        ForeignDirectory: it holds plans where `schema` is of responses, or the other way round.
        StoreUnavailable: it is locked by a process of the earlier semcache, or cannot be written.
    """
    try:
        with closing(_old(directory / OLD, timeout_s)) as old:
            old.execute("BEGIN IMMEDIATE")  # who writes there by the earlier semcache waits
            if _version(directory) >= VERSION:
                return
            _refuse_others(old, directory, schema)
            _write_new(old, directory, schema)
            mark(directory)
            old.execute("ALTER TABLE Cache RENAME TO taken_over_by_a_later_semcache")
            old.execute("COMMIT")
    except sqlite3.Error as error:
        raise failure(error, directory) from error
    except OSError as error:
        raise StoreUnavailable(
            f"{str(directory)!r} was written by an earlier semcache and cannot be brought to this "
            f"version: {error}; see that it can be written",
            passing=no_room(error),
        ) from error
    for name in (OLD, f"{OLD}-wal", f"{OLD}-shm"):
        (directory / name).unlink(missing_ok=True)
    _log.warning("%s was brought to version %d of the format", directory, VERSION)


def _old(path: Path, timeout_s: float) -> Connection:
    return sqlite3.connect(uri(path, "mode=rw"), uri=True, timeout=timeout_s, isolation_level=None)


def _version(directory: Path) -> int:
    try:
        manifest = loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except InvalidJson:
        return 0
    version = manifest.get("version") if isinstance(manifest, dict) else None
    return version if isinstance(version, int) else 0


def _refuse_others(old: Connection, directory: Path, schema: DiskSchema) -> None:
    for other, prefix in ((PLANS, "r/"), (RESPONSES, "e/")):
        if other != schema and any(_rows(old, prefix)):
            raise ForeignDirectory(
                f"{str(directory)!r} holds {other.name}, and no {schema.name}; name another "
                "directory"
            )


def _write_new(old: Connection, directory: Path, schema: DiskSchema) -> None:
    handle, aside = tempfile.mkstemp(dir=directory, prefix=DATABASE, suffix=".tmp")
    os.close(handle)
    try:
        with closing(sqlite3.connect(aside, isolation_level=None)) as new:
            schema.migrate(new, where=repr(str(directory)))
            new.execute("BEGIN IMMEDIATE")
            _copy(old, DiskTables(new)) if schema == PLANS else _copy_responses(old, new)
            new.execute("COMMIT")
        Path(aside).replace(directory / DATABASE)
    except BaseException:
        with suppress(OSError):
            Path(aside).unlink()
        raise


def _copy(old: Connection, new: DiskTables) -> None:
    uses = {place: _use(sealed) for place, sealed in _rows(old, "u/")}
    for place, sealed in _rows(old, "r/"):
        parts = place.split("/")
        try:
            record = decode(sealed)
            new.insert(record, uses.get("u" + place[1:]) or unused(record))
        except (ValueError, sqlite3.IntegrityError) as error:
            _log.warning("%s is not what was written (%s); it is set aside", place, error)
            _keep_damaged(new, parts, sealed)
    for place, sealed in _rows(old, "m/"):
        tenant, name = map(_unescaped, place.split("/")[1:3])
        try:
            text = unseal(sealed)
        except ValueError:
            _keep_damaged(new, place.split("/"), sealed)
        else:
            new.write_note(tenant, name, text)
    for place, content in _rows(old, "bad/"):
        _keep_damaged(new, place.split("/"), content)
    _copy_changes(old, new)


def _copy_changes(old: Connection, new: DiskTables) -> None:
    numbered = [(int(place[2:]), content) for place, content in _rows(old, "c/")]
    last = first = max((number for number, _ in numbered), default=0)
    for number, content in reversed(numbered):  # as many as can be told without a gap
        try:
            new.run(
                "INSERT INTO changes (number, tenant, id, kind) VALUES (?, ?, ?, ?)",
                (number, *read(_CHANGE, content, what=f"change {number}")),
            )
        except (InvalidJson, sqlite3.Error):
            break
        if number not in (last, first - 1):
            break
        first = number
    new.run("UPDATE state SET last_change = ?, forgotten = ?", (last, max(first - 1, 0)))
    new.run("DELETE FROM changes WHERE number < ?", (first,))


def _keep_damaged(new: DiskTables, parts: list[str], content: bytes) -> None:
    place = "/".join(map(_unescaped, parts[2:]))
    text = content.decode(errors="backslashreplace")
    new.keep_damaged(_unescaped(parts[1]), place, text)


def _copy_responses(old: Connection, new: Connection) -> None:
    texts = {place[2:]: sealed for place, sealed in _rows(old, "e/")}
    for place, content in _rows(old, "a/"):
        # One that is damaged is asked for again.
        with suppress(InvalidJson, UnicodeDecodeError, KeyError, sqlite3.IntegrityError):
            used, used_s, ttl_s, size, group = read(_AGE, content, what="the age of a response")
            new.execute(
                'INSERT INTO responses (key, "group", used, used_s, ttl_s, bytes, sealed)'
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (place[2:], group, used, used_s, ttl_s, size, texts[place[2:]].decode()),
            )


def _use(sealed: bytes) -> Use | None:
    try:
        count, last_s, worth, *_ = read(_USE, unseal(sealed), what="a use")
        return Use(int(count), last_s, worth)
    except ValueError:
        return None


def _rows(old: Connection, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield key and value of the rows whose keys begin with `prefix`, by key."""
    query = (
        "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache"
        " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
    )
    last = prefix[:-1] + "0"  # "0" is the character after "/"
    for key, value in old.execute(query, (prefix, last)):
        yield key.decode(errors="backslashreplace"), value


def _unescaped(part: str) -> str:
    return "" if part == "%" else part.replace("%2F", "/").replace("%25", "%")
