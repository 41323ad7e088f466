"""One planted secret, and every place where it must not turn up."""

import json
import logging
import os
import stat
import traceback
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from semcache import Catalog, PlanCache, SemCache, SemCacheError, Settings, catalog_from, operation
from semcache.canonical import JsonObject
from semcache.errors import InvalidSettings
from semcache.models.openai import OpenAIEmbedder, OpenAIModel
from semcache.server.tokens import Tokens
from semcache.sources.mcp import McpServer
from semcache.sources.openapi.exchange import Auth
from semcache.stores.cipher import Cipher
from semcache.testing import HashEmbedder, RecordingObserver

SECRET = "sk-planted-4711"  # noqa: S105 - planted to be looked for


def ours(thing: object, seen: set[int]) -> Iterator[object]:
    """Yield `thing` and every object of a class of semcache that it leads to."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, dict):
        inner: list[object] = [*thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = [*thing]
    elif type(thing).__module__.startswith("semcache"):
        yield thing
        slots = {s for kind in type(thing).__mro__ for s in getattr(kind, "__slots__", ())}
        names = {*getattr(thing, "__dict__", {}), *slots}
        inner = [getattr(thing, name) for name in names if hasattr(thing, name)]
    else:
        return
    for one in inner:
        yield from ours(one, seen)


@operation(effect="read")
def visits(town: str) -> str:
    """Count the visits to a town."""
    return town


@pytest.fixture
def catalog() -> Catalog:
    return catalog_from(visits)


# specs: security
def test_no_repr_of_anything_behind_a_cache_shows_the_key(tmp_path: Path, catalog: Catalog) -> None:
    url = f"http://me:{SECRET}@127.0.0.1:9/v1"
    settings = Settings(api_key=SECRET, model="m", base_url=url)
    with SemCache.open(
        tmp_path, catalog=catalog, settings=settings, embedder=HashEmbedder()
    ) as semcache:
        things = [
            semcache,
            settings,
            Settings(database=f"postgresql://me:{SECRET}@db/x", encryption_key=SECRET),
            OpenAIModel("m", api_key=SECRET, base_url=url),
            OpenAIEmbedder(api_key=SECRET),
            Auth.bearer(SECRET) | Auth.parameter("key", SECRET) | Auth.basic("me", SECRET),
            McpServer(("run", SECRET), environment={"KEY": SECRET}),
        ]
        found = list(ours(things, set()))
    assert len(found) > 40
    shown = [type(one).__name__ for one in found if SECRET in f"{one!r} {one!s}"]
    assert shown == []


def test_a_key_of_the_wrong_type_is_refused_without_being_shown() -> None:
    with pytest.raises(
        InvalidSettings, match="api_key is of type int; expected a valid string"
    ) as refused:
        Settings.load(api_key=4711)
    assert "4711" not in str(refused.value)


def test_a_call_that_fails_tells_the_key_to_nobody(
    openai_server: Any,
    catalog: Catalog,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    observer = RecordingObserver()
    settings = Settings(api_key=SECRET, model="m", base_url=openai_server.base_url, model_retries=0)
    from tests.conftest import Reply

    refusal: JsonObject = {"error": {"message": f"the key {SECRET} is not known here"}}
    openai_server.replies(*[Reply(refusal, status=401)] * 4)
    with SemCache.open(
        tmp_path, catalog=catalog, settings=settings, embedder=HashEmbedder(), observer=observer
    ) as semcache:
        with pytest.raises(SemCacheError) as failed:
            semcache.run("what would Springfield think of it")
        found = semcache.lookup("what would Springfield think of it")
    assert openai_server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    said = [repr(failed.value), found.explain(), json.dumps(found.to_dict()), caplog.text]
    assert [one for one in (*said, repr(observer.events)) if SECRET in one] == []
    assert [path for path in tmp_path.rglob("*") if path.is_file() and holds(path, SECRET)] == []


def holds(path: Path, text: str) -> bool:
    return text.encode() in path.read_bytes()


# Who may read the files ──────────────────────────────────────────────────────────────────────────


def test_whatever_a_cache_writes_is_for_its_owner_alone(
    tmp_path: Path, openai_server: Any, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.cache.view.views.WORTHWHILE", 1)
    settings = Settings(api_key=SECRET, model="m", base_url=openai_server.base_url)
    openai_server.answers(lambda _: "{}")
    before = os.umask(0)  # a process that hides nothing by itself
    try:
        with SemCache.open(
            tmp_path / "cache", catalog=catalog, settings=settings, embedder=HashEmbedder()
        ) as semcache:
            semcache.cache.store("visits to Springfield", {"town": "x"})
            semcache.lookup("visits to Springfield")
            with pytest.raises(SemCacheError):
                semcache.run("what would Springfield think of it")
            modes = dict(written(tmp_path / "cache"))
        with PlanCache.open(tmp_path / "cache", embedder=HashEmbedder()) as cache:
            cache.export(tmp_path / "cache" / "exported.json")
        modes |= dict(written(tmp_path / "cache"))
    finally:
        os.umask(before)
    names = {name.rpartition("/")[2] for name in modes}
    assert names >= {"semcache.db", "semcache.db-wal", "manifest.json", "responses", "views"}
    assert {name.rpartition(".")[2] for name in modes} >= {"view", "index"}
    assert {name: mode for name, mode in modes.items() if mode not in {"0o600", "0o700"}} == {}


def written(directory: Path) -> Iterator[tuple[str, str]]:
    for path in (directory, *directory.rglob("*")):
        expected = stat.S_IMODE(path.stat().st_mode)
        yield str(path), oct(expected)


# What this process was given, in what others say ─────────────────────────────────────────────────

KEY = b64encode(bytes(range(200, 232))).decode()


def given_to_mcp(secret: str) -> None:
    McpServer(url="https://mcp.example.com", headers={"X-Custom": secret, "Accept": "text/html"})


def given_to_a_command(secret: str) -> None:
    McpServer(command=("serve",), environment={"GITHUB_TOKEN": secret, "MODE": "text/html"})


def given_in_a_url(secret: str) -> None:
    Settings(database=f"postgresql://me:{quote(secret, safe='')}@db.example.com/plans")


def given_to_a_door(secret: str) -> None:
    Tokens({secret: "acme"})


@pytest.mark.parametrize(
    ("give", "secret"),
    [
        (given_to_mcp, "mcp/planted+4711=="),
        (given_to_a_command, "command/planted+4712"),
        (given_in_a_url, "p@ss/planted:4713"),
        (given_to_a_door, "a-token-planted-4714"),
        (lambda secret: Settings(encryption_key=secret), KEY),
        (lambda secret: Settings(api_key=secret), "sk-planted/4715"),
    ],
)
@pytest.mark.parametrize(
    "written",
    [str, lambda s: quote(s, safe=""), lambda s: b64encode(s.encode()).decode(), json.dumps],
)
def test_no_error_shows_a_secret_that_was_given_however_it_is_spelled(
    give: Callable[[str], object], secret: str, written: Callable[[str], str]
) -> None:
    give(secret)
    error = SemCacheError(f"the server said: {written(secret)!s} for text/html")
    for said in (str(error), repr(error), "".join(traceback.format_exception(error))):
        assert secret not in said
        assert written(secret).strip('"') not in said
        assert "for text/html" in said


def test_no_error_shows_the_key_of_a_cipher_in_another_alphabet() -> None:
    pytest.importorskip("cryptography")
    Cipher(KEY)
    raw = b64decode(KEY)
    assert urlsafe_b64encode(raw).decode() not in str(
        SemCacheError(urlsafe_b64encode(raw).decode())
    )
    assert raw.hex() not in str(SemCacheError(f"key {raw.hex()}"))
