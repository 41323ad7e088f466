"""PlanCache: plans made once, found again by template text, by schema and by meaning."""

import contextlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from semcache.cache.admission import admit, readable
from semcache.cache.asked import Asked, ask
from semcache.cache.entry import Decoded, Entry, from_record
from semcache.cache.evidence_file import read_evidence, write_evidence
from semcache.cache.family import family
from semcache.cache.found import Found, Hit, Miss, Trace
from semcache.cache.labels import Labels
from semcache.cache.planning import Planning
from semcache.cache.recent import Recent
from semcache.cache.redaction import redacted
from semcache.cache.statistics import Counters, Statistics, statistics
from semcache.cache.tiers import Lookup, Parts
from semcache.cache.transfer import read_entries, write_entries
from semcache.cache.trouble import Trouble
from semcache.cache.varying import at, held, varying
from semcache.cache.verifying import Grey, Verifying, said_now
from semcache.cache.vetoes import Vetoes
from semcache.cache.view import View
from semcache.cache.views import NOTE, Views
from semcache.cache.writer import Stored, Writer
from semcache.canonical import same
from semcache.catalog.catalog import Catalog
from semcache.errors import (
    InvalidInput,
    InvalidPrompt,
    InvalidSettings,
    ModelError,
    NormalizationError,
    StoreCorrupt,
    StoreError,
)
from semcache.events import (
    Event,
    LookupFinished,
    PhaseFinished,
    Tier,
)
from semcache.matching.evidence import Evidence
from semcache.matching.gates import exact_gates, risk_gates
from semcache.matching.risk import USUAL_WRONG, shipped
from semcache.plans.plan import ExecutionPlan
from semcache.ports import (
    Bounds,
    Clock,
    Embedder,
    Normalizer,
    Observer,
    PlanStore,
    Snapshots,
    VectorIndex,
    Verifier,
)
from semcache.prompts.closed import NOTHING_CLOSED, ClosedValues
from semcache.prompts.learned import LearnedValues
from semcache.prompts.mentions import find_mentions
from semcache.prompts.parameter import Parameter, by_name
from semcache.prompts.redaction import Redact, hide
from semcache.prompts.schema import PromptSchema
from semcache.prompts.template import TemplateText
from semcache.prompts.text import check_prompt

if TYPE_CHECKING:
    from semcache.settings import Settings

log = logging.getLogger(__name__)

FROZEN = "the cache is frozen: it serves and keeps nothing"
"""Why `store` keeps nothing where `settings.frozen` is set."""


