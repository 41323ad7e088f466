"""The default embedder: all-MiniLM-L6-v2 in onnxruntime, without torch."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semcache.errors import EmbeddingError
from semcache.models.difference import LowRankDifference
from semcache.models.memo import VectorMemo, check_counts
from semcache.models.weights import BaseWeights, Matrix, RowTable
from semcache.models.wordpiece import WordPiece
from semcache.ports import Vectors
from semcache.process.forks import Lock
from semcache.process.imports import ensure_imported

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

log = logging.getLogger(__name__)

GRAPH = "minilm_encoder.onnx"
"""The encoder layers as a graph without weights, beside this file; `benchmarks/build_encoder.py`
writes it."""
LAYERS = 6
EPSILON = 1e-12
"""Of the layer norms, as in the `config.json` of the weights."""
MAX_TOKENS = 256
"""As in their `sentence_bert_config.json`; longer texts are cut there, as sentence-transformers
cuts them."""


class MiniLMEmbedder:
    """Embeds with weights of all-MiniLM-L6-v2's form; remembers the vectors of the latest texts.

    With the packaged ones, vectors equal those of `SentenceTransformersEmbedder` to 1e-5, so that
    both have one fingerprint and either reads a cache that the other filled. Weights of 8 bits are
    a model of their own, computed in fp32 too. Safe from several threads. Never touches the
    network.
    """

    def __init__(
        self,
        weights: Path | None = None,
        *,
        difference: LowRankDifference | None = None,
        threads: int = 1,
        memo: int = 10_000,
        batch_size: int = 64,
    ) -> None:
        """Keep what is asked for; nothing is imported and no weight read before the first `embed`.

        Args:
            weights: Folder with weights of 8 bits a number, as `benchmarks/build_encoder.py` writes
                it; None: the packaged fp32 ones.
            difference: What is added to the weights, as `semcache train` learns it; None: nothing.
            threads: Threads for one batch; on a busy machine more are slower, not faster.
            memo: How many texts keep their vector, about 2 KB each; 0 switches the memo off.
            batch_size: Texts that go through the model together.

        Raises:
            InvalidSettings: `threads` or `batch_size` under 1, or `memo` under 0.
            WeightsUnavailable: the folder has no manifest that can be read, or `difference` is for
                other weights.
        """
        check_counts(threads=threads, memo=memo, batch_size=batch_size)
        self._weights = BaseWeights.of(weights)
        self._difference = difference
        self._fingerprint = _fingerprint(self._weights, difference)
        self._threads = threads
        self._batch_size = batch_size
        self._memo = VectorMemo(memo)
        self._loading = Lock()
        self._model: _Model | None = None

    def __repr__(self) -> str:
        folder = self._weights.folder
        return f"MiniLMEmbedder({'' if folder is None else repr(str(folder))})"

    @property
    def fingerprint(self) -> str:
        """Names weights, precision and pooling; no weight is read for it."""
        return self._fingerprint

    @property
    def strict_cosine(self) -> float:
        """Cosine that is as strict as 0.95 of the plain weights; see `ports.Embedder`."""
        return self._weights.strict_cosine

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalized float32 row a text, in order; shape `(len(texts), 384)`.

        Raises:
            WeightsUnavailable: the weights are missing, unreadable or not the ones expected.
            EmbeddingError: the model failed, or gave numbers that are not finite.
        """
        return self._memo.embed(texts, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        model = self._load()
        # Texts of like length share a batch, so that few tokens are padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = np.empty((len(texts), model.width), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            part = order[start : start + self._batch_size]
            rows[part] = model.embed([texts[i] for i in part])
        if not np.isfinite(rows).all():
            raise EmbeddingError(f"{self!r} gave numbers that are not finite")
        return rows

    def _load(self) -> "_Model":
        # Read without the lock once it is loaded; the lock only keeps a second thread from loading.
        if self._model is None:
            with self._loading:
                if self._model is None:
                    self._model = self._open()
        return self._model

    def _open(self) -> "_Model":
        directory, tensors = self._weights.read()
        if self._difference is not None:
            tensors = self._difference.added(tensors)
        log.info("loaded embedding weights from %s", directory)
        norm = "embeddings.LayerNorm."
        return _Model(
            tokenizer=WordPiece.read(directory / "tokenizer.json"),
            words=tensors.table("embeddings.word_embeddings.weight"),
            positions=tensors["embeddings.position_embeddings.weight"]
            + tensors["embeddings.token_type_embeddings.weight"][0],
            scale=tensors[norm + "weight"],
            shift=tensors[norm + "bias"],
            encoder=_encoder(tensors, self._threads),
        )


@dataclass(frozen=True, slots=True)
class _Model:
    """Everything between texts and vectors."""

    tokenizer: WordPiece
    words: RowTable
    """One row a word piece, shape (30522, 384); at 8 bits it takes 12 MB, and in fp32 47 MB."""
    positions: Matrix
    """One row a position, the embedding of the first sentence added to each."""
    scale: Matrix
    """Of the layer norm over words and positions; `shift` likewise."""
    shift: Matrix
    encoder: "InferenceSession"

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return len(self.scale)

    def embed(self, texts: list[str]) -> Vectors:
        """Return the mean of the last layer over the tokens of each text, of length 1."""
        ids, mask = self.tokenizer.encode(texts, MAX_TOKENS)
        try:
            (hidden,) = self.encoder.run(None, {"embedded": self._embedded(ids), "mask": mask})
        except RuntimeError as error:  # onnxruntime's errors are RuntimeErrors
            raise EmbeddingError(f"the encoder failed on {len(texts)} text(s): {error}") from error
        weight = mask[:, :, None].astype(np.float32)
        mean = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        rows: Vectors = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return rows

    def _embedded(self, ids: npt.NDArray[np.int64]) -> Matrix:
        # Outside the graph: looking rows up needs no runtime, which would keep a second copy of
        # the largest table.
        x = self.words.rows(ids) + self.positions[: ids.shape[1]]
        x -= x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        return np.asarray(x * self.scale + self.shift, dtype=np.float32)


def _fingerprint(weights: BaseWeights, difference: LowRankDifference | None) -> str:
    if difference is not None:
        difference.check_base(weights.label)
        return f"semcache/{weights.label}+difference@{difference.label}/fp32/normalized"
    maker = "sentence-transformers" if weights.manifest is None else "semcache"
    return f"{maker}/{weights.label}/fp32/normalized"


def _encoder(tensors: Mapping[str, Matrix], threads: int) -> "InferenceSession":
    """Return the graph with its weights, which are handed over and not copied from a file."""
    ensure_imported("onnxruntime")
    import onnxruntime  # noqa: PLC0415 - takes a fifth of a second

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    names = encoder_weights(tensors)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in names.values()]
    options.add_external_initializers(list(names), values)
    graph = (files("semcache.models") / GRAPH).read_bytes()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def encoder_weights(tensors: Mapping[str, Any]) -> dict[str, Matrix]:
    """Return the weights of the encoder by the names that the graph has for them.

    Matrices are turned so that rows multiply them from the left; query, key and value of a layer
    are one matrix, since the runtime multiplies them at once.
    """
    out: dict[str, Matrix] = {}
    for layer in range(LAYERS):
        old, new = f"encoder.layer.{layer}.", f"layer.{layer}."
        heads = [f"{old}attention.self.{part}." for part in ("query", "key", "value")]
        out[new + "qkv.weight"] = _turned(np.concatenate([tensors[h + "weight"] for h in heads]))
        out[new + "qkv.bias"] = np.concatenate([tensors[h + "bias"] for h in heads])
        for name, source in _PARTS.items():
            matrix = tensors[f"{old}{source}.weight"]
            out[f"{new}{name}.weight"] = matrix if matrix.ndim == 1 else _turned(matrix)
            out[f"{new}{name}.bias"] = tensors[f"{old}{source}.bias"]
    return out


_PARTS = {
    "attention": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm": "output.LayerNorm",
}
"""Part of a layer in the graph → its name in the weights."""


def _turned(matrix: Matrix) -> Matrix:
    return np.ascontiguousarray(matrix.T)
