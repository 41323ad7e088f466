import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.canonical import dumps
from semcache.prompts.recognizers.learned_values import CopiedShare, LearnedValues


def learned(*params: Parameter) -> LearnedValues:
    known = LearnedValues()
    for parameter in params:
        known.add(parameter)
    return known


def said(name: str, words: str, value: str | None = None) -> Parameter:
    return Parameter(name, words if value is None else value, mention=words)


def types(known: LearnedValues, text: str) -> list[str]:
    return [slot_type for *_, slot_type in known.find(text)]


def test_the_type_seen_most_often_wins_and_the_earlier_one_on_a_tie() -> None:
    known = learned(said("airport", "Washington"), said("city", "Washington"))
    assert types(known, "to washington") == ["airport"]
    known.add(said("city", "Washington"))
    assert types(known, "to washington") == ["city"]


def test_what_was_discarded_is_forgotten_use_by_use() -> None:
    known = learned(said("city", "Oslo"), said("city", "Oslo"))
    known.discard(said("city", "Oslo"))
    assert types(known, "to Oslo") == ["city"]
    known.discard(said("city", "Oslo"))
    assert types(known, "to Oslo") == []
    assert known.translation("city", "Oslo") is None
    assert known.copied_share("city") == CopiedShare(0, 0)


def test_discarding_what_was_never_added_changes_nothing() -> None:
    known = learned(said("city", "Oslo"))
    known.discard(said("city", "Bergen"))
    known.discard(said("city", "Oslo", "OSL"))
    assert types(known, "to Oslo") == ["city"]


@pytest.mark.parametrize("words", ["the", "in", "not", "42", "1,000", "more", " ".join("x" * 60)])
def test_grammar_numbers_and_whole_texts_are_not_learned(words: str) -> None:
    assert types(learned(said("thing", words)), f"show {words} now") == []


def test_a_long_official_name_is_learned() -> None:
    name = "calculus of bile duct without mention of cholecystitis, without obstruction"
    assert types(learned(said("diagnosis", name)), f"patients with {name}") == ["diagnosis"]


def test_a_name_that_is_also_grammar_counts_only_with_its_capitals() -> None:
    known = learned(said("requirement", "Other"))
    assert types(known, "the Other classes") == ["requirement"]
    assert types(known, "the other classes") == []
    assert types(known, "Other classes") == []


def test_a_translation_is_known_only_if_all_uses_agree() -> None:
    known = learned(said("city", "SFO", "San Francisco"), said("city", "sfo", "San Francisco"))
    assert known.translation("city", "Sfo") == "San Francisco"
    assert known.translation("airport", "SFO") is None
    known.add(said("city", "SFO", "South San Francisco"))
    assert known.translation("city", "SFO") is None


def test_the_copied_share_tells_words_from_other_values() -> None:
    known = learned(
        said("city", "Oslo"), said("city", "oslo", "Oslo"), said("city", "SFO", "San Francisco"),
        Parameter("city", "Rome"),
    )  # fmt: skip
    assert known.copied_share("city") == CopiedShare(verbatim=2, other=2)
    assert known.copied_share("state") == CopiedShare(0, 0)


def test_types_with_mostly_the_same_values_become_one() -> None:
    cities = ["Oslo", "Rome", "Paris", "Lima", "Cairo"]
    known = learned(*(said("origin", c) for c in cities), *(said("destination", c) for c in cities))
    assert known.kind("origin") == known.kind("destination") == "destination"
    assert types(known, "from Oslo to Rome") == ["destination", "destination"]


def test_types_that_share_a_few_values_stay_apart() -> None:
    both = ["New York", "Washington"]
    known = learned(*(said("city", c) for c in both), *(said("state", c) for c in both))
    assert (known.kind("city"), known.kind("state")) == ("city", "state")


def test_joined_types_join_others_too() -> None:
    cities = ["Oslo", "Rome", "Paris", "Lima", "Cairo"]
    known = learned(*(said(name, c) for name in ("to", "via", "from") for c in cities))
    assert {known.kind(name) for name in ("to", "via", "from")} == {"from"}


_PARAMS = st.lists(
    st.builds(said, st.sampled_from("abc"), st.sampled_from(["Oslo", "New York", "x y", "the"])),
    max_size=12,
)


@given(_PARAMS)
@settings(max_examples=100)
def test_adding_and_discarding_the_same_leaves_nothing(params: list[Parameter]) -> None:
    known = learned(*params)
    for parameter in params:
        known.discard(parameter)
    assert list(known.find("Oslo, New York, x y, the")) == []
    assert all(known.copied_share(name) == CopiedShare(0, 0) for name in "abc")


def test_new_words_stand_for_themselves_where_words_that_look_so_did() -> None:
    known = LearnedValues()
    cities = ["Bergen", "Cork", "Delft", "Evora", "Faro", "Ghent", "Hull", "Izmir", "Jena"] * 3
    for city in cities:
        known.add(Parameter("city", city, mention=city))
    for code, city in (("AMS", "Amsterdam"), ("BCN", "Barcelona"), ("CPH", "Copenhagen")):
        known.add(Parameter("city", city, mention=code))
    assert known.other_share("city", "LHR") > 0.5 > known.other_share("city", "Oslo")
    assert known.other_share("city", "Oslo") < 0.06
    assert known.other_share("city", "Oslo, NO") == pytest.approx(0.25)
    assert known.other_share("street", "Oslo") == 0
    for city in cities:
        known.discard(Parameter("city", city, mention=city))
    assert known.other_share("city", "Oslo") == 1


def test_nothing_is_kept_of_a_value_that_nobody_uses_any_more() -> None:
    known = learned(said("city", "Springfield"))
    known.add(said("town", "Springfield"))
    known.add(said("code", "Ogdenville", "OGD"))
    for gone in (said("city", "Springfield"), said("town", "Springfield")):
        known.discard(gone)
    assert "pringfield" not in dumps(known.to_json())
    known.discard(said("code", "Ogdenville", "OGD"))
    assert "gdenville" not in dumps(known.to_json())
