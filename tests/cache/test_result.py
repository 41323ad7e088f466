import json

import pytest

from semcache import Hit, Miss, PlanCache, PromptSchema
from semcache.cache.result import Trace
from semcache.canonical import JsonObject
from tests.calling import missed

PLAN: JsonObject = {"steps": [{"year": "2024"}]}


@pytest.fixture
def hit(cache: PlanCache) -> Hit:
    cache.store("sales in 2024 by state", PLAN, params={"year": "2024"})
    found = cache.lookup("show me sales in 2023 by state")
    assert isinstance(found, Hit)
    return found


@pytest.fixture
def miss(cache: PlanCache, hit: Hit) -> Miss:
    schema = PromptSchema("summarize", ("sale",), unexplained=("returned",))
    return missed(cache.lookup("sales in 2023 by returned state", schema=schema))


# specs: D-13
def test_a_hit_explains_each_tier_and_gate(hit: Hit) -> None:
    said = hit.explain()
    assert said.startswith("HIT semantic 1.000 sales in <year> by state")
    assert "prompt    show me sales in 2023 by state" in said
    assert "template  show me sales in <year> by state" in said
    assert "tier template  no entry with this template text" in said
    assert "pass threshold" in said
    assert "FAIL" not in said


def test_hits_by_meaning_and_by_equal_words_tell_their_risk(hit: Hit, cache: PlanCache) -> None:
    assert f"risk      {hit.risk:.2%} that the plan is wrong" in hit.explain().splitlines()
    assert f"HIT semantic 1.000, risk {hit.risk:.2%}" in hit._repr_html_()
    exact = cache.lookup("sales in 2022 by state")
    assert isinstance(exact, Hit)
    assert 0 < exact.risk < 0.02
    assert f"risk      {exact.risk:.2%}" in exact.explain()


# specs: D-13
def test_a_miss_explains_what_the_nearest_failed_on(miss: Miss) -> None:
    said = miss.explain()
    assert said.startswith("MISS ")
    assert "partial: returned" in said
    assert "FAIL" in said
    assert miss.nearest is not None
    assert not miss.nearest.served


def test_both_are_truth_values(hit: Hit, miss: Miss) -> None:
    assert hit
    assert not miss


# specs: D-13
def test_both_are_json_with_what_a_trace_needs(hit: Hit, miss: Miss) -> None:
    good, bad = hit.to_dict(), miss.to_dict()
    assert json.loads(json.dumps([good, bad])) == [good, bad]
    assert (good["tier"], good["score"], good["entry"]) == ("semantic", hit.score, hit.entry)
    assert (good["params"], good["plan"]) == ({"year": "2023"}, {"steps": [{"year": "2023"}]})
    assert (bad["hit"], bad["reason"]) == (False, miss.reason)
    trace = bad["trace"]
    assert isinstance(trace, dict)
    assert trace["unexplained"] == ["returned"]


def test_a_trace_of_nothing_is_short() -> None:
    trace = Trace(prompt="p", tenant="t", template="")
    assert trace.lines() == ["prompt    p", "template  "]
    assert Miss("store_failed", None, trace).to_dict()["nearest"] is None


def test_both_show_themselves_in_a_notebook(hit: Hit, miss: Miss) -> None:
    assert "HIT semantic 1.000" in hit._repr_html_()
    assert "2023" in hit._repr_html_()
    html = miss._repr_html_()
    assert f"MISS {miss.reason}" in html
    assert html.count("<tr>") == 1 + len(miss.trace.candidates)


def test_nothing_from_outside_reaches_the_html_unescaped(cache: PlanCache) -> None:
    cache.store("sales of <b>'x'</b> in 2024", PLAN, params={"year": "2024"})
    for prompt in ("sales of <b>'x'</b> in 2023", "sales of <b>'x'</b> but not in 2023"):
        html = cache.lookup(prompt)._repr_html_()
        assert "&lt;b&gt;" in html
        assert "<b>'" not in html
