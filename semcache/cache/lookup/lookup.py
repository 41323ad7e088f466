"""Lookup: a prompt is asked for tier by tier, in doubt shown to a verifier, and accounted for.

The exact tiers are here: an entry with the prompt's own template text, or with its schema; and
alignment, which reads a prompt as a template that nothing but unknown words parts from it. That
these words are values is concluded and not known. So its hit is one of the semantic tier: it has a
risk, obeys the bound, vetoes and exploration, and writes nothing without leave.
"""

from collections.abc import Iterable

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry
from semcache.cache.feedback.promotion import PendingVerification, parameters_now
from semcache.cache.lookup.context import BoundEntry, Lookup
from semcache.cache.lookup.evaluation import evaluate
from semcache.cache.lookup.semantic import by_meaning, candidate_in_doubt
from semcache.cache.lookup.verification import VerificationQueue
from semcache.cache.query import PromptRequest, Query, check_switch
from semcache.cache.result import Found, Hit, Miss, Trace
from semcache.errors import InvalidSettings, StoreError
from semcache.events import Tier
from semcache.matching.gates import CandidatePair, compare_signs, exact_gates
from semcache.matching.words.content import is_telling, unexplained_signs
from semcache.prompts.mentions import Mention
from semcache.prompts.schema import identity, psk
from semcache.prompts.template import TemplateText
from semcache.prompts.unseen.alignment import align


