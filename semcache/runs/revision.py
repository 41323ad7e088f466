"""Replacing the last result of a run by a better one, beside it."""

from collections.abc import Callable
from typing import TypeVar

from semcache.errors import InvalidInput, NotInRun
from semcache.events import NodeRevised
from semcache.runs.here import here, node
from semcache.runs.node import Node

T = TypeVar("T")


def revise(work: Callable[[], T]) -> T:
    """Return what `work` gives, as the revision of the last completed child of where this stands.

    It runs as a node `revision:<name>` beside the old one, which is marked as revised when the new
    one is there; if `work` fails, the old one stands as it was. The tree does not fork.

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
    with node(f"revision:{last.name}", "attempt") as opened:
        value = work()
        opened.gave(value)
    standing.emit(NodeRevised(tree=standing.tree, id=last.id, by=opened.id))
    return value


def _last(own: Node) -> Node | None:
    done = (each for each in reversed(own.children.values()) if each.status == "completed")
    return next(done, None)
