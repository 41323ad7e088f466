"""Making runs and agents while a program runs, at once or when the application accepts."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Effect, Operation
from semcache.errors import InvalidInput, NotInRun
from semcache.events import NodeRevised, SpawnDecided, SpawnRequested
from semcache.ports import Clock, Observer
from semcache.runs.recorder import Runs
from semcache.runs.redaction import hidden
from semcache.runs.run_context import MAX_RUNS, Here, Open, OpenRun, here, is_async, node
from semcache.runs.tree import Node

P = ParamSpec("P")
T = TypeVar("T")


def workflow(
    name: str,
    work: Callable[P, T],
    *,
    runs: Runs,
    clock: Clock,
    emit: Observer | None = None,
    tenant: str = "default",
) -> Callable[P, T]:
    """Return `work` as a run of its own: a root, or a child of the run that calls it.

    Inside another run its tree, clock and observers are those of that run; elsewhere `runs` keeps
    it, and `emit`, if given, hears of it instead and hands it on. The run of an `async def` ends
    when what it gives was awaited.

    Raises:
        InvalidInput: on a call with eight runs one in the other already.
    """

    def opened() -> OpenRun:
        standing = here()
        return OpenRun(
            name,
            home=runs,
            emit=standing.emit if standing is not None else emit,
            clock=standing.clock if standing is not None else clock,
            tenant=tenant,
        )

    async def run_async(*args: P.args, **kwargs: P.kwargs) -> object:
        with opened() as node:
            value = await cast("Awaitable[object]", work(*args, **kwargs))
            node.gave(value)
            return value

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with opened() as node:
            value = work(*args, **kwargs)
            node.gave(value)
            return value

    return cast("Callable[P, T]", run_async) if is_async(work) else run


def agent(
    name: str,
    summary: str,
    ask: "Callable[[str], Json | Coroutine[object, object, Json]]",
    *,
    effect: Effect = "read",
) -> Operation:
    """Return an operation that asks an agent: it takes a `prompt`, and gives what `ask` answers.

    `ask` may be `lambda prompt: semcache.run(prompt).value`: that run then stands in the tree of
    the run whose plan called the operation. An `async def` is awaited.
    """

    def call(given: JsonObject) -> object:
        return ask(str(given["prompt"]))

    schema: JsonObject = {
        "type": "object",
        "properties": {"prompt": {"type": "string", "description": "What the agent is asked"}},
        "required": ["prompt"],
        "additionalProperties": False,
    }
    return Operation(name, summary, schema, effect=effect, call=call)


@overload
def revise(work: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]: ...
@overload
def revise(work: Callable[[], T]) -> T: ...
def revise(work: Callable[[], Any]) -> Any:
    """Return what `work` gives, as the revision of the last completed child of where this stands.

    It runs as a node `revision:<name>` beside the old one, which is marked as revised when the new
    one is there; if `work` fails, the old one stands as it was. The tree does not fork. Of an
    `async def` the result is to be awaited.

    Raises:
        NotInRun: nothing runs here.
        InvalidInput: nothing has been completed here that could be revised.
        Exception: what `work` raises.
    """
    standing = here()
    tree = standing and standing.home.tree(standing.tree, tenant=standing.tenant)
    own = tree.get(standing.node) if standing is not None and tree else None
    if standing is None or own is None:
        raise NotInRun("Not in workflow context - only a run has results to revise")
    last = _last(own)
    if last is None:
        raise InvalidInput(f"node {own.name!r} has no completed child whose result to replace")
    return (_revised_later if is_async(work) else _revised)(standing, last, work)


def _revised(standing: Here, last: Node, work: Callable[[], T]) -> T:
    with _revision(standing, last) as opened:
        value = work()
        opened.gave(value)
        return value


async def _revised_later(
    standing: Here, last: Node, work: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    with _revision(standing, last) as opened:
        value = await work()
        opened.gave(value)
        return value


@contextmanager
def _revision(standing: Here, last: Node) -> Iterator[Open]:
    """Open the node of a revision; the old one counts as revised once the block is over."""
    with node(f"revision:{last.name}", "attempt") as opened:
        yield opened
    standing.emit(NodeRevised(tree=standing.tree, id=last.id, by=opened.id))


def _last(own: Node) -> Node | None:
    done = (each for each in reversed(own.children.values()) if each.status == "completed")
    return next(done, None)


# Runs that an agent asked for: nothing runs before the application accepts.


MAX_PENDING = 32
"""Requests of one tenant that may wait at the same time."""
MAX_KNOWN = 1000
"""Requests that are remembered; those decided longest ago are forgotten first."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """What an agent asked for."""

    id: str
    """`spawn-<epoch milliseconds>-<six characters>`."""
    tenant: str
    name: str
    description: str
    """What it is for, in the agent's words: data, never an instruction to follow unseen."""
    node: str
    """Id of the node that asked; the run stands under it."""
    _under: Here = field(repr=False, compare=False)
    status: Literal["pending", "accepted", "refused"] = "pending"
    reason: str = ""
    """Why it was refused."""

    def to_dict(self) -> JsonObject:
        """Return what the agent that asked is told."""
        return {
            "name": self.name,
            "description": self.description,
            "requestId": self.id,
            "status": self.status,
        }


