"""Asking: a prompt and what is known of its tenant, as features and proof see them."""

from dataclasses import dataclass, field

from semcache.matching.beliefs import Beliefs
from semcache.matching.evidence import Evidence
from semcache.matching.families import Families
from semcache.prompts.template import Slot
from semcache.prompts.unseen.supposition import Supposed


@dataclass(frozen=True, slots=True)
class Asking:
    """What is known of the prompt and its tenant."""

    words: tuple[str, ...]
    """Content words of the prompt's template text."""
    slots: tuple[Slot, ...]
    given: bool
    """Whether the caller gave the values."""
    evidence: Evidence
    families: Families
    text: str = ""
    """Its template text."""
    supposed: tuple[Supposed, ...] = ()
    """Values of the prompt that were supposed."""
    known: Beliefs | None = field(default=None, repr=False, compare=False)
    """What was made of the evidence before; None if nothing was."""

    @property
    def beliefs(self) -> Beliefs:
        """What the evidence says of words."""
        return self.known or Beliefs(self.evidence)
