from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import JsonObject
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]


def test_a_value_that_may_have_made_an_unsaid_one_is_pinned(routes: Routes, say: Say) -> None:
    params = [Parameter("min_age", 40, mention="40"), Parameter("max_age", 49)]
    mentions = [say("40", value=40, name="min_age")]
    template = generalize(routes({"min_age": 40, "max_age": 49}), params, mentions)
    with pytest.raises(BindingError) as caught:
        bind(template, {"min_age": 30, "max_age": 49})
    assert caught.value.reason == "pinned"


def test_a_value_inside_the_words_of_another_is_kin(routes: Routes, say: Say) -> None:
    params = [
        Parameter("address", "5 Main St", mention="5 Main St"),
        Parameter("number", 5, mention="5"),
    ]
    mentions = [say("5 Main St", "address", name="address")]
    template = generalize(routes({"address": "5 Main St", "number": 5}), params, mentions)
    with pytest.raises(BindingError):
        bind(template, {"address": "7 Oak Ave", "number": 5})


def test_an_unsaid_value_of_another_kind_does_not_pin(routes: Routes, say: Say) -> None:
    params = [Parameter("city", "Rome", mention="Rome"), Parameter("good_for_kids", "True")]
    template = generalize(
        routes({"city": "Rome", "good_for_kids": "True"}),
        params,
        [say("Rome", "city", name="city")],
    )
    assert template.pinned == ()
