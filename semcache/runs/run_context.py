"""Where the running code stands in a run tree, carried across threads and async by a context."""

import inspect
import uuid
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from semcache.canonical import Json, JsonObject
from semcache.errors import InvalidInput
from semcache.events import NodeClosed, NodeKind, NodeOpened, NodeStatus
from semcache.ports import Clock, Observer
from semcache.runs.redaction import kept

if TYPE_CHECKING:
    from semcache.runs.recorder import Runs

MAX_RUNS = 8
"""Runs that may stand one in the other."""
MAX_NAME = 200  # characters


@dataclass(frozen=True, slots=True)
class Here:
    """A node of a run tree that is open, and how it is told about."""

    tree: str
    """Id of the outermost run."""
    run: str
    """Id of the run that the node belongs to."""
    node: str
    tenant: str
    depth: int
    """0 for the root of the tree."""
    runs: int
    """How many runs stand one in the other here; 1 for the outermost."""
    home: "Runs" = field(repr=False)
    """What builds the tree: of runs inside runs, whatever the outermost was told to."""
    emit: Observer = field(repr=False)
    clock: Clock = field(repr=False)
    writes: list[str] = field(repr=False)
    """Operations called in this attempt that write, and cannot be called again without harm."""


_HERE: ContextVar[Here | None] = ContextVar("semcache_here", default=None)

LOOP: ContextVar[AbstractEventLoop | None] = ContextVar("semcache_loop", default=None)
"""The loop of an async caller, where coroutines of operations run: what they share with the rest
of the program (clients, locks) belongs to it."""


def here() -> Here | None:
    """Return where the running code stands; None outside a run."""
    return _HERE.get()


def run_id() -> str:
    """Return the id of the run that the running code belongs to; empty outside one."""
    standing = _HERE.get()
    return standing.run if standing is not None else ""


class Open:
    """A node of the tree for as long as a `with` block runs; nothing is told outside a run.

    What the block raises makes it `failed` (`cancelled`, if that is no `Exception`) and passes.
    """

    def __init__(self, under: Here | None, name: object, kind: NodeKind, given: object) -> None:
        self._under = under
        self._name = name
        self._kind = kind
        self._given = given
        self._here: Here | None = None
        self._token: Token[Here | None] | None = None
        self._started = 0.0
        self._output: object = None
        self._notes: JsonObject = {}

    @property
    def id(self) -> str:
        """Its id in the tree; empty outside a run."""
        return self._here.node if self._here is not None else ""

    @property
    def here(self) -> Here | None:
        """Where it stands; None outside a run, or before it is entered."""
        return self._here

    @property
    def home(self) -> "Runs | None":
        """What builds its tree; None outside a run."""
        return self._here.home if self._here is not None else None

    def note(self, **notes: Json) -> None:
        """Keep what else is known of it."""
        self._notes.update(notes)

    def gave(self, output: object) -> None:
        """Keep what came out of it."""
        self._output = output

    def wrote(self, operation: str) -> None:
        """Tell the attempt that it stands in that `operation` may have changed the world."""
        if self._here is not None:
            self._here.writes.append(operation)

    def __enter__(self) -> Self:
        above = self._under
        if above is None:
            return self
        self._here = replace(above, node=uuid.uuid4().hex, depth=above.depth + 1)
        if self._kind == "attempt":
            self._here = replace(self._here, writes=[])
        self._begin(self._here, above.node)
        return self

    def _begin(self, standing: Here, parent: str) -> None:
        self._token = _HERE.set(standing)
        self._started = standing.clock.monotonic()
        standing.emit(
            NodeOpened(
                tree=standing.tree,
                run=standing.run,
                id=standing.node,
                parent=parent,
                tenant=standing.tenant,
                name=str(kept(self._name, max_chars=MAX_NAME)),
                kind=self._kind,
                started_s=standing.clock.now(),
                input=kept(self._given),
            )
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        standing, token = self._here, self._token
        if standing is None or token is None:
            return
        status: NodeStatus = "completed"
        if error is not None:
            status = "failed" if isinstance(error, Exception) else "cancelled"
        standing.emit(
            NodeClosed(
                tree=standing.tree,
                run=standing.run,
                id=standing.node,
                status=status,
                seconds=standing.clock.monotonic() - self._started,
                output=kept(self._output),
                error=str(kept(told(error))) if error is not None else "",
                notes={name: kept(value) for name, value in self._notes.items()},
            )
        )
        _HERE.reset(token)


class OpenRun(Open):
    """A run: the root of a tree, or, inside another run of the same tenant, a child of that.

    Entering it raises InvalidInput where eight runs stand one in the other already.
    """

    def __init__(
        self,
        name: object,
        *,
        home: "Runs",
        clock: Clock,
        emit: Observer | None = None,
        tenant: str = "default",
        id: str = "",  # noqa: A002 - the word of the node
        given: object = None,
        under: Here | None = None,
    ) -> None:
        super().__init__(under or here(), name, "run", given)
        self._home = home
        self._emit = emit or home
        self._clock = clock
        self._tenant = tenant
        self._own_id = id or uuid.uuid4().hex

    def __enter__(self) -> Self:
        # Tenants are hard partitions: what one does for another stands in a tree of its own.
        above = self._under
        inside = above is not None and above.tenant == self._tenant
        if above is not None and above.runs >= MAX_RUNS:
            raise InvalidInput(
                f"{above.runs} runs stand one in the other here, which is as deep as they may: an "
                "agent that asks itself never ends"
            )
        self._here = Here(
            tree=above.tree if above is not None and inside else self._own_id,
            run=self._own_id,
            node=self._own_id,
            tenant=self._tenant,
            depth=above.depth + 1 if above is not None and inside else 0,
            runs=above.runs + 1 if above is not None else 1,
            home=above.home if above is not None and inside else self._home,
            emit=self._emit,
            clock=self._clock,
            writes=[],
        )
        self._begin(self._here, above.node if above is not None and inside else "")
        return self


def node(name: str, kind: NodeKind = "step", *, given: object = None) -> Open:
    """Return a node to open under the one that the running code stands in; see `Open`."""
    return Open(here(), name, kind, given)


def told(error: BaseException) -> str:
    """Return class and message of an error."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def is_async(work: Callable[..., object]) -> bool:
    """Return whether `work` gives a coroutine: an `async def`, also one of an object's `__call__`.

    What it does happens when that is awaited: a node around the call alone would be over by then.
    """
    call = getattr(work, "__call__", None)  # noqa: B004 - how an instance is called is asked for
    return inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(call)
