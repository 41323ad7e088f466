"""Fakes that do what a test says, how records are made and compared, and checks of contracts."""
# ruff: noqa: S101 - the checks are of tests: they assert

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from semcache.events import Event
from semcache.ports import Completion, Message, PlanStore, Record, Vector, Vectors

E = TypeVar("E")


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

    def jump(self, seconds: float) -> None:
        """Set the time of day that much later, or earlier, as an administrator or NTP may."""
        with self._lock:
            self._now += seconds


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


T = TypeVar("T")


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


class StoreFactory:
    """Says how a store is made; the contracts inherit it."""

    def make(self, tmp_path: Path) -> PlanStore:
        """Return a new store; it may keep files under `tmp_path`."""
        raise NotImplementedError("say how a store is made")


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    """Fail unless the block raises `error`. Not `pytest.raises`, so that fakes need no pytest."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"nothing was raised; expected {error.__name__}")


def together(count: int, work: Callable[[int], T]) -> list[T]:
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
