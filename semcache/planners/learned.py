"""Learning: an operation that did a step well is tried first for the same step the next time.

Kept in a note beside the cache, by tenant, and with the fingerprint of the operation: one that has
changed since has everything to prove again.
"""

import logging
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from semcache.canonical import digest
from semcache.catalog.catalog import Catalog
from semcache.errors import StoreError
from semcache.planners.arguments.operation_index import known_as
from semcache.planners.note_store import rows_of
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Resolution, ResolutionContext, Resolved, unclear
from semcache.planners.steps.resolver import WordResolver
from semcache.ports import PlanStore
from semcache.prompts.parameter import type_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import singular

log = logging.getLogger(__name__)

NOTE = "learned"
MAX_KEPT = 500
"""Steps of a tenant that are remembered; the ones that ran longest ago make room."""
MOST = 4.0
"""Standing at most, so that an operation that stops working is dropped after a few failures."""
TRUSTED = 1.0
"""Standing from which an operation is tried first: one run that went well, and no failure since."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How an operation has done a step, up to now."""

    operation: str
    fingerprint: str
    """Of the operation when it ran."""
    score: float
    """Grows by 1 with each run that went well, at most to 4; halved by each that did not."""


_NOTE = TypeAdapter(dict[str, Standing])


def step_key(intent: SubIntent) -> str:
    """Return what the same step has in common whatever its values are: its words without them."""
    text = intent.goal
    for param in sorted(intent.params, key=lambda one: -len(one.mention or "")):
        if param.mention:
            text = text.replace(param.mention, f" <{type_key(param.name)}> ", 1)
    return digest([intent.kind, *(singular(word) for word in tokens(text))])[:32]


class Learned:
    """Which operations did which steps well. Safe from several threads and processes.

    Every method may raise `StoreUnavailable`.
    """

    def __init__(self, store: PlanStore) -> None:
        self._store = store

    def standing(self, tenant: str, intent: SubIntent, catalog: Catalog) -> Standing | None:
        """Return how the operation that did `intent` best stands; None if none is to be trusted.

        None, too, if the catalog has it no longer, or another one of its name.
        """
        found = _known(self._store.get_note(tenant, NOTE)).get(step_key(intent))
        if found is None or found.score < TRUSTED:
            return None
        return found if catalog.fingerprints.get(found.operation) == found.fingerprint else None

    def ran(
        self, tenant: str, intent: SubIntent, operation: str, catalog: Catalog, *, well: bool
    ) -> None:
        """Remember how a run of `operation` for `intent` went."""
        key, fingerprint = step_key(intent), catalog.fingerprints.get(operation, "")

        def change(note: str | None) -> str:
            known = _known(note)
            before = known.pop(key, None)
            same = before is not None and (before.operation, before.fingerprint) == (
                operation,
                fingerprint,
            )
            score = before.score if before is not None and same else 0.0
            score = min(score + 1, MOST) if well else score / 2
            if well or same:
                known[key] = Standing(operation, fingerprint, score)
            elif before is not None:
                known[key] = before
            return _NOTE.dump_json(dict(list(known.items())[-MAX_KEPT:])).decode()

        self._store.update_note(tenant, NOTE, change)


class LearnedResolver:
    """Resolves to the operation that did the same step well before. Satisfies `Resolver`.

    It is fitted and checked as any other, and only spared the comparison with the rest; if it does
    not fit this time, the next resolver decides.
    """

    def __init__(self, learned: Learned, words: WordResolver) -> None:
        """Keep what ran well, and who fits a step to the operation that did it."""
        self._learned = learned
        self._words = words

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return the operation that did this before, or that none did; see `Resolver`."""
        unknown = unclear(intent, f"nothing was learned about {intent.goal!r}")
        if intent.kind != "api_call":
            return unknown
        try:
            known = self._learned.standing(asked.tenant, intent, asked.catalog)
        except StoreError as error:
            log.warning("what was learned cannot be read: %s", error)
            return unknown
        if known is None:
            return unknown
        operation = known_as(asked.catalog.get(known.operation), asked.catalog)
        found = self._words.among([operation], intent, asked)
        if not isinstance(found, Resolution):
            return unknown
        why = f"did the same step well before (standing {known.score:g})"
        return replace(found, source="learned", why=why)


def _known(note: str | None) -> dict[str, Standing]:
    """Return what a note holds, what ran longest ago first; nothing if it cannot be read."""
    return rows_of(note, _NOTE, "what was learned")
