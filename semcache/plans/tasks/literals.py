"""Literal lifting: the constants of all tasks of a plan, gathered in `task0`."""

from collections import defaultdict

from semcache.canonical import Json, JsonObject, Pointer, dumps
from semcache.plans.tasks.document import Task, TaskPlan
from semcache.plans.tasks.references import CONSTANTS, is_reference, reference_to, texts

_DEPTH = 4  # of an input: `("tasks", 1, "input", "year")`


def lifted(plan: TaskPlan) -> TaskPlan:
    """Return `plan` with each constant input of a later task in `task0`, and a reference to it.

    It goes under its own key. Equal constants share one; where `task0` has another value under that
    key, it becomes `key_2`, `key_3`…: nothing is ever overwritten (orra does, which changes what
    the tasks that read the first one get). Bound data stays data. A plan without `task0` stays as
    it is.
    """
    home = next((task for task in plan.tasks if task.id == CONSTANTS), None)
    if home is None:
        return plan
    lifting = _Lifting(home, plan.data)
    inputs = {task.position: lifting.lifted(task) for task in plan.tasks if task is not home}
    inputs[home.position] = lifting.constants
    listed: list[Json] = [
        {**item, "input": inputs[i]} if i in inputs and isinstance(item, dict) else item
        for i, item in enumerate(plan.listed)
    ]
    return TaskPlan({**plan.body, "tasks": listed}, lifting.data)


class _Lifting:
    """The constants that were gathered so far, and where bound data stands."""

    def __init__(self, home: Task, data: frozenset[Pointer]) -> None:
        self.constants: JsonObject = dict(home.input)
        self._home = home
        self._bound: dict[Pointer, set[Pointer]] = defaultdict(set)
        for at in data:
            self._bound[at[:_DEPTH]].add(at[_DEPTH:])
        self._numbers: dict[str, int] = defaultdict(lambda: 1)
        self._known = {
            self._identity(key, value, (*home.at, key)): key for key, value in home.input.items()
        }

    @property
    def data(self) -> frozenset[Pointer]:
        """Where bound data stands now."""
        return frozenset((*at, *below) for at, all_ in self._bound.items() for below in all_)

    def lifted(self, task: Task) -> JsonObject:
        """Return the input of `task`, its constants moved away."""
        return {key: self._moved(task, key, value) for key, value in task.input.items()}

    def _moved(self, task: Task, key: str, value: Json) -> Json:
        at = (*task.at, key)
        bound = frozenset((*at, *below) for below in self._bound.get(at, ()))
        if any(is_reference(text) for _, text in texts(value, at, bound)):
            return value
        identity = self._identity(key, value, at)
        name = self._known.get(identity) or self._free(key)
        reference = reference_to(CONSTANTS, name)
        if reference is None or "." in key:  # with dots it would hide `$task0.a.b`
            return value
        self._known[identity] = name
        self.constants[name] = value
        if bound:
            self._bound[(*self._home.at, name)] = self._bound.pop(at)
        return reference

    def _identity(self, key: str, value: Json, at: Pointer) -> tuple[str, str, frozenset[Pointer]]:
        """Return what two constants share if one can stand for both."""
        return key, dumps(value), frozenset(self._bound.get(at, ()))

    def _free(self, key: str) -> str:
        """Return `key`, or `key_2`, `key_3`… if a constant is called so."""
        name = key
        while name in self.constants:
            self._numbers[key] += 1
            name = f"{key}_{self._numbers[key]}"
        return name
