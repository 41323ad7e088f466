"""Doctor: what is wrong with a cache on disk, the way out, and the repair where there is one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, TypeAlias

import semcache
from semcache.errors import (
    InvalidSettings,
    StoreError,
    WrongKey,
)
from semcache.ports import Clock, Embedder, PlanStore
from semcache.stores.disk.sidecar import VIEWS, SnapshotDirectory
from semcache.stores.disk.store import DiskStore
from semcache.stores.encrypted import unlocked
from semcache.upkeep.checks import Check, Files
from semcache.upkeep.contents import Contents

if TYPE_CHECKING:
    from semcache.stores.postgres.store import PostgresStore

APART_S = 2.0
"""Seconds that the clocks of machines may differ: leases, by which plans are made once, last 10."""


def examine(
    directory: str | Path,
    *,
    clock: Clock,
    embedder: Embedder | None = None,
    encryption_key: str = "",
    repair: bool = False,
) -> tuple[Check, ...]:
    """Look at everything in the directory of a cache; change nothing unless told to `repair`.

    `embedder`: the one in use; None looks at no vectors. `repair` makes files their owner's, moves
    a damaged database aside and begins a new one, removes what cannot be read, embeds anew what
    another embedder did, and forgets snapshots that are wrong. No other process should have the
    directory open then. Cost: everything is read.
    """
    place = Path(directory)
    shelf = None if encryption_key else SnapshotDirectory(place / VIEWS)
    look = partial(Contents, clock=clock, embedder=embedder, shelf=shelf, repair=repair)
    return tuple(_directory(Files(place, clock, repair), encryption_key, look))


def examine_database(
    database: str,
    *,
    schema: str,
    clock: Clock,
    embedder: Embedder | None = None,
    encryption_key: str = "",
    repair: bool = False,
) -> tuple[Check, ...]:
    """Look at a cache in PostgreSQL as `examine` does at one on disk; see there.

    `schema`: where in the database it is. Tables are made if there are none.

    Raises:
        MissingExtra: `semcache-plans[postgres]` is not installed.
    """
    look = partial(Contents, clock=clock, embedder=embedder, shelf=None, repair=repair)
    return tuple(_database(database, schema, clock, encryption_key, look))


Look: TypeAlias = Callable[[PlanStore], Contents]
"""What looks at what is in a store."""


def _directory(files: Files, key: str, look: Look) -> Iterator[Check]:
    found = files.place()
    yield found
    if found.level == "broken":
        return
    yield from (files.modes(), files.left(), files.free(), files.versions())
    database = files.database()
    yield database
    if database.level == "broken" and not database.repaired:
        return
    try:
        with ExitStack() as stack:
            plain = stack.enter_context(closing(DiskStore.open(files.directory)))
            store = unlocked(plain, key, what=repr(str(files.directory)))
            stack.pop_all()
    except WrongKey as error:
        yield Check("key", "broken", str(error), "give the key that it was made with, or none")
        return
    except StoreError as error:
        cure = "see that it can be written and is on a local disk"
        yield Check("database", "broken", str(error), cure)
        return
    with closing(store):
        yield from look(store).examine()


def _database(database: str, schema: str, clock: Clock, key: str, look: Look) -> Iterator[Check]:
    """Look at a database and all that is in the store there."""
    from semcache.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    try:
        plain = PostgresStore.open(database, schema=schema)
    except (StoreError, InvalidSettings) as error:
        cure = "see that the server runs, that the role may use it, and that the name is right"
        yield Check("database", "broken", str(error), cure)
        return
    with closing(plain):
        yield Check("database", "ok", plain.connections.where)
        try:
            yield from _server(plain, clock)
            yield from look(unlocked(plain, key, what="the database")).examine()
        except WrongKey as error:
            yield Check("key", "broken", str(error), "give the key that it was made with, or none")
        except StoreError as error:
            yield Check("database", "broken", str(error), "see that the server answers")


def _server(store: "PostgresStore", clock: Clock) -> Iterator[Check]:
    about = store.about()
    yield Check(
        "versions",
        "ok",
        f"semcache {semcache.__version__}, Python {python_version()}, PostgreSQL {about.postgres}, "
        f"pgvector {about.pgvector}",
    )
    apart = about.now_s - clock.now()
    if abs(apart) > APART_S:
        what = f"the server's clock is {apart:+,.0f} s from ours"
        yield Check("clocks", "warning", what, "set the clocks of all machines by NTP")
    else:
        yield Check("clocks", "ok", "the server's clock is ours")
