"""Resolving to what is built in: questions to a person, transforms of data, and outputs.

Each word of a transform is a field, a value, a comparison, a direction or one of the few small
words below; a transform with any other is a question, for the plan would lose that word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.binding.generalize.placeholders import placeholder
from semcache.canonical import Json, JsonObject
from semcache.catalog.builtin import ASK_USER
from semcache.errors import InvalidParameter
from semcache.planners.arguments.coercion import coerced, fits
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import (
    DataEdge,
    Referral,
    Resolution,
    ResolutionContext,
    Resolved,
    unclear,
)
from semcache.planners.steps.terms import (
    ROW_WORDS,
    RowTerm,
    StepRows,
    field_named,
    lost,
    no_field,
    rows_before,
    terms_of,
)
from semcache.planners.transforms import (
    AGGREGATE,
    COUNT,
    FILTER,
    FUNCTIONS,
    GROUP,
    LIMIT,
    SORT,
    TESTS,
)
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.schema import aggregate_name, operator_name
from semcache.prompts.words import CLOSED_CLASS

_RISING = frozenset("ascending asc increasing rising".split())
_FALLING = frozenset("descending desc decreasing falling".split())
# Before "first": what stands first.
_SMALL_FIRST = frozenset("lowest smallest least oldest earliest cheapest shortest".split())
_GREAT_FIRST = frozenset("highest largest biggest greatest newest latest longest most".split())
_LEADING = frozenset("are have having is that where which whose with".split())
_COPULAS = frozenset(["is", "are", "of"])
_PER = frozenset(["by", "per"])
_FIRST = frozenset(["first", "only", "just", "to"])


class BuiltinResolver:
    """Resolves user inputs, data transforms and outputs. Satisfies `Resolver`.

    Put it first: for every other kind of step it answers that there is nothing built in.
    """

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return the built-in operation of a step, or what keeps it from one; see `Resolver`."""
        match intent.kind:
            case "user_input":
                topic: JsonObject = {"topic": intent.topic or intent.goal}
                return _built_in(intent, ASK_USER, topic, wires=())
            case "output":
                return _built_in(intent, "", {}, wires=())
            case "data_transform":
                return _transformed(intent, asked)
            case _:
                return unclear(intent, f"{intent.goal!r} is nothing built in")


def _transformed(intent: SubIntent, asked: ResolutionContext) -> Resolved:
    steps = [step for step in intent.depends_on if step in asked.before]
    if len(steps) != 1:
        return unclear(intent, f"{intent.goal!r} works on {len(steps)} results; expected one")
    rows = rows_before(asked.before[steps[0]], asked)
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
        return unclear(intent, f"nothing built in does {intent.goal!r}")
    return make(intent, rows)


