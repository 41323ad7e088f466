"""The checklists of what an implementation of the five source systems must show."""

import re
from pathlib import Path

ITEMS = {"A": 18, "B": 12, "C": 14, "D": 13, "E": 13}
"""System → items of its checklist, numbered from 1."""


def test_every_item_of_the_checklists_is_named_by_a_test() -> None:
    named: set[str] = set()
    for file in Path(__file__).parent.rglob("*.py"):
        for line in re.findall(r"\bspecs: (.+)", file.read_text(encoding="utf-8")):
            named.update(re.findall(r"\b[A-E]-\d+\b", line))
    items = {f"{system}-{n + 1}" for system, count in ITEMS.items() for n in range(count)}
    assert sorted(items - named) == []
    assert sorted(named - items) == []
