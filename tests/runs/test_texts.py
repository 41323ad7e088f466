import json
import re
from importlib.resources import files

import pytest

from semcache.canonical import Json
from semcache.errors import InvalidSettings
from semcache.runs.texts import load, parse, shown

NAMES = sorted(
    file.name.removesuffix(".md")
    for file in files("semcache.planners").joinpath("prompts").iterdir()
)


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_file_has_a_version_and_sections(name: str) -> None:
    text = load(name)
    assert text.label == f"{name}-{text.version}"
    assert text.version >= 1
    assert all(text.sections.values())


def test_a_prompt_text_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(InvalidSettings, match=r"'format_poems'; known: .*format_routes, "):
        load("format_poems")


def test_a_text_without_a_version_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="'x' begins with '# system'"):
        parse("x", "# system\nhello")


def test_slots_are_filled_once_and_values_are_never_scanned_again() -> None:
    text = parse("x", "version: 3\n\n# user\nAsk <<a>>, then <<b>> and {{params.a}}.\n")
    assert text.fill("user", a="<<b>>", b=r"\1") == r"Ask <<b>>, then \1 and {{params.a}}."
    with pytest.raises(KeyError):
        text.fill("user", a="1")


def test_every_slot_of_every_text_is_a_plain_name() -> None:
    for name in NAMES:
        for section in load(name).sections.values():
            assert re.findall(r"<<(.*?)>>", section) == re.findall(r"<<([a-z_]+)>>", section)


@pytest.mark.parametrize("value", [{}, [], {"é": [1, {"b": None}], "c": "x\ny"}, [[1], 2], "<a>"])
def test_what_a_model_is_shown_is_json_with_a_line_for_each_member(value: Json) -> None:
    text = shown(value)
    assert json.loads(text) == value
    members = len(value) if isinstance(value, dict | list) else 0
    assert text.count("\n") == (members + 1 if members else 0)
