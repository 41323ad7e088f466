"""Reads of an ordered table of text, for one who writes to it too and one who never does."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence

_MOST_KEYS = 500  # of one statement; SQLite takes no more than 999 everywhere


class Reads:
    """Reads by key and by prefix, by what `_sql` runs.

    A prefix ends in `/`; the rows under it are those whose keys begin with it.
    Values come as bytes, since text with a flipped byte may not be text any more.
    """

    _sql: Callable[..., sqlite3.Cursor]
    """Runs a statement with its values on the connection of this thread."""

    def refresh(self) -> None:
        """Look whether others changed it; nothing to do where SQLite itself does that."""

    def content(self, key: str) -> bytes | None:
        """Return the value of `key`, or None."""
        select = "SELECT CAST(value AS BLOB) FROM Cache WHERE key = ? AND raw = 1"
        row = self._sql(select, (key,)).fetchone()
        return None if row is None else row[0]

    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of those of `keys` that are there."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), _MOST_KEYS):
            some = keys[start : start + _MOST_KEYS]
            marks = ",".join("?" * len(some))
            where = f"WHERE raw = 1 AND key IN ({marks})"
            select = "SELECT key, CAST(value AS BLOB) FROM Cache " + where  # noqa: S608 - marks
            found.update(self._sql(select, some).fetchall())
        return found

    def two(self, first: str, second: str) -> tuple[bytes | None, bytes | None]:
        """Return the values of two keys, read at one moment, each None if it is not there."""
        select = "SELECT key, CAST(value AS BLOB) FROM Cache WHERE key IN (?, ?) AND raw = 1"
        found = dict(self._sql(select, (first, second)).fetchall())
        return found.get(first), found.get(second)

    def under(self, prefix: str, *, limit: int = -1) -> Iterator[tuple[str, bytes]]:
        """Yield key and value of the rows under `prefix`, by key; at most `limit` if not negative.

        A key that is not text any more comes with the damaged bytes replaced.
        """
        select = (
            "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key LIMIT ?"
        )
        for key, value in self._sql(select, (*bounds(prefix), limit)):
            yield key.decode(errors="replace"), value

    def slices(self, prefix: str, start: int, size: int) -> list[tuple[str, bytes]]:
        """Return key and a part of the value of the rows under `prefix`, by key.

        The part is the `size` bytes from `start` on. Keys are as in `under`.
        """
        select = (
            "SELECT CAST(key AS BLOB), substr(CAST(value AS BLOB), ?, ?) FROM Cache"
            " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
        )
        rows = self._sql(select, (start + 1, size, *bounds(prefix)))
        return [(key.decode(errors="replace"), value) for key, value in rows]

    def keys(self, prefix: str) -> list[str]:
        """Return the keys under `prefix`, sorted, without a look at their values."""
        select = (
            "SELECT CAST(key AS BLOB) FROM Cache WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
        )
        rows = self._sql(select, bounds(prefix)).fetchall()
        return [key.decode(errors="replace") for (key,) in rows]

    def after(self, key: str, prefix: str) -> list[tuple[str, bytes]]:
        """Return key and value of the rows under `prefix` that come after `key`, by key."""
        select = (
            "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? AND raw = 1 ORDER BY key"
        )
        rows = self._sql(select, (key, bounds(prefix)[1])).fetchall()
        return [(found.decode(errors="replace"), value) for found, value in rows]

    def last(self, prefix: str) -> str | None:
        """Return the last key under `prefix`, or None."""
        select = (
            "SELECT CAST(key AS BLOB) FROM Cache"
            " WHERE key > ? AND key < ? ORDER BY key DESC LIMIT 1"
        )
        row = self._sql(select, bounds(prefix)).fetchone()
        return None if row is None else row[0].decode(errors="replace")

    def pointed(self, prefix: str) -> list[tuple[str, bytes]]:
        """Return key and value of the rows whose keys are the values of the rows under `prefix`."""
        select = (
            "SELECT k.value, CAST(r.value AS BLOB) FROM Cache k CROSS JOIN Cache r"
            " ON r.key = k.value AND r.raw = 1 WHERE k.key > ? AND k.key < ? AND k.raw = 1"
        )
        found: list[tuple[str, bytes]] = self._sql(select, bounds(prefix)).fetchall()
        return found

    def count_under(self, prefix: str) -> int:
        """Return how many rows are under `prefix`. Cost: a look at each key."""
        select = "SELECT count(*) FROM Cache WHERE key > ? AND key < ? AND raw = 1"
        count: int = self._sql(select, bounds(prefix)).fetchone()[0]
        return count


def bounds(prefix: str) -> tuple[str, str]:
    """Return what the keys under `prefix` lie between."""
    return prefix, prefix[:-1] + "0"  # "0" is the character after "/"
