"""Alignment: a template that nothing but unknown words parts from a prompt gives them its slots.

That these words are values is concluded and not known. So a hit is one of the semantic tier: it
has a risk, obeys the bound, vetoes and exploration, and writes nothing without leave.
"""

from semcache.cache.asked import Asked
from semcache.cache.found import Hit
from semcache.cache.looking import Lookup, Passed
from semcache.cache.trying import judge
from semcache.matching.content import is_telling
from semcache.matching.pair import Pair
from semcache.prompts.mentions import Mention
from semcache.prompts.template import TemplateText
from semcache.prompts.unseen.alignment import align

TRIED = 8
"""Templates that a prompt is aligned with: the ones with most words in common come first."""


def by_alignment(lookup: Lookup) -> Hit | None:
    """Serve the entry whose template the prompt is with unknown words in its slots."""
    tried: set[str] = set()
    asked = lookup.asked
    for entry_id in lookup.view.skeletons.candidates(asked.text):
        seen = lookup.view.entries.known(entry_id)
        if seen is None or seen.side.template.text in {asked.template.text, *tried}:
            continue
        if not is_telling(seen.side.template):
            continue
        tried.add(seen.side.template.text)
        with lookup.timed("gates"):
            mentions = _aligned(lookup, seen.side.template)
        passed = _served(lookup, entry_id, asked.aligned(mentions)) if mentions else None
        if passed is not None:
            lookup.asked = asked.aligned(mentions or ())
            lookup.tiers.append(("semantic", "hit by alignment"))
            return lookup.hit("semantic", passed)
        if len(tried) == TRIED:
            break
    return None


def _aligned(lookup: Lookup, template: TemplateText) -> tuple[Mention, ...] | None:
    """Return the mentions that make the prompt the template, where all look like values there."""
    text = lookup.asked.text
    mentions = align(
        text, template, mentions=lookup.asked.mentions, vocabulary=lookup.view.vocabulary
    )
    if mentions is None or not lookup.view.habits().fit(text, mentions):
        return None
    return mentions


def _served(lookup: Lookup, entry_id: str, asked: Asked) -> Passed | None:
    entry = lookup.known(entry_id)
    if entry is None:
        return None
    verdicts = lookup.parts.exact(Pair(asked.side(), entry.side, 1.0))
    passed = judge(lookup, "semantic", entry, asked, verdicts, score=1.0, entry_id=entry_id)
    return passed if isinstance(passed, Passed) else None
