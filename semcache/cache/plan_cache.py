"""PlanCache: plans made once, found again by template text, by schema and by meaning."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from semcache.binding.volatile import Ignore
from semcache.cache.context import CacheContext
from semcache.cache.entries.writer import Stored
from semcache.cache.feedback.feedback import Feedback, Removal
from semcache.cache.feedback.promotion import Promotion
from semcache.cache.lookup.selection import Option, Selection, audits_allow
from semcache.cache.lookup.tiers import Tiers
from semcache.cache.lookup.verification import VerificationQueue
from semcache.cache.reports import Reporting
from semcache.cache.result import Found, Hit, Miss
from semcache.cache.single_flight import SingleFlight
from semcache.cache.store_plan import PlanIntake
from semcache.cache.tool_sets import Tools
from semcache.cache.transfer import Transfer
from semcache.cache.vector_renewal import VectorRenewal
from semcache.cache.warm_up import Preload, Preparation
from semcache.catalog.catalog import Catalog
from semcache.plans.codec import PlanSource
from semcache.plans.document import ExecutionPlan
from semcache.ports import Clock, Embedder, Observer, PlanOption, Verifier
from semcache.process.forks import Closeable
from semcache.process.imports import ensure_imported
from semcache.prompts.parameter import Parameter
from semcache.prompts.redaction import Redact
from semcache.prompts.schema import PromptSchema
from semcache.settings import Settings, directory_of

TIDIED = 500
"""Stores of this process after which the expired entries of the storing tenant are removed: they
are never served, but take room; reading all of a tenant's takes as long as some hundred stores."""


