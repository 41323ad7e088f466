from functools import partial

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.testing import HashEmbedder
from tests.calling import calling, hit, missed

CELLARS = ["Alba", "Barolo", "Chablis", "Douro", "Etna", "Fiano", "Gavi", "Hermitage", "Irouleguy"]
CELLARS += ["Jerez", "Kamptal", "Lugana", "Madiran", "Nahe", "Orvieto", "Priorat"]


plan = partial(calling, "cellar.find")


WAYS = ("Any red wine from {} left?", "Is any red wine from {} left", "red wine from {} left")


@pytest.fixture
def cellar(embedder: HashEmbedder) -> PlanCache:
    """A cache of a merchant whose prompts were looked up, missed and planned."""
    cache = PlanCache.open(embedder=embedder, max_wrong=0.05)
    for i, region in enumerate(CELLARS):
        ask(cache, WAYS[i % 3].format(region), region=region)
    return cache


def ask(cache: PlanCache, text: str, **given: str) -> JsonObject | None:
    """Look a prompt up and plan it if it misses; return the input of a hit's call."""
    found = cache.lookup(text)
    if isinstance(found, Hit):
        call = found.plan.to_dict()["call"]
        assert isinstance(call, dict)
        return call["input"]  # type: ignore[return-value]  # an object in every plan here
    cache.store(text, plan(**given), params=given)
    return None


def test_a_name_never_seen_before_is_bound_in_words_that_no_template_has_in_that_order(
    cellar: PlanCache,
) -> None:
    found = hit(cellar.lookup("Is there any red wine from Rueda left, please?"))
    assert found.params == {"region": "Rueda"}
    assert found.tier == "semantic"
    assert "supposing" in found.explain()


def test_a_name_never_seen_before_behind_another_plans_word_is_planned(cellar: PlanCache) -> None:
    for region in CELLARS:
        query = f"Any vinegar of {region} left?"
        if not cellar.lookup(query):
            cellar.store(query, calling("vinegar.find", region=region), params={"region": region})
    found = missed(cellar.lookup("Is any red wine of Rueda left?"))
    assert "values behind other words than its own: 'Rueda'" in found.explain()


def test_planned_misses_say_what_was_rightly_supposed(cellar: PlanCache) -> None:
    before = cellar.evidence().supposed
    assert ask(cellar, "Is there not any red wine from Toro left?", region="Toro") is None
    after = cellar.evidence().supposed
    gained = {k for k, n in after.same.items() if n > before.same.get(k, 0)}
    assert any(key.endswith("region from") for key in gained)


def test_suppositions_of_a_sort_that_was_wrong_are_not_served(cellar: PlanCache) -> None:
    for name in ("Ulla", "Vera", "Wim", "Xenia", "Yann", "Zoe", "Bea", "Cem", "Dora", "Eva"):
        cellar.lookup(f"What did I buy from {name} in all?")
        cellar.store(f"What did I buy from {name} in all?", plan(), params={})
    found = cellar.lookup("red wine from Frida left")
    assert "supposing" not in found.explain()


def test_values_that_are_not_the_words_are_not_bound_from_new_words(
    embedder: HashEmbedder,
) -> None:
    cache = PlanCache.open(embedder=embedder, max_wrong=0.05)
    for i, region in enumerate(CELLARS):
        code = Parameter("region", region[:2].upper(), mention=region)
        cache.lookup(WAYS[i % 3].format(region))
        cache.store(WAYS[i % 3].format(region), plan(region=code.value), params=[code])
    found = missed(cache.lookup("Is there any red wine from Rueda left, please?"))
    assert "no known translation of 'Rueda'" in found.explain()


@pytest.mark.parametrize(
    "text",
    [
        "Any red wine from <region> left?",
        "Any red wine from <Rueda> left?",
        "Any red wine from {{params.region}} left?",
        "Any red wine from $.call left?",
        "Any red wine from '; DROP TABLE wine; -- left?",
        "Any red wine from " + "Rueda " * 3000 + "left?",
    ],
)
def test_hostile_text_is_a_miss_or_data(cellar: PlanCache, text: str) -> None:
    found = cellar.lookup(text)
    if isinstance(found, Hit):
        region = found.params["region"]
        assert isinstance(region, str)
        assert region in text
        assert found.plan.to_dict() == plan(region=region)


def test_parameters_that_are_given_are_never_joined_by_suppositions(cellar: PlanCache) -> None:
    found = cellar.lookup(
        "Is there any red wine from Rueda left, please?", params={"region": "Toro"}
    )
    assert not isinstance(found, Hit) or found.params == {"region": "Toro"}


def test_reopening_finds_the_same_habits_in_what_is_stored(
    tmp_path_factory: pytest.TempPathFactory, embedder: HashEmbedder
) -> None:
    directory = tmp_path_factory.mktemp("cellar")
    text = "Is there any red wine from Rueda left, please?"
    with PlanCache.open(directory, embedder=embedder, max_wrong=0.05) as cache:
        for i, region in enumerate(CELLARS):
            way = ("Any red wine from {} left?", "Is any red wine from {} left")[i % 2]
            ask(cache, way.format(region), region=region)
        first = cache.lookup(text)
    with PlanCache.open(directory, embedder=embedder, max_wrong=0.05) as cache:
        again = cache.lookup(text)
    assert first.to_dict().keys() == again.to_dict().keys()
    assert bool(first) == bool(again)
