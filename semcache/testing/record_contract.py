"""What a plan store promises of the records that it keeps, and of their changes."""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

from contextlib import closing
from pathlib import Path

import numpy as np

from semcache.errors import InvalidInput, InvalidVector, StoreUnavailable
from semcache.ports import (
    Bounds,
    Change,
)
from semcache.testing.fakes import (
    StoreFactory,
    make_record,
    refused,
    same_records,
    together,
    unit,
)


class RecordContract(StoreFactory):
    """Records come back as they were put, and every change is numbered."""

    def test_a_record_comes_back_as_it_was_put(self, tmp_path: Path) -> None:
        body = '{"text":"\\u0000 \\"q\\" é 漢 🙂",\n"n":1.5}'
        record = make_record("a", body=body, expires_s=1_800_000_000.5, keys=("k1", "k2"))
        with closing(self.make(tmp_path)) as store:
            store.put(record)
            assert same_records(store.get("acme", "a"), record)

    def test_a_record_without_a_vector_or_keys_comes_back_too(self, tmp_path: Path) -> None:
        record = make_record("a", vector=None, embedder="", keys=(), labels=())
        with closing(self.make(tmp_path)) as store:
            store.put(record)
            assert same_records(store.get("acme", "a"), record)

    def test_an_unknown_id_key_label_and_tenant_find_nothing(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a"))
            assert store.get("acme", "b") is None
            assert store.get("other", "a") is None
            assert list(store.find("acme", "template:b")) == []
            assert list(store.labelled("acme", "tag:other")) == []
            assert list(store.scan("other")) == []
            assert store.count("other") == 0

    def test_a_record_is_found_by_each_of_its_keys_newest_change_first(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("b", "a", "c"):
                store.put(make_record(name, keys=(f"template:{name}", "schema:s")))
            assert [r.id for r in store.find("acme", "schema:s")] == ["c", "a", "b"]
            assert [r.id for r in store.find("acme", "template:a")] == ["a"]

    def test_an_id_put_again_replaces_body_keys_and_labels(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            first = store.put(make_record("a", keys=("old", "both"), labels=("tag:old",)))
            again = store.put(make_record("a", keys=("new", "both"), labels=(), body="[2]"))
            assert (first.replaced, again.replaced) == (False, True)
            assert list(store.find("acme", "old")) == []
            assert [r.body for r in store.find("acme", "both")] == ["[2]"]
            assert list(store.labelled("acme", "tag:old")) == []
            assert store.count("acme") == 1

    def test_a_removed_record_is_found_in_no_way(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a"))
            store.put(make_record("b"))
            assert store.remove("acme", ["a", "a", "never"]) == 1
            assert store.get("acme", "a") is None
            assert list(store.find("acme", "template:a")) == []
            assert list(store.labelled("acme", "tag:sales")) == ["b"]
            assert [r.id for r in store.scan("acme")] == ["b"]
            assert store.count("acme") == 1

    def test_labels_list_ids_sorted(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("b", "a", "c"):
                store.put(make_record(name))
            assert list(store.labelled("acme", "tag:sales")) == ["a", "b", "c"]

    def test_a_scan_gives_every_record_oldest_change_first(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("b", "a", "c", "b"):
                store.put(make_record(name))
            assert [r.id for r in store.scan("acme")] == ["a", "c", "b"]

    def test_pages_give_what_a_scan_gives_a_few_at_a_time(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in ("b", "a", "e", "c", "d", "b"):
                store.put(make_record(name))
            store.put(make_record("x", tenant="other"))
            pages = [[r.id for r in page] for page in store.pages("acme", size=2)]
            assert pages == [["a", "e"], ["c", "d"], ["b"]]
            assert list(store.pages("never")) == []

    def test_what_is_written_and_removed_between_two_pages_stops_no_reader(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for name in "abcd":
                store.put(make_record(name))
            pages = store.pages("acme", size=2)
            found = {record.id for record in next(pages)}
            store.remove("acme", ["c"])
            store.put(make_record("a"))
            found |= {record.id for page in pages for record in page}
            assert {"a", "b", "d"} <= found

    def test_tenants_never_see_each_other_whatever_they_are_called(self, tmp_path: Path) -> None:
        names = ["a", "a/b", "a%2Fb", "A", "a/", "é", "a b", "", "a:b", "a\n", "%"]
        with closing(self.make(tmp_path)) as store:
            for name in names:
                store.put(make_record("x/y", tenant=name, body=f'"{names.index(name)}"'))
            assert sorted(store.tenants()) == sorted(names)
            for name in names:
                found = [store.get(name, "x/y"), *store.find(name, "template:x/y")]
                assert [r.body for r in found if r] == [f'"{names.index(name)}"'] * 2
            assert store.remove("a", ["x/y"]) == 1
            assert store.clear("a/b") == 1
            assert sorted(store.tenants()) == sorted(set(names) - {"a", "a/b"})

    def test_changes_are_numbered_from_one_without_a_gap(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            assert store.last_change() == 0
            assert list(store.changes(0) or ()) == []
            store.put(make_record("a"))
            store.put(make_record("a", tenant="other"))
            store.remove("acme", ["a"])
            assert list(store.changes(0) or ()) == [
                Change(1, "acme", "a", "put"),
                Change(2, "other", "a", "put"),
                Change(3, "acme", "a", "remove"),
            ]
            assert list(store.changes(2) or ()) == [Change(3, "acme", "a", "remove")]
            assert store.last_change() == 3

    def test_a_record_carries_the_number_of_its_change(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            numbers = [store.put(make_record(name)).change for name in ("a", "b", "a")]
            assert numbers == [1, 2, 3]
            assert [(r.id, r.change) for r in store.scan("acme")] == [("b", 2), ("a", 3)]

    def test_changes_of_a_number_never_reached_are_unknown(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a"))
            assert store.changes(2) is None

    def test_what_did_nothing_is_no_change(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            store.remove("acme", ["never"])
            store.put_note("acme", "n", "1")
            store.clear()
            assert store.last_change() == 0

    def test_clearing_a_tenant_leaves_the_others(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for tenant in ("acme", "other"):
                store.put(make_record("a", tenant=tenant))
                store.put_note(tenant, "n", "1")
            assert store.clear("acme") == 1
            assert (store.count("acme"), store.count("other")) == (0, 1)
            assert (store.get_note("acme", "n"), store.get_note("other", "n")) == (None, "1")
            assert list(store.find("acme", "template:a")) == []
            assert list(store.tenants()) == ["other"]

    def test_clearing_everything_is_told_to_those_who_follow(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:
            for tenant in ("acme", "other"):
                store.put(make_record("a", tenant=tenant))
            store.put_note("third", "n", "1")
            assert store.clear() == 2
            told = store.changes(2)
            assert told is None or {(c.tenant, c.id, c.kind) for c in told} == {
                ("acme", "a", "remove"),
                ("other", "a", "remove"),
            }
            assert (store.last_change() > 2, store.get_note("third", "n")) == (True, None)

    def test_puts_and_reads_from_many_threads_do_not_disturb_each_other(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:

            def work(thread: int) -> int:
                for i in range(20):
                    store.put(make_record(f"{thread}-{i}", keys=(f"k{thread}",)), bounds=Bounds(50))
                    assert all(r.keys == (f"k{thread}",) for r in store.find("acme", f"k{thread}"))
                return store.last_change()

            together(4, work)
            changes = store.changes(0)
            assert changes is not None
            assert [c.number for c in changes] == list(range(1, 80 + 30 + 1))
            assert store.count("acme") == len(store.scan("acme")) == 50

    def test_a_vector_that_cannot_be_one_is_refused_and_nothing_written(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for vector in ([1.0, 0.0], np.array([1, 0]), np.array([[1.0]]), unit(1, np.nan)):
                with refused(InvalidVector):
                    store.put(make_record("a", vector=vector))
            assert (store.count("acme"), store.last_change()) == (0, 0)

    def test_a_vector_is_the_stores_own(self, tmp_path: Path) -> None:
        vector = unit(1, 2, 2)
        with closing(self.make(tmp_path)) as store:
            store.put(make_record("a", vector=vector))
            vector[0] = 9
            assert same_records(store.get("acme", "a"), make_record("a"))

    def test_text_that_no_file_can_hold_is_refused_and_nothing_written(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for fields in ({"body": '"\ud800"'}, {"tenant": "\ud800"}, {"keys": ("\ud800",)}):
                with refused(InvalidInput):
                    store.put(make_record("a", **fields))
            with refused(InvalidInput):
                store.put_note("acme", "n", "\ud800")
            assert (store.count("acme"), store.last_change()) == (0, 0)

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        store.put(make_record("a"))
        store.close()
        store.close()
        with refused(StoreUnavailable):
            store.get("acme", "a")
        with refused(StoreUnavailable):
            store.put(make_record("a"))
