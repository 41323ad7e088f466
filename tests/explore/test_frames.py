import sys
from collections.abc import Callable

import pytest

from semcache.errors import MissingExtra
from semcache.explore import frames
from semcache.explore.report import Report
from semcache.explore.streams import Row
from semcache.matching.evidence import Evidence

Evaluate = Callable[..., Report]
MakeRow = Callable[..., Row]


def test_lookups_are_one_row_each_with_what_came_of_them(sampled: Report) -> None:
    table = frames.lookups(sampled)
    assert len(table) == sampled.rows
    counts = table["outcome"].value_counts()
    assert (counts["right"], counts["wrong"]) == (sampled.right, sampled.wrong)
    assert table.loc[table["outcome"] == "missed", "reason"].ne("").all()


def test_candidates_are_labeled_and_gates_add_up_to_them(sampled: Report) -> None:
    table, gates = frames.candidates(sampled), frames.gates(sampled)
    assert set(table["same_plan"].dropna()) == {True, False}
    refused = gates[["rightly", "wrongly", "unknown"]].to_numpy().sum()
    assert refused == (table["gate"] != "").sum()
    assert table.loc[table["served"], "gate"].eq("").all()
    for gate in gates.to_dict("records"):
        same = table.loc[table["gate"] == gate["gate"], "same_plan"]
        assert (gate["wrongly"], gate["rightly"]) == (same.eq(True).sum(), same.eq(False).sum())
    assert gates["wrongly"].sum() > 0


def test_entries_of_a_tenant_are_one_row_each(sampled: Report) -> None:
    assert sampled.cache is not None
    table = frames.entries(sampled.cache, tenant="rooms")
    assert len(table) == len(sampled.cache.entries(tenant="rooms"))
    assert table["template"].str.contains("<room>", regex=False).any()


def test_the_neighbors_of_a_prompt_say_what_refused_them(sampled: Report) -> None:
    assert sampled.cache is not None
    found = sampled.cache.lookup("Cancel everything in Birch", tenant="rooms")
    table = frames.neighbors(found)
    assert len(table) == len(found.trace.candidates) > 0
    assert table["gate"].ne("").all()


def test_frames_of_nothing_still_name_their_columns(quick: Evaluate, sale: MakeRow) -> None:
    report = quick([sale("a", "1")])
    assert report.cache is not None
    tables = [
        frames.candidates(report),
        frames.gates(report),
        frames.curve(report),
        frames.entries(report.cache),
        frames.words(Evidence()),
    ]
    assert all(table.empty and len(table.columns) > 3 for table in tables)


def test_learned_words_say_how_often_they_went_with_the_same_plan() -> None:
    evidence = Evidence()
    evidence.words.add("please", same=True, weight=3)
    evidence.words.add("not", same=False)
    evidence.pairs.add("big large", same=True)
    table = frames.words(evidence).set_index("key")
    assert table.loc["please", "harmless"] == 1
    assert table.loc["not", "other"] == 1
    assert table.loc["big large", "kind"] == "pair"


def test_without_the_extra_the_error_says_what_to_install(
    sampled: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"semcache-plans\[explore\]"):
        frames.lookups(sampled)
