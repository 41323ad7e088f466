"""What both embedders of the packaged weights do alike."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from semcache.errors import InvalidSettings, WeightsUnavailable
from semcache.models import weights
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.ports import Embedder, Vectors

Make = Callable[..., Embedder]


@pytest.fixture(params=[MiniLMEmbedder, SentenceTransformersEmbedder])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_threads_get_the_same_vectors(make: Make) -> None:
    shared, rows = make(memo=0), list[Vectors]()
    threads = [  # loading may take longer than `together` waits
        threading.Thread(target=lambda: rows.append(shared.embed(["asked by all"])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) == 8
    assert all(np.array_equal(row, rows[0]) for row in rows)


@pytest.mark.usefixtures("_packaged")
def test_packaged_weights_that_were_changed_are_refused(make: Make, edited_weights: Path) -> None:
    with pytest.raises(WeightsUnavailable, match=r"model\.safetensors' has SHA-256 .* expected 53"):
        make().embed(["a"])
    (edited_weights / "model.safetensors").unlink()
    with pytest.raises(WeightsUnavailable, match="cannot be read"):
        make().embed(["a"])


@pytest.fixture
def _packaged(edited_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("weights", "sentence_transformers"):
        monkeypatch.setattr(f"semcache.models.{user}.packaged_weights", lambda: edited_weights)


@pytest.mark.usefixtures("_packaged")
def test_weights_that_are_no_tensors_are_refused(
    edited_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "verify_packaged", lambda _: None)
    with pytest.raises(WeightsUnavailable, match=f"{edited_weights.name}/model.safetensors"):
        MiniLMEmbedder().embed(["a"])


def test_missing_weights_name_the_package_that_has_them(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "MINILM_PACKAGE", "no_such_package")
    with pytest.raises(WeightsUnavailable, match=r"semcache-plans\[minilm\]"):
        make().embed(["a"])


@pytest.mark.parametrize("setting", [{"threads": 0}, {"memo": -1}, {"batch_size": 0}])
def test_settings_out_of_range_are_named(make: Make, setting: dict[str, int]) -> None:
    with pytest.raises(InvalidSettings, match="expected"):
        make(**setting)
