"""The rows that a transform works on, and the words and values that say by what."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from semcache.canonical import Json
from semcache.catalog.builtin import ASK_USER
from semcache.planners.arguments.data_edges import given_by, item_fields, list_path
from semcache.planners.arguments.operation_index import known_as
from semcache.planners.arguments.step_words import MASK
from semcache.planners.rows import likely
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Referral, Resolution, ResolutionContext, unclear
from semcache.planners.transforms import SORT
from semcache.prompts.parameter import Parameter
from semcache.prompts.words import ARTICLES, CLOSED_CLASS, singular

ROW_WORDS = frozenset(
    "entries entry it item items of one ones record records result results row rows the them "
    "these those".split()
)
"""Words that mean the rows themselves, whatever they are."""
_WORD = re.compile(rf"{MASK}+|[^\W_][\w'-]*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class StepRows:
    """What a transform works on."""

    step: str
    path: tuple[str, ...]
    fields: dict[str, Json]
    """Field → its schema; empty if unknown."""
    nouns: frozenset[str]
    """Singular words of what the rows are."""
    falling: bool
    """Whether they stand in a falling order, so that the first are the top ones."""

    def field(self, said: Sequence[str]) -> str | None:
        """Return the field that words name: as the rows spell it, or as said if that is unknown.

        None if the fields are known and none, or more than one, is named so; or if the words are
        grammar, which names no field.
        """
        phrase = "_".join(said)
        for found in likely(self.fields, phrase):
            if found:
                return found[0] if len(found) == 1 else None
        if self.fields or not said or len(said) > 3 or not CLOSED_CLASS.isdisjoint(said):
            return None
        return phrase

    def is_noun(self, word: str) -> bool:
        """Return whether a word only says what the rows are."""
        return word in ROW_WORDS or singular(word) in self.nouns


@dataclass(frozen=True, slots=True)
class RowTerm:
    """A word, a sign or a value of what a transform is by."""

    text: str
    """As it stands there."""
    value: Parameter | None = None

    @property
    def word(self) -> str:
        """The text in lower case."""
        return self.text.lower()


def terms_of(intent: SubIntent) -> list[RowTerm]:
    """Return what a transform is by, without articles."""
    text, held = intent.topic, dict[int, Parameter]()
    for param in sorted(intent.params, key=lambda one: -len(one.mention or "")):
        at = text.find(param.mention) if param.mention else -1
        if param.mention and at >= 0:
            held[at] = param
            text = text[:at] + MASK * len(param.mention) + text[at + len(param.mention) :]
    found = (RowTerm(m[0], held.get(m.start())) for m in _WORD.finditer(text))
    return [one for one in found if one.value is not None or one.word not in ARTICLES]


def rows_before(before: Resolution, asked: ResolutionContext) -> StepRows:
    """Return what the step before gives; a transform gives rows like those it took."""
    if before.operation == ASK_USER or before.operation not in asked.catalog:
        return StepRows(before.intent, (), {}, frozenset(), falling=False)
    source = given_by(before, asked)
    operation = asked.catalog.get(source.operation)
    return StepRows(
        before.intent,
        list_path(operation.output_schema) if source is before else (),
        item_fields(operation.output_schema),
        frozenset(known_as(operation, asked.catalog).nouns),
        falling=before.operation == SORT and before.input.get("order") == "desc",
    )


def lost(intent: SubIntent, left: Sequence[RowTerm]) -> Referral:
    """Return that terms would be lost."""
    told = ", ".join(repr(one.value.mention if one.value else one.text) for one in left)
    return unclear(intent, f"nothing built in accounts for {told} in {intent.goal!r}")


def no_field(intent: SubIntent, said: Sequence[RowTerm], rows: StepRows) -> Referral:
    """Return the question which field terms mean."""
    if not said:
        return unclear(intent, f"{intent.goal!r} does not say by what")
    names = tuple(rows.fields)
    told = f": {', '.join(map(repr, names[:20]))}" if names else ""
    spelled = " ".join(one.value.mention or "" if one.value else one.text for one in said)
    question = f"Which field is meant by {spelled!r} in {intent.goal!r}{told}?"
    return Referral(intent=intent.id, kind="which", question=question, options=names)


def field_named(terms: Sequence[RowTerm], rows: StepRows) -> str | None:
    """Return the field that all of the terms name."""
    if any(one.value is not None for one in terms):
        return None
    return rows.field([one.word for one in terms])
