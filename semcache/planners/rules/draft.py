"""Drafts: what has been read of a prompt so far, and the schema that comes of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject
from semcache.planners.rules.frame import Frame
from semcache.planners.rules.phrases import Unit
from semcache.prompts.schema import PromptSchema

_PARTS_OF_YEARS = frozenset({"month", "quarter"})


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field."""

    field: str
    operator: str
    values: tuple[Json, ...]
    words: tuple[str, ...]
    """For each value, the words of the prompt that carry it; empty text if it is not there."""


@dataclass(slots=True)
class Rank:
    """An end of an order: the top five of something, the latest order."""

    direction: str
    words: str
    """The words that ask for it."""
    limit: int | None = None
    """How many; None if no number said."""
    limit_words: str = ""
    by_date: bool = False
    """Whether the order is one of time."""
    subject: str | None = None
    """The field whose groups are ranked, empty for the entity's rows; None if not told yet."""
    one: bool = False
    """Whether the noun of the subject is singular, so that one is asked for."""
    measure: str = ""
    """What it is ranked by; empty if not told yet."""
    function: str = "sum"
    """Aggregate of the measure, where groups are compared."""


@dataclass(slots=True)
class SchemaDraft:
    """What has been read so far: what stands for certain, and words that stay `unexplained`."""

    frame: Frame
    filters: list[Filter] = field(default_factory=list)
    aggregates: dict[str, str] = field(default_factory=dict)
    """Field → aggregate."""
    groups: list[str] = field(default_factory=list)
    group_words: list[str] = field(default_factory=list)
    sort: tuple[str, str, str] | None = None
    """Field, direction and the words that ask for it."""
    limit: int | None = None
    limit_words: str = ""
    rank: Rank | None = None
    entity: Unit | None = None
    """The noun that names the entity; None if it was not named."""
    measures: list[tuple[str, str]] = field(default_factory=list)
    """Measures named without an aggregate, each with its words."""
    verb: bool = False
    """Whether the operation's own verb was read."""
    unexplained: list[str] = field(default_factory=list)

    @property
    def literal(self) -> bool:
        """Whether the entity was named by its own name, not by a synonym."""
        return self.entity is not None and self.entity.kinds.get("entity") == "literal"

    @property
    def missing(self) -> tuple[str, ...]:
        """The required inputs of a plain operation that have no value yet."""
        given = {(one.field, operator) for one in self.filters for operator in _ends(one.operator)}
        return tuple(
            one.name for one in self.frame.shape.required if (one.field, one.operator) not in given
        )

    def add(self, one: Filter) -> bool:
        """Add a condition; return whether it goes with those already there."""
        known = next((other for other in self.filters if other.field == one.field), None)
        if known is None:
            self.filters.append(one)
            return True
        ends = {known.operator: known, one.operator: one}
        if ends.keys() != {">=", "<="}:
            return False
        low, high = ends[">="], ends["<="]
        both = Filter(one.field, "between", low.values + high.values, low.words + high.words)
        self.filters[self.filters.index(known)] = both
        return True

    def schema(self) -> PromptSchema:
        """Return the schema of what was read; partial if some of it stays unexplained."""
        self._settle()
        return PromptSchema(
            action=self._action(),
            entities=(self.frame.entity,),
            group_by=tuple(self.groups),
            params=self._params(),
            mentions=self._mentions(),
            unexplained=tuple(dict.fromkeys(self.unexplained)),
        )

    # ── what can only be told at the end ─────────────────────────────────────────────────────────

    def _settle(self) -> None:
        self._settle_measures()
        if self.rank is not None:
            self._settle_rank(self.rank)
        if self.groups and not self.aggregates:
            self.unexplained.extend(self.group_words)
        self._settle_sort()
        self._settle_times()
        if self.frame.shape.query is None and self.limit is not None and not self.frame.shape.limit:
            self.unexplained.append(self.limit_words)
        if not self._footing():
            words = [word for one in self.filters for word in one.words]
            self.unexplained.extend(words or [*self.aggregates, self.frame.entity][:1])

    def _footing(self) -> bool:
        """Return whether the prompt asks for this operation at all, beside giving values."""
        if not self.frame.reads:
            return self.verb and self.entity is not None
        return self.entity is not None or any(name in self.frame.own for name in self.aggregates)

    def _settle_measures(self) -> None:
        """Take a measure that stands alone for its sum: "revenue by state", "revenue in 2024"."""
        named = self.entity.kinds.get("measure", "") if self.entity is not None else ""
        if self.aggregates or self.rank:
            self.unexplained.extend(words for _, words in self.measures)
        elif len(self.measures) == 1 and not self._filtered(self.measures[0][0]):
            self.aggregates[self.measures[0][0]] = "sum"
        elif self.measures:
            self.unexplained.extend(words for _, words in self.measures)
        elif self.groups and named:
            self.aggregates[named] = "sum"

    def _filtered(self, name: str) -> bool:
        return any(one.field == name for one in self.filters)

    def _settle_rank(self, rank: Rank) -> None:
        fits = self._rank_groups(rank) if rank.subject else self._rank_rows(rank)
        if not fits:
            self.unexplained.append(rank.words)

    def _rank_groups(self, rank: Rank) -> bool:
        """Rank the groups of a field by an aggregate; return whether that was told in full."""
        limit = rank.limit or (1 if rank.one else None)
        if not rank.subject or not rank.measure or limit is None or self.groups or self.aggregates:
            return False
        self.groups = [rank.subject]
        self.group_words = [rank.words]
        self.aggregates = {rank.measure: rank.function}
        self._order(rank, rank.measure, limit)
        return self.frame.sortable(rank.measure)

    def _rank_rows(self, rank: Rank) -> bool:
        """Rank the entity's rows by a field; return whether that was told in full."""
        limit = rank.limit or (1 if rank.one else None)
        measure = self.date if rank.by_date else rank.measure or self.frame.measure
        told = rank.subject is not None and limit is not None and bool(measure)
        if not told or limit is None or self.groups or self.aggregates:
            return False
        self._order(rank, measure, limit)
        return self.frame.sortable(measure)

    def _order(self, rank: Rank, name: str, limit: int) -> None:
        self.sort = (name, rank.direction, rank.words)
        self.limit, self.limit_words = limit, rank.limit_words

    @property
    def date(self) -> str:
        """The one field that is a date; empty if there is none, or several."""
        dates = [name for name in self.frame.fields if name.rsplit("_", 1)[-1] == "date"]
        return dates[0] if len(dates) == 1 else ""

    def _settle_sort(self) -> None:
        if self.sort is None:
            return
        name, _, words = self.sort
        summed = bool(self.aggregates)
        shown = name in self.aggregates or name in self.groups
        if (summed and not (self.groups and shown)) or not self.frame.sortable(name):
            self.unexplained.append(words)

    def _settle_times(self) -> None:
        """Refuse a month or quarter of no certain year: which one is meant is then a guess.

        "March 2024 or later" and "Q4 2023 and 2024" are no month of one year.
        """
        years = [one for one in self.filters if one.field == "year"]
        dated = all(one.operator == "=" for one in years) and (bool(years) or "year" in self.groups)
        if dated:
            return
        for one in self.filters:
            if one.field in _PARTS_OF_YEARS:
                self.unexplained.extend(one.words)
        if _PARTS_OF_YEARS & set(self.groups):
            self.unexplained.extend(self.group_words)

    # ── the schema ───────────────────────────────────────────────────────────────────────────────

    def _action(self) -> str:
        if not self.frame.reads:
            return self.frame.verb
        if self.aggregates or self.groups:
            return "summarize"
        if self.frame.gets:
            return "get"
        return "search" if self.filters or self.sort or self.limit is not None else "list"

    def _params(self) -> JsonObject:
        params: JsonObject = {}
        for one in self.filters:
            params[one.field] = self._condition(one)
        for name, function in self.aggregates.items():
            known = params.get(name)
            params[name] = {**_structured(known, present=name in params), "aggregate": function}
        if self.sort is not None:
            params["sort_by"], params["order"] = self.sort[:2]
        if self.limit is not None:
            params["limit"] = self.limit
        return params

    def _condition(self, one: Filter) -> Json:
        if self._plainly(one):
            return one.values[0]
        if one.operator in {"in", "not_in", "between"}:
            return {"operator": one.operator, "operand": list(one.values)}
        return {"operator": one.operator, "operand": one.values[0]}

    def _plainly(self, one: Filter) -> bool:
        """Return whether a condition is the value alone; that of an input named `since` is."""
        return one.operator == "=" or (
            self.frame.shape.query is None and one.field in {"since", "until"}
        )

    def _mentions(self) -> dict[str, str]:
        mentions: dict[str, str] = {}
        for one in self.filters:
            if one.operator == "between":
                mentions |= {f"{one.field}.operand.{i}": word for i, word in enumerate(one.words)}
            elif one.operator not in {"in", "not_in"} and one.words[0]:
                plain = self._plainly(one) and one.field not in self.aggregates
                mentions[one.field if plain else f"{one.field}.operand"] = one.words[0]
        if self.limit is not None and self.limit_words:
            mentions["limit"] = self.limit_words
        return mentions


def _ends(operator: str) -> Iterable[str]:
    return (">=", "<=") if operator == "between" else ("=",) if operator == "in" else (operator,)


def _structured(value: Json, *, present: bool) -> JsonObject:
    if isinstance(value, dict):
        return value
    return {"operator": "=", "operand": value} if present else {}
