"""Which tasks may start: those that wait for nothing any more."""

from collections.abc import Mapping, Sequence

from semcache.plans.graph import backwards


class Schedule:
    """What of a plan is still to do. Of one run, on one thread."""

    def __init__(self, needed: Mapping[str, Sequence[str]]) -> None:
        """Take for each task what it waits for; nothing may wait for itself."""
        self._missing = {name: len(others) for name, others in needed.items()}
        self._users = backwards(needed)
        self._ready = [name for name, count in self._missing.items() if not count]
        self._left = len(self._missing)

    @property
    def left(self) -> int:
        """How many tasks have not finished."""
        return self._left

    def take(self, count: int) -> list[str]:
        """Return at most `count` tasks that may start, and forget them."""
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def finish(self, name: str) -> None:
        """Let start what waited for `name` alone."""
        self._left -= 1
        for user in self._users.get(name, ()):
            self._missing[user] -= 1
            if not self._missing[user]:
                self._ready.append(user)
