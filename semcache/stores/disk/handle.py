"""What a directory's store stands on: opened when it is first asked for, closed for good."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from semcache.errors import StoreUnavailable
from semcache.forks import Lock
from semcache.stores.disk.failures import ErrorTranslation


class Closing(Protocol):
    """Something that is opened and closed."""

    def close(self) -> None:
        """Release what this thread has of it."""


D = TypeVar("D", bound=Closing)


class DatabaseHandle(Generic[D]):
    """A database that is opened by its first use. Safe from several threads."""

    def __init__(self, directory: Path, opened: Callable[[], D], *, text: str) -> None:
        """Open nothing yet; `opened` does. `text`: what the texts are that are handed in."""
        self.directory = directory
        self.failing = ErrorTranslation(directory, text=text)
        """Turns what the database raises into errors of ours, in a `with`."""
        self._opened = opened
        self._opening = Lock()
        self._database: D | None = None
        self.closed = False
        """Whether `close` was called."""

    def db(self) -> D:
        """Return the database; the first call opens it.

        Raises:
            ForeignDirectory, NewerFormat, StoreUnavailable, StoreCorrupt: it cannot be opened.
        """
        if self.closed:
            raise StoreUnavailable(f"the store {str(self.directory)!r} is closed; open a new one")
        if self._database is not None:
            return self._database
        with self._opening, self.failing:
            if self._database is None:
                self._database = self._opened()
            return self._database

    def close(self) -> None:
        """Release this thread's connection; other threads' end with them. Twice is fine."""
        self.closed = True
        if self._database is not None:
            self._database.close()
