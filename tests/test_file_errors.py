"""What each command says of a file that it cannot use: one line, the file's name, a way out."""

import gzip
import json
from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.commands.cli import main
from semcache.testing import HashEmbedder

READERS = {
    "evaluate": ("evaluate",),
    "evaluate a log": ("evaluate", "--log"),
    "tune": ("tune",),
    "warm": ("warm",),
    "import": ("import",),
    "import evidence": ("evidence", "--import"),
    "check a plan": ("plan", "check"),
    "run a plan": ("plan", "run", "--demo"),
    "ask an OpenAPI document": ("ask", "sales in 2024", "--openapi"),
    "serve with tokens": ("mcp", "--http", "0", "--tokens"),
}
STREAM_ROW = {"id": "1", "scope": "a", "text": "sales", "params": [], "plan": {"call": {}}}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("semcache.wiring.models.MiniLMEmbedder", _hashes)
    (tmp_path / "march").mkdir()
    for name, content in {
        "march/log.jsonl": b"{}",
        "stream.jsonl": json.dumps(STREAM_ROW).encode(),
        "binary": b"\x80\x81\x00" * 50,
        "latin": b'{"text": "caf\xe9"}',
        "packed.gz": gzip.compress(b"{}"),
        "wide": '{"text": "sales"}'.encode("utf-16"),
        "empty": b"",
        "broken": b'{"a": \n',
        "list": b"[1, 2]",
        "other": b'{"text": "sales"}',
    }.items():
        (tmp_path / name).write_bytes(content)


def _hashes(*_: object, **__: object) -> HashEmbedder:
    return HashEmbedder()


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        status = main(arguments)
    except SystemExit as stopped:  # what argparse refuses
        status = int(stopped.code or 0)
    out, err = capsys.readouterr()
    assert status in {1, 2}
    assert "Traceback" not in err
    assert len(err.splitlines()) == (status == 2)
    return out + err


@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("absent", "no such file in"),
        ("streem.jsonl", "did you mean"),
        ("nowhere/log.jsonl", "there is no directory"),
        ("march", "log.jsonl' in it"),
        ("binary", "binary; expected"),
        ("packed.gz", "gunzip"),
        ("latin", "UTF-8"),
        ("wide", "iconv -f utf-16"),
    ],
)
def test_a_file_that_is_not_there_or_no_text_is_named_with_a_way_out(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], file: str, says: str
) -> None:
    said = _refused(capsys, *command, file)
    assert file in said
    assert "expected" in said or "iconv" in said
    assert says in said


@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
@pytest.mark.parametrize("file", ["empty", "broken", "list", "other"])
def test_a_text_that_holds_something_else_is_told_what_was_expected(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], file: str
) -> None:
    assert "expected" in _refused(capsys, *command, file)


def test_a_log_read_as_a_stream_is_told_how_to_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("log").write_text('{"text": "sales", "plan": "{}"}', encoding="utf-8")
    assert "--log" in _refused(capsys, "evaluate", "log")
    row = {**STREAM_ROW, "plan": "{}"}
    Path("log").write_text(json.dumps(row), encoding="utf-8")
    assert "--log" in _refused(capsys, "evaluate", "log")


def test_a_plan_of_a_stream_that_is_not_json_is_told_with_its_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [STREAM_ROW, {**STREAM_ROW, "plan": "SELECT 1"}]
    Path("log").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert "log:2: the plan is not JSON" in _refused(capsys, "evaluate", "--log", "log")


def test_a_file_with_a_byte_order_mark_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("marked").write_bytes(b"\xef\xbb\xbf" + json.dumps(STREAM_ROW).encode())
    assert main(("evaluate", "marked")) == 0
    assert main(("warm", "marked")) == 0
    assert "1 stored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "says"), [(1, "export it anew, or go without"), (99, "update it")]
)
def test_evidence_of_another_version_is_refused_with_a_way_out(
    capsys: pytest.CaptureFixture[str], version: int, says: str
) -> None:
    kept = {"kind": "semcache evidence", "version": version, "evidence": {}}
    Path("evidence").write_text(json.dumps(kept), encoding="utf-8")
    assert says in _refused(capsys, "evidence", "--import", "evidence")


@pytest.mark.parametrize("command", [("export",), ("evidence", "--export")])
@pytest.mark.parametrize(
    ("file", "says"), [("march", "name a file in it"), ("nowhere/x", "make it, or name another")]
)
def test_a_file_that_cannot_be_written_is_named_with_a_way_out(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], file: str, says: str
) -> None:
    PlanCache.open("indexes/default", embedder=HashEmbedder()).close()
    assert says in _refused(capsys, *command, file)


LOOKING = [
    ("list",), ("stats",), ("clear",), ("remove", "x"), ("evidence",), ("export", "plans"),
    ("verify",), ("compact",),
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKING)
def test_a_cache_that_is_not_there_is_not_made_by_looking_for_it(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    said = _refused(capsys, *command, "--directory", "typo")
    assert "there is no cache at 'typo'" in said
    assert not Path("typo").exists()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("cachs", "there is no such directory (there is one at 'cache'); name the directory of"),
        ("void", "it is empty"),
        (".", "it has no 'manifest.json' (there is one at 'cache')"),
        ("paper", "it is a file"),
        ("n" * 300, "cannot be looked into"),
        ("~nobody-at-all/x", "in no user's home"),
    ],
)
def test_it_is_said_what_is_where_a_cache_was_looked_for_and_which_was_meant(
    capsys: pytest.CaptureFixture[str], place: str, says: str
) -> None:
    PlanCache.open("cache", embedder=HashEmbedder()).close()
    Path("void").mkdir()
    Path("paper").write_text("", encoding="utf-8")
    assert says in _refused(capsys, "list", "--directory", place)
    assert not [*Path("void").iterdir()]


@pytest.mark.parametrize("target", ["cache", "./cache", "cache/../cache", "linked"])
def test_a_cache_is_not_copied_onto_itself(capsys: pytest.CaptureFixture[str], target: str) -> None:
    PlanCache.open("cache", embedder=HashEmbedder()).close()
    Path("linked").symlink_to("cache")
    assert "FROM and TO at once" in _refused(capsys, "migrate", "cache", target)


def test_plans_do_not_move_from_a_place_that_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "there is no cache at 'typo'" in _refused(capsys, "migrate", "typo", "new")
    assert not Path("typo").exists()
