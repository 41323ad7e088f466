"""What a plan store promises of notes and leases to threads and processes that share it."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from contextlib import closing
from pathlib import Path

from semcache.testing.records import StoreFactory, make_record, refused, together


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
