"""The routes format: nodes by id, each with an operation or an end, and routes between them.

    {"start_node": {"vars": {…}?, "route": …},
     "<id>": {"operation": "<name>", "input": {…} | "$.path"?, "route": …},
     "<id>": {"completed": true, "vars": {…}?}}

A route is a node id, an object with one entry whose value is a node id, or a list of
`{"condition", "node"}` that ends in a node id. A text in `vars` or `input` that begins with `$` is
an expression over the results so far (`$.query.data`); `$$` begins a literal `$`.
Format: the engine of OneMCP, as in its document "Prompt Schema → Execution Plan Caching".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from semcache.canonical import Json, Pointer
from semcache.errors import ExpressionError
from semcache.plans.document import WrittenPlan, texts
from semcache.plans.plan import Reference
from semcache.plans.references.expressions import reads
from semcache.plans.references.paths import LAST_RESULT, is_expression, parse

START = "start_node"


@dataclass(frozen=True, slots=True, eq=False)
class RoutePlan(WrittenPlan):
    """A plan in the routes format; possibly malformed, which `plans.checks` tells."""

    format: ClassVar[str] = "routes"

    def operations(self) -> tuple[str, ...]:
        """Return the names of the operations that the plan may call, sorted, each once."""
        named = [node.get("operation") for node in self.body.values() if isinstance(node, dict)]
        return tuple(sorted({name for name in named if isinstance(name, str)}))

    def references(self) -> tuple[Reference, ...]:
        """Return every reference of a node to the result of a node, in document order."""
        return tuple(
            Reference(at, target, text)
            for at, text in self.expressions()
            for target in _targets(text)
        )

    def expressions(self) -> Iterator[tuple[Pointer, str]]:
        """Yield each expression with its place: in inputs and variables, and the conditions."""
        for name, node in self.body.items():
            if not isinstance(node, dict):
                continue
            for part in ("vars", "input"):
                for at, text in texts(node.get(part), (name, part), self.data):
                    if is_expression(text):
                        yield at, text
            for i, branch in enumerate(route_of(node).branches):
                yield (name, "route", i, "condition"), branch.condition


@dataclass(frozen=True, slots=True)
class Branch:
    """A way that is taken if its condition is truthy."""

    condition: str
    node: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where a node leads."""

    branches: tuple[Branch, ...] = ()
    """Tried in order."""
    otherwise: str = ""
    """Taken if no branch is; empty for an end."""

    def targets(self) -> tuple[str, ...]:
        """Return the nodes that it may lead to, in order."""
        last = (self.otherwise,) if self.otherwise else ()
        return (*(branch.node for branch in self.branches), *last)


def is_end(node: Json) -> bool:
    """Return whether `node` ends the plan."""
    return isinstance(node, dict) and node.get("completed") is True


def route_of(node: Json) -> Route:
    """Return where `node` leads; of a malformed route, what can be read."""
    route = node.get("route") if isinstance(node, dict) and not is_end(node) else None
    match route:
        case str():
            return Route(otherwise=route)
        case dict() if len(route) == 1:
            (only,) = route.values()
            return Route(otherwise=only if isinstance(only, str) else "")
        case list():
            last = route[-1] if route else ""
            branches = tuple(filter(None, map(_branch, route)))
            return Route(branches, last if isinstance(last, str) else "")
        case _:
            return Route()


def _branch(entry: Json) -> Branch | None:
    if not isinstance(entry, dict):
        return None
    condition, node = entry.get("condition"), entry.get("node")
    if isinstance(condition, str) and isinstance(node, str):
        return Branch(condition, node)
    return None


def _targets(text: str) -> tuple[str, ...]:
    """Return the nodes that an expression reads, each once; none if it cannot be read."""
    try:
        found = dict.fromkeys(reads(parse(text)))
    except ExpressionError:
        return ()
    return tuple(name for name in found if name != LAST_RESULT)
