"""Names find the properties that they mean, all at once; what could be several is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json, JsonObject
from semcache.planners.arguments.coercion import fits
from semcache.planners.arguments.input_fields import MAX_PLACES, mapped, places


def schema(required: tuple[str, ...] = (), /, **properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


def found(names: list[str], into: JsonObject, about: tuple[str, ...] = ()) -> dict[str, str]:
    made = mapped(names, places(into), about=about)
    return {names[pair.given]: pair.place.name for pair in made.pairs}


def named(names: list[str]) -> dict[str, Json]:
    return {name: {"type": "string"} for name in names}


TEXT: JsonObject = {"type": "string"}
PAGED = schema(owner=TEXT, page={"type": "integer"}, perPage={"type": "integer"})


@pytest.mark.parametrize(
    ("name", "place"),
    [("per_page", "perPage"), ("Owner", "owner"), ("owner", "owner"), ("perpage", "perPage")],
)
def test_a_name_finds_its_property_however_it_is_spelled(name: str, place: str) -> None:
    # specs: E-5
    assert found([name], PAGED) == {name: place}


def test_page_size_means_per_page_even_where_there_is_a_page() -> None:
    # specs: E-5
    assert found(["page size"], PAGED) == {"page size": "perPage"}
    assert found(["page", "page size"], PAGED) == {"page": "page", "page size": "perPage"}


def test_two_names_share_out_the_properties_so_that_both_fit_best() -> None:
    into = schema(city=TEXT, from_city=TEXT)
    assert found(["origin city", "city"], into) == {"origin city": "from_city", "city": "city"}


def test_no_name_gives_up_what_it_fits_best_so_that_another_fits() -> None:
    made = mapped(["page size", "limit of pages"], places(schema(page_limit=TEXT, page_count=TEXT)))
    assert [pair.place.name for pair in made.pairs] == ["page_limit"]
    assert made.left == (1,)


def test_a_name_that_could_be_two_properties_is_told_and_not_guessed() -> None:
    # specs: E-5
    made = mapped(["city"], places(schema(start_city=TEXT, end_city=TEXT, country=TEXT)))
    assert made.ambiguous == ((0, ("start_city", "end_city")),)
    assert not made.pairs


def test_a_name_may_leave_out_what_the_operation_is_about() -> None:
    into = schema(issue_number={"type": "integer"}, repo=TEXT)
    assert found(["number"], into) == {}
    assert found(["number"], into, about=("issue",)) == {"number": "issue_number"}


def test_a_value_that_cannot_go_in_keeps_a_name_from_a_property() -> None:
    into = places(schema(limit={"type": "integer"}, page_limit_note=TEXT))
    made = mapped(["limit"], into, fits=lambda _, place: fits("many", place.schema))
    assert "limit" not in {pair.place.name for pair in made.pairs}


def test_an_enormous_schema_is_read_up_to_a_bound_with_what_is_required_first() -> None:
    many: dict[str, Json] = {f"p{i}": TEXT for i in range(5000)}
    into = places(schema(("p4999",), **many))
    assert len(into) == MAX_PLACES
    assert into[0].name == "p4999"


@pytest.mark.parametrize("broken", [{}, {"properties": []}, {"properties": {"a": 1}}])
def test_what_is_no_schema_has_no_places_or_open_ones(broken: JsonObject) -> None:
    assert all(not place.types for place in places(broken))


NAMES = st.lists(
    st.sampled_from(["page", "per page", "limit", "Owner", "repo", "owner name", "id", "q", "x y"])
    | st.text(max_size=8),
    max_size=5,
)


@given(NAMES, NAMES)
@settings(max_examples=100)
def test_no_property_is_given_twice_and_every_name_is_accounted_for(
    given_names: list[str], listed: list[str]
) -> None:
    made = mapped(given_names, places(schema(**named(listed))))
    taken = [pair.place.name for pair in made.pairs]
    assert len(taken) == len(set(taken))
    told = [pair.given for pair in made.pairs] + [i for i, _ in made.ambiguous] + list(made.left)
    assert sorted(told) == list(range(len(given_names)))


@given(st.lists(st.text(min_size=1, max_size=6), unique=True, min_size=1, max_size=6))
@settings(max_examples=50)
def test_the_very_same_names_always_find_themselves(names: list[str]) -> None:
    assert found(names, schema(**named(names))) == {name: name for name in names}
