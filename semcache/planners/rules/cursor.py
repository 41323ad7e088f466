"""A cursor: where the grammar is in a prompt, what it has read, and what stands ahead."""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.canonical import Json
from semcache.planners.rules.draft import SchemaDraft
from semcache.planners.rules.frame import Frame, spelled
from semcache.planners.rules.phrases import Unit
from semcache.prompts.parameter import name_key

OPEN = frozenset({
    "number", "money", "percent", "year", "month", "quarter", "date", "time", "email", "url",
    "code", "identifier", "quoted", "ordinal", "weekday",
})  # fmt: skip
"""Kinds of mention whose words tell what they are, whoever names the value."""

MAX_SKIPPED = 6
"""Words without content in a row, as in "of all the"; a prompt of ten thousand is no request."""

_SKIPPED = frozenset({"article", "of", "copula", "auxiliary", "that", "all", "we", "there"})


@dataclass(frozen=True, slots=True)
class Term:
    """A value in a prompt, and the fields that it may belong to."""

    unit: Unit
    kind: str
    """`closed`, `given`, or the kind of an open class."""
    closed: dict[str, Json]
    """Field → canonical value, for a closed or given value."""

    def value(self, frame: Frame, name: str) -> Json:
        """Return the value as the field `name` has it."""
        if name in self.closed:
            return self.closed[name]
        if self.unit.mention is None:
            return self.unit.text
        types = [one.types for one in frame.shape.inputs if one.field == name]
        return spelled(self.unit.mention, types[0] if types else frozenset())


@dataclass(frozen=True, slots=True)
class Pending:
    """An aggregate that waits for its noun."""

    function: str
    words: str
    superlative: bool = False
    """Whether it was "largest" or the like, which may also mean a row."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A noun whose groups are going to be ranked: "which state had the highest …"."""

    field: str
    words: str
    one: bool
    """Whether it is singular."""
    limit: int | None = None
    limit_words: str = ""


class Cursor:
    """A place in a row of units. Constructs move it and fill its draft."""

    def __init__(self, frame: Frame, units: Sequence[Unit]) -> None:
        self.frame = frame
        self.units = units
        self.draft = SchemaDraft(frame)
        self.at = 0
        self.end = len(units)
        """Where nothing but punctuation is left."""
        while self.end and self.sense(self.end - 1, "fill") == "mark":
            self.end -= 1
        self.last = ""
        """The construct before this place; empty at the start."""
        self.pending: Pending | None = None
        self.subject: Subject | None = None
        self.asks = False
        """Whether the prompt began with "what is"."""
        self.negated = False
        """Whether something was excluded: what follows may belong to the exclusion."""

    def unit(self, at: int) -> Unit | None:
        """Return the unit at a place; None past the end."""
        return self.units[at] if 0 <= at < len(self.units) else None

    def sense(self, at: int, kind: str) -> str:
        """Return the value of the sense of that kind at a place, or the empty text."""
        return self.units[at].kinds.get(kind, "") if 0 <= at < len(self.units) else ""

    def skip(self, at: int) -> int:
        """Return the first place from `at` on that is not a word without content."""
        for place in range(at, at + MAX_SKIPPED):
            if self.sense(place, "fill") not in _SKIPPED:
                return place
        return at + MAX_SKIPPED

    def field(self, at: int) -> str:
        """Return the field that a unit names, by its name or a synonym; empty if none."""
        return self.sense(at, "field") or self.sense(at, "measure")

    def measure(self, at: int) -> str:
        """Return the field whose sum a noun such as "revenue" names; empty if none."""
        name = self.sense(at, "measure")
        return name if name and self.frame.summable(name) else ""

    def plural(self, at: int) -> bool:
        """Return whether the unit at a place ends in a plural."""
        unit = self.unit(at)
        return unit is not None and unit.plural

    def text(self, at: int) -> str:
        """Return the words at a place, as they stand in the prompt."""
        unit = self.unit(at)
        return unit.text if unit is not None else ""

    def number(self, at: int) -> int | None:
        """Return the positive whole number that stands at a place, or None."""
        unit = self.unit(at)
        mention = unit.mention if unit is not None else None
        if mention is None or mention.kind != "number" or mention.relative:
            return None
        value = mention.value
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if value > 0 else None

    def term(self, at: int) -> Term | None:
        """Return the value at a place; None if there is none, or if it depends on today's date."""
        unit = self.unit(at)
        if unit is None:
            return None
        closed: dict[str, Json] = {sense.field: sense.meant for sense in unit.values()}
        mention = unit.mention
        if mention is None:
            return Term(unit, "closed", closed) if closed else None
        if mention.relative:
            return None
        if mention.source == "given":
            kind = mention.kind if mention.kind in OPEN else "given"
            return Term(unit, kind, {given_field(mention.name): mention.value})
        return Term(unit, "closed", closed) if closed else Term(unit, mention.kind, {})

    def take(self, to: int, construct: str) -> bool:
        """Go on at `to`, past a construct; always true, so that a rule can end with it."""
        self.at, self.last = to, construct
        return True

    def leave(self, words: str) -> None:
        """Keep words as unexplained."""
        self.draft.unexplained.append(words)


def given_field(name: str) -> str:
    """Return the field of a parameter that a caller named: `amount` for `amount.operand`."""
    return name_key(name.partition(".")[0])
