"""Storing a plan: it becomes an entry of its tenant, labels its neighbors, and is written."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from semcache.binding.extraction import extract
from semcache.binding.volatile import NOTHING, Ignore, Volatile
from semcache.cache.checks import check_schema, check_tags, check_word
from semcache.cache.entries.admission import admit, at, held, readable, varying
from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.entries.redaction import redacted
from semcache.cache.entries.relative_dates import told_dates
from semcache.cache.entries.writer import EntryWriter, Stored
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.query import Query
from semcache.cache.shared import CacheContext
from semcache.cache.tool_sets import Tools, ToolSet
from semcache.cache.view.view import View
from semcache.canonical import JsonObject
from semcache.errors import InvalidInput, StoreError
from semcache.matching.plan_groups import family
from semcache.plans.codec import PlanSource, decode
from semcache.plans.plan import ExecutionPlan
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema.schema import PromptSchema

FROZEN = "the cache is frozen: it serves and keeps nothing"
"""Why nothing is kept where `settings.frozen` is set."""


class _Made(NamedTuple):
    entry: Entry
    asked: Query
    view: View | None


class PlanIntake:
    """Keeps plans. Safe from several threads; trouble with the store is said in the answer."""

    def __init__(self, shared: CacheContext, labels: TrainingLabels, writer: EntryWriter) -> None:
        self.labels = labels
        """What plans say of their neighbors."""
        self._shared = shared
        self._writer = writer

    def keep(
        self,
        prompt: str,
        plan: PlanSource,
        *,
        tenant: str,
        params: Mapping[str, object] | Sequence[Parameter] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
        ignore: Ignore = (),
        tools: Tools | None = None,
        label: bool = True,
    ) -> Stored:
        """Keep a plan; see `PlanCache.store`. `label`: whether it says what its neighbors are."""
        made = self._made(
            prompt, plan, tenant, params, grounding, schema=schema, tags=tags, planner=planner,
            cost_s=1.0 if cost_s is None else _seconds(cost_s), ignore=ignore,
            tools=self._shared.asking.tools(tools),
        )  # fmt: skip
        if self._shared.settings.frozen:
            return Stored("", reason=FROZEN)
        if label:
            self._label(made.entry, made.asked)
        return self._written(made)

    def join(
        self,
        prompt: str,
        plan: ExecutionPlan,
        *,
        source: Entry,
        params: Sequence[Parameter],
        planner: str,
    ) -> Stored:
        """Keep a prompt that is known to have the plan of `source`, bound to its own values.

        What is kept has the tags of `source` and lives no longer. Nothing is kept where a plan for
        the same template is there, or where the plan would not be the same but for values. What it
        labels, who confirmed it has said already.
        """
        made = self._made(
            prompt, plan, source.tenant, params, source.grounding, tags=source.tags,
            planner=planner, cost_s=source.cost_s,
            tools=self._shared.asking.tools_with(source.catalog),
        )  # fmt: skip
        entry, view = made.entry, made.view
        if self._shared.settings.frozen:
            return Stored("", reason=FROZEN)
        if view is None or view.same_template(entry.template):
            return Stored("", reason="its template has a plan of its own")
        alike = family(entry.plan, given=True) == family(source.plan, given=True)
        if entry.catalog != source.catalog or not alike:
            return Stored("", reason="with these values it is not the plan that it was")
        ends = [end for end in (entry.expires_s, source.expires_s) if end is not None]
        return self._written(made._replace(entry=replace(entry, expires_s=min(ends, default=None))))

    def _made(
        self,
        prompt: str,
        plan: PlanSource,
        tenant: str,
        params: Mapping[str, object] | Sequence[Parameter] | None,
        grounding: str,
        *,
        tags: Sequence[str],
        planner: str,
        cost_s: float,
        tools: ToolSet,
        ignore: Ignore = (),
        schema: PromptSchema | None = None,
    ) -> "_Made":
        text, given = self._shared.asking.checked(prompt, tenant, params)
        check_tags(tags)
        check_schema(schema)
        check_word("grounding", grounding)
        check_word("planner", planner)
        decoded = readable(self._lasting(plan, ignore), tools.catalog)
        if params is None:
            given = extract(decoded.to_dict(), text)
        view = self._view(tenant)
        asked = self._shared.asking.read(
            text, tenant, given, grounding=grounding, view=view, schema=schema, tools=tools
        )
        dated = told_dates(given, asked.mentions, asked.day())
        if dated != given:
            given = dated
            asked = self._shared.asking.read(
                text, tenant, given, grounding=grounding, view=view, schema=schema, tools=tools
            )
        if schema is None:
            asked = replace(asked, schema=self._shared.asking.schema(asked))
        entry = admit(
            asked,
            decoded,
            given,
            plain=self._shared.asking.plain(asked),
            catalog=tools.catalog,
            schema=asked.schema,
            now=self._shared.clock.now(),
            ttl_s=self._shared.settings.ttl_s,
            tags=tags,
            planner=planner,
            cost_s=cost_s,
        )
        return _Made(redacted(entry, asked), asked, view)

    def _lasting(self, plan: PlanSource, ignore: Ignore) -> PlanSource:
        """Return `plan` without its volatile fields."""
        for volatile in (self._shared.volatile, Volatile.of(ignore)):
            if volatile is not NOTHING:
                plan = cast("JsonObject", volatile.without(decode(plan).to_dict()))
        return plan

    def _written(self, made: "_Made") -> Stored:
        if made.entry.plan.refusal:
            return Stored("", reason=made.entry.plan.refusal)
        return self.put(self._told_apart(made.entry, made.view))

    def put(self, entry: Entry) -> Stored:
        """Write an entry as it is, and count it."""
        stored = self._writer.put(entry)
        if stored:
            self._shared.reports.count(entry.tenant, "stored")
        return stored

    def _view(self, tenant: str) -> View | None:
        try:
            return self._shared.views.current(tenant)
        except StoreError as error:
            self._shared.trouble.failed(tenant, "store", error)
            return None

    def _label(self, entry: Entry, asked: Query) -> None:
        """Let the plan of a prompt that missed say which of its neighbors had the same."""
        with self._shared.trouble.guarded(entry.tenant):
            families = {family(entry.plan, given=given) for given in (False, True)}
            self.labels.planned(entry.tenant, entry.prompt, families, asked.mentions)

    def _told_apart(self, entry: Entry, view: View | None) -> Entry:
        """Hold a plan to its values where they are seen to change what nobody said."""
        if view is None:
            return entry
        old = next((e for e in self._standing(entry, view) if e.id == entry.id), None)
        names = frozenset() if old is None else varying(old, entry)
        if old is not None and names:
            with self._shared.trouble.guarded(entry.tenant):
                self.put(held(old, names))
                self._shared.store.remove(entry.tenant, [old.id])
        elif old is None and view.rivals(entry):
            names = at(entry, {i for fixed in view.varying(entry) for i in fixed})
        return held(entry, names) if names else entry

    def _standing(self, entry: Entry, view: View) -> Iterator[Entry]:
        """Yield the entries with the template of `entry` that serve all values."""
        with self._shared.trouble.guarded(entry.tenant):
            for known in view.same_template(entry.template):
                record = self._shared.store.get(entry.tenant, known)
                if record is not None:
                    yield from_record(record)


def _seconds(cost_s: object) -> float:
    if isinstance(cost_s, int | float) and not isinstance(cost_s, bool) and 0 <= cost_s < math.inf:
        return float(cost_s)
    raise InvalidInput(f"cost_s is {cost_s!r}; expected seconds, 0 or more")
