"""Compensation: undoing what a plan did before it failed, the last first."""

import logging
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.errors import ExecutionError, SemCacheError
from semcache.execution.retry import Retry
from semcache.ports import Clock, NodeResult

log = logging.getLogger(__name__)


class Once(Protocol):
    """Calls an operation one time, to undo a node."""

    def __call__(self, name: str, given: JsonObject, node: str, /) -> None:
        """Call `name` with `given`; raises what the call raises."""


def undo(
    nodes: Sequence[NodeResult], *, once: Once, catalog: Catalog, retry: Retry, clock: Clock
) -> tuple[str, ...]:
    """Undo `nodes`, given in the order in which they ended; return what could not be, and why.

    Only nodes whose operation names its compensation are undone. One that cannot be does not keep
    the others from it.
    """
    failed = []
    for node in reversed(nodes):
        name = catalog.get(node.operation).compensation if node.operation else None
        if name is None:
            continue
        log.warning("node %r is undone by operation %r", node.node, name)
        try:
            _undo(node, name, once, catalog=catalog, retry=retry, clock=clock)
        except SemCacheError as error:
            failed.append(f"{node.node!r} by {name!r}: {error}")
    return tuple(failed)


def _undo(
    node: NodeResult, name: str, once: Once, *, catalog: Catalog, retry: Retry, clock: Clock
) -> None:
    given: JsonObject = {"input": node.input, "output": node.output}
    for failures in count(1):
        try:
            once(name, given, node.node)
        except ExecutionError as error:
            if not retry.allows(catalog.get(name), error, failures):
                raise
            clock.sleep(retry.wait_s(failures))
        else:
            return
