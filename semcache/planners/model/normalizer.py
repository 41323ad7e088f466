"""Prompt to schema by a language model that is bound to the catalog's vocabulary."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidInput, InvalidParameter, NormalizationError
from semcache.ports import Clock, Message, Model, Observer
from semcache.prompts.mentions import locate_mentions
from semcache.prompts.parameter import Parameter
from semcache.prompts.redaction import Redact
from semcache.prompts.schema import PromptSchema
from semcache.prompts.text import check_prompt
from semcache.prompts.vocabulary import Vocabulary
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.texts import load, shown

MAX_VALUES = 100
"""Values of one closed field that the model is shown; beyond them it would read a database."""


class ModelNormalizer:
    """Asks a model for the schema of a prompt, and believes only what the vocabulary has.

    Safe from several threads if the model is. Satisfies `ports.Normalizer`.
    """

    def __init__(
        self,
        model: Model,
        *,
        attempts: int = 3,
        vocabulary: Vocabulary | None = None,
        observer: Observer | None = None,
        clock: Clock | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            attempts: Calls at most for one prompt; each after the first is told what was wrong.
            vocabulary: Words instead of those that the catalog declares.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
            redact: Leaves of what is wrong with an answer what may be logged; None: all.

        Raises:
            InvalidSettings: `attempts` is under 1.
        """
        self._dialog = Dialog(model, "normalize", attempts, observer, clock, redact)
        self._vocabulary = vocabulary
        self._text = load("normalize")

    def __repr__(self) -> str:
        return f"ModelNormalizer({self.name!r})"

    @property
    def name(self) -> str:
        """Which normalizer this is: its model and the version of its prompt text."""
        return f"{self._dialog.model.fingerprint}/{self._text.label}"

    def normalize(
        self, prompt: str, *, catalog: Catalog, params: Sequence[Parameter] = ()
    ) -> PromptSchema:
        """Return the schema of `prompt`; partial if the model says that words stay unexplained.

        A mention that does not stand in the prompt is dropped; a value that stands there word for
        word is its own mention.

        Raises:
            InvalidPrompt: the prompt is not text, blank or too long.
            NormalizationError: no valid schema after all attempts, the prompt asks for several
                things one after the other, or the vocabulary is empty.
            ModelError: the model cannot answer.
        """
        asked = check_prompt(prompt)
        vocabulary = self._vocabulary or _vocabulary(catalog)
        if not vocabulary.actions:
            raise NormalizationError(
                "the vocabulary has no actions; expected a catalog with operations"
            )
        result = self._dialog.ask(
            self._messages(asked, vocabulary, params),
            read=lambda text: _read(text, vocabulary),
            retry=lambda errors: self._text.fill("retry", errors=errors),
        )
        if isinstance(result, Rejected):
            raise NormalizationError(
                f"no valid schema for {asked[:80]!r} after {self._dialog.attempts} attempt(s): "
                f"{'; '.join(result.errors)}",
                answer=result.answer,
            )
        return _said(_only(result, asked), asked)

    def _messages(
        self, asked: str, vocabulary: Vocabulary, params: Sequence[Parameter]
    ) -> list[Message]:
        given: JsonObject = {parameter.name: parameter.value for parameter in params}
        user = self._text.fill(
            "user",
            vocabulary=shown(_words(vocabulary)),
            given=shown(given) if given else "none",
            prompt=shown(asked),
        )
        return [Message("system", self._text.fill("system")), Message("user", user)]


@lru_cache(maxsize=8)
def _vocabulary(catalog: Catalog) -> Vocabulary:
    return Vocabulary.from_catalog(catalog)


def _words(vocabulary: Vocabulary) -> JsonObject:
    words = vocabulary.to_json()
    values: JsonObject = {
        field: list(domain[:MAX_VALUES]) for field, domain in vocabulary.closed.items()
    }
    labels = (islice(table.items(), MAX_VALUES) for table in vocabulary.labels.values())
    synonyms: JsonObject = {**dict(chain.from_iterable(labels)), **vocabulary.synonyms}
    return words | {"values": values, "synonyms": synonyms}


def _read(
    text: str, vocabulary: Vocabulary
) -> Accepted[tuple[PromptSchema, ...]] | Rejected[tuple[PromptSchema, ...]]:
    """Return the schemas of all steps, or everything that is wrong with them."""
    try:
        steps = _steps(json_object(text))
    except InvalidInput as error:
        return Rejected((str(error),))
    schemas: list[PromptSchema] = []
    errors: list[str] = []
    for number, step in enumerate(steps, 1):
        try:
            schema = _schema(step)
        except InvalidInput as error:
            errors.append(f"Step {number}: {error}")
            continue
        schemas.append(schema)
        errors += (f"Step {number}: {finding}" for finding in vocabulary.validate(schema))
    return Rejected(tuple(errors)) if errors else Accepted(tuple(schemas))


def _steps(workflow: JsonObject) -> list[Json]:
    kind, steps = workflow.get("workflow_type"), workflow.get("steps")
    if kind != "sequential":
        raise InvalidInput(f"workflow_type is {kind!r}; expected 'sequential'")
    if not isinstance(steps, list) or not steps:
        raise InvalidInput(f"steps is {steps!r:.80}; expected a list of at least one step")
    return steps


def _schema(step: Json) -> PromptSchema:
    found = step.get("ps") if isinstance(step, dict) else None
    if not isinstance(found, dict):
        raise InvalidInput(f"the step is {step!r:.80}; expected an object with the schema in 'ps'")
    mentions, unexplained = found.get("mentions"), found.get("unexplained")
    return replace(
        PromptSchema.from_json(found),
        mentions=_texts(mentions) if isinstance(mentions, Mapping) else {},
        unexplained=tuple(map(str, unexplained)) if isinstance(unexplained, list) else (),
    )


def _texts(mentions: Mapping[str, Json]) -> dict[str, str]:
    return {name: words for name, words in mentions.items() if isinstance(words, str) and words}


def _only(accepted: Accepted[tuple[PromptSchema, ...]], asked: str) -> PromptSchema:
    # OneMCP took the first step and dropped the rest: a prompt that asks for two things was
    # answered as if it asked for one.
    schemas = accepted.value
    if len(schemas) > 1:
        keys = ", ".join(schema.key for schema in schemas)
        raise NormalizationError(
            f"{asked[:80]!r} asks for {len(schemas)} things one after the other ({keys}); "
            "a schema describes one: ask for them one at a time",
            answer=accepted.answer,
        )
    return schemas[0]


def _said(schema: PromptSchema, asked: str) -> PromptSchema:
    """Return `schema` with the words of the prompt that carry its values, and no other words."""
    mentions: dict[str, str] = {}
    for parameter in schema.parameters():
        words = _located(asked, parameter) or _located(asked, replace(parameter, mention=None))
        if words is not None:
            mentions[parameter.name] = words
    return replace(schema, mentions=mentions)


def _located(asked: str, parameter: Parameter) -> str | None:
    try:
        found = locate_mentions(asked, [parameter])
    except InvalidParameter:
        return None
    return found[0].text if found else None
