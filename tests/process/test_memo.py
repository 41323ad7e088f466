"""The mapping in which everything that is remembered of bounded size is kept."""

from semcache.process.memo import Lru


def test_what_was_put_or_used_longest_ago_makes_room() -> None:
    kept = Lru[str, int](keep=2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.use("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), len(kept)) == (1, None, 2)
    assert kept.values() == [1, 3]


def test_reading_does_not_count_as_using_and_putting_again_does() -> None:
    kept = Lru[str, int](keep=2)
    for key, value in (("a", 1), ("b", 2), ("a", 3)):
        kept.put(key, value)
    assert kept.get("b") == 2
    kept.put("c", 4)
    assert "b" not in kept
    assert kept.values() == [3, 4]


def test_what_is_forgotten_is_gone_and_nothing_is_kept_where_there_is_no_room() -> None:
    kept, none = Lru[str, int](keep=3), Lru[str, int](keep=0)
    for key in ("a1", "b1", "a2"):
        kept.put(key, 1)
        none.put(key, 1)
    kept.forget(lambda key: key.startswith("a"))
    assert (kept.pop("b1"), kept.pop("b1"), len(kept), len(none)) == (1, None, 0, 0)