class PlanCache(Preparation, Feedback, Removal, Transfer, Reporting, Closeable):
    """Plans made once, served again with each prompt's own values. Safe from several threads.

    Needs no catalog, model or engine; given a catalog it also finds plans by schema and checks
    every bound plan against the operations. Trouble with store, index or embedder is a miss, an
    event and one warning; it is never raised to a caller.
    """

    def __init__(self, context: CacheContext, *, verifier: Verifier | None = None) -> None:
        """Put the cache together; `open` makes the parts from settings."""
        self._context = context
        self.settings = context.settings
        self.embedder = context.embedder
        """What turns texts into vectors."""
        self._intake = PlanIntake(context)
        self._promotion = Promotion(context, self._intake)
        self._verification: VerificationQueue | None = None
        if verifier is not None:
            self._verification = VerificationQueue(context, verifier, self._promotion)
        self._tiers = Tiers(context, self._verification)
        self._selection = Selection(context, self._promotion)
        self._preload = Preload(context, self._tiers)
        self._renewal = VectorRenewal(context)
        self._single_flight = SingleFlight(
            context.store,
            context.clock,
            context.health,
            ttl_s=context.settings.flight_ttl_s,
            wait_s=context.settings.flight_wait_s,
            redacted=context.queries.redacted,
        )
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

        `threshold`: cosine in [-1, 1], in the unit of all-MiniLM-L6-v2 (`ports.Embedder`), that a
        semantic candidate must exceed. `max_wrong`: highest share of the hits found by meaning that
        may be wrong, in (0, 1): then risk alone decides, under the threshold too (see
        `matching.model.risk`). None: threshold, gates, and a risk of 1.25 %.
        `ttl_s`: seconds from storing to expiry, None for never; `ttl_slides`: which hits make it
        begin anew, `never`, `exact` (template and schema tiers) or `always`. `max_entries` and
        `max_bytes` bound each tenant, `max_total_entries` and `max_total_bytes` all together; None:
        no bound. What is worth least makes room (see `stores.eviction`), overall in the tenant that
        has most. `frozen`: only serve what is there; not a byte of the directory is written, which
        may be read-only, and `store` answers with a reason.
        `timezone`: where days begin and end for words such as "yesterday".
        `translations`: name of a parameter, or slot type → words of prompts → the value that plans
        have for them: `{"state": {"California": "CA"}}`. Words that it does not have are refused
        where a plan has another value than the words.
        `ignore`: fields of plans that are new each time (a call's id, a thought), as paths such as
        `/tool_calls/*/id` (`*` any one key or position, `**` any number of them) or keys at any
        depth such as `thought`, inside JSON texts too; or a function that takes a path. They are
        taken out before a plan is kept or compared, so that a served plan lacks them; items of
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
                directory or database cannot be used; nothing in it was changed. One that is locked,
                full or away for now is none of these: prompts miss until it answers.
            MissingExtra: `database` is given and `semcache-plans[postgres]` is not installed.
        """
        ensure_imported("semcache.wiring")
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
        return self._context.queries.catalog

    @catalog.setter
    def catalog(self, catalog: Catalog | None) -> None:
        self._context.queries.catalog = catalog

    @property
    def redact(self) -> Redact | None:
        """What hides what must not be written down; None: nothing must."""
        return self._context.queries.redact

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
        request = self._context.queries.request(
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

        What keeps them from being served is that nobody knows which is meant. A plan has this
        prompt's own values and is checked, or misses some that no rule tells from the words: then
        `shown.missing` names them. `take` serves the one that somebody chose. Trouble with the
        store or the embedder: none.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
        """
        request = self._context.queries.request(
            prompt, tenant=tenant, params=params, schema=schema, grounding=grounding, tools=tools
        )
        return self._selection.options(request)

    def filled(
        self, option: Option, values: Mapping[str, object] | None = None
    ) -> ExecutionPlan | None:
        """Return the plan of an option with `values` for all that it misses.

        None: it cannot take them, or was removed.

        Raises:
            InvalidInput, InvalidParameter: `values` are not those that the option misses.
        """
        return self._selection.filled(option, values or {})

    def choices_needed(self, option: Option, values: Mapping[str, object] | None = None) -> int:
        """Return how many choices of a plan, alike, `take` wants of it: 1, 2, or 0 for never.

        Where the words leave much doubt, one choice of somebody who errs once in twenty is not
        enough for `max_wrong`. `values`: for all that the option misses.

        Raises:
            InvalidInput, InvalidParameter: `values` are not those that the option misses.
        """
        return self._selection.choices_needed(option, values or {})

    def take(
        self,
        option: Option,
        values: Mapping[str, object] | None = None,
        *,
        choices: int = 1,
        run: str = "",
        seconds: float = 0.0,
    ) -> Hit | None:
        """Serve a plan that was chosen among `options`: a hit of the tier `selected`.

        None: the plan cannot take the values, was removed, or is too likely wrong although it was
        chosen; once plans stored for such prompts were the chosen ones often enough, most of such
        choices are served. The prompt joins the plan, so that others like it are found by
        their words. `values`: for all that the option misses. `choices`: 1, or 2 where it was
        chosen twice with the same values. `seconds`: how long choosing took.

        Raises:
            InvalidInput, InvalidParameter: `values` are not those that the option misses.
            InvalidInput: `choices` is another number.
        """
        return self._selection.take(option, values or {}, choices=choices, run=run, seconds=seconds)

    def example(self, missed: Miss) -> PlanOption | None:
        """Return the plan nearest to a prompt that missed, as it was made for its own prompt.

        It is none for this prompt: a planner may look at it. None where nothing is near.
        """
        return self._selection.example(missed)

    def selects(self, *, tenant: str = "default") -> bool:
        """Return whether plans may be chosen for the tenant: audits do not speak against it.

        More wrong audits of chosen plans than `max_wrong` (without one: 5 %) lets expect end it.
        """
        with self.guarded(tenant):
            counts = self._context.counters.read(tenant)
            told = counts["selected:right"], counts["selected:wrong"]
            return audits_allow(*told, self.settings.max_wrong)
        return False

    def verified(self) -> None:
        """Return once the verifier has seen every candidate that waits for it."""
        if self._verification is not None:
            self._verification.wait()

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
        if self._context.corrections.pending:
            self._context.corrections.retry()  # first, or what waits would be about this plan
        request = self._context.queries.request(
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
            self.remove_expired(tenant=tenant)
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

    def flush(self) -> None:
        """Write counts that are kept in memory; plans are written when stored.

        A tenant with many changes leaves a snapshot too, so that it is opened quickly whatever
        becomes of this process: services that never close their cache call this now and then.
        """
        self._context.flush()

    def close(self) -> None:
        """Flush and release files; calling it twice is fine."""
        self._preload.close()
        self._renewal.close()
        if self._verification is not None:
            self._verification.close()
        self.flush()
        self._context.corrections.close()
        self._context.store.close()
