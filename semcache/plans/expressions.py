"""What an expression of a plan means: paths, comparisons and conditions over plain JSON.

Evaluating is total: every expression has a value over every document, unless it looks at more
values than its budget. Nothing that stands in the document is ever read as an expression.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from semcache.canonical import Json, as_list, leaves, same
from semcache.errors import ExpressionError

MAX_VISITS = 1_000_000  # values that one evaluation may look at; `$..*..*` squares a document
CHECKED = 1_000  # values that are looked at between two looks at the clock: about a millisecond


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true, false or null."""

    constant: str | int | float | None


@dataclass(frozen=True, slots=True)
class Not:
    """Whether a value is falsy: null, false, 0 or empty."""

    inner: "Expression"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Whether every part is truthy; stops at the first that is not."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whether some part is truthy; stops at the first that is."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two values relate; across types they are never equal and stand by rank, null lowest."""

    left: "Expression"
    operator: str
    """A key of `COMPARISONS`."""
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Member:
    """The member of an object by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """The item of a list by its position; of an object, the member named by these digits."""

    position: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Every `step`th item of a list from `start` up to, not including, `stop`."""

    start: int
    stop: int | None
    """None: to the end."""
    step: int


@dataclass(frozen=True, slots=True)
class Every:
    """All items of a list, or all values of an object."""


@dataclass(frozen=True, slots=True)
class FilterSelector:
    """The children for which a condition is truthy."""

    condition: "Expression"


Selector: TypeAlias = Member | Item | Slice | Every | FilterSelector
"""What picks children of one value."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A step of a path that goes to children or, if `deep`, to children at any depth."""

    selectors: tuple[Selector, ...]
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """Items of a list, members of an object, characters of a text; 0 for anything else."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The first items of a list or characters of a text; an empty list for null."""

    count: "Expression"


@dataclass(frozen=True, slots=True)
class SortStep:
    """A list in ascending order of an expression whose root is the item; stable.

    Numbers come before texts, booleans, containers, and null comes last.
    """

    key: "Expression"


Function: TypeAlias = Size | Limit | SortStep
"""A step of a path that turns all that was found so far into one value."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Where to look in a document: null for nothing there, the value for one, a list for several.

    With a filter it is a list whatever was found.
    """

    absolute: bool
    """Whether it starts from the root (`$`), not from the item looked at (`@`)."""
    steps: tuple[Pick | Function, ...]


Expression: TypeAlias = Literal | Not | AllOf | AnyOf | Comparison | JsonPath
"""Anything that has a value over a document."""


def evaluate(
    expression: Expression, root: Json, *, check: Callable[[], None] | None = None
) -> Json:
    """Return the value of `expression` over the document `root`; parts are shared with it.

    `check` is called now and then, and ends it by raising.

    Raises:
        ExpressionError: it looks at more than a million values.
    """
    return _value(expression, _View(root, root, _Visits(check)))


def reads(expression: Expression) -> Iterator[str]:
    """Yield the members of the root that `expression` reads, in the order written."""
    match expression:
        case Not(inner=inner):
            yield from reads(inner)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from reads(part)
        case Comparison(left=left, right=right):
            yield from reads(left)
            yield from reads(right)
        case JsonPath():
            yield from _read_by_path(expression)
        case Literal():
            return


def _read_by_path(path: JsonPath) -> Iterator[str]:
    first = path.steps[0] if path.steps else None
    if path.absolute and isinstance(first, Pick) and not first.deep:
        yield from (picked.name for picked in first.selectors if isinstance(picked, Member))
    for step in path.steps:
        # The root of a sort's key is the item, so that nothing of the document is read there.
        if isinstance(step, Limit):
            yield from reads(step.count)
        elif isinstance(step, Pick):
            for selector in step.selectors:
                yield from reads(selector.condition) if isinstance(selector, FilterSelector) else ()


class _Visits:
    """How many values one evaluation has looked at."""

    __slots__ = ("_check", "_count", "_due")

    def __init__(self, check: Callable[[], None] | None) -> None:
        self._check = check
        self._count = 0
        self._due = CHECKED

    def add(self, count: int) -> None:
        self._count += count
        if self._count > MAX_VISITS:
            raise ExpressionError(
                f"an expression looks at more than {MAX_VISITS:,} values; narrow its path"
            )
        if self._check is not None and self._count >= self._due:
            self._due = self._count + CHECKED
            self._check()


@dataclass(frozen=True, slots=True)
class _View:
    root: Json
    item: Json
    """What `@` means."""
    visits: _Visits
    """Shared by the views of one evaluation."""

    def visit(self, count: int) -> None:
        self.visits.add(count)


