"""A process keeps nothing of what was removed, neither in memos nor of prompts near it."""

import gc
import sys
from pathlib import Path

import pytest

from semcache import Parameter, PlanCache
from semcache.cache import query
from semcache.process.memo import forget_memos, remembered
from semcache.settings import Settings
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import HashEmbedder
from tests.caching import cache_over

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
    """Return the texts with `part`, in lower case, that something of this process still holds."""
    gc.collect()
    held: set[str] = set()
    looking, seen = gc.get_objects(), set[int]()
    while looking:
        one = looking.pop()
        inside: list[object] = []
        kind = type(one)  # `isinstance` asks some objects of other packages, which then warn
        if issubclass(kind, dict):
            inside = [*dict.keys(one), *dict.values(one)]
        elif issubclass(kind, list | tuple | set | frozenset):
            inside = [*one]
        held.update(text for text in inside if type(text) is str and part in text.casefold())
        for other in inside:  # what the collector leaves alone, as the memo of `re`
            if type(other) in {dict, tuple} and not gc.is_tracked(other) and id(other) not in seen:
                seen.add(id(other))
                looking.append(other)
    return sorted(held)


@pytest.mark.parametrize("how", ["invalidate", "clear"])
def test_no_words_of_a_removed_entry_stay_in_the_process(tmp_path: Path, how: str) -> None:
    name, code = word(0x5EC4E7_7E57), f"ORDER{0x5EC4E7_7E57}"
    embedder = HashEmbedder()
    with PlanCache.open(tmp_path / "cache", embedder=embedder) as cache:
        fill(cache, range(20))
        stored = cache.store(f"{name} of {code}", {"operation": "look", "order": code})
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
        assert strings_with(code.casefold()) == []


def test_memos_do_not_grow_with_what_was_evicted() -> None:
    with PlanCache.open(embedder=HashEmbedder(), max_entries=50) as cache:
        fill(cache, range(900))
        before = remembered()
        fill(cache, range(900, 1_900))
        assert remembered() <= 1.2 * before


def bytes_held(cache: PlanCache, embedder: HashEmbedder) -> int:
    """Return the bytes of all that this process holds, but for what fills and is then emptied."""
    cache.flush()
    embedder.texts.clear()
    forget_memos()
    gc.collect()
    tracked = gc.get_objects()
    leaves = {id(leaf): leaf for one in tracked for leaf in gc.get_referents(one)}
    return sum(map(sys.getsizeof, tracked)) + sum(
        sys.getsizeof(leaf) for leaf in leaves.values() if not gc.is_tracked(leaf)
    )


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_memory_does_not_grow_with_the_number_of_plans_ever_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(query, "KEPT", 50)  # so that what is bounded is full at the first look
    on_disk = where == "disk"
    store = DiskStore.open(tmp_path / "cache") if on_disk else MemoryStore(kept_changes=50)
    embedder = HashEmbedder()
    with cache_over(store, Settings(max_entries=20, max_wrong=0.05), embedder=embedder) as cache:
        fill(cache, range(600))
        before = bytes_held(cache, embedder)
        fill(cache, range(600, 1000))
        assert bytes_held(cache, embedder) - before < 400 * 32  # less than a text a plan
