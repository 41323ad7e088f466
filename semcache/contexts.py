"""Context managers that several rooms use, and what a lent thread tells of itself."""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Self

WAITS: ContextVar[Callable[[], None] | None] = ContextVar("semcache_waits", default=None)
"""Who lent this thread and may lend another, once it is about to wait; None: nobody did."""


def give_way() -> None:
    """Let others go on in place of this call, which is about to wait for a model or an embedder."""
    told = WAITS.get()
    if told is not None:
        told()


class Closeable:
    """Has a `close`, which the end of a `with` block calls, whatever was raised in it."""

    def close(self) -> None:
        """Release what is held; calling it twice is fine."""
        raise NotImplementedError("say what is released")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ErrorCapture:
    """Lets nothing out, not even SystemExit: for foreign code on a thread where nobody waits."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """The error raised inside; None: no error yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True
