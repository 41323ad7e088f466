"""Serving: an entry and a prompt become a plan with its own values, or a reason why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from semcache.binding.bind import BoundPlan, bind
from semcache.binding.wording import deterministic, read
from semcache.cache.asked import Asked
from semcache.cache.entry import Entry
from semcache.canonical import Json, same
from semcache.errors import BindingError
from semcache.matching.pair import Verdict
from semcache.prompts.learned import LearnedValues
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import name_key, type_key

TRANSLATED_SHARE = 0.05
"""A type of parameter whose stored values were other than the prompt's own words more often than
this takes an unseen value only through a known translation ("SFO" is "San Francisco")."""


class Refused(Exception):
    """An entry cannot serve a prompt."""

    def __init__(self, gate: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = Verdict(gate, passed=False, reason=reason)


@dataclass(frozen=True, slots=True)
class Served:
    """A bound plan and the values that went into it."""

    bound: BoundPlan
    values: Mapping[str, Json]


def serve_by_slots(entry: Entry, asked: Asked, learned: LearnedValues) -> Served:
    """Bind `entry` to the values that stand in the slots of `asked`, slot by slot.

    Raises:
        Refused: a value cannot be read or may not differ, or the plan cannot take it.
    """
    values = _unsaid(entry, asked)
    for carrier, mention in zip(entry.plan.carriers, asked.mentions, strict=True):
        _same_role(entry, carrier, mention)
        value = _value(entry, carrier, mention, asked, learned)
        if carrier in values and not same(values[carrier], value):
            raise Refused("binding", f"{carrier!r} stands twice with different values")
        values[carrier] = value
    return _bound(entry, values)


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
    return _bound(entry, values)


def _said(mention: str | None, texts: set[str]) -> bool:
    return mention is not None and mention.casefold() in texts


def _unsaid(entry: Entry, asked: Asked) -> dict[str, Json]:
    """Return values of parameters that no slot carries: given now, or told by the same words."""
    carried = set(entry.plan.carriers)
    values: dict[str, Json] = {}
    for parameter in entry.plan.params:
        given = asked.given.get(name_key(parameter.name))
        if given is not None:
            values[parameter.name] = given.value
        elif parameter.name not in carried and parameter.name not in entry.plan.follows:
            values[parameter.name] = parameter.value
    return values


def _same_role(entry: Entry, carrier: str, mention: Mention) -> None:
    """Refuse a slot that the caller names otherwise: origin where the entry has destination."""
    if mention.source != "given" or carrier not in entry.named:
        return
    if name_key(mention.name) != name_key(carrier):
        text = f"{mention.text!r} is {mention.name!r} here and {carrier!r} there"
        raise Refused("parameters", text)


def _value(
    entry: Entry, carrier: str, mention: Mention, asked: Asked, learned: LearnedValues
) -> Json:
    given = asked.given.get(name_key(carrier))
    if given is not None:
        return given.value
    how = entry.wordings[carrier]
    kind = type_key(carrier)
    if carrier in entry.named:
        known = learned.translation(kind, mention.text)
        if known is not None and not mention.relative:
            return known
        verbatim, other = learned.copied_share(kind)
        free_text = mention.source not in {"recognized", "closed"}
        if free_text and deterministic(how) and other > TRANSLATED_SHARE * (verbatim + other):
            reason = f"values of {kind!r} are often not the prompt's words; {mention.text!r} is new"
            raise Refused("binding", reason)
    stored = next(p for p in entry.plan.params if p.name == carrier)
    source = stored.mention or ""
    if source.casefold() == mention.text.casefold():
        return stored.value
    try:
        return read(how, mention, source=source)
    except BindingError as error:
        raise Refused("binding", str(error)) from error


def _bound(entry: Entry, values: Mapping[str, Json]) -> Served:
    try:
        return Served(bind(entry.plan, values), values)
    except BindingError as error:
        gate = "pinned" if error.reason in {"pinned", "equal"} else "binding"
        raise Refused(gate, str(error)) from error
