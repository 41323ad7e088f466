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


@pytest.mark.parametrize("named", [False, True])
def test_one_end_of_a_period_serves_no_period_that_lies_otherwise_to_the_day(
    named: bool,
) -> None:
    clock = at(2026, 3, 11)
    said = [Parameter("since", "2026-03-09", mention="this week")] if named else None
    with opened(clock) as cache:
        cache.store("soil moisture this week", plan(since="2026-03-09"), params=said)
        clock.advance(7 * 24 * 3600)
        assert given_input(cache.lookup("soil moisture this week")) == {"since": "2026-03-16"}
        assert given_input(cache.lookup("soil moisture this month")) == {"since": "2026-03-01"}
        for other in ("last week", "last month", "next week", "March 2024"):
            assert isinstance(cache.lookup(f"soil moisture {other}"), Miss), other
