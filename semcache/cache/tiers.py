"""The tiers: one prompt is asked for by template text, by schema, and by meaning, in that order."""

from semcache.cache import exact_tiers, semantic_tier
from semcache.cache.alignment import by_alignment
from semcache.cache.found import Found
from semcache.cache.looking import Lookup


def find(lookup: Lookup) -> Found:
    """Return the hit of the first tier that has one, or a miss."""
    for tier in (
        exact_tiers.by_template,
        exact_tiers.by_schema,
        by_alignment,
        semantic_tier.by_meaning,
    ):
        hit = tier(lookup)
        if hit is not None:
            return hit
    return lookup.miss()
