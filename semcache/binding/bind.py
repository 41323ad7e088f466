"""Bind: a plan template and the values of a prompt become that prompt's plan.

Copying a whole plan costs several times what the values cost (`copy.deepcopy` of 2 KB: 76 µs), so
the containers on the way to a bound place are copied and everything else is shared.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from semcache.binding.bindings import Binding, Pin
from semcache.binding.codecs import UNCHANGED, alike, inline, named_codec
from semcache.binding.texts.part import check_inline
from semcache.canonical import Json, JsonObject, Pointer, plain, value_at
from semcache.errors import BindingError, InvalidJson
from semcache.process.memo import memoized
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.tokens import fold_case

if TYPE_CHECKING:
    from semcache.binding.template import PlanTemplate

Way: TypeAlias = "tuple[tuple[str | int, Way | int], ...]"
"""From a container: its key or position, and what to do there: go on, or put place number n."""


@dataclass(frozen=True, slots=True)
class Fill:
    """One value on its way into a place."""

    param: int
    """Position of the parameter in `Recipe.names`."""
    binding: Binding
    takes: type | None = None
    """Type of which each value goes into the place as it is, which needs no codec; None: of no
    type."""

    @classmethod
    def of(cls, param: int, binding: Binding) -> "Fill":
        """Return what fills the place of `binding`."""
        whole = not binding.inline and not binding.path
        return cls(param, binding, UNCHANGED.get(binding.codec) if whole else None)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What `bind` needs to know of a template, computed once."""

    names: tuple[str, ...]
    """Names of the parameters."""
    spelled: Mapping[str, int]
    """Name, as it is and free of spelling → position in `names`."""
    places: tuple[tuple[Fill, ...], ...]
    """For each place of the plan that is bound: what fills it; more than one if inline."""
    way: Way
    """From the root of the plan to the places."""
    data: frozenset[Pointer]
    """The places: what stands there is never interpreted."""
    pinned: tuple[tuple[int, Pin, tuple[int, ...]], ...]
    """Position of the parameter in `names`, its pin, and the positions of what it echoes."""
    equal: tuple[tuple[int, ...], ...]
    """Positions in `names` of parameters that must have equal values."""
    follows: tuple[tuple[int, int], ...]
    """Position of a parameter that has no words of its own, and of the one whose words it
    shares."""

    @classmethod
    def of(
        cls,
        params: Sequence[Parameter],
        bindings: Sequence[Binding],
        pinned: Sequence[Pin],
        equal: Sequence[frozenset[str]],
        follows: Mapping[str, str],
    ) -> "Recipe":
        """Return the recipe of a template of these parts."""
        names = tuple(p.name for p in params)
        recipe = _unpinned(names, tuple(bindings), tuple(equal), tuple(follows.items()))
        if not pinned:
            return recipe
        position = {name: i for i, name in enumerate(names)}
        pins = [
            (position[pin.param], pin, tuple(position[name] for name in pin.echo[1::2]))
            for pin in pinned
        ]
        return replace(recipe, pinned=tuple(pins))

    def put(self, plan: JsonObject, values: Sequence[Json]) -> JsonObject:
        """Return `plan` with `values[n]` at place n; what has no place below is shared."""
        filled: JsonObject = _put(plan, self.way, values) if self.way else plan
        return filled


# Plans of one shape have their values in the same places, and a cache has thousands of them.
@memoized(1_000)
def _unpinned(
    names: tuple[str, ...],
    bindings: tuple[Binding, ...],
    equal: tuple[frozenset[str], ...],
    follows: tuple[tuple[str, str], ...],
) -> Recipe:
    position = {name: i for i, name in enumerate(names)}
    places: dict[Pointer, list[Fill]] = {}
    for binding in bindings:
        places.setdefault(binding.at, []).append(Fill.of(position[binding.param], binding))
    return Recipe(
        names=names,
        spelled={name_key(name): i for name, i in position.items()} | position,
        places=tuple(tuple(fills) for fills in places.values()),
        way=_way(tuple(places)),
        data=frozenset(places),
        pinned=(),
        equal=tuple(tuple(sorted(position[name] for name in group)) for group in equal),
        follows=tuple((position[name], position[of]) for name, of in follows),
    )


