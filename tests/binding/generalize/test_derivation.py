"""What follows from a bound value is bound by a codec, or pins the plan: nothing goes stale."""

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import PlanCache
from semcache.binding.bind import bind
from semcache.binding.generalize.derivation import DAYS, FACTORS
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject, dumps
from semcache.errors import BindingError
from semcache.testing import HashEmbedder

FAST = settings(max_examples=150)


def served(plan: JsonObject, params: dict[str, Json], others: dict[str, Json]) -> JsonObject | None:
    """Return what a plan made for `params` is for `others`; None if it does not serve them."""
    try:
        return bind(generalize(plan, params), others).plan
    except BindingError:
        return None


@pytest.mark.parametrize(
    ("plan", "params", "others", "expected"),
    [
        (
            {"since": "{{params.since}}-01-01", "until": "2025-01-01"},
            {"since": "2024"}, {"since": "2021"},
            {"since": "2021-01-01", "until": "2022-01-01"},
        ),
        (
            {"from": "2024-01-01T00:00:00Z", "to": "2024-12-31T23:59:59Z"},
            {"year": 2024}, {"year": 2021},
            {"from": "2021-01-01T00:00:00Z", "to": "2021-12-31T23:59:59Z"},
        ),
        (
            {"sql": "SELECT n FROM t WHERE d BETWEEN '2024-03-01' AND '2024-03-31'"},
            {"month": "2024-03"}, {"month": "2024-02"},
            {"sql": "SELECT n FROM t WHERE d BETWEEN '2024-02-01' AND '2024-02-29'"},
        ),
    ],
)  # fmt: skip
def test_the_days_of_a_period_follow_its_value(  # specs: A-16
    plan: JsonObject, params: dict[str, Json], others: dict[str, Json], expected: JsonObject
) -> None:
    assert served(plan, params, others) == expected


@pytest.mark.parametrize(
    ("plan", "params"),
    [
        ({"year": "{{params.year}}", "prev": "2023"}, {"year": "2024"}),
        ({"years": 3, "months": 36}, {"years": 3}),
        ({"price": 20, "cents": 2000}, {"price": 20}),
        ({"month": 3, "file": "report-03.csv"}, {"month": 3}),
        ({"day": "2024-03-11", "quarter": "Q1"}, {"day": "2024-03-11"}),
        ({"day": "2024-03-11", "week_ends": "2024-03-18"}, {"day": "2024-03-11"}),
        ({"order": "ORD-1001", "series": "ORD"}, {"order": "ORD-1001"}),
        ({"who": "Ada Lovelace", "mail": "ada@example.com"}, {"who": "Ada Lovelace"}),
        ({"who": "Ada Lovelace", "text": "Dear Ada, hello"}, {"who": "Ada Lovelace"}),
        ({"year": 2024, "table": "sales2024q1"}, {"year": 2024}),
        ({"year": 2024, "label": "FY24"}, {"year": 2024}),
        ({"day": "2024-03-11", "season": "2024/25"}, {"day": "2024-03-11"}),
        ({"year": 2024, "sql": "SELECT 1 FROM t WHERE y < 2025 -- no"}, {"year": 2024}),
    ],
)
def test_what_else_follows_pins_the_value(plan: JsonObject, params: dict[str, Json]) -> None:
    (name,) = params
    (pin,) = (p for p in generalize(plan, params).pinned if p.param == name)
    assert pin.why in {"derived", "left"}


@pytest.mark.parametrize(
    ("values", "constant"),
    [
        ({"since": "2026-01-01", "until": "2026-01-31"}, 31),
        ({"since": "2026-01-01", "until": "2026-01-31"}, "30"),
        ({"price": 20, "count": 3}, 60),
        ({"since": 2019, "until": 2024}, 5),
        ({"since": 1980}, 1989),
    ],
)
def test_what_follows_from_two_values_or_a_decade_pins_them(
    values: dict[str, Json], constant: Json
) -> None:
    pins = generalize({**values, "constant": constant}, values).pinned
    assert {(pin.param, pin.why) for pin in pins} == {(name, "derived") for name in values}


