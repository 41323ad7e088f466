"""Value change: what a prompt changes in an entry that says the same words; see `value_risk`."""

from collections.abc import Mapping, Sequence

from semcache.cache.asked import Asked
from semcache.cache.entry import Entry
from semcache.cache.view import View
from semcache.canonical import Json, same
from semcache.matching.content import content, is_telling
from semcache.matching.value_risk import ValueChange
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.registry import OPEN_KINDS

_NONE = ValueChange()


def says_the_same(entry: Entry, asked: Asked) -> bool:
    """Return whether nothing but values parts a prompt from the one that the entry is of."""
    mine, its = asked.given_template.text, entry.given.text if asked.given else entry.template.text
    return mine == its or content(mine) == content(its)


def value_change(
    view: View, entry_id: str, entry: Entry, asked: Asked, values: Mapping[str, Json]
) -> ValueChange:
    """Return what the `values` of a prompt change in `entry`."""
    changed = [
        parameter
        for parameter in entry.plan.params
        if parameter.name in values and not same(values[parameter.name], parameter.value)
    ]
    if not changed:
        return _NONE
    seen = view.entries.known(entry_id)
    before: dict[str, set[str]] = {}
    for parameter in (*entry.plan.params, *(seen.parameters() if seen is not None else ())):
        before.setdefault(name_key(parameter.name), set()).add(_text(parameter.value))
    new = [p for p in changed if _text(values[p.name]) not in before[name_key(p.name)]]
    names = [p for p in new if _is_name(entry, p, values[p.name])]
    if not names:
        return _NONE
    given = bool(asked.given)
    kin = view.kin(entry.side, given=given)
    contested, repeated = kin.contradictions()
    return ValueChange(
        names=len(names),
        seen=min(len(before[name_key(p.name)]) for p in names),
        group=kin.size(seen.family(given=given)) if seen is not None else 1,
        telling=_declared(names, asked, values)
        or is_telling(entry.given if given else entry.template),
        contested=contested,
        repeated=repeated,
    )


def _declared(names: Sequence[Parameter], asked: Asked, values: Mapping[str, Json]) -> bool:
    """Return whether the catalog says of each name what it is one of, as no template need then."""
    closed = {_text(mention.value) for mention in asked.mentions if mention.source == "closed"}
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
