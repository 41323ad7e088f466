"""Storing a plan: it becomes an entry of its tenant, labels its neighbors, and is written."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from semcache.binding.extraction import extract
from semcache.binding.volatile import NOTHING, Ignore, Volatile
from semcache.cache.context import CacheContext
from semcache.cache.entries.admission import admit, at, held, valid_plan, varying
from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.entries.redaction import redacted
from semcache.cache.entries.relative_dates import with_relative_mentions
from semcache.cache.entries.writer import Stored
from semcache.cache.query import PromptRequest, Query, check_tags, check_word
from semcache.cache.view.view import View
from semcache.canonical import JsonObject
from semcache.errors import InvalidInput, StoreError
from semcache.matching.plan_groups import group_name
from semcache.plans.codec import PlanSource, decode
from semcache.plans.document import ExecutionPlan
from semcache.prompts.parameter import Parameter

FROZEN = "the cache is frozen: it serves and keeps nothing"
"""Why nothing is kept where `settings.frozen` is set."""


class _Made(NamedTuple):
    entry: Entry
    query: Query
    view: View | None


class PlanIntake:
    """Keeps plans. Safe from several threads; trouble with the store is said in the answer."""

    def __init__(self, context: CacheContext) -> None:
        self._context = context

    def keep(
        self,
        request: PromptRequest,
        plan: PlanSource,
        *,
        complete: bool = True,
        tags: Sequence[str] = (),
        planner: str = "",
        cost_s: float | None = None,
        ignore: Ignore = (),
    ) -> Stored:
        """Keep a plan; see `PlanCache.store`.

        `complete`: whether the request has all values that the plan depends on; else they are taken
        from the plan.
        """
        made = self._made(
            request,
            plan,
            complete=complete,
            tags=tags,
            planner=planner,
            cost_s=1.0 if cost_s is None else _seconds(cost_s),
            ignore=ignore,
        )
        if self._context.settings.frozen:
            return Stored("", reason=FROZEN)
        self._label(made)
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
        queries = self._context.queries
        request = queries.request(
            prompt,
            tenant=source.tenant,
            params=params,
            grounding=source.grounding,
            tools=queries.tools_with(source.catalog),
        )
        made = self._made(request, plan, tags=source.tags, planner=planner, cost_s=source.cost_s)
        entry, view = made.entry, made.view
        if self._context.settings.frozen:
            return Stored("", reason=FROZEN)
        if view is None or view.same_template(entry.template):
            return Stored("", reason="its template has a plan of its own")
        alike = group_name(entry.plan, given=True) == group_name(source.plan, given=True)
        if entry.catalog != source.catalog or not alike:
            return Stored("", reason="with these values it is not the plan that it was")
        ends = [end for end in (entry.expires_s, source.expires_s) if end is not None]
        return self._written(made._replace(entry=replace(entry, expires_s=min(ends, default=None))))

    def _made(
        self,
        request: PromptRequest,
        plan: PlanSource,
        *,
        complete: bool = True,
        tags: Sequence[str],
        planner: str,
        cost_s: float,
        ignore: Ignore = (),
    ) -> "_Made":
        check_tags(tags)
        check_word("planner", planner)
        queries, catalog = self._context.queries, request.tools.catalog
        decoded = valid_plan(self._lasting(plan, ignore), catalog)
        if not complete:
            request = request._replace(given=extract(decoded.to_dict(), request.text))
        view = self._view(request.tenant)
        query = queries.read(request, view)
        dated = with_relative_mentions(request.given, query.mentions, query.day())
        if dated != request.given:
            request = request._replace(given=dated)
            query = queries.read(request, view)
        if request.schema is None:
            query = query._replace(schema=queries.schema(query))
        entry = admit(
            query,
            decoded,
            request.given,
            plain=queries.plain(query),
            catalog=catalog,
            schema=query.schema,
            now=self._context.clock.now(),
            ttl_s=self._context.settings.ttl_s,
            tags=tags,
            planner=planner,
            cost_s=cost_s,
        )
        return _Made(redacted(entry, query), query, view)

    def _lasting(self, plan: PlanSource, ignore: Ignore) -> PlanSource:
        """Return `plan` without its volatile fields."""
        for volatile in (self._context.volatile, Volatile.of(ignore)):
            if volatile is not NOTHING:
                plan = cast("JsonObject", volatile.without(decode(plan).to_dict()))
        return plan

    def _written(self, made: "_Made") -> Stored:
        if made.entry.plan.refusal:
            return Stored("", reason=made.entry.plan.refusal)
        return self.put(self._told_apart(made.entry, made.view))

    def put(self, entry: Entry) -> Stored:
        """Write an entry as it is, and count it."""
        stored = self._context.writer.put(entry)
        if stored:
            self._context.reports.count(entry.tenant, "stored")
        return stored

    def _view(self, tenant: str) -> View | None:
        try:
            return self._context.views.current(tenant)
        except StoreError as error:
            self._context.health.failed(tenant, "store", error)
            return None

    def _label(self, made: _Made) -> None:
        """Let the plan of a prompt that missed say which of its neighbors had the same."""
        entry, view = made.entry, made.view
        with self._context.health.guarded(entry.tenant):
            self._context.labels.planned(
                entry.tenant,
                entry.prompt,
                {group_name(entry.plan, given=given) for given in (False, True)},
                made.query.mentions,
                plan=entry.plan.plan,
                contested=view is not None and view.rivals(entry),
            )

    def _told_apart(self, entry: Entry, view: View | None) -> Entry:
        """Hold a plan to its values where they are seen to change what nobody said."""
        if view is None:
            return entry
        old = next((e for e in self._standing(entry, view) if e.id == entry.id), None)
        names = frozenset() if old is None else varying(old, entry)
        if old is not None and names:
            with self._context.health.guarded(entry.tenant):
                self.put(held(old, names))
                self._context.store.remove(entry.tenant, [old.id])
        elif old is None and view.rivals(entry):
            names = at(
                entry, {i for fixed in view.fixed.get(entry.template.text, ()) for i in fixed}
            )
        return held(entry, names) if names else entry

    def _standing(self, entry: Entry, view: View) -> Iterator[Entry]:
        """Yield the entries with the template of `entry` that serve all values."""
        with self._context.health.guarded(entry.tenant):
            for known in view.same_template(entry.template):
                record = self._context.store.get(entry.tenant, known)
                if record is not None:
                    yield from_record(record)


def _seconds(cost_s: object) -> float:
    if isinstance(cost_s, int | float) and not isinstance(cost_s, bool) and 0 <= cost_s < math.inf:
        return float(cost_s)
    raise InvalidInput(f"cost_s is {cost_s!r}; expected seconds, 0 or more")
