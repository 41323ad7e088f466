"""Dates in numbers: which of them is the day is told by a plan's own date, or by nothing."""

from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from semcache import Miss, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.prompts.dates import in_order_of
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input


def plan(since: str) -> JsonObject:
    return calling("depot.query", what="parcels", since=since)


def taught(source: str, iso: str, *, mention: str | None = None) -> PlanCache:
    cache = PlanCache.open(embedder=HashEmbedder())
    params = [Parameter("since", iso, mention=mention)]
    assert cache.store(f"parcels since {source}", plan(iso), params=params)
    return cache


@pytest.mark.parametrize("mention", [None, "said"])
@pytest.mark.parametrize(
    ("source", "iso", "asked", "read"),
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
    source: str, iso: str, asked: str, read: str, mention: str | None
) -> None:
    cache = taught(source, iso, mention=source if mention else None)
    assert given_input(cache.lookup(f"parcels since {asked}")) == {"what": "parcels", "since": read}


@pytest.mark.parametrize(
    ("source", "iso", "asked"),
    [
        ("04/04/2024", "2024-04-04", "04/08/2023"),
        ("March 7, 2024", "2024-03-07", "04/08/2023"),
        ("10/31/2024", "2024-10-31", "04-08-2023"),
        ("10/31/2024", "2024-10-31", "02/30/2023"),
        ("10/31/2024", "2024-10-31", "04/08/23"),
    ],
)
def test_a_date_whose_order_nothing_tells_is_planned(source: str, iso: str, asked: str) -> None:
    assert isinstance(taught(source, iso).lookup(f"parcels since {asked}"), Miss)


DAYS = st.dates(min_value=date(1970, 1, 1), max_value=date(2200, 12, 31))


@given(DAYS, DAYS, st.booleans(), st.sampled_from("/.-"), st.booleans())
def test_every_day_comes_back_as_it_was_written_where_the_order_is_told(
    known: date, asked: date, day_first: bool, sign: str, padded: bool
) -> None:
    assume(known.day != known.month)
    way = ("%d", "%m", "%Y") if day_first else ("%m", "%d", "%Y")

    def written(day: date) -> str:
        parts = [day.strftime(each) for each in way]
        return sign.join(parts if padded else [part.lstrip("0") for part in parts])

    source = written(known)
    read = in_order_of(written(asked), source=source, iso=known.isoformat())
    assert read == asked.isoformat()


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_what_is_no_date_tells_nothing(text: str, source: str, iso: str) -> None:
    read = in_order_of(text, source=source, iso=iso)
    assert read is None or date.fromisoformat(read).isoformat() == read
