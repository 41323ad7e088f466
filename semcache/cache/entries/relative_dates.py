"""Relative dates: values that words such as "last month" come to, worked out anew on each day.

A plan made on a known day for "last month" that holds 2026-10-01 and 2026-10-31 shows what its
planner makes of such words; another day's "last month", or its "this month", is then worked out in
the same way. What an example leaves open is not served.
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import date
from typing import cast

from semcache.binding.leaves import survey
from semcache.canonical import Json, JsonObject, dumps
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.relative_dates import (
    Days,
    Way,
    forms,
    meant,
    readings,
    reread,
    ways,
)

_TOLD_APART = frozenset(
    "first last after begins begins_utc ends ends_utc month year year_text quarter".split()
)
"""Forms that a plan hardly has by chance."""


def with_relative_mentions(
    params: Sequence[Parameter], mentions: Sequence[Mention], day: date
) -> Sequence[Parameter]:
    """Return `params`, a date with the relative words that came to it on `day` as its mention.

    Who says `{"date": "2026-11-23"}` for "tomorrow" tells what that word comes to.
    """
    relative = [m for m in mentions if m.relative and m.source != "given"]
    fitting = {
        p.name: [m.text for m in relative if ways(m.text, p.value, day)]
        for p in params
        if p.mention is None
    }
    told = [words for found in fitting.values() for words in {word.casefold() for word in found}]
    return [
        replace(p, mention=fitting[p.name][0])
        if len(fitting.get(p.name, ())) == 1 and told.count(fitting[p.name][0].casefold()) == 1
        else p
        for p in params
    ]


def dated_names(params: Sequence[Parameter], mentions: Sequence[Mention], day: date) -> set[str]:
    """Return the names of `params` whose values are what their relative words came to on `day`."""
    said = {name_key(m.name): m for m in mentions if m.relative and m.source == "given"}
    return {
        p.name
        for p in params
        if name_key(p.name) in said and ways(said[name_key(p.name)].text, p.value, day)
    }


def unnamed_dates(
    plan: JsonObject, mentions: Sequence[Mention], taken: Container[str], day: date
) -> tuple[Parameter, ...]:
    """Return a parameter for each relative mention of which `plan` has what it came to on `day`.

    Its value is an object: each form that the plan has, with what it was.
    """
    held = {dumps(leaf.value) for leaf in survey(plan) if leaf.role == "data"}
    found: dict[str, Parameter] = {}
    for mention in mentions:
        if not mention.relative or mention.source == "given":
            continue
        parts = _parts(mention.text, held, day)
        name = f"when{len(found) + 1}"
        if parts and mention.text.casefold() not in found and name not in taken:
            found[mention.text.casefold()] = Parameter(name, parts, mention=mention.text)
    return tuple(found.values())


def _parts(words: str, held: Container[str], day: date) -> JsonObject:
    parts: dict[str, Json] = {}
    for days in readings(words, day).values():
        for form, value in forms(days).items():
            spelled = dumps(value)
            if form in _TOLD_APART and spelled in held and value not in parts.values():
                parts.setdefault(form, value)
    return parts


def resolve_relative_date(
    mention: Mention, *, source: str, value: Json, stored: date, today: date
) -> Json:
    """Return what `mention` comes to on `today`, as `source` came to `value` on `stored`.

    None where the example leaves that open.
    """
    if not isinstance(value, dict):
        known_ways = ways(source, value, stored)
        if not _stands_alike(mention, source, known_ways, stored, today):
            return None
        return reread(mention, known_ways, today)
    known = {form: ways(source, part, stored) for form, part in value.items()}
    # One rule made all parts: the first day alone may be that of a month, or of thirty days.
    rules = frozenset.intersection(
        *(frozenset(rule for rule, _ in each) for each in known.values())
    )
    together = frozenset(way for each in known.values() for way in each if way[0] in rules)
    if not _stands_alike(mention, source, together, stored, today):
        return None
    parts = {
        form: reread(mention, frozenset(way for way in each if way[0] in rules), today)
        for form, each in known.items()
    }
    return None if None in parts.values() else cast(Json, parts)


_BEGINS = frozenset({"first", "begins", "begins_utc"})
_ENDS = frozenset({"last", "after", "ends", "ends_utc"})


def _stands_alike(
    mention: Mention, source: str, known: frozenset[Way], stored: date, today: date
) -> bool:
    """Return whether a plan with one end of a period leaves the other end to the same side.

    "Since Monday" is all of "this week" on its days; of "last week" it is more than was asked for.
    So the period of `mention` must lie to `today` as that of `source` lay to `stored`.
    """
    forms = {form for _, form in known}
    if not (forms <= _BEGINS or forms <= _ENDS):
        return True
    before, now = readings(source, stored), meant(mention, today)
    its = {_side(before[rule], stored) for rule, _ in known}
    mine = {_side(now[rule], today) for rule, _ in known if rule in now} or {
        _side(days, today) for days in now.values()
    }
    single = all(before[rule].first == before[rule].last for rule, _ in known)
    return single or its == mine


def _side(days: Days, day: date) -> int:
    """Return -1, 0 or 1 as `days` are over on `day`, have it, or are to come."""
    return (days.first > day) - (days.last < day)
