"""Findings: something that is wrong with a plan, and what checks of every format say of inputs."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
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


def unbound(value: Json, at: Pointer, data: frozenset[Pointer]) -> Iterator[Finding]:
    """Yield each text in `value`, which stands at `at`, that still has a placeholder."""
    for place, text in texts(value, at, data):
        if PLACEHOLDER.search(text):
            yield finding(place, f"is {text!r}, to which no value was bound")


def near(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of the first hundred names; empty if none is."""
    found = get_close_matches(name, list(islice(known, 100)), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


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
