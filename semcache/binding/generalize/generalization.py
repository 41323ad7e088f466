"""Generalize: a plan and the values it was made for become a plan template.

orra maps values to one task by equality and serves the rest as it was. Here every leaf of the plan
counts, and what cannot be told apart from chance is pinned: the plan then serves only that value.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from semcache.binding.bindings import Binding, Filling, Pin, Why
from semcache.binding.codecs import alike
from semcache.binding.generalize.leftovers import Unbound, lifetime
from semcache.binding.generalize.placeholders import Schemas, fill
from semcache.binding.generalize.settlement import Offer, Settled, echoing, makers, offers, settle
from semcache.binding.generalize.values import EXACT, Owned, owners, parties_of
from semcache.binding.leaves import Leaf, own_names, survey
from semcache.binding.template import PlanTemplate, shared_words
from semcache.canonical import Json, JsonObject, Pointer, plain
from semcache.canonical import leaves as leaves_of
from semcache.errors import BindingError, InvalidJson, InvalidPlan
from semcache.plans.codec import adopt
from semcache.plans.document import enclosed
from semcache.plans.program import ProgramPlan
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter, by_name


def generalize(
    plan: Mapping[str, Json] | Sequence[Json],
    params: Sequence[Parameter] | Mapping[str, Json] = (),
    mentions: Sequence[Mention] = (),
    *,
    schemas: Schemas | None = None,
    dated: Container[str] = frozenset(),
) -> PlanTemplate:
    """Return `plan` with every place bound that takes a value of `params` or of another mention.

    `mentions` are all mentions of the prompt, in order. `schemas` (operation name → schema of its
    input) decide the type of a place that a placeholder fills. `dated`: parameters whose values
    will be worked out anew from words such as "last month" on the day of asking.

    Source: orra's cache service (mapping by value), OneMCP's hydration (`{{params.x}}`); the rules
    that make both safe are in `settle` and `leftovers`.

    Raises:
        InvalidPlan: the plan is not a JSON object.
        InvalidParameter: a value is not JSON, or two names differ only in spelling.
        BindingError: a placeholder names no parameter or stands where nothing may be filled in
            (`placeholder`), or a value of the prompt would be evaluated (`reference`).
    """
    document, given = _document(plan), by_name(params)
    owned = owners(mentions, given)
    leaves = list(survey(document))
    said = [text for p in given for _, text in leaves_of(p.value) if isinstance(text, str)]
    said += [mention.text for mention in mentions]
    filled = fill(document, leaves, given, said, schemas or {})
    parties, shapes = parties_of(given, owned, leaves, filled)
    settled = settle(parties, offers(parties, leaves, {b.at for b in filled}))
    _refuse_evaluated(document, settled)
    fillings = [*filled, *(_filling(offer) for offer in settled.taken.values())]
    bindings = _bindings(leaves, fillings)
    unbound = Unbound(leaves, fillings, parties, own_names(document))
    for party in parties:
        if unbound.has(party):
            settled.pin(party, "left")
        elif unbound.follows(party.value):
            settled.pin(party, "derived")
    for place in sorted(unbound.following_pairs([party.value for party in parties])):
        settled.pin(parties[place], "derived")
    params_ = _params(given, owned, settled)
    _tell_apart(given, params_, settled)
    for param in makers(params_, owned.carriers, shared_words(params_, owned.carriers)):
        settled.pinned.setdefault((param.name, ()), Pin(param.name, param.value, "kin"))
    lasts = lifetime(mentions, owned, params_, bindings, unbound, told=dated)
    told = frozenset(param.name for param in given)
    if_told = lifetime(mentions, owned, params_, bindings, unbound, told=told)
    fading = bool(lasts.perishable) and not (if_told.refusal or if_told.perishable)
    if lasts.perishable:
        why: Why = "kin" if fading else "moment"
        _hold_relative(mentions, owned, params_, settled, why)
    return PlanTemplate(
        plan=document,
        bindings=bindings,
        params=params_,
        pinned=(*shapes, *echoing(_pinned(settled, params_), params_)),
        equal=tuple(sorted(settled.equal, key=sorted)),
        format=adopt(document).format,
        carriers=owned.carriers,
        refusal=lasts.refusal,
        perishable=lasts.perishable,
        fading=fading,
    )


def _document(plan: Mapping[str, Json] | Sequence[Json]) -> JsonObject:
    try:
        document = enclosed(plain(plan, what="the plan"))
    except InvalidJson as error:
        raise InvalidPlan(str(error), [str(error)]) from error
    if not isinstance(document, dict):
        what = f"the plan is of type {type(plan).__name__}; expected a JSON object or a list"
        raise InvalidPlan(what, [what])
    return document


def _refuse_evaluated(plan: JsonObject, settled: Settled) -> None:
    """Refuse a value that is also a path into the plan: as data or as path it may be wrong."""
    for offer in settled.taken.values():
        if offer.leaf.role == "reference" and offer.nearness < EXACT and _reads(plan, offer):
            raise BindingError(
                f"the value {offer.form!r} of {offer.party.param!r} is also a path of the plan; "
                f"write `{{{{params.{offer.party.param}}}}}` where the value is meant",
                reason="reference",
            )


def _reads(plan: JsonObject, offer: Offer) -> bool:
    if isinstance(adopt(plan), ProgramPlan):
        return True  # only a reference to a variable that the program sets has the role
    steps = re.findall(r"\w+", str(offer.leaf.value))
    tasks = plan.get("tasks")
    ids = (
        {str(t.get("id")) for t in tasks if isinstance(t, dict)}
        if isinstance(tasks, list)
        else set()
    )
    return bool(steps) and (steps[0] in plan or steps[0] in ids | {"_gstt", "_lstt"})


def _filling(offer: Offer) -> Filling:
    party, text = offer.party, offer.leaf.text
    codec = offer.codec
    if text is not None:
        form = text.codec if text.codec and codec == "text" else codec
        codec = "|".join((form, *text.writers))
    return Filling(offer.leaf.at, party.param, codec, party.path, in_text=text is not None)


def _bindings(leaves: Sequence[Leaf], fillings: Sequence[Filling]) -> tuple[Binding, ...]:
    """Return the bindings that `fillings` come to, in document order."""
    whole = {f.at: f for f in fillings if not f.in_text}
    inside: dict[Pointer, list[Filling]] = defaultdict(list)
    for filling in fillings:
        if filling.in_text:
            inside[filling.at[:-2]].append(filling)
    found: list[Binding] = []
    for leaf in leaves:
        if leaf.at in whole:
            filling = whole[leaf.at]
            found.append(Binding(leaf.at, filling.param, filling.codec, filling.path))
        elif leaf.at in inside and leaf.text is None:
            found += _inline(leaf, inside[leaf.at])
    return tuple(found)


def _inline(leaf: Leaf, fillings: Sequence[Filling]) -> Iterator[Binding]:
    text, place = str(leaf.value), 0
    fillings = sorted(fillings, key=lambda filling: filling.span)
    for n, filling in enumerate(fillings, 1):
        start, end = filling.span
        before, after = text[place:start], text[end:] if n == len(fillings) else ""
        yield Binding(leaf.at, filling.param, filling.codec, filling.path, True, before, after)
        place = end


def _params(given: Sequence[Parameter], owned: Owned, settled: Settled) -> tuple[Parameter, ...]:
    found = {name: mention.text for name, mention in owned.by_param.items()}
    said = [replace(p, mention=found.get(p.name, p.mention)) for p in given]
    forms = {o.party.param: o.form for o in settled.taken.values() if not o.party.declared}
    own = [
        Parameter(name, forms.get(name, _value(mention)), mention.text)
        for name, mention in owned.own.items()
    ]
    return (*said, *own)


def _pinned(settled: Settled, params: Sequence[Parameter]) -> list[Pin]:
    """Return the pins; one on a mention has the form of its value that the parameter has."""
    values = {p.name: p.value for p in params}
    return [
        pin if pin.path else replace(pin, value=values[pin.param])
        for pin in settled.pinned.values()
    ]


def _tell_apart(given: Sequence[Parameter], params: Sequence[Parameter], settled: Settled) -> None:
    """Hold parameters together that the same words carry: which is which, nobody can tell.

    In "3 rooms in a 3 star hotel" either 3 may be the stars.
    """
    groups: dict[str, list[Parameter]] = defaultdict(list)
    for param in params:
        if param.mention is not None:
            groups[param.mention.casefold()].append(param)
    declared = {param.name for param in given}
    for group in groups.values():
        if len(group) == 1 or not any(param.name in declared for param in group):
            continue
        if all(alike(group[0].value, param.value) for param in group):
            settled.equal.add(frozenset(param.name for param in group))
        else:
            for param in group:
                pin = Pin(param.name, param.value, "ambiguous")
                settled.pinned.setdefault((param.name, ()), pin)


def _hold_relative(
    mentions: Sequence[Mention],
    owned: Owned,
    params: Sequence[Parameter],
    settled: Settled,
    why: Why,
) -> None:
    """Pin what a plan holds frozen: a start that "last 30 days" came to is not that of 60."""
    values = {param.name: param.value for param in params}
    for carrier, mention in zip(owned.carriers, mentions, strict=True):
        if mention.relative:
            settled.pinned.setdefault((carrier, ()), Pin(carrier, values[carrier], why))


def _value(mention: Mention) -> Json:
    return mention.text if mention.relative or mention.value is None else mention.value
