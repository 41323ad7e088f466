"""Closing: what is opened by `with` is closed at the end of the block."""

from types import TracebackType
from typing import Self


class Closing:
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
