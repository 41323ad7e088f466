"""Every notebook runs from a clean kernel, offline, and is kept without outputs."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROXY = "http://127.0.0.1:1"
"""Nothing listens there: a notebook that asks the network fails."""


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def test_there_are_at_least_four() -> None:
    assert len(NOTEBOOKS) >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    for cell in code(read(path)):
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_shows_something_in_every_cell_that_asks(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HF_HUB_OFFLINE": "1",
        "HTTP_PROXY": PROXY,
        "HTTPS_PROXY": PROXY,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
    }.items():
        monkeypatch.setenv(name, value)
    book = read(path)
    client = NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    silent = [cell.source for cell in code(book) if not cell.outputs and shows(cell.source)]
    assert silent == []


def shows(source: str) -> bool:
    """Return whether the last line of a cell is a value to look at."""
    last = source.splitlines()[-1]
    return not last.startswith((" ", "#", ")", "}", "rows =", "for ", "import ", "from "))
