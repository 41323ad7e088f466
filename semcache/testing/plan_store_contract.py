"""The contracts of plan stores: bounds and what goes for them, notes and leases, what is shared."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from contextlib import closing
from pathlib import Path

from semcache.ports import (
    Bounds,
    Change,
    Room,
)
from semcache.testing.fakes import StoreFactory, make_record, refused, same_records, together
from semcache.testing.record_contract import RecordContract


class BoundContract(StoreFactory):
    """What is worth least makes room, and nothing else does."""

    def test_the_oldest_by_creation_make_room(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name, created_s in (("new", 30.0), ("old", -5.0), ("middle", 20.0)):
                store.put(make_record(name, created_s=created_s), bounds=Bounds(3))
            done = store.put(make_record("newest", created_s=40.0), bounds=Bounds(2))
            assert done.evicted == ("old", "middle")
            assert done.change == store.last_change() == 6
            assert [r.id for r in store.scan("acme")] == ["new", "newest"]
            assert [c.kind for c in store.changes(3) or ()] == ["put", "remove", "remove"]

    def test_what_was_just_written_is_not_evicted_even_if_it_is_the_oldest(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a", created_s=10.0))
            done = store.put(make_record("b", created_s=1.0), bounds=Bounds(1))
            assert done.evicted == ("a",)
            assert [r.id for r in store.scan("acme")] == ["b"]

    def test_a_tenant_makes_room_for_itself_alone(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a", tenant="other", created_s=1.0))
            store.put(make_record("b"), bounds=Bounds(1))
            assert store.put(make_record("c"), bounds=Bounds(1)).evicted == ("b",)
            assert store.count("other") == 1

    def test_replacing_a_record_evicts_none(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("a", "b", "b", "b"):
                assert store.put(make_record(name), bounds=Bounds(2)).evicted == ()

    def test_a_replaced_record_ages_from_its_new_creation(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a", created_s=1.0))
            store.put(make_record("b", created_s=2.0))
            store.put(make_record("a", created_s=3.0))
            assert store.put(make_record("c", created_s=4.0), bounds=Bounds(2)).evicted == ("b",)

    def test_bytes_are_bounded_as_entries_are(self, tmp_path: Path) -> None:
        body = '"' + "é" * 499 + '"'  # 1,000 bytes
        with closing(self.make(tmp_path)) as store:
            for number, name in enumerate("abc"):
                record = make_record(name, body=body, created_s=float(number))
                store.put(record, bounds=Bounds(tenant_bytes=3 * 1012))
            assert store.room("acme") == store.room() == Room(3, 3 * 1012)  # 12 of each vector
            more = make_record("d", body=body, created_s=9.0)
            assert store.put(more, bounds=Bounds(tenant_bytes=3 * 1012)).evicted == ("a",)
            huge = make_record("e", body=f'"{body * 5}"', vector=None, created_s=9.0)
            assert store.put(huge, bounds=Bounds(tenant_bytes=100)).evicted == ("b", "c", "d")
            assert store.room("acme") == Room(1, huge.size)
            store.remove("acme", ["e"])
            assert store.room("acme") == store.room() == Room(0, 0)

    def test_over_the_bound_of_all_the_tenant_that_has_most_makes_room(
        self, tmp_path: Path
    ) -> None:
        bounds = Bounds(entries=5)
        with closing(self.make(tmp_path)) as store:
            for number in range(3):
                store.put(make_record(f"{number}", tenant="large", created_s=float(number)))
            store.put(make_record("a", tenant="small"), bounds=bounds)
            assert store.put(make_record("b", tenant="small"), bounds=bounds).elsewhere == {}
            done = store.put(make_record("c", tenant="third"), bounds=bounds)
            assert (done.evicted, dict(done.elsewhere)) == ((), {"large": ("0",)})
            assert done.change == store.last_change() == 7
            done = store.put(make_record("d", tenant="third"), bounds=bounds)
            assert dict(done.elsewhere) == {"large": ("1",)}
            done = store.put(make_record("e", tenant="third"), bounds=bounds)
            assert (done.evicted, dict(done.elsewhere)) == (("c",), {})
            assert [store.count(name) for name in ("large", "small", "third")] == [1, 2, 2]

    def test_over_the_bytes_of_all_the_tenant_that_has_most_bytes_makes_room(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in "abc":
                store.put(make_record(name, tenant="many"))
            store.put(make_record("x", tenant="wide", body='"' + "x" * 5000 + '"'))
            done = store.put(make_record("y"), bounds=Bounds(bytes=5000))
            assert dict(done.elsewhere) == {"wide": ("x",)}

    def test_a_tenant_with_no_more_than_its_share_never_makes_room_for_another(
        self, tmp_path: Path
    ) -> None:
        bounds = Bounds(entries=6)
        with closing(self.make(tmp_path)) as store:
            for name in ("a", "b"):
                store.put(make_record(name, tenant="quiet", created_s=1.0), bounds=bounds)
            for number in range(20):
                for tenant in ("loud", "louder"):
                    store.put(make_record(f"{number}", tenant=tenant), bounds=bounds)
            assert [store.count(name) for name in ("quiet", "loud", "louder")] == [2, 2, 2]

    def test_what_was_used_stays_and_what_was_not_makes_room(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for number, name in enumerate("abcd"):
                store.put(make_record(name, created_s=float(number)))
            store.use("acme", {"a": 3, "b": 1, "never": 5}, now_s=10.0)
            store.use("other", {"c": 3}, now_s=10.0)
            assert store.last_change() == 4
            done = store.put(make_record("e", created_s=20.0), bounds=Bounds(2))
            assert done.evicted == ("c", "d", "b")

    def test_an_old_use_counts_less_than_a_new_one(self, tmp_path: Path) -> None:
        day_s = 24 * 3600.0
        with closing(self.make(tmp_path)) as store:
            for name in "ab":
                store.put(make_record(name, created_s=0.0))
            store.use("acme", {"a": 10}, now_s=0.0)
            store.use("acme", {"b": 2}, now_s=5 * day_s)
            done = store.put(make_record("c", created_s=5 * day_s), bounds=Bounds(2))
            assert done.evicted == ("a",)

    def test_what_took_long_to_make_stays_and_what_takes_much_room_goes(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("cheap", cost_s=0.1))
            store.put(make_record("dear", cost_s=8.0))
            store.put(make_record("wide", cost_s=8.0, body='"' + "x" * 9000 + '"'))
            store.put(make_record("usual"))
            assert store.put(make_record("new"), bounds=Bounds(2)).evicted == (
                "wide", "cheap", "usual",
            )  # fmt: skip

    def test_uses_are_counted_and_stay_with_a_record_that_is_replaced(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in "ab":
                store.put(make_record(name, created_s=1.0))
            store.use("acme", {"a": 2}, now_s=5.0)
            store.use("acme", {"a": 1}, now_s=3.0)
            store.put(make_record("a", created_s=2.0, keys=("new",)))
            uses = store.uses("acme")
            assert {name: (use.count, use.last_s) for name, use in uses.items()} == {
                "a": (3, 5.0),
                "b": (0, 1.0),
            }
            assert uses["a"].worth > uses["b"].worth
            assert store.put(make_record("c", created_s=3.0), bounds=Bounds(2)).evicted == ("b",)
            store.remove("acme", ["a"])
            store.put(make_record("a", created_s=2.0))
            assert store.uses("acme")["a"].count == 0

    def test_a_record_is_written_over_the_one_it_was_made_from_or_not_at_all(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            first = store.put(make_record("a"), over=0)
            assert (first.written, first.change) == (True, 1)
            late = store.put(make_record("a", body="[2]"), over=0, bounds=Bounds(1))
            assert (late.written, late.replaced, late.evicted) == (False, False, ())
            assert store.put(make_record("a", body="[3]"), over=1).written
            assert not store.put(make_record("a", body="[4]"), over=1).written
            store.remove("acme", ["a"])
            assert not store.put(make_record("a", body="[5]"), over=2).written
            assert (store.get("acme", "a"), store.last_change()) == (None, 3)


class NoteContract(StoreFactory):
    """Notes are updated from what they were, and a lease has one holder."""

    def test_a_lease_has_one_holder_at_a_time(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            assert store.lease("acme", "plan", "one", ttl_s=10, now_s=100.0)
            assert not store.lease("acme", "plan", "two", ttl_s=10, now_s=109.0)
            store.release("acme", "plan", "two")
            assert not store.lease("acme", "plan", "two", ttl_s=10, now_s=109.0)
            store.release("acme", "plan", "one")
            store.release("acme", "plan", "one")
            assert store.lease("acme", "plan", "two", ttl_s=10, now_s=109.0)
            assert store.last_change() == 0

    def test_a_lease_is_renewed_by_its_holder_and_taken_over_when_it_has_run_out(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            assert store.lease("acme", "plan", "one", ttl_s=10, now_s=100.0)
            assert store.lease("acme", "plan", "one", ttl_s=10, now_s=108.0)
            assert not store.lease("acme", "plan", "two", ttl_s=10, now_s=117.0)
            assert store.lease("acme", "plan", "two", ttl_s=10, now_s=118.0)
            store.release("acme", "plan", "one")
            assert not store.lease("acme", "plan", "one", ttl_s=10, now_s=119.0)

    def test_leases_of_other_names_and_tenants_do_not_meet(self, tmp_path: Path) -> None:
        places = [("a", "b/c"), ("a/b", "c"), ("a", "b"), ("", "b/c"), ("a", "%")]
        with closing(self.make(tmp_path)) as store:
            for number, (tenant, name) in enumerate(places):
                assert store.lease(tenant, name, f"{number}", ttl_s=10, now_s=0.0)
            store.release("a", "b/c", "0")
            taken = [store.lease(t, name, "new", ttl_s=10, now_s=1.0) for t, name in places]
            assert taken == [True, False, False, False, False]

    def test_a_lease_outlives_a_clearing(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a"))
            assert store.lease("acme", "plan", "one", ttl_s=10, now_s=0.0)
            store.clear("acme")
            store.clear()
            assert not store.lease("acme", "plan", "two", ttl_s=10, now_s=1.0)

    def test_of_many_threads_that_ask_for_a_lease_one_gets_it(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            got = together(
                8, lambda number: store.lease("acme", "plan", f"{number}", ttl_s=10, now_s=0.0)
            )
            assert got.count(True) == 1

    def test_notes_are_kept_replaced_and_forgotten(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put_note("acme", "stats", '{"hits":1}')
            store.put_note("acme", "stats", '{"hits":2}')
            assert store.get_note("acme", "stats") == '{"hits":2}'
            assert store.get_note("other", "stats") is None
            store.put_note("acme", "stats", None)
            assert store.get_note("acme", "stats") is None

    def test_a_note_is_updated_from_what_it_was(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.update_note("acme", "n", lambda old: "1" if old is None else "wrong")
            store.update_note("acme", "n", lambda old: f"{old}2")
            assert store.get_note("acme", "n") == "12"
            store.update_note("acme", "n", lambda _: None)
            assert store.get_note("acme", "n") is None

    def test_a_note_whose_update_fails_stays(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put_note("acme", "n", "1")
            with refused(ZeroDivisionError):
                store.update_note("acme", "n", lambda old: str(int(old or 0) // 0))
            assert store.get_note("acme", "n") == "1"
            store.put_note("acme", "n", "2")
            assert store.get_note("acme", "n") == "2"

    def test_updates_from_many_threads_are_all_counted(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:

            def count(_: int) -> None:
                for _ in range(20):
                    store.update_note("acme", "n", lambda old: str(int(old or 0) + 1))

            together(4, count)
            assert store.get_note("acme", "n") == "80"


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