class PlanCache:
    """Plans made once, served again with each prompt's own values. Safe from several threads.

    Needs no catalog, model or engine; given a catalog it also finds plans by schema and checks
    every bound plan against the operations. Trouble with store, index or embedder is a miss, an
    event and one warning; it is never raised to a caller.
    """

    def __init__(
        self,
        *,
        store: PlanStore,
        embedder: Embedder,
        clock: Clock,
        make_index: Callable[[str], VectorIndex],
        observer: Observer | None,
        settings: "Settings",
        catalog: Catalog | None = None,
        normalizer: Normalizer | None = None,
        snapshots: Snapshots | None = None,
        redact: Redact | None = None,
        snapshot_note: str = NOTE,
        verifier: Verifier | None = None,
    ) -> None:
        self.catalog = catalog
        """What plans may call; None if nobody said."""
        self.settings = settings
        self._store = store
        self.embedder = embedder
        """What turns texts into vectors."""
        self._clock = clock
        self._trouble = Trouble(observer)
        bounds = Bounds(
            tenant_entries=settings.max_entries,
            tenant_bytes=settings.max_bytes,
            entries=settings.max_total_entries,
            bytes=settings.max_total_bytes,
        )
        self._writer = Writer(store, embedder, self._trouble, bounds=bounds)
        self._normalizer = normalizer
        self.redact = redact
        """What hides what must not be written down; None: nothing must."""
        self._views = Views(
            store,
            make_index=make_index,
            embedder=embedder.fingerprint,
            snapshots=snapshots,
            note=snapshot_note,
        )
        self._planning = Planning(
            store,
            clock,
            self._trouble,
            ttl_s=settings.flight_ttl_s,
            wait_s=settings.flight_wait_s,
        )
        self._counters = Counters(store, clock)
        self._vetoes = Vetoes(store)
        bound = USUAL_WRONG if settings.max_wrong is None else settings.max_wrong
        self._labels = Labels(store, shipped(), max_wrong=bound, gates=risk_gates())
        self._verifying = (
            None
            if verifier is None
            else Verifying(
                verifier,
                promote=self._promote,
                count=lambda tenant, outcome: self._count(tenant, f"verified:{outcome}"),
                failed=self._trouble.failed,
                waiting=settings.verify_waiting,
            )
        )
        self._decoded = Decoded()
        self._recent = Recent()
        self._closed = (
            NOTHING_CLOSED
            if catalog is None
            else ClosedValues(catalog.closed, synonyms=catalog.synonyms)
        )
        self._usual = self._usual_parts()

    @classmethod
    def open(
        cls,
        directory: str | Path | None = None,
        *,
        threshold: float = 0.95,
        max_wrong: float | None = None,
        catalog: Catalog | None = None,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
        ttl_s: float | None = 30 * 24 * 3600.0,
        ttl_slides: str = "never",
        max_entries: int | None = 10_000,
        max_bytes: int | None = None,
        max_total_entries: int | None = None,
        max_total_bytes: int | None = None,
        frozen: bool = False,
        timezone: str = "UTC",
        redact: Redact | None = None,
        verifier: Verifier | None = None,
        verify: Literal["background", "inline"] = "background",
        encryption_key: str = "",
        database: str | None = None,
        database_search: Literal["replica", "server"] = "replica",
    ) -> "PlanCache":
        """Return a cache kept in `directory`, in `database`, or in memory (None). Loads no model.

        `threshold`: cosine in [-1, 1] that a semantic candidate must exceed. `max_wrong`: highest
        share of the hits found by meaning that may be wrong, in (0, 1): then risk alone decides,
        under the threshold too (see `matching.risk`). None: threshold, gates, and a risk of 2 %.
        `ttl_s`: seconds from storing to expiry, None for never; `ttl_slides`: which hits make it
        begin anew, `never`, `exact` (template and schema tiers) or `always`. `max_entries` and
        `max_bytes` bound each tenant, `max_total_entries` and `max_total_bytes` all together; None:
        no bound. What is worth least makes room (see `stores.worth`), overall in the tenant that
        has most. `frozen`: only serve what is there; not a byte of the directory is written, which
        may be read-only, and `store` answers with a reason.
        `timezone`: where days begin and end for words such as "yesterday".
        `verifier`: asked about candidates that likeness alone keeps from being served; what it
        confirms hits from then on, and with `verify="inline"` at once.
        `redact`: returns a text without what must not be embedded, stored, logged or traced; what
        it raises reaches the caller. Prompts keep their own values, and plans take them.
        `encryption_key`: 32 bytes as base64 that everything in `directory` is encrypted with.
        `database`: connection string of a PostgreSQL that many machines may share (extra
        `postgres`); `directory` then keeps this machine's snapshots. `database_search`: whether
        this process searches by meaning in a copy of its own, or asks the server.

        Raises:
            InvalidSettings: a value is out of range.
            ForeignDirectory, ForeignDatabase, NewerFormat, StoreUnavailable, StoreCorrupt: the
                directory or database cannot be used; nothing in it was changed.
            MissingExtra: `database` is given and `semcache[postgres]` is not installed.
        """
        from semcache.wiring import open_plan_cache  # noqa: PLC0415 - wiring stands right of us

        return open_plan_cache(
            directory=None if directory is None else Path(directory),
            threshold=threshold,
            max_wrong=max_wrong,
            catalog=catalog,
            embedder=embedder,
            clock=clock,
            observer=observer,
            ttl_s=ttl_s,
            ttl_slides=ttl_slides,
            max_entries=max_entries,
            max_bytes=max_bytes,
            max_total_entries=max_total_entries,
            max_total_bytes=max_total_bytes,
            frozen=frozen,
            timezone=timezone,
            redact=redact,
            verifier=verifier,
            verify=verify,
            encryption_key=encryption_key,
            database=database or "",
            database_search=database_search,
        )

    # Lookup --------------------------------------------------------------------------------

    def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        threshold: float | None = None,
        run: str = "",
    ) -> Found:
        """Return a hit with this prompt's own values, or a miss that says why.

        `params`: values that the caller holds already, by name; then the plan must depend on
        exactly these. `schema`: what a normalizer said, if one was asked. `grounding`: which
        grounding is in force. `threshold`: a stricter threshold for this prompt.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
            InvalidSettings: `threshold` is under the configured one.
        """
        text = check_prompt(prompt, max_chars=self.settings.max_prompt_chars)
        given = by_name(params)
        _check_tenant(tenant)
        above = self._stricter(threshold)
        start = self._clock.monotonic()
        try:
            view = self._views.current(tenant)
            change = self._views.change  # what the view holds, or less
            asked = self._asked(text, tenant, given, grounding=grounding, view=view, schema=schema)
            looking = Lookup(self._parts(above), view, asked, change)
            found = looking.find()
            if self._verifying is not None and isinstance(found, Miss):
                found = self._verified(self._verifying, looking, found, above)
        except StoreError as error:
            self._trouble.failed(tenant, "store", error)
            shown = self.redacted(text)
            found = Miss("store_failed", None, Trace(prompt=shown, tenant=tenant, template=""))
        else:
            self._trouble.worked(found)
        self._report(found, tenant, run, self._clock.monotonic() - start)
        return found

    def _verified(
        self, verifying: Verifying, looking: Lookup, missed: Miss, above: float | None
    ) -> Found:
        """Show the nearest candidate in doubt to the verifier; a hit if it confirms at once."""
        hit = looking.grey(max(self.settings.verify_from, above or -1.0))
        entry = None if hit is None else looking.entry(hit.entry)
        if hit is None or entry is None:
            return missed
        asked = looking.asked
        grey = Grey(asked.text, entry.prompt, hit, said_now(entry, asked, hit), asked.grounding)
        if self.settings.verify == "inline":
            return hit if verifying.confirms(grey) else missed
        verifying.later(grey)
        return missed

    def verified(self) -> None:
        """Return once the verifier has seen every candidate that waits for it."""
        if self._verifying is not None:
            self._verifying.wait()

    def _promote(self, grey: Grey) -> None:
        """Let the prompt join the plan, unless somebody planned for it meanwhile."""
        tenant = grey.hit.trace.tenant
        if not self.lookup(grey.asked, tenant=tenant, grounding=grey.grounding):
            self._keep(
                grey.asked,
                grey.hit.plan,
                params=grey.params,
                tenant=tenant,
                grounding=grey.grounding,
                planner="verified",
                label=False,
            )

    def _asked(
        self,
        text: str,
        tenant: str,
        given: Sequence[Parameter],
        *,
        grounding: str,
        view: View | None,
        schema: PromptSchema | None,
    ) -> Asked:
        plain = not given and self.redact is None  # what is hidden is nowhere kept
        version = view.version if view is not None and plain else None
        known = None if version is None else self._recent.get(tenant, text, grounding, version)
        if known is not None:
            return replace(known, now=self._clock.now(), schema=schema)
        asked = ask(
            text,
            tenant=tenant,
            given=given,
            closed=self._closed,
            learned=None if view is None else view.learned,
            catalog="" if self.catalog is None else self.catalog.fingerprint,
            grounding=grounding,
            now=self._clock.now(),
            zone=self.settings.zone,
            redact=self.redact,
        )
        if version is not None:
            self._recent.put(asked, version)
        return replace(asked, schema=schema) if schema is not None else asked

    def _normalized(self, asked: Asked) -> PromptSchema | None:
        if self._normalizer is None or self.catalog is None:
            return None
        params = tuple(asked.given.values())
        try:
            return self._normalizer.normalize(asked.text, catalog=self.catalog, params=params)
        except (NormalizationError, InvalidPrompt, ModelError) as error:
            # The prompt is fine, or it would not have come here: it has no schema, that is all.
            said = str(error) if asked.secrets is None else asked.secrets.clean(str(error))
            log.debug("no schema: %s", said)
            return None

    def _parts(self, above: float | None) -> Parts:
        """Return what the tiers work with; made once but where a prompt has its own threshold."""
        if above is None:
            return self._usual
        return replace(self._usual, above=above)

    def _usual_parts(self) -> Parts:
        return Parts(
            store=self._store,
            decoded=self._decoded,
            embedder=self.embedder,
            clock=self._clock,
            catalog=self.catalog,
            neighbors=self.settings.neighbors,
            exact=exact_gates(),
            near=risk_gates(),
            normalized=self._normalized,
            weigh=self._labels.weigh,
            vetoed=self._vetoed,
            failed=self._trouble.failed,
            served=self._served,
            above=self.settings.threshold if self.settings.max_wrong is None else None,
        )

    def _served(self, tier: Tier, known: str, entry: Entry) -> None:
        """Begin the TTL of an entry anew if hits of that tier do so, at most 16 times a TTL."""
        slides, ttl_s = self.settings.ttl_slides, self.settings.ttl_s
        if self.settings.frozen or slides == "never" or (tier == "semantic" and slides != "always"):
            return
        if ttl_s is None or entry.expires_s is None or entry.plan.perishable:
            return
        until = self._clock.now() + ttl_s
        least = until - ttl_s / 16
        if entry.expires_s <= least:
            self._writer.extend(entry.tenant, known, until, least_s=least)

    def _stricter(self, threshold: float | None) -> float | None:
        floor = self.settings.threshold
        if threshold is None:
            return None
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise InvalidSettings(f"threshold is {threshold!r}; expected a cosine in [-1, 1]")
        if not floor <= threshold <= 1:
            raise InvalidSettings(
                f"threshold is {threshold!r}; expected {floor:g} (the cache's own) to 1"
            )
        return float(threshold)

    def _view(self, tenant: str) -> View | None:
        try:
            return self._views.current(tenant)
        except StoreError as error:
            self._trouble.failed(tenant, "store", error)
            return None

    def _vetoed(self, asked: Asked, entry: str) -> bool:
        return self._vetoes.stands(asked.tenant, asked.template.digest, entry)

    def _report(self, found: Found, tenant: str, run: str, seconds: float) -> None:
        if isinstance(found, Hit):
            log.info("HIT %s %s (%.1f ms)", found.tier, found.key, seconds * 1000)
            counted, served = f"hit:{found.tier}", found.entry
        else:
            log.info("MISS %s (%s)", found.trace.key or found.trace.template, found.reason)
            counted, served = f"miss:{found.reason}", ""
        self._count(tenant, counted, served=served)
        if self._trouble.observer is None:
            return
        self.emit(_finished(found, tenant, run, seconds))
        for phase, took in found.trace.seconds.items():
            self.emit(PhaseFinished(tenant=tenant, run=run, phase=phase, seconds=took))

    # Store ---------------------------------------------------------------------------------

    def store(
        self,
        prompt: str,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        params: Mapping[str, object] | Sequence[Parameter] = (),
        tenant: str = "default",
        schema: PromptSchema | None = None,
        grounding: str = "",
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
    ) -> Stored:
        """Keep `plan`, made for `prompt`, with its values generalized; return what was done.

        `plan`: a JSON object or a plan of any format. `params`: the values it depends on. A plan
        for the same template, fixed values and fingerprints replaces the one before; but where
        another value changed what nobody said, each plan serves its own value alone. `cost_s`:
        seconds that it took to make; what took long is kept longest. None: nobody knows.

        Raises:
            InvalidPrompt, InvalidParameter, InvalidPlan, NotActionable, BindingError: what is
                handed in cannot be stored; nothing was changed.
        """
        return self._keep(
            prompt,
            plan,
            params=params,
            tenant=tenant,
            schema=schema,
            grounding=grounding,
            tags=tags,
            planner=planner,
            cost_s=cost_s,
        )

    def _keep(
        self,
        prompt: str,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        params: Mapping[str, object] | Sequence[Parameter] = (),
        tenant: str,
        schema: PromptSchema | None = None,
        grounding: str = "",
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
        label: bool = True,
    ) -> Stored:
        """Do what `store` does; `label`: whether the plan says anything about its neighbors."""
        text = check_prompt(prompt, max_chars=self.settings.max_prompt_chars)
        given = by_name(params)
        _check_tenant(tenant)
        decoded = readable(plan, self.catalog)
        view = self._view(tenant)
        asked = self._asked(text, tenant, given, grounding=grounding, view=view, schema=schema)
        if schema is None:
            asked = replace(asked, schema=self._normalized(asked))
        entry = admit(
            asked,
            decoded,
            given,
            plain=find_mentions(text, closed=self._closed) if given else asked.mentions,
            catalog=self.catalog,
            schema=asked.schema,
            now=self._clock.now(),
            ttl_s=self.settings.ttl_s,
            tags=tags,
            planner=planner,
            cost_s=1.0 if cost_s is None else _seconds(cost_s),
        )
        entry = redacted(entry, asked)
        if self.settings.frozen:
            return Stored("", reason=FROZEN)
        if label:
            self._label(entry)
        if entry.plan.refusal:
            return Stored("", reason=entry.plan.refusal)
        return self._put(self._told_apart(entry, view))

    def _told_apart(self, entry: Entry, view: View | None) -> Entry:
        """Hold a plan to its values where they are seen to change what nobody said."""
        if view is None:
            return entry
        old = next((e for e in self._standing(entry, view) if e.id == entry.id), None)
        names = frozenset() if old is None else varying(old, entry)
        if old is not None and names:
            with self.guarded(entry.tenant):
                self._put(held(old, names))
                self._store.remove(entry.tenant, [old.id])
        elif old is None and view.rivals(entry):
            names = at(entry, {i for fixed in view.varying(entry) for i in fixed})
        return held(entry, names) if names else entry

    def _standing(self, entry: Entry, view: View) -> Iterator[Entry]:
        """Yield the entries with the template of `entry` that serve all values."""
        with self.guarded(entry.tenant):
            for known in view.same_template(entry.template):
                record = self._store.get(entry.tenant, known)
                if record is not None:
                    yield from_record(record)

    def _label(self, entry: Entry) -> None:
        """Let the plan of a prompt that missed say which of its neighbors had the same."""
        with self.guarded(entry.tenant):
            families = {family(entry.plan, given=given) for given in (False, True)}
            self._labels.planned(entry.tenant, entry.prompt, families)

    def _put(self, entry: Entry) -> Stored:
        stored = self._writer.put(entry)
        if stored:
            self._count(entry.tenant, "stored")
        return stored

    @contextlib.contextmanager
    def planning(self, found: Found) -> Iterator[bool]:
        """Hold the making of a plan for what was looked up; give whether to look it up again.

        Of all that want a plan for the same template of the same tenant, over the threads of all
        processes on this store, one is inside at a time. Who had to wait, or comes after another
        change, looks up again before it plans: the plan may be there now, for its own values too.
        A holder that died is taken over after `settings.flight_ttl_s`; nobody waits longer than
        `settings.flight_wait_s`, then it plans as well.
        """
        trace = found.trace
        with self._planning.alone(trace.tenant, trace.template or trace.prompt) as waited:
            yield waited or self._changed(trace.tenant, trace.change)

    def _changed(self, tenant: str, change: int) -> bool:
        try:
            return self._store.last_change() != change
        except StoreError as error:
            self._trouble.failed(tenant, "store", error)
            return False

    # Feedback and removal ------------------------------------------------------------------

    def feedback(self, found: Found, *, right: bool) -> None:
        """Take a caller's word that a hit was right or wrong.

        A wrong semantic hit is never served to that template again. A wrong hit of any other tier,
        or of the entry's own template, says that the plan itself is wrong: its entry is removed.

        Raises:
            InvalidInput: `found` is a miss; there is nothing to judge.
        """
        if not isinstance(found, Hit):
            raise InvalidInput(
                "feedback is about a hit; a miss served nothing that could be judged"
            )
        tenant = found.trace.tenant
        self._count(tenant, "right" if right else "wrong")
        self.judged(found, right=right)
        if right:
            return
        with self.guarded(tenant):
            asked = TemplateText(found.trace.template, ())
            seen = self._views.current(tenant).entries.get(found.entry)
            of_its_own = seen is not None and seen.side.template.text == asked.text
            if found.tier == "semantic" and not of_its_own:
                self._vetoes.add(tenant, asked.digest, found.entry)
            elif self._store.remove(tenant, [found.entry]):
                self._trouble.removed(tenant, 1, "feedback")

    def audit(self, hit: Hit, plan: ExecutionPlan) -> bool:
        """Take in the plan that was made for a prompt although it hit; return whether it agrees.

        Such labels are of hits as they come, and so keep the bound honest. Whether a plan that
        differs is better, nobody says: nothing is removed.
        """
        tenant = hit.trace.tenant
        agrees = same(hit.plan.to_dict(), plan.to_dict())
        self._count(tenant, "explored")
        if not agrees:
            self._count(tenant, "explored_wrong")
        self.judged(hit, right=agrees)
        return agrees

    def judged(self, hit: Hit, *, right: bool) -> None:
        """Let the risk model know how a hit turned out; nothing is vetoed or removed."""
        if hit.tier == "semantic":
            with self.guarded(hit.trace.tenant):
                self._labels.judged(hit.trace.tenant, hit.trace.prompt, hit.entry, right=right)

    def invalidate(
        self,
        *,
        tenant: str = "default",
        id: str | None = None,  # noqa: A002 - the word of the entry
        tag: str | None = None,
        operation: str | None = None,
        key: str | None = None,
    ) -> int:
        """Remove the tenant's entries with that id, tag, operation or key; return how many.

        `key` is a Prompt Schema Key. Several of them remove what any of them names.

        Raises:
            InvalidInput: nothing is named; `clear` removes all.
        """
        labels = {"tag": tag, "operation": operation, "key": key}
        wanted = [f"{name}:{value}" for name, value in labels.items() if value is not None]
        if not wanted and id is None:
            raise InvalidInput("name an id, a tag, an operation or a key; `clear` removes all")
        removed = 0
        with self.guarded(tenant):
            ids = {id} if id is not None else set()
            for label in wanted:
                ids.update(self._store.labelled(tenant, label))
            removed = self._store.remove(tenant, sorted(ids))
            if removed:
                self._trouble.removed(tenant, removed, "invalidated")
        return removed

    def remove_expired(self, *, tenant: str = "default") -> int:
        """Remove the tenant's expired entries, which are never served anyway; return how many."""
        removed = 0
        with self.guarded(tenant):
            now = self._clock.now()
            old = [r.id for r in self._store.scan(tenant) if r.expires_s and r.expires_s <= now]
            removed = self._store.remove(tenant, old)
            if removed:
                self._trouble.removed(tenant, removed, "expired")
        return removed

    def clear(self, *, tenant: str | None = None) -> int:
        """Remove everything of the tenant, or of every tenant (None); return how many entries."""
        removed = 0
        with self.guarded(tenant or ""):
            removed = self._store.clear(tenant)
            self._counters.forget(tenant)
            self._vetoes.forget(tenant)
            self._labels.forget(tenant)
            self._views.forget(tenant)
            self._trouble.removed(tenant or "", removed, "cleared")
        return removed

    # Looking around ------------------------------------------------------------------------

    def entries(self, *, tenant: str = "default") -> tuple[Entry, ...]:
        """Return the tenant's readable entries, oldest first.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        found = []
        for record in self._store.scan(tenant):
            try:
                found.append(from_record(record))
            except StoreCorrupt as error:
                self._trouble.failed(tenant, "store", error)
        return tuple(found)

    def tenants(self) -> tuple[str, ...]:
        """Return the tenants that have entries, sorted."""
        return tuple(self._store.tenants())

    def stats(self, *, tenant: str = "default") -> Statistics:
        """Return the tenant's counts since its first lookup, over all processes.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        return statistics(self._counters.read(tenant), self._store.count(tenant))

    def evidence(self, *, tenant: str = "default") -> Evidence:
        """Return a copy of what the tenant's labels said of words, word pairs and hits.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        return self._labels.evidence(tenant)

    def export_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's evidence to a file; return from how many labels it is.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        evidence = self.evidence(tenant=tenant)
        write_evidence(Path(path), evidence)
        return evidence.labels

    def import_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is.

        Import only what you trust: it decides which differences are taken for harmless.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing changed.
        """
        _check_tenant(tenant)
        labels = self._labels
        evidence = read_evidence(Path(path), weights=labels.weights)
        labels.absorb(tenant, evidence)
        return evidence.labels

    def learned(self, *, tenant: str = "default") -> LearnedValues:
        """Return the values that the tenant's plans taught: words, their types, translations.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        return self._views.current(tenant).learned

    def export(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's entries to a file that `import_` reads; return how many.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        entries = self.entries(tenant=tenant)
        write_entries(Path(path), entries)
        return len(entries)

    def import_(self, path: str | Path, *, tenant: str = "default") -> int:
        """Keep the entries of an exported file as the tenant's own; return how many were kept.

        Those that have expired since are left out. Import only what you trust: a plan decides
        which operations are called. Cost: one embedding an entry.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing was kept.
        """
        _check_tenant(tenant)
        now = self._clock.now()
        entries = read_entries(Path(path), tenant=tenant)
        fresh = [e for e in entries if e.expires_s is None or e.expires_s > now]
        return sum(bool(self._put(entry)) for entry in fresh)

    def flush(self) -> None:
        """Write counts that are kept in memory; plans are written when stored."""
        with self.guarded(""):
            self._counters.flush()
            self._labels.flush()
            self._trouble.mended("store", doing="writing")

    def close(self) -> None:
        """Flush and release files; calling it twice is fine.

        A tenant with many changes leaves a snapshot, so that it is opened quickly again.
        """
        if self._verifying is not None:
            self._verifying.close()
        self.flush()
        with self.guarded(""):
            if not self.settings.frozen:
                self._views.save()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Trouble -------------------------------------------------------------------------------

    def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return `text` as it may be written down, for whoever tells of `prompt` elsewhere.

        What is hidden of the prompt and of its `params` is hidden in `text` too.
        """
        if self.redact is None:
            return text
        given = by_name(params) if isinstance(params, Mapping) else ()
        _, _, secrets = hide(prompt, (), plain=(), redact=self.redact, given=given)
        return secrets.clean(text)

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        self._trouble.emit(event)

    def guarded(self, tenant: str) -> AbstractContextManager[None]:
        """Turn store trouble inside into an event and one warning."""
        return self._trouble.guarded(tenant)

    def _count(self, tenant: str, name: str, *, served: str = "") -> None:
        if self._counters.add(tenant, name, served=served):
            self.flush()


def _seconds(cost_s: object) -> float:
    wanted = isinstance(cost_s, int | float) and not isinstance(cost_s, bool)
    if not wanted or not 0 <= cost_s < math.inf:  # type: ignore[operator]  # a number by now
        raise InvalidInput(f"cost_s is {cost_s!r}; expected seconds, 0 or more")
    return float(cost_s)  # type: ignore[arg-type]  # a number by now


def _finished(found: Found, tenant: str, run: str, seconds: float) -> LookupFinished:
    if isinstance(found, Hit):
        return LookupFinished(
            tenant=tenant,
            run=run,
            key=found.key,
            tier=found.tier,
            reason="",
            score=found.score,
            seconds=seconds,
        )
    return LookupFinished(
        tenant=tenant,
        run=run,
        key=found.trace.key,
        tier=None,
        reason=found.reason,
        score=found.nearest.score if found.nearest else None,
        seconds=seconds,
    )


def _check_tenant(tenant: object) -> None:
    if not isinstance(tenant, str) or not tenant or not tenant.isprintable() or len(tenant) > 256:
        raise InvalidInput(f"tenant is {tenant!r}; expected printable text of 1 to 256 characters")
