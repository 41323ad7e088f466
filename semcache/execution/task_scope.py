"""Where a running plan of tasks stands: what its tasks gave, and which may start."""

from collections.abc import Mapping, Sequence

from semcache.canonical import Json, JsonObject, Pointer
from semcache.errors import ExpressionError
from semcache.plans.graph import backwards
from semcache.plans.references.paths import literal
from semcache.plans.tasks.document import Task
from semcache.plans.tasks.references import is_reference, parse, walk


class TaskScope:
    """Results by task, for the inputs of the tasks that follow. Of one run, on one thread."""

    def __init__(self, data: frozenset[Pointer]) -> None:
        self.results: JsonObject = {}
        """What each task gave, those that did."""
        self._data = data

    def input(self, task: Task) -> JsonObject:
        """Return the input of `task` with what its references lead to.

        Raises:
            ExpressionError: a result has no such part; the error names the task.
        """
        return {
            key: self._resolved(value, (*task.at, key), task.id)
            for key, value in task.input.items()
        }

    def _resolved(self, value: Json, at: Pointer, node: str) -> Json:
        if at in self._data:
            return value
        match value:
            case str():
                return self._read(value, node)
            case dict():
                return {key: self._resolved(item, (*at, key), node) for key, item in value.items()}
            case list():
                return [self._resolved(item, (*at, i), node) for i, item in enumerate(value)]
            case _:
                return value

    def _read(self, text: str, node: str) -> Json:
        path = parse(text) if is_reference(text) else None
        if path is None:
            return literal(text)
        try:
            return walk(self.results[path.task], path.steps)
        except LookupError as error:
            what = f"task {node!r} reads {text!r}, but {error.args[0]}"
            raise ExpressionError(what, node=node) from error


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
