"""What the doors serve: plans looked up, stored, judged and removed, prompts answered, runs."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from typing import Any

from semcache.binding.template import PlanTemplate
from semcache.cache.entries.entry import Entry
from semcache.cache.plan_cache import PlanCache
from semcache.canonical import Json, JsonObject, Pointer, as_object, digest, plain
from semcache.errors import InvalidInput, NotAllowed, UnknownTool
from semcache.events import TokenPrices
from semcache.plans.document import LISTED
from semcache.runs.run_context import Here
from semcache.runs.tools import TOOLS, Tool, read, schema_of
from semcache.semcache import SemCache
from semcache.server.arguments import (
    CALLS,
    AnswerArguments,
    AskArguments,
    CallKind,
    FeedbackArguments,
    InvalidateArguments,
    LookupArguments,
    Pool,
    PromptArguments,
    StoreArguments,
)
from semcache.server.lookup_history import RecentLookups
from semcache.server.tokens import RIGHTS, Right
from semcache.telemetry.savings import saved_by_hits

_SPAWN = "request_spawn_workflow"
"""The one introspection tool that asks for something to be run."""


class Calls:
    """The calls of a door, for callers whose tenant is known. Safe from several threads.

    The tenant is an argument of the door, never of a caller: no call takes one.
    """

    def __init__(self, cache: SemCache | PlanCache, *, allow_writes: bool = False) -> None:
        """Serve `cache`; `allow_writes`: whether `ask` may run operations that write.

        A `PlanCache` has no operations to answer prompts with: `ask` and `answer` are not served,
        nor are the tools that look at runs.
        """
        self._semcache = cache if isinstance(cache, SemCache) else None
        self.cache = cache.cache if isinstance(cache, SemCache) else cache
        """What is served."""
        self.recent = RecentLookups()
        """The last lookups of each tenant in this process."""
        self._allow_writes = allow_writes
        self._handlers: Mapping[str, Callable[[Any, str], Json]] = {
            "ask": self._ask,
            "answer": self._answer,
            "lookup": self._lookup,
            "explain": self._explain,
            "store": self._store,
            "feedback": self._feedback,
            "invalidate": self._invalidate,
            "statistics": lambda _, tenant: statistics(self.cache, tenant),
        }

    @property
    def served(self) -> Mapping[str, CallKind]:
        """The calls of the cache that are served, by name; tools that look at runs come beside."""
        return {n: kind for n, kind in CALLS.items() if self._semcache or not kind.operations}

    def tools(self, rights: frozenset[Right] = RIGHTS) -> tuple[Tool, ...]:
        """Return all that is served to who has `rights`, in the shape that models are told of."""
        own = [
            Tool(name, kind.summary, schema_of(kind.arguments))
            for name, kind in self.served.items()
            if kind.rights & rights
        ]
        looking = [t for t in self._looking if _needed(t.name) & rights]
        return (
            *own,
            *(Tool(t.name, t.description, _with_run(t.input_schema)) for t in looking),
        )

    def call(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        tenant: str,
        rights: frozenset[Right] = RIGHTS,
    ) -> Json:
        """Return what the call gives the tenant, as JSON.

        Raises:
            UnknownTool: there is no call of that name.
            NotAllowed: `rights` do not cover it.
            InvalidInput: the arguments are not what it takes.
            SemCacheError: what the cache raises.
        """
        if name not in self.served and all(name != tool.name for tool in self._looking):
            known = ", ".join((*self.served, *(tool.name for tool in self._looking)))
            raise UnknownTool(f"there is no tool {name!r:.100}; known: {known}")
        check_rights(name, _needed(name), rights)
        if name in self.served:
            # Each handler takes what its call is described by.
            return self._handlers[name](read(CALLS[name].arguments, name, arguments), tenant)
        return self._introspect(name, dict(arguments), tenant)

    def pool(self, name: str) -> Pool:
        """Return which calls `name` shares its threads with."""
        kind = CALLS.get(name)
        return "read" if kind is None else kind.pool

    def hits(self, name: str, arguments: Mapping[str, object], *, tenant: str) -> bool:
        """Return whether `ask` with these arguments would find a plan, and so be quick.

        Raises:
            InvalidInput: the arguments are not what it takes.
        """
        if name != "ask" or self._semcache is None:
            return False
        given = read(AskArguments, name, arguments)
        found = self._semcache.lookup(
            given.prompt, tenant=tenant, params=given.params, what_if=True
        )
        return bool(found)

    @property
    def _looking(self) -> Sequence[Tool]:
        return () if self._semcache is None else TOOLS

    # Plans ---------------------------------------------------------------------------------------

    def _ask(self, given: AskArguments, tenant: str) -> Json:
        answer = self._operating.run(
            given.prompt,
            tenant=tenant,
            params=given.params,
            answers=given.answers,
            allow_writes=self._allow_writes,
        )
        return {**answer.to_dict(), "id": self.recent.keep(tenant, answer.found)}

    def _answer(self, given: AnswerArguments, tenant: str) -> Json:
        answer = self._operating.answer(given.token, given.answers, tenant=tenant)
        return {**answer.to_dict(), "id": self.recent.keep(tenant, answer.found)}

    def _lookup(self, given: LookupArguments, tenant: str) -> Json:
        lookup = partial(self.cache.lookup, tools=given.tools)
        if self._semcache is not None and given.tools is None:
            lookup = partial(self._semcache.lookup)
        found = lookup(
            given.prompt,
            tenant=tenant,
            params=given.params,
            threshold=given.threshold,
            what_if=given.what_if,
        )
        if given.what_if:
            return {**found.to_dict(), "id": None, "explanation": found.explain()}
        return {**found.to_dict(), "id": self.recent.keep(tenant, found)}

    def _explain(self, given: PromptArguments, tenant: str) -> Json:
        source = self._semcache or self.cache
        found = source.lookup(given.prompt, tenant=tenant, params=given.params, what_if=True)
        return found.explain()

    def _store(self, given: StoreArguments, tenant: str) -> Json:
        stored = self.cache.store(
            given.prompt,
            given.plan,
            params=given.params,
            tenant=tenant,
            tags=given.tags,
            cost_s=given.seconds,
            ignore=given.ignore,
            tools=given.tools,
        )
        spent = {
            "prompt_tokens": given.prompt_tokens,
            "completion_tokens": given.completion_tokens,
            "milliseconds": round((given.seconds or 0.0) * 1000),
        }
        if any(spent.values()):
            for name, amount in {"calls": 1, **spent}.items():
                self.cache.count(f"plan:{name}", tenant=tenant, by=amount)
        return {"stored": bool(stored), **as_object(plain(asdict(stored)))}

    def _feedback(self, given: FeedbackArguments, tenant: str) -> Json:
        kept = self.recent.get(tenant, given.found)
        judgment = self.cache.feedback(kept.found, right=given.right)
        self.recent.judged(tenant, given.found, right=given.right)
        return {"id": given.found, "right": given.right, **as_object(plain(asdict(judgment)))}

    def _invalidate(self, given: InvalidateArguments, tenant: str) -> Json:
        removed = self.cache.invalidate(tenant=tenant, **given.model_dump())
        return {"removed": int(removed), "pending": removed.pending}

    @property
    def _operating(self) -> SemCache:
        if self._semcache is None:
            raise UnknownTool("this door has no operations to answer prompts with")
        return self._semcache

    # Runs ----------------------------------------------------------------------------------------

    def _introspect(self, name: str, arguments: dict[str, object], tenant: str) -> Json:
        """Answer an introspection tool where a caller from outside stands: in a run of its own."""
        run = arguments.pop("runId", None)
        node = arguments.pop("standAt", None)
        where = self._standing(run, node, tenant)
        return self._operating.introspection.call(
            name, arguments, standing=where, has=lambda key: self._cached(key, tenant)
        )

    def _standing(self, run: object, node: object, tenant: str) -> Here | None:
        runs = self._operating.runs
        view = runs.get(str(run), tenant=tenant) if run is not None else runs.latest(tenant=tenant)
        if view is None and run is not None:
            raise InvalidInput(f"you have no run {run!r:.100}, or it is no longer kept")
        if view is None or view.root is None:
            return None
        at = next((n for n in view if n.id == node), None) if node is not None else view.root
        if at is None:
            raise InvalidInput(f"run {view.id!r} has no node {node!r:.100}")
        return self._operating.standing(at, tenant=tenant)

    def _cached(self, key: str, tenant: str) -> bool:
        # By the plans of the tenant: whether an answer of a model is kept would tell of others.
        return any(key in {e.id, e.label} for e in self.cache.entries(tenant=tenant))


def statistics(cache: PlanCache, tenant: str) -> JsonObject:
    """Return the counts of a tenant, and what its hits saved, as JSON."""
    counted, settings = cache.stats(tenant=tenant), cache.settings
    prices = TokenPrices(settings.prompt_token_price, settings.completion_token_price)
    return {
        **as_object(plain(asdict(counted))),
        "hit_rate": round(counted.hit_rate, 4),
        "saved": saved_by_hits(counted.hits, counted.spent, prices),
    }


def _needed(name: str) -> frozenset[Right]:
    """Return the rights of which a caller must have one."""
    if name in CALLS:
        return CALLS[name].rights
    return frozenset({"ask"}) if name == _SPAWN else frozenset({"read"})


def check_rights(name: str, needed: frozenset[Right], rights: frozenset[Right]) -> None:
    """Check that `rights` have one of the `needed`.

    Raises:
        NotAllowed: they have none.
    """
    if not needed & rights:
        raise NotAllowed(
            f"{name} needs the right {' or '.join(sorted(needed))!r}; you have "
            f"{', '.join(sorted(rights)) or 'none'}. Whoever runs this door grants rights"
        )


_WHERE = {
    "runId": "The run to look at, by its id; left out: your latest",
    "standAt": "The node of it to stand at, by its id; left out: the run itself",
}
"""Arguments that say where a caller from outside stands."""


def _with_run(schema: JsonObject) -> JsonObject:
    more: JsonObject = {k: {"type": "string", "description": v} for k, v in _WHERE.items()}
    return {**schema, "properties": {**as_object(schema["properties"]), **more}}


# Plan groups as a person looks at them: plans that differ only in values, and who said them.

EXAMPLES = 20
"""Entries of a group that are shown, newest first."""


def plan_groups(entries: Sequence[Entry], count: int) -> list[JsonObject]:
    """Return the `count` largest plan groups as JSON; of equal ones the newest first."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_same(entry), []).append(entry)
    largest = sorted(groups.items(), key=lambda g: (-len(g[1]), -g[1][-1].created_s))
    return [_group(name, members) for name, members in largest[:count]]


