"""The tiers in their order: a prompt is asked for in each, and what it came to is accounted for.

The exact tiers serve an entry with the prompt's own template text, or with its schema. The semantic
tier serves, of the entries near in meaning, the one with the least risk.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.alignment import by_alignment
from semcache.cache.lookup.bind_entry import Refused, says_the_same
from semcache.cache.lookup.context import KEPT, BoundEntry, Lookup, bind_candidate, evaluate
from semcache.cache.lookup.verification import VerificationQueue
from semcache.cache.query import PromptRequest, Query, check_switch
from semcache.cache.result import Candidate, Found, Hit, Miss, Trace
from semcache.errors import EmbeddingError, InvalidSettings, InvalidVector, StoreError
from semcache.events import Tier
from semcache.matching.decision import WeighedGroup
from semcache.matching.gates import (
    CandidatePair,
    Verdict,
    compare_signs,
    over,
    risk_gates,
)
from semcache.matching.model.risk import probability_wrong
from semcache.matching.words.content import embedded_text, unexplained_signs
from semcache.ports import Neighbor, Vector
from semcache.process.forks import give_way
from semcache.prompts.schema import identity, psk
from semcache.prompts.unseen.supposition import suppose


def by_template(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's template text."""
    before = _served_before(lookup)
    if before is not None:
        lookup.tiers.append(("template", "hit"))
        return lookup.hit("template", before)
    ids = lookup.view.same_template(lookup.query.template)
    if lookup.query.given:
        also = lookup.view.without_given.get(lookup.query.given_template.text, ())
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
    if not passed.entry.reading.is_dated and True not in [m.relative for m in query.mentions]:
        query.before.found = passed, lookup.candidates[0]