@memoized(1_000)
def _way(places: tuple[Pointer, ...]) -> Way:
    tree: dict[str | int, object] = {}
    for number, place in enumerate(places):
        node = tree
        for part in place[:-1]:
            node = cast("dict[str | int, object]", node.setdefault(part, {}))
        node[place[-1]] = number
    return _frozen(tree)


def _frozen(tree: Mapping[str | int, object]) -> Way:
    return tuple(
        (part, _frozen(below) if isinstance(below, dict) else cast(int, below))
        for part, below in tree.items()
    )


def _put(node: Any, way: Way, values: Sequence[Json]) -> Any:  # noqa: ANN401 - see below
    # A way leads through containers only, so that `node` is one; its parts fit its type.
    copy = node.copy()
    for part, onward in way:
        copy[part] = values[onward] if isinstance(onward, int) else _put(copy[part], onward, values)
    return copy


class BoundPlan(NamedTuple):  # made for every hit: a third of the time of a frozen dataclass
    """A plan with a prompt's own values."""

    plan: JsonObject
    """The plan. Parts without a value are shared with its template: never change it."""
    data: frozenset[Pointer]
    """Where values stand: what is there is data, never a path, a placeholder or a reference.

    Two numbers below a text are those characters of it: in a program the rest is still read."""


def bind(
    template: "PlanTemplate",
    values: Mapping[str, Json],
    *,
    told: Container[str] = frozenset(),
) -> BoundPlan:
    """Return the plan of `template` for `values`: parameter name → value, spelled in any way.

    Every parameter of the template needs a value, pinned ones included: what is not told cannot
    be compared. Only those of `template.follows` may be left out. `told`: parameters about which
    nothing need be concluded from words, since a caller gave every value by name. Cost:
    microseconds; it grows with the places bound, not with the plan.

    Raises:
        BindingError: the plan would not be right for these values. Its `reason` is `missing` (a
            parameter has no value), `unknown` (a value that the plan does not use), `json`,
            `type`, `pinned`, `equal`, `shape`, `codec` or `unsafe` (text that could change the
            meaning of the text around it).
    """
    recipe = template.recipe
    given = _given(recipe, values)
    for param, pin, echoed in recipe.pinned:
        if pin.why not in _OF_WORDS or pin.param not in told:
            _check_pin(pin, given[param], [given[position] for position in echoed])
    for group in recipe.equal:
        _check_equal(recipe, group, given)
    parts = [
        value if type(value := given[place[0].param]) is place[0].takes else _filled(place, given)
        for place in recipe.places
    ]
    filled: list[Any] = ["".join(part) if type(part) is tuple else part for part in parts]
    data = recipe.data
    if template.format in _READ_AROUND:
        data = frozenset(
            at
            for place, part in zip(recipe.places, parts, strict=True)
            for at in _spans(place[0].binding.at, part)
        )
    return BoundPlan(recipe.put(template.plan, filled), data)


_OF_WORDS = frozenset({"kin", "unknown", "echo"})
"""Pins on what words of a prompt may mean."""

_READ_AROUND = frozenset({"program"})
"""Formats whose texts may hold references beside values."""


def _spans(at: Pointer, part: "Json | tuple[str, ...]") -> Iterator[Pointer]:
    """Yield where data stands: the whole place, or the stretches of a text that are values."""
    if not isinstance(part, tuple):
        yield at
        return
    end = 0
    for n, text in enumerate(part):
        start, end = end, end + len(text)
        if n % 2:
            yield (*at, start, end)


_ABSENT = object()


