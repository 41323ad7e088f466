from pathlib import Path

import numpy as np
import pytest
import torch

from semcache.errors import WeightsUnavailable
from semcache.models import training
from semcache.models.difference import DOWN, UP, LowRankDifference
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import MINILM_NAME, BaseWeights, Matrix
from semcache.upkeep.adaptation import forget, save

TEXTS = ["total sales by state", "who is on call tonight?", "cancel order 88123", "é🙂-5", ""]
MATRIX = "encoder.layer.2.intermediate.dense.weight"


def factors(seed: int = 0, *, size: float = 0.2, name: str = MATRIX) -> dict[str, Matrix]:
    chance = np.random.default_rng(seed)
    down, up = chance.normal(size=(8, 384)), chance.normal(size=(1536, 8))
    return {
        name + DOWN: (size * down).astype(np.float32),
        name + UP: (size * up).astype(np.float32),
    }


def difference(seed: int = 0, base: str = MINILM_NAME) -> LowRankDifference:
    return LowRankDifference.of(base, factors(seed), {"prompts": 3})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(difference(), tmp_path / "embedder")
    return tmp_path / "embedder"


@pytest.mark.parametrize("eight", [False, True], ids=["packaged", "8 bits"])
def test_vectors_are_those_that_were_trained(
    eight: bool, eight_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "BRIEF", False)
    weights = BaseWeights.of(eight_bits if eight else None)
    encoder = training.Encoder(weights)
    encoder.train_difference(8, seed=0)
    chance = np.random.default_rng(0)
    for factor in encoder.trained:
        values = chance.normal(scale=0.1, size=tuple(factor.shape)).astype(np.float32)
        factor.data.copy_(torch.from_numpy(values))
    learned = LowRankDifference.of(weights.label, encoder.factors(), {})
    served = MiniLMEmbedder(weights.folder, difference=learned, memo=0).embed(TEXTS)
    assert np.allclose(served, encoder.embed(TEXTS), atol=1e-5)
    away = (served * MiniLMEmbedder(weights.folder, memo=0).embed(TEXTS)).sum(axis=1)
    assert (away < 0.99).all()


def test_a_difference_makes_an_embedder_of_its_own(minilm: MiniLMEmbedder) -> None:
    names = {MiniLMEmbedder(difference=difference(seed)).fingerprint for seed in (0, 0, 1)}
    assert len(names | {minilm.fingerprint}) == 3


def test_a_difference_that_is_written_is_read_as_it_was(folder: Path) -> None:
    assert LowRankDifference.read(folder) == difference()
    save(difference(1), folder)
    assert LowRankDifference.read(folder) == difference(1)
    assert len(list(folder.iterdir())) == 2
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}


def test_a_difference_for_other_weights_is_refused(folder: Path, eight_bits: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="semcache train --forget"):
        MiniLMEmbedder(eight_bits, difference=LowRankDifference.read(folder))


@pytest.mark.parametrize(
    "damage", ["cut", "edited", "gone", "no manifest", "newer", "not text", "elsewhere"]
)
def test_a_damaged_difference_is_refused(folder: Path, damage: str) -> None:
    manifest, (tensors,) = folder / "manifest.json", folder.glob("difference-*")
    content, said = tensors.read_bytes(), manifest.read_text(encoding="utf-8")
    match damage:
        case "cut":
            tensors.write_bytes(content[: len(content) // 2])
        case "edited":
            tensors.write_bytes(content[:-1] + b"x")
        case "gone":
            tensors.unlink()
        case "no manifest":
            manifest.write_text("{", encoding="utf-8")
        case "newer":
            manifest.write_text(said.replace('"version":1', '"version":2'), encoding="utf-8")
        case "elsewhere":
            label = difference().label
            manifest.write_text(said.replace(label, "../" + label[3:]), encoding="utf-8")
        case _:
            manifest.write_bytes(b"\xff\xfe")
    with pytest.raises(WeightsUnavailable, match="semcache train"):
        LowRankDifference.read(folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {MATRIX + DOWN: np.zeros((8, 384), np.float32)},
        factors(name="encoder.layer.2.output.dense.weight"),
        factors(name="encoder.layer.9.intermediate.dense.weight"),
        {**factors(), MATRIX + UP: np.zeros((1, 8), np.float32)},
        {**factors(), MATRIX + UP: np.full((1536, 8), np.nan, np.float32)},
        {**factors(), MATRIX + UP: np.zeros((1536, 8), np.float64)},
    ],
    ids=["half", "shape", "name", "one row", "not finite", "type"],
)
def test_factors_for_other_matrices_are_refused(wrong: dict[str, Matrix]) -> None:
    made = MiniLMEmbedder(difference=LowRankDifference.of(MINILM_NAME, wrong, {}))
    with pytest.raises(WeightsUnavailable, match="cannot be added"):
        made.embed(["a"])


def test_a_forgotten_difference_leaves_nothing(folder: Path) -> None:
    assert forget(folder)
    assert not folder.exists()
    assert not forget(folder)
