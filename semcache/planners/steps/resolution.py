"""Resolution: which operation does a step, with which values; or the question to ask instead.

What comes out of a resolver is one of three values, never an exception and never a guess: a
`Resolution`, a `Referral` (a question for a person, or for the decomposition), or `NoTool`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.planners.steps.intents import SubIntent
from semcache.prompts.parameter import Parameter

Source: TypeAlias = Literal["suggested", "learned", "catalog", "builtin"]
"""Which strategy found an operation."""


@dataclass(frozen=True, slots=True)
class DataEdge:
    """A property that takes what a step before gives."""

    property: str
    step: str
    """Id of the step that gives it."""
    path: tuple[str, ...] = ()
    """Members that lead from the step's result to the value; empty for the whole result."""
    each: bool = False
    """Whether `path` leads to a list and the property takes one of it: a call for each item."""
    item: str = ""
    """The member of an item that is the value; empty for the item itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """An operation for a step, and what is known of its input."""

    intent: str
    """Id of the step."""
    operation: str
    """A name of the catalog."""
    input: JsonObject = field(default_factory=dict)
    """Its input so far, with `{{params.x}}` for each value of the prompt."""
    params: tuple[Parameter, ...] = ()
    """The values that the placeholders of `input` stand for, as the operation takes them."""
    wires: tuple[DataEdge, ...] = ()
    """Properties that take what steps before give, each once."""
    source: Source = "catalog"
    why: str = ""
    """What speaks for it, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Referral:
    """A step that needs a person, or a better decomposition: the question to ask."""

    intent: str
    kind: Literal["which", "missing", "none"]
    """`which`: several operations or properties would do; `missing`: a value is not known; `none`:
    nothing does it well enough."""
    question: str
    """The question as a person reads it."""
    options: tuple[str, ...] = ()
    """What can be answered to `which`, best first: operations, or properties."""
    operation: str = ""
    """The operation that lacks a value; empty unless `missing`."""
    missing: tuple[str, ...] = ()
    """The properties that lack a value."""


def unclear(intent: SubIntent, why: str) -> Referral:
    """Return why nothing does a step."""
    return Referral(intent=intent.id, kind="none", question=why)


def which(intent: SubIntent, options: tuple[str, ...], said: str) -> Referral:
    """Return the question which of several operations is meant."""
    question = f"Which of {', '.join(map(repr, options))} is meant by {said!r}?"
    return Referral(intent=intent.id, kind="which", question=question, options=options)


@dataclass(frozen=True, slots=True)
class NoTool:
    """The decomposition looked at the operations and said that none does this step."""

    intent: str
    why: str


Resolved: TypeAlias = Resolution | Referral | NoTool
"""What comes of resolving a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionContext:
    """What a resolver may know beside the step itself."""

    prompt: str
    catalog: Catalog
    params: tuple[Parameter, ...] = ()
    """Values that the caller holds already, by name."""
    before: Mapping[str, Resolution] = field(default_factory=lambda: MappingProxyType({}))
    """Step → its operation, for the steps that were resolved before."""
    tenant: str = "default"
    """Whose prompt it is."""
    alone: bool = False
    """Whether the step is all that the prompt asks for, so that every value is for it."""


class Resolver(Protocol):
    """Finds the operation for a step. Safe from several threads."""

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return an operation with its input, or the question to ask.

        An operation that comes back is in the catalog, its input fits what is known of its schema,
        and every value said for the step is used.
        """