def _given(recipe: Recipe, values: Mapping[str, Json]) -> list[Json]:
    spelled = recipe.spelled
    given: list[Any] = [_ABSENT] * len(recipe.names)
    for name, value in values.items():
        position = spelled.get(name)
        if position is None:
            position = spelled.get(name_key(name))
        if position is None:
            raise BindingError(
                f"{name!r} is not a parameter of the plan; it has {_names(recipe)}",
                reason="unknown",
            )
        if given[position] is not _ABSENT:
            raise BindingError(
                f"parameter {recipe.names[position]!r} is given twice", reason="unknown"
            )
        given[position] = value if type(value) is int else _json(name, value)
    for follower, followed in recipe.follows:
        if given[follower] is _ABSENT:
            given[follower] = given[followed]
    if _ABSENT in given:
        name = recipe.names[given.index(_ABSENT)]
        raise BindingError(
            f"parameter {name!r} has no value; the plan needs {_names(recipe)}", reason="missing"
        )
    return given


def _names(recipe: Recipe) -> str:
    return ", ".join(map(repr, recipe.names)) or "none"


def _json(name: str, value: Json) -> Json:
    # Most values are whole numbers or short ASCII text, which are JSON for sure.
    if type(value) is str and value.isascii():
        return value
    try:
        return plain(value, what=f"parameter {name!r}")
    except InvalidJson as error:
        raise BindingError(str(error), reason="json") from error


def _check_pin(pin: Pin, value: Json, echoed: Sequence[Json]) -> None:
    found = _part(value, pin.path, pin.param)
    if pin.why == "shape":
        ok = shape(found) == shape(pin.value)
    elif pin.why == "unknown":
        ok = _words(found) == _words(pin.value)
    elif pin.why == "echo":
        ok = _words(found) == _words(_echo(pin, echoed))
    else:
        ok = alike(found, pin.value)
    if not ok:
        raise BindingError(
            f"the plan was made for {pin.param} = {pin.value!r} and is not known to hold for "
            f"{found!r} ({pin.why})",
            reason="pinned",
        )


def _words(value: Json) -> Json:
    return " ".join(fold_case(value).split()) if isinstance(value, str) else value


def _echo(pin: Pin, values: Sequence[Json]) -> str:
    parts = list(pin.echo)
    parts[1::2] = [value if isinstance(value, str) else "" for value in values]
    return "".join(parts)


def shape(value: Json) -> Json:
    """Return `value` with each scalar replaced by null: its keys and lengths, and nothing else."""
    match value:
        case dict():
            return {key: shape(item) for key, item in value.items()}
        case list():
            return [shape(item) for item in value]
        case _:
            return None


def _check_equal(recipe: Recipe, group: tuple[int, ...], given: list[Json]) -> None:
    first = given[group[0]]
    for other in group[1:]:
        if not alike(first, given[other]):
            raise BindingError(
                f"the plan serves only equal values of {recipe.names[group[0]]!r} and "
                f"{recipe.names[other]!r}; got {first!r} and {given[other]!r}",
                reason="equal",
            )


def _filled(place: tuple[Fill, ...], given: list[Json]) -> "Json | tuple[str, ...]":
    """Return what goes to a place: a value, or text and values by turns, text first."""
    if not place[0].binding.inline:
        return _encoded(place[0], given)
    parts: list[str] = []
    for n, fill in enumerate(place):
        value = _encoded(fill, given)
        spelled = str(inline(value))
        if isinstance(value, str) and fill.binding.is_checked:
            after = place[n + 1].binding.before if n + 1 < len(place) else fill.binding.after
            check_inline(fill.binding.before, spelled, after)
        parts += (fill.binding.before, spelled)
    return (*parts, place[-1].binding.after)


def _encoded(fill: Fill, given: list[Json]) -> Json:
    value = given[fill.param]
    if fill.binding.path:
        value = _part(value, fill.binding.path, fill.binding.param)
    return named_codec(fill.binding.codec)(value)


def _part(value: Json, path: Pointer, param: str) -> Json:
    try:
        return value_at(value, path)
    except LookupError as error:
        raise BindingError(
            f"the value of {param!r} has no part {error.args[0]!r}", reason="shape"
        ) from error
