"""Fit: a step and one operation, its values in the properties that take them; or why not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from semcache.binding.generalize.placeholders import placeholder, without_placeholders
from semcache.canonical import JsonObject, as_list, same
from semcache.catalog.catalog import Catalog
from semcache.catalog.labels import Value, labeled
from semcache.catalog.schemas import choices
from semcache.planners.arguments.argument_match import ArgumentMatch, Placed, is_guess, placed
from semcache.planners.arguments.data_edges import wired
from semcache.planners.arguments.input_fields import InputField, places
from semcache.planners.arguments.operation_index import IndexedOperation
from semcache.planners.arguments.proper_names import proper_names
from semcache.planners.arguments.synonyms import words
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import DataEdge, ResolutionContext
from semcache.prompts.mentions import find_mentions, recognized
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.closed_values import ClosedValues

_ASKING = frozenset(["prompt", "question", "message"])
"""Required texts that the words of the step itself can fill (specs/ccos.md, E4)."""
MAX_CLOSED = 500
"""Listed values of one operation that are looked for in a step."""


@dataclass(frozen=True, slots=True)
class Fit:
    """An operation that can do a step."""

    known: IndexedOperation
    input: JsonObject
    """With a placeholder for each value."""
    params: tuple[Parameter, ...]
    wires: tuple[DataEdge, ...]
    placed: tuple[Placed, ...] = ()
    """The values, each with its property."""
    verbatim: bool = False
    """Whether a property takes the words of the step as they stand."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why an operation cannot do a step."""

    known: IndexedOperation
    why: str
    missing: tuple[str, ...] = ()
    """Properties that lack a value, if that is all."""
    options: tuple[str, ...] = ()
    """Properties that one value could mean, if that is all."""
    value: str = ""
    """That value, as it was said."""
    placed: tuple[Placed, ...] = ()
    """The values that have their properties, the one in doubt in the first of its options."""


def fitted(intent: SubIntent, known: IndexedOperation, asked: ResolutionContext) -> Fit | Unfit:
    """Return how `intent` is done by an operation: every value said for it used, none invented.

    What may be left out is left out, a default that the schema names is filled in, and a required
    `prompt`, `question` or `message` takes the words of the step. Anything else that is missing,
    left over or in doubt makes the operation unfit.
    """
    into = places(known.operation.input_schema)
    values, optional = _values(intent, known, into, asked)
    for one in values:
        if one not in asked.params and _is_relative(one):
            what = f"{one.mention!r} is another value whenever it is asked; give the date itself"
            return Unfit(known, what)
    found = placed(values, goal=intent.goal, known=known, places=into)
    taken = {one.place.name for one in found.placed}
    free = [place for place in into if place.name not in taken]
    if any(_asks(place, known) for place in free):  # what was said stands in its words
        found = replace(found, left=tuple(one for one in found.left if one.mention is None))
    if (doubt := _doubt(found, optional, known, into)) is not None:
        return doubt
    wires, lost = wired(intent.depends_on, asked=asked, places=free, about=known.nouns)
    if lost:
        return Unfit(known, f"it has no one property for {', '.join(map(repr, lost))}")
    return _complete(intent, known, found, wires, free)


def _values(
    intent: SubIntent, known: IndexedOperation, into: Sequence[InputField], asked: ResolutionContext
) -> tuple[list[Parameter], set[str]]:
    """Return the values of a step, and the names of those that another step may be meant to use.

    What is a listed value of some operation is none here if it only says what this one is about.
    """
    about = {known.verb, *known.nouns}
    held = {one.name for one in asked.params}
    said = [
        one
        for one in intent.params
        if one.mention is not None
        and (one.name in held or is_guess(one.name) or not about.issuperset(words(one.mention)))
    ]
    unsaid = [one for one in intent.params if one.mention is None]
    # What the caller holds already stands in the words once more: "the 1st of March" is the date.
    found = [one for one in said if one.name in held or not _repeats(one, asked.params)]
    values = [*found, *unsaid]
    closed = _closed(into, known.operation.input_schema, asked.catalog)
    if closed:
        texts = [one.mention or str(one.value) for one in values]
        for mention in find_mentions(intent.goal, given=found, closed=closed):
            said_already = any(mention.text.casefold() in one.casefold() for one in texts)
            noun = about.issuperset(words(mention.text))
            if mention.source == "closed" and mention.name and not said_already and not noun:
                values.append(Parameter(mention.name, mention.value, mention.text))
    values += proper_names(intent.goal, [*values, *said])
    return values, set() if asked.alone else {one.name for one in unsaid}


