"""Fakes for tests, and the promises that each store and index must keep.

A store's whole test file is a class that inherits `PlanStoreContract` (`SharedStoreContract` if it
outlives its process) and says how one is made; the methods are collected by pytest:

    class TestMyStore(PlanStoreContract):
        def make(self, tmp_path):
            return MyStore(tmp_path)
"""
# ruff: noqa: S101, D102 - contract methods are tests: they assert, and their names are sentences

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from semcache.errors import InvalidInput, InvalidVector, StoreUnavailable
from semcache.events import Event
from semcache.ports import (
    Bounds,
    Change,
    Completion,
    Message,
    PlanStore,
    Record,
    ResponseStore,
    Room,
    Vector,
    VectorIndex,
    Vectors,
)

E = TypeVar("E")
T = TypeVar("T")


class FakeClock:
    """A clock that stands still until it is told otherwise. Safe from several threads."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._lock = threading.Lock()
        self._now = now
        self._monotonic = 0.0
        self.sleeps: list[float] = []
        """Seconds of each `sleep`, in order; none of them waited."""

    def now(self) -> float:
        """Return epoch seconds."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds since the clock was made."""
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Advance by `seconds` and return at once."""
        self.sleeps.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both readings."""
        with self._lock:
            self._now += seconds
            self._monotonic += seconds


