"""What the doors serve: ask, lookup, explain, feedback, statistics, and looking at runs."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from pydantic import Field

from semcache.cache.result import Found
from semcache.canonical import Json, JsonObject, as_object, plain
from semcache.errors import InvalidInput, UnknownTool
from semcache.runs.arguments import Arguments, Nothing, read, schema_of
from semcache.runs.here import Here
from semcache.runs.tools import TOOLS, Tool
from semcache.semcache import SemCache

MAX_FOUND = 1000
"""Lookups that a tenant may still judge; the oldest are forgotten first."""


class _Prompt(Arguments):
    prompt: str = Field(description="The prompt, as a user would say it")
    params: dict[str, object] | None = Field(
        default=None, description="Values that are known already, by name"
    )


class _Feedback(Arguments):
    found: str = Field(description="The `id` of what `lookup` or `ask` found")
    right: bool = Field(description="Whether the plan was the right one")


_TABLE: dict[str, tuple[type[Arguments], str]] = {
    "ask": (_Prompt, "Answer a prompt from the plan cache; plan only if no plan fits."),
    "lookup": (_Prompt, "Return the cached plan for a prompt, with its own values; run nothing."),
    "explain": (_Prompt, "Tell why a prompt hits or misses, tier by tier and gate by gate."),
    "feedback": (_Feedback, "Tell whether a plan that was found was right."),
    "statistics": (Nothing, "Count entries, hits and misses of your tenant."),
}


class Calls:
    """The calls of a door, for callers whose tenant is known. Safe from several threads.

    The tenant is an argument of the door, never of a caller: no call takes one.
    """

    def __init__(self, semcache: SemCache, *, allow_writes: bool = False) -> None:
        """Serve `semcache`; `allow_writes`: whether `ask` may run operations that write."""
        self._semcache = semcache
        self._allow_writes = allow_writes
        self._lock = threading.Lock()
        self._found: dict[str, OrderedDict[str, Found]] = {}
        self._number = 0
        self._handlers: Mapping[str, Callable[[Arguments, str], Json]] = {
            "ask": self._ask,
            "lookup": self._lookup,
            "explain": self._explain,
            "feedback": self._feedback,
            "statistics": self._statistics,
        }

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All that is served, in the shape that models are told of."""
        own = (Tool(name, says, schema_of(model)) for name, (model, says) in _TABLE.items())
        return (*own, *(Tool(t.name, t.description, _with_run(t.input_schema)) for t in TOOLS))

    def call(self, name: str, arguments: Mapping[str, object], *, tenant: str) -> Json:
        """Return what the call gives the tenant, as JSON.

        Raises:
            UnknownTool: there is no call of that name.
            InvalidInput: the arguments are not what it takes.
            SemCacheError: what `SemCache` raises.
        """
        if name in _TABLE:
            return self._handlers[name](read(_TABLE[name][0], name, arguments), tenant)
        if all(name != tool.name for tool in TOOLS):
            known = ", ".join(tool.name for tool in self.tools)
            raise UnknownTool(f"there is no tool {name!r:.100}; known: {known}")
        return self._introspect(name, dict(arguments), tenant)

    # Plans ---------------------------------------------------------------------------------------

    def _ask(self, given: Arguments, tenant: str) -> Json:
        prompt, params = _prompt(given)
        answer = self._semcache.run(
            prompt, tenant=tenant, params=params, allow_writes=self._allow_writes
        )
        return {**answer.to_dict(), "id": self._keep(tenant, answer.found)}

    def _lookup(self, given: Arguments, tenant: str) -> Json:
        prompt, params = _prompt(given)
        found = self._semcache.lookup(prompt, tenant=tenant, params=params)
        return {**found.to_dict(), "id": self._keep(tenant, found)}

    def _explain(self, given: Arguments, tenant: str) -> Json:
        prompt, params = _prompt(given)
        found = self._semcache.lookup(prompt, tenant=tenant, params=params, what_if=True)
        return found.explain()

    def _feedback(self, given: Arguments, tenant: str) -> Json:
        if not isinstance(given, _Feedback):
            return None
        with self._lock:
            kept = self._found.get(tenant)
            found = kept.get(given.found) if kept is not None else None
        if found is None:
            raise InvalidInput(f"nothing that you were given is called {given.found!r:.100}")
        self._semcache.cache.feedback(found, right=given.right)
        return {"id": given.found, "right": given.right}

    def _statistics(self, _: Arguments, tenant: str) -> Json:
        return plain(asdict(self._semcache.cache.stats(tenant=tenant)))

    def _keep(self, tenant: str, found: Found) -> str:
        """Keep what was found, so that it can be judged, and return what it is called."""
        with self._lock:
            self._number += 1
            name = f"found-{self._number}"
            kept = self._found.setdefault(tenant, OrderedDict())
            kept[name] = found
            while len(kept) > MAX_FOUND:
                kept.popitem(last=False)
        return name

    # Runs ----------------------------------------------------------------------------------------

    def _introspect(self, name: str, arguments: dict[str, object], tenant: str) -> Json:
        """Answer an introspection tool where a caller from outside stands: in a run of its own."""
        run = arguments.pop("runId", None)
        node = arguments.pop("standAt", None)
        where = self._standing(run, node, tenant)
        return self._semcache.introspection.call(
            name, arguments, standing=where, has=lambda key: self._cached(key, tenant)
        )

    def _standing(self, run: object, node: object, tenant: str) -> Here | None:
        runs = self._semcache.runs
        view = runs.get(str(run), tenant=tenant) if run is not None else runs.latest(tenant=tenant)
        if view is None and run is not None:
            raise InvalidInput(f"you have no run {run!r:.100}, or it is no longer kept")
        if view is None or view.root is None:
            return None
        at = next((n for n in view if n.id == node), None) if node is not None else view.root
        if at is None:
            raise InvalidInput(f"run {view.id!r} has no node {node!r:.100}")
        return self._semcache.standing(at, tenant=tenant)

    def _cached(self, key: str, tenant: str) -> bool:
        # By the plans of the tenant: whether an answer of a model is kept would tell of others.
        return any(key in {e.id, e.label} for e in self._semcache.cache.entries(tenant=tenant))


def _prompt(given: Arguments) -> tuple[str, Mapping[str, object] | None]:
    if not isinstance(given, _Prompt):
        raise InvalidInput("a prompt was expected")
    return given.prompt, given.params


@dataclass(frozen=True, slots=True)
class _Where:
    """The arguments that say where a caller from outside stands."""

    name: str
    says: str


_WHERE = (
    _Where("runId", "The run to look at, by its id; left out: your latest"),
    _Where("standAt", "The node of it to stand at, by its id; left out: the run itself"),
)


def _with_run(schema: JsonObject) -> JsonObject:
    properties = schema["properties"]
    more: JsonObject = {w.name: {"type": "string", "description": w.says} for w in _WHERE}
    return {
        **schema,
        "properties": {**(as_object(properties)), **more},
    }
