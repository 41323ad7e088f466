"""What can be wrong with a plan in the tasks format."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, Pointer, as_object
from semcache.catalog.catalog import Catalog
from semcache.plans.document import filled, texts
from semcache.plans.finding import (
    PLACEHOLDER,
    Code,
    Edges,
    Finding,
    breaches,
    cyclic,
    finding,
    kind,
    listed,
    misplaced,
    near,
    too_many,
    unbound,
    upstream_first,
)
from semcache.plans.paths import literal
from semcache.plans.tasks import (
    CONSTANTS,
    REFUSAL,
    Task,
    TaskPath,
    TaskPlan,
    id_of,
    is_reference,
    named,
    parse,
    spelled_tasks,
    walk,
)

MAX_TASKS = 10_000  # a plan with more is a mistake, and not worth the time of checking it

_ID = re.compile(r"[^\W\d][\w-]*")
_INSIDE = re.compile(r"\$([^\W\d][\w-]*)[.\[]")
_TASKS = "expected a list of tasks, each an object with `id`, `service` and `input`"
_MOVE = f"put the value into the input of {CONSTANTS!r} and read it as `${CONSTANTS}.<name>`"
_ESCAPE = "write `$$` for a literal `$`"


def check_tasks(plan: TaskPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return all findings on a plan in the tasks format, by task in document order."""
    if hopeless := _too_many(plan):
        return hopeless
    found = [*_structure(plan), *_references(plan)]
    if catalog is not None:
        plan = spelled_tasks(plan, catalog)
        found += _services(plan, catalog)
        found += check_inputs(plan, catalog)
        found += check_surplus(plan, catalog)
    return _in_order(found)