def test_a_day_that_two_periods_may_begin_is_bound_to_none() -> None:
    plan: JsonObject = {"year": 2024, "month": "2024-01", "since": "2024-01-01"}
    values: dict[str, Json] = {"year": 2024, "month": "2024-01"}
    assert served(plan, values, values | {"month": "2024-02"}) is None
    assert served(plan, values, values) == plan


def test_constants_that_nothing_said_makes_do_not_hold_a_plan_to_its_values() -> None:
    plan: JsonObject = {"year": 2024, "limit": 50, "page": 1, "sort": "amount desc"}
    assert served(plan, {"year": 2024}, {"year": 2021}) == {**plan, "year": 2021}


def test_a_prompt_for_another_year_is_planned_where_the_year_before_is_a_constant() -> None:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        plan = {"year": "{{params.year}}", "prev": "2023"}
        cache.store("growth in 2024", plan, params={"year": "2024"})
        assert not cache.lookup("growth in 2021", params={"year": "2021"})
        assert cache.lookup("growth in 2024", params={"year": "2024"})


# Every listed rule, written once more and forward: from a value to what follows from it.
NUMBERS: list[Callable[[int], Json]] = [
    lambda n: n + 1,
    lambda n: n - 1,
    lambda n: -n,
    lambda n: str(n).zfill(6),
    *(lambda n, k=k: n * k for k in FACTORS),
    *(lambda n, k=k: f"at most {n * k} of them" for k in (12, 1000)),
]
DATES: list[Callable[[date], Json]] = [
    lambda day: day.year,
    lambda day: day.strftime("%Y%m%d"),
    lambda day: f"{day:%Y-%m}",
    lambda day: f"{day.year + 1}-01-01",
    lambda day: f"{day.year}-12-31",
    lambda day: f"sales-{day.year}.csv",
    *(lambda day, n=n: (day + timedelta(days=n)).isoformat() for n in DAYS),
    *(lambda day, n=n: (day - timedelta(days=n)).isoformat() for n in DAYS),
]
CODES: list[Callable[[str, int], Json]] = [
    lambda letters, number: letters,
    lambda letters, number: letters.lower(),
    lambda letters, number: str(number),
    lambda letters, number: f"{letters}-{number}".lower(),
    lambda letters, number: f"see {letters}-{number}!",
    lambda letters, number: f"{letters}_{number}.pdf",
]


def stale(source: Json, other: Json, constant: Json) -> bool:
    """Return whether a plan made for `source` keeps `constant` when it serves `other`."""
    plan: JsonObject = {"value": source, "deep": [{"constant": constant}]}
    found = served(plan, {"value": source}, {"value": other})
    return found is not None and dumps(found["deep"]) == dumps(plan["deep"])


@given(st.integers(2, 99_999), st.integers(2, 99_999), st.sampled_from(NUMBERS))
@FAST
def test_no_number_that_follows_from_another_goes_stale(
    n: int, other: int, derive: Callable[[int], Json]
) -> None:
    constant = derive(n)
    # In a text, a number of one or two digits stands for itself.
    by_chance = isinstance(constant, str) and " " in constant and len(str(n).strip("0")) < 3
    if n != other and constant not in (0, 1) and not by_chance:
        assert not stale(n, other, constant)


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.sampled_from(DATES))
@FAST
def test_no_date_that_follows_from_another_goes_stale(
    day: date, derive: Callable[[date], Json]
) -> None:
    assert not stale(day.isoformat(), "2095-05-05", derive(day))


@given(st.from_regex(r"[A-Z]{2,4}", fullmatch=True), st.integers(10, 9999), st.sampled_from(CODES))
@FAST
def test_no_piece_of_a_code_goes_stale(
    letters: str, number: int, derive: Callable[[str, int], Json]
) -> None:
    assert not stale(f"{letters}-{number}", "ZZZZZ-77777", derive(letters, number))