class Spawns:
    """Requests for further runs, until the application decides. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: OrderedDict[str, SpawnRequest] = OrderedDict()

    def request(self, name: str, description: str, under: Here) -> SpawnRequest:
        """Record a request; nothing runs.

        Raises:
            InvalidInput: too many wait already, or runs stand too deep one in the other.
        """
        if under.runs >= MAX_RUNS:
            raise InvalidInput(
                f"{under.runs} runs stand one in the other here; expected less than {MAX_RUNS}"
            )
        random = "".join(secrets.choice(_DIGITS) for _ in range(6))
        request = SpawnRequest(
            id=f"spawn-{int(under.clock.now() * 1000)}-{random}",
            tenant=under.tenant,
            name=hidden(name),
            description=hidden(description),
            node=under.node,
            _under=under,
        )
        with self._lock:
            waiting = sum(r.status == "pending" for r in self._of(under.tenant))
            if waiting >= MAX_PENDING:
                raise InvalidInput(
                    f"{waiting} requests of the tenant wait already; expected less than "
                    f"{MAX_PENDING}: the application must accept or refuse some first"
                )
            self._requests[request.id] = request
            self._forget()
        under.emit(
            SpawnRequested(tree=under.tree, id=request.id, tenant=request.tenant, name=request.name)
        )
        return request

    def pending(self, *, tenant: str = "default") -> tuple[SpawnRequest, ...]:
        """Return the tenant's requests that wait, oldest first."""
        with self._lock:
            return tuple(r for r in self._of(tenant) if r.status == "pending")

    def get(self, id: str, *, tenant: str = "default") -> SpawnRequest | None:  # noqa: A002 - the word of the request
        """Return a request of the tenant; None if there is none, or it is long decided."""
        with self._lock:
            request = self._requests.get(id)
            return request if request is not None and request.tenant == tenant else None

    def accept(
        self,
        id: str,  # noqa: A002 - the word of the request
        work: Callable[[SpawnRequest], T],
        *,
        tenant: str = "default",
    ) -> T:
        """Run `work` as a run of its own, under the node that asked for it.

        Raises:
            InvalidInput: the tenant has no such request that waits.
            Exception: what `work` raises.
        """
        request = self._decide(id, tenant, "accepted", "")
        under = request._under  # noqa: SLF001 - of this file, kept from those who read a request
        with OpenRun(
            request.name,
            home=under.home,
            emit=under.emit,
            clock=under.clock,
            tenant=tenant,
            given={"description": request.description},
            under=under,
        ):
            return work(request)

    def refuse(
        self,
        id: str,  # noqa: A002 - the word of the request
        reason: str = "",
        *,
        tenant: str = "default",
    ) -> SpawnRequest:
        """Let a request come to nothing, and return it.

        Raises:
            InvalidInput: the tenant has no such request that waits.
        """
        return self._decide(id, tenant, "refused", reason)

    def _decide(
        self,
        id: str,  # noqa: A002 - the word of the request
        tenant: str,
        status: Literal["accepted", "refused"],
        reason: str,
    ) -> SpawnRequest:
        with self._lock:
            known = self._requests.get(id)
            if known is None or known.tenant != tenant or known.status != "pending":
                raise InvalidInput(f"no request {id!r} of tenant {tenant!r} waits for a decision")
            decided = replace(known, status=status, reason=reason)
            self._requests[id] = decided
        under = known._under  # noqa: SLF001 - of this file
        under.emit(SpawnDecided(tree=under.tree, id=id, accepted=status == "accepted"))
        return decided

    def _of(self, tenant: str) -> list[SpawnRequest]:
        return [request for request in self._requests.values() if request.tenant == tenant]

    def _forget(self) -> None:
        over = len(self._requests) - MAX_KNOWN
        old = (r.id for r in list(self._requests.values()) if r.status != "pending")
        for _, each in zip(range(over), old, strict=False):
            del self._requests[each]
