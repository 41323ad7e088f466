"""Binding an entry: with a prompt's own values it becomes a plan, or there is a reason why not.

The values stand in the slots of the prompt, slot by slot. At the end, what the prompt must say for
that, and what speaks against an entry that says the same words with other values.
"""

from collections.abc import Container, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from semcache.binding.bind import BoundPlan, bind
from semcache.binding.codecs import deterministic, read
from semcache.cache.entries.entry import Entry
from semcache.cache.entries.extraction import SlotExtraction
from semcache.cache.entries.relative_dates import resolve_relative_date
from semcache.cache.query import Query
from semcache.cache.view.view import EntrySummary, View
from semcache.canonical import Json, same
from semcache.errors import BindingError
from semcache.matching.gates import Verdict
from semcache.matching.model.value_risk import ValueChange
from semcache.matching.words.classes import stem
from semcache.matching.words.content import content, is_other_mood, is_telling, other_numbers
from semcache.prompts.mentions import OPEN_KINDS, Mention
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.tokens import tokens

TRANSLATED_SHARE = 0.05
"""A type of parameter whose stored values were other than the prompt's own words more often than
this takes an unseen value only through a known translation ("SFO" is "San Francisco")."""


class Refused(Exception):
    """An entry cannot serve a prompt."""

    def __init__(self, gate: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = Verdict(gate, passed=False, reason=reason)


class FilledPlan(NamedTuple):
    """A bound plan and the values that went into it."""

    bound: BoundPlan
    values: Mapping[str, Json]
    is_chosen: bool = False
    """Whether only the choice of a model says that its values are those of the prompt."""


def bind_by_slots(entry: Entry, query: Query, learned: LearnedValues) -> FilledPlan:
    """Bind `entry` to the values that stand in the slots of `query`, slot by slot.

    Raises:
        Refused: a value cannot be read or may not differ, or the plan cannot take it.
    """
    reading = entry.reading
    values = dict(reading.unsaid)
    for key, given in query.given.items():
        if key in reading.names:
            values[reading.names[key]] = given.value
    for slot, mention in zip(reading.slots, query.mentions, strict=True):
        if mention.source == "given":
            _same_role(slot, mention)
        value = _value(slot, mention, query, learned, entry.created_s)
        if slot.name in values and not same(values[slot.name], value):
            raise Refused("binding", f"{slot.name!r} stands twice with different values")
        values[slot.name] = value
    return bound(entry, values)


def _same_role(slot: SlotExtraction, mention: Mention) -> None:
    """Refuse a slot that the caller names otherwise: origin where the entry has destination."""
    if slot.named and name_key(mention.name) != slot.key:
        text = f"{mention.text!r} is {mention.name!r} here and {slot.name!r} there"
        raise Refused("parameters", text)


def _value(
    slot: SlotExtraction, mention: Mention, query: Query, learned: LearnedValues, stored_s: float
) -> Json:
    given = query.given.get(slot.key)
    if given is not None:
        return given.value
    declared = mention.source == "closed" and slot.how in {"recognized", "recognized_text"}
    if slot.named and not mention.relative and not declared:
        known = learned.translation(slot.type, mention.text)
        if known is not None and not _is_respelled(mention, known):
            return known
        if known is None and mention.source not in {"recognized", "closed"}:
            _check_copied(slot, mention, learned)
    return value_of(slot, mention, query, stored_s)


def _is_respelled(mention: Mention, value: Json) -> bool:
    """Return whether `value` is the words in other case, which is for the stored plan to show."""
    words = mention.value if isinstance(mention.value, str) else mention.text
    return isinstance(value, str) and words != value and words.casefold() == value.casefold()


def value_of(slot: SlotExtraction, mention: Mention, query: Query, stored_s: float) -> Json:
    """Return what the words of `mention` are in `slot` of an entry stored at `stored_s`.

    Raises:
        Refused: the words do not tell.
    """
    if slot.how == "dated":
        return _dated(slot, mention, query, query.day(stored_s))
    if slot.source == mention.text or _is_source(slot, mention):
        return slot.value
    if slot.how == "recognized" and type(mention.value) is int:
        return mention.value  # as `read` would: digits that say nothing else
    try:
        return read(slot.how, mention, source=slot.source, value=slot.value)
    except BindingError as error:
        raise Refused("binding", str(error)) from error


_SPELLED = frozenset({"code", "identifier", "quoted", "email", "url"})


def _is_source(slot: SlotExtraction, mention: Mention) -> bool:
    """Return whether the words are those of the source but for case, which is no matter."""
    spelled = slot.how == "verbatim" or mention.kind in _SPELLED
    return not spelled and slot.source.casefold() == mention.text.casefold()


def _dated(slot: SlotExtraction, mention: Mention, query: Query, stored: date) -> Json:
    today = query.day()
    value = resolve_relative_date(
        mention, source=slot.source, value=slot.value, stored=stored, today=today
    )
    if value is None:
        raise Refused("binding", f"what {mention.text!r} means on {today} cannot be told for sure")
    return value


def _check_copied(slot: SlotExtraction, mention: Mention, learned: LearnedValues) -> None:
    """Refuse free text where values are often not the words, and these words are new."""
    if not deterministic(slot.how):
        return
    if learned.other_share(slot.type, mention.text) > TRANSLATED_SHARE:
        reason = f"values of {slot.type!r} that look so are often not the prompt's words"
        raise Refused("binding", f"{reason}; {mention.text!r} is new")


def bound(
    entry: Entry, values: Mapping[str, Json], *, told: Container[str] = frozenset()
) -> FilledPlan:
    """Bind `entry` to `values`; of those in `told`, nothing need be concluded from words.

    Raises:
        Refused: the plan cannot take these values.
    """
    try:
        return FilledPlan(bind(entry.plan, values, told=told), values)
    except BindingError as error:
        gate = "pinned" if error.reason in {"pinned", "equal"} else "binding"
        raise Refused(gate, str(error)) from error


def check_said(entry: Entry, query: Query) -> None:
    """Refuse a plan with a value whose words stand in no slot and are not in the prompt.

    Such a word may be one that matching passes over elsewhere: the "on" of "which lamps are on".
    """
    carriers = entry.plan.carriers
    silent = [
        parameter
        for parameter in entry.plan.params
        if parameter.name not in carriers and name_key(parameter.name) not in query.given
    ]
    said = set(tokens(query.text)) if silent else set()
    for parameter in silent:
        if not said.issuperset(tokens(parameter.mention or "")):
            text = f"the plan's {parameter.name!r} is {parameter.mention!r}, which nobody says here"
            raise Refused("pinned", text)


def check_told(entry: Entry, query: Query) -> None:
    """Refuse to write for a prompt that asks whether to, or that says one thing for several."""
    text, its = query.given_template.text, entry.given.text if query.given else entry.template.text
    if is_other_mood(text, its):
        raise Refused("words", "the plan writes, and one of the prompts asks whether, not to")
    nouns = other_numbers(text, its)
    if nouns:
        raise Refused("words", f"the plan writes, and {nouns[0]!r} stands in another number")


def says_the_same(entry: Entry, query: Query) -> bool:
    """Return whether nothing but values parts a prompt from the one that the entry is of."""
    mine, its = query.given_template.text, entry.given.text if query.given else entry.template.text
    return mine == its or content(mine) == content(its)


def value_change(
    view: View,
    seen: EntrySummary | None,
    entry: Entry,
    query: Query,
    values: Mapping[str, Json],
) -> ValueChange | None:
    """Return what speaks against `entry` for a prompt with these `values` and the same words.

    `seen`: its summary, if the view still has it. None: nothing is in doubt.
    """
    given = bool(query.given)
    plan_groups = view.plan_groups((entry.catalog, entry.grounding), given=given)
    contested, repeated = plan_groups.contradictions()
    if contested and entry.fixed_slots:
        # Entries with equal words and other fixed values do not contradict one another: the words
        # of this one are counted, and are no contradiction.
        contested, repeated = contested - 1, repeated - 1
    is_unsaid = bool(entry.reading.unsaid) and unsaid(entry, query)
    changed = [
        parameter
        for parameter in entry.plan.params
        if isinstance(value := values.get(parameter.name), str)
        and _is_name(entry, parameter, value)
        and not same(value, parameter.value)
    ]
    if not (changed or is_unsaid or contested):
        return None
    known = ValueChange(
        group=plan_groups.size(seen.group(given=given)) if seen is not None else 1,
        unsaid=is_unsaid,
        contested=contested,
        repeated=repeated,
    )
    if not changed:
        return known
    before: dict[str, set[str]] = {}
    for parameter in (*entry.plan.params, *(seen.parameters() if seen is not None else ())):
        before.setdefault(name_key(parameter.name), set()).add(_text(parameter.value))
    names = [p for p in changed if _text(values[p.name]) not in before[name_key(p.name)]]
    if not names:
        return known if is_unsaid or contested else None
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


def _is_name(entry: Entry, parameter: Parameter, value: str) -> bool:
    """Return whether a value is told by a name, and not by a number, a date, a text or a code."""
    if any(map(str.isdigit, value)):
        return False
    slots = zip(entry.plan.carriers, entry.template.slots, strict=False)
    slot = next((slot for name, slot in slots if name == parameter.name), None)
    return slot is None or not (slot.kind in OPEN_KINDS or slot.relative)
