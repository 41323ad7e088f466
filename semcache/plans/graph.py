"""Which nodes can be reached from which, in plans whose nodes lead to one another."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

Edges = Mapping[str, Sequence[str]]
"""Node → the nodes that it leads to; a node that is no key leads nowhere."""

MAX_STEPS = 2_000_000  # of all the walks of one `never_before`: a second or so


def reachable(edges: Edges, sources: Iterable[str]) -> set[str]:
    """Return the sources and every node that can be reached from one of them."""
    seen = set(sources)
    waiting = list(seen)
    while waiting:
        for target in edges.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def backwards(edges: Edges) -> dict[str, list[str]]:
    """Return the edges turned round."""
    turned: dict[str, list[str]] = {}
    for source, targets in edges.items():
        for target in targets:
            turned.setdefault(target, []).append(source)
    return turned


def never_before(edges: Edges, wanted: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `wanted` (node → others) where no way leads from the node to the other.

    A way has at least one edge. What is not found out within two million steps counts as possible.
    """
    left = MAX_STEPS
    for source, others in wanted.items():
        missing = set(others)
        seen: set[str] = set()
        waiting = [source]
        while waiting and missing and left > 0:
            for target in edges.get(waiting.pop(), ()):
                left -= 1
                missing.discard(target)
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        yield from ((source, other) for other in sorted(missing) if left > 0)


def upstream_first(needed: Edges) -> Iterator[str]:
    """Yield the nodes of `needed` (node → what it needs), each after all that it needs.

    What is no key counts as there; a node that needs itself, over however many, is never yielded.
    """
    order = TopologicalSorter(needed)
    with suppress(CycleError):  # what is in no cycle comes all the same
        order.prepare()
    while ready := order.get_ready():
        yield from (name for name in ready if name in needed)
        order.done(*ready)


def cyclic(needed: Edges) -> list[str]:
    """Return the nodes that need themselves, or stand between two such, in the order given."""
    users = backwards(needed)
    turned = {name: users.get(name, ()) for name in needed}
    settled = {*upstream_first(needed), *upstream_first(turned)}
    return [name for name in needed if name not in settled]
