"""Redacted entries: what is stored of a prompt that has something to hide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from semcache.binding.bind import Fill
from semcache.binding.codecs import WRITTEN
from semcache.binding.template import PlanTemplate
from semcache.cache.entries.entry import Entry
from semcache.cache.query import Query
from semcache.canonical import Json, Pointer, pointer_text, value_at
from semcache.prompts.parameter import Parameter
from semcache.prompts.redaction import Secrets
from semcache.prompts.template import Slot, TemplateText


def redacted(entry: Entry, query: Query) -> Entry:
    """Return the entry that may be stored for `query`; its plan has a `refusal` if none may.

    What is hidden and bound is replaced by a stand-in. A plan that holds something hidden which is
    not bound could be served to prompts that hide something else, and would be written down.
    """
    secrets = query.secrets
    if secrets is None:
        return entry
    stands = _stand_ins(query, secrets)
    names = _hidden_names(entry.plan, stands)
    values = {str(v) for p in entry.plan.params if p.name in names for v in _leaves(p.value)}
    secrets = secrets.with_words(values)
    plan = _plan(entry.plan, names)
    return replace(
        entry,
        prompt=query.shown,
        template=_template(entry.template, secrets),
        without_given=entry.without_given and _template(entry.without_given, secrets),
        plan=replace(plan, refusal=plan.refusal or _refusal(plan, names, secrets)),
        key=secrets.clean(entry.key) if entry.key else "",
        tags=tuple(map(secrets.clean, entry.tags)),
        planner=secrets.clean(entry.planner) if entry.planner else "",
        examples=tuple(_open(group, names, secrets) for group in entry.examples),
    )


def _stand_ins(query: Query, secrets: Secrets) -> dict[int, str]:
    """Return, for each mention that is hidden, by its position, what stands for it."""
    return {
        position: secrets.stand_in(mention.text, written=mention.kind in WRITTEN)
        for position, mention in enumerate(query.mentions)
        if secrets.hides(mention)
    }


def _hidden_names(plan: PlanTemplate, stands: Mapping[int, str]) -> dict[str, str]:
    """Return the names of the parameters that hidden words carry, each with what stands for it."""
    names = {plan.carriers[position]: stand for position, stand in stands.items()}
    return names | {name: names[of] for name, of in plan.follows.items() if of in names}


def _template(template: TemplateText, secrets: Secrets) -> TemplateText:
    return replace(template, slots=tuple(_slot(slot, secrets) for slot in template.slots))


def _slot(slot: Slot, secrets: Secrets) -> Slot:
    if not (secrets.holds(slot.mention_text) or any(map(secrets.holds, _leaves(slot.value)))):
        return slot
    stand = secrets.stand_in(slot.mention_text, written=slot.kind in WRITTEN)
    return slot._replace(mention_text=stand, value=stand)


def _open(
    group: Sequence[Parameter], names: Mapping[str, str], secrets: Secrets
) -> tuple[Parameter, ...]:
    return tuple(
        p for p in group if p.name not in names and not any(map(secrets.holds, _leaves(p.value)))
    )


def _plan(plan: PlanTemplate, names: Mapping[str, str]) -> PlanTemplate:
    params = [
        Parameter(p.name, names[p.name], mention=names[p.name]) if p.name in names else p
        for p in plan.params
    ]
    filled = [_filled(plan, place, names) for place in plan.recipe.places]
    return replace(plan, plan=plan.recipe.put(plan.plan, filled), params=tuple(params))


def _filled(plan: PlanTemplate, place: tuple[Fill, ...], names: Mapping[str, str]) -> Json:
    bindings = [fill.binding for fill in place]
    if not any(binding.param in names for binding in bindings):
        return value_at(plan.plan, bindings[0].at)
    if not bindings[0].inline:
        return names[bindings[0].param]
    # Every value in this text is put in again on each hit: what stood there is not needed.
    return "".join(b.before + b.after for b in bindings)


def _refusal(plan: PlanTemplate, names: Mapping[str, str], secrets: Secrets) -> str:
    pinned = [pin.param for pin in plan.pinned if pin.param in names]
    if pinned:
        return f"the plan depends on {pinned[0]!r}, which is redacted, in a way that is not known"
    for parameter in plan.params:
        if parameter.name not in names and any(map(secrets.holds, _leaves(parameter.value))):
            return f"the value of {parameter.name!r} is redacted, and no words of the prompt say it"
    for at, leaf in _spots(plan.plan, ()):
        if leaf not in names.values() and secrets.holds(leaf):
            return f"the plan holds text that is redacted, at {pointer_text(at)}"
    return ""


def _leaves(value: Json) -> Iterator[Json]:
    return (leaf for _, leaf in _spots(value, ()))


def _spots(value: Json, at: Pointer) -> Iterator[tuple[Pointer, Json]]:
    match value:
        case dict():
            for key, item in value.items():
                yield at, key
                yield from _spots(item, (*at, key))
        case list():
            for n, item in enumerate(value):
                yield from _spots(item, (*at, n))
        case _:
            yield at, value
