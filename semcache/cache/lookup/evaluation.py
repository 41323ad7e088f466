"""The evaluation of a candidate: it is bound and checked for a prompt, or refused."""

import math
from collections.abc import Container, Mapping, Sequence

from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.bind_entry import (
    FilledPlan,
    Refused,
    bind_by_names,
    bind_by_schema,
    bind_by_slots,
)
from semcache.cache.lookup.context import BoundEntry, Lookup
from semcache.cache.query import Query
from semcache.cache.result import Candidate
from semcache.cache.view.view import View
from semcache.canonical import Json, same
from semcache.events import Tier
from semcache.matching.gates import Verdict, match_slots
from semcache.matching.model.value_risk import ValueChange
from semcache.matching.words.classes import stem
from semcache.matching.words.content import content, is_other_mood, is_telling, other_numbers
from semcache.plans.codec import MAKERS, check_values
from semcache.plans.document import ExecutionPlan
from semcache.prompts.mentions import OPEN_KINDS
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.tokens import tokens


def says_the_same(entry: Entry, query: Query) -> bool:
    """Return whether nothing but values parts a prompt from the one that the entry is of."""
    mine, its = query.given_template.text, entry.given.text if query.given else entry.template.text
    return mine == its or content(mine) == content(its)


def value_change(
    view: View, entry_id: str, entry: Entry, query: Query, values: Mapping[str, Json]
) -> ValueChange:
    """Return what speaks against `entry` for a prompt with these `values` and the same words."""
    seen = view.entries.known(entry_id)
    given = bool(query.given)
    plan_groups = view.plan_groups((entry.catalog, entry.grounding), given=given)
    contested, repeated = plan_groups.contradictions()
    if contested and entry.fixed_slots:
        # Entries with equal words and other fixed values do not contradict one another: the words
        # of this one are counted, and are no contradiction.
        contested, repeated = contested - 1, repeated - 1
    known = ValueChange(
        group=plan_groups.size(seen.group(given=given)) if seen is not None else 1,
        unsaid=unsaid(entry, query),
        contested=contested,
        repeated=repeated,
    )
    changed = [
        parameter
        for parameter in entry.plan.params
        if parameter.name in values
        and _is_name(entry, parameter, values[parameter.name])
        and not same(values[parameter.name], parameter.value)
    ]
    if not changed:
        return known
    before: dict[str, set[str]] = {}
    for parameter in (*entry.plan.params, *(seen.parameters() if seen is not None else ())):
        before.setdefault(name_key(parameter.name), set()).add(_text(parameter.value))
    names = [p for p in changed if _text(values[p.name]) not in before[name_key(p.name)]]
    if not names:
        return known
    return known._replace(
        names=len(names),
        seen=min(len(before[name_key(p.name)]) for p in names),
        telling=_declared(names, query, values)
        or is_telling(entry.given if given else entry.template),
    )


def unsaid(entry: Entry, query: Query) -> bool:
    """Return whether the plan depends on a value of which no word of the prompt says anything.

    A number must be said; of other values, a word of the value or of the name of its parameter.
    """
    kept = [
        (name, value)
        for name, value in entry.reading.unsaid.items()
        if name_key(name) not in query.given
    ]
    if not kept:
        return False
    said = {stem(word) for word in tokens(query.text)}
    said.update(word for mention in query.mentions for word in tokens(str(mention.value)))
    return not all(_is_hinted(name, value, said) for name, value in kept)


def _is_hinted(name: str, value: Json, said: Container[str]) -> bool:
    words = tokens(str(value).replace("_", " "))
    numbers = [word for word in words if any(map(str.isdigit, word))]
    if numbers:
        return all(number in said for number in numbers)
    return any(stem(word) in said for word in (*words, *tokens(name.replace("_", " "))))


def _declared(names: Sequence[Parameter], query: Query, values: Mapping[str, Json]) -> bool:
    """Return whether the catalog says of each name what it is one of, as no template need then."""
    closed = {_text(mention.value) for mention in query.mentions if mention.source == "closed"}
    return all(_text(values[parameter.name]) in closed for parameter in names)


def _text(value: Json) -> str:
    return str(value).casefold()


def _is_name(entry: Entry, parameter: Parameter, value: Json) -> bool:
    """Return whether a value is told by a name, and not by a number, a date, a text or a code."""
    if not isinstance(value, str) or any(map(str.isdigit, value)):
        return False
    slots = zip(entry.plan.carriers, entry.template.slots, strict=False)
    slot = next((slot for name, slot in slots if name == parameter.name), None)
    return slot is None or not (slot.kind in OPEN_KINDS or slot.relative)


_BOUND = Verdict("binding", passed=True)


def evaluate(
    lookup: Lookup,
    tier: Tier,
    entry: Entry,
    query: Query,
    verdicts: tuple[Verdict, ...],
    *,
    score: float,
    entry_id: str,
) -> BoundEntry | Verdict:
    """Return what may be served of `entry`, or the verdict that refused it."""
    passed = None
    if verdicts[-1].passed:
        try:
            passed = bind_candidate(lookup, tier, entry, query, score=score, entry_id=entry_id)
            verdicts = (*verdicts, _BOUND)
        except Refused as refused:
            verdicts = (*verdicts, refused.verdict)
    text = entry.template.text
    lookup.consider(Candidate(entry_id, entry.label, text, tier, score, verdicts))
    return verdicts[-1] if passed is None else passed


