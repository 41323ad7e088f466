"""Making runs and agents while a program runs, and putting a better result beside the last one."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast, overload

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Effect, Operation
from semcache.errors import InvalidInput, NotInRun
from semcache.events import NodeRevised
from semcache.ports import Clock, Observer
from semcache.runs.recorder import Runs
from semcache.runs.run_context import Here, Open, OpenRun, here, is_async, node
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
