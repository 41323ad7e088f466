"""Frames: an operation as something that a prompt may ask for, with the words that fit it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from semcache.canonical import Json
from semcache.catalog.catalog import Catalog
from semcache.catalog.shape import Columns, Input, Shape, shape, snake
from semcache.planners.rules.lexicon import PHRASES, Sense, longest
from semcache.prompts.mentions import Mention
from semcache.prompts.schema import aggregate_name
from semcache.prompts.tokens import phrase_of, tokens
from semcache.prompts.vocabulary import GETS, READS, Vocabulary, entity, query_fields
from semcache.prompts.words import CLOSED_CLASS

# Last word of a field's name → kinds of mention that are values of it without being told so.
NAMES_OF_KINDS: dict[str, frozenset[str]] = {
    "year": frozenset({"year"}),
    "month": frozenset({"month"}),
    "quarter": frozenset({"quarter"}),
    "date": frozenset({"date", "day"}),
    "time": frozenset({"time"}),
    "email": frozenset({"email", "mail", "address"}),
    "url": frozenset({"url", "link", "website"}),
    "percent": frozenset({"percent", "percentage"}),
    "money": frozenset({"amount", "price", "cost", "fee", "fare", "budget", "salary", "payment"}),
    "identifier": frozenset({"repository", "repo", "path", "file"}),
    "quoted": frozenset({"title", "name", "subject", "text", "query", "message"}),
}
_IDS = ("id", "number", "key", "code", "no")
_COUNTED = frozenset({"quantity", "count", "units", "number"})
_NO_SIZES = frozenset({"year", "month", "quarter", "day", "date", "id", "number", "code", "key"})
_SIZES = frozenset({
    "age", "amount", "area", "balance", "budget", "cost", "discount", "distance", "duration",
    "fare", "fee", "height", "hours", "income", "length", "minutes", "payment", "population",
    "price", "profit", "quantity", "rating", "revenue", "salary", "score", "size", "speed", "stock",
    "tax", "total", "units", "value", "volume", "weight", "width",
})  # fmt: skip
_FROM = frozenset({"from", "origin", "source", "departure", "start", "sender"})
_TO = frozenset({"to", "destination", "target", "arrival", "end", "recipient", "receiver"})
_PAIRS = (("first", "second"), ("start", "end"), ("from", "to"), ("old", "new"))

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One operation, and what words mean when a prompt asks for it."""

    shape: Shape
    entity: str
    """What it is about, singular."""
    reads: bool
    """Whether its verb only asks to be shown something."""
    fields: frozenset[str]
    """Fields that can be filtered, in lower snake case."""
    closed: frozenset[str]
    """Those of them that have a closed set of values."""
    own: frozenset[str]
    """Those of `fields` that no operation about another entity has: naming one names the entity."""
    numeric: frozenset[str]
    """Fields that are sizes: the measure, numbers by a schema, or so named in general English."""
    measure: str
    """The field that stands for the entity's size; empty if the operation declares none."""
    words: Mapping[Words, tuple[Sense, ...]] = field(repr=False)
    """Singular words → what they stand for here."""
    longest: Mapping[str, int] = field(repr=False)
    """First word of a phrase → words in the longest phrase that begins so."""

    @property
    def verb(self) -> str:
        """The action of a schema for this operation, unless it is a read."""
        return self.shape.verb

    @property
    def gets(self) -> bool:
        """Whether it returns one thing by what identifies it."""
        return self.shape.query is None and self.shape.verb in GETS

    def summable(self, name: str) -> bool:
        """Return whether adding or averaging the field makes sense, as far as the catalog tells."""
        query = self.shape.query
        return query is not None and name in self.numeric and _has(query.aggregates, name)

    def aggregates(self, function: str) -> bool:
        """Return whether the operation computes this aggregate."""
        query = self.shape.query
        if query is None or query.aggregates is None:
            return False
        listed = query.aggregates.seconds
        return not listed or function in {aggregate_name(one) for one in listed}

    def groupable(self, name: str) -> bool:
        """Return whether rows can be grouped by the field."""
        query = self.shape.query
        return query is not None and name != self.measure and _has(query.groups, name)

    def sortable(self, name: str) -> bool:
        """Return whether rows can be sorted by the field."""
        query = self.shape.query
        return query is not None and _has(query.sorts, name)

    def fields_of(self, mention: Mention, surface: str) -> tuple[str, ...]:
        """Return the fields that a value of an open class may belong to, told by its kind.

        `surface` is the noun before it: "order 17" is an `order_id`.
        """
        kind = mention.kind
        if kind in {"number", "code", "ordinal"}:
            return self._ids(surface)
        fitting = NAMES_OF_KINDS.get(kind, frozenset())
        named = [name for name in self.fields if name.rsplit("_", 1)[-1] in fitting]
        exact = [name for name in named if name in fitting]
        if kind == "identifier" and not named:
            return self._ids(surface)
        # A text in quotes may be anything that has a name of its own.
        return tuple(sorted(exact or (() if kind == "quoted" else named)))

    def _ids(self, surface: str) -> tuple[str, ...]:
        nouns = {noun for noun in (surface, self.entity) if noun}
        for name in (*(f"{noun}_{tail}" for noun in nouns for tail in _IDS), *_IDS):
            if surface and name in self.fields:
                return (name,)
        return ()

    def id_field(self) -> str:
        """Return the field that names one thing of the entity; empty if there is none."""
        return next(iter(self._ids(self.entity)), "")

    def counted(self, name: str) -> bool:
        """Return whether "how many" of the field means its sum: units, quantity."""
        return self.summable(name) and name.rsplit("_", 1)[-1] in _COUNTED

    def since(self, operator: str) -> tuple[str, ...]:
        """Return the inputs of a plain operation that are named for one end of time."""
        ends = [one for one in self.shape.inputs if one.field in {"since", "until"}]
        return tuple(one.field for one in ends if one.operator == operator)

    def pair(self, kind: str) -> tuple[str, str] | None:
        """Return the two inputs that take a first and a second value of `kind`, if it has such."""
        for first, second in _PAIRS:
            names = (f"{first}_{kind}", f"{second}_{kind}")
            if self.shape.query is None and self.fields.issuperset(names):
                return names
        return None

    def inputs(self, name: str, operator: str) -> tuple[Input, ...]:
        """Return the inputs of a plain operation that compare a field so."""
        return tuple(
            one for one in self.shape.inputs if one.field == name and one.operator == operator
        )

    def takes(self, name: str, operator: str) -> bool:
        """Return whether the operation can compare the field so."""
        query = self.shape.query
        if query is not None and name in self.fields:
            return True
        if operator == "between":
            return bool(self.inputs(name, ">=") and self.inputs(name, "<="))
        if operator == "in":
            return any(one.many for one in self.inputs(name, "="))
        return bool(self.inputs(name, operator))


