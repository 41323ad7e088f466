"""A plan template: a plan, where the values of a prompt go in it, and which values must stay."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, cast

from semcache.binding.bind import Recipe
from semcache.binding.bindings import WHY, Binding, Pin, Why
from semcache.canonical import Json, JsonObject, Pointer, dumps, pointer_text
from semcache.errors import BindingError
from semcache.plans.document import LISTED
from semcache.process.memo import memoized
from semcache.prompts.parameter import Parameter

if TYPE_CHECKING:
    from semcache.binding.template_schema import TemplateDoc

__all__ = ["VERSION", "Binding", "Pin", "PlanTemplate", "Why"]

VERSION = 1  # of the JSON form


@dataclass(frozen=True, slots=True)
class PlanTemplate:
    """A plan with its bindings: what the cache stores. Immutable; equal by content."""

    plan: JsonObject
    """The plan that it was made from. Shared with the plans bound from it: never change it."""
    bindings: tuple[Binding, ...]
    """In document order."""
    params: tuple[Parameter, ...]
    """What the plan depends on, with the source prompt's values: the caller's first, then one for
    each other mention of the prompt (`number1`, `date1`). `bind` wants a value for each."""
    pinned: tuple[Pin, ...] = ()
    """Values that must stay what they were."""
    equal: tuple[frozenset[str], ...] = ()
    """Names of parameters that must have equal values, as they had in the source prompt."""
    format: str = "document"
    """Format of the plan: `routes`, `tasks`, `program` or `document`."""
    carriers: tuple[str, ...] = ()
    """For each mention that `generalize` was given, in order: the parameter it carries."""
    refusal: str = ""
    """Why this template must not be stored at all; empty if it may be."""
    perishable: str = ""
    """The words whose meaning changes with the day ("yesterday") and may be frozen in the plan, so
    that it must not be served on another day; empty if it may be served at any time."""
    fading: bool = False
    """Whether it is `perishable` only where values are read from words: a caller that gives every
    value by name may be served on another day."""
    recipe: Recipe = field(init=False, repr=False, compare=False)
    """How to bind it quickly."""

    def __post_init__(self) -> None:
        recipe = Recipe.of(self.params, self.bindings, self.pinned, self.equal, self.follows)
        object.__setattr__(self, "recipe", recipe)

    @property
    def follows(self) -> Mapping[str, str]:
        """Parameters that no mention carries because another one with the same words has it.

        In "since 8 months ago", once the 8 of `ago1`, it may be that of `ago2` too. Both are in one
        group of `equal`; `bind` takes the value of the other where this one has none.
        """
        return shared_words(self.params, self.carriers)

    @property
    def places(self) -> Mapping[str, tuple[str, ...]]:
        """Name of each parameter that is bound → where in the plan, as JSON pointers."""
        found: dict[str, list[str]] = {}
        for binding in self.bindings:
            at = binding.at[1:] if binding.at[0] == LISTED else binding.at
            found.setdefault(binding.param, []).append(pointer_text(at))
        return {name: tuple(dict.fromkeys(places)) for name, places in found.items()}

    @property
    def held(self) -> Mapping[str, str]:
        """Name of each parameter that is pinned → its value and why, in words for users."""
        return {pin.param: f"{dumps(pin.value)}: {WHY[pin.why]}" for pin in reversed(self.pinned)}

    def to_json(self) -> JsonObject:
        """Return the template as JSON.

        Raises:
            BindingError: the template has a `refusal`; it must not be kept.
        """
        if self.refusal:
            raise BindingError(f"this plan cannot be reused: {self.refusal}", reason="refused")
        return {
            "version": VERSION,
            "format": self.format,
            "plan": self.plan,
            "params": [[p.name, p.value, p.mention] for p in self.params],
            "bindings": [_binding_to_json(b) for b in self.bindings],
            "pinned": [[p.param, list(p.path), p.value, p.why, *p.echo] for p in self.pinned],
            "equal": [cast("list[Json]", sorted(group)) for group in self.equal],
            "carriers": list(self.carriers),
            "perishable": self.perishable,
            "fading": self.fading,
        }

    @classmethod
    def of(cls, doc: "TemplateDoc") -> Self:
        """Return the template of JSON that its schema has read.

        Raises:
            InvalidParameter: the name of a parameter is blank.
        """
        return cls(
            plan=doc["plan"],
            bindings=tuple(_binding(*row) for row in doc["bindings"]),
            params=tuple(
                Parameter(sys.intern(name), value, said) for name, value, said in doc["params"]
            ),
            pinned=tuple(
                Pin(param, value, why, path, echo)
                for param, path, value, why, echo in doc["pinned"]
            ),
            equal=tuple(map(frozenset, doc["equal"])),
            format=doc["format"],
            carriers=tuple(map(sys.intern, doc["carriers"])),
            perishable=doc["perishable"],
            fading=doc["fading"],
        )


def shared_words(params: Sequence[Parameter], carriers: Sequence[str]) -> dict[str, str]:
    """Return, for each parameter that no mention carries, the one that has its words, if any."""
    carrying = frozenset(carriers)
    said = [(p.name, p.mention.casefold()) for p in params if p.mention is not None]
    carried = {words: name for name, words in said if name in carrying}
    return {n: carried[w] for n, w in said if n not in carrying and w in carried}


def _binding_to_json(binding: Binding) -> Json:
    row: list[Json] = [list(binding.at), binding.param, binding.codec, list(binding.path)]
    return [*row, binding.before, binding.after] if binding.inline else row


def _binding(at: Pointer, param: str, codec: str, path: Pointer, around: Sequence[str]) -> Binding:
    before, after = around or ("", "")
    return _shared(Binding(at, sys.intern(param), codec, path, bool(around), before, after))


@memoized(2_000)
def _shared(binding: Binding) -> Binding:
    """Return the first equal one: plans of one shape have theirs in the same places."""
    return binding
