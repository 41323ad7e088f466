"""Tool calls of models as plans: what every adapter of this room asks before its model.

A plan is what a model calls first for a prompt that opens a conversation: later calls depend on
what tools returned, and a later prompt on what was said before it; both go to the model.
"""

import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from semcache.aio import AsyncPlanCache
from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Found, Hit
from semcache.cache.tool_sets import ToolSets
from semcache.canonical import Json, JsonObject, as_list, as_object, digest, loads, plain
from semcache.catalog.catalog import Catalog
from semcache.errors import (
    InvalidInput,
    InvalidJson,
    InvalidOperation,
    InvalidPrompt,
    SemCacheError,
)
from semcache.prompts.tokens import check_prompt

log = logging.getLogger(__name__)

PlanCacheDoor: TypeAlias = PlanCache | AsyncPlanCache
"""A cache as callers have it; an adapter uses the door that its own caller needs."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model wants made."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a model is asked, as far as the tools that it calls depend on it."""

    prompt: str
    """The first words of the user, and the only ones so far."""
    tools: Sequence[object]
    """Definitions of all tools that it may call; see `PlanCache.lookup`."""
    tenant: str = "default"
    instructions: str = ""
    """What the system prompt says."""


@dataclass(slots=True)
class Turn:
    """One model call: served, or made by the model and told here."""

    calls: tuple[ToolCall, ...] | None = None
    """What to call, with this prompt's own values; None: ask the model."""
    made: Sequence[ToolCall] = ()
    """What the model called; to be set by who asked it, empty where it answered otherwise."""
    found: Found | None = None
    """What the cache has; None where it was not asked."""


class _Question(TypedDict):
    tenant: str
    grounding: str
    tools: Catalog


class ServingOptions(TypedDict, total=False):
    """What every adapter takes besides a cache and a tenant; see `ToolCallPlans`."""

    allow: Collection[str]
    instructions: Callable[[str], str]
    on_hit: Callable[[Hit], object] | None


