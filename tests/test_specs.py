"""The checklists of what an implementation of the five source systems must show."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

ITEMS = {"A": 18, "B": 12, "C": 14, "D": 13, "E": 13}
"""System → items of its checklist, numbered from 1."""
CHECKS = ("assert", "pytest.raises", "pytest.warns")


def named(source: str) -> Iterator[tuple[str, str | None]]:
    """Yield each item that a comment names, with the test that it stands in or right above.

    None instead of a test: a loose comment, one of a helper, of a test that is skipped or of a
    test that checks nothing. A class with the tests of its base stands for them.
    """
    lines = source.splitlines()
    for number, line in enumerate(lines, 1):
        if comment := re.search(r"#.*?\bspecs: (.+)", line):
            test = next(
                (t for t in collected(ast.parse(source)) if _belongs(t, number, lines)), None
            )
            for item in re.findall(r"\b[A-E]-\d+\b", comment[1]):
                yield item, test.name if test is not None else None


Test: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def collected(module: ast.Module) -> Iterator[Test]:
    """Yield what pytest collects of a module, but for tests that check nothing."""
    groups = [c for c in module.body if isinstance(c, ast.ClassDef) and c.name.startswith("Test")]
    yield from (group for group in groups if group.bases)
    for body in (module.body, *(group.body for group in groups)):
        for one in body:
            if (
                isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
                and one.name.startswith("test_")
                and not any("skip" in ast.unparse(mark) for mark in one.decorator_list)
                and any(check in ast.unparse(one) for check in CHECKS)
            ):
                yield one


def _belongs(test: Test, line: int, lines: list[str]) -> bool:
    first = min([test.lineno, *(mark.lineno for mark in test.decorator_list)])
    above = lines[line - 1 : first - 1]
    return line <= (test.end_lineno or first) and all(one.lstrip().startswith("#") for one in above)


def test_every_item_of_the_checklists_is_named_by_a_test() -> None:
    found: dict[str, list[str | None]] = {}
    here = Path(__file__)
    for file in here.parent.rglob("test_*.py"):
        for item, test in named(file.read_text(encoding="utf-8") if file != here else ""):
            found.setdefault(item, []).append(test)
    items = {f"{system}-{n + 1}" for system, count in ITEMS.items() for n in range(count)}
    assert sorted(items - found.keys()) == []
    assert sorted(found.keys() - items) == []
    assert sorted(item for item, tests_ in found.items() if None in tests_) == []


def test_a_comment_counts_only_at_a_test_that_checks_something() -> None:
    assert dict(named(SOURCE)) == {
        "A-1": None, "A-2": None, "A-3": "test_it", "A-4": "test_it", "A-5": None, "A-6": None,
    }  # fmt: skip


SOURCE = """
# specs: A-1

# specs: A-2
def helper(): ...
# specs: A-3
@pytest.mark.parametrize("a", [1])
def test_it(a):
    # specs: A-4
    assert a
# specs: A-5
@pytest.mark.skip
def test_no():
    assert 1
def test_nothing():
    # specs: A-6
    print(1)
"""
