"""The contract of response stores."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from contextlib import closing
from pathlib import Path

from semcache.errors import StoreUnavailable
from semcache.ports import (
    ResponseStore,
    Room,
)
from semcache.testing.fakes import refused, together


class ResponseStoreContract:
    """What every `ResponseStore` promises."""

    def make(self, tmp_path: Path) -> ResponseStore:
        """Return a new store; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how a store is made")

    def test_a_text_comes_back_as_it_was_set(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for key, text in (("a/b", '"é 漢 🙂 \\u0000"'), ("a", "null"), ("a%2Fb", "")):
                keep(store, key, text)
            assert [store.get(key, now_s=0) for key in ("a/b", "a", "a%2Fb", "b")] == [
                '"é 漢 🙂 \\u0000"', "null", "", None
            ]  # fmt: skip

    def test_the_one_used_longest_ago_makes_room(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for key in ("1", "2", "3"):
                keep(store, key, limit=Room(3, 1000))
            assert store.get("1", now_s=0)
            assert keep(store, "4", limit=Room(3, 1000)) == 1
            assert list(store.keys(group=None)) == ["1", "3", "4"]

    def test_a_text_set_again_is_replaced_and_is_the_one_used_last(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for key in ("1", "2", "1"):
                keep(store, key, f'"{key}{key}"', limit=Room(2, 1000))
            keep(store, "3", limit=Room(2, 1000))
            assert list(store.keys(group=None)) == ["1", "3"]
            assert store.room() == Room(2, 4 + 1)

    def test_bytes_are_bytes_and_as_many_as_needed_make_room(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for key in ("1", "2", "3"):
                keep(store, key, "é" * 5, limit=Room(9, 30))
            assert store.room() == Room(3, 30)
            assert keep(store, "4", "x" * 15, limit=Room(9, 30)) == 2
            assert list(store.keys(group=None)) == ["3", "4"]
            assert store.room() == Room(2, 25)

    def test_a_text_over_the_limit_is_not_kept_and_nothing_goes_for_it(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            keep(store, "1", "old")
            keep(store, "2", "old")
            assert keep(store, "2", "x" * 11, limit=Room(9, 10)) == 0
            assert list(store.keys(group=None)) == ["1"]
            assert store.room() == Room(1, 3)

    def test_age_begins_anew_with_each_use_and_looking_is_none(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            keep(store, "a", ttl_s=10)
            assert store.get("a", now_s=9)
            assert store.has("a", now_s=18)
            assert store.get("a", now_s=18)
            assert not store.has("a", now_s=28)
            assert store.get("a", now_s=28) is None
            assert store.room() == Room(0, 0)

    def test_without_a_ttl_a_text_lives_until_it_makes_room(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            keep(store, "a", ttl_s=None)
            assert store.get("a", now_s=1e12)

    def test_a_clock_that_was_set_back_gives_no_longer_life(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            keep(store, "a", ttl_s=10, now_s=1000)
            assert store.has("a", now_s=995)
            assert store.get("a", now_s=500) is None

    def test_keys_are_listed_by_group_and_removed(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for key, group in (("b", "g"), ("a", "g"), ("c", ""), ("d", "g/x")):
                keep(store, key, group=group)
            assert list(store.keys(group="g")) == ["a", "b"]
            assert store.remove(["a", "a", "c", "never"]) == 2
            assert list(store.keys(group=None)) == ["b", "d"]
            assert store.clear() == 2
            assert store.room() == Room(0, 0)
            assert list(store.keys(group=None)) == []

    def test_threads_that_set_get_and_remove_leave_sums_that_are_right(
        self, tmp_path: Path
    ) -> None:
        limit = Room(20, 400)
        with closing(self.make(tmp_path)) as store:

            def work(thread: int) -> None:
                for i in range(40):
                    key = str((i * (thread + 1)) % 30)
                    keep(store, key, "x" * (1 + i % 20), limit=limit)
                    store.get(str(i % 30), now_s=0)
                    if i % 5 == thread:
                        store.remove([key])

            together(4, work)
            texts = [store.get(key, now_s=0) for key in store.keys(group=None)]
            assert store.room() == Room(len(texts), sum(len(text or "") for text in texts))
            assert len(texts) <= limit.entries

    def test_a_closed_store_says_so_and_closes_again(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        keep(store, "a")
        store.close()
        store.close()
        with refused(StoreUnavailable):
            store.get("a", now_s=0)


PLENTY = Room(1000, 10**6)
"""A limit that no test reaches."""


def keep(
    store: ResponseStore,
    key: str,
    text: str = "1",
    *,
    group: str = "",
    ttl_s: float | None = 3600,
    now_s: float = 0,
    limit: Room = PLENTY,
) -> int:
    """Set a text in `store`; return how many others made room for it."""
    return store.set(key, text, group=group, ttl_s=ttl_s, now_s=now_s, limit=limit)
