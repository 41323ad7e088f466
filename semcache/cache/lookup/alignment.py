"""Alignment: a prompt read as a template that nothing but unknown words parts from it.

That these words are values is concluded and not known. So its hit is one of the semantic tier: it
has a risk, obeys the bound, vetoes and exploration, and writes nothing without leave.
"""

from semcache.cache.lookup.context import BoundEntry, Lookup, evaluate
from semcache.cache.query import Query
from semcache.cache.result import Hit
from semcache.matching.words.content import is_telling
from semcache.prompts.mentions import Mention
from semcache.prompts.template import TemplateText
from semcache.prompts.unseen.alignment import align

TRIED = 8
"""Templates that a prompt is aligned with: the ones with most words in common come first."""


def by_alignment(lookup: Lookup) -> Hit | None:
    """Serve the entry whose template the prompt is with unknown words in its slots."""
    skeletons, query = lookup.view.skeletons, lookup.query
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
    verdicts = query.exact_verdicts(entry)
    passed = evaluate(lookup, "semantic", entry, query, verdicts, score=1.0, entry_id=entry_id)
    return passed if isinstance(passed, BoundEntry) else None
