"""A lock that many readers share and one writer has alone."""

import time
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semcache.process.forks import (
    PATIENCE_S,
    Forked,
    Holder,
    follow_forks,
    holder,
    lives,
    pauses,
    withdraw,
)


class SharedLock(Forked):
    """Readers enter together; a writer waits for them, and new readers wait for a waiting writer.

    A plain lock would make searches queue, although FAISS and numpy let go of the interpreter
    while they search. Not reentrant. Whoever comes says so first and then looks who is there, so
    that of a reader and a writer one always sees the other; `list.append` and `list.remove` are one
    step each. One that was interrupted and will not leave by itself is put out by who waits for it,
    as in `forks.Lock`.
    """

    def __init__(self) -> None:
        self._readers: list[Holder] = []
        self._writers: list[Holder] = []
        """The first is inside once no reader is; the others wait."""
        follow_forks(self)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Enter with other readers."""
        mine = holder()
        try:
            self._readers.append(mine)
            while self._writers:
                withdraw(self._readers, mine)
                _await(self._writers, lambda: not self._writers)
                self._readers.append(mine)
            yield
        finally:
            withdraw(self._readers, mine)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Enter alone."""
        mine = holder()
        try:
            self._writers.append(mine)
            _await(self._writers, lambda: self._writers[0] is mine)
            _await(self._readers, lambda: not self._readers)
            yield
        finally:
            withdraw(self._writers, mine)

    def forked(self) -> None:
        """Be free: whoever was inside is a thread of the parent."""
        self._readers, self._writers = [], []


def _await(line: list[Holder], condition: Callable[[], bool]) -> None:
    """Return as soon as `condition` holds, putting out of `line` who will not leave by itself."""
    for pause_s in pauses():
        if condition():
            return
        for inside in [*line]:
            asked = pause_s >= PATIENCE_S or inside[1] == get_ident()
            if asked and not lives(inside):
                withdraw(line, inside)
        time.sleep(pause_s)
