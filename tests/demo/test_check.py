import sqlite3
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Found, Miss
from semcache.cache.result import Trace
from semcache.canonical import Json
from semcache.demo.cases import (
    CASES,
    Case,
    Checked,
    DemoTally,
    Way,
    checked,
    difference,
    finding,
    truth,
)
from semcache.errors import NotActionable, OperationFailed

GROUPS = next(case for case in CASES if case.query.shape == "groups")
RANKING = next(case for case in CASES if case.query.shape == "ranking")
NUMBER = next(case for case in CASES if case.query.shape == "number")
RECORD = next(case for case in CASES if case.query.shape == "record")
RECORDS = next(case for case in CASES if case.query.shape == "records")


def _rows(case: Case, database: sqlite3.Connection) -> list[Json]:
    return [dict(row) for row in truth(case, database)]


def _figure(row: Json) -> float:
    assert isinstance(row, dict)
    (value,) = row.values()
    assert isinstance(value, int | float)
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.prompt)
def test_what_sql_gives_is_right(case: Case, database: sqlite3.Connection) -> None:
    assert finding(case, _rows(case, database), database) == ""


def test_the_answer_of_every_other_question_is_wrong(database: sqlite3.Connection) -> None:
    known = [(case, _rows(case, database), truth(case, database)) for case in CASES]
    for case, _, expected in known:
        for other, answer, _ in known:
            same = (case.query, case.values) == (other.query, other.values)
            assert bool(difference(case.query.shape, expected, answer)) != same, (case, other)


@pytest.mark.parametrize("case", [GROUPS, RANKING, NUMBER, RECORD, RECORDS])
@pytest.mark.parametrize("wrap", ["answer", "data"])
def test_envelopes_do_not_matter(case: Case, wrap: str, database: sqlite3.Connection) -> None:
    rows = _rows(case, database)
    assert finding(case, {wrap: rows, "metadata": {}}, database) == ""


def test_a_bare_figure_is_a_number_and_may_be_rounded(database: sqlite3.Connection) -> None:
    figure = _figure(_rows(NUMBER, database)[0])
    assert finding(NUMBER, round(figure, 2), database) == ""
    assert "SQL gives" in finding(NUMBER, figure + 0.02, database)


def test_order_matters_in_a_ranking_only(database: sqlite3.Connection) -> None:
    assert finding(RANKING, _rows(RANKING, database)[::-1], database)
    assert finding(GROUPS, _rows(GROUPS, database)[::-1], database) == ""


def test_columns_beyond_the_sql_matter_in_groups_only(database: sqlite3.Connection) -> None:
    wider: list[Json] = [
        {**row, "more": 1} for row in _rows(GROUPS, database) if isinstance(row, dict)
    ]
    assert "more" in finding(GROUPS, wider, database)
    longer: list[Json] = [
        {**row, "more": 1} for row in _rows(RECORDS, database) if isinstance(row, dict)
    ]
    assert finding(RECORDS, longer, database) == ""


@pytest.mark.parametrize("answer", [None, "42", True, [1], [], {}, {"answer": None}])
def test_what_is_no_figure_is_a_wrong_number(answer: Json, database: sqlite3.Connection) -> None:
    assert finding(NUMBER, answer, database)


@settings(max_examples=60)
@given(data=st.data(), case=st.sampled_from(CASES))
def test_any_value_changed_anywhere_is_found(
    data: st.DataObject, case: Case, database: sqlite3.Connection
) -> None:
    rows = truth(case, database)
    row = data.draw(st.sampled_from(rows))
    name = data.draw(st.sampled_from(sorted(row)))
    row[name] = _changed(row[name])
    assert finding(case, list(rows), database)


@settings(max_examples=60)
@given(data=st.data(), case=st.sampled_from(CASES))
def test_a_row_missing_or_twice_is_found(
    data: st.DataObject, case: Case, database: sqlite3.Connection
) -> None:
    rows: list[Json] = _rows(case, database)
    place = data.draw(st.integers(0, len(rows) - 1))
    assert finding(case, rows[:place] + rows[place + 1 :], database)
    assert finding(case, [*rows, rows[place]], database)


def _changed(value: Json) -> Json:
    return value + 1 if isinstance(value, int | float) else f"{value}x"


@dataclass(frozen=True)
class Answer:
    value: Json
    found: Found


TRACE = Trace(prompt="", tenant="default", template="")
MISS = Miss(reason="empty", nearest=None, trace=TRACE)


def _asked(outcome: "Json | Exception", database: sqlite3.Connection) -> Checked:
    def ask(_prompt: str) -> Answer:
        if isinstance(outcome, Exception):
            raise outcome
        return Answer(outcome, MISS)

    return checked(NUMBER, ask, database)


def test_an_answer_is_right_wrong_refused_or_stopped(database: sqlite3.Connection) -> None:
    right, wrong, refused, stopped = (
        _asked(outcome, database)
        for outcome in (
            _rows(NUMBER, database), 1.0, NotActionable("no forecasts"),
            OperationFailed("no column"),
        )
    )  # fmt: skip
    assert (right.way, right.finding, right.wrong) == ("planned", "", False)
    assert (wrong.way, "SQL gives" in wrong.finding, wrong.wrong) == ("planned", True, True)
    assert (refused.way, refused.finding, refused.wrong) == ("refused", "no forecasts", False)
    assert (stopped.way, stopped.wrong, stopped.to_dict()["right"]) == ("failed", True, False)


def test_what_is_no_error_of_ours_is_not_hidden(database: sqlite3.Connection) -> None:
    with pytest.raises(ZeroDivisionError):
        _asked(ZeroDivisionError(), database)


def test_a_tally_adds_up() -> None:
    ways: list[Way] = ["planned", "template", "schema", "semantic", "refused", "failed"]
    tally = DemoTally.of(
        Checked(way, way, 0.5, None, "" if i < 3 else "x") for i, way in enumerate(ways)
    )
    assert tally == DemoTally(prompts=6, hits=3, planned=1, refused=1, wrong=2, seconds=3.0)