class ToolCallPlans:
    """Serves tool calls from a plan cache, and stores those that models make. Thread-safe.

    Of equal callers one asks the model. What the cache refuses to read or to keep goes to the
    model or stays unkept; only a cache that is closed raises.
    """

    def __init__(
        self,
        cache: PlanCacheDoor,
        *,
        allow: Collection[str] = (),
        instructions: Callable[[str], str] = str,
        on_hit: Callable[[Hit], object] | None = None,
    ) -> None:
        """Serve from `cache`, which its owner closes.

        Args:
            cache: Where plans are kept.
            allow: Tools whose calls may come from the cache although they may write. Tools that
                MCP says only read are served anyway; a plan with any other call never is.
            instructions: What of a system prompt decides which tools are called: another text is
                another plan. The default takes all of it; take out what changes, such as a date.
            on_hit: Called with each hit that is served, for feedback on it later.

        Raises:
            InvalidInput: `cache` is no plan cache, or `allow` is one text.
        """
        if not isinstance(cache, PlanCache | AsyncPlanCache):
            raise InvalidInput(f"cache is {cache!r}; expected a PlanCache or an AsyncPlanCache")
        if isinstance(allow, str):
            raise InvalidInput(f"allow is {allow!r}; expected names of tools such as [{allow!r}]")
        self._plain = cache if isinstance(cache, PlanCache) else cache.cache
        self._awaited = AsyncPlanCache(cache) if isinstance(cache, PlanCache) else cache
        self._allow = frozenset(allow)
        self._instructions = instructions
        self._on_hit = on_hit
        self._sets = ToolSets({})

    @contextmanager
    def turn(self, call: ModelCall | None) -> Iterator[Turn]:
        """Give what to call, or hold the asking of the model; None asks it in any case."""
        with self._held(call, self._found(call)) as turn:
            yield self._told(turn)

    @asynccontextmanager
    async def aturn(self, call: ModelCall | None) -> AsyncIterator[Turn]:
        """Do what `turn` does without blocking the loop."""
        turn = Turn() if call is None else await self._awaited.in_worker(self._found, call)
        if turn.found is None or turn.calls is not None:
            yield self._told(turn)
            return
        async with self._awaited.held(self._held(call, turn)) as turn:
            yield self._told(turn)

    def served(self, call: ModelCall) -> tuple[ToolCall, ...] | None:
        """Return what to call, with this prompt's own values; None: ask the model."""
        return self._told(self._found(call)).calls

    async def aserved(self, call: ModelCall) -> tuple[ToolCall, ...] | None:
        """Do what `served` does without blocking the loop."""
        return self._told(await self._awaited.in_worker(self._found, call)).calls

    def keep(
        self, call: ModelCall, made: Sequence[ToolCall], *, cost_s: float | None = None
    ) -> None:
        """Store what a model called, if all of it may be served; `cost_s`: seconds that it took."""
        question = self._question(call)
        plan = question and self._plan(made, question["tools"])
        if question and plan:
            try:
                self._plain.store(call.prompt, plan, cost_s=cost_s, **question)
            except SemCacheError as error:  # the cache's own matter: the model's answer is good
                log.warning("tool calls were not kept: %s", error)

    async def akeep(self, call: ModelCall, made: Sequence[ToolCall]) -> None:
        """Do what `keep` does without blocking the loop."""
        await self._awaited.in_worker(self.keep, call, made)

    @contextmanager
    def _held(self, call: ModelCall | None, turn: Turn) -> Iterator[Turn]:
        if call is None or turn.found is None:
            yield turn
            return
        with ExitStack() as alone:
            if not turn.found and alone.enter_context(self._plain.planning(turn.found)):
                turn = self._found(call)
                if turn.calls is None:
                    alone.close()  # the answer was no plan: all who wait would queue for nothing
            start = time.monotonic()
            yield turn
            self.keep(call, turn.made, cost_s=time.monotonic() - start)

    def _told(self, turn: Turn) -> Turn:
        """Tell the caller of a hit that is served, where it stands itself."""
        if turn.calls is not None and isinstance(turn.found, Hit) and self._on_hit is not None:
            self._on_hit(turn.found)
        return turn

    def _found(self, call: ModelCall | None) -> Turn:
        """Return what a hit calls, if all of it may be served and fits the tools."""
        question = None if call is None else self._question(call)
        if call is None or question is None:
            return Turn()
        found = self._plain.lookup(call.prompt, **question)
        calls = _calls(found.plan.to_dict()) if found else ()
        if found and not (calls and self._usable(calls, question["tools"])):
            log.warning("entry %r calls what may not be served; the model is asked", found.entry)
            return Turn(found=found)
        return Turn(calls or None, found=found)

    def _question(self, call: ModelCall) -> _Question | None:
        """Return what to look up besides the prompt; None where nothing could be served."""
        try:
            check_prompt(call.prompt, max_chars=self._plain.settings.max_prompt_chars)
            catalog = self._sets.of(call.tools).catalog
        except (InvalidPrompt, InvalidInput, InvalidOperation) as error:
            log.debug("the model is asked, as the cache cannot be: %s", error)
            return None
        if catalog is None or not any(self._may_serve(name, catalog) for name in catalog.names):
            return None
        said = self._instructions(call.instructions)
        return {
            "tenant": call.tenant,
            "grounding": digest(said)[:32] if said else "",
            "tools": catalog,
        }

    def _may_serve(self, name: str, catalog: Catalog) -> bool:
        return name in catalog and (name in self._allow or catalog.get(name).effect == "read")

    def _usable(self, calls: Sequence[ToolCall], catalog: Catalog) -> bool:
        return all(
            self._may_serve(call.name, catalog)
            and not catalog.violations(call.name, call.arguments)
            for call in calls
        )

    def _plan(self, made: Sequence[ToolCall], catalog: Catalog) -> JsonObject | None:
        """Return what a model called as a plan; None if it called nothing that may be served."""
        if not made or not self._usable(made, catalog):
            return None
        calls: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in made]
        return {"tool_calls": calls}


def _calls(plan: JsonObject) -> tuple[ToolCall, ...]:
    """Return the calls of a plan that was stored here; none of any other."""
    calls = [as_object(call) for call in as_list(plan.get("tool_calls"))]
    if not all(call.keys() == {"name", "arguments"} for call in calls):
        return ()
    return tuple(ToolCall(str(call["name"]), as_object(call["arguments"])) for call in calls)


def new_call_id() -> str:
    """Return an id for a call that comes from the cache; SDKs tell calls apart by it."""
    return f"call_{uuid.uuid4().hex}"


def read_calls(named: Iterable[tuple[str, object]]) -> list[ToolCall]:
    """Return calls of these names and arguments, objects or their text; none if one is neither."""
    calls = []
    for name, arguments in named:
        try:
            value = loads(arguments) if isinstance(arguments, str) else plain(arguments)
        except InvalidJson:
            return []
        if not isinstance(value, dict):
            return []
        calls.append(ToolCall(name, value))
    return calls
