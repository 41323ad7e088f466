"""How many threads FAISS uses: one."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def alone() -> Iterator[None]:
    """Let FAISS use no other thread than this one.

    One query gains nothing from more, and where cores are busy it waits for them: 13 to 40 ms
    instead of 5 ms at 100,000 rows on 2 cores. The number is this thread's, so it is put back.
    """
    import faiss  # noqa: PLC0415 - 0.14 s that `import semcache` must not pay

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
