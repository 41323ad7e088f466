"""Evidence: what the words of a step say for an operation: its verb, its noun, its summary.

Each piece is in [0, 1]. "list issues" is `list_issues` and not `list_issue_types`, because every
word of a name that was not said counts against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.catalog.catalog import Catalog
from semcache.planners.arguments.operation_index import (
    READING,
    VERBS,
    Known,
    OperationIndex,
    content,
)
from semcache.planners.arguments.placing import is_guess
from semcache.planners.steps.intents import SubIntent
from semcache.prompts.parameter import Parameter
from semcache.prompts.tokens import tokens
from semcache.prompts.words import singular

_OWN_VERB = 0.7
"""Least evidence of the noun where the verb itself says what is done: "transfer 500 to B-2"."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each piece of evidence counts; they add up to 1."""

    verb: float
    noun: float
    told: float
    values: float


WORDS = Weights(0.25, 0.45, 0.15, 0.15)
"""For a step whose values were only found in its words."""
NAMED = Weights(0.2, 0.3, 0.15, 0.35)
"""For a caller who gives the values by name: which operation takes them says much."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a step says, in words as operations are named."""

    verb: str
    action: str
    words: tuple[str, ...]
    """Singular content words of the step, its verb included, without values of open classes."""

    @classmethod
    def of(cls, intent: SubIntent, catalog: Catalog, given: Sequence[Parameter] = ()) -> "Said":
        """Return what `intent` says; words that the catalog has synonyms for count as these too.

        `given` are the values of the caller, whose words are values and nothing else.
        """
        text = intent.goal
        for param in sorted(intent.params, key=lambda one: -len(one.mention or "")):
            # A listed value may be a noun as well: `issue` is a type of item somewhere.
            if param.mention and (is_guess(param.name) or param in given):
                text = text.replace(param.mention, " , ", 1)
        said = list(content(text))
        found = {*said, *(singular(word) for word in tokens(text))}
        for word, meant in catalog.synonyms.items():
            if {singular(one) for one in tokens(word)} <= found:
                said += content(meant)
        verb = intent.verb or next((word for word in said if word in VERBS), "")
        action = intent.action if intent.action != "other" else VERBS.get(verb, "other")
        return cls(verb.lower(), action, tuple(dict.fromkeys(said)))


def verb_evidence(said: Said, known: Known) -> float | None:
    """Return how well verbs agree, in [0, 1]; None if one shows something and the other does it."""
    if said.verb == known.verb or known.verb in said.words:
        return 1.0
    reading = said.action in READING
    if said.action != "other" and reading != known.reads:
        return None
    if said.verb and not known.reads:  # to cancel is not to delete
        return 1.0 if said.action == known.action != "other" else None
    if "other" in {said.action, known.action}:  # verbs of their own, and not the same one
        return 0.2 if said.verb else 0.5
    if said.action == known.action:
        return 1.0
    return 0.5 if reading else None


def noun_evidence(said: Said, known: Known, index: OperationIndex) -> float:
    """Return how much of an operation's noun was said, and of what was said is its noun, in [0, 1].

    Words that few operations have count more than those that all have.
    """
    own = set(known.nouns)
    named = {word for word in said.words if word not in VERBS and word != said.verb}
    if not own or not named:
        return 0.0

    def weight(words: set[str]) -> float:
        return sum(index.rarity(word) for word in words)

    shared = weight(own & named)
    if not shared:
        return 0.0
    # What else was said may be about values and inputs: it counts only if a name could have it.
    others = {word for word in named - own if index.is_noun(word)}
    precision, recall = shared / weight(own), shared / (shared + weight(others))
    return 2 * precision * recall / (precision + recall)


def told_evidence(said: Said, known: Known) -> float:
    """Return which share of what was said the operation tells of in any way, in [0, 1]."""
    words = [word for word in said.words if word != said.verb and word not in VERBS]
    if not words:
        return 1.0
    tells = known.told | known.inputs | {*known.nouns, known.verb}
    return sum(word in tells for word in words) / len(words)


@dataclass(frozen=True, slots=True)
class Scored:
    """An operation and what its words alone count."""

    known: Known
    score: float
    why: str


def scored(said: Said, known: Known, index: OperationIndex, weights: Weights) -> Scored | None:
    """Return what the words of a step count for an operation; None if its verb rules it out."""
    verb = verb_evidence(said, known)
    if verb is None:
        return None
    noun, told = noun_evidence(said, known, index), told_evidence(said, known)
    if known.action == "other" and known.verb in said.words:
        noun = max(noun, _OWN_VERB)
    score = weights.verb * verb + weights.noun * noun + weights.told * told
    return Scored(known, score, f"verb {verb:.2f}, noun {noun:.2f}, summary {told:.2f}")
