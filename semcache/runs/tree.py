"""The tree of one run and all that runs inside it, bounded in nodes."""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject
from semcache.events import (
    ModelCalled,
    NodeClosed,
    NodeFinished,
    NodeKind,
    NodeOpened,
    NodeRevised,
    NodeStatus,
    TokenPrices,
)


@dataclass(slots=True, eq=False)
class Node:
    """A run, or a step inside it. Changed by the tree that holds it, and by nobody else."""

    id: str
    run: str
    """Id of the run that it belongs to; its own for a run."""
    name: str
    kind: NodeKind
    started_s: float
    """Epoch seconds."""
    parent: "Node | None" = field(default=None, repr=False)
    depth: int = 0
    """0 for the root of the tree."""
    status: NodeStatus = "running"
    seconds: float | None = None
    """How long it took; None while it runs."""
    input: Json = None
    output: Json = None
    """What went in and came out, without secrets and cut to 2000 characters each."""
    error: str = ""
    """Class and message of what it raised; empty if it ended well, or runs."""
    notes: JsonObject = field(default_factory=dict)
    """What else is known of it: `tier`, `model`, `revised_by`…"""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Tokens spent in it and below it, those of pruned nodes too."""
    cost: float = 0.0
    """What the tokens cost, in the currency of the prices; 0 without prices."""
    model_calls: int = 0
    """Calls of a model in it and below it that were not answered from memory."""
    pruned: int = 0
    """How many nodes once stood below it and made room for others."""
    children: dict[str, "Node"] = field(default_factory=dict, repr=False)
    """Those that are still kept, by id, in the order in which they began."""

    @property
    def finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status != "running"

    def above(self) -> Iterator["Node"]:
        """Yield its ancestors, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator["Node"]:
        """Yield it and all below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children.values()))

    def to_dict(self) -> JsonObject:
        """Return what is known of it as JSON, without its children."""
        said: JsonObject = {
            "id": self.id,
            "parent": self.parent.id if self.parent is not None else None,
            "run": self.run,
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "started_s": self.started_s,
            "seconds": self.seconds,
        }
        told: JsonObject = {
            "input": self.input,
            "output": self.output,
            "error": self.error,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "model_calls": self.model_calls,
            "pruned": self.pruned,
            "notes": dict(self.notes),
        }
        return {**said, **{name: value for name, value in told.items() if value}}


MAX_NODES = 10_000
MAX_DEPTH = 64


class Tree:
    """Nodes by id, from the root down. Safe from several threads.

    Over `max_nodes`, the nodes that finished longest ago make room, and the one that they stood
    under counts them. Where none has finished, or deeper than 64 levels, a new node is counted and
    not kept.
    """

    def __init__(
        self, tenant: str, *, max_nodes: int = MAX_NODES, prices: TokenPrices | None = None
    ) -> None:
        self.tenant = tenant
        """Whose it is; nobody else sees it."""
        self.lock = threading.RLock()
        """Held while it is changed, or read at length."""
        self.root: Node | None = None
        """The outermost run; None before it began."""
        self._max_nodes = max_nodes
        self._prices = prices or TokenPrices()
        self._nodes: dict[str, Node] = {}
        self._ended: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, id: str) -> Node | None:  # noqa: A002 - the word of the node
        """Return a node; None if there is none of that id, or it made room for others."""
        with self.lock:
            return self._nodes.get(id)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes that are kept, each before its children."""
        with self.lock:
            return tuple(self.root.below()) if self.root is not None else ()

    def children(self, node: Node) -> tuple[Node, ...]:
        """Return the children of `node` that are kept, in the order in which they began."""
        with self.lock:
            return tuple(node.children.values())

    # What happens to it ----------------------------------------------------------------------

    def opened(self, event: NodeOpened) -> None:
        """Add the node that began."""
        with self.lock:
            parent = self._nodes.get(event.parent)
            if event.parent and parent is None:
                self._uncounted(self.root)
                return
            self._add(
                Node(
                    id=event.id,
                    run=event.run,
                    name=event.name,
                    kind=event.kind,
                    started_s=event.started_s,
                    input=event.input,
                    parent=parent,
                    depth=0 if parent is None else parent.depth + 1,
                )
            )

    def closed(self, event: NodeClosed) -> None:
        """Keep how the node ended."""
        with self.lock:
            node = self._nodes.get(event.id)
            if node is None:
                return
            if not node.finished:
                node.status = event.status
            node.seconds = event.seconds
            node.output = event.output
            node.error = event.error
            node.notes.update(event.notes)
            self._ended.append(node.id)

    def asked(self, event: ModelCalled, under: str, id: str, now_s: float) -> None:  # noqa: A002 - the word of the node
        """Add a call of a model, which is over, and count its tokens all the way up."""
        with self.lock:
            parent = self._nodes.get(under, self.root)
            if parent is None:
                return
            spent = (0, 0) if event.cached else (event.prompt_tokens, event.completion_tokens)
            for node in (parent, *parent.above()):
                node.prompt_tokens += spent[0]
                node.completion_tokens += spent[1]
                node.cost += self._prices.of(*spent)
                node.model_calls += not event.cached
            notes: JsonObject = {"model": event.model, "attempt": event.attempt}
            if event.cached:
                notes["cached"] = True
            name = f"model {event.purpose}"
            call = _ended(parent, event, id=id, name=name, now_s=now_s, notes=notes)
            call.kind = "model"
            call.prompt_tokens, call.completion_tokens = spent
            call.cost = self._prices.of(*spent)
            call.model_calls = 0 if event.cached else 1
            self._add(call)

    def visited(self, event: NodeFinished, under: str, id: str, now_s: float) -> None:  # noqa: A002 - the word of the node
        """Add a node of a plan that called nothing, or that failed before its call."""
        with self.lock:
            parent = self._nodes.get(under, self.root)
            if parent is None:
                return
            if event.operation and (called := _called(parent, event.node)) is not None:
                called.notes.setdefault("step", event.step)
                return
            notes: JsonObject = {"step": event.step}
            visited = _ended(parent, event, id=id, name=event.node, now_s=now_s, notes=notes)
            visited.kind = "operation" if event.operation else "step"
            self._add(visited)

    def revised(self, event: NodeRevised) -> None:
        """Mark a completed node as replaced."""
        with self.lock:
            node = self._nodes.get(event.id)
            if node is not None and node.finished:
                node.status = "revised"
                node.notes["revised_by"] = event.by

    # Room --------------------------------------------------------------------------------------

    def _add(self, node: Node) -> None:
        if self.root is not None and node.parent is None:
            return  # a tree has one root
        if node.depth > MAX_DEPTH or not self._room():
            self._uncounted(node.parent)
            return
        if node.parent is None:
            self.root = node
        else:
            node.parent.children[node.id] = node
        self._nodes[node.id] = node
        if node.finished:
            self._ended.append(node.id)

    def _uncounted(self, parent: Node | None) -> None:
        if parent is not None:
            parent.pruned += 1

    def _room(self) -> bool:
        """Make room for one more node, if there is any to be made."""
        for _ in range(len(self._ended)):
            if len(self._nodes) < self._max_nodes:
                break
            node = self._nodes.get(self._ended.popleft())
            if node is None or node.parent is None:
                continue
            if node.children:  # something below it goes on after it ended
                self._ended.append(node.id)
                continue
            del self._nodes[node.id]
            node.parent.children.pop(node.id, None)
            node.parent.pruned += 1 + node.pruned
        return len(self._nodes) < self._max_nodes