def _has(columns: Columns | None, name: str) -> bool:
    """Return whether a part of a query can be over the field."""
    return columns is not None and name in map(snake, columns.fields)


def role(name: str) -> str:
    """Return `from` or `to` for a field of that role (`origin`, `to_city`), else the empty text."""
    words = set(name.split("_"))
    if words & _FROM:
        return "from"
    return "to" if words & _TO else ""


def frames(catalog: "Catalog", vocabulary: Vocabulary) -> tuple[Frame, ...]:
    """Return a frame for each operation of the catalog, its words taken from the vocabulary."""
    shapes = [shape(operation) for operation in catalog]
    typed = {one.field for part in shapes for one in part.inputs if _is_number(one)}
    known = [_frame(one, vocabulary, typed) for one in shapes]
    return tuple(
        replace(
            one, own=one.fields.difference(*(o.fields for o in known if o.entity != one.entity))
        )
        for one in known
    )


def _is_number(one: Input) -> bool:
    return bool(one.types) and one.types <= {"integer", "number"}


def _numeric(fields: Iterable[str], closed: Iterable[str], typed: Iterable[str]) -> frozenset[str]:
    """Return the fields that are sizes, by some schema or by their last word."""
    tails = {name: name.rsplit("_", 1)[-1] for name in set(fields).difference(closed)}
    sizes = {name for name, tail in tails.items() if tail in _SIZES or name in set(typed)}
    return frozenset(name for name in sizes if tails[name] not in _NO_SIZES)