def check_task_values(plan: TaskPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return what the values bound to a plan have made wrong, if all was well with its template."""
    found = [*misplaced(plan.data, _is_structure, _MOVE), *check_constants(plan)]
    if catalog is not None:
        found += check_inputs(spelled_tasks(plan, catalog), catalog)
    return tuple(found)


def broken_tasks(plan: TaskPlan, catalog: Catalog) -> tuple[Finding, ...]:
    """Return what keeps an engine from starting; inputs are checked as each task is called.

    Bad form, references to nothing, cycles, operations that the catalog lacks, and placeholders
    that no value was bound to.
    """
    if hopeless := _too_many(plan):
        return hopeless
    found = [*_structure(plan), *_references(plan), *_services(plan, catalog)]
    return _in_order([*found, *unbound(plan.listed, ("tasks",), plan.data)])


def _too_many(plan: TaskPlan) -> tuple[Finding, ...]:
    return too_many(len(plan.listed), "tasks", most=MAX_TASKS, at=("tasks",))


def _in_order(found: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=_place))


def _place(finding: Finding) -> tuple[bool, int]:
    """Return what sorts findings: on the whole, then by task, then on the groups."""
    parts = finding.path.split("/")
    of_task = len(parts) > 2 and parts[1] == "tasks" and parts[2].isdecimal()
    return parts[1:2] == ["parallel_groups"], int(parts[2]) if of_task else -1


def _structure(plan: TaskPlan) -> Iterator[Finding]:
    yield from misplaced(plan.data, _is_structure, _MOVE)
    if not isinstance(plan.body.get("tasks"), list):
        yield finding(("tasks",), f"is {kind(plan.body.get('tasks'))}; {_TASKS}")
        return
    yield from _whole(plan)
    for i, item in enumerate(plan.listed):
        if isinstance(item, dict):
            yield from _task(("tasks", i), item)
        else:
            yield finding(("tasks", i), f"is {kind(item)}; {_TASKS}")
    yield from check_groups(plan)


def _is_structure(at: Pointer) -> bool:
    return len(at) < 4 or at[0] != "tasks" or at[2] != "input"


def _whole(plan: TaskPlan) -> Iterator[Finding]:
    ids = Counter(task.id for task in plan.tasks)
    if CONSTANTS not in ids:
        what = f"has no {CONSTANTS!r}; expected one, with the constants of the request as `input`"
        yield finding(("tasks",), what)
    if not ids.keys() - {CONSTANTS}:
        yield finding(("tasks",), f"has no task beside {CONSTANTS!r}; expected at least one")
    for task in plan.tasks:
        if ids.pop(task.id, 1) > 1:  # told once
            yield finding((*task.at[:2], "id"), f"{task.id!r} is the id of several tasks")


def _task(at: Pointer, item: JsonObject) -> Iterator[Finding]:
    name, given, service = item.get("id"), item.get("input", {}), item.get("service", "")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        what = f"is {kind(name)}; expected text such as 'task1': letters, digits, `_` and `-`"
        yield finding((*at, "id"), what)
    if not isinstance(given, dict):
        yield finding((*at, "input"), f"is {kind(given)}; expected an object")
    if service is None or isinstance(service, str):
        yield from _service(at, id_of(item), called=bool(service and service.strip()))
    else:
        yield finding((*at, "service"), f"is {kind(service)}; expected the name of an operation")


def _service(at: Pointer, name: str, *, called: bool) -> Iterator[Finding]:
    if name == CONSTANTS and called:
        what = f"{CONSTANTS!r} must only contain constant inputs; remove the service"
        yield finding((*at, "service"), what)
    elif name == REFUSAL and not called:
        yield finding(at, "says that the request cannot be met; there is nothing to run")
    elif name != CONSTANTS and not called:
        yield finding(at, f"task {name!r} has no service; expected the name of an operation")


def _services(plan: TaskPlan, catalog: Catalog) -> Iterator[Finding]:
    for task in plan.tasks:
        if not task.service or task.id == CONSTANTS:
            continue
        at = (*task.at[:2], "service")
        if task.service not in catalog:
            yield finding(at, catalog.unknown(task.service), "operation")
            continue
        undo = catalog.get(task.service).compensation
        if undo is not None and undo not in catalog:
            what = f"operation {task.service!r} is undone by {undo!r}, which the catalog lacks"
            yield finding(at, what, "operation")


def _references(plan: TaskPlan) -> Iterator[Finding]:
    ids = dict.fromkeys(task.id for task in plan.tasks)
    for task in plan.tasks:
        if task.id != CONSTANTS:
            for at, text in texts(task.input, task.at, plan.data):
                yield from _text(at, text, ids)
    if CONSTANTS in ids:
        yield from check_constants(plan)
    yield from _cycles(plan)


def _text(at: Pointer, text: str, ids: Mapping[str, object]) -> Iterator[Finding]:
    """Yield what is wrong with a text of an input: a reference, or what may be meant as one."""
    if text.startswith("$$"):
        return
    path = parse(text) if is_reference(text) else None
    if path is not None:
        if path.task not in ids:
            what = f"reads {path.task!r}, which is no task{near(path.task, ids)}; {_ESCAPE}"
            yield finding(at, what, "reference")
        return
    inside = [found[1] for found in _INSIDE.finditer(text) if named(found[1]) in ids]
    if inside:
        what = f"{text!r} mixes text and references; one stands alone, such as `${inside[0]}.field`"
        yield finding(at, what, "expression")
    elif is_reference(text):
        what = f"{text!r} is no reference such as `$task1.field`; {_ESCAPE}"
        yield finding(at, what, "expression")


def _cycles(plan: TaskPlan) -> Iterator[Finding]:
    waiting = cyclic(plan.reads())
    if waiting:
        first = next(task for task in plan.tasks if task.id in waiting)
        what = f"can never start; these wait for one another: {listed([*map(repr, waiting)])}"
        yield finding(first.at[:2], what, "endless")


# What can be wrong with the `parallel_groups` of a plan in the tasks format.
#
# They say again what the references say already: nothing is scheduled by them. Where both disagree
# the plan was not thought through, and which of them was meant nobody can tell.

GROUPS = "parallel_groups"


def check_groups(plan: TaskPlan) -> Iterator[Finding]:
    """Yield what is malformed in the groups, and what contradicts the references of the tasks."""
    groups = plan.body.get(GROUPS, [])
    if not isinstance(groups, list):
        yield _finding((), f"is {kind(groups)}; expected a list of lists of task ids")
        return
    ids = {task.id for task in plan.tasks}
    group_of: dict[str, int] = {}
    for i, group in enumerate(groups):
        if not isinstance(group, list):
            yield _finding((i,), f"is {kind(group)}; expected a list of task ids")
            continue
        for j, name in enumerate(group):
            yield from _member((i, j), name, ids, group_of)
            if isinstance(name, str):
                group_of.setdefault(name, i)
    yield from _contradictions(plan.reads(), group_of)


def _finding(at: Pointer, what: str, code: Code = "shape") -> Finding:
    return finding((GROUPS, *at), what, code)


def _member(
    at: Pointer, name: Json, ids: Collection[str], group_of: Mapping[str, int]
) -> Iterator[Finding]:
    if not isinstance(name, str) or name not in ids:
        guess = near(name, ids) if isinstance(name, str) else ""
        yield _finding(at, f"is {kind(name)}; expected the id of a task{guess}", "reference")
    elif name in group_of:
        yield _finding(at, f"has {name!r}, which group {group_of[name]} has too; expected it once")


def _contradictions(needed: Edges, group_of: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the tasks that read, over however many others, one of their own group or a later one.

    Groups follow one another, so what is read must stand in an earlier one.
    """
    latest: dict[str, tuple[int, str]] = {}
    for name in upstream_first(needed):
        behind = [latest[other] for other in needed[name] if other in latest]
        behind += [(group_of[other], other) for other in needed[name] if other in group_of]
        latest[name] = max(behind, default=(-1, ""))
        group, other = latest[name]
        if name in group_of and group >= group_of[name]:
            what = (
                f"has {name!r} in group {group_of[name]} and {other!r} in group {group}, but "
                f"{name!r} reads {other!r}; expected {name!r} in a later group"
            )
            yield _finding((), what, "reference")


# What can be wrong with the inputs of a plan in the tasks format, constants included.

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
