"""What of a prompt a model's schema leaves out, and what of the schema nobody said."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from semcache.binding.codecs import alike
from semcache.canonical import Json
from semcache.errors import InvalidParameter
from semcache.prompts.mentions import Mention, find_mentions, locate_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.schema import PromptSchema, operator_name
from semcache.prompts.tokens import tokens
from semcache.prompts.vocabulary import Vocabulary
from semcache.prompts.words import NEGATION, singular

_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_NEGATED = frozenset({"not_equals", "not_in", "not_contains", "is_not_null", "is_null"})


@dataclass(frozen=True, slots=True)
class Account:
    """A schema beside its prompt."""

    schema: PromptSchema
    """With the words that carry its values, and in `unexplained` what it leaves out."""
    unsaid: tuple[str, ...]
    """What is wrong with values that the prompt does not say, for the model; such a schema is of
    no use."""
    left: tuple[str, ...]
    """What is wrong with what it leaves out or groups by, for the model; it is partial."""


def account_for(
    schema: PromptSchema, prompt: str, vocabulary: Vocabulary, given: Iterable[Parameter]
) -> Account:
    """Return what `schema` and `prompt` have that the other has not.

    A value is said if it stands in the prompt, if words that the model names say it (as a number,
    a date, a label of the field), or if the caller gave it. Words without a figure may stand for a
    listed value ("California" for CA); a figure is never taken on trust.
    """
    said = {name_key(one.name): one.value for one in given}
    mentions: dict[str, str] = {}
    unsaid: list[str] = []
    for parameter in schema.parameters():
        words = _words(parameter, prompt, vocabulary)
        if words is not None:
            mentions[parameter.name] = words
        elif not _given(parameter, said) and not _items_said(parameter, prompt, vocabulary):
            unsaid.append(
                f"the value {parameter.value!r} of '{parameter.name}' is not said in the request; "
                "leave it out, or copy into `mentions` the exact words that say it"
            )
    schema = replace(schema, mentions=mentions)
    left = tuple(dict.fromkeys(_left(schema, prompt, vocabulary)))
    groups = tuple(_unsaid_groups(schema, prompt, vocabulary))
    told = [
        f"the request says {words!r}, and nothing in the schema has it; express it, or list it in "
        "`unexplained`"
        for words in left
    ]
    told += (f"group_by has {one!r}, of which the request says no word" for one in groups)
    unexplained = tuple(dict.fromkeys((*schema.unexplained, *left, *groups)))
    return Account(replace(schema, unexplained=unexplained), tuple(unsaid), tuple(told))


def _given(parameter: Parameter, said: Mapping[str, Json]) -> bool:
    """Return whether the caller gave the value, under the name of the field or of the whole."""
    for name in (parameter.name, parameter.name.partition(".")[0]):
        if name_key(name) in said and alike(said[name_key(name)], parameter.value):
            return True
    return False


# What the schema has ───────────────────────────────────────────────────────────────────────────


def _words(parameter: Parameter, prompt: str, vocabulary: Vocabulary) -> str | None:
    """Return the words of the prompt that carry a value; None if none do."""
    named = _located(prompt, parameter) if parameter.mention else None
    if named is not None and _says(named, parameter, vocabulary):
        return named
    plain = _located(prompt, replace(parameter, mention=None))
    if plain is not None:
        return plain
    field = parameter.name.partition(".")[0]
    for mention in find_mentions(prompt, closed=vocabulary.closed):
        if alike(mention.value, parameter.value):
            return mention.text
    labels = vocabulary.labels.get(field, {})
    spoken: dict[str, Json] = {**vocabulary.synonyms, **labels}
    meant = (words for words, value in spoken.items() if alike(value, parameter.value))
    return next(filter(None, (_located(prompt, Parameter(field, words)) for words in meant)), None)


def _located(prompt: str, parameter: Parameter) -> str | None:
    try:
        found = locate_mentions(prompt, [parameter])
    except InvalidParameter:
        return None
    return found[0].text if found else None


def _items_said(parameter: Parameter, prompt: str, vocabulary: Vocabulary) -> bool:
    value = parameter.value
    if not isinstance(value, list) or not value:
        return False
    items = (Parameter(parameter.name, item) for item in value)
    return all(_words(item, prompt, vocabulary) is not None for item in items)


def _says(words: str, parameter: Parameter, vocabulary: Vocabulary) -> bool:
    """Return whether `words` may carry the value of a parameter."""
    value = parameter.value
    field = parameter.name.partition(".")[0]
    found = find_mentions(words, closed=vocabulary.closed)
    if alike(words, value) or any(alike(mention.value, value) for mention in found):
        return True
    known: dict[str, Json] = {**vocabulary.synonyms, **vocabulary.labels.get(field, {})}
    folded = {spelled.casefold(): meant for spelled, meant in known.items()}
    if words.casefold() in folded:
        return alike(folded[words.casefold()], value)
    figures = set(_NUMBERS.findall(value if isinstance(value, str) else str(value)))
    if figures:
        spoken = {*_NUMBERS.findall(words), *(str(mention.value) for mention in found)}
        return isinstance(value, str) and figures <= spoken
    return isinstance(value, str) and not any(_of_field(mention, field) for mention in found)


def _of_field(mention: Mention, field: str) -> bool:
    """Return whether a mention is a figure, or a listed value of the field: it is what it says."""
    return mention.name == field or any(char.isdigit() for char in str(mention.value))


# What the prompt says ──────────────────────────────────────────────────────────────────────────


def _left(schema: PromptSchema, prompt: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the values, words of the vocabulary and negations that the schema leaves out."""
    waived = " ".join(schema.unexplained).casefold()
    carried = [*schema.mentions.values(), *_carried_items(schema)]
    structure = _structure(schema)
    for mention in find_mentions(prompt, closed=vocabulary.closed):
        words = mention.text.casefold()
        within = any(words in text.casefold() for text in carried)
        named = singular(words) in structure
        if not within and not named and words not in waived:
            yield mention.text
    for words, meant in _spoken(prompt, vocabulary):
        shown = any(words in text.casefold() for text in carried)
        if meant not in structure and not shown and words not in waived:
            yield words
    if not _negates(schema):
        yield from (word for word in tokens(prompt) if word in NEGATION and word not in waived)


