"""The changes of a store on disk: told in the transaction that makes them, and numbered.

c/<number>    tenant, id and kind of one change
"""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from semcache.errors import StoreCorrupt
from semcache.ports import Change
from semcache.stores.disk.change_signal import RECHECK_S
from semcache.stores.disk.handle import DatabaseHandle
from semcache.stores.disk.places import numbered
from semcache.stores.disk.reads import Reads

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database


class DiskChanges:
    """What changed, for those who follow. Safe from several threads and processes."""

    def __init__(self, opened: DatabaseHandle, *, kept: int) -> None:
        """Keep the last `kept` changes; who is further behind reads all records."""
        self._opened = opened
        self._kept = kept
        self._known: tuple[bytes | None, float, int] = (None, 0.0, 0)
        """The tick at which the last change was read, when that was, and its number."""

    def tell(
        self, db: "Database", ids: Sequence[tuple[str, str]], kind: Literal["put", "remove"]
    ) -> int:
        """Note one change for each of `ids`, tenant and id; return the number of the last."""
        last = self.last(db)
        told = (json.dumps([*known, kind], separators=(",", ":")) for known in ids)
        db.point((numbered(number), text) for number, text in enumerate(told, last + 1))
        last += len(ids)
        db.drop_until("c/", numbered(last - self._kept))
        return last

    def last(self, db: Reads) -> int:
        """Return the number of the last change in `db`; 0 if there was none.

        Raises:
            StoreCorrupt: the last one has no number.
        """
        place = db.last("c/") or "c/0"
        try:
            return int(place[2:])
        except ValueError as error:
            raise StoreCorrupt(
                f"the store {str(self._opened.directory)!r} numbers a change {place!r}; restore it "
                "from a copy, or start anew in another directory"
            ) from error

    def latest(self) -> int:
        """Return the number of the last change, without asking the database if no tick came."""
        db = self._opened.db()
        tick = self._opened.tick()
        now = time.monotonic()
        known, looked, number = self._known
        if tick is None or tick != known or not 0 <= now - looked < RECHECK_S:
            with self._opened.failing:
                db.refresh()
                number = self.last(db)
            self._known = (tick, now, number)
        return number

    def after(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some cannot be told."""
        with self._opened.failing:
            db = self._opened.db()
            last = self.last(db)
            rows = db.after(numbered(since), "c/") if since < last else []
        if since == last:
            return []
        changes = [_change(place, value) for place, value in rows]
        if not changes or changes[0] is None or changes[0].number != since + 1:
            return None
        told = [change for change in changes if change is not None]
        return told if len(told) == len(changes) else None


def _change(place: str, value: bytes) -> Change | None:
    try:
        match json.loads(value):
            case [str(tenant), str(id), "put" | "remove" as kind]:
                return Change(int(place[2:]), tenant, id, kind)
            case _:
                return None
    except ValueError:
        return None
