"""The routes format: nodes by id, each with an operation or an end, and routes between them.

    {"start_node": {"vars": {…}?, "route": …},
     "<id>": {"operation": "<name>", "input": {…} | "$.path"?, "route": …},
     "<id>": {"completed": true, "vars": {…}?}}

A route is a node id, an object with one entry whose value is a node id, or a list of
`{"condition", "node"}` that ends in a node id. A text in `vars` or `input` that begins with `$` is
an expression over the results so far (`$.query.data`); `$$` begins a literal `$`.
Format: the engine of OneMCP, as in its document "Prompt Schema → Execution Plan Caching".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from semcache.canonical import Json, JsonObject, Pointer, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.errors import ExpressionError
from semcache.plans.document import Reference, WrittenPlan, texts
from semcache.plans.expressions import reads
from semcache.plans.finding import (
    PLACEHOLDER,
    Finding,
    breaches,
    endless,
    finding,
    kind,
    listed,
    misplaced,
    near,
    never_before,
    reachable,
    too_many,
    unbound,
)
from semcache.plans.paths import LAST_RESULT, is_expression, parse

START = "start_node"


@dataclass(frozen=True, slots=True, eq=False)
class RoutePlan(WrittenPlan):
    """A plan in the routes format; possibly malformed, which `plans.codec` tells."""

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


# What can be wrong with a plan in the routes format.

MAX_NODES = 10_000  # a plan with more is a mistake, and not worth the time of checking it

_VARS = f"put the value into the `vars` of {START!r} and read it as `$.{START}.<name>`"
_STRUCTURE = frozenset({"route", "operation", "completed"})


def check_routes(plan: RoutePlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return all findings on a plan in the routes format, by node in document order."""
    if hopeless := _too_many(plan):
        return hopeless
    found = [*_structure(plan, catalog), *_flow(plan), *_references(plan)]
    if catalog is not None:
        found += _inputs(plan, catalog)
    return _in_order(plan, found)


