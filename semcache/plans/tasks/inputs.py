"""What can be wrong with the inputs of a plan in the tasks format, constants included."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, Pointer, as_object, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.plans.document import filled, texts
from semcache.plans.finding import PLACEHOLDER, Finding, breaches, finding
from semcache.plans.plan import ExecutionPlan
from semcache.plans.references.paths import literal
from semcache.plans.tasks.document import Task, TaskPlan
from semcache.plans.tasks.references import CONSTANTS, TaskPath, is_reference, parse, walk

# Keywords by which a schema may take properties that it does not list.
_OPEN = frozenset({
    "$ref", "additionalProperties", "allOf", "anyOf", "if", "oneOf", "patternProperties",
    "unevaluatedProperties",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constants:
    """What `task0` gives to those who read it."""

    value: JsonObject
    open: frozenset[tuple[str, ...]]
    """Places in it that hold a placeholder, to which no value was bound yet."""
    partly: frozenset[tuple[str, ...]]
    """These places and all above them."""

    @classmethod
    def of(cls, plan: TaskPlan) -> "Constants | None":
        """Return the constants of a plan; None if it has no `task0`."""
        task = next((task for task in plan.tasks if task.id == CONSTANTS), None)
        if task is None:
            return None
        unbound = frozenset(
            tuple(map(str, at[len(task.at) :]))
            for at, text in texts(task.input, task.at, plan.data)
            if PLACEHOLDER.search(text)
        )
        partly = frozenset(at[:i] for at in unbound for i in range(len(at) + 1))
        return cls(constants(task, plan.data), unbound, partly)

    def at(self, path: TaskPath) -> tuple[Json, bool]:
        """Return what a reference gives, and whether some of it is not known yet.

        Raises:
            LookupError: there is no such constant.
        """
        steps = path.steps
        if any(steps[:i] in self.open for i in range(1, len(steps) + 1)):
            return None, True
        return walk(self.value, steps), steps in self.partly


def constants(task: Task, data: frozenset[Pointer]) -> JsonObject:
    """Return the input of `task0` as others read it: as it stands, but `$$` means `$`."""
    return as_object(filled(task.input, task.at, data, lambda text, _: literal(text)))


def check_constants(plan: TaskPlan) -> Iterator[Finding]:
    """Yield the references to what `task0` does not have."""
    known = Constants.of(plan)
    if known is None:
        return
    for task in plan.tasks:
        for at, text in task.references(plan.data):
            path = parse(text)
            if path is None or path.task != CONSTANTS:
                continue
            try:
                known.at(path)
            except LookupError as error:
                what = f"reads {text!r}, but {error.args[0]}"
                yield finding(at, what, "reference")


def check_inputs(plan: TaskPlan, catalog: Catalog) -> Iterator[Finding]:
    """Yield the inputs that break the schema of their operation, constants read included."""
    known = Constants.of(plan) or Constants({}, frozenset(), frozenset())
    for task in plan.tasks:
        if task.id == CONSTANTS or task.service not in catalog:
            continue
        given, unknown = _given(task, known, plan.data)
        yield from breaches(
            given, task.at, unknown=unknown, catalog=catalog, operation=task.service
        )


def _given(
    task: Task, known: Constants, data: frozenset[Pointer]
) -> tuple[JsonObject, list[Pointer]]:
    """Return the input of a task with the constants that it reads, and where it is not known."""
    unknown: list[Pointer] = []

    def read(text: str, at: Pointer) -> Json:
        value, is_open = _known(text, known)
        if is_open:
            unknown.append(at[len(task.at) :])
        return value

    return as_object(filled(task.input, task.at, data, read)), unknown


def _known(text: str, known: Constants) -> tuple[Json, bool]:
    """Return what is known of what a text of an input gives, and whether some of it is not."""
    path = parse(text) if is_reference(text) else None
    if path is None:
        return literal(text), "{{" in text
    if path.task != CONSTANTS:
        return text, True
    try:
        return known.at(path)
    except LookupError:  # told by `check_constants`
        return text, True


def check_surplus(plan: TaskPlan, catalog: Catalog) -> Iterator[Finding]:
    """Yield the inputs that an operation does not list, even if its schema would let them pass."""
    for task in plan.tasks:
        schema = catalog.get(task.service).input_schema if task.service in catalog else {}
        listed = schema.get("properties")
        if not listed or not isinstance(listed, dict) or not _OPEN.isdisjoint(schema):
            continue
        for key in task.input.keys() - listed.keys():
            takes = ", ".join(map(repr, list(listed)[:10]))
            what = f"is no input of {task.service!r}, which takes {takes}"
            yield finding((*task.at, key), what, "input")


def check_task_params(plan: ExecutionPlan, names: Sequence[str]) -> tuple[Finding, ...]:
    """Return a finding for each parameter of a request that `task0` does not have.

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
