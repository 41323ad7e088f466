"""Evidence is carried in files; one of another version is refused, and changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcache import PlanCache
from semcache.canonical import JsonObject
from semcache.errors import NewerFormat, StoreCorrupt, StoreUnavailable
from semcache.testing import HashEmbedder


def plan(what: str) -> JsonObject:
    return {"start_node": {"route": "end"}, "end": {"completed": True, "vars": {"answer": what}}}


@pytest.fixture
def taught() -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder(), max_wrong=0.05) as cache:
        for prompt, what in (
            ("sales by state", "state"),
            ("sales by state and city", "both"),
            ("overall sales by state", "state"),
        ):
            cache.lookup(prompt)
            cache.store(prompt, plan(what))
        yield cache


def test_evidence_goes_to_another_tenant_by_a_file(taught: PlanCache, tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    assert taught.export_evidence(file) == taught.evidence().labels == 2
    assert taught.evidence(tenant="other").labels == 0
    assert taught.import_evidence(file, tenant="other") == 2
    assert taught.evidence(tenant="other").words == taught.evidence().words
    assert taught.evidence().labels == 2


def test_what_is_handed_out_is_a_copy(taught: PlanCache) -> None:
    taught.evidence().words.add("state", same=False, weight=1000)
    assert taught.evidence().words.of("state") == (0, 0)


def test_the_file_holds_no_prompt_and_no_plan(taught: PlanCache, tmp_path: Path) -> None:
    taught.export_evidence(tmp_path / "evidence.json")
    text = (tmp_path / "evidence.json").read_text(encoding="utf-8")
    assert "sales by state" not in text
    assert "start_node" not in text


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"version": 99}, NewerFormat, "version 99"),
        ({"version": 0}, StoreCorrupt, "version 0"),
        ({"version": "x"}, StoreCorrupt, "version 'x'"),
        ({"kind": "semcache plans"}, StoreCorrupt, "holds no evidence"),
        ({"evidence": []}, StoreCorrupt, "cannot use"),
        ({"evidence": {"format": 1}}, StoreCorrupt, "cannot use"),
    ],
)
def test_a_file_of_another_version_or_kind_is_refused_and_changes_nothing(
    taught: PlanCache,
    tmp_path: Path,
    change: JsonObject,
    error: type[Exception],
    message: str,
) -> None:
    file = tmp_path / "evidence.json"
    taught.export_evidence(file)
    document = json.loads(file.read_text(encoding="utf-8")) | change
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(error, match=message):
        taught.import_evidence(file)
    assert taught.evidence().labels == 2


def test_evidence_for_another_risk_model_is_refused(taught: PlanCache, tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    taught.export_evidence(file)
    document = json.loads(file.read_text(encoding="utf-8"))
    document["evidence"] |= {"precision": [1.0], "pull": [1.0]}
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(StoreCorrupt, match="weights"):
        taught.import_evidence(file)


@pytest.mark.parametrize("content", [None, b"\xff", b"{", b"[]"])
def test_a_file_that_is_none_is_a_clear_error(
    taught: PlanCache, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "evidence.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises((StoreCorrupt, StoreUnavailable), match=r"evidence\.json"):
        taught.import_evidence(file)
