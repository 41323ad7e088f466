"""The contracts of plan stores."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from contextlib import closing
from pathlib import Path

from semcache.ports import (
    Change,
    Room,
)
from semcache.testing.bounds_contract import BoundContract
from semcache.testing.note_contract import NoteContract
from semcache.testing.record_contract import RecordContract
from semcache.testing.records import make_record, same_records, together


class PlanStoreContract(RecordContract, BoundContract, NoteContract):
    """What every `PlanStore` promises."""


class SharedStoreContract(PlanStoreContract):
    """What a store promises that outlives its process: `make` with the same path opens it again."""

    def test_everything_is_there_after_a_restart(self, tmp_path: Path) -> None:
        record = make_record("a", keys=("k",), labels=("tag:t",))
        with closing(self.make(tmp_path)) as store:
            store.put(record)
            store.put_note("acme", "n", "1")
        with closing(self.make(tmp_path)) as store:
            assert [same_records(r, record) for r in store.find("acme", "k")] == [True]
            assert list(store.labelled("acme", "tag:t")) == ["a"]
            assert (store.count("acme"), store.last_change()) == (1, 1)
            assert list(store.changes(0) or ()) == [Change(1, "acme", "a", "put")]
            assert store.get_note("acme", "n") == "1"

    def test_numbers_go_on_after_a_restart(self, tmp_path: Path) -> None:
        for expected in (1, 2, 3):
            with closing(self.make(tmp_path)) as store:
                assert store.put(make_record("a")).change == expected

    def test_two_that_share_it_see_each_others_changes(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as left, closing(self.make(tmp_path)) as right:
            left.put(make_record("a"))
            assert right.last_change() == 1
            assert [r.id for r in right.find("acme", "template:a")] == ["a"]
            right.put(make_record("a", body="[2]"))
            right.remove("acme", ["a"])
            assert left.get("acme", "a") is None
            assert [c.kind for c in left.changes(1) or ()] == ["put", "remove"]

    def test_uses_and_leases_are_shared(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as left, closing(self.make(tmp_path)) as right:
            left.put(make_record("a"))
            left.use("acme", {"a": 2}, now_s=5.0)
            right.use("acme", {"a": 1}, now_s=6.0)
            assert left.uses("acme")["a"].count == right.uses("acme")["a"].count == 3
            assert left.lease("acme", "plan", "left", ttl_s=10, now_s=0.0)
            assert not right.lease("acme", "plan", "right", ttl_s=10, now_s=1.0)
            assert right.lease("acme", "plan", "right", ttl_s=10, now_s=11.0)
            assert left.room() == right.room("acme") == Room(1, make_record("a").size)

    def test_updates_through_two_that_share_it_are_all_counted(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as left, closing(self.make(tmp_path)) as right:

            def count(number: int) -> None:
                store = (left, right)[number % 2]
                for _ in range(20):
                    store.update_note("acme", "n", lambda old: str(int(old or 0) + 1))

            together(4, count)
            assert left.get_note("acme", "n") == right.get_note("acme", "n") == "80"
