"""Snapshots of views: the next process serves the same, and relies on nothing that it must not."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Found, Hit, Parameter, PlanCache
from semcache.cache.view import views as views_module
from semcache.cache.view.snapshot import pack_row, pack_view, unpack_row, unpack_view
from semcache.cache.view.view import EntrySummaries, EntrySummary, View, pack_examples
from semcache.canonical import Json
from semcache.errors import InvalidParameter, StoreCorrupt
from semcache.matching.gates import Side
from semcache.matching.plan_groups import PlanGroupSets
from semcache.ports import Record
from semcache.prompts.template import Slot, TemplateText
from semcache.stores.disk.store import DiskStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder
from tests.calling import calling

WORDS = "sales orders refunds invoices".split()


plan = partial(calling, "report")


def fill(cache: PlanCache) -> None:
    for word in WORDS:
        params = {"year": "2024", "city": "Boston"}
        stored = cache.store(
            f"{word} in Boston in 2024", plan(of=word, year="2024", city="Boston"), params=params
        )
        assert stored


def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with every tenant whose records are all read."""
    query: list[str] = []
    pages = DiskStore.pages

    def counted(store: DiskStore, tenant: str) -> object:
        query.append(tenant)
        return pages(store, tenant)

    monkeypatch.setattr(DiskStore, "pages", counted)
    return query


@pytest.fixture
def reopen(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], PlanCache]]:
    monkeypatch.setattr(views_module, "WORTHWHILE", 1)
    opened: list[PlanCache] = []

    def again() -> PlanCache:
        if opened:
            opened[-1].close()
        opened.append(PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock))
        return opened[-1]

    yield again
    opened[-1].close()


@pytest.fixture
def kept(reopen: Callable[[], PlanCache], tmp_path: Path) -> Path:
    """A filled directory with a snapshot; return its file."""
    cache = reopen()
    fill(cache)
    assert cache.lookup("sales in Boston in 2023")
    cache.close()
    [path] = (tmp_path / "views").glob("*.view")
    return path


def outcome(found: Found) -> object:
    return (found.tier, found.plan.to_dict()) if isinstance(found, Hit) else found.reason


PROMPTS = [
    "sales in Boston in 2022",
    "please show me refunds in Boston in 2021",
    "orders in Denver in 2020",
    "sales without Boston in 2024",
    "weather in Boston",
]


