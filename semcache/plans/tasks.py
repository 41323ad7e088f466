"""The tasks format: constants in `task0`, then tasks that read from it and from one another.

    {"tasks": [{"id": "task0", "input": {"customerId": "CUST789", …}},
               {"id": "task1", "service": "<operation>", "input": {"id": "$task0.customerId"}}, …],
     "parallel_groups": [["task1", "task2"], …]?}

A text in an input, at any depth, that begins with `$` is a reference: `$task1.order.items[0].id`,
`$task1['first name']`, or `$task1` for the whole result; `$$` begins a literal `$`, and `$500` is
money. Tasks run as soon as what they read is there, in parallel; the groups only say so again.
What `task0` has are constants, whatever they look like. A request that cannot be met is
`task0` and `{"id": "final", "input": {"error": "why"}}`.
Format: the plan engine of orra, as in its article "Beyond Simple Lookups".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from semcache.canonical import Json, JsonObject, Pointer, as_list, as_object, dumps, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.plans.document import ExecutionPlan, Reference, WrittenPlan, texts
from semcache.plans.finding import Finding, finding
from semcache.plans.paths import is_expression
from semcache.process.memo import memoized

# References: `$task1.order.items[0].id`, and what they lead to.

CONSTANTS = "task0"
"""The task that calls nothing: its input is its result. Its id is read in any case."""


@dataclass(frozen=True, slots=True)
class TaskPath:
    """What a reference names: a task, and the way into its result."""

    task: str
    steps: tuple[str, ...]
    """Keys, and list positions in digits; empty for the whole result."""


_PATH = re.compile(r"""\$([^\W\d][\w-]*)((?:\.[\w-]+|\[[0-9]+\]|\['[^']+'\]|\["[^"]+"\])*)""")
_STEP = re.compile(r"""\.([\w-]+)|\[([0-9]+)\]|\['([^']+)'\]|\["([^"]+)"\]""")
_POSITION = re.compile("[0-9]{1,9}")


@memoized(4096)
def parse(text: str) -> TaskPath | None:
    """Return what a reference names; None if `text` is not one from end to end."""
    found = _PATH.fullmatch(text)
    if found is None:
        return None
    return TaskPath(named(found[1]), tuple(map("".join, _STEP.findall(found[2]))))


def named(name: str) -> str:
    """Return the id of a task as it is compared: that of the constants in lower case."""
    return CONSTANTS if name.casefold() == CONSTANTS else name


def is_reference(text: str) -> bool:
    """Return whether a text is to be read as a reference: `$…`, but not `$$`, `$5` or `${{…}}`."""
    return is_expression(text) and not text.startswith("${{")


def walk(value: Json, steps: tuple[str, ...]) -> Json:
    """Return the part of `value` that the steps lead to.

    A key that has dots itself goes before the way through objects.

    Raises:
        LookupError: there is no such part; the message says what is there instead.
    """
    dotted = ".".join(steps)
    if isinstance(value, dict) and steps and dotted in value:
        return value[dotted]
    for step in steps:
        value = _inside(value, step)
    return value


def _inside(value: Json, step: str) -> Json:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list) and _POSITION.fullmatch(step) and int(step) < len(value):
        return value[int(step)]
    raise LookupError(f"there is no {step!r} in {_held(value)}")


def _held(value: Json) -> str:
    match value:
        case dict():
            shown = ", ".join(map(repr, list(value)[:10]))
            return f"an object with {shown}" if value else "an empty object"
        case list():
            return f"a list of {len(value)}"
        case None:
            return "null"
        case _:
            return f"a {type(value).__name__}"


REFUSAL = "final"
"""A task of this id that calls nothing says why the request cannot be met."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task, as far as it can be read."""

    position: int
    """In the list of tasks."""
    id: str
    service: str
    """Name of the operation that it calls; empty for one that calls nothing."""
    input: JsonObject

    @property
    def at(self) -> Pointer:
        """Where the input stands in the plan."""
        return ("tasks", self.position, "input")

    def references(self, data: frozenset[Pointer]) -> Iterator[tuple[Pointer, str]]:
        """Yield each text of the input that is to be read as a reference, with its place.

        None at or below bound data, and none of `task0`, which has constants.
        """
        if self.id != CONSTANTS:
            for at, text in texts(self.input, self.at, data):
                if is_reference(text):
                    yield at, text


@dataclass(frozen=True, slots=True, eq=False)
class TaskPlan(WrittenPlan):
    """A plan in the tasks format; possibly malformed, which `plans.codec` tells."""

    _tasks: tuple[Task, ...] | None = field(default=None, init=False, repr=False)

    format: ClassVar[str] = "tasks"

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that have an id, in document order; of a malformed one, what can be read."""
        tasks = self._tasks
        if tasks is None:
            read = (_task(i, item) for i, item in enumerate(self.listed))
            tasks = tuple(task for task in read if task is not None)
            object.__setattr__(self, "_tasks", tasks)
        return tasks

    @property
    def listed(self) -> list[Json]:
        """The list of tasks as it stands in the plan; empty if it is none."""
        return as_list(self.body.get("tasks"))

    def operations(self) -> tuple[str, ...]:
        """Return the names of the operations that the plan may call, sorted, each once."""
        return tuple(sorted({task.service for task in self.tasks if task.service}))

    def references(self) -> tuple[Reference, ...]:
        """Return every reference of a task to the result of a task, in document order."""
        return tuple(
            Reference(at, path.task, text)
            for task in self.tasks
            for at, text in task.references(self.data)
            if (path := parse(text)) is not None
        )

    def reads(self) -> dict[str, tuple[str, ...]]:
        """Return, for each task but `task0`, the other tasks that it waits for, each once."""
        needed: dict[str, dict[str, None]] = {t.id: {} for t in self.tasks if t.id != CONSTANTS}
        for task in self.tasks:
            for _, text in task.references(self.data):
                path = parse(text)
                if path is not None and path.task != CONSTANTS:
                    needed[task.id][path.task] = None
        return {name: tuple(others) for name, others in needed.items()}

    def refusal(self) -> str | None:
        """Return why the plan says that the request cannot be met; None if it does something."""
        said = (task.input for task in self.tasks if task.id == REFUSAL and not task.service)
        return next(map(_reason, said), None)


def is_tasks(body: JsonObject) -> bool:
    """Return whether `body` is meant as a plan of this format.

    Others have a list of tasks too: one of these must have an id, and a service, an input, or an id
    that only this format knows.
    """
    listed = body.get("tasks")
    return isinstance(listed, list) and any(map(_is_task, listed))


def _is_task(item: Json) -> bool:
    if not isinstance(item, dict) or not id_of(item):
        return False
    return not item.keys().isdisjoint({"service", "input"}) or id_of(item) in {CONSTANTS, REFUSAL}


def id_of(item: JsonObject) -> str:
    """Return the id of a task, that of the constants in lower case; empty if it has none."""
    name = item.get("id")
    return named(name) if isinstance(name, str) else ""


def _task(position: int, item: Json) -> Task | None:
    if not isinstance(item, dict) or not id_of(item):
        return None
    service, given = item.get("service"), item.get("input")
    return Task(
        position,
        id_of(item),
        service.strip() if isinstance(service, str) else "",
        as_object(given),
    )


def _reason(given: JsonObject) -> str:
    error = given.get("error")
    if error is None:
        return "the planner gives no reason"
    return error if isinstance(error, str) else dumps(error)


def spelled_tasks(plan: TaskPlan, catalog: Catalog) -> TaskPlan:
    """Return `plan` with each service named as the catalog has it.

    orra reads service ids in lower case. Here a name that the catalog has stays as it is, and one
    that it has in lower case becomes that; any other stays too, and the checks tell.
    """
    changed = {
        task.position: task.service.lower()
        for task in plan.tasks
        if task.service not in catalog and task.service.lower() in catalog
    }
    if not changed:
        return plan
    renamed: list[Json] = [
        {**item, "service": changed[i]} if i in changed and isinstance(item, dict) else item
        for i, item in enumerate(plan.listed)
    ]
    return TaskPlan({**plan.body, "tasks": renamed}, plan.data)


# The parameters of a request that a planner must hand on.


def check_params(plan: ExecutionPlan, names: Sequence[str]) -> tuple[Finding, ...]:
    """Return a finding for each parameter of a request that `task0` lacks; none for other formats.

    It has one if something in its input is called so, spelled in any way, or is its placeholder.
    By orra, which also tells the planner where the value went instead.
    """
    if not isinstance(plan, TaskPlan) or not names:
        return ()
    task = next((task for task in plan.tasks if task.id == CONSTANTS), None)
    if task is None:
        return ()
    has = set(_called(task.input, ()))
    missing = (name for name in names if _squashed(name) not in has)
    return tuple(_missing(plan, task, name) for name in missing)


_WHOLE = re.compile(r"\{\{\s*params\.([^{}]*?)\s*\}\}")


def _called(value: Json, above: tuple[str, ...]) -> Iterator[str]:
    """Yield what something in `value` is called: its key, the way to it, its placeholder."""
    if above:
        yield from (_squashed(above[-1]), _squashed("".join(above)))
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _called(item, (*above, key))
    elif isinstance(value, list):
        for item in value:
            yield from _called(item, above)
    elif isinstance(value, str) and (found := _WHOLE.fullmatch(value)):
        yield _squashed(found[1])


def _squashed(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _missing(plan: TaskPlan, task: Task, name: str) -> Finding:
    places = [pointer_text(at) for at in _embedded(plan.tasks, name, plan.data)]
    found = f" (embedded in {', '.join(places[:5])})" if places else ""
    what = (
        f"parameter {name!r} is missing{found}; add it to the input of {CONSTANTS!r} under its own "
        f"name and read it as `${CONSTANTS}.<name>`"
    )
    return finding(task.at, what, "input")


def _embedded(tasks: Iterable[Task], name: str, data: frozenset[Pointer]) -> Iterator[Pointer]:
    """Yield the texts that speak of a parameter, by its placeholder or its words."""
    words = r"[\W_]*".join(map(re.escape, re.findall(r"[^\W_]+", name)))
    spoken = re.compile(rf"(?<![^\W_]){words}(?![^\W_])", re.IGNORECASE)
    for task in tasks:
        for at, text in texts(task.input, task.at, data):
            if words and spoken.search(text):
                yield at
