"""A process keeps nothing of what was removed, neither in memos nor of prompts near it."""

import gc
from pathlib import Path

import pytest

from semcache import Parameter, PlanCache
from semcache.memo import remembered
from semcache.testing import HashEmbedder

LETTERS = "bcdfghklmnprstvz"


def word(number: int) -> str:
    """Return a word that no other number has."""
    return "".join(LETTERS[int(digit, 16)] + "aeio"[int(digit, 16) % 4] for digit in f"{number:x}")


def fill(cache: PlanCache, numbers: range) -> None:
    for number in numbers:
        said, code = word(number), f"ORD-{number:07}"
        cache.store(
            f"{said} of {code}",
            {"operation": said, "order": code},
            params=[Parameter("order", code, mention=code)],
        )
        cache.lookup(f"{said} of ORD-9{number:06}")


def strings_with(part: str) -> list[str]:
    """Return the texts with `part` that something of this process still holds."""
    gc.collect()
    held: set[str] = set()
    for one in gc.get_objects():
        inside: list[object] = []
        kind = type(one)  # `isinstance` asks some objects of other packages, which then warn
        if issubclass(kind, dict):
            inside = [*dict.keys(one), *dict.values(one)]
        elif issubclass(kind, list | tuple | set | frozenset):
            inside = [*one]
        held.update(text for text in inside if type(text) is str and part in text)
    return sorted(held)


@pytest.mark.parametrize("how", ["invalidate", "clear"])
def test_no_words_of_a_removed_entry_stay_in_the_process(tmp_path: Path, how: str) -> None:
    name = word(0x5EC4E7_7E57)
    embedder = HashEmbedder()
    with PlanCache.open(tmp_path / "cache", embedder=embedder) as cache:
        fill(cache, range(20))
        stored = cache.store(
            f"{name} of ORD-7777777",
            {"operation": "look", "order": "ORD-7777777"},
            params=[Parameter("order", "ORD-7777777", mention="ORD-7777777")],
        )
        for number in range(20):
            cache.lookup(f"{name} of ORD-{number:07}")
            cache.lookup(f"{word(number)} {name} of ORD-{number:07}")
        assert strings_with(name)
        if how == "clear":
            cache.clear()
        else:
            assert cache.invalidate(id=stored.id) == 1
        del stored
        embedder.texts.clear()  # the fake tells what it was asked
        assert [text for text in strings_with(name) if text != name] == []


def test_memos_do_not_grow_with_what_was_evicted() -> None:
    with PlanCache.open(embedder=HashEmbedder(), max_entries=50) as cache:
        fill(cache, range(900))
        before = remembered()
        fill(cache, range(900, 1_900))
        assert remembered() <= 1.2 * before
