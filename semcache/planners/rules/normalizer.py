"""The rule normalizer: from a prompt to a schema by the catalog's words, with no model.

Each operation is a frame, and the prompt is read in every frame that has a word of it. A reading
that accounts for every word wins; if two different ones do, or none does, the schema is partial.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from semcache.canonical import Json, dumps
from semcache.catalog.catalog import Catalog
from semcache.errors import NormalizationError
from semcache.planners.rules.constructs import read
from semcache.planners.rules.cursor import given_field
from semcache.planners.rules.draft import Filter, SchemaDraft
from semcache.planners.rules.frame import Frame, frames
from semcache.planners.rules.phrases import Token, tokenized, units
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema
from semcache.prompts.tokens import check_prompt
from semcache.prompts.vocabulary import Vocabulary

MAX_TOKENS = 400
"""Words and signs of a prompt that rules read; a longer one is a document, not one request."""

MAX_CATALOGS = 16
"""Catalogs whose frames are kept; a service has one, a test suite many."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The frames of a catalog, and which of them have a word."""

    frames: tuple[Frame, ...]
    by_word: Mapping[str, frozenset[int]]
    """First word of a phrase → places of the frames that know it."""

    def knowing(self, tokens: Sequence[Token]) -> list[Frame]:
        """Return the frames that know a word of the prompt."""
        places = {place for token in tokens for place in self.by_word.get(token.single, ())}
        return [self.frames[place] for place in sorted(places)]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a prompt says in one frame."""

    draft: SchemaDraft
    schema: PromptSchema

    @property
    def rank(self) -> tuple[bool, bool, int, bool]:
        """The lower, the better: complete, verb said, few words unexplained, named literally."""
        left = len(self.schema.unexplained)
        silent = not (self.draft.frame.reads or self.draft.verb)
        return left > 0 or bool(self.draft.missing), silent, left, not self.draft.literal

    @property
    def meaning(self) -> str:
        """What it asks for, values included."""
        params: Json = self.schema.env()
        return self.schema.identity + dumps(params)


class RuleNormalizer:
    """Prompts to schemas by rules over a catalog's vocabulary. Safe from several threads.

    It is humble: a word that nothing accounts for makes the schema partial, and a reading that is
    not certain leaves its words unexplained.
    """

    def normalize(
        self, prompt: str, *, catalog: Catalog, params: Sequence[Parameter] = ()
    ) -> PromptSchema:
        """Return the schema of `prompt`; partial if some of its words stay unexplained.

        A parameter that the caller gives counts with its own value, wherever its words stand; one
        that no operation has a field for stays unexplained.

        Raises:
            InvalidPrompt: the prompt is not usable text.
            NormalizationError: no word of it is in the vocabulary, or it is longer than one
                request can be.
        """
        text = check_prompt(prompt)
        tokens = tokenized(text)
        if len(tokens) > MAX_TOKENS:
            raise NormalizationError(
                f"the prompt has {len(tokens)} words and signs; rules read at most {MAX_TOKENS}. "
                "Shorten it, or use a normalizer with a model"
            )
        mentions = find_mentions(text, given=tuple(params))
        words = _words(catalog)
        readings = [
            _reading(frame, text, tokens, mentions, params) for frame in words.knowing(tokens)
        ]
        if not readings:
            raise NormalizationError(
                f"no word of the prompt {text[:80]!r} is in the vocabulary of the catalog; "
                "declare synonyms, or use a normalizer with a model"
            )
        return _best(readings)


@lru_cache(maxsize=MAX_CATALOGS)
def _words(catalog: Catalog) -> _Words:
    known = frames(catalog, Vocabulary.from_catalog(catalog))
    by_word: dict[str, set[int]] = {}
    for place, frame in enumerate(known):
        for phrase in frame.words:
            by_word.setdefault(phrase[0], set()).add(place)
    return _Words(known, {word: frozenset(places) for word, places in by_word.items()})


def _reading(
    frame: Frame,
    text: str,
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    params: Sequence[Parameter],
) -> _Reading:
    draft = read(frame, units(text, tokens, mentions, frame))
    located = {mention.name for mention in mentions if mention.source == "given"}
    for parameter in params:
        if parameter.name not in located:
            _add_given(draft, parameter)
    return _Reading(draft, draft.schema())


def _add_given(draft: SchemaDraft, parameter: Parameter) -> None:
    """Add a value that the caller holds and the prompt does not spell."""
    name = given_field(parameter.name)
    known = name in draft.frame.fields and draft.frame.takes(name, "=")
    one = Filter(name, "=", (parameter.value,), ("",))
    if not known or not draft.add(one):
        draft.unexplained.append(parameter.name)


def _best(readings: Sequence[_Reading]) -> PromptSchema:
    """Return the best schema; partial if two different ones are as good."""
    best = min(readings, key=lambda reading: reading.rank)
    rivals = {one.meaning for one in readings if one.rank == best.rank}
    if len(rivals) == 1 or best.schema.partial:
        return best.schema
    named = best.draft.entity.text if best.draft.entity is not None else best.schema.entities[0]
    return replace(best.schema, unexplained=(named,))