class HashEmbedder:
    """Bags of words as vectors, with no model: texts that share words are near, whatever the order.

    Each word is a direction of its own, taken from its hash, so vectors are equal on every machine.
    """

    def __init__(self, dim: int = 64) -> None:
        self._dim = dim
        self._lock = threading.Lock()
        self.texts: list[str] = []
        """Every text that was embedded, in order."""

    @property
    def fingerprint(self) -> str:
        """`hash:<dim>`."""
        return f"hash:{self._dim}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalized float32 row a text, in order; shape `(len(texts), dim)`."""
        with self._lock:
            self.texts.extend(texts)
        rows = np.array([self._row(text) for text in texts], np.float32)
        return rows.reshape(len(texts), self._dim)

    def _row(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        words = text.casefold().split() or [""]
        total = np.sum([self._direction(word.strip(".,;:?!")) for word in words], axis=0)
        length = float(np.linalg.norm(total))
        if length == 0.0:  # words that cancel out
            total = self._direction(text)
            length = float(np.linalg.norm(total))
        return np.asarray(total / length, np.float64)

    def _direction(self, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        bits = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(self._dim)
        return np.frombuffer(bits, np.uint8).astype(np.float64) - 127.5


class ScriptedModel:
    """Answers from a queue, in order; an exception in the queue is raised instead."""

    def __init__(
        self,
        replies: Iterable[str | Completion | Exception] = (),
        *,
        fingerprint: str = "scripted",
    ) -> None:
        self._lock = threading.Lock()
        self._fingerprint = fingerprint
        self.unused: list[str | Completion | Exception] = list(replies)
        """Replies that were not asked for yet."""
        self.calls: list[tuple[Message, ...]] = []
        """The messages of each call, in order."""

    @property
    def fingerprint(self) -> str:
        """What the script was given as its fingerprint."""
        return self._fingerprint

    def reply(self, *replies: str | Completion | Exception) -> None:
        """Add `replies` to the end of the queue."""
        self.unused.extend(replies)

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the next reply.

        Raises:
            AssertionError: the queue is empty; a test expected fewer calls.
        """
        with self._lock:
            self.calls.append(tuple(messages))
            if not self.unused:
                raise AssertionError(
                    f"the scripted model was asked {len(self.calls)} times and has no reply left; "
                    f"last message: {messages[-1].content[:200] if messages else ''!r}"
                )
            reply = self.unused.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Completion) else Completion(reply, model="scripted")


class RecordingObserver:
    """Keeps every event. Safe from several threads."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        """All of them, in the order they came."""

    def __call__(self, event: Event, /) -> None:
        """Keep `event`."""
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of class `kind`, in order."""
        return [event for event in self.events if isinstance(event, kind)]


def unit(*components: float) -> Vector:
    """Return the direction of `components` as an L2-normalized float32 vector."""
    vector = np.array(components, np.float32)
    return vector / np.float32(np.linalg.norm(vector))


# A test names fields as they are, or wrongly on purpose.
def make_record(id: str, **fields: Any) -> Record:  # noqa: A002, ANN401
    """Return a record of tenant `acme` in which `fields` say what is not as usual."""
    usual = Record(
        tenant="acme",
        id=id,
        keys=(f"template:{id}",),
        labels=("tag:sales",),
        body='{"plan":{}}',
        vector=unit(1, 2, 2),
        embedder="hash:3",
        created_s=1_700_000_000.0,
        expires_s=None,
    )
    return replace(usual, **fields)


def same_records(left: Record | None, right: Record | None) -> bool:
    """Return whether two records are equal but for their change numbers; vectors bit for bit."""
    if left is None or right is None:
        return left is right
    bare = [replace(record, vector=None, change=0) for record in (left, right)]
    vectors = [None if r.vector is None else r.vector.tobytes() for r in (left, right)]
    return bare[0] == bare[1] and vectors[0] == vectors[1]


@contextmanager
def _refused(error: type[Exception]) -> Iterator[None]:
    """Fail unless the block raises `error`. Not `pytest.raises`, so that fakes need no pytest."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"nothing was raised; expected {error.__name__}")


def _together(count: int, work: Callable[[int], T]) -> list[T]:
    """Return what `work` gives for 0 to `count` - 1, in as many threads that begin together."""
    start = threading.Barrier(count)
    results: dict[int, T] = {}

    def run(number: int) -> None:
        start.wait(timeout=30)
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(results) == count, "a thread failed or hangs"
    return [results[number] for number in range(count)]


class PlanStoreContract:
    """What every `PlanStore` promises."""

    def make(self, tmp_path: Path) -> PlanStore:
        """Return a new store; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how a store is made")

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
            got = _together(
                8, lambda number: store.lease("acme", "plan", f"{number}", ttl_s=10, now_s=0.0)
            )
            assert got.count(True) == 1

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
            with _refused(ZeroDivisionError):
                store.update_note("acme", "n", lambda old: str(int(old or 0) // 0))
            assert store.get_note("acme", "n") == "1"
            store.put_note("acme", "n", "2")
            assert store.get_note("acme", "n") == "2"

    def test_updates_from_many_threads_are_all_counted(self, tmp_path: Path) -> None:
        with closing(self.make(tmp_path)) as store:

            def count(_: int) -> None:
                for _ in range(20):
                    store.update_note("acme", "n", lambda old: str(int(old or 0) + 1))

            _together(4, count)
            assert store.get_note("acme", "n") == "80"

    def test_puts_and_reads_from_many_threads_do_not_disturb_each_other(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:

            def work(thread: int) -> int:
                for i in range(20):
                    store.put(make_record(f"{thread}-{i}", keys=(f"k{thread}",)), bounds=Bounds(50))
                    assert all(r.keys == (f"k{thread}",) for r in store.find("acme", f"k{thread}"))
                return store.last_change()

            _together(4, work)
            changes = store.changes(0)
            assert changes is not None
            assert [c.number for c in changes] == list(range(1, 80 + 30 + 1))
            assert store.count("acme") == len(store.scan("acme")) == 50

    def test_a_vector_that_cannot_be_one_is_refused_and_nothing_written(
        self, tmp_path: Path
    ) -> None:
        with closing(self.make(tmp_path)) as store:
            for vector in ([1.0, 0.0], np.array([1, 0]), np.array([[1.0]]), unit(1, np.nan)):
                with _refused(InvalidVector):
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
                with _refused(InvalidInput):
                    store.put(make_record("a", **fields))
            with _refused(InvalidInput):
                store.put_note("acme", "n", "\ud800")
            assert (store.count("acme"), store.last_change()) == (0, 0)

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        store.put(make_record("a"))
        store.close()
        store.close()
        with _refused(StoreUnavailable):
            store.get("acme", "a")
        with _refused(StoreUnavailable):
            store.put(make_record("a"))


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

            _together(4, count)
            assert left.get_note("acme", "n") == right.get_note("acme", "n") == "80"


class VectorIndexContract:
    """What every `VectorIndex` promises."""

    def make(self, tmp_path: Path) -> VectorIndex:
        """Return a new index of any dimension; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how an index is made")

    def test_an_empty_index_finds_nothing(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        assert (len(index), list(index.search(unit(1, 0), 3))) == (0, [])

    def test_the_nearest_come_first_with_their_cosine(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for name, vector in {"x": unit(1, 0), "y": unit(0, 1), "xy": unit(1, 1)}.items():
            index.add(name, vector)
        found = index.search(unit(1, 0), 3)
        assert [n.id for n in found] == ["x", "xy", "y"]
        assert np.allclose([n.similarity for n in found], [1, 0.5**0.5, 0], atol=1e-6)

    def test_a_cosine_never_leaves_its_range(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        rows = np.random.default_rng(1).standard_normal((50, 384))
        for i, row in enumerate(rows):
            index.add(f"{i}", unit(*row))
        for row in rows:
            found = [*index.search(unit(*row), 1), *index.search(unit(*-row), 50)]
            assert all(-1.0 <= n.similarity <= 1.0 for n in found)

    def test_no_more_are_found_than_asked_for_or_kept(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for i in range(5):
            index.add(f"{i}", unit(1, i))
        assert [len(index.search(unit(1, 0), count)) for count in (0, 1, 4, 9)] == [0, 1, 4, 5]

    def test_ties_are_broken_by_id_wherever_the_rows_stand(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        vector = unit(*np.random.default_rng(2).standard_normal(384))
        names = [f"{i:02}" for i in range(60)]
        for name in reversed(names):
            index.add(name, vector)
        index.add("far", -vector)
        assert [n.id for n in index.search(vector, 3)] == names[:3]
        assert len({n.similarity for n in index.search(vector, 60)}) == 1

    def test_an_id_added_again_has_its_new_vector_alone(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        index.add("b", unit(0, 1))
        index.add("a", unit(-1, 0))
        assert len(index) == 2
        assert [n.id for n in index.search(unit(1, 0), 5)] == ["b", "a"]

    def test_a_removed_vector_is_never_found(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        for i in range(6):
            index.add(f"{i}", unit(1, i))
        assert [index.remove(name) for name in ("0", "5", "2", "2", "x")] == [True] * 3 + [
            False
        ] * 2
        assert [n.id for n in index.search(unit(1, 0), 9)] == ["1", "3", "4"]
        index.add("2", unit(1, 0))
        assert [n.id for n in index.search(unit(1, 0), 9)] == ["2", "1", "3", "4"]

    def test_every_answer_is_that_of_comparing_with_all(self, tmp_path: Path) -> None:
        random = np.random.default_rng(3)
        index, kept = self.make(tmp_path), dict[str, Vector]()
        for _ in range(300):
            name = f"{random.integers(80):02}"
            if random.random() < 0.3:
                assert index.remove(name) == (kept.pop(name, None) is not None)
            else:
                kept[name] = unit(*random.standard_normal(8))
                index.add(name, kept[name])
        query = unit(*random.standard_normal(8))
        best = sorted(kept, key=lambda name: (-float(kept[name] @ query), name))
        assert len(index) == len(kept)
        assert [n.id for n in index.search(query, 7)] == best[:7]

    def test_vectors_that_cannot_be_compared_are_refused(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        wrong = [unit(1, 0, 0), unit(1, np.nan), np.array([1, 0]), np.zeros((1, 2), np.float32)]
        for vector in wrong:
            with _refused(InvalidVector):
                index.add("b", vector)
            with _refused(InvalidVector):
                index.search(vector, 1)
        assert len(index) == 1

    def test_a_vector_is_the_indexs_own(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        vector = unit(1, 0)
        index.add("a", vector)
        vector[:] = (0, 1)
        assert index.search(unit(1, 0), 1)[0].similarity == 1.0

    def test_searches_and_changes_from_many_threads_do_not_disturb_each_other(
        self, tmp_path: Path
    ) -> None:
        index = self.make(tmp_path)
        index.add("always", unit(1, 0, 0, 0))

        def work(thread: int) -> None:
            for i in range(60):
                index.add(f"{thread}-{i}", unit(0, 1, i, thread))
                assert index.search(unit(1, 0, 0, 0), 1)[0].id == "always"
                if i % 2:
                    assert index.remove(f"{thread}-{i}")

        _together(4, work)
        assert len(index) == 1 + 4 * 30

    def test_saving_writes_one_file_and_leaves_nothing_beside_it(self, tmp_path: Path) -> None:
        index = self.make(tmp_path)
        index.add("a", unit(1, 0))
        before = {path.name for path in tmp_path.iterdir()}
        for change in (1, 2):
            index.save(str(tmp_path / "snapshot"), change=change)
        assert {path.name for path in tmp_path.iterdir()} - before == {"snapshot"}


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

            _together(4, work)
            texts = [store.get(key, now_s=0) for key in store.keys(group=None)]
            assert store.room() == Room(len(texts), sum(len(text or "") for text in texts))
            assert len(texts) <= limit.entries

    def test_a_closed_store_says_so_and_closes_again(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        keep(store, "a")
        store.close()
        store.close()
        with _refused(StoreUnavailable):
            store.get("a", now_s=0)


PLENTY = Room(1000, 10**6)


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
