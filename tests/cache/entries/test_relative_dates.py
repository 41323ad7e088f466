"""Words such as "yesterday" are worked out on the day of asking, never frozen."""

from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Hit, Miss, Parameter, PlanCache
from semcache.errors import InvalidSettings
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, given_input

DAY = timedelta(days=1)


plan = partial(calling, "sales")


def at(*parts: int) -> FakeClock:
    return FakeClock(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]  # a date


def opened(clock: FakeClock, timezone: str = "UTC") -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder(), clock=clock, timezone=timezone)


def day_of(clock: FakeClock) -> date:
    return datetime.fromtimestamp(clock.now(), UTC).date()


def test_a_named_day_follows_the_clock() -> None:
    clock = at(2026, 11, 20)
    with opened(clock) as cache:
        params = [Parameter("day", "2026-11-19", mention="yesterday")]
        cache.store("sales of yesterday", plan(day="2026-11-19"), params=params)
        clock.advance(5 * 24 * 3600)
        assert given_input(cache.lookup("sales of yesterday")) == {"day": "2026-11-24"}
        assert given_input(cache.lookup("sales of tomorrow")) == {"day": "2026-11-26"}
        assert given_input(cache.lookup("sales of 2024-02-29")) == {"day": "2024-02-29"}
        assert isinstance(cache.lookup("sales of last month"), Miss)


@settings(max_examples=25)
@given(st.integers(0, 4000), st.integers(0, 28))
def test_a_range_that_nobody_named_follows_the_clock(later: int, earlier: int) -> None:
    clock = at(2026, 11, 29 - earlier)
    with PlanCache.open(embedder=HashEmbedder(), clock=clock, ttl_s=None) as cache:
        held = plan(start="2026-10-01", end="2026-10-31")
        cache.store("sales by region last month", held)
        clock.advance(later * 24 * 3600)
        last = day_of(clock).replace(day=1) - DAY
        wanted = {"start": last.replace(day=1).isoformat(), "end": last.isoformat()}
        assert given_input(cache.lookup("sales by region last month")) == wanted


def test_another_period_is_worked_out_in_the_way_of_the_example() -> None:
    clock = at(2026, 11, 20)
    with opened(clock) as cache:
        cache.store("sales of last month", plan(start="2026-10-01", end="2026-10-31"))
        found = cache.lookup("sales of this year")
        assert given_input(found) == {"start": "2026-01-01", "end": "2026-12-31"}


def test_a_date_beside_it_that_nobody_said_ends_the_plan_with_the_quarter_of_an_hour() -> None:
    clock = at(2026, 11, 20)
    with opened(clock) as cache:
        cache.store("sales of yesterday", plan(day="2026-11-19", until="2026-12-24"))
        assert isinstance(cache.lookup("sales of yesterday"), Hit)
        clock.advance(3600)
        assert isinstance(cache.lookup("sales of yesterday"), Miss)


def test_a_relative_word_is_refused_where_no_example_shows_what_it_comes_to() -> None:
    with opened(at(2026, 11, 20)) as cache:
        params = [Parameter("day", "2026-03-11", mention="2026-03-11")]
        cache.store("sales of 2026-03-11", plan(day="2026-03-11"), params=params)
        assert isinstance(cache.lookup("sales of yesterday"), Miss)


@pytest.mark.parametrize(
    ("timezone", "day"),
    [("UTC", "2026-11-19"), ("Pacific/Auckland", "2026-11-20"), ("America/Lima", "2026-11-19")],
)
def test_days_begin_where_the_settings_say(timezone: str, day: str) -> None:
    clock = at(2026, 11, 15, 22)
    with opened(clock, timezone) as cache:
        stored = "2026-11-15" if timezone == "Pacific/Auckland" else "2026-11-14"
        cache.store("sales of yesterday", plan(day=stored))
        clock.advance(5 * 24 * 3600)
        assert given_input(cache.lookup("sales of yesterday")) == {"day": day}


def test_a_time_zone_that_nobody_knows_is_a_clear_error() -> None:
    with pytest.raises(InvalidSettings, match=r"'Mars/Olympus'.*IANA"):
        opened(FakeClock(), "Mars/Olympus")


def test_a_plan_with_one_end_of_a_period_serves_no_period_that_lies_otherwise_to_the_day() -> None:
    clock = at(2026, 3, 11)
    with opened(clock) as cache:
        cache.store("soil moisture this week", plan(since="2026-03-09"))
        clock.advance(7 * 24 * 3600)
        assert given_input(cache.lookup("soil moisture this week")) == {"since": "2026-03-16"}
        assert given_input(cache.lookup("soil moisture this month")) == {"since": "2026-03-01"}
        for other in ("last week", "last month", "next week", "March 2024"):
            assert isinstance(cache.lookup(f"soil moisture {other}"), Miss), other


def test_a_parameter_that_begins_a_period_serves_no_period_that_lies_otherwise_to_the_day() -> None:
    clock = at(2026, 3, 11)
    with opened(clock) as cache:
        said = [Parameter("since", "2026-03-01", mention="this month")]
        cache.store("soil moisture this month", plan(since="2026-03-01"), params=said)
        assert isinstance(cache.lookup("soil moisture last month"), Miss)
        clock.advance(25 * 24 * 3600)
        assert given_input(cache.lookup("soil moisture this month")) == {"since": "2026-04-01"}
