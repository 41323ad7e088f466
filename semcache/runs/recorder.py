"""The observer that builds run trees out of events, and keeps the latest."""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Sequence

from semcache.errors import InvalidSettings
from semcache.events import (
    Event,
    ModelCalled,
    NodeClosed,
    NodeFinished,
    NodeOpened,
    NodeRevised,
    TokenPrices,
)
from semcache.runs.run_context import Here, here
from semcache.runs.tree import MAX_NODES, Run, Tree

MAX_TREES = 100


class Runs:
    """The latest run trees of each tenant, built from events. An `Observer`; safe from threads.

    What happens inside a node is told on the thread, or in the context, that the node was opened
    in: engines, planners and `call` see to that. Memory is bounded: `max_nodes` a tree, `max_trees`
    in all, of which those that began longest ago go first, finished ones before others.
    """

    def __init__(
        self,
        *,
        max_trees: int = MAX_TREES,
        max_nodes: int = MAX_NODES,
        prices: TokenPrices | None = None,
    ) -> None:
        """Keep nothing yet.

        Raises:
            InvalidSettings: there would be no tree, or no node in it.
        """
        if max_trees < 1 or max_nodes < 1:
            raise InvalidSettings(
                f"max_trees is {max_trees!r} and max_nodes {max_nodes!r}; expected 1 or more"
            )
        self._max_trees = max_trees
        self._max_nodes = max_nodes
        self._prices = prices
        self._lock = threading.Lock()
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._numbers = itertools.count(1)

    def __call__(self, event: Event, /) -> None:
        """Take what `event` says of a node; other events are nothing to it.

        Inside a run whose tree is elsewhere, because another `SemCache` asks this one, it goes
        there.
        """
        standing = here()
        if standing is not None and standing.home is not self:
            standing.home(event)
        else:
            self._take(event, standing)

    def _take(self, event: Event, standing: Here | None) -> None:
        match event:
            case NodeOpened():
                self._tree_of(event).opened(event)
            case NodeClosed():
                if (tree := self._known(event.tree)) is not None:
                    tree.closed(event)
            case NodeRevised():
                if (tree := self._known(event.tree)) is not None:
                    tree.revised(event)
            case ModelCalled() | NodeFinished():
                if standing is not None:
                    self._inside(event, standing)

    def _inside(self, event: ModelCalled | NodeFinished, standing: Here) -> None:
        tree = self._known(standing.tree)
        if tree is None:
            return
        number = f"{standing.node[:16]}-{next(self._numbers)}"
        if isinstance(event, ModelCalled):
            tree.asked(event, standing.node, number, standing.clock.now())
        else:
            tree.visited(event, standing.node, number, standing.clock.now())

    # Reading -----------------------------------------------------------------------------------

    def get(self, run: str, *, tenant: str = "default") -> Run | None:
        """Return the run of that id, if it is the tenant's and still kept."""
        for tree in self._of(tenant):
            if tree.get(run) is not None:
                return Run(tree, run)
        return None

    def view(self, run: str, *, tenant: str = "default") -> Run:
        """Return what `get` does; of a run that is not kept, one with no nodes."""
        return self.get(run, tenant=tenant) or Run(Tree(tenant), run)

    def latest(self, *, tenant: str = "default") -> Run | None:
        """Return the run of the tenant that began last and stands in no other; None if none."""
        return next(iter(self.list(tenant=tenant)), None)

    def list(self, *, tenant: str = "default") -> Sequence[Run]:
        """Return the tenant's outermost runs that are kept, newest first."""
        return [Run(t, t.root.id) for t in reversed(self._of(tenant)) if t.root is not None]

    def tree(self, id: str, *, tenant: str = "default") -> Tree | None:  # noqa: A002 - the word of the tree
        """Return the tree of that id, if it is the tenant's and still kept."""
        tree = self._known(id)
        return tree if tree is not None and tree.tenant == tenant else None

    def clear(self, *, tenant: str) -> int:
        """Forget the tenant's trees; return how many there were."""
        with self._lock:
            ids = [name for name, tree in self._trees.items() if tree.tenant == tenant]
            for name in ids:
                del self._trees[name]
        return len(ids)

    def _of(self, tenant: str) -> Sequence[Tree]:
        with self._lock:
            return [tree for tree in self._trees.values() if tree.tenant == tenant]

    def _known(self, id: str) -> Tree | None:  # noqa: A002 - the word of the tree
        with self._lock:
            return self._trees.get(id)

    def _tree_of(self, event: NodeOpened) -> Tree:
        with self._lock:
            tree = self._trees.get(event.tree)
            if tree is None:
                self._make_room()
                tree = Tree(event.tenant, max_nodes=self._max_nodes, prices=self._prices)
                self._trees[event.tree] = tree
            return tree

    def _make_room(self) -> None:
        while len(self._trees) >= self._max_trees:
            over = (n for n, t in self._trees.items() if t.root is not None and t.root.finished)
            del self._trees[next(over, next(iter(self._trees)))]