def _carried_items(schema: PromptSchema) -> Iterator[str]:
    for parameter in schema.parameters():
        if isinstance(parameter.value, list):
            yield from (str(item) for item in parameter.value)


def _structure(schema: PromptSchema) -> set[str]:
    """Return the words of the vocabulary that a schema uses, and the singulars of their parts."""
    controls = (value for name, value in schema.params.items() if name == "sort_by")
    used = {schema.action, *schema.entities, *schema.group_by, *schema.params}
    used.update(value for value in controls if isinstance(value, str))
    return used | {singular(part) for word in used for part in re.split(r"[_.]", word)}


def _spoken(prompt: str, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """Yield words of a prompt with the entity or field of the vocabulary that they are."""
    said = [singular(token) for token in tokens(prompt)]
    names = {**{name: name for name in (*vocabulary.entities, *vocabulary.fields)}}
    names |= {w: m for w, m in vocabulary.synonyms.items() if m in names}
    for words, meant in names.items():
        phrase = [singular(part) for part in re.split(r"[\s_.]+", words.casefold()) if part]
        size = len(phrase)
        if any(said[at : at + size] == phrase for at in range(len(said) - size + 1)):
            yield " ".join(phrase), meant


def _negates(schema: PromptSchema) -> bool:
    shapes = (value for value in schema.params.values() if isinstance(value, dict))
    operators = (str(shape.get("operator")) for shape in shapes)
    return any(operator_name(one) in _NEGATED for one in operators)


def _unsaid_groups(schema: PromptSchema, prompt: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the fields to group by of which the prompt says no word."""
    said = {singular(token) for token in tokens(prompt)}
    for field in schema.group_by:
        spoken = [field, *(w for w, meant in vocabulary.synonyms.items() if meant == field)]
        parts = [singular(part) for words in spoken for part in re.split(r"[\s_.]+", words) if part]
        # "categorywise" and "yearly" say the field too.
        if not any(word.startswith(part) for part in parts for word in said):
            yield field
