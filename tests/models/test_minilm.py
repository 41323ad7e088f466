import json
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from semcache import Hit, PlanCache, Settings
from semcache.errors import WeightsUnavailable
from semcache.models import weights
from semcache.models.minilm import GRAPH, MiniLMEmbedder
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.ports import Vectors
from semcache.wiring import open_embedder
from tests.models.test_wordpiece import SETTLED


@pytest.fixture(scope="module")
def reference() -> SentenceTransformersEmbedder:
    return SentenceTransformersEmbedder(memo=0)


@pytest.fixture(scope="module")
def plain() -> MiniLMEmbedder:
    """The plain all-MiniLM-L6-v2 in fp32."""
    return MiniLMEmbedder()


# Long texts, empty ones, accents, signs and scripts that the word pieces don't have.
TEXTS = st.lists(
    st.text(SETTLED, max_size=60) | st.text("ab cé🙂-5", min_size=200, max_size=900), max_size=5
)


@given(TEXTS)
@settings(max_examples=30)
def test_vectors_equal_those_of_sentence_transformers(
    reference: SentenceTransformersEmbedder, texts: list[str]
) -> None:
    found = MiniLMEmbedder(memo=0, batch_size=2).embed(texts)
    assert found.shape == (len(texts), 384)
    assert found.dtype == np.float32
    assert np.allclose(found, reference.embed(texts), atol=1e-5)


def test_a_long_text_is_cut_where_sentence_transformers_cuts_it(
    plain: MiniLMEmbedder, reference: SentenceTransformersEmbedder
) -> None:
    texts = ["sales " * count for count in (126, 127, 200, 254, 255, 600)]
    assert np.allclose(plain.embed(texts), reference.embed(texts), atol=1e-5)


def test_a_cache_filled_with_either_embedder_is_read_with_the_other(tmp_path: Path) -> None:
    plan = {"tasks": [{"id": "task0", "input": {}}, {"id": "task1", "service": "s", "input": {}}]}
    with PlanCache.open(tmp_path / "c", embedder=SentenceTransformersEmbedder()) as cache:
        cache.store("show the total sales by state", plan)
    with PlanCache.open(tmp_path / "c", embedder=MiniLMEmbedder(), threshold=0.8) as cache:
        found = cache.lookup("please show me total sales by state")
    assert isinstance(found, Hit)
    assert found.tier == "semantic"


def test_the_default_embedder_needs_no_package_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MINILM_PACKAGE", "no_such_package")
    with PlanCache.open() as cache:
        cache.store(
            "show the total sales by state",
            {"start_node": {"route": "end"}, "end": {"completed": True, "vars": {}}},
        )
        assert cache.lookup("total sales per city").trace.seconds["embed"] > 0
        assert cache.embedder.fingerprint.startswith("semcache/semcache-minilm-1@")


