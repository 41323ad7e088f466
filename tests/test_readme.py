"""Every code block of the README runs: Python as a doctest, console lines as a user types them."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Postgres

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def blocks(kind: str) -> list[str]:
    return [
        text for name, text in BLOCK.findall(README.read_text(encoding="utf-8")) if name == kind
    ]


def commands(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


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


def test_the_shell_session_prints_what_it_shows(tmp_path: Path) -> None:
    checker = doctest.OutputChecker()
    shown = [pair for block in blocks("console") for pair in commands(block)]
    assert len(shown) >= 4
    for command, output in shown:
        program, *arguments = shlex.split(command)
        assert program == "semcache"
        said = run(arguments, tmp_path)
        assert checker.check_output(output, said, OPTIONS), f"$ {command}\n{said}"


def run(arguments: list[str], directory: Path) -> str:
    done = subprocess.run(  # noqa: S603 - the README's own commands
        [sys.executable, "-m", "semcache", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(README.parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("marker", ["main command", "test command"])
def test_the_two_commands_are_where_ci_looks_for_them(marker: str) -> None:
    text = README.read_text(encoding="utf-8")
    assert re.search(rf"<!-- {marker} -->\n```sh\n.+ -m .+\n```", text)


def test_every_cli_command_is_named_in_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    said = run(["--help"], Path.cwd())
    names = re.findall(r"^ {4}(\w+) ", said, flags=re.MULTILINE)
    assert len(names) >= 9
    assert [
        name for name in names if f"`{name}`" not in text and f"semcache {name}" not in text
    ] == []
