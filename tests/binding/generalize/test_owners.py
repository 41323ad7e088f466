from collections.abc import Callable

from semcache import Parameter
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import JsonObject
from semcache.prompts.mentions import Mention

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]


def test_the_words_of_a_parameter_find_its_mention(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="rome"), Parameter("year", 2024, mention="2024")]
    mentions = [say("2024", "year", 2024), say("Rome", "place"), say("Rome", "place")]
    template = generalize(routes({"city": "Rome", "year": 2024}), params, mentions)
    assert template.carriers == ("year", "city", "place1")
    assert template.params[0].mention == "Rome"


def test_the_same_words_for_different_values_pin_both(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="RO"), Parameter("country", "IT", mention="ro")]
    mentions = [say("RO", "code", name="city"), say("ro", "code", name="country")]
    template = generalize(routes({"city": "Rome", "country": "IT"}), params, mentions)
    assert {pin.param: pin.why for pin in template.pinned} == {
        "city": "ambiguous",
        "country": "ambiguous",
    }


def test_a_value_that_stands_twice_is_carried_by_both_mentions(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="Rome")]
    mentions = [say("Rome", "city", name="city"), say("Rome", "city", name="city")]
    assert generalize(routes({"city": "Rome"}), params, mentions).carriers == ("city", "city")
