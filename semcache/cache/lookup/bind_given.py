"""Binding an entry to values that come by name: from a caller, or from the prompt's schema.

Where the caller gives every value that the plan depends on, no word need be understood for it. What
else was found in the prompt, a number that nobody gave, must be what it was for the entry.
"""

from collections.abc import Iterator, Sequence

from semcache.binding.bind import BoundPlan
from semcache.binding.bindings import Pin
from semcache.cache.entries.entry import Entry
from semcache.cache.entries.extraction import SlotExtraction
from semcache.cache.lookup.bind_entry import FilledPlan, Refused, bound, value_of
from semcache.cache.query import Query
from semcache.canonical import Json, leaves
from semcache.matching.gates import CandidatePair, match_slots, slots
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.template import Slot, given_template


def bind_by_schema(entry: Entry, query: Query) -> FilledPlan:
    """Bind `entry` to the values of the schema of `query`, name by name.

    Raises:
        Refused: a parameter has no value there, or the plan cannot take it.
    """
    found = {} if query.schema is None else {p.name: p.value for p in query.schema.parameters()}
    found |= {name: parameter.value for name, parameter in query.given.items()}
    by_key = {name_key(name): value for name, value in found.items()}
    texts = {mention.text.casefold() for mention in query.mentions}
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


_WORDS_ALONE = frozenset({"unknown", "echo"})


def bind_by_names(entry: Entry, query: Query) -> FilledPlan:
    """Bind `entry` to the values that the caller of `query` gave, name by name.

    The names are those of the entry; the gate `parameters` saw to that.

    Raises:
        Refused: a value that nobody gave differs, one is said in another measure, or the plan
            cannot take a value.
    """
    _check_measures(entry, query)
    values = _told(entry, query)
    told = set(values)
    for slot, mine, its in _own(entry, query):
        values[slot.name] = slot.value
        if mine is None or its is None:
            _check_literal(entry, slot, query)
            told.add(slot.name)
        elif _repeats(entry, slot, query, its):
            told.add(slot.name)
        else:
            mention = Mention(
                0, 0, its.mention_text, its.kind, its.value, "recognized", "", its.relative
            )
            values[slot.name] = value_of(slot, mention, query, entry.created_s)
    return bound(entry, values, told=told)


def has_its_slots(entry: Entry, query: Query) -> bool:
    """Return whether the values of a prompt are of the kinds that those of `entry` are of."""
    its = entry.side._replace(template=entry.given) if query.given else entry.side
    return slots(CandidatePair(query.side(), its, 0.0)).passed


def bind_chosen(entry: Entry, query: Query) -> FilledPlan:
    """Bind `entry` as a model chose it for `query`, whatever slots they have.

    Values that nobody named stay as they are in the plan, and the prompt must say them. And the
    plan must make something of each value of the prompt, or a condition is lost.

    Raises:
        Refused: it does not, the prompt does not, or the plan cannot take a value.
    """
    _check_measures(entry, query)
    values = _told(entry, query)
    for slot in entry.reading.slots:
        if not slot.named:
            _check_literal(entry, slot, query)
            values[slot.name] = slot.value
    filled = bound(entry, values, told=values)._replace(is_chosen=True)
    _check_accounted(query, filled.bound)
    return filled


def _told(entry: Entry, query: Query) -> dict[str, Json]:
    """Return the values that are known by name: of the caller, and those that no word tells."""
    values, names = dict(entry.reading.unsaid), entry.reading.names
    return values | {names[key]: g.value for key, g in query.given.items() if key in names}


def _check_measures(entry: Entry, query: Query) -> None:
    """Refuse 50 euros where the plan was made for 50 dollars: of a given 50, only words tell."""
    stored = {name_key(slot.name): slot for slot in entry.template.slots if slot.name}
    for slot in query.template.slots:
        mine = stored.get(name_key(slot.name)) if slot.name else None
        if mine is not None and _is_other_measure(mine.kind, slot.kind):
            said = f"{slot.mention_text!r} is said in another measure than {mine.mention_text!r}"
            raise Refused("slots", said)


def _is_other_measure(left: str, right: str) -> bool:
    if left == right:
        return False
    return "percent" in {left, right} or all(kind.startswith("money") for kind in (left, right))


def _own(entry: Entry, query: Query) -> Iterator[tuple[SlotExtraction, Slot | None, Slot | None]]:
    """Yield each value of the entry that nobody named, its slot, and the prompt's slot for it.

    No slots: the words stayed words of the template, or say a given value once more.
    """
    mine = [slot for slot in entry.given.slots if not slot.name]
    its = [slot for slot in query.given_template.slots if not slot.name]
    fitting = _for_these(mine, its)
    roles = match_slots(mine, fitting)
    if roles is None:
        raise Refused("binding", "which value plays which part cannot be told")
    left = list(range(len(mine)))
    for slot in entry.reading.slots:
        if slot.named:
            continue
        at = next((i for i in left if mine[i].mention_text == slot.source), None)
        if at is None:
            yield slot, None, None
        else:
            left.remove(at)
            yield slot, mine[at], fitting[roles[at]]


def _for_these(mine: Sequence[Slot], its: Sequence[Slot]) -> list[Slot]:
    """Return those of `its` whose kind is one of `mine`; others say a given value."""
    kinds = {slot.kind for slot in mine}
    return [slot for slot in its if slot.kind in kinds]


def _pins(entry: Entry, name: str) -> list[Pin]:
    return [pin for pin in entry.plan.pinned if pin.param == name]


def _check_literal(entry: Entry, slot: SlotExtraction, query: Query) -> None:
    """Refuse if the plan holds words that nobody gave, and the prompt does not say them."""
    if all(pin.why in _WORDS_ALONE for pin in _pins(entry, slot.name) or [_HELD]):
        return
    if f" {_flat(slot.source)} " not in f" {_flat(query.text)} ":
        raise Refused("pinned", f"the plan was made for {slot.source!r}, which is not said here")


_HELD = Pin("", None, "repeated")


def _flat(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _repeats(entry: Entry, slot: SlotExtraction, query: Query, its: Slot) -> bool:
    """Return whether what is quoted is the same but for given values in it."""
    pins = _pins(entry, slot.name)
    if its.kind != "quoted" or not pins or any(pin.why not in _WORDS_ALONE for pin in pins):
        return False
    named = [p for p in entry.plan.params if p.name in entry.named]
    return _without(slot.source, named) == _without(its.mention_text, [*query.given.values()])


def _without(quoted: str, given: Sequence[Parameter]) -> str:
    inner = quoted[1:-1]
    bare = [Parameter(p.name, p.value, None) for p in given]
    return given_template(inner, bare, find_mentions(inner, given=bare)).text


def _check_accounted(query: Query, plan: BoundPlan) -> None:
    """Refuse a plan that makes nothing of a value of the prompt.

    A value is accounted for by the name that it was given by, by the plan if that has its words,
    or by a given value whose own words are not known.
    """
    slots = query.given_template.slots
    placed = {name_key(slot.name) for slot in slots if slot.name}
    held = f" {' '.join(_flat(str(value)) for _, value in leaves(plan.plan))} "
    loose = [s for s in slots if not s.name and f" {_flat(s.mention_text)} " not in held]
    if len(loose) > len(query.given.keys() - placed):
        said = loose[0].mention_text
        raise Refused("slots", f"the prompt says {said!r}, of which the plan makes nothing")
