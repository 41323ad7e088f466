"""The adversary's benchmark: its mutations change what is asked, and its counting can fail."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from semcache import Parameter, PlanCache
from semcache.explore.streams import Row
from semcache.testing import HashEmbedder


@pytest.fixture(scope="module")
def mutations(script: Any) -> Any:
    return script("mutations")


@pytest.fixture(scope="module")
def adversary(script: Any) -> Any:
    return script("adversary")


def row(text: str, **values: str | int) -> Row:
    params = tuple(Parameter(name, value, mention=str(value)) for name, value in values.items())
    return Row("1", "acme", text, params, {"call": {"input": dict(values)}})


ROWS = (
    row("list trains from Oslo before 2024 of line R10", city="Oslo", year="2024", line="R10"),
    row("not more than 40 crates via dock 7", crates=40, dock=7),
    row("move files from a12 over to b77 without a copy", old_code="a12", new_code="b77"),
)


@pytest.mark.parametrize("seed", range(20))
def test_no_mutation_but_the_harmless_one_lets_the_unchanged_plan_be_served(
    mutations: Any, seed: int
) -> None:
    made = [(one, each.plan) for each in ROWS for one in mutations.mutations(each, seed)]
    assert {one.kind for one, _ in made} == set(mutations.KINDS)
    assert {one.kind for one, plan in made if one.allows(plan)} == {"harmless"}
    again = [(one, each.plan) for each in ROWS for one in mutations.mutations(each, seed)]
    assert made == again


def test_a_plan_with_the_changed_value_to_the_letter_is_right(mutations: Any) -> None:
    (one,) = [m for m in mutations.mutations(ROWS[0], 0) if m.kind == "case of a value"]
    assert one.text == "list trains from Oslo before 2024 of line r10"
    plan = {"call": {"input": {"city": "Oslo", "year": "2024", "line": "r10"}}}
    assert one.allows(plan)
    plan["call"]["input"]["line"] = "R10"
    assert not one.allows(plan)


def test_a_cache_that_ignores_every_change_is_wrong_each_time(adversary: Any) -> None:
    score = adversary.attack(adversary.Score("s"), ROWS, plan_of_nearest, seed=0)
    harmless = score.classes.pop("harmless")
    assert (harmless.asked, harmless.right, harmless.wrong) == (3, 3, 0)
    assert score.total.right == score.total.lost == 0
    assert score.total.wrong == score.total.asked == len(score.mistakes) > 0


def test_a_cache_that_serves_stored_prompts_alone_loses_what_is_harmless(
    adversary: Any,
) -> None:
    exact = {each.text: each.plan for each in ROWS}
    score = adversary.attack(adversary.Score("s"), ROWS, lambda text, _: exact.get(text), seed=0)
    assert (score.total.right, score.total.wrong) == (0, 0)
    assert score.classes["harmless"].lost == 3


def plan_of_nearest(text: str, tenant: str) -> Any:
    """Return the plan of the row that shares most words with `text`."""
    assert tenant == "acme"
    words = set(text.split())
    return max(ROWS, key=lambda each: len(words & set(each.text.split()))).plan


# Written by hand -----------------------------------------------------------------------------

LINES: list[dict[str, Any]] = [
    {
        "stored": "heat",
        "text": "heat oven 3 to 180 degrees",
        "params": [{"name": "oven", "value": 3, "text": "3"}],
        "plan": {"operation": "heat", "input": {"oven": {"$": "oven"}}},
    },
    {"id": "1", "class": "value", "text": "heat oven 7 to 180 degrees", "right": "heat",
     "values": {"oven": 7}},
    {"id": "2", "class": "constant", "text": "heat oven 7 to 90 degrees", "right": None},
    {"id": "3", "class": "mood", "text": "was oven 7 heated to 180 degrees", "right": None,
     "needs": "was_heated", "values": {"oven": 7}},
]  # fmt: skip


@pytest.fixture
def domains(tmp_path: Path) -> Path:
    lines = "\n".join(json.dumps(line) for line in LINES)
    (tmp_path / "kitchen.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


class Careless:
    """A cache that serves the newest plan to every prompt."""

    def __init__(self) -> None:
        self.inner = PlanCache.open(embedder=HashEmbedder())
        self.text = ""

    def store(self, text: str, plan: Any, **options: Any) -> None:
        self.text = text
        self.inner.store(text, plan, **options)

    def lookup(self, text: str, **options: Any) -> Any:
        assert text
        return self.inner.lookup(self.text, tenant=options["tenant"])

    def feedback(self, found: Any, *, right: bool) -> None:
        assert not right


def test_served_to_a_probe_is_right_only_with_its_own_values(adversary: Any, domains: Path) -> None:
    domain = adversary.read_domain(domains / "kitchen.jsonl")
    score = adversary.ask(adversary.Score("s"), domain, Careless, given=False, learned=False)
    assert (score.total.asked, score.total.right, score.total.wrong) == (3, 0, 3)
    assert domain.probes[0].wanted == {"operation": "heat", "input": {"oven": 7}}
    assert adversary.filled(["oven «oven»", {"$": "oven"}], {"oven": 7}) == ["oven 7", 7]
    own = score.take
    own("value", domain.probes[0].wanted, right=True, due=True, about={})
    assert score.classes["value"].right == 1


def test_each_probe_is_counted_once_cold_and_once_after_its_half_was_learned(
    adversary: Any, domains: Path
) -> None:
    args = Namespace(data=domains, only="written", streams=[], bounds=["default", "0.01"])
    scores = list(adversary.run(args, HashEmbedder()))
    assert [score.total.asked for score in scores] == [3, 3, 2, 2] * 2
    cold = scores[0].to_dict()
    assert cold["classes"]["value"] == {"asked": 1, "right": 1, "wrong": 0, "lost": 0}
    assert cold["classes"]["mood"] == {"asked": 1, "right": 0, "wrong": 0, "lost": 0}


def test_the_written_probes_are_of_many_domains_and_many_of_them_should_hit(
    adversary: Any,
) -> None:
    domains = [adversary.read_domain(path) for path in sorted(adversary.DATA.glob("*.jsonl"))]
    probes = [probe for domain in domains for probe in domain.probes]
    assert len(domains) >= 12
    assert len({probe.id for probe in probes}) == len(probes) >= 500
    assert sum(probe.due for probe in probes) >= 150
    assert len({(d.name, p.text) for d in domains for p in d.probes}) == len(probes)
