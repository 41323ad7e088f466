"""Extraction: how an entry gets its values from another prompt."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from semcache.binding.codecs import Wording
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json
from semcache.prompts.parameter import name_key, type_key


@dataclass(frozen=True, slots=True)
class SlotExtraction:
    """How the words in one slot become the value of the parameter that the slot carries."""

    name: str
    """Name of the parameter."""
    key: str
    """The name, free of spelling."""
    type: str
    """Slot type that the name stands for."""
    named: bool
    """Whether the parameter came with the plan; else it was read from the prompt."""
    how: Wording
    source: str
    """The words of the prompt that the plan was made for."""
    value: Json
    """The value that those words had."""


@dataclass(frozen=True, slots=True)
class EntryExtraction:
    """How an entry gets its values from another prompt."""

    slots: tuple[SlotExtraction, ...]
    """One for each slot of the template text, in order."""
    names: Mapping[str, str]
    """Name of a parameter, free of spelling → the name as the plan has it."""
    unsaid: Mapping[str, Json]
    """Parameters that no slot carries and that follow no other → their stored values."""
    is_dated: bool
    """Whether a value depends on the day of asking."""

    @classmethod
    def of(
        cls, plan: PlanTemplate, named: Collection[str], wordings: Mapping[str, Wording]
    ) -> "EntryExtraction":
        """Return the reading of an entry of these parts."""
        params = {p.name: p for p in plan.params}
        elsewhere = {*plan.carriers, *plan.follows}
        return cls(
            slots=tuple(
                SlotExtraction(
                    name=name,
                    key=name_key(name),
                    type=type_key(name),
                    named=name in named,
                    how=wordings[name],
                    source=params[name].mention or "",
                    value=params[name].value,
                )
                for name in plan.carriers
            ),
            names={name_key(name): name for name in params},
            unsaid={n: p.value for n, p in params.items() if n not in elsewhere},
            is_dated="dated" in [wordings[name] for name in plan.carriers],
        )