def test_embedding_loads_no_torch() -> None:
    code = (
        "import sys; from semcache import PlanCache; c = PlanCache.open(); "
        "c.store('total sales', {'tasks': [{'id': 'task0', 'input': {}}, "
        "{'id': 'task1', 'service': 's', 'input': {}}]}); "
        "c.lookup('sum of all sales'); "
        "print(sorted({'torch', 'transformers', 'sentence_transformers', 'tokenizers'} & "
        "sys.modules.keys()))"
    )
    done = subprocess.run(  # noqa: S603 - our own code in a fresh interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_graph_is_the_one_that_its_script_writes(tmp_path: Path, script: ModuleType) -> None:
    root = Path(__file__).parents[2]
    assert script.main([str(tmp_path / "graph")]) == 0
    shipped = (root / "semcache" / "models" / GRAPH).read_bytes()
    assert (tmp_path / "graph").read_bytes() == shipped


def test_weights_of_8_bits_are_a_quarter_and_give_nearly_the_same_vectors(
    eight_bits: Path, plain: MiniLMEmbedder
) -> None:
    assert sum(file.stat().st_size for file in eight_bits.iterdir()) < 24_000_000
    texts = ["total sales by state", "who is on call tonight?", "cancel order 88123", "é🙂-5", ""]
    found = MiniLMEmbedder(eight_bits).embed(texts)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert ((found * plain.embed(texts)).sum(axis=1) > 0.995).all()


def test_words_of_8_bits_stay_narrow_and_give_the_vectors_of_wide_ones(
    eight_bits: Path, tmp_path: Path
) -> None:
    wide = tmp_path / weights.Manifest.WEIGHTS
    save_file(dict(weights.BaseWeights.of(eight_bits).read()[1]), wide)
    shutil.copy(eight_bits / "tokenizer.json", tmp_path)
    said = {"name": "wide", "files": {wide.name: weights.file_digest(wide)}}
    (tmp_path / weights.Manifest.FILE).write_text(json.dumps(said), encoding="utf-8")

    def embedded(folder: Path) -> tuple[Vectors, int]:
        tracemalloc.start()
        embedder = MiniLMEmbedder(folder)
        rows = embedder.embed(["total sales by state", "é🙂-5", ""])
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return rows, kept

    narrow, kept = embedded(eight_bits)
    widened, kept_wide = embedded(tmp_path)
    assert np.array_equal(narrow, widened)
    assert kept_wide - kept > 30_000_000


def test_weights_of_8_bits_are_a_model_of_their_own(
    eight_bits: Path, plain: MiniLMEmbedder
) -> None:
    ours = MiniLMEmbedder(eight_bits)
    assert ours.fingerprint.startswith("semcache/all-MiniLM-L6-v2-8bit@")
    assert ours.fingerprint != plain.fingerprint


def test_weights_of_8_bits_that_were_changed_are_refused(eight_bits: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(eight_bits, tmp_path / "copy")
    changed = copy / weights.Manifest.WEIGHTS
    changed.write_bytes(changed.read_bytes()[:-1] + b"x")
    with pytest.raises(WeightsUnavailable, match=r"has SHA-256 .* expected"):
        MiniLMEmbedder(copy).embed(["a"])


def test_weights_of_8_bits_without_a_scale_are_refused(tmp_path: Path) -> None:
    file = tmp_path / weights.Manifest.WEIGHTS
    save_file({"layer": np.ones((6, 4), np.int8)}, file)
    said = {"name": "mini", "files": {file.name: weights.file_digest(file)}}
    (tmp_path / weights.Manifest.FILE).write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(WeightsUnavailable, match="with a scale a row"):
        weights.BaseWeights.of(tmp_path).read()


@pytest.mark.parametrize(
    "said",
    [
        None,
        "{",
        "[]",
        '{"name": "x"}',
        '{"name": "x", "files": {}}',
        '{"name": 7, "files": {"weights.safetensors": "%s"}}' % ("0" * 64),
        '{"name": "x", "files": {"weights.safetensors": "00"}}',
        '{"name": "x", "files": {"weights.safetensors": "%s"}, "strict_cosine": 1}' % ("0" * 64),
        '{"name": "x", "files": {"weights.safetensors": "%s", "../x": "%s"}}' % (("0" * 64,) * 2),
    ],
)
def test_a_folder_without_a_manifest_of_weights_is_refused(
    tmp_path: Path, said: str | None
) -> None:
    if said is not None:
        (tmp_path / weights.Manifest.FILE).write_text(said, encoding="utf-8")
    with pytest.raises(WeightsUnavailable, match=r"manifest\.json"):
        MiniLMEmbedder(tmp_path)


def test_weights_say_which_cosine_is_as_strict_as_that_of_the_plain_ones(tmp_path: Path) -> None:
    assert MiniLMEmbedder().strict_cosine == 0.95
    assert MiniLMEmbedder(weights.shipped_weights()).strict_cosine == 0.9
    files = {"weights.safetensors": "0" * 64}
    manifest = tmp_path / weights.Manifest.FILE
    for told in ({}, {"strict_cosine": 0.9}):
        manifest.write_text(json.dumps({"name": "x", "files": files} | told), encoding="utf-8")
        assert MiniLMEmbedder(tmp_path).strict_cosine == told.get("strict_cosine", 0.95)


def test_weights_that_are_part_of_the_package_are_the_default(
    eight_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.wiring.models.shipped_weights", lambda: eight_bits)
    assert open_embedder(Settings()).fingerprint == MiniLMEmbedder(eight_bits).fingerprint
    monkeypatch.setattr("semcache.wiring.models.shipped_weights", lambda: None)
    assert open_embedder(Settings()).fingerprint == MiniLMEmbedder().fingerprint
