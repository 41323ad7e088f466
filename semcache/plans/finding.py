"""Findings: what is wrong with a plan, and how the checks of all formats find it."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Literal

from semcache.canonical import Json, JsonObject, Pointer, pointer_text
from semcache.catalog.catalog import Catalog
from semcache.catalog.schemas import Violation
from semcache.plans.document import texts

Code = Literal[
    "shape",  # not of the form that its format prescribes
    "target",  # goes to a node that is not there
    "expression",  # a path or condition that cannot be read
    "operation",  # calls what the catalog does not have
    "input",  # the input breaks the schema of the operation
    "reference",  # reads what cannot have run before it
    "unreachable",  # never gets its turn
    "endless",  # gets its turn, but no end can be reached from it
]
"""What kind of wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a plan, and where."""

    path: str
    """Where in the plan, by RFC 6901: `/query/input/limit`; empty for the whole."""
    what: str
    """What was found, what was expected, and the way out."""
    code: Code

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.what}"


def finding(at: Pointer, what: str, code: Code = "shape") -> Finding:
    """Return what is wrong at a place of a plan."""
    return Finding(pointer_text(at), what, code)


def too_many(count: int, what: str, *, most: int, at: Pointer = ()) -> tuple[Finding, ...]:
    """Return the finding that a plan has more parts than anybody means, if it has."""
    if count <= most:
        return ()
    return (finding(at, f"has {count:,} {what}; expected at most {most:,}"),)


# What the checks of every format say about inputs, placeholders and values of a wrong kind.

PLACEHOLDER = re.compile(r"\{\{\s*params\.")
"""Where a placeholder for a parameter begins."""

# Keywords that hold of a container whatever values its unknown leaves will have.
_CERTAIN = frozenset({"required", "additionalProperties", "type", "minItems", "maxItems"})


def breaches(
    given: JsonObject,
    at: Pointer,
    *,
    unknown: Iterable[Pointer],
    catalog: Catalog,
    operation: str,
) -> Iterator[Finding]:
    """Yield each way in which an input breaks the schema of its operation, whatever is to come.

    `given` stands at `at` in the plan; `unknown` are the places in it whose values are known only
    when the plan runs, looked at only if something is broken.
    """
    violations = catalog.violations(operation, given)
    places = frozenset(unknown) if violations else frozenset()
    for violation in violations:
        if _holds(violation, places):
            what = f"breaks the schema of {operation!r}: {violation.what}"
            yield finding((*at, *violation.at), what, "input")


def _holds(violation: Violation, unknown: Collection[Pointer]) -> bool:
    """Return whether a violation stays, whatever the unknown values turn out to be."""
    at = violation.at
    if at in unknown:
        return False
    above = any(place[: len(at)] == at for place in unknown)
    return not above or violation.keyword in _CERTAIN


def misplaced(
    data: Iterable[Pointer], is_structure: Callable[[Pointer], bool], way: str, *, of: str = "plan"
) -> Iterator[Finding]:
    """Yield where a value of the prompt stands in the structure of a plan; `way`: the way out."""
    for at in sorted(data, key=pointer_text):
        if is_structure(at):
            what = f"holds a value of the prompt where the {of} itself is expected; {way}"
            yield finding(at, what)


def unbound(value: Json, at: Pointer, data: frozenset[Pointer]) -> Iterator[Finding]:
    """Yield each text in `value`, which stands at `at`, that still has a placeholder."""
    for place, text in texts(value, at, data):
        if PLACEHOLDER.search(text):
            yield finding(place, f"is {text!r}, to which no value was bound")


def near(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of the first hundred names; empty if none is."""
    found = get_close_matches(name, list(islice(known, 100)), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def listed(names: Sequence[str]) -> str:
    """Return the first five names with commas between; `…` stands for further ones."""
    return ", ".join(names[:5]) + ("…" if len(names) > 5 else "")


def kind(value: Json) -> str:
    """Return what sort of value this is, in words: `the text 'abc'`, `a list`."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case str():
            return f"the text {value[:40]!r}"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "an object"


# Which nodes can be reached from which, in plans whose nodes lead to one another.

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


def endless(edges: Edges, reached: set[str], exits: Iterable[str]) -> list[str]:
    """Return the nodes of `reached`, in the order of `edges`, from which no exit can be reached."""
    saved = reachable(backwards(edges), exits)
    return [name for name in edges if name in reached and name not in saved]


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