def _frame(one: Shape, vocabulary: Vocabulary, typed: Iterable[str]) -> Frame:
    noun = entity(one)
    fields = frozenset(query_fields(one)) | {given.field for given in one.inputs}
    fields |= {snake(given.name) for given in one.inputs}
    closed = {snake(name): values for name, values in vocabulary.closed.items()}
    domains = {name: closed[name] for name in fields if name in closed}
    measure = snake(_default(one))
    words: dict[Words, tuple[Sense, ...]] = {}
    for phrase, sense in _senses(one, noun, fields, domains, vocabulary):
        if not phrase:  # a name or value of signs alone
            continue
        known = words.get(phrase, ())
        words[phrase] = known if sense in known else (*known, sense)
    return Frame(
        shape=one,
        entity=noun,
        reads=one.query is not None or one.verb in READS,
        fields=fields,
        own=frozenset(),
        closed=frozenset(domains),
        numeric=_numeric(fields, domains, typed) | ({measure} & fields),
        measure=measure if measure in fields else "",
        words=words,
        longest=longest(words),
    )


def _default(one: Shape) -> str:
    """Return the field that aggregates are over when none is named: the operation's measure."""
    aggregates = one.query.aggregates if one.query is not None else None
    return aggregates.default if aggregates is not None else ""


def _senses(
    one: Shape,
    noun: str,
    fields: Iterable[str],
    domains: Mapping[str, Iterable[str]],
    vocabulary: Vocabulary,
) -> Iterator[tuple[Words, Sense]]:
    yield phrase_of(noun), Sense("entity", "literal")
    if one.query is None and one.verb not in READS:
        yield phrase_of(one.verb), Sense("verb", one.verb)
    for name in fields:
        yield phrase_of(name), Sense("field", name)
    canonical: dict[Words, list[tuple[str, str]]] = {}
    for name, values in domains.items():
        for value in values:
            canonical.setdefault(phrase_of(value), []).append((name, value))
            yield phrase_of(value), Sense("value", value, name)
    yield from _synonyms(one, noun, fields, canonical, vocabulary.synonyms)
    known = canonical.keys() | {phrase_of(word) for word in vocabulary.synonyms}
    for phrase, sense in _labels(fields, vocabulary):
        if phrase not in known:
            yield phrase, sense


def _synonyms(
    one: Shape,
    noun: str,
    fields: Iterable[str],
    canonical: Mapping[Words, list[tuple[str, str]]],
    synonyms: Mapping[str, str],
) -> Iterator[tuple[Words, Sense]]:
    for word, target in synonyms.items():
        for sense in _meant(phrase_of(target), one, noun, fields, canonical):
            yield phrase_of(word), sense


def _labels(fields: Iterable[str], vocabulary: Vocabulary) -> Iterator[tuple[Words, Sense]]:
    """Yield the words that schemas have for values of the fields."""
    tables = {snake(name): table for name, table in vocabulary.labels.items()}
    for name in fields:
        for words, value in tables.get(name, {}).items():
            # A word of general English ("all", "latest") keeps its own part in a request.
            if tuple(tokens(words)) in PHRASES or words.casefold() in CLOSED_CLASS:
                continue
            typed = None if isinstance(value, str) else value
            yield phrase_of(words), Sense("value", str(value), name, typed)


def _meant(
    target: Words,
    one: Shape,
    noun: str,
    fields: Iterable[str],
    canonical: Mapping[Words, list[tuple[str, str]]],
) -> Iterator[Sense]:
    """Yield what a synonym of `target` stands for in this frame."""
    if target == phrase_of(noun):
        yield Sense("entity", "synonym")
    if target == phrase_of(one.verb):
        yield Sense("verb", one.verb)
    for name in fields:
        if target == phrase_of(name):
            yield Sense("measure", name)
    for name, value in canonical.get(target, ()):
        yield Sense("value", value, name)


def spelled(mention: Mention, types: frozenset[str]) -> Json:
    """Return the value of a mention as an input of these JSON types takes it."""
    if types == {"string"} and not isinstance(mention.value, str):
        return mention.text.strip("#")
    if types and types <= {"integer", "number"} and isinstance(mention.value, str):
        digits = mention.value.strip("#")
        return int(digits) if digits.isdecimal() else mention.value
    return mention.value
