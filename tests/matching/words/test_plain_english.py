"""What must be told apart and what must be matched: sentences of several trades, real embedder.

The sentences are in `tests/data/told_apart.txt` and `matched.txt`, none of them of a public stream.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from semcache import Hit, Parameter, PlanCache
from semcache.canonical import JsonObject
from semcache.models.minilm import MiniLMEmbedder
from tests.calling import calling

DATA = Path(__file__).parents[2] / "data"
MARK = re.compile(r"\[(\w+):([^\]]+)\]")


def groups(name: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    group = ""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            group = line[3:]
        elif "|" in line and not line.startswith("#"):
            known, asked = line.split("|")
            found.setdefault(group, []).append((known.strip(), asked.strip()))
    return found


APART, MATCHED = groups("told_apart.txt"), groups("matched.txt")
WAYS = [(None, False), (None, True), (0.01, False), (0.01, True)]
"""`max_wrong`, and whether the caller gives the values by name."""
BY_RISK = 0.02
"""What a cache that was never taught serves under this bound; under 1 % a typing error waits."""


def text(marked: str) -> str:
    return MARK.sub(lambda mark: mark[2], marked)


def params(marked: str) -> list[Parameter]:
    return [Parameter(m[1], m[2], mention=m[2]) for m in MARK.finditer(marked)]


def values(marked: str, *, given: bool) -> Mapping[str, object] | None:
    return {p.name: p.value for p in params(marked)} if given else None


def plan(marked: str, *, what: str = "") -> JsonObject:
    asked = {p.name: p.value for p in params(marked)}
    what = what or MARK.sub(lambda mark: f"<{mark[1]}>", marked)
    return calling("office.query", what=what, **asked)


def store(cache: PlanCache, marked: str, *, tenant: str = "all", what: str = "") -> None:
    made = plan(marked, what=what)
    stored = cache.store(text(marked), made, params=params(marked), tenant=tenant)
    assert stored, stored.reason


def both_ways(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield a tenant of its own, what it stores, and what it asks."""
    for number, (known, asked) in enumerate(pairs):
        yield f"{number} there", known, asked
        yield f"{number} back", asked, known


@pytest.mark.parametrize(("max_wrong", "given"), WAYS)
@pytest.mark.parametrize("group", APART)
def test_what_asks_for_another_thing_is_never_served(
    minilm: MiniLMEmbedder, group: str, max_wrong: float | None, given: bool
) -> None:
    served = []
    with PlanCache.open(embedder=minilm, max_wrong=max_wrong) as cache:
        for tenant, known, asked in both_ways(APART[group]):
            store(cache, known, tenant=tenant)
            if cache.lookup(text(asked), params=values(asked, given=given), tenant=tenant):
                served.append((known, asked))
    assert not served


@pytest.mark.parametrize(("max_wrong", "given"), WAYS)
def test_among_three_hundred_plans_none_is_served_but_to_what_asks_for_it(
    minilm: MiniLMEmbedder, max_wrong: float | None, given: bool
) -> None:
    """Here most words of a prompt are known from other plans, which alone must prove nothing."""
    pairs = [pair for group in APART.values() for pair in group]
    known = {plan_of for plan_of, _ in pairs}
    served = []
    with PlanCache.open(embedder=minilm, max_wrong=max_wrong) as cache:
        for one in sorted(known):
            store(cache, one)
        for asked in sorted({prompt for pair in pairs for prompt in pair}):
            found = cache.lookup(text(asked), params=values(asked, given=given), tenant="all")
            if isinstance(found, Hit) and found.plan.to_dict() != plan(asked):
                served.append((found.plan.to_dict(), asked))
    assert not served


@pytest.mark.parametrize(("max_wrong", "given"), WAYS)
@pytest.mark.parametrize("group", MATCHED)
def test_the_same_question_in_other_words_is_served_with_its_own_values(
    minilm: MiniLMEmbedder, group: str, max_wrong: float | None, given: bool
) -> None:
    if group == "by risk":
        max_wrong = BY_RISK
    missed = []
    with PlanCache.open(embedder=minilm, max_wrong=max_wrong) as cache:
        for tenant, known, asked in both_ways(MATCHED[group]):
            store(cache, known, tenant=tenant, what="one")
            found = cache.lookup(text(asked), params=values(asked, given=given), tenant=tenant)
            if not isinstance(found, Hit) or found.plan.to_dict() != plan(asked, what="one"):
                missed.append((known, asked, str(found)))
    assert not missed