def _ended(
    parent: Node,
    event: ModelCalled | NodeFinished,
    *,
    id: str,  # noqa: A002 - the word of the node
    name: str,
    now_s: float,
    notes: JsonObject,
) -> Node:
    """Return a step under `parent` that is over."""
    return Node(
        id=id,
        run=parent.run,
        name=name,
        kind="step",
        started_s=now_s - event.seconds,
        parent=parent,
        depth=parent.depth + 1,
        status="failed" if event.error else "completed",
        seconds=event.seconds,
        error=event.error,
        notes=notes,
    )


def _called(parent: Node, name: str) -> Node | None:
    """Return the latest child of that name."""
    return next((n for n in reversed(parent.children.values()) if n.name == name), None)


class Run:
    """A run and what stands below it: a part of a tree, read only.

    Printing it draws the tree; a notebook shows it folded.
    """

    def __init__(self, tree: Tree, id: str) -> None:  # noqa: A002 - the word of the node
        self._tree = tree
        self._id = id

    def __repr__(self) -> str:
        return f"Run({self._id!r}, tenant={self._tree.tenant!r})"

    @property
    def id(self) -> str:
        """Id of the run, as every event has it."""
        return self._id

    @property
    def tenant(self) -> str:
        """Whose run it is."""
        return self._tree.tenant

    @property
    def root(self) -> Node | None:
        """The node of the run itself; None if it made room for others."""
        return self._tree.get(self._id)

    def nodes(self) -> tuple[Node, ...]:
        """Return its node and all below it that are kept, each before its children."""
        with self._tree.lock:
            root = self.root
            return tuple(root.below()) if root is not None else ()

    def named(self, name: str) -> tuple[Node, ...]:
        """Return the nodes of that name."""
        return tuple(node for node in self.nodes() if node.name == name)

    def to_dict(self) -> JsonObject:
        """Return the whole of it as JSON: each node with its `children`."""
        with self._tree.lock:
            root = self.root
            return _nested(root) if root is not None else {"id": self._id}

    def __str__(self) -> str:
        from semcache.runs.drawing import text  # noqa: PLC0415 - draws what is defined here

        return text(self)

    def _repr_html_(self) -> str:
        from semcache.runs.drawing import html  # noqa: PLC0415 - draws what is defined here

        return html(self)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes())


def _nested(node: Node) -> JsonObject:
    children: list[Json] = [_nested(child) for child in node.children.values()]
    said = node.to_dict()
    return {**said, "children": children} if children else said
