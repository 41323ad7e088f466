"""Prompts of the demo, each with SQL that knows its answer, and whether an answer is right.

`cases.toml` beside this file has the prompts.
"""

import math
import sqlite3
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal, Protocol, TypeAlias

from semcache.cache.result import Found, Hit
from semcache.canonical import Json, JsonObject
from semcache.errors import NormalizationError, PlanningError, SemCacheError

Shape = Literal["number", "groups", "ranking", "records", "record"]
"""What an answer looks like: one figure; a row for each group, in any order; groups in the order
asked for; rows of which only the columns of the SQL are compared, in any order; one such row."""


@dataclass(frozen=True, slots=True)
class SalesQuery:
    """A question to the base tables."""

    shape: Shape
    sql: str
    """Placeholders are `?`; columns are named as in the answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, and how to know its answer without semcache."""

    prompt: str
    query: SalesQuery
    values: tuple[str | float, ...] = ()
    """The values of the prompt and of the answers, in the order of the placeholders."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What a person says to the questions that the plan asks, by topic."""


def _cases(told: Mapping[str, Any], part: str) -> tuple[Case, ...]:
    queries = {name: SalesQuery(**query) for name, query in told["queries"].items()}
    return tuple(
        Case(
            case["prompt"],
            queries[case["query"]],
            tuple(case["values"]),
            case.get("answers", {}),
        )
        for case in told[part]
    )


_TOLD = tomllib.loads(files(__package__).joinpath("cases.toml").read_text(encoding="utf-8"))

ONE_STEP = _cases(_TOLD, "one_step")
"""Prompts that one call answers."""
SEVERAL_STEPS = _cases(_TOLD, "several_steps")
"""Prompts of several steps: a call that needs another's result, what is done to a result, and
questions to a person."""
CASES: tuple[Case, ...] = (*ONE_STEP, *SEVERAL_STEPS)
"""Asked one after the other of one cache, so that later ones meet the plans of earlier ones."""


Row: TypeAlias = Mapping[str, Json]

CENTS = 0.0051
"""How far two figures may be apart: the operations round sums and averages to cents."""

Way = Literal["template", "schema", "semantic", "selected", "planned", "refused", "failed"]
"""How a prompt fared: the tier that had its plan, planned afresh, refused by every planner, or
stopped by an error on the way."""


class Answered(Protocol):
    """What `SemCache.run` gives, as far as it is checked."""

    @property
    def value(self) -> Json:
        """The result of the plan."""

    @property
    def found(self) -> Found:
        """What the lookup gave."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One prompt, asked and compared with SQL."""

    prompt: str
    way: Way
    seconds: float
    value: Json
    """The answer; None without one."""
    finding: str
    """What is wrong with the answer, or the error that came in its place; empty if it is right."""

    @property
    def wrong(self) -> bool:
        """Whether an answer was given, or due from a plan, and is not what SQL says."""
        return bool(self.finding) and self.way != "refused"

    def to_dict(self) -> JsonObject:
        """Return it as JSON."""
        return {
            "prompt": self.prompt,
            "way": self.way,
            "milliseconds": round(self.seconds * 1000, 3),
            "answer": self.value,
            "right": not self.finding,
            "finding": self.finding,
        }


@dataclass(frozen=True, slots=True)
class DemoTally:
    """What a run of prompts came to."""

    prompts: int
    hits: int
    planned: int
    refused: int
    wrong: int
    """Answers that are not what SQL says, and plans that stopped with an error."""
    seconds: float
    """Sum over the prompts."""

    @classmethod
    def of(cls, results: Iterable[Checked]) -> "DemoTally":
        """Return the tally of `results`."""
        known = list(results)
        ways = [result.way for result in known]
        missed = {way: ways.count(way) for way in ("planned", "refused", "failed")}
        return cls(
            prompts=len(known),
            hits=len(known) - sum(missed.values()),
            planned=missed["planned"],
            refused=missed["refused"],
            wrong=sum(result.wrong for result in known),
            seconds=sum(result.seconds for result in known),
        )


