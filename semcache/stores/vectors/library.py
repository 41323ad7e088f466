"""FAISS: loaded by the first search, and kept to one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semcache.process.imports import ensure_imported


def library() -> Any:  # noqa: ANN401 - FAISS publishes types of C++ arguments, if any
    """Return FAISS.

    Loading it takes 0.14 s, which neither `import semcache` nor a hit by the same words must pay.
    """
    ensure_imported("faiss")
    import faiss  # noqa: PLC0415 - see above

    return faiss


@contextmanager
def alone() -> Iterator[None]:
    """Let FAISS use no other thread than this one.

    One query gains nothing from more, and where cores are busy it waits for them: 13 to 40 ms
    instead of 5 ms at 100,000 rows on 2 cores. The number is this thread's, so it is put back.
    """
    faiss = library()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
