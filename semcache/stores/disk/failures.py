"""What SQLite raises becomes an error of ours."""

import sqlite3
from pathlib import Path
from types import TracebackType

from semcache.errors import InvalidInput, StoreCorrupt


class ErrorTranslation:
    """Turns what is raised inside into an error of ours. One serves all: it keeps no state."""

    def __init__(self, directory: Path, *, text: str) -> None:
        """Keep what the errors name; `text`: what the texts are that are handed in."""
        self._directory = directory
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            from semcache.stores.disk.database import failure  # noqa: PLC0415 - imports diskcache

            raise failure(error, self._directory) from error
        if isinstance(error, UnicodeDecodeError):
            raise StoreCorrupt(
                f"the store {str(self._directory)!r} holds what is no text: {error}; restore it "
                "from a copy, or start anew with `DiskStore.open(directory, repair=True)`, in the "
                "shell `semcache doctor --repair`"
            ) from error
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(
                f"{self._text} holds a lone surrogate at {error.start}; expected valid Unicode text"
            ) from error