def _repeats(param: Parameter, given: Sequence[Parameter]) -> bool:
    said = (param.mention or "").strip("\"'").casefold()
    return any(same(param.value, one.value) or str(one.value).casefold() == said for one in given)


def _is_relative(param: Parameter) -> bool:
    """Return whether a value depends on when it is asked: "next week", "March 6th"."""
    said = param.mention or ""
    return any(one.relative and one.value == param.value for one in recognized(said))


def _closed(into: Sequence[InputField], root: JsonObject, catalog: Catalog) -> ClosedValues:
    """Return the values that the schema of an operation, or its catalog, lists for its places."""
    listed = {name_key(name): values for name, values in catalog.closed.items()}
    found: dict[str, list[str]] = {}
    labels: dict[str, dict[str, Value]] = {}
    left = MAX_CLOSED
    for place in into:
        own = [*_texts(place.schema, root), *listed.get(name_key(place.name), ())]
        texts = list(dict.fromkeys(own))[:left]
        if texts:
            found[place.name] = texts
            left -= len(texts)
        called = dict(islice(_called(place.schema, root), max(left, 0)))
        if called:
            labels[place.name] = called
            left -= len(called)
    return ClosedValues(found, synonyms=catalog.synonyms, labels=labels)


def _parts(schema: JsonObject, root: JsonObject) -> Iterator[JsonObject]:
    for part in choices(schema, root):
        yield part
        yield from choices(part.get("items"), root)


def _texts(schema: JsonObject, root: JsonObject) -> Iterator[str]:
    for part in _parts(schema, root):
        values = [*as_list(part.get("enum")), part.get("const")]
        yield from (value for value in values if isinstance(value, str))


def _called(schema: JsonObject, root: JsonObject) -> Iterator[tuple[str, Value]]:
    """Yield the words that the schema has for its values."""
    for part in _parts(schema, root):
        yield from labeled(part)


def _asks(place: InputField, known: IndexedOperation) -> bool:
    """Return whether a property takes the words of a step."""
    needed = place.required and not place.has_default
    return needed and name_key(place.name) in _ASKING and place.takes_text and known.reads


def _doubt(
    found: ArgumentMatch, optional: set[str], known: IndexedOperation, into: Sequence[InputField]
) -> Unfit | None:
    for param, options in found.ambiguous:
        said = param.mention or str(param.value)
        names = ", ".join(map(repr, options))
        first = next(place for place in into if place.name == options[0])
        return Unfit(
            known,
            f"{said!r} could be {names}",
            options=options,
            value=said,
            placed=(*found.placed, Placed(first, param)),
        )
    left = [one for one in found.left if one.name not in optional]
    if left:
        said = ", ".join(repr(one.mention or one.value) for one in left)
        return Unfit(known, f"it has no property for {said}")
    return None


def _complete(
    intent: SubIntent,
    known: IndexedOperation,
    found: ArgumentMatch,
    wires: tuple[DataEdge, ...],
    free: Sequence[InputField],
) -> Fit | Unfit:
    """Return the fit with what may be filled in, or what is missing."""
    given: JsonObject = {one.place.name: placeholder(one.param.name) for one in found.placed}
    actual: JsonObject = {one.place.name: one.param.value for one in found.placed}
    params = tuple({name_key(one.param.name): one.param for one in found.placed}.values())
    by_wire = {wire.property for wire in wires}
    missing, verbatim = [], False
    for place in free:
        if not place.required or place.name in by_wire:
            continue
        if place.has_default:
            given[place.name] = actual[place.name] = place.schema["default"]
        elif _asks(place, known):
            verbatim = True
            given[place.name] = _worded(intent.goal, params)
            actual[place.name] = intent.goal
        else:
            missing.append(place.name)
    if missing:
        told = ", ".join(map(repr, missing))
        why = f"it needs {told}, which nothing gives"
        return Unfit(known, why, tuple(missing), placed=found.placed)
    return Fit(known, given, params, wires, found.placed, verbatim)


def breaches(fit: Fit, asked: ResolutionContext) -> tuple[str, ...]:
    """Return how the values of a fit break the schema of the operation; empty if they don't."""
    given = without_placeholders(fit.input, fit.params)
    wired_to = {wire.property for wire in fit.wires}
    found = asked.catalog.violations(fit.known.operation.name, given)
    return tuple(
        str(one)
        for one in found
        if not (one.keyword == "required" and any(f"'{name}'" in one.what for name in wired_to))
    )


def _worded(goal: str, params: Sequence[Parameter]) -> str:
    """Return the words of a step with a placeholder for each value that stands in them."""
    text = goal
    for param in sorted(params, key=lambda one: -len(one.mention or "")):
        if param.mention:
            text = text.replace(param.mention, placeholder(param.name), 1)
    return text