def test_a_reopened_cache_says_what_it_said_without_reading_its_records(
    reopen: Callable[[], PlanCache], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.unlink()
    derived = [outcome(reopen().lookup(prompt)) for prompt in PROMPTS]
    fill(reopen())
    reopen().lookup("sales in Boston in 2023")
    query = scans(monkeypatch)
    cache = reopen()
    assert [outcome(cache.lookup(prompt)) for prompt in PROMPTS] == derived
    assert query == []


def test_who_is_killed_leaves_a_snapshot_if_the_records_were_read_or_it_was_flushed(
    kept: Path, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = scans(monkeypatch)

    def opened() -> PlanCache:  # and never closed
        cache = PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock)
        assert cache.lookup("sales in Boston in 2023")
        return cache

    opened()
    assert query == []
    kept.unlink()
    opened()
    assert query == ["default"]
    more = opened()
    assert query == ["default"]
    before = kept.read_bytes()
    more.store("returns in 2024", plan(of="returns", year="2024"), params={"year": "2024"})
    more.lookup("returns in 2023")
    more.flush()
    assert kept.read_bytes() != before


def test_what_changed_after_a_snapshot_is_caught_up(
    reopen: Callable[[], PlanCache], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "WORTHWHILE", 100)
    before = kept.read_bytes()
    other = reopen()
    hit = other.lookup("sales in Boston in 2023")
    assert isinstance(hit, Hit)
    other.invalidate(id=hit.entry)
    other.store("returns in 2024", plan(of="returns", year="2024"), params={"year": "2024"})
    query = scans(monkeypatch)
    cache = reopen()
    assert kept.read_bytes() == before
    assert not cache.lookup("sales in Boston in 2023")
    assert cache.lookup("returns in 2023")
    assert query == []


@pytest.mark.parametrize("suffix", [".view", ".index"])
@pytest.mark.parametrize("at", [0, 40, -1])
def test_a_damaged_snapshot_is_derived_again(
    reopen: Callable[[], PlanCache],
    kept: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    at: int,
) -> None:
    path = kept.with_suffix(suffix)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    query = scans(monkeypatch)
    assert reopen().lookup("sales in Boston in 2023")
    assert query == ["default"]


def test_a_snapshot_of_another_store_in_the_same_directory_counts_for_nothing(
    reopen: Callable[[], PlanCache], kept: Path
) -> None:
    for path in kept.parent.parent.glob("semcache.db*"):
        path.unlink()
    cache = reopen()
    cache.store("weather in 2024", plan(of="weather", year="2024"), params={"year": "2024"})
    assert cache.lookup("weather in 2023")
    assert not cache.lookup("sales in Boston in 2023")
    assert len(cache.entries()) == 1


def test_a_snapshot_for_another_embedder_counts_for_nothing(
    kept: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = scans(monkeypatch)
    embedder = HashEmbedder(dim=16)
    with PlanCache.open(kept.parent.parent, embedder=embedder, clock=clock) as cache:
        assert cache.lookup("sales in Boston in 2023")
    assert query == ["default"]


@pytest.mark.parametrize("tenant", ["default", None])
def test_clearing_forgets_the_snapshot(
    reopen: Callable[[], PlanCache], kept: Path, tenant: str | None
) -> None:
    cache = reopen()
    cache.clear(tenant=tenant)
    assert not kept.exists()
    assert not kept.with_suffix(".index").exists()
    assert not cache.lookup("sales in Boston in 2023")


def test_few_changes_are_not_worth_a_snapshot(tmp_path: Path, clock: FakeClock) -> None:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
        fill(cache)
        cache.lookup("sales in Boston in 2023")
    assert not (tmp_path / "views").exists()


def test_a_process_that_ends_leaves_few_changes_for_the_next_to_take_in(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "WORTHWHILE", 100)

    def store(cache: PlanCache, numbers: range) -> None:
        for number in numbers:
            word = f"q{ascii_lowercase[number // 26]}{ascii_lowercase[number % 26]}"
            stored = plan(of=word, year="2024")
            assert cache.store(f"sales of {word} in 2024", stored, params={"year": "2024"})

    def ended(numbers: range) -> bytes:
        with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
            cache.lookup("sales of qaa in 2023")
            store(cache, numbers)
            cache.lookup("sales of qaa in 2022")
        [path] = (tmp_path / "views").glob("*.view")
        return path.read_bytes()

    first = ended(range(150))
    assert ended(range(150, 152)) == first, "two changes in a hundred and fifty are read in no time"
    assert ended(range(152, 153)) != first


def test_a_snapshot_that_cannot_be_written_fails_nobody(
    reopen: Callable[[], PlanCache], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = reopen()
    (tmp_path / "views").write_text("in the way", encoding="utf-8")
    fill(cache)
    cache.lookup("sales in Boston in 2023")
    assert reopen().lookup("sales in Boston in 2023")
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("content", [b"", b"{}\n[]", b"[]\n[]", b'{"format":2}\n[]', b"\xff\n[]"])
def test_text_that_is_no_view_is_refused(content: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        unpack_view(content, FaissIndex(), embedder="x")


def records(tmp_path: Path, clock: FakeClock) -> list[Record]:
    with PlanCache.open(tmp_path, embedder=HashEmbedder(), clock=clock) as cache:
        fill(cache)
        cache.store("order ORD456", plan(order="x"), params={})
    store = DiskStore.open(tmp_path)
    found = list(store.scan("default"))
    store.close()
    return found


def test_a_view_survives_packing_and_goes_on_as_if_it_had_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    found = records(tmp_path, clock)
    view = View(index=FaissIndex())
    for record in found:
        view.put(record, record.embedder)
    packed = pack_view(view, change=7, embedder="x")
    again, change = unpack_view(packed, FaissIndex(), embedder="x")
    assert change == 7
    assert pack_view(again, change=7, embedder="x") == packed
    for record in found:
        again.drop(record.id)
        view.drop(record.id)
    assert json.loads(pack_view(again, change=8, embedder="x").splitlines()[0]) == json.loads(
        pack_view(view, change=8, embedder="x").splitlines()[0]
    )


def test_an_entry_that_is_replaced_while_it_is_unpacked_stays_replaced(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = View(index=FaissIndex())
    [record, *_] = records(tmp_path, clock)
    view.put(record, "")
    old = view.entries[record.id]
    entries = EntrySummaries({record.id: pack_row(old)})
    new = EntrySummary(old.side, old.label, "[]", (), 99, old.said, old.given)

    def interrupted(line: bytes) -> EntrySummary:
        entries[record.id] = new
        return old

    monkeypatch.setattr("semcache.cache.view.snapshot.unpack_row", interrupted)
    assert entries[record.id] is old
    assert entries[record.id] is new


JSON_VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)


@settings(max_examples=50)
@given(st.text(), st.lists(st.tuples(st.text(), JSON_VALUES), max_size=3), st.booleans())
def test_what_is_known_of_an_entry_survives_packing(
    text: str, values: list[tuple[str, Json]], relative: bool
) -> None:
    slots = tuple(Slot("number", name, "in", name, value, relative) for name, value in values)
    text = text.replace("<", "") + " <number>" * len(slots)
    side = Side(TemplateText(text, slots), frozenset({"a", "b"}), "catalog", "grounding")
    try:
        said = [Parameter("of", value, mention=words) for words, value in values]
        seen = EntrySummary(
            side, text, pack_examples([said, said]), tuple(range(len(slots))), 12, "f", "g"
        )
        line = pack_row(seen)
    except (UnicodeEncodeError, ValueError, InvalidParameter):
        return
    assert b"\n" not in line
    assert unpack_row(line) == seen
    assert [*unpack_row(line).parameters()] == [*said, *said]


SAID = st.sampled_from(["sales by city", "orders", "sales", "cities of <year>"])
CHANGES = st.lists(
    st.tuples(st.booleans(), SAID, st.sampled_from("fgh")), unique=True, min_size=1, max_size=12
)


@settings(max_examples=50)
@given(CHANGES, st.data())
def test_families_of_a_snapshot_change_as_those_it_was_taken_of(
    added: list[tuple[bool, str, str]], data: st.DataObject
) -> None:
    def change(kindred: PlanGroupSets, changes: list[tuple[bool, str, str]], *, add: bool) -> None:
        for given_, words, group in changes:
            plan_groups = kindred.of((given_, "", ""))
            (plan_groups.add if add else plan_groups.remove)(group, tuple(words.split()))

    kept = PlanGroupSets()
    change(kept, added, add=True)
    again = PlanGroupSets(kept.pack())
    for kindred, removed in zip(
        (kept, again), 2 * [data.draw(st.permutations(added))], strict=True
    ):
        change(kindred, removed[: len(added) // 2], add=False)
        change(kindred, removed[:2], add=True)
    for given_ in (False, True):
        plan_groups = (given_, "", "")
        assert again.of(plan_groups).saying == kept.of(plan_groups).saying
