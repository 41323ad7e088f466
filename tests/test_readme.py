"""Every code block of README and docs runs: Python as doctests, shell lines as a user types."""

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

import pytest

import semcache
from semcache import Settings
from semcache.cache.result import Reason
from semcache.commands.cli import main

if TYPE_CHECKING:
    from tests.conftest import Postgres

Run: TypeAlias = Callable[..., str]

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# In the order of a reader: what a page defines, the next may use.
PAGES = [README] + [
    ROOT / "docs" / f"{name}.md"
    for name in (
        *("python", "planning", "shell", "quality", "prompt", "plans", "operations", "runs"),
        *("agents", "http", "responses", "deployment", "settings", "misses", "migration"),
        *("security", "index", "glossary", "api", "errors", "frameworks", "your_plans"),
        *("production", "research", "peers"),
    )
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCK.findall(written()) if name == kind]


def written() -> str:
    return "\n\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def commands(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command in a directory of its own, and gives what it prints.

    In this process: to import torch anew for each takes longer than all of them together. That the
    module runs as the command does is tried in `test_cli`.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        try:
            status = main(arguments)
        except SystemExit as stopped:
            status = int(stopped.code or 0)
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return captured.out

    return run


def test_the_python_session_runs_as_printed(
    postgres: "Postgres", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMCACHE_DATABASE", postgres.dsn)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    names: dict[str, object] = {}
    for block in blocks("python"):
        example = parser.get_doctest(block, names, "README", str(README), 0)
        runner.run(example, clear_globs=False)
        names.update(example.globs)
    assert runner.summarize(verbose=False).attempted > 10
    assert runner.summarize(verbose=False).failed == 0


def test_the_shell_session_prints_what_it_shows(run: Run) -> None:
    checker = doctest.OutputChecker()
    shown = [pair for block in blocks("console") for pair in commands(block)]
    assert len(shown) >= 4
    for command, output in shown:
        program, *arguments = shlex.split(command)
        assert program == "semcache"
        said = run(*arguments)
        assert checker.check_output(output, said, OPTIONS), f"$ {command}\n{said}"


@pytest.mark.parametrize("marker", ["main command", "test command"])
def test_the_two_commands_are_where_ci_looks_for_them(marker: str) -> None:
    text = README.read_text(encoding="utf-8")
    assert re.search(rf"<!-- {marker} -->\n```sh\n.+ -m .+\n```", text)


def test_every_page_is_read_here_and_stands_in_the_navigation() -> None:
    pages = sorted((ROOT / "docs").glob("**/*.md"))
    assert sorted(PAGES[1:]) == pages
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in pages if f": {page.name}" not in navigation] == []


def test_every_link_between_pages_leads_somewhere() -> None:
    links = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([\w./-]+\.md)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 15
    assert [(page.name, link) for page, link in links if not (page.parent / link).is_file()] == []


def test_every_reason_of_a_miss_is_explained() -> None:
    text = (ROOT / "docs" / "misses.md").read_text(encoding="utf-8")
    assert [reason for reason in get_args(Reason) if f"| `{reason}` |" not in text] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_every_cli_command_is_named_in_the_docs(run: Run) -> None:
    text = written()
    said = run("--help")
    names = re.findall(r"^ {4}(\w+) ", said, flags=re.MULTILINE)
    assert len(names) >= 9
    assert [
        name for name in names if f"`{name}`" not in text and f"semcache {name}" not in text
    ] == []


def test_every_setting_and_public_name_is_in_the_docs() -> None:
    text = written()
    settings = [field.name for field in fields(Settings)]
    assert [name for name in settings if f"`{name}`" not in text] == []
    assert [name for name in semcache.__all__ if not re.search(rf"\b{name}\b", text)] == []
