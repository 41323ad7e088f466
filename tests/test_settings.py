import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from semcache import Settings
from semcache.errors import InvalidSettings
from semcache.settings import checked


def test_defaults_are_what_the_design_says() -> None:
    defaults = Settings()
    assert (defaults.threshold, defaults.max_wrong, defaults.directory) == (0.95, None, None)
    assert Settings.load() == defaults
    for one in fields(Settings):
        assert checked(one, getattr(defaults, one.name)) == getattr(defaults, one.name)


def test_explicit_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "semcache.toml"
    file.write_text("threshold = 0.96\nneighbors = 4\nmax_steps = 7\n", encoding="utf-8")
    environ = {"SEMCACHE_THRESHOLD": "0.97", "SEMCACHE_NEIGHBORS": "5"}
    found = Settings.load(environ=environ, file=file, threshold=0.98)
    assert (found.threshold, found.neighbors, found.max_steps) == (0.98, 5, 7)
    assert found.max_entries == Settings().max_entries


def test_an_explicit_none_leaves_what_the_environment_says() -> None:
    environ = {"SEMCACHE_DIRECTORY": "plans", "SEMCACHE_MODEL": "gpt-x"}
    found = Settings.load(environ=environ, directory=None, model=None)
    assert (found.directory, found.model) == (Path("plans"), "gpt-x")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("threshold", "0.97", 0.97),
        ("neighbors", "32", 32),
        ("max_entries", "none", None),
        ("ttl_s", "60", 60.0),
        ("writes_from_semantic", "yes", True),
        ("writes_from_semantic", "FALSE", False),
        ("directory", "~/plans", Path("~/plans").expanduser()),
        ("embedder", "some/model", "some/model"),
    ],
)
def test_the_environment_is_read_by_the_type_of_the_setting(
    name: str, text: str, value: object
) -> None:
    found = Settings.load(environ={f"SEMCACHE_{name.upper()}": text})
    assert getattr(found, name) == value


def test_other_variables_and_empty_ones_are_left_alone() -> None:
    environ = {"SEMCACHE_THRESHOLD": "", "SEMCACHE_UNHEARD_OF": "1", "PATH": "/bin"}
    assert Settings.load(environ=environ) == Settings()


def test_the_key_of_openai_is_taken_and_never_shown() -> None:
    found = Settings.load(environ={"OPENAI_API_KEY": "sk-secret"})
    assert found.api_key == "sk-secret"
    assert "sk-secret" not in repr(found)
    both = {"OPENAI_API_KEY": "sk-secret", "SEMCACHE_API_KEY": "sk-own"}
    assert Settings.load(environ=both).api_key == "sk-own"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 1.01),
        ("threshold", float("nan")),
        ("threshold", "high"),
        ("threshold", True),
        ("threshold", [0.9]),
        ("max_wrong", 0),
        ("max_wrong", 1.0),
        ("max_wrong", [0.1]),
        ("neighbors", 0),
        ("neighbors", 1.5),
        ("neighbors", "inf"),
        ("neighbors", "nan"),
        ("neighbors", 10**400),
        ("ttl_s", 0),
        ("ttl_s", float("inf")),
        ("max_entries", "many"),
        ("writes_from_semantic", "perhaps"),
        ("directory", 7),
        ("directory", "a\0b"),
        ("directory", "~nobody-of-that-name/plans"),
        ("model", 7),
        ("thresold", 0.9),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidSettings, match=name):
        Settings.load(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", "0.9"),
        ("neighbors", 1.5),
        ("max_entries", 0),
        ("max_steps", True),
        ("max_wrong", "0.01"),
        ("frozen", "no"),
        ("model", 7),
        ("directory", "plans"),
        ("neighbors", None),
        ("plan_format", "prose"),
        ("ttl_slides", "sometimes"),
        ("warm_up", "soon"),
        ("verify", "later"),
        ("database_search", "both"),
        ("domains", {"github": "issue"}),
        ("domains", "github"),
    ],
)
def test_settings_made_by_hand_are_checked_too(name: str, value: Any) -> None:
    with pytest.raises(InvalidSettings, match=name):
        Settings(**{name: value})


def test_a_choice_that_there_is_not_is_told_those_that_there_are() -> None:
    with pytest.raises(InvalidSettings, match="warm_up is 'soon'; expected 'never', 'background'"):
        Settings.load(warm_up="soon")


def test_a_timezone_that_there_is_not_is_told_once_with_one_that_there_is() -> None:
    with pytest.raises(InvalidSettings) as caught:
        Settings.load(timezone="Mars")
    said = str(caught.value)
    assert said.startswith("timezone is 'Mars'; expected a name of the IANA database such as")
    assert said.count("expected") == 1


def test_a_secret_of_another_type_is_not_shown() -> None:
    secret: Any = b"s3cret"
    with pytest.raises(InvalidSettings, match="encryption_key is of type bytes") as told:
        Settings(encryption_key=secret)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("content", [b"threshold = ", b"\xff\xfe", b"[table]\nx = 1", None])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "semcache.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidSettings, match=r"semcache\.toml|table"):
        Settings.load(file=file)


def test_every_setting_says_what_it_is() -> None:
    source = inspect.getsourcefile(Settings)
    assert source is not None
    text = Path(source).read_text(encoding="utf-8")
    described = set(re.findall(r'^    (\w+): [^\n]*\n    """', text, re.MULTILINE))
    assert {field.name for field in fields(Settings)} <= described


def test_domains_are_read_from_a_file_from_json_and_as_they_are(tmp_path: Path) -> None:
    wanted = {"github": ("issue", "pull request"), "slack": ("channel",)}
    file = tmp_path / "semcache.toml"
    file.write_text('[domains]\ngithub = ["issue", "pull request"]\nslack = ["channel"]\n')
    assert Settings.load(file=file).domains == wanted
    told = '{"github": ["issue", "pull request"], "slack": ["channel"]}'
    assert Settings.load(environ={"SEMCACHE_DOMAINS": told}).domains == wanted
    assert Settings.load(domains=wanted).domains == wanted


@pytest.mark.parametrize("bad", ["github", "[1]", '{"github": "issue"}', '{"github": [1]}'])
def test_domains_that_are_no_lists_of_words_are_refused(bad: str) -> None:
    with pytest.raises(InvalidSettings, match=r"domains (is|has) .*; expected name -> keywords"):
        Settings.load(environ={"SEMCACHE_DOMAINS": bad})
