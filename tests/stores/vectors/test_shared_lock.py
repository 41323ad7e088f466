import contextlib
import threading

from semcache.stores.vectors.shared_lock import SharedLock
from semcache.testing.fakes import together
from tests.waiting import until


def test_readers_are_inside_together() -> None:
    lock, both = SharedLock(), threading.Barrier(2)

    def read(_: int) -> None:
        with lock.reading():
            both.wait(timeout=10)

    together(2, read)
    assert not both.broken


def test_a_writer_waits_for_readers_and_holds_back_new_ones() -> None:
    class Watched(SharedLock):
        """Tells whether a writer stands in line."""

        @property
        def awaited(self) -> bool:
            return bool(self._writers)

    lock, steps = Watched(), list[str]()

    def write() -> None:
        with lock.writing():
            steps.append("written")

    def read() -> None:
        with lock.reading():
            steps.append("read")

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    with lock.reading():
        threads[0].start()
        until(lambda: lock.awaited)
        threads[1].start()
        steps.append("first")
    for thread in threads:
        thread.join(timeout=10)
    assert steps == ["first", "written", "read"]


def test_writers_are_inside_alone() -> None:
    lock, total = SharedLock(), [0]

    def write(_: int) -> None:
        for _ in range(200):
            with lock.writing():
                before = total[0]
                with_others = threading.get_ident()  # anything that may switch threads
                total[0] = before + bool(with_others)

    together(4, write)
    assert total == [800]


def test_a_failure_inside_lets_the_next_in() -> None:
    lock = SharedLock()
    for enter in (lock.reading, lock.writing, lock.writing):
        with contextlib.suppress(KeyError), enter():
            raise KeyError
    with lock.writing():
        pass
