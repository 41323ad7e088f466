"""The script that writes weights of 8 bits, and the packaged weights as it writes them."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from semcache.models.weights import packaged_weights


@pytest.fixture(scope="session")
def script() -> ModuleType:
    """The script that writes the graph and weights of 8 bits."""
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location(
        "build_encoder", root / "benchmarks" / "build_encoder.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.fixture(scope="session")
def eight_bits(tmp_path_factory: pytest.TempPathFactory, script: ModuleType) -> Path:
    """The packaged weights at 8 bits a number."""
    folder = tmp_path_factory.mktemp("weights") / "minilm"
    assert script.main(["--weights", str(folder)]) == 0
    return folder


@pytest.fixture
def edited_weights(tmp_path: Path) -> Path:
    """A copy of the packaged files whose weights are not the weights."""
    copy = tmp_path / "model"
    shutil.copytree(packaged_weights(), copy, ignore=lambda *_: ["model.safetensors"])
    (copy / "model.safetensors").write_bytes(b"not the weights")
    return copy