def _value(expression: Expression, view: _View) -> Json:
    view.visit(1)
    match expression:
        case JsonPath():
            return _found(expression, view)
        case Comparison(left=left, operator=operator, right=right):
            one, other = _value(left, view), _value(right, view)
            if isinstance(one, (list, dict)) and isinstance(other, (list, dict)):
                view.visit(_weight(one))  # compared to their depth
            return COMPARISONS[operator](one, other)
        case AllOf(parts=parts):
            return all(_value(part, view) for part in parts)
        case AnyOf(parts=parts):
            return any(_value(part, view) for part in parts)
        case Not(inner=inner):
            return not _value(inner, view)
        case Literal(constant=constant):
            return constant


def _found(path: JsonPath, view: _View) -> Json:
    found = [view.root if path.absolute else view.item]
    filtered = False
    for step in path.steps:
        if isinstance(step, Pick):
            found = _picked(step, found, view)
            filtered = filtered or any(isinstance(s, FilterSelector) for s in step.selectors)
        else:
            found = [_applied(step, _settled(found, filtered=filtered), view)]
            filtered = False
    return _settled(found, filtered=filtered)


def _settled(found: list[Json], *, filtered: bool) -> Json:
    if filtered or len(found) > 1:
        return list(found)
    return found[0] if found else None


def _picked(step: Pick, values: list[Json], view: _View) -> list[Json]:
    sources = _descendants(values, view) if step.deep else values
    found: list[Json] = []
    for source in sources:
        for selector in step.selectors:
            children = _children(selector, source, view)
            view.visit(1 + len(children))
            found += children
    return found


def _descendants(values: list[Json], view: _View) -> Iterator[Json]:
    """Yield each value and all below it, parents first, in document order."""
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        view.visit(1)
        yield value
        waiting += _inner(value)[::-1]


def _children(selector: Selector, value: Json, view: _View) -> list[Json]:
    match selector:
        case Member(name=name):
            return [value[name]] if isinstance(value, dict) and name in value else []
        case Item(position=position) if isinstance(value, list):
            return value[position : position + 1]
        case Item(position=position):
            return _children(Member(str(position)), value, view)
        case Slice(start=start, stop=stop, step=step):
            return value[start:stop:step] if isinstance(value, list) else []
        case Every():
            return _inner(value)
        case FilterSelector(condition=condition):
            inner = _inner(value)
            return [i for i in inner if _value(condition, _View(view.root, i, view.visits))]


def _weight(value: Json) -> int:
    """Return how many values stand in `value`, at most as many as may be visited."""
    return sum(1 for _ in islice(leaves(value), MAX_VISITS))


def _inner(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return as_list(value)


def _applied(function: Function, value: Json, view: _View) -> Json:
    match function:
        case Size():
            return len(value) if isinstance(value, (list, dict, str)) else 0
        case Limit(count=count):
            return _limited(value, _value(count, view))
        case SortStep(key=key) if isinstance(value, list):
            placed = [(_place(_value(key, _View(i, i, view.visits))), i) for i in value]
            return [item for _, item in sorted(placed, key=lambda pair: pair[0])]
        case SortStep():
            return value


def _limited(value: Json, count: Json) -> Json:
    if value is None:
        return []
    if isinstance(count, bool) or not isinstance(count, (int, float)):
        return value  # no count, no limit
    return value[: max(0, int(count))] if isinstance(value, (list, str)) else value


_RANKS: dict[type, int] = {type(None): 0, int: 1, float: 1, str: 2, bool: 3, list: 4, dict: 4}
_CONTAINER = 4
_NULL_LAST = 5  # null is the least in a comparison, but the last in a sort


def _place(value: Json) -> tuple[int, str | float]:
    if value is None:
        return _NULL_LAST, 0
    return _RANKS[type(value)], 0 if isinstance(value, (list, dict)) else value


def _less(left: Json, right: Json) -> bool:
    rank, other = _RANKS[type(left)], _RANKS[type(right)]
    if rank != other:
        return rank < other
    # Equal ranks: both are null, containers (neither has an order), or scalars of one kind.
    return rank not in {0, _CONTAINER} and left < right  # type: ignore[operator]


COMPARISONS: dict[str, Callable[[Json, Json], bool]] = {
    "==": same,
    "!=": lambda left, right: not same(left, right),
    "<": _less,
    "<=": lambda left, right: _less(left, right) or same(left, right),
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: _less(right, left) or same(left, right),
}
"""What each operator asks of two values."""