def by_template(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's template text."""
    before = _served_before(lookup)
    if before is not None:
        lookup.tiers.append(("template", "hit"))
        return lookup.hit("template", before)
    ids = lookup.view.same_template(lookup.query.template)
    if lookup.query.given:
        also = lookup.view.same_without_given(lookup.query.given_template)
        ids += [known for known in also if known not in ids]
    entries = [(known, entry) for known in ids if (entry := lookup.known(known)) is not None]
    passed = _first(lookup, "template", entries, lookup.query)
    _say(lookup, "template", passed, "refused" if ids else "no entry with this template text")
    if passed is not None:
        _keep(lookup, passed)
    return lookup.hit("template", passed) if passed else None


def _served_before(lookup: Lookup) -> BoundEntry | None:
    """Return what the same words were served before, if its entry may be served now."""
    before = lookup.query.before
    if before is None or before.found is None:
        return None
    passed, candidate = before.found
    if lookup.known(passed.id) is not passed.entry:
        return None
    lookup.consider(candidate)
    return passed


def _keep(lookup: Lookup, passed: BoundEntry) -> None:
    """Keep what was served, where the words and the view say all of it.

    Not what depends on the day, nor on what a tenant's evidence says of its values.
    """
    query = lookup.query
    if query.before is None or passed.is_judged or len(lookup.candidates) > 1:
        return
    dated = any(slot.how == "dated" for slot in passed.entry.reading.slots)
    if not dated and not any(mention.relative for mention in query.mentions):
        query.before.found = passed, lookup.candidates[0]


def by_schema(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's schema, if that accounts for the whole prompt."""
    if lookup.query.schema is None:
        with lookup.timed("normalize"):
            schema = lookup.context.queries.schema(lookup.query)
            lookup.query = lookup.query._replace(schema=schema)
    schema = lookup.query.schema
    if schema is None:
        return None
    if schema.partial:
        lookup.tiers.append(("schema", f"partial: {', '.join(schema.unexplained)}"))
        return None
    records = lookup.context.store.find(lookup.query.tenant, f"schema:{identity(schema)}")
    entries = [(r.id, entry) for r in records if (entry := lookup.decode(r)) is not None]
    passed = _first(lookup, "schema", entries, lookup.query)
    nothing = f"no entry with the key {psk(schema)}"
    _say(lookup, "schema", passed, "refused" if records else nothing)
    return lookup.hit("schema", passed) if passed else None


def _say(lookup: Lookup, tier: Tier, passed: BoundEntry | None, otherwise: str) -> None:
    lookup.tiers.append((tier, "hit" if passed else otherwise))


def _first(
    lookup: Lookup, tier: Tier, entries: Iterable[tuple[str, Entry]], query: Query
) -> BoundEntry | None:
    side = query.exact_side()
    for entry_id, entry in entries:
        verdicts = _GATES(CandidatePair(side, entry.side, 1.0))
        if tier == "schema" and query.schema is not None:
            mine = unexplained_signs(query.template.text, query.schema.parameters())
            its = unexplained_signs(entry.template.text, entry.plan.params)
            verdicts = (*verdicts, compare_signs(mine, its)) if mine != its else verdicts
        passed = evaluate(lookup, tier, entry, query, verdicts, score=1.0, entry_id=entry_id)
        if isinstance(passed, BoundEntry):
            return passed
    return None


_GATES = exact_gates()
TRIED = 8
"""Templates that a prompt is aligned with: the ones with most words in common come first."""


def by_alignment(lookup: Lookup) -> Hit | None:
    """Serve the entry whose template the prompt is with unknown words in its slots."""
    skeletons, query = lookup.view.skeletons, lookup.query
    if not skeletons.literals:
        return None  # no template has a slot for a value that was never seen
    tried: set[str] = set()
    for entry_id in skeletons.candidates(query.text):
        if lookup.late():
            break
        seen = lookup.view.entries.known(entry_id)
        if seen is None or seen.side.template.text in {query.template.text, *tried}:
            continue
        if not is_telling(seen.side.template):
            continue
        tried.add(seen.side.template.text)
        with lookup.timed("gates"):
            mentions = _aligned(lookup, seen.side.template)
        passed = _served(lookup, entry_id, query.aligned(mentions)) if mentions else None
        if passed is not None:
            lookup.query = query.aligned(mentions or ())
            lookup.tiers.append(("semantic", "hit by alignment"))
            return lookup.hit("semantic", passed)
        if len(tried) == TRIED:
            break
    return None


def _aligned(lookup: Lookup, template: TemplateText) -> tuple[Mention, ...] | None:
    """Return the mentions that make the prompt the template, where all look like values there."""
    text = lookup.query.text
    mentions = align(
        text, template, mentions=lookup.query.mentions, vocabulary=lookup.view.vocabulary
    )
    if mentions is None or not lookup.view.habits().fit(text, mentions):
        return None
    return mentions


def _served(lookup: Lookup, entry_id: str, query: Query) -> BoundEntry | None:
    entry = lookup.known(entry_id)
    if entry is None:
        return None
    verdicts = _GATES(CandidatePair(query.exact_side(), entry.side, 1.0))
    passed = evaluate(lookup, "semantic", entry, query, verdicts, score=1.0, entry_id=entry_id)
    return passed if isinstance(passed, BoundEntry) else None


def find(lookup: Lookup) -> Found:
    """Return the hit of the first tier that has one, or a miss."""
    for tier in (
        by_template,
        by_schema,
        by_alignment,
        by_meaning,
    ):
        hit = tier(lookup)
        if hit is not None:
            return hit
    return lookup.miss()


class Tiers:
    """Finds plans for prompts. Safe from several threads; trouble with the store is a miss."""

    def __init__(self, context: CacheContext, verification: VerificationQueue | None) -> None:
        self._context = context
        self._verification = verification

    def lookup(
        self,
        request: PromptRequest,
        *,
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return a hit or a miss; see `PlanCache.lookup`."""
        check_switch("what_if", what_if)
        above = self._above(threshold)
        context, tenant = self._context, request.tenant
        start = context.clock.monotonic()
        try:
            view = context.views.current(tenant)
            change = view.change
            query = context.queries.read(request, view)
            lookup = Lookup(context, view, query, change, above=above, what_if=what_if)
            found = find(lookup)
            verifies = not what_if and lookup.failure != "explored"
            if self._verification is not None and isinstance(found, Miss) and verifies:
                found = self._verified(self._verification, lookup, found, threshold)
        except StoreError as error:
            context.health.failed(tenant, "store", error)
            shown = context.queries.redacted(request.text)
            found = Miss("store_failed", None, Trace(prompt=shown, tenant=tenant, template=""))
        else:
            context.health.worked(found)
        if not what_if:
            context.reports.looked_up(found, tenant, run, context.clock.monotonic() - start)
        return found

    def _above(self, threshold: float | None) -> float | None:
        """Return the cosine that must be exceeded; None where risk alone decides.

        Raises:
            InvalidSettings: the prompt's own `threshold` is no cosine, or less than the cache's.
        """
        settings = self._context.settings
        if threshold is None:
            return settings.threshold if settings.max_wrong is None else None
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise InvalidSettings(f"threshold is {threshold!r}; expected a cosine in [-1, 1]")
        floor = settings.threshold
        if not floor <= threshold <= 1:
            raise InvalidSettings(
                f"threshold is {threshold!r}; expected {floor:g} (the cache's own) to 1"
            )
        return float(threshold)

    def _verified(
        self, verification: VerificationQueue, lookup: Lookup, missed: Miss, above: float | None
    ) -> Found:
        """Show the nearest candidate in doubt to the verifier; a hit if it confirms at once.

        `above`: the prompt's own threshold, if it has one.
        """
        settings, query = self._context.settings, lookup.query
        hit = candidate_in_doubt(lookup, max(settings.verify_from, above or -1.0))
        entry = None if hit is None else lookup.known(hit.entry)
        if hit is None or entry is None:
            return missed
        doubt = PendingVerification(
            query.text, entry.prompt, hit, parameters_now(entry, query, hit), query.grounding
        )
        if settings.verify == "inline":
            return hit if verification.settles(doubt) else missed
        verification.later(doubt)
        return missed
