"""Prompt to schema by a language model that is bound to the catalog's vocabulary."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice

from semcache.canonical import Json, JsonObject, as_list, as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.shape import Shape, shape, snake
from semcache.errors import InvalidInput, NormalizationError
from semcache.planners.model.account import account_for
from semcache.ports import Clock, Message, Model, Observer
from semcache.prompts.parameter import Parameter
from semcache.prompts.redaction import Redact
from semcache.prompts.schema import PromptSchema
from semcache.prompts.tokens import check_prompt
from semcache.prompts.vocabulary import Vocabulary
from semcache.runs.dialog import Accepted, Dialog, Rejected, json_object
from semcache.runs.texts import load, shown

ATTEMPTS = 3
"""Calls at most for one prompt; each after the first is told what was wrong."""
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
        vocabulary: Vocabulary | None = None,
        observer: Observer | None = None,
        clock: Clock | None = None,
        redact: Redact | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            model: Who is asked.
            vocabulary: Words instead of those that the catalog declares.
            observer: Hears of each call.
            clock: Times the calls; None: the machine's own.
            redact: Leaves of what is wrong with an answer what may be logged; None: all.
        """
        self._dialog = Dialog(model, "normalize", ATTEMPTS, observer, clock, redact)
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
        """Return the schema of `prompt`; partial if words of it stay unexplained.

        A value that the prompt does not say is sent back, and so is what the prompt says and the
        schema has not; a schema that leaves words out through all attempts is partial.

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
            read=lambda text: _read(text, asked, vocabulary, params),
            retry=lambda errors: self._text.fill("retry", errors=errors),
        )
        if isinstance(result, Rejected):
            raise NormalizationError(
                f"no valid schema for {asked[:80]!r} after {ATTEMPTS} attempt(s): "
                f"{'; '.join(result.errors)}",
                answer=result.answer,
            )
        return _only(result, asked)

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
    """Return the words of a catalog; `date.year` of a query may be called `year` too.

    OneMCP's schemas say `year` and `amount` where its plans say `date.year` and `sale.amount`.
    """
    vocabulary = Vocabulary.from_catalog(catalog)
    shapes = [shape(operation) for operation in catalog]
    dotted = {name for one in shapes for name in _columns(one) if "." in name}
    last = Counter(snake(name.rpartition(".")[2]) for name in dotted)
    return vocabulary.with_fields(name for name, count in last.items() if count == 1)


def _columns(one: Shape) -> Iterator[str]:
    query = one.query
    if query is not None:
        for listed in (query.filters, query.aggregates, query.groups, query.sorts):
            yield from listed.fields if listed is not None else ()


def _words(vocabulary: Vocabulary) -> JsonObject:
    words = vocabulary.to_json()
    values: JsonObject = {
        field: list(domain[:MAX_VALUES]) for field, domain in vocabulary.closed.items()
    }
    labels = (islice(table.items(), MAX_VALUES) for table in vocabulary.labels.values())
    synonyms: JsonObject = {**dict(chain.from_iterable(labels)), **vocabulary.synonyms}
    return words | {"values": values, "synonyms": synonyms}


def _read(
    text: str, asked: str, vocabulary: Vocabulary, params: Sequence[Parameter]
) -> Accepted[tuple[PromptSchema, ...]] | Rejected[tuple[PromptSchema, ...]]:
    """Return the schemas of all steps, or everything that is wrong with them."""
    try:
        steps = _steps(json_object(text))
    except InvalidInput as error:
        return Rejected((str(error),))
    schemas: list[PromptSchema] = []
    errors: list[str] = []
    left: list[str] = []
    for number, step in enumerate(steps, 1):
        try:
            schema = _schema(step)
        except InvalidInput as error:
            errors.append(f"Step {number}: {error}")
            continue
        errors += (f"Step {number}: {finding}" for finding in vocabulary.validate(schema))
        # Of several steps none is used: each would be missing what the others say.
        if len(steps) == 1:
            account = account_for(schema, asked, vocabulary, params)
            errors += account.unsaid
            left += account.left
            schema = account.schema
        schemas.append(schema)
    if errors:
        return Rejected((*errors, *left))
    return Rejected(tuple(left), usable=tuple(schemas)) if left else Accepted(tuple(schemas))


_WORKFLOW = frozenset({"workflow_type", "steps"})
_MEMBERS = frozenset({
    "action", "entities", "group_by", "groupBy", "params", "mentions", "unexplained",
    "cache_key", "cacheKey",
})  # fmt: skip
_SHAPES = frozenset({"operator", "operand", "aggregate"})


def _steps(found: JsonObject) -> list[Json]:
    """Return the steps of a workflow; a bare schema, as the document writes it, is the only one."""
    if "action" in found and "steps" not in found:
        return [{"ps": found}]
    _refuse_unknown(found, _WORKFLOW, "the workflow")
    kind, steps = found.get("workflow_type"), found.get("steps")
    if kind != "sequential":
        raise InvalidInput(f"workflow_type is {kind!r}; expected 'sequential'")
    if not isinstance(steps, list) or not steps:
        raise InvalidInput(f"steps is {steps!r:.80}; expected a list of at least one step")
    return steps


def _schema(step: Json) -> PromptSchema:
    found = step.get("ps") if isinstance(step, dict) else None
    if not isinstance(step, dict) or not isinstance(found, dict):
        raise InvalidInput(f"the step is {step!r:.80}; expected an object with the schema in 'ps'")
    _refuse_unknown(step, frozenset({"ps"}), "the step")
    _refuse_unknown(found, _MEMBERS, "the schema")
    for name, value in as_object(found.get("params")).items():
        if isinstance(value, dict):
            _refuse_unknown(value, _SHAPES, f"the param '{name}'")
    mentions, unexplained = found.get("mentions"), found.get("unexplained")
    return replace(
        PromptSchema.from_json(_spelled(found)),
        mentions=_texts(mentions) if isinstance(mentions, Mapping) else {},
        unexplained=tuple(map(str, as_list(unexplained))),
    )


def _spelled(found: JsonObject) -> JsonObject:
    """Return a schema with `group_by` as we spell it; the document writes `groupBy`."""
    if "groupBy" not in found:
        return found
    camel, own = found["groupBy"] or [], found.get("group_by") or []
    if camel and own and camel != own:
        raise InvalidInput(f"group_by is {own!r:.80} and groupBy is {camel!r:.80}; expected one")
    return {**found, "group_by": camel or own}


def _refuse_unknown(found: JsonObject, known: frozenset[str], what: str) -> None:
    """Raise for members that nobody reads: what stands there would silently be left out."""
    unknown = sorted(found.keys() - known)
    if unknown:
        told = ", ".join(map(repr, unknown))
        raise InvalidInput(f"{what} has {told}; expected no members but {', '.join(sorted(known))}")


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
