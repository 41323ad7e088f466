"""Trying: an entry is judged, bound and checked for a prompt, or refused with the reason."""

from dataclasses import replace

from semcache.cache.asked import Asked
from semcache.cache.entry import Entry
from semcache.cache.found import Candidate
from semcache.cache.given import serve_by_names
from semcache.cache.looking import Lookup, Passed
from semcache.cache.serving import Refused, Served, serve_by_schema, serve_by_slots
from semcache.cache.value_change import says_the_same, value_change
from semcache.errors import InvalidPlan
from semcache.events import Tier
from semcache.matching.content import is_other_mood, other_numbers
from semcache.matching.pair import Verdict
from semcache.matching.roles import match_slots
from semcache.plans.checks import check_values
from semcache.plans.codec import adopt
from semcache.plans.plan import ExecutionPlan

_BOUND = Verdict("binding", passed=True)


def judge(
    lookup: Lookup,
    tier: Tier,
    entry: Entry,
    asked: Asked,
    verdicts: tuple[Verdict, ...],
    *,
    score: float,
    entry_id: str,
) -> Passed | Verdict:
    """Return what may be served of `entry`, or the verdict that refused it."""
    passed = None
    if verdicts[-1].passed:
        try:
            passed = serve(lookup, tier, entry, asked, score=score, entry_id=entry_id)
            verdicts = (*verdicts, _BOUND)
        except Refused as refused:
            verdicts = (*verdicts, refused.verdict)
    text = entry.template.text
    lookup.consider(Candidate(entry_id, entry.label, text, tier, score, verdicts))
    return verdicts[-1] if passed is None else passed


def serve(
    lookup: Lookup, tier: Tier, entry: Entry, asked: Asked, *, score: float, entry_id: str
) -> Passed:
    """Return `entry` with the values of `asked`.

    Raises:
        Refused: feedback, another plan for the same words, or the values speak against it.
    """
    # Feedback on a hit of the template tier removes the entry, so a veto names other templates.
    if tier != "template" and lookup.parts.vetoed(asked, entry_id):
        raise Refused("vetoed", "feedback said that this plan is wrong for this prompt")
    _check_contested(lookup, tier, asked, entry_id)
    if entry.writes:
        _check_told(entry, asked)
    if tier == "semantic" and not asked.given:
        asked = _in_roles(entry, asked)
    with lookup.timed("bind"):
        if tier == "schema":
            served = serve_by_schema(entry, asked)
        elif asked.given:
            served = serve_by_names(entry, asked)
        else:
            served = serve_by_slots(entry, asked, lookup.view.learned)
    with lookup.timed("check"):
        plan = _checked(lookup, served)
    says_other = tier == "semantic" and not says_the_same(entry, asked)
    risk = 0.0 if says_other else _value_risk(lookup, entry, asked, served, entry_id)
    return Passed(entry_id, entry, served, plan, score, risk)


def _value_risk(lookup: Lookup, entry: Entry, asked: Asked, served: Served, entry_id: str) -> float:
    """Return how probable it is that the values make it another plan.

    Raises:
        Refused: more probable than the bound allows, and there are new names.
    """
    seen, labels = lookup.view.entries.known(entry_id), lookup.parts.labels
    change = value_change(lookup.view, entry_id, entry, asked, served.values)
    family = "" if seen is None else seen.family(given=bool(asked.given))
    risk = labels.risk(asked, entry_id, family, change)
    if risk > labels.highest_risk and change.names:
        raise Refused(
            "risk",
            f"with these values the plan is another one with probability {risk:.3f}; "
            f"served up to {labels.highest_risk:.3f}",
        )
    return risk


def _check_contested(lookup: Lookup, tier: Tier, asked: Asked, entry_id: str) -> None:
    seen = None if tier == "schema" else lookup.view.entries.known(entry_id)
    if seen is not None and lookup.view.contested(seen, given=bool(asked.given)):
        raise Refused("contested", "as many entries that say the same have another plan")


def _check_told(entry: Entry, asked: Asked) -> None:
    """Refuse to write for a prompt that asks whether to, or that says one thing for several."""
    text, its = asked.given_template.text, entry.given.text if asked.given else entry.template.text
    if is_other_mood(text, its):
        raise Refused("words", "the plan writes, and one of the prompts asks whether, not to")
    nouns = other_numbers(text, its)
    if nouns:
        raise Refused("words", f"the plan writes, and {nouns[0]!r} stands in another number")


def _checked(lookup: Lookup, served: Served) -> ExecutionPlan:
    try:
        plan = adopt(served.bound.plan, served.bound.data)
    except InvalidPlan as error:
        raise Refused("check", str(error)) from error
    catalog = lookup.asked.tools.catalog
    findings = check_values(plan, catalog) if catalog is not None else ()
    if findings:
        raise Refused("check", f"{findings[0].path}: {findings[0].what}")
    return plan


def _in_roles(entry: Entry, asked: Asked) -> Asked:
    """Return the prompt with its mentions in the order of the entry's slots."""
    roles = match_slots(entry.template.slots, asked.template.slots)
    if roles is None:
        raise Refused("binding", "which value plays which part cannot be told")
    return replace(asked, mentions=tuple(asked.mentions[role] for role in roles))
