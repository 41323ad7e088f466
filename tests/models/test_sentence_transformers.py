import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semcache.errors import MissingExtra, WeightsUnavailable
from semcache.models import weights
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.testing.fakes import together

WEIGHTS = weights.packaged_weights()


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformersEmbedder:
    """The packaged weights, loaded by sentence-transformers."""
    return SentenceTransformersEmbedder()


def test_rows_are_unit_vectors_in_the_order_of_the_texts(
    minilm: SentenceTransformersEmbedder,
) -> None:
    rows = minilm.embed(["total sales", "the weather", "total sales"])
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.array_equal(rows[0], rows[2])


def test_texts_that_mean_the_same_are_near(minilm: SentenceTransformersEmbedder) -> None:
    sales, revenue, weather = minilm.embed(
        ["total sales by state", "revenue for each state", "will it rain tomorrow"]
    )
    assert sales @ revenue > 0.6
    assert sales @ weather < 0.2


def test_no_texts_give_no_rows_of_the_right_length(minilm: SentenceTransformersEmbedder) -> None:
    assert minilm.embed([]).shape == (0, 384)


def test_a_short_text_is_not_padded(
    minilm: SentenceTransformersEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    forward, shapes = SentenceTransformer.forward, list[object]()

    def seen(self: SentenceTransformer, features: Any, **more: Any) -> Any:
        shapes.append(tuple(features["input_ids"].shape))
        return forward(self, features, **more)

    monkeypatch.setattr(SentenceTransformer, "forward", seen)
    minilm.embed(["hello short world"])
    assert shapes == [(1, 5)]


def test_a_text_embedded_again_comes_from_memory(
    minilm: SentenceTransformersEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = minilm.embed(["asked twice"])
    monkeypatch.setattr(minilm, "_encode", lambda texts: pytest.fail(f"embedded {texts} again"))
    assert np.array_equal(minilm.embed(["asked twice", "asked twice"]), np.repeat(first, 2, axis=0))


def test_torch_keeps_the_threads_that_the_process_gave_it(
    minilm: SentenceTransformersEmbedder,
) -> None:
    import torch

    minilm.embed(["load first"])
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    together(4, lambda number: minilm.embed([f"thread {number}"]))
    fresh = together(1, lambda _: torch.get_num_threads())
    assert (torch.get_num_threads(), fresh) == (2, [2])
    torch.set_num_threads(before)


def test_the_fingerprint_names_the_weights_and_loads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # to load it would fail
    embedder = SentenceTransformersEmbedder()
    assert "all-MiniLM-L6-v2@53aa51172d142c89" in embedder.fingerprint


def test_other_weights_in_a_directory_have_another_fingerprint(edited_weights: Path) -> None:
    before = SentenceTransformersEmbedder(edited_weights).fingerprint
    (edited_weights / "model.safetensors").write_bytes(b"not the weights?")
    assert SentenceTransformersEmbedder(edited_weights).fingerprint != before
    assert SentenceTransformersEmbedder("some/name").fingerprint.split("/", 1)[1] == (
        "some/name/fp32/normalized"
    )


@pytest.mark.parametrize("name", ["no-such/model", "/no/such/directory"])
def test_weights_that_cannot_be_found_are_unavailable(name: str) -> None:
    with pytest.raises(WeightsUnavailable, match=name):
        SentenceTransformersEmbedder(name).embed(["a"])


def test_weights_in_a_directory_are_loaded_from_there(
    minilm: SentenceTransformersEmbedder,
) -> None:
    here = SentenceTransformersEmbedder(WEIGHTS, memo=0)
    assert np.allclose(here.embed(["total sales"]), minilm.embed(["total sales"]), atol=1e-6)


def test_making_an_embedder_imports_neither_torch_nor_the_library() -> None:
    import subprocess

    code = (
        "import sys; from semcache.models.sentence_transformers import *; "
        "from semcache.models.openai import *; "
        "SentenceTransformersEmbedder().fingerprint; OpenAIModel('m'); OpenAIEmbedder(); "
        "print({'torch', 'sentence_transformers', 'openai', 'faiss'} & sys.modules.keys())"
    )
    done = subprocess.run(  # noqa: S603 - our own code in a fresh interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_other_weights_without_their_library_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"semcache-plans\[sentence-transformers\]"):
        SentenceTransformersEmbedder(tmp_path).embed(["a"])
