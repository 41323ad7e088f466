import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Parameter
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.template import TemplateText, mask
from semcache.prompts.tokens import SLOT


def template(text: str, *given: Parameter) -> TemplateText:
    return mask(text, find_mentions(text, given=given))


def test_each_mention_becomes_its_slot() -> None:
    masked = template("Total sales in 2024 by category")
    assert masked.text == "total sales in <year> by category"
    slot = masked.slots[0]
    assert (slot.kind, slot.before, slot.mention_text, slot.value) == ("year", "in", "2024", 2024)


@pytest.mark.parametrize(
    ("tokenized", "plain"),
    [
        ("what 's the fare , please ?", "What\u2019s the fare, please"),
        ("i don 't know", "I don't know"),
        ("I do n't know", "I don't know"),
        ("Sofia 's list", "Sofia's list"),
    ],
)
def test_tokenized_text_reads_like_plain_text(tokenized: str, plain: str) -> None:
    assert template(tokenized).text == template(plain).text


def test_the_digest_is_the_hash_of_the_text() -> None:
    masked = template("sales in 2024")
    assert masked.digest == hashlib.sha256(b"sales in <year>").hexdigest()


def test_the_signature_counts_slot_types_without_order() -> None:
    left, right = template("5 red ones in 2024 or 2023"), template("in 2024 or 2023, 5 red ones")
    assert left.signature == right.signature == ("number", "year", "year")


def test_brackets_round_a_mention_do_not_hide_its_slot() -> None:
    masked = template("sales <2024>")
    assert SLOT.findall(masked.text) == ["<number>"]
    assert masked.text != template("sales <<number>>").text


def test_two_slots_side_by_side_have_no_word_between() -> None:
    masked = template("EECS 481", Parameter("department", "EECS", mention="EECS"))
    assert masked.text == "<department> <number>"
    assert [slot.before for slot in masked.slots] == ["", ""]


def test_a_type_name_with_signs_still_makes_a_slot() -> None:
    mention = Mention(0, 4, "Oslo", "st\u00e4dte > orte", "Oslo", "given")
    assert SLOT.fullmatch(mask("Oslo", [mention]).text)


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_a_template_has_as_many_slots_as_mentions_and_survives_a_second_look(text: str) -> None:
    masked = template(text)
    assert len(SLOT.findall(masked.text)) == len(masked.slots)
    assert masked == template(text)
