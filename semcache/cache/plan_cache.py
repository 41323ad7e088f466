"""PlanCache: plans made once, found again by template text, by schema and by meaning."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from semcache.binding.volatile import Ignore, Volatile
from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import Entry
from semcache.cache.entries.writer import EntryWriter, Stored
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.feedback.corrections import Corrections, Judgment, Removed, Vetoes
from semcache.cache.feedback.feedback import Feedback, Removal
from semcache.cache.feedback.promotion import Promotion
from semcache.cache.lookup.lookup import Tiers
from semcache.cache.lookup.selection import Option, Selection, audits_allow
from semcache.cache.lookup.verification import VerificationQueue
from semcache.cache.query import QueryReader, check_tenant, path_of
from semcache.cache.reports import Counters, HealthReporter, Reports, Statistics, statistics
from semcache.cache.result import Found, Hit, Miss
from semcache.cache.single_flight import SingleFlight
from semcache.cache.store_plan import PlanIntake
from semcache.cache.tool_sets import Tools
from semcache.cache.transfer import Transfer
from semcache.cache.vector_renewal import VectorRenewal
from semcache.cache.view.summaries import DecodedEntries
from semcache.cache.view.views import NOTE, Views
from semcache.cache.warm_up import Preload, WarmUp
from semcache.canonical import Json
from semcache.catalog.catalog import Catalog
from semcache.contexts import Closeable
from semcache.events import Event
from semcache.matching.evidence import Evidence
from semcache.matching.gates import risk_gates
from semcache.matching.model.risk import USUAL_WRONG, shipped
from semcache.plans.codec import PlanSource
from semcache.ports import (
    Bounds,
    Clock,
    Embedder,
    Journal,
    Normalizer,
    Observer,
    PlanOption,
    PlanStore,
    Snapshots,
    VectorIndex,
    Verifier,
)
from semcache.prompts.parameter import Parameter
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.redaction import Redact
from semcache.prompts.schema.schema import PromptSchema
from semcache.settings import Settings, directory_of

TIDIED = 500
"""Stores of this process after which the expired entries of the storing tenant are removed: they
are never served, but take room; reading all of a tenant's takes as long as some hundred stores."""


