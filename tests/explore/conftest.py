from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from semcache import Parameter
from semcache.canonical import JsonObject, dumps
from semcache.explore.evaluate import evaluate
from semcache.explore.report import Report
from semcache.explore.sample import sample_rows
from semcache.explore.streams import Row
from semcache.testing import HashEmbedder

MakeRow = Callable[..., Row]
WriteStream = Callable[..., Path]


@pytest.fixture(scope="session")
def sampled() -> Report:
    """A replay of the sample with planner noise, so that some hits are wrong."""
    return evaluate(sample_rows(400, noise=0.03), embedder=HashEmbedder(), threshold=0.6)


@pytest.fixture(scope="session")
def quick() -> Callable[..., Report]:
    """`evaluate` without the weights, which take seconds to load."""
    return partial(evaluate, embedder=HashEmbedder())


@pytest.fixture(scope="session")
def sale() -> MakeRow:
    """Make a row that asks for the sales of a year."""

    def make(text: str, year: str, *, tenant: str = "acme", operation: str = "sales") -> Row:
        plan: JsonObject = {"call": {"operation": operation, "input": {"year": year}}}
        return Row(text, tenant, text, (Parameter("year", year, mention=year),), plan)

    return make


@pytest.fixture
def write(tmp_path: Path) -> WriteStream:
    """Write records, or lines as they are, to a file."""

    def write(*records: JsonObject | str) -> Path:
        path = tmp_path / "stream.jsonl"
        lines = [record if isinstance(record, str) else dumps(record) for record in records]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
