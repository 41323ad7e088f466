"""Serving: an entry and a prompt become a plan with its own values, or a reason why not."""

from collections.abc import Container, Mapping
from datetime import date
from typing import NamedTuple

from semcache.binding.bind import BoundPlan, bind
from semcache.binding.wording import deterministic, read
from semcache.cache.asked import Asked
from semcache.cache.dated import retold
from semcache.cache.entry import Entry
from semcache.cache.reading import SlotReading
from semcache.canonical import Json, same
from semcache.errors import BindingError
from semcache.matching.pair import Verdict
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import name_key
from semcache.prompts.recognizers.learned_values import LearnedValues

TRANSLATED_SHARE = 0.05
"""A type of parameter whose stored values were other than the prompt's own words more often than
this takes an unseen value only through a known translation ("SFO" is "San Francisco")."""


class Refused(Exception):
    """An entry cannot serve a prompt."""

    def __init__(self, gate: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = Verdict(gate, passed=False, reason=reason)


class Served(NamedTuple):
    """A bound plan and the values that went into it."""

    bound: BoundPlan
    values: Mapping[str, Json]


def serve_by_slots(entry: Entry, asked: Asked, learned: LearnedValues) -> Served:
    """Bind `entry` to the values that stand in the slots of `asked`, slot by slot.

    Raises:
        Refused: a value cannot be read or may not differ, or the plan cannot take it.
    """
    reading = entry.reading
    values = dict(reading.unsaid)
    for key, given in asked.given.items():
        if key in reading.names:
            values[reading.names[key]] = given.value
    for slot, mention in zip(reading.slots, asked.mentions, strict=True):
        _same_role(slot, mention)
        value = _value(slot, mention, asked, learned, entry.created_s)
        if slot.name in values and not same(values[slot.name], value):
            raise Refused("binding", f"{slot.name!r} stands twice with different values")
        values[slot.name] = value
    return bound(entry, values)


def serve_by_schema(entry: Entry, asked: Asked) -> Served:
    """Bind `entry` to the values of the schema of `asked`, name by name.

    Raises:
        Refused: a parameter has no value there, or the plan cannot take it.
    """
    found = {} if asked.schema is None else {p.name: p.value for p in asked.schema.parameters()}
    found |= {name: parameter.value for name, parameter in asked.given.items()}
    by_key = {name_key(name): value for name, value in found.items()}
    texts = {mention.text.casefold() for mention in asked.mentions}
    values: dict[str, Json] = {}
    for parameter in entry.plan.params:
        key = name_key(parameter.name)
        if key in by_key:
            values[parameter.name] = by_key[key]
        elif parameter.name not in entry.named and _said(parameter.mention, texts):
            values[parameter.name] = parameter.value
        else:
            raise Refused("binding", f"the schema has no value for {parameter.name!r}")
    return bound(entry, values)


def _said(mention: str | None, texts: set[str]) -> bool:
    return mention is not None and mention.casefold() in texts


def _same_role(slot: SlotReading, mention: Mention) -> None:
    """Refuse a slot that the caller names otherwise: origin where the entry has destination."""
    if mention.source == "given" and slot.named and name_key(mention.name) != slot.key:
        text = f"{mention.text!r} is {mention.name!r} here and {slot.name!r} there"
        raise Refused("parameters", text)


def _value(
    slot: SlotReading, mention: Mention, asked: Asked, learned: LearnedValues, stored_s: float
) -> Json:
    given = asked.given.get(slot.key)
    if given is not None:
        return given.value
    declared = mention.source == "closed" and slot.how in {"recognized", "recognized_text"}
    if slot.named and not mention.relative and not declared:
        known = learned.translation(slot.type, mention.text)
        if known is not None and not _is_respelled(mention, known):
            return known
        if known is None and mention.source not in {"recognized", "closed"}:
            _check_copied(slot, mention, learned)
    return value_of(slot, mention, asked, stored_s)


def _is_respelled(mention: Mention, value: Json) -> bool:
    """Return whether `value` is the words in other case, which is for the stored plan to show."""
    words = mention.value if isinstance(mention.value, str) else mention.text
    return isinstance(value, str) and words != value and words.casefold() == value.casefold()


def value_of(slot: SlotReading, mention: Mention, asked: Asked, stored_s: float) -> Json:
    """Return what the words of `mention` are in `slot` of an entry stored at `stored_s`.

    Raises:
        Refused: the words do not tell.
    """
    if slot.how == "dated":
        return _dated(slot, mention, asked, asked.day(stored_s))
    if _says_again(slot, mention):
        return slot.value
    try:
        return read(slot.how, mention, source=slot.source, value=slot.value)
    except BindingError as error:
        raise Refused("binding", str(error)) from error


_SPELLED = frozenset({"code", "identifier", "quoted", "email", "url"})


def _says_again(slot: SlotReading, mention: Mention) -> bool:
    """Return whether the words are those of the source: in other case only if case is no matter."""
    if slot.source == mention.text:
        return True
    spelled = slot.how == "verbatim" or mention.kind in _SPELLED
    return not spelled and slot.source.casefold() == mention.text.casefold()


def _dated(slot: SlotReading, mention: Mention, asked: Asked, stored: date) -> Json:
    today = asked.day()
    value = retold(mention, source=slot.source, value=slot.value, stored=stored, today=today)
    if value is None:
        raise Refused("binding", f"what {mention.text!r} means on {today} cannot be told for sure")
    return value


def _check_copied(slot: SlotReading, mention: Mention, learned: LearnedValues) -> None:
    """Refuse free text where values are often not the words, and these words are new."""
    if not deterministic(slot.how):
        return
    if learned.other_share(slot.type, mention.text) > TRANSLATED_SHARE:
        reason = f"values of {slot.type!r} that look so are often not the prompt's words"
        raise Refused("binding", f"{reason}; {mention.text!r} is new")


def bound(
    entry: Entry, values: Mapping[str, Json], *, told: Container[str] = frozenset()
) -> Served:
    """Bind `entry` to `values`; of those in `told`, nothing need be concluded from words.

    Raises:
        Refused: the plan cannot take these values.
    """
    try:
        return Served(bind(entry.plan, values, told=told), values)
    except BindingError as error:
        gate = "pinned" if error.reason in {"pinned", "equal"} else "binding"
        raise Refused(gate, str(error)) from error