class PlanCache(Closeable):
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
        settings: Settings,
        catalog: Catalog | None = None,
        normalizer: Normalizer | None = None,
        snapshots: Snapshots | None = None,
        redact: Redact | None = None,
        ignore: Ignore = (),
        snapshot_note: str = NOTE,
        verifier: Verifier | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.settings = settings
        self.embedder = embedder
        """What turns texts into vectors."""
        self._store = store
        self._counters = Counters(store, clock)
        self._health = HealthReporter(observer)
        decoded = DecodedEntries()
        self._views = Views(
            store,
            make_index=make_index,
            embedder=embedder.fingerprint,
            snapshots=snapshots,
            note=snapshot_note,
            keep=not settings.frozen,
            decoded=decoded,
        )
        bound = USUAL_WRONG if settings.max_wrong is None else settings.max_wrong
        self._labels = TrainingLabels(
            store,
            shipped(),
            max_wrong=bound,
            gates=risk_gates(),
            embedder=embedder.fingerprint,
            adapts=not settings.frozen,
        )
        vetoes = Vetoes(store, frozen=settings.frozen)
        memories = (self._counters, vetoes, self._labels, self._views, decoded)
        self._queries = QueryReader(
            clock=clock,
            settings=settings,
            catalog=catalog,
            normalizer=normalizer,
            redact=redact,
        )
        self._corrections = Corrections(
            store,
            vetoes,
            self._health,
            journal=journal,
            forget=[memory.forget for memory in memories],
            forget_texts=[part.forget_texts for part in (self._views, self._queries, self._labels)],
            frozen=settings.frozen,
        )
        self._context = CacheContext(
            store=store,
            embedder=embedder,
            clock=clock,
            settings=settings,
            views=self._views,
            entries=decoded,
            queries=self._queries,
            labels=self._labels,
            corrections=self._corrections,
            writer=EntryWriter(store, embedder, self._health, bounds=_bounds(settings)),
            reports=Reports(self._counters, self._health, flush=self.flush),
            health=self._health,
            volatile=Volatile.of(ignore),
        )
        self._intake = PlanIntake(self._context)
        promotion = Promotion(self._context, self._intake)
        self._verification = (
            None if verifier is None else VerificationQueue(self._context, verifier, promotion)
        )
        self._tiers = Tiers(self._context, self._verification)
        self._preload = Preload(self._context, self._tiers)
        self._renewal = VectorRenewal(self._context)
        self._single_flight = SingleFlight(
            store,
            clock,
            self._health,
            ttl_s=settings.flight_ttl_s,
            wait_s=settings.flight_wait_s,
            redacted=self._queries.redacted,
        )
        self._feedback = Feedback(self._context, promotion)
        self._selection = Selection(self._context, promotion)
        self._removal = Removal(self._context)
        self._transfer = Transfer(self._context, self._intake)
        self._stores = itertools.count(1)

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
        ttl_slides: Literal["never", "exact", "always"] = "never",
        max_entries: int | None = 10_000,
        max_bytes: int | None = None,
        max_total_entries: int | None = None,
        max_total_bytes: int | None = None,
        frozen: bool = False,
        timezone: str = "UTC",
        translations: Mapping[str, Mapping[str, str | int | float | bool]] | None = None,
        ignore: Ignore = (),
        redact: Redact | None = None,
        verifier: Verifier | None = None,
        verify: Literal["background", "inline"] = "background",
        encryption_key: str = "",
        database: str | None = None,
        database_search: Literal["replica", "server"] = "replica",
        warm_up: Literal["never", "background", "before"] = "never",
    ) -> "PlanCache":
        """Return a cache kept in `directory`, in `database`, or in memory (None).

        `threshold`: cosine in [-1, 1] that a semantic candidate must exceed. `max_wrong`: highest
        share of the hits found by meaning that may be wrong, in (0, 1): then risk alone decides,
        under the threshold too (see `matching.risk`). None: threshold, gates, and a risk of 1.25 %.
        `ttl_s`: seconds from storing to expiry, None for never; `ttl_slides`: which hits make it
        begin anew, `never`, `exact` (template and schema tiers) or `always`. `max_entries` and
        `max_bytes` bound each tenant, `max_total_entries` and `max_total_bytes` all together; None:
        no bound. What is worth least makes room (see `stores.worth`), overall in the tenant that
        has most. `frozen`: only serve what is there; not a byte of the directory is written, which
        may be read-only, and `store` answers with a reason.
        `timezone`: where days begin and end for words such as "yesterday".
        `translations`: name of a parameter, or slot type → words of prompts → the value that plans
        have for them: `{"state": {"California": "CA"}}`. Words that it does not have are refused
        where a plan has another value than the words.
        `ignore`: fields of plans that are new each time (a call's random id, a thought), as paths
        such as `/tool_calls/*/id` (`*` any one key or position, `**` any number of them) or keys at
        any depth such as `thought`, inside JSON texts too; or a function that takes a path. They
        are taken out before a plan is kept or compared, so that a served plan lacks them; items of
        lists are null there. Give them anew where they are needed.
        `verifier`: asked about candidates that likeness alone keeps from being served; what it
        confirms hits from then on, and with `verify="inline"` at once.
        `redact`: returns a text without what must not be embedded, stored, logged or traced; what
        it raises reaches the caller. Prompts keep their own values, and plans take them.
        `encryption_key`: 32 bytes as base64 that everything in `directory` is encrypted with.
        `database`: connection string of a PostgreSQL that many machines may share (extra
        `postgres`); `directory` then keeps this machine's snapshots. `database_search`: whether
        this process searches by meaning in a copy of its own, or asks the server. `warm_up`: when
        the embedder and all tenants are loaded: `before` this returns, in the `background` from now
        on, or `never`: each by the first lookup or store that needs it.

        Raises:
            InvalidSettings: a value is out of range.
            ForeignDirectory, ForeignDatabase, NewerFormat, StoreUnavailable, StoreCorrupt: the
                directory or database cannot be used; nothing in it was changed.
            MissingExtra: `database` is given and `semcache-plans[postgres]` is not installed.
        """
        from semcache.wiring import open_plan_cache  # noqa: PLC0415 - wiring stands right of us

        settings = Settings(
            directory=directory_of(directory),
            threshold=threshold,
            max_wrong=max_wrong,
            ttl_s=ttl_s,
            ttl_slides=ttl_slides,
            max_entries=max_entries,
            max_bytes=max_bytes,
            max_total_entries=max_total_entries,
            max_total_bytes=max_total_bytes,
            frozen=frozen,
            timezone=timezone,
            translations=translations or {},
            verify=verify,
            encryption_key=encryption_key,
            database=database or "",
            database_search=database_search,
            warm_up=warm_up,
        )
        return open_plan_cache(
            settings,
            catalog=catalog,
            embedder=embedder,
            clock=clock,
            observer=observer,
            redact=redact,
            verifier=verifier,
            ignore=ignore,
        )

    @property
    def catalog(self) -> Catalog | None:
        """What plans may call; None if nobody said."""
        return self._queries.catalog

    @catalog.setter
    def catalog(self, catalog: Catalog | None) -> None:
        self._queries.catalog = catalog

    @property
    def redact(self) -> Redact | None:
        """What hides what must not be written down; None: nothing must."""
        return self._queries.redact

    def warm_up(self, *, tenants: Collection[str] | None = None) -> WarmUp:
        """Load what the first lookups and stores would load; return what was loaded.

        That is the embedder, on an empty cache too, and plans, index and evidence of `tenants`
        (None: of all that have plans). Nothing is counted. Trouble is an event and one warning, as
        ever, and told in `failures`.

        Raises:
            InvalidInput: one of `tenants` can name none.
        """
        return self._preload.run(tenants)

    def begin_warm_up(self, *, tenants: Collection[str] | None = None) -> None:
        """Do as `warm_up` on a thread of its own; return at once.

        Lookups meanwhile wait for what they need themselves, if at all. `close` ends it.
        """
        self._preload.start(tenants)

    def embed_anew(self, *, tenants: Collection[str] | None = None) -> int:
        """Embed the entries that another embedder embedded, or none; return how many.

        Of `tenants`, or of all (None). Lookups go on meanwhile, in other processes too: an entry is
        found by exact keys only where its vector is not of the embedder that looks. Of processes
        that share the cache one does it at a time; if it ends early, one that opens the cache with
        this embedder goes on by itself.

        Raises:
            InvalidInput: one of `tenants` can name none.
            EmbeddingError, StoreUnavailable: it cannot go on; what is done stays.
        """
        return self._renewal.run(tenants)

    def resume_embedding(self) -> None:
        """Go on, on a thread of its own, with what `embed_anew` of another process began.

        Only if that had this embedder; else nothing is done. `close` ends it.
        """
        self._renewal.start()

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
        what_if: bool = False,
        tools: Tools | None = None,
    ) -> Found:
        """Return a hit with this prompt's own values, or a miss that says why.

        `params`: values that the caller holds already, by name; then the plan must depend on
        exactly these. `schema`: what a normalizer said, if one was asked. `grounding`: which
        grounding is in force. `threshold`: a stricter threshold for this prompt. `what_if`: only
        see what would be found; it is neither counted nor told, no entry lives longer for it, and
        no verifier is asked. `tools`: what the plan of this call may call, in place of the catalog
        of the cache: tool definitions as OpenAI, Anthropic and MCP write them, or a Catalog. Only
        plans stored with the same tools are served, in whatever order these stand.

        Raises:
            InvalidPrompt, InvalidParameter, InvalidInput, InvalidOperation: the prompt, the values,
                or what else is handed in cannot be used.
            InvalidSettings: `threshold` is under the configured one.
        """
        request = self._queries.request(
            prompt, tenant=tenant, params=params, schema=schema, grounding=grounding, tools=tools
        )
        return self._tiers.lookup(request, threshold=threshold, run=run, what_if=what_if)

    def options(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        tools: Tools | None = None,
    ) -> tuple[Option, ...]:
        """Return up to five distinct plans near to a prompt that missed, nearest first.

        Each has this prompt's own values and is checked; what keeps them from being served is that
        nobody knows which is meant. `take` serves the one that somebody chose. Trouble with the
        store or the embedder: none.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
        """
        request = self._queries.request(
            prompt, tenant=tenant, params=params, schema=schema, grounding=grounding, tools=tools
        )
        return self._selection.options(request)

    def take(self, option: Option, *, run: str = "", seconds: float = 0.0) -> Hit:
        """Serve a plan that was chosen among `options`: a hit of the tier `selected`.

        The prompt joins the plan, so that others like it are found by their words. `seconds`: how
        long choosing took.
        """
        return self._selection.take(option, run=run, seconds=seconds)

    def example(self, missed: Miss) -> PlanOption | None:
        """Return the plan nearest to a prompt that missed, as it was made for its own prompt.

        It is none for this prompt: a planner may look at it. None where nothing is near.
        """
        return self._selection.example(missed)

    def selects(self, *, tenant: str = "default") -> bool:
        """Return whether plans may be chosen for the tenant: audits do not speak against it.

        More wrong ones among the chosen plans that were made anew than `max_wrong` (without one: 5
        %) lets expect end it, by an exact binomial test at 5 %.
        """
        with self.guarded(tenant):
            counts = self._counters.read(tenant)
            right, wrong = counts["selected:right"], counts["selected:wrong"]
            return audits_allow(right, wrong, self.settings.max_wrong)
        return False

    def count(self, what: str, *, tenant: str = "default", by: int = 1) -> None:
        """Add to a count of the tenant that `stats` returns in `spent`: `plan:prompt_tokens`."""
        self._context.reports.count(tenant, f"spent:{what}", by=by)

    def verified(self) -> None:
        """Return once the verifier has seen every candidate that waits for it."""
        if self._verification is not None:
            self._verification.wait()

    def without_ignored(self, plan: Json) -> Json:
        """Return `plan` without the fields that `ignore` of `open` names, as it would be kept."""
        return self._context.volatile.without(plan)

    # Store ---------------------------------------------------------------------------------

    def store(
        self,
        prompt: str,
        plan: PlanSource,
        *,
        params: Mapping[str, object] | Sequence[Parameter] | None = None,
        tenant: str = "default",
        schema: PromptSchema | None = None,
        grounding: str = "",
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
        ignore: Ignore = (),
        tools: Tools | None = None,
    ) -> Stored:
        """Keep `plan`, made for `prompt`, with its values generalized; return what was done.

        `plan`: JSON of any form (an object, a list of calls or messages, its text, models of the
        OpenAI, Anthropic and LangChain SDKs) or a plan of any format. `params`: the values it
        depends on; None takes them from the plan, where the prompt says them word for word: names,
        codes, numbers, whatever is quoted. `Stored` tells what was bound and what was not. A plan
        for the same template, fixed values and fingerprints replaces the one before; but where
        another value changed what nobody said, each plan serves its own value alone. `cost_s`:
        seconds that it took to make; what took long is kept longest. None: nobody knows. `ignore`:
        fields of this plan that are volatile beside those of `open`. `tools`: what it may call; see
        `lookup`.

        Raises:
            InvalidPrompt, InvalidParameter, InvalidPlan, InvalidOperation, NotActionable,
                BindingError: what is handed in cannot be stored; nothing was changed.
        """
        if self._corrections.pending:
            self._corrections.retry()  # first, or what waits would take this plan for the one meant
        request = self._queries.request(
            prompt, tenant=tenant, params=params, schema=schema, grounding=grounding, tools=tools
        )
        stored = self._intake.keep(
            request,
            plan,
            complete=params is not None,
            tags=tags,
            planner=planner,
            cost_s=cost_s,
            ignore=ignore,
        )
        if next(self._stores) % TIDIED == 0:
            self._removal.expired(tenant)
        return stored

    def planning(self, found: Found) -> AbstractContextManager[bool]:
        """Hold the making of a plan for what was looked up; give whether to look it up again.

        Of all that want a plan for the same template of the same tenant, over the threads of all
        processes on this store, one is inside at a time. Who had to wait, or comes after another
        change, looks up again before it plans: the plan may be there now, for its own values too.
        A holder that died is taken over after `settings.flight_ttl_s`; nobody waits longer than
        `settings.flight_wait_s`, then it plans as well.

        Raises:
            Exception: what the holder raised, in all threads that waited for it.
            PlanningError: the holder raised in another process.
        """
        return self._single_flight.once(found)

    # Feedback and removal ------------------------------------------------------------------

    def feedback(self, found: Found, *, right: bool) -> Judgment:
        """Take a caller's word that a hit was right or wrong; return what became of it.

        The prompt of a right semantic hit joins the plan, so that others like it are found by their
        words; that costs one embedding. A wrong semantic hit is never served to that template
        again. A wrong hit of any other tier, or of the entry's own template, says that the plan
        itself is wrong: its entry is removed. If the store cannot take it now, it holds for this
        process all the same, is kept beside the store, and is done when the store answers.

        Raises:
            InvalidInput: `found` is a miss; there is nothing to judge.
        """
        return self._feedback.feedback(found, right=right)

    def audit(self, hit: Hit, plan: PlanSource) -> bool:
        """Take in the plan that was made for a prompt although it hit; return whether it agrees.

        Such labels are of hits as they come, and so keep the bound honest. Whether a plan that
        differs is better, nobody says: nothing is removed.

        Raises:
            InvalidInput: it is no hit.
            InvalidPlan: `plan` is none; nothing is counted.

        Raises:
            InvalidInput: `hit` is none.
        """
        return self._feedback.audit(hit, plan)

    def judged(self, hit: Hit, *, right: bool) -> None:
        """Let the risk model know how a hit turned out; nothing is vetoed or removed.

        Raises:
            InvalidInput: `hit` is none, or `right` is neither True nor False.
        """
        self._feedback.judged(hit, right=right)

    def invalidate(
        self,
        *,
        tenant: str = "default",
        id: str | None = None,  # noqa: A002 - the word of the entry
        tag: str | None = None,
        operation: str | None = None,
        key: str | None = None,
    ) -> Removed:
        """Remove the tenant's entries with that id, tag, operation or key; return how many.

        `key` is a Prompt Schema Key. Several of them remove what any of them names. If the store
        cannot take it now, `pending` of the number says so: the entries are not served by this
        process from now on, and go when the store answers, in a later process if need be.

        Raises:
            InvalidInput: nothing is named; `clear` removes all.
        """
        return self._removal.named(tenant, entry=id, tag=tag, operation=operation, key=key)

    def remove_expired(self, *, tenant: str = "default") -> int:
        """Remove the tenant's expired entries, which are never served anyway; return how many."""
        return self._removal.expired(tenant)

    def clear(self, *, tenant: str | None = None) -> Removed:
        """Remove everything of the tenant, or of every tenant (None); return how many entries.

        If the store cannot do it now, `pending` of the number says so; see `invalidate`.
        """
        return self._removal.everything(tenant)

    # Looking around ------------------------------------------------------------------------

    def entries(self, *, tenant: str = "default") -> tuple[Entry, ...]:
        """Return the tenant's readable entries, oldest first.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        return self._transfer.entries(tenant)

    def tenants(self) -> tuple[str, ...]:
        """Return the tenants that have entries, sorted."""
        return tuple(self._store.tenants())

    def stats(self, *, tenant: str = "default") -> Statistics:
        """Return the tenant's counts since its first lookup, over all processes.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        return statistics(
            self._counters.read(tenant),
            self._store.count(tenant),
            self._labels.certificate(tenant),
        )

    def evidence(self, *, tenant: str = "default") -> Evidence:
        """Return a copy of what the tenant's labels said of words, word pairs and hits.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        return self._labels.evidence(tenant)

    def export_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's evidence to a file; return from how many labels it is.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        return self._transfer.export_evidence(path_of(path), tenant)

    def import_evidence(self, path: str | Path, *, tenant: str = "default") -> int:
        """Add the evidence of a file to the tenant's own; return from how many labels it is.

        Import only what you trust: it decides which differences are taken for harmless.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing changed.
        """
        return self._transfer.import_evidence(path_of(path), tenant)

    def learned(self, *, tenant: str = "default") -> LearnedValues:
        """Return the values that the tenant's plans taught: words, their types, translations.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        check_tenant(tenant)
        return self._views.current(tenant).learned

    def export(self, path: str | Path, *, tenant: str = "default") -> int:
        """Write the tenant's entries to a file that `import_` reads; return how many.

        Raises:
            StoreUnavailable: the store cannot be read or the file cannot be written.
        """
        return self._transfer.export(path_of(path), tenant)

    def import_(self, path: str | Path, *, tenant: str = "default") -> int:
        """Keep the entries of an exported file as the tenant's own; return how many were kept.

        Those that have expired since are left out. Import only what you trust: a plan decides
        which operations are called. Cost: one embedding an entry.

        Raises:
            StoreUnavailable, StoreCorrupt, NewerFormat: the file cannot be used; nothing was kept.
        """
        return self._transfer.import_(path_of(path), tenant)

    def flush(self) -> None:
        """Write counts that are kept in memory; plans are written when stored.

        A tenant with many changes leaves a snapshot too, so that it is opened quickly even if this
        process is killed: a service that never closes its cache may call this now and then.
        """
        if self._corrections.pending:
            self._corrections.retry()
        with self.guarded(""):
            self._counters.flush()
            self._labels.flush()
            self._health.mended("store", doing="writing")
        with self.guarded(""):
            if not self.settings.frozen:
                self._views.save()

    def close(self) -> None:
        """Flush and release files; calling it twice is fine."""
        self._preload.close()
        self._renewal.close()
        if self._verification is not None:
            self._verification.close()
        self.flush()
        self._corrections.close()
        self._store.close()

    # Trouble -------------------------------------------------------------------------------

    def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return `text` as it may be written down, for whoever tells of `prompt` elsewhere.

        What is hidden of the prompt and of its `params` is hidden in `text` too.
        """
        return self._queries.redacted(text, prompt=prompt, params=params)

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        self._health.emit(event)

    def guarded(self, tenant: str) -> AbstractContextManager[None]:
        """Turn store trouble inside into an event and one warning."""
        return self._health.guarded(tenant)


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        tenant_entries=settings.max_entries,
        tenant_bytes=settings.max_bytes,
        entries=settings.max_total_entries,
        bytes=settings.max_total_bytes,
    )
