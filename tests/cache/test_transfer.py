import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from semcache import Parameter, PlanCache, SemCacheError
from semcache.canonical import JsonObject
from semcache.errors import NewerFormat, StoreCorrupt, StoreUnavailable
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling, hit


def _plan(year: str) -> JsonObject:
    return calling("sales", year=year)


def lines(*entries: str) -> str:
    """Return an export of these lines."""
    body = "".join(f"{entry}\n" for entry in entries)
    checksum = hashlib.sha256(body.encode()).hexdigest()
    head = {"kind": "semcache plans", "version": 2, "entries": len(entries), "sha256": checksum}
    return f"{json.dumps(head)}\n{body}"


@pytest.fixture
def cache(clock: FakeClock) -> Iterator[PlanCache]:
    with PlanCache.open(embedder=HashEmbedder(), clock=clock) as cache:
        yield cache


@pytest.fixture
def exported(cache: PlanCache, tmp_path: Path) -> Path:
    year = Parameter("year", "2024", mention="2024")
    assert cache.store(
        "sales in 2024", _plan("2024"), params=[year], tags=["report"], tenant="acme"
    )
    assert cache.export(tmp_path / "plans.json", tenant="acme") == 1
    return tmp_path / "plans.json"


def test_an_exported_plan_serves_another_tenant_of_another_cache(exported: Path) -> None:
    with PlanCache.open(embedder=HashEmbedder(dim=32), clock=FakeClock()) as other:
        assert other.import_(exported, tenant="umbrella") == 1
        found = hit(other.lookup("sales in 2023", tenant="umbrella"))
        assert found.plan.to_dict() == _plan("2023")
        assert not other.lookup("sales in 2023", tenant="acme")
        assert other.invalidate(tag="report", tenant="umbrella") == 1


def test_importing_twice_replaces(cache: PlanCache, exported: Path) -> None:
    cache.import_(exported, tenant="acme")
    cache.import_(exported, tenant="acme")
    assert len(cache.entries(tenant="acme")) == 1


def test_what_expired_meanwhile_is_left_out(
    cache: PlanCache, clock: FakeClock, exported: Path
) -> None:
    clock.advance(31 * 24 * 3600)
    assert cache.import_(exported, tenant="umbrella") == 0


def test_an_export_replaces_the_file_and_leaves_nothing_beside_it(
    cache: PlanCache, exported: Path
) -> None:
    assert cache.export(exported, tenant="nobody") == 0
    assert [path.name for path in exported.parent.iterdir()] == [exported.name]
    assert json.loads(exported.read_text(encoding="utf-8"))["entries"] == 0


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", StoreCorrupt),
        ("[]", StoreCorrupt),
        ('{"kind": "recipes"}', StoreCorrupt),
        ('{"kind": "semcache plans", "version": 1}', StoreCorrupt),
        ('{"kind": "semcache plans", "version": 2}', StoreCorrupt),
        (lines("{}"), StoreCorrupt),
        (lines("7"), StoreCorrupt),
        (lines("no JSON"), StoreCorrupt),
        (b"\xff\xd8\xff", StoreCorrupt),
        ('{"kind": "semcache plans", "version": 3, "entries": []}', NewerFormat),
    ],
)
def test_a_file_that_is_not_ours_is_refused_by_name(
    cache: PlanCache, tmp_path: Path, content: str | bytes, error: type[SemCacheError]
) -> None:
    written = content.encode() if isinstance(content, str) else content
    (tmp_path / "other.json").write_bytes(written)
    with pytest.raises(error, match=r"other\.json"):
        cache.import_(tmp_path / "other.json")


def test_one_bad_entry_keeps_all_of_them_out(cache: PlanCache, exported: Path) -> None:
    entry = exported.read_text(encoding="utf-8").splitlines()[1]
    exported.write_text(lines(entry, '{"format": 99}'), encoding="utf-8")
    with pytest.raises(StoreCorrupt, match="99"):
        cache.import_(exported, tenant="umbrella")
    assert cache.entries(tenant="umbrella") == ()


def test_files_that_cannot_be_reached_say_so(cache: PlanCache, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"absent\.json"):
        cache.import_(tmp_path / "absent.json")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        cache.export(tmp_path / "no folder" / "plans.json")


def test_an_export_has_one_entry_a_line_in_an_order_of_its_own(
    cache: PlanCache, tmp_path: Path
) -> None:
    prompts = ["visits in 2024", "sales in 2024", "orders in 2024"]
    exports = []
    for order in (prompts, prompts[::-1]):
        cache.clear()
        for prompt in order:
            cache.store(prompt, _plan("2024"), params={"year": "2024"})
        cache.export(tmp_path / "plans.json")
        exports.append((tmp_path / "plans.json").read_text(encoding="utf-8"))
    assert exports[0] == exports[1]
    told = [json.loads(line)["prompt"] for line in exports[0].splitlines()[1:]]
    assert told == sorted(prompts)


@pytest.mark.parametrize("cut", [-1, -40])
def test_an_export_that_was_cut_short_or_edited_is_refused(
    cache: PlanCache, exported: Path, cut: int
) -> None:
    exported.write_bytes(exported.read_bytes()[:cut])
    with pytest.raises(StoreCorrupt, match="cut short or edited"):
        cache.import_(exported)
