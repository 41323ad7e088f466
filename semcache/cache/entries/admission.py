"""Admission: a prompt and its plan become an entry, or a reason why they must not."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

from semcache.binding.bindings import Pin
from semcache.binding.codecs import Wording, wording
from semcache.binding.generalize.generalization import generalize
from semcache.binding.template import PlanTemplate
from semcache.cache.entries.entry import Entry
from semcache.cache.entries.relative_dates import dated_names, unnamed_dates
from semcache.cache.query import Query
from semcache.canonical import Json, as_object, same
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPlan, NotActionable
from semcache.matching.plan_groups import group_name
from semcache.plans.codec import PlanSource, check, decode, not_actionable, spelled
from semcache.plans.document import ExecutionPlan, enclosed
from semcache.prompts.mentions import Mention, possible_values
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.schema import PromptSchema, identity, psk


def varying(old: Entry, new: Entry) -> frozenset[str]:
    """Return the parameters that may have changed what the plan of `new` has beside them.

    Empty where the plans differ in nothing but their values, or for no reason in the prompts.
    """
    if group_name(old.plan, given=False) == group_name(new.plan, given=False):
        return frozenset()
    before = {parameter.name: parameter.value for parameter in old.plan.params}
    return frozenset(
        parameter.name
        for parameter in new.plan.params
        if parameter.name in new.plan.carriers
        and parameter.name in before
        and not same(parameter.value, before[parameter.name])
    )


def held(entry: Entry, names: Collection[str]) -> Entry:
    """Return `entry` serving only the values that it has for `names`."""
    known = {pin.param for pin in entry.plan.pinned}
    pins = tuple(
        Pin(parameter.name, parameter.value, "varies")
        for parameter in entry.plan.params
        if parameter.name in names and parameter.name not in known
    )
    return replace(entry, plan=replace(entry.plan, pinned=(*entry.plan.pinned, *pins)))


def at(entry: Entry, positions: Collection[int]) -> frozenset[str]:
    """Return the parameters in the slots at `positions` of the template text."""
    return frozenset(name for i, name in enumerate(entry.plan.carriers) if i in positions)


QUARTER_S = 900.0
"""Midnights of all time zones fall on quarters of an hour (UTC)."""


def valid_plan(plan: PlanSource, catalog: Catalog | None) -> ExecutionPlan:
    """Return `plan` as a plan that could run.

    Raises:
        InvalidPlan: it is not JSON, or `plans.codec` finds something wrong; carries all findings.
        NotActionable: the plan says that the request cannot be met.
    """
    decoded = spelled(decode(plan), catalog)
    why = not_actionable(decoded)
    if why is not None:
        raise NotActionable(f"the plan says that this cannot be done: {why}")
    findings = [f"{finding.path}: {finding.what}" for finding in check(decoded, catalog)]
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise InvalidPlan(f"the plan cannot be stored: {findings[0]}{more}", findings)
    return decoded


def admit(
    query: Query,
    plan: ExecutionPlan,
    params: Sequence[Parameter],
    *,
    plain: Sequence[Mention],
    catalog: Catalog | None,
    schema: PromptSchema | None,
    now: float,
    ttl_s: float | None,
    tags: Sequence[str] = (),
    planner: str = "",
    cost_s: float = 1.0,
) -> Entry:
    """Return the entry for a prompt and its plan.

    `plain`: the mentions that a lookup of the prompt without `params` would find.

    Raises:
        BindingError: a placeholder names a parameter that is not there, or the plan cannot be
            generalized safely.
    """
    schemas = {} if catalog is None else catalog.input_schemas
    document, day = as_object(enclosed(plan.to_dict())), query.day(now)
    named = {parameter.name for parameter in params}
    unnamed = unnamed_dates(document, query.mentions, named, day)
    dated = dated_names(params, query.mentions, day) | {parameter.name for parameter in unnamed}
    template = generalize(
        document, (*params, *unnamed), query.mentions, schemas=schemas, dated=dated
    )
    mentions = _unaided(query.mentions, _ordered(plain, params))
    wordings = _wordings(template.params, template.carriers, mentions)
    wordings |= dict.fromkeys(dated & wordings.keys(), "dated")
    complete = schema is not None and not schema.partial
    return Entry(
        tenant=query.tenant,
        prompt=query.text,
        template=query.template,
        plan=template,
        named=tuple(parameter.name for parameter in params),
        wordings=wordings,
        key=psk(cast(PromptSchema, schema)) if complete else "",
        schema=identity(cast(PromptSchema, schema)) if complete else "",
        catalog=query.catalog,
        operations=plan.operations(),
        writes=_writes(plan, catalog),
        grounding=query.grounding,
        tags=tuple(tags),
        planner=planner,
        cost_s=cost_s,
        created_s=now,
        expires_s=_expiry(template, now, ttl_s),
        fades_s=_quarter(now) if template.fading else None,
        without_given=query.given_template if params else None,
        examples=(said(params, query.mentions),),
    )


def said(params: Sequence[Parameter], mentions: Sequence[Mention]) -> tuple[Parameter, ...]:
    """Return `params` with the words that were found to carry them."""
    found = {name_key(m.name): m.text for m in mentions if m.source == "given" and m.name}
    return tuple(
        Parameter(p.name, p.value, mention=found.get(name_key(p.name), p.mention)) for p in params
    )


def _ordered(mentions: Sequence[Mention], params: Sequence[Parameter]) -> tuple[Mention, ...]:
    """Return `mentions` where ambiguous words have the value that a parameter tells."""
    values = [p.value for p in params]
    return tuple(_read_as(mention, values) for mention in mentions)


def _read_as(mention: Mention, values: Collection[Json]) -> Mention:
    may_be = possible_values(mention.kind, mention.text, mention.value)
    told = [each for each in may_be if any(same(each, value) for value in values)]
    return mention._replace(value=told[0]) if len(told) == 1 else mention


def _wordings(
    params: Sequence[Parameter], carriers: Sequence[str], mentions: Sequence[Mention]
) -> dict[str, Wording]:
    carried = dict(zip(reversed(carriers), reversed(mentions), strict=True))
    return {p.name: wording(p.value, carried.get(p.name)) for p in params}


def _unaided(mentions: Sequence[Mention], plain: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return `mentions` with the values that their words alone tell; None where they tell none.

    A given mention has the value that was given for it. How the words of another prompt are read
    must not be concluded from that: nobody says "03/11/2024" for "March 11, 2024" there.
    """
    read = {(mention.start, mention.end): mention.value for mention in plain}
    return tuple(
        m._replace(value=read.get((m.start, m.end))) if m.source == "given" else m for m in mentions
    )


def _writes(plan: ExecutionPlan, catalog: Catalog | None) -> bool:
    """Return whether the plan may write; without a catalog nobody knows, and nobody executes.

    A tool that the catalog does not have is not known to read.
    """
    if catalog is None:
        return False
    names = plan.operations()
    return any(name not in catalog or catalog.get(name).effect == "write" for name in names)


def _expiry(template: PlanTemplate, now: float, ttl_s: float | None) -> float | None:
    """Return when the entry ends: after its TTL, or before the next midnight if it froze a date.

    Where the plan holds what "yesterday" came to, that changes at midnight; and because nobody
    says in which time zone, it ends with the quarter of an hour: some zone may turn then.
    """
    ends = [now + ttl_s] if ttl_s is not None else []
    if template.perishable and not template.fading:
        ends.append(_quarter(now))
    return min(ends, default=None)


def _quarter(now: float) -> float:
    return (now // QUARTER_S + 1) * QUARTER_S
