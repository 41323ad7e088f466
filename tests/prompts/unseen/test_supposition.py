from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.prompts.mentions import find_mentions
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import mask
from semcache.prompts.unseen.habits import Habits
from semcache.prompts.unseen.supposition import MAX_TOKENS, Supposition, suppose

PLANTS = ["Aloe", "Begonia", "Blue Fescue", "Cranesbill", "Daphne", "Edelweiss", "Foxglove"]
GROWERS = ["Ruth Ames", "Ned Bell", "Ida Cole", "Max Dorn", "Ann Ells", "Tom Fry", "Sue Gray"]
WAYS = [
    "How often should I water {plant} in winter?",
    "Is {plant} poisonous for cats",
    "please list the seeds of {plant} that {grower} sells",
    "Which plants were grown by {grower} last",
]


def nursery(cased: bool = True) -> tuple[Habits, LearnedValues]:
    habits, learned = Habits(), LearnedValues()
    for i, (plant, grower) in enumerate(zip(PLANTS, GROWERS, strict=True)):
        for j, way in enumerate(WAYS):
            text = way.format(plant=plant, grower=grower)
            values = {"plant": plant, "grower": grower}
            said = [Parameter(n, v, mention=v) for n, v in values.items() if v in text]
            if not cased:
                text = text.lower()
                said = [Parameter(p.name, str(p.value).lower()) for p in said]
            habits.add(f"{i} {j}", mask(text, find_mentions(text, given=said)))
            for parameter in said:
                learned.add(parameter)
    return habits, learned


NURSERY = nursery()
LOWER = nursery(cased=False)


def read(text: str, known: tuple[Habits, LearnedValues] = NURSERY) -> Supposition | None:
    habits, learned = known
    return suppose(text, find_mentions(text, learned=learned), habits)


def supposed(text: str, known: tuple[Habits, LearnedValues] = NURSERY) -> list[tuple[str, str]]:
    reading = read(text, known)
    return [] if reading is None else [(m.text, m.kind) for m, *_ in reading.supposed]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How often should I water Gunnera in summer?", [("Gunnera", "plant")]),
        ("how often should I water Hen and Chicks in winter", [("Hen and Chicks", "plant")]),
        ("Is Jade Plant poisonous for dogs?", [("Jade Plant", "plant")]),
        ("List the seeds of Iris that Vic Hale sells", [("Iris", "plant"), ("Vic Hale", "grower")]),
        ("Which of the plants were grown by Lou Ito last?", [("Lou Ito", "grower")]),
    ],
)
def test_names_never_seen_before_are_values_of_what_stands_there_elsewhere(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert supposed(text) == expected


def test_words_without_capitals_are_told_by_what_stands_beside_them() -> None:
    assert supposed("how often should i water gunnera in winter", LOWER) == [("gunnera", "plant")]
    assert supposed("is jade leaf poisonous for cats", LOWER) == [("jade leaf", "plant")]


def test_a_longer_name_takes_in_the_known_one_inside_it() -> None:
    assert supposed("How often should I water Aloe Vera in winter?") == [("Aloe Vera", "plant")]


@pytest.mark.parametrize(
    "text",
    [
        "How often should I water Aloe in winter?",
        "Is Foxglove poisonous for cats",
        "how often should i water it in winter",
        "Please list the seeds",
        "",
        "?!",
    ],
)
def test_nothing_is_supposed_where_nothing_is_new(text: str) -> None:
    assert read(text) is None


def test_nothing_is_supposed_before_any_template_is_known() -> None:
    assert suppose("Is Jade Plant poisonous?", (), Habits()) is None


def test_what_stands_where_values_stand_is_surer_than_what_stands_elsewhere() -> None:
    there = read("Is Jade Plant poisonous for cats")
    elsewhere = read("Is it poisonous for Nubian cats")
    assert there is not None
    assert elsewhere is None or elsewhere.supposed[0].odds < there.supposed[0].odds


def test_a_type_with_few_values_that_come_often_takes_no_new_ones() -> None:
    habits = Habits()
    for i in range(40):
        color = ("red", "blue")[i % 2]
        said = [Parameter("color", color)]
        text = f"show {color} tiles of lot {i}"
        habits.add(str(i), mask(text, find_mentions(text, given=said)))
    mention = suppose("show teal tiles of lot 3", find_mentions("show teal tiles of lot 3"), habits)
    assert mention is None or mention.supposed[0].odds < 2


def test_a_very_long_prompt_is_left_as_it_is() -> None:
    assert read("Is Jade Plant poisonous " + "for cats " * MAX_TOKENS) is None
    assert read("Jade " * 200_000) is None


PIECES = st.sampled_from(
    ["water", "Is", "plant", "<plant>", "<year>", "Aloe", "Jade", "by", ",", "'s", "2024", "?", "$",
     "^", "Ruth", "Ames", "I", "of the", "the",
     "\u00c9clair", "\ud55c\uae00", "\u202e", "e\u0301", "\U0001f331"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map(" ".join) | st.text(max_size=80)


def check(text: str, reading: Supposition, before: Sequence[object]) -> None:
    ends = 0
    for mention in reading.mentions:
        assert ends <= mention.start < mention.end <= len(text)
        assert mention.text == text[mention.start : mention.end]
        assert mention.source == "supposed" or mention in before
        ends = mention.end
    assert [s.mention for s in reading.supposed] == [
        m for m in reading.mentions if m.source == "supposed"
    ]


@given(TEXTS)
@settings(max_examples=150)
def test_readings_are_in_order_and_hold_what_was_known(text: str) -> None:
    mentions = find_mentions(text, learned=NURSERY[1])
    reading = suppose(text, mentions, NURSERY[0])
    if reading is not None:
        check(text, reading, mentions)
        covered = [m for m in mentions if m.source in {"recognized", "closed"}]
        for known in covered:
            assert any(m.start <= known.start and known.end <= m.end for m in reading.mentions)
        mask(text, reading.mentions)


@given(st.lists(TEXTS, min_size=1, max_size=5))
@settings(max_examples=60)
def test_what_is_counted_can_be_taken_back(texts: list[str]) -> None:
    habits = Habits()
    for i, text in enumerate(texts):
        habits.add(str(i), mask(text, find_mentions(text, learned=NURSERY[1])))
    for i in range(len(texts)):
        habits.remove(str(i))
    assert (habits.size, habits.kinds) == (0, {})


def test_long_texts_teach_nothing_of_slots_and_cost_nothing_either() -> None:
    habits = Habits()
    words = "lorem ipsum " * 400
    habits.add("long", mask(words, find_mentions(words)))
    assert habits.uses("lorem") == 0
    habits.add("short", mask("lorem sales", ()))
    assert habits.uses("lorem") == 1
    habits.add("short", mask(words, find_mentions(words)))
    assert habits.uses("lorem") == 0
