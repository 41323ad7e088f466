"""A lock that many readers share and one writer has alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Readers enter together; a writer waits for them, and new readers wait for a waiting writer.

    A plain lock would make searches queue, although FAISS and numpy let go of the interpreter
    while they search. Not reentrant.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writers = 0  # inside or waiting
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Enter with other readers."""
        with self._changed:
            while self._writers:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Enter alone."""
        with self._changed:
            self._writers += 1
            while self._readers or self._writing:
                self._changed.wait()
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._writing = False
                self._changed.notify_all()
