"""What callers hand in by mistake is told, and changes nothing."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semcache import Hit, PlanCache
from semcache.errors import InvalidInput, InvalidParameter, InvalidPlan, InvalidSettings
from semcache.responses.cache import Responses
from semcache.upkeep.warm import warm
from tests.calling import calling

Call = Callable[..., Any]

plan = partial(calling, "sales")

OF_A_TENANT: dict[str, Callable[[PlanCache, Path, Any], object]] = {
    "lookup": lambda cache, _, tenant: cache.lookup("sales", tenant=tenant),
    "store": lambda cache, _, tenant: cache.store("sales", plan(), tenant=tenant),
    "entries": lambda cache, _, tenant: cache.entries(tenant=tenant),
    "stats": lambda cache, _, tenant: cache.stats(tenant=tenant),
    "evidence": lambda cache, _, tenant: cache.evidence(tenant=tenant),
    "learned": lambda cache, _, tenant: cache.learned(tenant=tenant),
    "export": lambda cache, path, tenant: cache.export(path, tenant=tenant),
    "import": lambda cache, path, tenant: cache.import_(path, tenant=tenant),
    "export_evidence": lambda cache, path, tenant: cache.export_evidence(path, tenant=tenant),
    "import_evidence": lambda cache, path, tenant: cache.import_evidence(path, tenant=tenant),
    "invalidate": lambda cache, _, tenant: cache.invalidate(tenant=tenant, id="x"),
    "remove_expired": lambda cache, _, tenant: cache.remove_expired(tenant=tenant),
    "clear": lambda cache, _, tenant: cache.clear(tenant=tenant),
}


@pytest.mark.parametrize("name", OF_A_TENANT)
@pytest.mark.parametrize("tenant", ["", 5, "a\nb", "x" * 257, "\ud800"])
def test_what_names_no_tenant_is_refused_wherever_a_tenant_is_named(
    cache: PlanCache, tmp_path: Path, name: str, tenant: Any
) -> None:
    cache.store("sales", plan())
    with pytest.raises(InvalidInput, match="expected printable text of 1 to 256 characters"):
        OF_A_TENANT[name](cache, tmp_path / "file", tenant)
    assert len(cache.entries()) == 1
    assert not [*tmp_path.iterdir()]


def test_a_plan_made_for_a_hit_may_be_told_in_any_form_that_store_takes(cache: PlanCache) -> None:
    cache.store("sales", plan())
    hit = cache.lookup("sales")
    assert isinstance(hit, Hit)
    for form in (plan(), json.dumps(plan()), hit.plan):
        assert cache.audit(hit, form)
    assert not cache.audit(hit, calling("refunds"))
    assert (cache.stats().explored, cache.stats().explored_wrong) == (4, 1)


@pytest.mark.parametrize("told", [None, 5, "call sales()", "[1]"])
def test_what_is_no_plan_says_nothing_of_a_hit(cache: PlanCache, told: Any) -> None:
    cache.store("sales", plan())
    hit = cache.lookup("sales")
    assert isinstance(hit, Hit)
    with pytest.raises(InvalidPlan):
        cache.audit(hit, told)
    assert cache.stats().explored == 0


@pytest.mark.parametrize("path", [None, 5, b"plans", ["plans"]])
def test_what_is_no_path_is_refused_wherever_a_file_is_named(cache: PlanCache, path: Any) -> None:
    calls = (cache.export, cache.import_, cache.export_evidence, cache.import_evidence)
    for call in (*calls, partial(warm, cache)):
        with pytest.raises(InvalidInput, match="is no path; expected that of a file"):
            call(path)


@pytest.mark.parametrize("tags", ["orders", 5, [""], [" "], [b"orders"], ["a", 5]])
def test_tags_that_are_no_texts_are_refused(cache: PlanCache, tags: Any) -> None:
    with pytest.raises(InvalidInput, match="tag"):
        cache.store("sales", plan(), tags=tags)
    assert not cache.entries()


@pytest.mark.parametrize("params", [5, "year", b"year", True])
def test_params_that_name_nothing_are_refused(cache: PlanCache, params: Any) -> None:
    for call in (cache.lookup, partial(cache.store, plan=plan())):
        with pytest.raises(InvalidParameter, match="a mapping of names to values"):
            call("sales", params=params)


def test_what_a_plan_was_made_under_must_be_of_its_kind(cache: PlanCache) -> None:
    for call in (cache.lookup, partial(cache.store, plan=plan())):
        wrong: Call = call
        with pytest.raises(InvalidInput, match="grounding is 5; expected text"):
            wrong("sales", grounding=5)
        with pytest.raises(InvalidInput, match="expected a PromptSchema, or None"):
            wrong("sales", schema={"action": "list"})
    store: Call = cache.store
    with pytest.raises(InvalidInput, match="planner is 5; expected text"):
        store("sales", plan(), planner=5)


@pytest.mark.parametrize("right", ["no", 0, None])
def test_a_judgment_that_is_neither_true_nor_false_is_refused(cache: PlanCache, right: Any) -> None:
    cache.store("sales", plan())
    found = cache.lookup("sales")
    assert isinstance(found, Hit)
    for judge in (cache.feedback, cache.judged):
        with pytest.raises(InvalidInput, match="expected True or False"):
            judge(found, right=right)
    assert cache.stats().feedback_right == cache.stats().feedback_wrong == 0
    cache.feedback(found, right=bool(np.bool_(True)))
    judged: Call = cache.feedback
    judged(found, right=np.bool_(True))
    assert cache.stats().feedback_right == 2


def test_only_hits_are_judged_and_only_lookups_are_planned_for(cache: PlanCache) -> None:
    missed: Any = cache.lookup("sales")
    for judge in (cache.judged, cache.feedback):
        with pytest.raises(InvalidInput, match="feedback is about a hit"):
            judge(missed, right=True)
    with pytest.raises(InvalidInput, match="feedback is about a hit"):
        cache.audit(missed, plan=missed)
    entering: Any = cache.planning("sales")  # type: ignore[arg-type]  # what is shown
    with pytest.raises(InvalidInput, match="found str"), entering:
        pass


@pytest.mark.parametrize("name", ["id", "tag", "operation", "key"])
def test_what_is_invalidated_is_named_by_text(cache: PlanCache, name: str) -> None:
    invalidate: Call = cache.invalidate
    with pytest.raises(InvalidInput, match=f"{name} is 5; expected text"):
        invalidate(**{name: 5})


@pytest.mark.parametrize("open_", [PlanCache.open, Responses.open])
@pytest.mark.parametrize("directory", [5, b"cache", ["cache"], True])
def test_what_is_no_path_is_no_directory(open_: Call, directory: Any) -> None:
    with pytest.raises(InvalidSettings, match="expected a path, or None for memory"):
        open_(directory)
