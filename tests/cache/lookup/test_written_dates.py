"""Dates in numbers: which of them is the day is told by a plan's own date, or by nothing."""

from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from semcache import Miss, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.prompts.recognizers.dates import days, in_order_of
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input, hit


def plan(since: str) -> JsonObject:
    return calling("depot.query", what="parcels", since=since)


def taught(source: str, iso: str, *, mention: str | None = None) -> PlanCache:
    cache = PlanCache.open(embedder=HashEmbedder())
    params = [Parameter("since", iso, mention=mention)]
    assert cache.store(f"parcels since {source}", plan(iso), params=params)
    return cache


@pytest.mark.parametrize("mention", [None, "said"])
@pytest.mark.parametrize(
    ("source", "iso", "query", "read"),
    [
        ("03/07/2024", "2024-03-07", "04/08/2023", "2023-04-08"),
        ("03/07/2024", "2024-07-03", "04/08/2023", "2023-08-04"),
        ("10/31/2024", "2024-10-31", "04/08/2023", "2023-04-08"),
        ("31/10/2024", "2024-10-31", "04/08/2023", "2023-08-04"),
        ("3.7.2024", "2024-07-03", "04.8.2023", "2023-08-04"),
        ("03/07/2024", "2024-07-03", "08/25/2023", "2023-08-25"),
    ],
)
def test_a_date_is_read_in_the_order_of_the_date_that_the_plan_was_made_for(
    source: str, iso: str, query: str, read: str, mention: str | None
) -> None:
    cache = taught(source, iso, mention=source if mention else None)
    assert given_input(cache.lookup(f"parcels since {query}")) == {"what": "parcels", "since": read}


@pytest.mark.parametrize(
    ("source", "iso", "query"),
    [
        ("04/04/2024", "2024-04-04", "04/08/2023"),
        ("March 7, 2024", "2024-03-07", "04/08/2023"),
        ("10/31/2024", "2024-10-31", "04-08-2023"),
        ("10/31/2024", "2024-10-31", "02/30/2023"),
        ("10/31/2024", "2024-10-31", "04/08/23"),
    ],
)
def test_a_date_whose_order_nothing_tells_is_planned(source: str, iso: str, query: str) -> None:
    assert isinstance(taught(source, iso).lookup(f"parcels since {query}"), Miss)


MARCH, JULY, BOTH = "2024-03-07", "2024-07-03", "parcels since 03/07/2024"
"""Two readings of one date, and the prompt that has it."""


@pytest.mark.parametrize("said", [{}, {"since"}, {"until"}, {"since", "until"}])
@pytest.mark.parametrize("until_first", [False, True])
def test_two_values_that_one_date_may_be_are_served_for_that_date_alone(
    said: set[str], until_first: bool
) -> None:
    params = [
        Parameter(name, day, mention="03/07/2024" if name in said else None)
        for name, day in (("since", MARCH), ("until", JULY))
    ]
    cache = PlanCache.open(embedder=HashEmbedder())
    both = calling("depot.query", since=MARCH, until=JULY)
    assert cache.store(BOTH, both, params=params[::-1] if until_first else params)
    for other in ("04/08/2023", "10/25/2023", "25/10/2023", *([] if said else [MARCH, JULY])):
        assert isinstance(cache.lookup(f"parcels since {other}"), Miss)
    again = cache.lookup(BOTH)
    assert isinstance(again, Miss) or again.plan.to_dict() == both


@pytest.mark.parametrize("swapped", [False, True])
def test_two_values_that_one_date_may_be_are_bound_by_name_where_they_are_given(
    swapped: bool,
) -> None:
    cache = PlanCache.open(embedder=HashEmbedder())
    days = {"since": MARCH, "until": JULY}
    assert cache.store(BOTH, calling("depot.query", **days), params=days)
    april, august = ("2023-08-04", "2023-04-08") if swapped else ("2023-04-08", "2023-08-04")
    wanted = {"since": april, "until": august}
    found = cache.lookup("parcels since 04/08/2023", params=wanted)
    assert isinstance(found, Miss) or given_input(found) == wanted


@pytest.mark.parametrize("held", [JULY, f"day >= '{JULY}'"])
@pytest.mark.parametrize("since", [MARCH, "03/07/2024"])
def test_the_other_day_that_a_date_may_be_does_not_stay_behind_in_a_plan(
    since: str, held: str
) -> None:
    cache = PlanCache.open(embedder=HashEmbedder())
    stored = calling("depot.query", since=since, filter=held)
    assert cache.store(BOTH, stored, params=[Parameter("since", since, mention="03/07/2024")])
    assert isinstance(cache.lookup("parcels since 04/08/2023"), Miss)
    again = hit(cache.lookup(BOTH))
    assert again.plan.to_dict() == stored


DAYS = st.dates(min_value=date(1970, 1, 1), max_value=date(2200, 12, 31))


@given(DAYS, DAYS, st.booleans(), st.sampled_from("/.-"), st.booleans())
def test_every_day_comes_back_as_it_was_written_where_the_order_is_told(
    known: date, query: date, day_first: bool, sign: str, padded: bool
) -> None:
    assume(known.day != known.month)
    way = ("%d", "%m", "%Y") if day_first else ("%m", "%d", "%Y")

    def written(day: date) -> str:
        parts = [day.strftime(each) for each in way]
        return sign.join(parts if padded else [part.lstrip("0") for part in parts])

    source = written(known)
    read = in_order_of(written(query), source=source, iso=known.isoformat())
    assert read == query.isoformat()
    assert known.isoformat() in days(source)


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_what_is_no_date_tells_nothing(text: str, source: str, iso: str) -> None:
    read = in_order_of(text, source=source, iso=iso)
    assert read is None or date.fromisoformat(read).isoformat() == read
    assert all(date.fromisoformat(day).isoformat() == day for day in days(text))
