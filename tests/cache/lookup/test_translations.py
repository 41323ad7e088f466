"""Values whose form in the plan differs from the words, by a table of known translations."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from semcache import Miss, Parameter, PlanCache, Settings
from semcache.canonical import Json, JsonObject, same
from semcache.errors import InvalidSettings
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input, hit

STATES = {"state": {"California": "CA", "New York": "NY", "Texas": "TX"}}


def plan(**values: Json) -> JsonObject:
    return calling("depot.query", what="trucks", **values)


def served(cache: PlanCache, prompt: str) -> object:
    return given_input(cache.lookup(prompt))


@pytest.fixture
def cache() -> PlanCache:
    return PlanCache.open(embedder=HashEmbedder(), translations=STATES)


def test_words_of_the_table_become_the_values_that_plans_have(cache: PlanCache) -> None:
    assert cache.store("trucks in California", plan(state="CA"), params={"state": "CA"})
    assert served(cache, "trucks in New York") == {"what": "trucks", "state": "NY"}
    assert served(cache, "Trucks in texas?") == {"what": "trucks", "state": "TX"}


def test_a_parameter_of_another_name_takes_them_too_if_its_plan_did(cache: PlanCache) -> None:
    assert cache.store("trucks in California", plan(where="CA"), params={"where": "CA"})
    assert served(cache, "trucks in Texas") == {"what": "trucks", "where": "TX"}


def test_a_plan_that_took_the_words_as_they_were_still_does(cache: PlanCache) -> None:
    params = [Parameter("state", "California", mention="California")]
    assert cache.store("red trucks in California", plan(state="California"), params=params)
    assert served(cache, "red trucks in Texas") == {"what": "trucks", "state": "Texas"}


def test_words_that_the_table_lacks_are_refused_as_before(cache: PlanCache) -> None:
    assert cache.store("old trucks in California", plan(state="CA"), params={"state": "CA"})
    for query in ("old trucks in Ontario", "old trucks in Calif", "old trucks in CA"):
        assert isinstance(cache.lookup(query), Miss)


def test_without_a_table_nothing_is_translated() -> None:
    with PlanCache.open(embedder=HashEmbedder()) as plain:
        plain.store("trucks in California", plan(state="CA"), params={"state": "CA"})
        assert isinstance(plain.lookup("trucks in Texas"), Miss)


def test_the_table_goes_before_what_other_plans_taught(cache: PlanCache) -> None:
    said = [Parameter("state", "Texas (US)", mention="Texas")]
    assert cache.store("vans in Texas", plan(state="Texas (US)"), params=said)
    assert cache.store("trucks in California", plan(state="CA"), params={"state": "CA"})
    assert served(cache, "trucks in Texas") == {"what": "trucks", "state": "TX"}


def test_words_of_grammar_count_only_as_they_are_spelled() -> None:
    with PlanCache.open(
        embedder=HashEmbedder(), translations={"unit": {"IT": "dep-7", "HR": "dep-9"}}
    ) as cache:
        assert cache.store("the trucks of IT today", plan(unit="dep-7"), params={"unit": "dep-7"})
        assert served(cache, "the trucks of HR today") == {"what": "trucks", "unit": "dep-9"}
        assert isinstance(cache.lookup("the trucks of it today"), Miss)


def test_values_keep_their_type() -> None:
    with PlanCache.open(
        embedder=HashEmbedder(), translations={"depot": {"Northgate": 17, "Southgate": 18}}
    ) as cache:
        assert cache.store("trucks at Northgate", plan(depot=17), params={"depot": 17})
        assert served(cache, "trucks at Southgate") == {"what": "trucks", "depot": 18}


def test_a_caller_may_give_the_value_that_the_words_stand_for(cache: PlanCache) -> None:
    assert cache.store("red trucks in California", plan(state="CA"), params={"state": "CA"})
    found = hit(cache.lookup("red trucks in Texas", params={"state": "TX"}))
    assert found.params == {"state": "TX"}


def test_tables_come_from_the_file_and_the_environment_too(tmp_path: Path) -> None:
    file = tmp_path / "semcache.toml"
    file.write_text('[translations.state]\nCalifornia = "CA"\n', encoding="utf-8")
    assert Settings.load(file=file).translations == {"state": {"California": "CA"}}
    environ = {"SEMCACHE_TRANSLATIONS": '{"depot": {"Northgate": 17}}'}
    assert Settings.load(environ=environ, file=file).translations == {"depot": {"Northgate": 17}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"state": "CA"}, "has 'CA'; expected name -> words -> value"),
        ({"": {"California": "CA"}}, "expected text for a name"),
        ({"state": {"": "CA"}}, "expected text for a name"),
        ({"state": {"California": None}}, r"value \(text, a number, true or false\)"),
        ({"state": {"California": ["CA"]}}, r"value \(text, a number, true or false\)"),
        ({"depot": {"Northgate": float("nan")}}, r"value \(text, a number, true or false\)"),
        ({"state": {"Washington": "WA"}, "city": {"washington": "WAS"}}, "stand for one value"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_name(tables: object, said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        PlanCache.open(embedder=HashEmbedder(), translations=tables)  # type: ignore[arg-type]  # wrong on purpose


WORDS = st.text(alphabet="bcdfgklmnprtvz", min_size=5, max_size=9)
CODES = st.text(alphabet="ABCXYZ0189", min_size=2, max_size=6).map(lambda code: f"D{code}")
TABLES = st.one_of(
    st.dictionaries(WORDS, CODES, min_size=2, max_size=6),
    st.dictionaries(WORDS, st.integers(20, 10**6), min_size=2, max_size=6),
)


@settings(max_examples=25)
@given(TABLES, WORDS)
def test_any_words_of_a_table_are_served_with_their_own_value_and_others_never(
    table: dict[str, str] | dict[str, int], other: str
) -> None:
    assume(other not in table and len({*table.values()}) == len(table))
    (first, value), *rest = table.items()
    with PlanCache.open(embedder=HashEmbedder(), translations={"depot": table}) as cache:
        assert cache.store(f"list trucks at {first}", plan(depot=value), params={"depot": value})
        for words, mine in rest:
            found = hit(cache.lookup(f"list trucks at {words}"))
            assert same(found.params["depot"], mine)
        assert isinstance(cache.lookup(f"list trucks at {other}"), Miss)