def check_route_values(plan: RoutePlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return what the values bound to a plan have made wrong, if all was well with its template.

    The rest cannot have changed: only inputs that hold bound data are looked at.
    """
    found = [*misplaced(plan.data, _is_structure, _VARS)]
    if catalog is not None:
        found += _inputs(plan, catalog, only=sorted({str(at[0]) for at in plan.data if at}))
    return tuple(found)


def broken_routes(plan: RoutePlan, catalog: Catalog) -> tuple[Finding, ...]:
    """Return what keeps an engine from starting: bad form, missing targets, unread expressions.

    Also operations that the catalog lacks, and placeholders that no value was bound to. Ends that
    cannot be reached and the like are no reason: the step budget answers for them.
    """
    return _too_many(plan) or _in_order(
        plan, [*_structure(plan, catalog), *unbound(plan.body, (), plan.data)]
    )


def _too_many(plan: RoutePlan) -> tuple[Finding, ...]:
    return too_many(len(plan.body), "nodes", most=MAX_NODES)


def _in_order(plan: RoutePlan, found: list[Finding]) -> tuple[Finding, ...]:
    order = {pointer_text((name,)): i for i, name in enumerate(plan.body)}
    return tuple(sorted(found, key=lambda f: order.get("/".join(f.path.split("/")[:2]), -1)))


def _structure(plan: RoutePlan, catalog: Catalog | None) -> Iterator[Finding]:
    yield from _whole(plan.body)
    yield from misplaced(plan.data, _is_structure, _VARS)
    for name, node in plan.body.items():
        if not isinstance(node, dict):
            yield finding((name,), f"is {kind(node)}; expected a node, which is an object")
            continue
        yield from _node(name, node, plan.data)
        if not is_end(node):
            yield from _route((name, "route"), node, plan.body)
        yield from _operation(name, node, catalog)
    for at, text in plan.expressions():
        yield from _unreadable(at, text)


def _whole(body: JsonObject) -> Iterator[Finding]:
    if "nodes" in body:
        yield finding(("nodes",), "is the legacy form; put each node at the top level by its id")
    if START not in body:
        yield finding((), f"has no {START!r}; expected one, with a route to the first node")
    if not body.keys() - {START}:
        yield finding((), f"has no node beside {START!r}; expected at least an end")


def _is_structure(at: Pointer) -> bool:
    return len(at) < 2 or at[1] in _STRUCTURE


def _node(name: str, node: JsonObject, data: frozenset[Pointer]) -> Iterator[Finding]:
    completed = node.get("completed", False)
    if not isinstance(completed, bool):
        yield finding((name, "completed"), f"is {kind(completed)}; expected true")
    if not isinstance(node.get("vars", {}), dict):
        yield finding((name, "vars"), f"is {kind(node['vars'])}; expected an object")
    if name == START or completed is True:
        yield from _calls_nothing(name, node)
    else:
        yield from _calls(name, node, data)


def _calls_nothing(name: str, node: JsonObject) -> Iterator[Finding]:
    what = "the start" if name == START else "an end"
    if "operation" in node:
        yield finding((name, "operation"), f"is never called, since {name!r} is {what}; remove it")
    if name == START and node.get("completed"):
        yield finding((name, "completed"), "stands on the start; expected a route to an end")


def _calls(name: str, node: JsonObject, data: frozenset[Pointer]) -> Iterator[Finding]:
    operation, given = node.get("operation"), node.get("input")
    if not isinstance(operation, str) or not operation.strip():
        yield finding(
            (name,), f"has the operation {operation!r}; expected a name, or `completed: true`"
        )
    readable = isinstance(given, str) and is_expression(given) and (name, "input") not in data
    if not (given is None or isinstance(given, dict) or readable):
        yield finding((name, "input"), f"is {kind(given)}; expected an object or a path `$.…`")


def _route(at: Pointer, node: JsonObject, body: JsonObject) -> Iterator[Finding]:
    match node.get("route"):
        case None:
            yield finding(at, "is missing; expected a node id, or `completed: true` on the node")
        case str() as target:
            yield from _target(at, target, body)
        case dict() as entries if len(entries) == 1:
            ((key, target),) = entries.items()
            yield from _target((*at, key), target, body)
        case dict() as entries:
            yield finding(at, f"has {len(entries)} entries; expected one, whose value is a node id")
        case list() as ways:
            yield from _ways(at, ways, body)
        case other:
            yield finding(at, f"is {kind(other)}; expected a node id, an object or a list")


def _ways(at: Pointer, ways: list[Json], body: JsonObject) -> Iterator[Finding]:
    if not ways:
        yield finding(at, "is empty; expected conditions and a node id at the end")
        return
    for i, way in enumerate(ways[:-1]):
        yield from _way((*at, i), way, body)
    if isinstance(ways[-1], str):
        yield from _target((*at, len(ways) - 1), ways[-1], body)
    else:
        yield finding(
            (*at, len(ways) - 1),
            f"is {kind(ways[-1])}; expected a node id, taken if no condition holds",
        )


def _way(at: Pointer, way: Json, body: JsonObject) -> Iterator[Finding]:
    if not isinstance(way, dict):
        yield finding(at, f"is {kind(way)}; expected an object with `condition` and `node`")
        return
    if not isinstance(way.get("condition"), str):
        yield finding((*at, "condition"), f"is {kind(way.get('condition'))}; expected text")
    yield from _target((*at, "node"), way.get("node"), body)


def _target(at: Pointer, target: Json, body: JsonObject) -> Iterator[Finding]:
    if not isinstance(target, str):
        yield finding(at, f"is {kind(target)}; expected a node id")
    elif target == START:
        yield finding(at, f"leads back to {START!r}; expected a node that can run again", "target")
    elif target not in body:
        what = f"leads to {target!r}, which is no node{near(target, _nodes(body))}"
        yield finding(at, what, "target")


def _nodes(body: JsonObject) -> Iterator[str]:
    return (name for name in body if name != START)


def _operation(name: str, node: JsonObject, catalog: Catalog | None) -> Iterator[Finding]:
    operation = node.get("operation")
    if catalog is None or not isinstance(operation, str) or not operation.strip():
        return
    if operation not in catalog:
        yield finding((name, "operation"), catalog.unknown(operation), "operation")


def _unreadable(at: Pointer, text: str) -> Iterator[Finding]:
    if PLACEHOLDER.search(text):
        yield finding(at, f"has a placeholder inside an expression; {_VARS}", "expression")
        return
    try:
        parse(text)
    except ExpressionError as error:
        literal = "" if at[1] == "route" else "; write `$$` for a literal `$`"
        yield finding(at, f"{error}{literal}", "expression")


def _flow(plan: RoutePlan) -> Iterator[Finding]:
    """Yield what never gets its turn, and what has its turn for ever."""
    edges = _edges(plan.body)
    reached = reachable(edges, [START])
    for name in plan.body:
        if name not in reached:
            yield finding(
                (name,), f"is unreachable from {START!r}; route to it or remove it", "unreachable"
            )
    # A route that is broken has its own finding, so that it counts as an end here.
    exits = [
        name
        for name, targets in edges.items()
        if not targets or any(t not in plan.body or t == START for t in targets)
    ]
    if stuck := endless(edges, reached, exits):
        what = f"leads to no end; these only lead to one another: {listed([*map(repr, stuck)])}"
        yield finding((stuck[0],), what, "endless")


def _edges(body: JsonObject) -> dict[str, tuple[str, ...]]:
    return {name: route_of(node).targets() for name, node in body.items()}


def _references(plan: RoutePlan) -> Iterator[Finding]:
    """Yield the references to what is no node, or cannot have run before the reader."""
    edges = _edges(plan.body)
    reached = reachable(edges, [START])
    wanted: dict[str, set[str]] = {}
    for reference in plan.references():
        reader = str(reference.at[0])
        if (
            reference.target in plan.body
            and reader in reached
            and not _own(reference.at, reference.target)
        ):
            wanted.setdefault(reference.target, set()).add(reader)
    impossible = set(never_before(edges, wanted))
    for reference in plan.references():
        reader = str(reference.at[0])
        if reference.target not in plan.body:
            guess = near(reference.target, _nodes(plan.body))
            what = f"reads {reference.target!r}, which is no node{guess}"
            yield finding(reference.at, what, "reference")
        elif (reference.target, reader) in impossible and not _own(reference.at, reference.target):
            what = f"reads {reference.target!r}, which cannot have run before {reader!r}"
            yield finding(reference.at, what, "reference")


def _own(at: Pointer, target: str) -> bool:
    """Return whether a node's route reads the node itself, which has run by then."""
    return at[:2] == (target, "route")


def _inputs(
    plan: RoutePlan, catalog: Catalog, only: Iterable[str] | None = None
) -> Iterator[Finding]:
    """Yield the literal inputs that break the schema of their operation; of all nodes or some."""
    for name in plan.body if only is None else only:
        node = plan.body.get(name)
        if not isinstance(node, dict) or is_end(node) or name == START:
            continue
        operation, given = node.get("operation"), node.get("input") or {}
        if isinstance(operation, str) and operation in catalog and isinstance(given, dict):
            at = (name, "input")
            unknown = _unknown(given, at, plan.data)
            yield from breaches(given, at, unknown=unknown, catalog=catalog, operation=operation)


def _unknown(given: JsonObject, at: Pointer, data: frozenset[Pointer]) -> Iterator[Pointer]:
    """Yield the places in `given` whose values are known only when the plan runs."""
    return (
        place[len(at) :]
        for place, text in texts(given, at, data)
        if is_expression(text) or "{{" in text
    )
