"""The exact tiers: an entry with the prompt's own template text, or with its schema; and alignment.

Alignment reads a prompt as a template that nothing but unknown words parts from it. That these
words are values is concluded and not known. So a hit is one of the semantic tier: it has a risk,
obeys the bound, vetoes and exploration, and writes nothing without leave.
"""

from collections.abc import Iterable
from dataclasses import replace

from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.context import BoundEntry, Lookup
from semcache.cache.lookup.evaluation import evaluate
from semcache.cache.query import Query
from semcache.cache.result import Hit
from semcache.events import Tier
from semcache.matching.gates import Pair, compare_signs, exact_gates
from semcache.matching.words.content import is_telling, unexplained_signs
from semcache.prompts.mentions import Mention
from semcache.prompts.schema.key import identity, psk
from semcache.prompts.template import TemplateText
from semcache.prompts.unseen.alignment import align


def by_template(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's template text."""
    ids = lookup.view.same_template(lookup.query.template)
    if lookup.query.given:
        also = lookup.view.same_without_given(lookup.query.given_template)
        ids += [known for known in also if known not in ids]
    entries = [(known, entry) for known in ids if (entry := lookup.known(known)) is not None]
    passed = _first(lookup, "template", entries, lookup.query)
    _say(lookup, "template", passed, "refused" if ids else "no entry with this template text")
    return lookup.hit("template", passed) if passed else None


def by_schema(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's schema, if that accounts for the whole prompt."""
    if lookup.query.schema is None:
        with lookup.timed("normalize"):
            lookup.query = replace(lookup.query, schema=lookup.context.queries.schema(lookup.query))
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
    side = query.side()
    for entry_id, entry in entries:
        verdicts = _GATES(Pair(side, entry.side, 1.0))
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
    tried: set[str] = set()
    query = lookup.query
    for entry_id in lookup.view.skeletons.candidates(query.text):
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
    verdicts = _GATES(Pair(query.side(), entry.side, 1.0))
    passed = evaluate(lookup, "semantic", entry, query, verdicts, score=1.0, entry_id=entry_id)
    return passed if isinstance(passed, BoundEntry) else None
