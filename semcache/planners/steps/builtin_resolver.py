"""Resolving to what is built in: questions to a person, transforms of data, and outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import ASK_USER
from semcache.errors import InvalidParameter
from semcache.planners.arguments.coercion import coerced
from semcache.planners.arguments.operation_index import content, known_as
from semcache.planners.arguments.synonyms import words
from semcache.planners.arguments.wires import item_fields, list_path
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Asked, Referral, Resolution, Resolved, Wire
from semcache.planners.steps.rows import bare, head
from semcache.planners.steps.transforms import (
    AGGREGATE,
    COUNT,
    FILTER,
    FUNCTIONS,
    GROUP,
    LIMIT,
    SORT,
    TESTS,
)
from semcache.prompts.operators import aggregate_name, operator_name
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import ARTICLES, AUXILIARIES, PREPOSITIONS, PRONOUNS

_FALLING = frozenset("descending desc decreasing falling reverse reversed newest latest".split())
_RISING = frozenset("ascending asc increasing rising oldest earliest".split())
_SMALL = ARTICLES | AUXILIARIES | PRONOUNS | PREPOSITIONS | frozenset(["that", "order", "first"])


class BuiltinResolver:
    """Resolves user inputs, data transforms and outputs. Satisfies `Resolver`.

    Put it first: for every other kind of step it answers that there is nothing built in.
    """

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the built-in operation of a step, or what keeps it from one; see `Resolver`."""
        match intent.kind:
            case "user_input":
                topic: JsonObject = {"topic": intent.topic or intent.noun or intent.goal}
                return _built_in(intent, ASK_USER, topic, wires=())
            case "output":
                return _built_in(intent, "", {}, wires=())
            case "data_transform":
                return _transformed(intent, asked)
            case _:
                return _unclear(intent, f"{intent.goal!r} is nothing built in")


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a transform works on."""

    step: str
    path: tuple[str, ...]
    fields: dict[str, Json]
    """Field → its schema; empty if unknown."""
    nouns: frozenset[str]
    """Singular words of what the rows are."""

    def field(self, said: Sequence[str]) -> str | None:
        """Return the field that words name: as the rows spell it, or as said if that is unknown.

        None if the fields are known and none, or more than one, is named so.
        """
        phrase = "_".join(said)
        if not self.fields:
            return phrase
        for key in (name_key, words, bare, head):
            found = [name for name in self.fields if key(name) == key(phrase)]
            if found:
                return found[0] if len(found) == 1 else None
        return None


def _transformed(intent: SubIntent, asked: Asked) -> Resolved:
    steps = [step for step in intent.depends_on if step in asked.before]
    if len(steps) != 1:
        return _unclear(intent, f"{intent.goal!r} works on {len(steps)} results; expected one")
    rows = _rows(asked.before[steps[0]], asked)
    makers = {
        "filter": _filter,
        "sort": _sort,
        "group": _group,
        "count": _count,
        "aggregate": _aggregate,
        "limit": _limit,
    }
    make = makers.get(str(intent.transform))
    if make is None:
        return _unclear(intent, f"nothing built in does {intent.goal!r}")
    return make(intent, rows)


def _rows(before: Resolution, asked: Asked) -> _Rows:
    """Return what the step before gives; a transform gives rows like those it took."""
    source, seen = before, {before.intent}
    while source.operation in {FILTER, SORT, LIMIT} and source.wires:
        step = source.wires[0].step
        if step not in asked.before or step in seen:
            break
        source = asked.before[step]
        seen.add(step)
    if source.operation not in asked.catalog or source.operation == ASK_USER:
        return _Rows(before.intent, (), {}, frozenset())
    operation = asked.catalog.get(source.operation)
    path = list_path(operation) if source is before else ()
    return _Rows(before.intent, path, item_fields(operation), frozenset(known_as(operation).nouns))


def _built_in(
    intent: SubIntent,
    operation: str,
    given: JsonObject,
    *,
    wires: tuple[Wire, ...],
    params: tuple[Parameter, ...] = (),
) -> Resolution:
    return Resolution(
        intent=intent.id,
        operation=operation,
        input=given,
        params=params,
        wires=wires,
        source="builtin",
        why="built in",
    )


def _on(rows: _Rows) -> tuple[Wire, ...]:
    return (Wire("rows", rows.step, rows.path),)


def _unclear(intent: SubIntent, why: str) -> Referral:
    return Referral(intent=intent.id, kind="none", question=why)


def _no_field(intent: SubIntent, said: Sequence[str], rows: _Rows) -> Referral:
    names = tuple(rows.fields)
    told = ", ".join(map(repr, names[:20]))
    question = f"Which field is meant by {' '.join(said)!r} in {intent.goal!r}: {told}?"
    return Referral(intent=intent.id, kind="which", question=question, options=names)


def _content(text: str) -> list[str]:
    return [word for word in tokens(text) if word not in _SMALL]


# ── filter ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Condition:
    field: str | None
    """None: whichever field has the value."""
    operator: str
    said: str
    """The value in the words of the prompt."""
    value: Json


def _filter(intent: SubIntent, rows: _Rows) -> Resolved:
    found = _condition(intent, rows)
    if isinstance(found, Referral):
        return found
    name = name_key(found.field) if found.field is not None else "value"
    schema = rows.fields.get(found.field) if found.field is not None else None
    value = found.value
    if isinstance(schema, dict) and found.operator in {"=", "!="}:
        try:
            value = coerced(value, schema, name=name)
        except InvalidParameter:
            value = found.value  # rows compare text and numbers as they are
    param = Parameter(name, value, found.said)
    given: JsonObject = {"operator": found.operator, "value": f"{{{{params.{name}}}}}"}
    if found.field is not None:
        given = {"field": found.field, **given}
    return _built_in(intent, FILTER, given, wires=_on(rows), params=(param,))


def _condition(intent: SubIntent, rows: _Rows) -> _Condition | Referral:
    """Return what "label bug", "amount over 500" or "open" asks of the rows."""
    said = [one for one in intent.params if one.mention]
    if len(said) > 1:
        return _unclear(intent, f"{intent.goal!r} has {len(said)} values; expected one condition")
    if said:
        return _compared(intent, rows, said[0])
    return _named(intent, rows)


def _named(intent: SubIntent, rows: _Rows) -> _Condition | Referral:
    """Return the condition that words alone ask for: a field and its value, or a value."""
    said = [word for word in _words_of(intent.topic) if word.lower() not in _SMALL]
    found = [word for word in said if not set(words(word)) <= rows.nouns]
    for size in range(len(found) - 1, 0, -1):
        field = rows.field(found[:size]) if rows.fields or size == 1 else None
        if field is not None:
            value = " ".join(found[size:])
            return _Condition(field, "=", value, value)
    whole = " ".join(found)
    if found and rows.fields and rows.field(found) is not None:
        question = f"What must {whole!r} be in {intent.goal!r}?"
        return Referral(intent=intent.id, kind="missing", question=question, missing=(whole,))
    if len(found) == 1:
        return _Condition(None, "=", whole, whole)
    if not found:
        return _unclear(intent, f"{intent.goal!r} does not say by what")
    return _no_field(intent, found, rows)


def _words_of(text: str) -> list[str]:
    """Return the words of a text as they are spelled."""
    return [word.strip(".,;:!?\"'") for word in text.split()]


def _compared(intent: SubIntent, rows: _Rows, value: Parameter) -> _Condition | Referral:
    """Return the condition that has a value of the prompt: field, comparison, value."""
    mention = value.mention or ""
    before = intent.topic.partition(mention)[0]
    named = [word for word in tokens(before) if word not in ARTICLES]
    operator, rest = _operator(named)
    field_words = [word for word in rest if word not in _SMALL and word != "with"]
    if operator not in TESTS:
        return _unclear(intent, f"{intent.goal!r} compares by {operator!r}, which is not built in")
    if not field_words:
        return _Condition(None, operator, mention, value.value)
    field = rows.field(field_words)
    if field is None:
        return _no_field(intent, field_words, rows)
    return _Condition(field, operator, mention, value.value)


def _operator(named: Sequence[str]) -> tuple[str, list[str]]:
    """Return the comparison that words end in, and the words before it."""
    plain = [word for word in named if word not in {"is", "are"}]
    for size in (4, 3, 2, 1):
        tail = plain[-size:]
        found = operator_name("_".join(tail)) if len(tail) == size else None
        if found is not None:
            return found, plain[:-size]
    return "=", plain


# ── the others ───────────────────────────────────────────────────────────────────────────────────


def _sort(intent: SubIntent, rows: _Rows) -> Resolved:
    said = tokens(intent.topic)
    order = "desc" if _FALLING.intersection(said) else "asc"
    named = [w for w in said if w not in _SMALL | _FALLING | _RISING]
    if not named:
        return _unclear(intent, f"{intent.goal!r} does not say by what")
    field = rows.field(named)
    if field is None:
        return _no_field(intent, named, rows)
    return _built_in(intent, SORT, {"by": field, "order": order}, wires=_on(rows))


def _group(intent: SubIntent, rows: _Rows) -> Resolved:
    named = _content(intent.topic)
    field = rows.field(named) if named else None
    if field is None:
        return _no_field(intent, named, rows)
    return _built_in(intent, GROUP, {"by": field}, wires=_on(rows))


def _count(intent: SubIntent, rows: _Rows) -> Resolved:
    named = [word for word in _content(intent.topic) if not set(words(word)) <= rows.nouns]
    if not named:
        return _built_in(intent, COUNT, {}, wires=_on(rows))
    field = rows.field(named)
    if field is None:
        return _no_field(intent, named, rows)
    return _built_in(intent, COUNT, {"by": field}, wires=_on(rows))


def _aggregate(intent: SubIntent, rows: _Rows) -> Resolved:
    what, _, by = intent.topic.partition(" by ")
    said = [intent.verb, *tokens(what)]
    functions = [found for word in said if (found := aggregate_name(word)) in FUNCTIONS]
    named = [word for word in _content(what) if aggregate_name(word) not in FUNCTIONS]
    field = rows.field(named) if named else None
    if not functions:
        told = ", ".join(FUNCTIONS)
        question = f"How are the numbers to be put together in {intent.goal!r}: {told}?"
        return Referral(intent=intent.id, kind="which", question=question, options=FUNCTIONS)
    if field is None:
        return _no_field(intent, named, rows)
    given: JsonObject = {"field": field, "function": functions[-1]}
    if by:
        group = rows.field(_content(by))
        if group is None:
            return _no_field(intent, _content(by), rows)
        given["by"] = group
    return _built_in(intent, AGGREGATE, given, wires=_on(rows))


def _limit(intent: SubIntent, rows: _Rows) -> Resolved:
    counts = [one for one in intent.params if isinstance(one.value, int)]
    if len(counts) != 1:
        return _unclear(intent, f"{intent.goal!r} has {len(counts)} numbers; expected how many")
    if content(intent.topic) and "last" in tokens(intent.topic):
        return _unclear(intent, f"{intent.goal!r} asks for the last ones; only the first are kept")
    name = counts[0].name if counts[0].name != "number" else "count"
    param = Parameter(name, counts[0].value, counts[0].mention)
    given: JsonObject = {"count": f"{{{{params.{name}}}}}"}
    return _built_in(intent, LIMIT, given, wires=_on(rows), params=(param,))
