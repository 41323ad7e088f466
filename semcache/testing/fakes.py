"""Fakes: a clock, an embedder, a model and an observer that do what a test says."""

import hashlib
import threading
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from semcache.events import Event
from semcache.ports import Completion, Message, Vectors

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