def by_schema(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's schema, if that accounts for the whole prompt."""
    if lookup.query.schema is None:
        with lookup.timed("normalize"):
            schema = lookup.context.queries.schema(lookup.query)
        if schema is not None:
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
    for entry_id, entry in entries:
        verdicts = query.exact_verdicts(entry)
        if tier == "schema" and query.schema is not None:
            mine = unexplained_signs(query.template.text, query.schema.parameters())
            its = unexplained_signs(entry.template.text, entry.plan.params)
            verdicts = (*verdicts, compare_signs(mine, its)) if mine != its else verdicts
        passed = evaluate(lookup, tier, entry, query, verdicts, score=1.0, entry_id=entry_id)
        if isinstance(passed, BoundEntry):
            return passed
    return None


MEMBERS = 3
"""Further members of a group that are tried while those before cannot be bound."""
WIDER = 4
"""Times as many neighbors are looked at where risk decides, or where most are foreign."""
_GATES = risk_gates()
_OF_BINDING = frozenset({"binding", "pinned", "check"})
"""Gates that say of one entry that its plan cannot take the prompt's values."""


def by_meaning(lookup: Lookup) -> Hit | None:
    """Serve the entry near in meaning with the least risk, if that is low enough."""
    if lookup.late():
        return None
    neighbors = neighbors_of(lookup, lookup.query)
    if not neighbors:
        why = "the embedder failed" if neighbors is None else _nothing_near(lookup)
        lookup.tiers.append(("semantic", why))
        return None
    with lookup.timed("gates"):
        weighed = lookup.context.labels.weigh(lookup.view, lookup.query, neighbors)
    hit = _least_risk(lookup, weighed, lookup.query, neighbors)
    hit = by_supposing(lookup) if hit is None else hit
    if hit is not None:
        return hit
    withheld = lookup.failure == "explored"
    if lookup.nearly is not None and not lookup.what_if:
        lookup.context.labels.not_served(lookup.query, *lookup.nearly, withheld=withheld)
    if withheld:
        lookup.tiers.append(("semantic", "withheld, to see whether it had been right"))
    elif weighed:
        lookup.tiers.append(("semantic", "every candidate is too risky"))
    else:
        _explain(lookup, neighbors)
    return None


def _nothing_near(lookup: Lookup) -> str:
    """Return why no entry can be near."""
    if not len(lookup.view.entries):
        return "nothing to compare with"
    mine = lookup.context.embedder.fingerprint
    return f"no entry has a vector of {mine}; `semcache doctor --repair` embeds them anew"


def by_supposing(lookup: Lookup) -> Hit | None:
    """Ask once more, with words that nobody used before read as values where habits say so."""
    hidden = lookup.query.secrets is not None and lookup.query.secrets.spans
    if lookup.query.given or hidden or lookup.failure or lookup.late():
        return None
    with lookup.timed("gates"):
        reading = suppose(lookup.query.text, lookup.query.mentions, lookup.view.habits())
    if reading is None:
        return None
    query = lookup.query.supposing(reading)
    neighbors = neighbors_of(lookup, query)
    if neighbors is None:
        return None
    with lookup.timed("gates"):
        weighed = lookup.context.labels.weigh(lookup.view, query, neighbors)
    return _least_risk(lookup, weighed, query, neighbors)


def neighbors_of(lookup: Lookup, query: Query) -> Sequence[Neighbor] | None:
    """Return what is near in meaning, nearest first; None if the embedder failed.

    Empty only where the index is.
    """
    # Groups are told apart by their members, so that risk is weighed over more of them.
    wanted = lookup.context.settings.neighbors * WIDER
    text, view = embedded_text(query.template), lookup.view
    version = view.version  # before the search, which may see what comes with the next one
    key = version, query.catalog, query.grounding, text
    known = lookup.context.views.neighbors.get(key)
    if known is not None:
        return known
    if not len(view.index):
        return ()
    try:
        with lookup.timed("embed"):
            give_way()
            vector = lookup.context.embedder.embed([text])[0]
        with lookup.timed("search"):
            found = _of_its_own(lookup, vector, wanted)
    except (EmbeddingError, InvalidVector) as error:
        lookup.context.health.failed(query.tenant, "embedder", error)
        lookup.failure = "embedder_failed"
        return None
    lookup.context.views.neighbors.put(key, found)
    return found


def _of_its_own(lookup: Lookup, vector: Vector, wanted: int) -> Sequence[Neighbor]:
    """Return the nearest with the prompt's catalog and grounding, which alone could be served.

    Others may be nearer, so that the search goes on until enough are found. Where all are foreign
    they are returned, for a miss to tell so.
    """
    index, entries = lookup.view.index, lookup.view.entries
    its = lookup.query.prints
    if lookup.view.groups.are_all(*its):
        return index.search(vector, wanted)  # most entries found are never looked at
    count = wanted
    while True:
        found = index.search(vector, count)
        own = [n for n in found if (seen := entries.known(n.id)) is None or seen.prints == its]
        if len(own) >= wanted or len(found) < count:
            return own[:wanted] or found[:wanted]
        count *= WIDER


def _least_risk(
    lookup: Lookup, weighed: Sequence[WeighedGroup], query: Query, neighbors: Sequence[Neighbor]
) -> Hit | None:
    """Serve the group with the least risk for the prompt so read, if that is low enough."""
    try:
        return _first_that_may(lookup, weighed, query, neighbors)
    finally:
        for group in weighed:
            group.settle()


def _first_that_may(
    lookup: Lookup, weighed: Sequence[WeighedGroup], query: Query, neighbors: Sequence[Neighbor]
) -> Hit | None:
    for group in weighed[:KEPT]:
        for one in _members(lookup, group, query, neighbors):
            if (entry := lookup.known(one.entry)) is None:
                break
            passed = _member(lookup, one, entry, query)
            if isinstance(passed, BoundEntry):
                if lookup.context.labels.is_withheld(query, one.score):
                    lookup.failure, lookup.nearly = "explored", (one.score, passed.plan.to_dict())
                    return None
                lookup.query = query
                lookup.tiers.append(("semantic", "hit by supposing" if query.supposed else "hit"))
                return lookup.hit("semantic", passed, probability_wrong(one.score))
            if passed.gate not in _OF_BINDING:
                break
    return None


def _members(
    lookup: Lookup, group: WeighedGroup, query: Query, neighbors: Sequence[Neighbor]
) -> Iterator[WeighedGroup]:
    """Yield the member of a group that differs least, and then the next, each weighed."""
    tried: list[str] = []
    member: WeighedGroup | None = group
    while member is not None and len(tried) <= MEMBERS and not lookup.late():
        yield member
        tried.append(member.entry)
        with lookup.timed("gates"):
            name = group.featured.near.group
            member = lookup.context.labels.another(lookup.view, query, neighbors, name, tried)


def _member(lookup: Lookup, one: WeighedGroup, entry: Entry, query: Query) -> BoundEntry | Verdict:
    verdicts: tuple[Verdict, ...] = (one.verdict,)
    if one.verdict.passed and lookup.above is not None:
        verdicts = (*verdicts, over(lookup.likeness(one.featured.nearest), lookup.above))
    score = lookup.likeness(one.featured.near.score)
    if verdicts[-1].gate == "risk" and not verdicts[-1].passed:
        _note_refused(lookup, one, entry, query)
    return evaluate(lookup, "semantic", entry, query, verdicts, score=score, entry_id=one.entry)


def _note_refused(lookup: Lookup, one: WeighedGroup, entry: Entry, query: Query) -> None:
    """Keep what a lower cutoff would have served: its prompt's plan will tell if that was right."""
    best = -math.inf if lookup.nearly is None else lookup.nearly[0]
    hidden = query.secrets is not None and query.secrets.spans
    if hidden or one.score <= best or not lookup.context.labels.is_near(one.score):
        return
    if says_the_same(entry, query):
        return  # its values decide, which have a risk and labels of their own
    nearest = lookup.likeness(one.featured.nearest)
    if lookup.above is not None and not over(nearest, lookup.above).passed:
        return
    with contextlib.suppress(Refused):
        passed = bind_candidate(
            lookup, "semantic", entry, query, score=one.score, entry_id=one.entry
        )
        lookup.nearly = one.score, passed.plan.to_dict()


def _explain(lookup: Lookup, neighbors: Sequence[Neighbor]) -> None:
    """Say of the nearest what keeps them from being compared."""
    side = lookup.query.side()
    for near in neighbors[:KEPT]:
        seen = lookup.view.entries.known(near.id)
        if seen is None:
            continue
        facing = seen.facing(given=bool(lookup.query.given))
        verdicts = _GATES(CandidatePair(side, facing, near.similarity))
        text, score = seen.side.template.text, lookup.likeness(near.similarity)
        lookup.consider(Candidate(near.id, seen.label, text, "semantic", score, verdicts))
    lookup.tiers.append(("semantic", "no candidate passed"))


def find(lookup: Lookup) -> Found:
    """Return the hit of the first tier that has one, or a miss."""
    hit = by_template(lookup)
    if hit is None:
        hit = by_schema(lookup)
    if hit is None and lookup.view.skeletons.literals:  # slots that take a value never seen
        hit = by_alignment(lookup)
    if hit is None:
        hit = by_meaning(lookup)
    return lookup.miss() if hit is None else hit


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
        if what_if is not False:
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
                found = self._verification.asked(lookup, found, threshold)
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
