"""Catching: whatever is raised inside is kept, to be told where somebody can be told."""

from types import TracebackType
from typing import Self


class Catching:
    """Lets nothing out, not even SystemExit: for foreign code on a thread where nobody waits."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """What was raised inside; None: nothing yet."""

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