def _built_in(
    intent: SubIntent,
    operation: str,
    given: JsonObject,
    *,
    wires: tuple[DataEdge, ...],
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


def _on(rows: StepRows) -> tuple[DataEdge, ...]:
    return (DataEdge("rows", rows.step, rows.path),)


# ── filter ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Condition:
    field: str
    operator: str
    said: str
    """The value in the words of the prompt."""
    value: Json


def _filter(intent: SubIntent, rows: StepRows) -> Resolved:
    found = _condition(intent, rows)
    if isinstance(found, Referral):
        return found
    if found.operator not in TESTS:
        return unclear(intent, f"{intent.goal!r} compares by {found.operator!r}: not built in")
    name, value = name_key(found.field), found.value
    schema = rows.fields.get(found.field)
    if isinstance(schema, dict) and found.operator in {"=", "!="}:
        try:
            value = coerced(value, schema, name=name)
        except InvalidParameter as why:
            return unclear(intent, str(why))
    given: JsonObject = {
        "field": found.field,
        "operator": found.operator,
        "value": placeholder(name),
    }
    param = Parameter(name, value, found.said)
    return _built_in(intent, FILTER, given, wires=_on(rows), params=(param,))


def _condition(intent: SubIntent, rows: StepRows) -> _Condition | Referral:
    """Return what "label bug", "amount over 500", "more than 3 points" or "open" asks of rows."""
    terms = terms_of(intent)
    while terms and (terms[0].word in _LEADING or rows.is_noun(terms[0].word)):
        terms = terms[1:]
    while len(terms) > 1 and terms[-1].value is None and rows.is_noun(terms[-1].word):
        terms = terms[:-1]
    values = [i for i, one in enumerate(terms) if one.value is not None]
    if len(values) > 1:
        return unclear(intent, f"{intent.goal!r} has {len(values)} values; expected one condition")
    if values:
        return _compared(intent, rows, terms, values[0])
    return _said(intent, rows, terms)


def _compared(
    intent: SubIntent, rows: StepRows, terms: Sequence[RowTerm], at: int
) -> _Condition | Referral:
    """Return the condition that has a value: "amount over 500", "more than 3 points"."""
    value = terms[at].value
    before, after = terms[:at], terms[at + 1 :]
    operator, left = _operator(before)
    named = left or after
    if value is None or (left and after) or value.name.startswith(("percent", "ordinal")):
        return lost(intent, terms)
    field = field_named(named, rows)
    if field is None:
        return no_field(intent, named or terms, rows)
    return _Condition(field, operator, value.mention or "", value.value)


def _operator(terms: Sequence[RowTerm]) -> tuple[str, list[RowTerm]]:
    """Return the comparison that terms end in, and the terms before it."""
    plain = [one for one in terms if one.word not in _COPULAS]
    for size in (4, 3, 2, 1):
        tail = [one.word for one in plain[-size:]]
        found = operator_name("_".join(tail)) if len(tail) == size else None
        if found is not None:
            return found, plain[:-size]
    if plain and plain[-1].word == "not":
        return "!=", plain[:-1]
    return "=", plain


def _said(intent: SubIntent, rows: StepRows, terms: Sequence[RowTerm]) -> _Condition | Referral:
    """Return the condition that words alone ask for: a field and its value, or a listed value."""
    for size in range(len(terms) - 1, 0, -1):
        field = field_named(terms[:size], rows) if rows.fields or size == 1 else None
        if field is None:
            continue
        rest = list(terms[size:])
        while rest and rest[0].word in _COPULAS:
            rest = rest[1:]
        negated = bool(rest) and rest[0].word == "not"
        value = " ".join(one.text for one in (rest[1:] if negated else rest))
        if not rest or not CLOSED_CLASS.isdisjoint(one.word for one in rest[int(negated) :]):
            return lost(intent, rest or terms)
        return _Condition(field, "!=" if negated else "=", value, value)
    whole = " ".join(one.text for one in terms)
    if terms and rows.fields and field_named(terms, rows) is not None:
        question = f"What must {whole!r} be in {intent.goal!r}?"
        return Referral(intent=intent.id, kind="missing", question=question, missing=(whole,))
    listed = [name for name, schema in rows.fields.items() if _lists(schema, whole)]
    if len(listed) == 1:
        return _Condition(listed[0], "=", whole, whole)
    return no_field(intent, terms, rows)


def _lists(schema: Json, value: str) -> bool:
    return isinstance(schema, dict) and "enum" in schema and fits(value, schema)


# ── the others ───────────────────────────────────────────────────────────────────────────────────


def _sort(intent: SubIntent, rows: StepRows) -> Resolved:
    terms = [one for one in terms_of(intent) if one.word not in _PER]
    order, left = _direction(terms)
    field = field_named(left, rows)
    if field is None:
        return no_field(intent, left, rows)
    return _built_in(intent, SORT, {"by": field, "order": order}, wires=_on(rows))


def _direction(terms: Sequence[RowTerm]) -> tuple[str, Sequence[RowTerm]]:
    """Return the direction that terms end in, and the terms before it."""
    said = [one.word for one in terms]
    if said[-1:] == ["order"] and said[-2:-1] != []:
        terms, said = terms[:-1], said[:-1]
    if said[-1:] == ["first"] and {*said[-2:-1]} <= _SMALL_FIRST | _GREAT_FIRST and said[-2:-1]:
        return ("desc" if said[-2] in _GREAT_FIRST else "asc"), terms[:-2]
    if said[-1:] and said[-1] in _RISING | _FALLING:
        end = -2 if said[-2:-1] == ["in"] else -1
        return ("desc" if said[-1] in _FALLING else "asc"), terms[:end]
    return "asc", terms


def _group(intent: SubIntent, rows: StepRows) -> Resolved:
    terms = [one for one in terms_of(intent) if one.word not in _PER]
    field = field_named(terms, rows)
    if field is None:
        return no_field(intent, terms, rows)
    return _built_in(intent, GROUP, {"by": field}, wires=_on(rows))


def _parted(terms: Sequence[RowTerm]) -> tuple[Sequence[RowTerm], Sequence[RowTerm] | None]:
    """Return what stands before "by" or "per", and after it; None if there is neither."""
    at = next((i for i, one in enumerate(terms) if one.word in _PER), None)
    return (terms, None) if at is None else (terms[:at], terms[at + 1 :])


def _count(intent: SubIntent, rows: StepRows) -> Resolved:
    counted, by = _parted(terms_of(intent))
    left = [one for one in counted if one.value is not None or not rows.is_noun(one.word)]
    if left:
        return lost(intent, left)
    if by is None:
        return _built_in(intent, COUNT, {}, wires=_on(rows))
    field = field_named(by, rows)
    if field is None:
        return no_field(intent, by, rows)
    return _built_in(intent, COUNT, {"by": field}, wires=_on(rows))


def _aggregate(intent: SubIntent, rows: StepRows) -> Resolved:
    terms, by = _parted(terms_of(intent))
    said = [RowTerm(intent.verb), *terms]
    functions = [found for one in said if (found := aggregate_name(one.word)) in FUNCTIONS]
    named = [
        one
        for one in terms
        if aggregate_name(one.word) not in FUNCTIONS and (one.value or one.word not in ROW_WORDS)
    ]
    if len(functions) != 1:
        told = ", ".join(FUNCTIONS)
        question = f"How are the numbers to be put together in {intent.goal!r}: {told}?"
        return Referral(intent=intent.id, kind="which", question=question, options=FUNCTIONS)
    field = field_named(named, rows)
    if field is None:
        return no_field(intent, named, rows)
    given: JsonObject = {"field": field, "function": functions[0]}
    if by is not None:
        group = field_named(by, rows)
        if group is None:
            return no_field(intent, by, rows)
        given["by"] = group
    return _built_in(intent, AGGREGATE, given, wires=_on(rows))


def _limit(intent: SubIntent, rows: StepRows) -> Resolved:
    terms = terms_of(intent)
    counts = [one.value for one in terms if one.value is not None and _is_count(one.value)]
    first = _FIRST | {"top"} if rows.falling else _FIRST
    left = [
        one
        for one in terms
        if one.value not in counts and not (one.word in first or rows.is_noun(one.word))
    ]
    if len(counts) != 1 or counts[0] is None:
        return unclear(intent, f"{intent.goal!r} has {len(counts)} numbers; expected how many")
    if left:
        return lost(intent, left)
    name = counts[0].name if counts[0].name != "number" else "count"
    param = Parameter(name, counts[0].value, counts[0].mention)
    given: JsonObject = {"count": placeholder(name)}
    return _built_in(intent, LIMIT, given, wires=_on(rows), params=(param,))


def _is_count(param: Parameter) -> bool:
    whole = isinstance(param.value, int) and not isinstance(param.value, bool)
    return whole and not param.name.startswith(("percent", "ordinal"))
