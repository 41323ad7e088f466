"""Something that is wrong with a plan."""

from dataclasses import dataclass
from typing import Literal

from semcache.canonical import Pointer, pointer_text

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