def bind_candidate(
    lookup: Lookup, tier: Tier, entry: Entry, query: Query, *, score: float, entry_id: str
) -> BoundEntry:
    """Return `entry` with the values of `query`.

    Raises:
        Refused: feedback, another plan for the same words, or the values speak against it.
    """
    # Feedback on a hit of the template tier removes the entry, so a veto names other templates.
    if tier != "template" and is_vetoed(lookup, query, entry_id):
        raise Refused("vetoed", "feedback said that this plan is wrong for this prompt")
    _check_contested(lookup, tier, query, entry_id)
    if entry.writes:
        _check_told(entry, query)
    if tier == "semantic":
        _check_said(entry, query)
        query = query if query.given else _in_roles(entry, query)
    plan, served = _filled(lookup, tier, entry, query)
    change = value_change(lookup.view, entry_id, entry, query, served.values)
    if tier == "semantic" and not says_the_same(entry, query):
        if not change.unsaid:
            return BoundEntry(entry_id, entry, served, plan, score, 0.0)
        change = change._replace(names=0)  # the risk of the words is of other names too
    risk = _value_risk(lookup, query, entry_id, change)
    return BoundEntry(entry_id, entry, served, plan, score, risk, is_judged=bool(change.kind))


def fill(lookup: Lookup, entry: Entry, query: Query) -> tuple[ExecutionPlan, FilledPlan]:
    """Return the plan of `entry` with the values of `query`, whatever its risk.

    Raises:
        Refused: the plan cannot take the values.
    """
    return _filled(lookup, "semantic", entry, query if query.given else _in_roles(entry, query))


def _filled(
    lookup: Lookup, tier: Tier, entry: Entry, query: Query
) -> tuple[ExecutionPlan, FilledPlan]:
    with lookup.timed("bind"):
        if tier == "schema":
            served = bind_by_schema(entry, query)
        elif query.given:
            served = bind_by_names(entry, query)
        else:
            served = bind_by_slots(entry, query, lookup.view.learned)
    with lookup.timed("check"):
        return _checked(lookup, entry, served), served


def is_vetoed(lookup: Lookup, query: Query, entry_id: str) -> bool:
    """Return whether feedback said that the plan of an entry is wrong for the prompt."""
    context, template = lookup.context, query.plain.digest
    return context.corrections.vetoes(query.tenant, template, entry_id, change=context.views.change)


def _value_risk(lookup: Lookup, query: Query, entry_id: str, change: ValueChange) -> float:
    """Return how probable it is that the values make it another plan.

    Raises:
        Refused: more probable than the bound allows, and something of them is in doubt.
    """
    seen, labels = lookup.view.entries.known(entry_id), lookup.context.labels
    group = "" if seen is None else seen.group(given=bool(query.given))
    risk = _less_likely(labels.risk(query, entry_id, group, change), lookup.choice)
    if risk > labels.highest_risk and change.kind:
        raise Refused(
            "risk",
            f"with these values the plan is another one with probability {risk:.3f}; "
            f"served up to {labels.highest_risk:.3f}",
        )
    return risk


def _less_likely(risk: float, by: float) -> float:
    """Return a probability in (0, 1) whose log odds are smaller `by` so much."""
    return risk if not by else risk / (risk + (1 - risk) * math.exp(by))


def _check_contested(lookup: Lookup, tier: Tier, query: Query, entry_id: str) -> None:
    seen = None if tier == "schema" else lookup.view.entries.known(entry_id)
    if seen is not None and lookup.view.contested(seen, given=bool(query.given)):
        raise Refused("contested", "as many entries that say the same have another plan")


def _check_said(entry: Entry, query: Query) -> None:
    """Refuse a plan with a value whose words stand in no slot and are not in the prompt.

    Such a word may be one that matching passes over elsewhere: the "on" of "which lamps are on".
    """
    plan, said = entry.plan, set(tokens(query.text))
    for parameter in plan.params:
        if parameter.name in plan.carriers or name_key(parameter.name) in query.given:
            continue
        if not said.issuperset(tokens(parameter.mention or "")):
            text = f"the plan's {parameter.name!r} is {parameter.mention!r}, which nobody says here"
            raise Refused("pinned", text)


def _check_told(entry: Entry, query: Query) -> None:
    """Refuse to write for a prompt that asks whether to, or that says one thing for several."""
    text, its = query.given_template.text, entry.given.text if query.given else entry.template.text
    if is_other_mood(text, its):
        raise Refused("words", "the plan writes, and one of the prompts asks whether, not to")
    nouns = other_numbers(text, its)
    if nouns:
        raise Refused("words", f"the plan writes, and {nouns[0]!r} stands in another number")


def _checked(lookup: Lookup, entry: Entry, served: FilledPlan) -> ExecutionPlan:
    plan = MAKERS[entry.plan.format](served.bound.plan, served.bound.data)
    catalog = lookup.query.tools.catalog
    findings = check_values(plan, catalog) if catalog is not None else ()
    if findings:
        raise Refused("check", f"{findings[0].path}: {findings[0].what}")
    return plan


def _in_roles(entry: Entry, query: Query) -> Query:
    """Return the prompt with its mentions in the order of the entry's slots."""
    roles = match_slots(entry.template.slots, query.template.slots)
    if roles is None:
        raise Refused("binding", "which value plays which part cannot be told")
    return query._replace(mentions=tuple([query.mentions[role] for role in roles]))