def checked(case: Case, ask: Callable[..., Answered], database: sqlite3.Connection) -> Checked:
    """Return how `ask` fared with the prompt of `case`; what it raises on purpose is a finding."""
    started = time.perf_counter()
    try:
        answer = ask(case.prompt, answers=case.answers) if case.answers else ask(case.prompt)
    except (NormalizationError, PlanningError) as error:
        return Checked(case.prompt, "refused", time.perf_counter() - started, None, str(error))
    except SemCacheError as error:
        return Checked(case.prompt, "failed", time.perf_counter() - started, None, str(error))
    seconds = time.perf_counter() - started
    way: Way = answer.found.tier if isinstance(answer.found, Hit) else "planned"
    return Checked(case.prompt, way, seconds, answer.value, finding(case, answer.value, database))


def finding(case: Case, answer: Json, database: sqlite3.Connection) -> str:
    """Return what is wrong with `answer`, or the empty text if it is what SQL says."""
    return difference(case.query.shape, truth(case, database), answer)


def difference(shape: Shape, expected: Sequence[Row], answer: Json) -> str:
    """Return how `answer` differs from the `expected` rows, or the empty text if it does not."""
    rows = _rows(answer)
    if rows is None:
        return f"the answer is {answer!r:.80}; expected {shape}"
    if len(rows) != len(expected):
        return f"the answer has {len(rows)} rows; SQL gives {len(expected)}"
    if shape == "number":
        return _number_finding(expected[0], rows[0])
    return _rows_finding(shape, expected, rows)


def truth(case: Case, database: sqlite3.Connection) -> list[dict[str, Json]]:
    """Return the rows that SQL gives for `case`: one with one column for a number."""
    cursor = database.execute(case.query.sql, case.values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _rows(answer: Json) -> list[Row] | None:
    """Return the rows inside the envelopes that plans and operations put around them."""
    match answer:
        case {"answer": inner} | {"data": inner}:
            return _rows(inner)
        case dict():
            return [answer]
        case list() if all(isinstance(row, dict) for row in answer):
            return [row for row in answer if isinstance(row, dict)]
        case bool():
            return None
        case int() | float():
            return [{"value": answer}]
        case _:
            return None


def _number_finding(expected: Row, row: Row) -> str:
    if len(row) != 1:
        return f"the answer has {', '.join(row) or 'nothing'}; expected one figure"
    (truly,), (got,) = expected.values(), row.values()
    return "" if _equal(truly, got) else f"the answer is {got!r}; SQL gives {truly!r}"


def _rows_finding(shape: Shape, expected: Sequence[Row], rows: Sequence[Row]) -> str:
    names = list(expected[0]) if expected else []
    for row in rows:
        missing = [name for name in names if name not in row]
        surplus = [name for name in row if name not in names]
        if missing or (surplus and shape in {"groups", "ranking"}):
            return f"a row has {', '.join(row)}; expected {', '.join(names)}"
    if shape != "ranking":
        expected, rows = _aligned(expected, names), _aligned(rows, names)
    for truly, got in zip(expected, rows, strict=True):
        wrong = [name for name in names if not _equal(truly[name], got[name])]
        if wrong:
            shown = {name: got[name] for name in names}
            return f"a row is {shown}; SQL gives {dict(truly)}"
    return ""


def _aligned(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Return `rows` in one order: what groups them stands first in the SQL and is never a tie."""
    return sorted(rows, key=lambda row: [str(row[name]) for name in names])


def _equal(truly: Json, got: Json) -> bool:
    if isinstance(truly, bool) or isinstance(got, bool):
        return truly is got
    if isinstance(truly, int | float) and isinstance(got, int | float):
        return math.isclose(truly, got, rel_tol=1e-9, abs_tol=CENTS)
    return truly == got
