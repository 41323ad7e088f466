from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import TemplateText, mask
from semcache.prompts.unseen.alignment import Skeletons, align

USED = frozenset(["flights", "from", "to", "on", "mail", "about", "songs", "by", "in", "show"])


def template(text: str, **values: str) -> TemplateText:
    params = [Parameter(name, words, mention=words) for name, words in values.items()]
    return mask(text, find_mentions(text, given=params))


FLIGHTS = template(
    "Flights from Boston to New York on 2024-03-11?", origin="Boston", destination="New York"
)


def aligned(text: str, to: TemplateText = FLIGHTS) -> list[tuple[str, str, str]] | None:
    mentions = align(text, to, vocabulary=USED)
    return None if mentions is None else [(m.text, m.kind, m.source) for m in mentions]


def test_new_values_are_found_where_nothing_else_differs() -> None:
    assert aligned("flights from San Jos\u00e9 to Oslo on 2025-01-02") == [
        ("San Jos\u00e9", "origin", "aligned"),
        ("Oslo", "destination", "aligned"),
        ("2025-01-02", "date", "recognized"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "trains from Rome to Oslo on 2025-01-02",
        "flights from Rome to Oslo on 2025-01-02 please",
        "flights from Rome to Oslo",
        "flights from Rome or Lima to Oslo on 2025-01-02",
        "flights from Rome without stops to Oslo on 2025-01-02",
        "flights from flights to Oslo on 2025-01-02",
        "flights from Rome to Oslo on 12",
        "flights from Rome to Oslo on holiday",
        "flights from Rome to 12 on 2025-01-02",
        "flights from Rome to Oslo on Monday evening",
        "flights from a1 b1 c1 d1 e1 f1 g1 to Oslo on 2025-01-02",
        "flights from Rome, Lima to Oslo on 2025-01-02",
        "flights from  to Oslo on 2025-01-02",
        "flights from Nadia's to Oslo on 2025-01-02",
        "flights from -Rome to Oslo on 2025-01-02",
    ],
)
def test_nothing_is_aligned_where_more_than_values_differ(text: str) -> None:
    assert aligned(text) is None


def test_a_split_that_could_be_made_in_two_ways_is_refused() -> None:
    songs = template("songs by Sia Thriller", artist="Sia", album="Thriller")
    assert aligned("songs by Abba Arrival", songs) is not None
    assert aligned("songs by Abba Super Trouper", songs) is None


def test_a_possessive_stays_outside() -> None:
    mail = template("mail Sofia's list", name="Sofia")
    assert aligned("mail O'Brien's list", mail) == [("O'Brien", "name", "aligned")]
    assert aligned("mail Nadia 's list .", mail) == [("Nadia", "name", "aligned")]


def test_a_name_may_have_signs_inside() -> None:
    mail = template("mail Sofia now", name="Sofia")
    assert aligned("mail Anne-Marie St. Clair & Co now", mail) == [
        ("Anne-Marie St. Clair & Co", "name", "aligned")
    ]


def test_a_value_said_twice_must_be_the_same_twice() -> None:
    mail = template("mail Sofia about Sofia", name="Sofia")
    assert aligned("mail Nadia about Nadia", mail) is not None
    assert aligned("mail Nadia about Lena", mail) is None


def test_a_learned_value_fills_only_a_slot_of_its_own_type() -> None:
    text = "mail Boston now"
    mentions = find_mentions(text, given=[Parameter("city", "Boston")])
    mail = template("mail Sofia now", name="Sofia")
    assert align(text, mail, mentions=mentions) is None
    assert align(text, template("mail Oslo now", city="Oslo"), mentions=mentions) == mentions


_NAME = st.sampled_from(["zorg", "Blip", "Qux-9x", "M\u00fcller"])
_NAMES = st.lists(_NAME, min_size=1, max_size=3)


@given(_NAMES, _NAMES)
@settings(max_examples=60)
def test_what_aligns_masks_to_exactly_the_template(left: list[str], right: list[str]) -> None:
    text = f"Flights  from {' '.join(left)} to {' '.join(right)} on 2024-01-01 !"
    mentions = align(text, FLIGHTS, vocabulary=USED)
    if mentions is not None:
        assert mask(text, mentions).text == FLIGHTS.text


def test_skeletons_give_the_templates_that_a_prompt_could_align_with() -> None:
    skeletons = Skeletons()
    skeletons.add("flights", FLIGHTS)
    skeletons.add("mail", template("mail Sofia", name="Sofia"))
    skeletons.add("any", template("Sofia", name="Sofia"))
    skeletons.add("years", template("flights from 2020 to 2021"))
    assert skeletons.candidates("flights from Oslo to Rome on Monday") == ["flights", "any"]
    assert skeletons.candidates("to Oslo from Rome on Monday flights") == ["any"]


def test_skeletons_forget_what_was_removed_or_replaced() -> None:
    skeletons = Skeletons()
    skeletons.add("one", template("mail Sofia", name="Sofia"))
    skeletons.add("one", template("call Sofia", name="Sofia"))
    assert skeletons.candidates("mail Nadia") == []
    assert skeletons.candidates("call Nadia") == ["one"]
    assert skeletons.remove("one")
    assert not skeletons.remove("one")
    assert len(skeletons) == 0


def test_a_prompt_looks_at_few_of_ten_thousand_templates() -> None:
    skeletons = Skeletons()
    kinds = ["".join(letters) for letters in product("abcdefghij", repeat=4)]
    for kind in kinds:
        skeletons.add(kind, template(f"show {kind} of Sofia", name="Sofia"))
    assert skeletons.candidates("show jazz of Nadia") == []
    assert skeletons.candidates("show bead of Nadia") == ["bead"]
    filed: Any = skeletons.to_json()["filed"]
    assert max(map(len, filed.values())) <= 2


def test_no_word_is_kept_of_templates_that_are_gone() -> None:
    skeletons = Skeletons()
    skeletons.add("a", template("flights to Rome", city="Rome"))
    skeletons.add("b", template("flights from Rome", city="Rome"))
    assert skeletons.remove("a")
    assert "to" not in str(skeletons.to_json())
    assert skeletons.remove("b")
    assert skeletons.to_json() == Skeletons().to_json()
