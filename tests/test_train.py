import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from semcache import Hit, PlanCache, Settings
from semcache.commands.cli import main
from semcache.models.difference import FOLDER, LowRankDifference
from semcache.models.minilm import MiniLMEmbedder
from semcache.stores.disk.store import DiskStore
from semcache.upkeep import adaptation
from semcache.upkeep.adaptation import Adaptation, Performance, save
from semcache.wiring import open_embedder
from semcache.wiring.models import difference_keys
from tests.jargon import jargon

Run = Callable[..., tuple[int, str, str]]
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = main(["train", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def filled(directory: Path) -> Path:
    """Store the prompts of the log in a cache there."""
    with PlanCache.open(directory) as cache:
        for row in jargon(160):
            cache.store(row.text, row.plan or {}, params={}, tenant=row.scope)
    return directory


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose entries taught the embedder, in a few seconds."""
    directory = filled(tmp_path_factory.mktemp("trained") / "cache")
    assert main(["train", "--directory", str(directory), "--steps", "60"]) == 0
    return directory


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "copy")


def vectors_of(directory: Path) -> set[str]:
    with closing(DiskStore(directory)) as store:
        return {record.embedder for record in store.scan("acme")}


def test_entries_of_a_cache_teach_its_embedder_and_are_embedded_anew(
    trained: Path, minilm: MiniLMEmbedder
) -> None:
    with PlanCache.open(trained) as cache:
        adapted = cache.embedder.fingerprint
    assert "+difference@" in adapted
    assert vectors_of(trained) == {adapted}
    said = json.loads((trained / FOLDER / "manifest.json").read_text(encoding="utf-8"))
    assert adapted == f"semcache/{said['base']}+difference@{said['sha256']}/fp32/normalized"
    assert said["base"] in minilm.fingerprint


def test_what_was_learned_serves_without_torch(trained: Path) -> None:
    code = (
        "import sys; from semcache import PlanCache; c = PlanCache.open(sys.argv[1]); "
        "c.embedder.embed(['a']); print('torch' in sys.modules, '+diff' in c.embedder.fingerprint)"
    )
    done = subprocess.run(  # noqa: S603 - our own code in a fresh interpreter
        [sys.executable, "-c", code, str(trained)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_what_was_learned_can_be_forgotten(copy: Path, run: Run, minilm: MiniLMEmbedder) -> None:
    status, out, _ = run("--forget", "--directory", copy, "--json")
    assert (status, json.loads(out)["forgotten"]) == (0, True)
    assert not (copy / FOLDER).exists()
    assert vectors_of(copy) == {minilm.fingerprint}
    assert json.loads(run("--forget", "--directory", copy, "--json")[1]) == {
        "forgotten": False,
        "embedded_anew": 0,
    }


def test_with_a_damaged_difference_the_plain_embedder_serves(
    copy: Path, minilm: MiniLMEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    (tensors,) = (copy / FOLDER).glob("difference-*")
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING), PlanCache.open(copy) as cache:
        assert cache.embedder.fingerprint == minilm.fingerprint
        assert isinstance(cache.lookup(jargon(160)[0].text, tenant="acme"), Hit)
    assert "the plain embedder serves" in caplog.text


def test_a_difference_for_other_weights_leaves_the_plain_embedder(
    tmp_path: Path, minilm: MiniLMEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    save(LowRankDifference("other@1", b""), tmp_path / FOLDER)
    with caplog.at_level(logging.WARNING):
        made = open_embedder(Settings(directory=tmp_path))
    assert made.fingerprint == minilm.fingerprint
    assert "for the weights 'other@1'" in caplog.text


def test_a_folder_that_is_named_serves_every_cache(trained: Path, minilm: MiniLMEmbedder) -> None:
    made = open_embedder(Settings(embedder_difference=trained / FOLDER))
    assert made.fingerprint == open_embedder(Settings(directory=trained)).fingerprint
    assert open_embedder(Settings()).fingerprint == minilm.fingerprint


def test_a_copy_of_the_cache_has_it_too_and_finds_by_meaning_as_before(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEW_KEY", KEY)
    moved, secret = tmp_path / "moved", tmp_path / "secret"
    assert main(["migrate", str(copy), str(moved)]) == 0
    assert main(["migrate", str(copy), str(secret), "--to-key", "NEW_KEY"]) == 0
    settings = Settings(directory=secret, encryption_key=KEY)
    named = {open_embedder(Settings(directory=place)).fingerprint for place in (copy, moved)}
    assert named == {open_embedder(settings).fingerprint}
    assert "+difference@" in named.pop()
    assert vectors_of(moved) == vectors_of(copy)


def test_a_damaged_difference_is_told_by_a_copy_that_has_all_else(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tensors,) = (copy / FOLDER).glob("difference-*")
    tensors.write_bytes(b"damaged")
    assert main(["migrate", str(copy), str(tmp_path / "moved"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], "SHA-256" in told["passed_over"][0]) == (160, True)


def test_a_difference_is_encrypted_where_the_cache_is(trained: Path, tmp_path: Path) -> None:
    found = LowRankDifference.read(trained / FOLDER)
    settings = Settings(directory=tmp_path, encryption_key=KEY)
    save(found, tmp_path / FOLDER, encrypt=difference_keys(settings)[0])
    assert found.content[:64] not in b"".join(p.read_bytes() for p in tmp_path.rglob("diff*"))
    with_key, without = open_embedder(settings), open_embedder(Settings(directory=tmp_path))
    assert with_key.fingerprint != without.fingerprint
    assert with_key.fingerprint == open_embedder(Settings(directory=trained)).fingerprint


# What the command says -----------------------------------------------------------------------


def stub(monkeypatch: pytest.MonkeyPatch, *, wrong: int) -> list[int]:
    """Let training give a difference whose replay has so many wrong hits; return what it saw."""
    seen: list[int] = []
    done = Adaptation(
        difference=LowRankDifference("w", b"", {"prompts": 120, "held_back": 40}),
        ceiling=40,
        before=Performance(first=28, right=4, wrong=1),
        after=Performance(first=39, right=6, wrong=wrong),
    )

    def adapt(rows: list[object], **_: object) -> Adaptation:
        seen.append(len(rows))
        return replace(done)

    monkeypatch.setattr(adaptation, "adapt", adapt)
    return seen


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"prompt": row.text, "plan": row.plan}) for row in jargon(160)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_what_serves_worse_is_not_taken_and_the_command_says_why(
    log: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = stub(monkeypatch, wrong=2)
    status, out, _ = run(log, "--directory", tmp_path / "cache", "--rows", "100")
    assert (status, seen) == (1, [100])
    assert "plan found first  28 -> 39 of 40" in out
    assert "not taken: wrong hits rise from 1 to 2" in out
    assert not (tmp_path / "cache").exists()


def test_what_serves_better_is_kept_beside_a_cache_that_is_made_if_need_be(
    log: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, wrong=1)
    status, out, _ = run(log, "--directory", tmp_path / "cache", "--json")
    assert (status, json.loads(out)["taken"]) == (0, True)
    assert (tmp_path / "cache" / FOLDER / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--directory", "nowhere"], "no cache at 'nowhere'"),
        (["no.jsonl"], "no.jsonl"),
        (["--rows", "0"], "rows is 0"),
    ],
)
def test_what_cannot_be_trained_on_is_said(
    arguments: list[str], why: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, error = run(*arguments)
    assert status == 2
    assert why in error


@pytest.mark.parametrize(("name", "value"), [("embedder", "some/model"), ("frozen", "yes")])
def test_settings_that_keep_the_embedder_from_being_trained_are_named(
    name: str, value: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"SEMCACHE_{name.upper()}", value)
    status, _, error = run()
    assert status == 2
    assert f"{name} is " in error