def outline(plan: PlanTemplate, *, names: bool = True) -> Json:
    """Return the plan with `<name>`, or `<>`, where the value of a parameter goes."""
    drawn: JsonObject = deepcopy(plan.plan)
    said: dict[Pointer, str] = {}
    for binding in plan.bindings:
        slot = f"<{binding.param}>" if names else "<>"
        # Bindings of one text stand in its order, each with what is beside it.
        before = said.get(binding.at, "")
        said[binding.at] = f"{before}{binding.before}{slot}{binding.after}"
    for at, text in said.items():
        above: Any = drawn
        for step in at[:-1]:
            above = above[step]
        above[at[-1]] = text
    return drawn[LISTED] if drawn.keys() == {LISTED} else drawn


def _same(entry: Entry) -> str:
    """Return a name that entries share whose plans differ only in values."""
    return digest([outline(entry.plan, names=False), entry.catalog, entry.grounding])[:16]


def _group(name: str, members: Sequence[Entry]) -> JsonObject:
    newest = members[::-1][:EXAMPLES]
    return {
        "group": name,
        "entries": len(members),
        "operations": list[Json](sorted({op for entry in members for op in entry.operations})),
        "plan": outline(members[-1].plan),
        "examples": [_example(entry) for entry in newest],
    }


def _example(entry: Entry) -> JsonObject:
    return {
        "entry": entry.id,
        "prompt": entry.prompt,
        "template": entry.template.text,
        "key": entry.key,
        "tags": list(entry.tags),
        "created": entry.created_s,
        "expires": entry.expires_s,
        "pinned": dict(entry.plan.held),
    }
