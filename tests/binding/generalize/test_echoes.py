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


def test_words_that_repeat_a_value_change_with_it(routes: Routes, say: Say) -> None:
    params = [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace")]
    mentions = [
        say("Ada Lovelace", "customer", name="customer"),
        say("'Call with Ada Lovelace'", "quoted", "Call with Ada Lovelace"),
    ]
    template = generalize(routes({"customer": "Ada Lovelace"}), params, mentions)
    bound = bind(template, {"customer": "Bob Ray", "quoted1": "Call with Bob Ray"})
    assert bound.plan == routes({"customer": "Bob Ray"})
    for title in ("Call with Ada Lovelace", "Meet Bob Ray"):
        with pytest.raises(BindingError) as caught:
            bind(template, {"customer": "Bob Ray", "quoted1": title})
        assert caught.value.reason == "pinned"


def test_a_short_number_in_other_words_is_no_echo(routes: Routes, say: Say) -> None:
    params = [Parameter("days", 5, mention="5")]
    mentions = [say("5", value=5, name="days"), say("'Top 5'", "quoted", "Top 5")]
    template = generalize(routes({"days": 5}), params, mentions)
    assert [pin.why for pin in template.pinned] == ["unknown"]


def test_words_of_their_own_stay_pinned_beside_a_value(routes: Routes, say: Say) -> None:
    params = [Parameter("customer", "Ada Lovelace", mention="Ada Lovelace")]
    mentions = [
        say("Ada Lovelace", "customer", name="customer"),
        say("Hello", "quoted"),
        say("70", value=70),
    ]
    plan = routes({"customer": "Ada Lovelace", "low": 70, "high": 70})
    template = generalize(plan, params, mentions)
    assert {pin.why for pin in template.pinned} == {"unknown", "repeated"}
