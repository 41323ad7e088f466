"""The exact tiers: an entry with the prompt's own template text, or with its schema."""

from collections.abc import Iterable
from dataclasses import replace

from semcache.cache.asked import Asked
from semcache.cache.entry import Entry
from semcache.cache.found import Hit
from semcache.cache.looking import Lookup, Passed
from semcache.cache.trying import judge
from semcache.events import Tier
from semcache.matching.content import unexplained_signs
from semcache.matching.gates import compare_signs
from semcache.matching.pair import Pair
from semcache.prompts.schema.key import identity, psk


def by_template(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's template text."""
    ids = lookup.view.same_template(lookup.asked.template)
    if lookup.asked.given:
        also = lookup.view.same_without_given(lookup.asked.given_template)
        ids += [known for known in also if known not in ids]
    entries = [(known, entry) for known in ids if (entry := lookup.known(known)) is not None]
    passed = _first(lookup, "template", entries, lookup.asked)
    _say(lookup, "template", passed, "refused" if ids else "no entry with this template text")
    return lookup.hit("template", passed) if passed else None


def by_schema(lookup: Lookup) -> Hit | None:
    """Serve an entry with the prompt's schema, if that accounts for the whole prompt."""
    if lookup.asked.schema is None:
        with lookup.timed("normalize"):
            lookup.asked = replace(lookup.asked, schema=lookup.parts.normalized(lookup.asked))
    schema = lookup.asked.schema
    if schema is None:
        return None
    if schema.partial:
        lookup.tiers.append(("schema", f"partial: {', '.join(schema.unexplained)}"))
        return None
    records = lookup.parts.store.find(lookup.asked.tenant, f"schema:{identity(schema)}")
    entries = [(r.id, entry) for r in records if (entry := lookup.decode(r)) is not None]
    passed = _first(lookup, "schema", entries, lookup.asked)
    nothing = f"no entry with the key {psk(schema)}"
    _say(lookup, "schema", passed, "refused" if records else nothing)
    return lookup.hit("schema", passed) if passed else None


def _say(lookup: Lookup, tier: Tier, passed: Passed | None, otherwise: str) -> None:
    lookup.tiers.append((tier, "hit" if passed else otherwise))


def _first(
    lookup: Lookup, tier: Tier, entries: Iterable[tuple[str, Entry]], asked: Asked
) -> Passed | None:
    side = asked.side()
    for entry_id, entry in entries:
        verdicts = lookup.parts.exact(Pair(side, entry.side, 1.0))
        if tier == "schema" and asked.schema is not None:
            mine = unexplained_signs(asked.template.text, asked.schema.parameters())
            its = unexplained_signs(entry.template.text, entry.plan.params)
            verdicts = (*verdicts, compare_signs(mine, its)) if mine != its else verdicts
        passed = judge(lookup, tier, entry, asked, verdicts, score=1.0, entry_id=entry_id)
        if isinstance(passed, Passed):
            return passed
    return None
