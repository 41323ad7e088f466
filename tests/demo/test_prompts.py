import sqlite3

import pytest

from semcache.demo.cases import CASES, Case, truth

RANKINGS = [case for case in CASES if case.query.sql.endswith("LIMIT ?")]


def _named(case: Case) -> str:
    return case.prompt


def test_there_are_at_least_sixty_prompts_none_twice() -> None:
    assert len({case.prompt for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_the_sql_of_each_prompt_finds_something(case: Case, database: sqlite3.Connection) -> None:
    rows = truth(case, database)
    assert rows
    assert all(value is not None for row in rows for value in row.values())
    assert case.query.shape not in {"number", "record"} or len(rows) == 1


@pytest.mark.parametrize("case", RANKINGS, ids=_named)
def test_no_ranking_depends_on_how_ties_are_broken(
    case: Case, database: sqlite3.Connection
) -> None:
    *values, limit = case.values
    assert isinstance(limit, int)
    one_more = Case(case.prompt, case.query, (*values, limit + 1))
    figures = [str(list(row.values())[-1]) for row in truth(one_more, database)]
    assert len(set(figures)) == len(figures) == limit + 1


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_every_value_of_a_prompt_reaches_sql_as_a_parameter(case: Case) -> None:
    assert case.query.sql.count("?") >= len(case.values) >= 1
    assert not any(f"'{value}'" in case.query.sql for value in case.values)
