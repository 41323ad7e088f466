"""Which operations of a large catalog a prompt is about."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, Parameter
from semcache.canonical import Json, JsonObject
from semcache.errors import EmbeddingError, InvalidSettings, NotActionable
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.relevant import Relevant, domains_of, in_domains
from semcache.ports import Embedder, PlanRequest, Vectors
from semcache.testing import HashEmbedder, ScriptedModel
from tests.calling import calling

NOUNS = "order customer product invoice ticket branch project employee shipment refund".split()
VERBS = "list get create update delete archive export approve assign count".split()


def described(name: str, summary: str, **inputs: Json) -> Operation:
    schema: JsonObject = {"type": "object", "properties": inputs}
    return Operation(name, summary, schema, effect="read")


def large() -> Catalog:
    """Return 201 operations; one has a name that says nothing."""
    crud = [
        described(f"{verb}{form}{noun.title()}s", f"{verb} {noun}s{note}", id={"type": "string"})
        for verb in VERBS
        for noun in NOUNS
        for form, note in (("", ""), ("Old", " of past years"))
    ]
    return Catalog([*crud, described("op_17", "How warm it is outside", city={"type": "string"})])


def names(operations: Sequence[Operation]) -> list[str]:
    return [operation.name for operation in operations]


class Broken:
    fingerprint = "broken"

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbeddingError("out of memory")


@pytest.mark.parametrize("kind", ["words", "both", "broken"])
def test_an_operation_with_the_words_of_the_prompt_is_among_the_first(
    kind: str, minilm: Embedder
) -> None:
    embedder = {"words": None, "both": minilm, "broken": Broken()}[kind]
    found = Relevant(embedder, most=5).find("please approve the refund of Ms Lee", large())
    assert "approveRefunds" in names(found)
    assert len(found) == 5


def test_a_catalog_that_is_small_enough_is_taken_whole() -> None:
    catalog = large()
    assert Relevant(most=201).find("approve refunds", catalog) == tuple(catalog)


def test_meaning_finds_what_shares_no_word(minilm: Embedder) -> None:
    few = [described("op_1", "Temperature and rain of a city"), *list(large())[:60]]
    found = Relevant(minilm, most=3).find("do I need an umbrella in Oslo?", Catalog(few))
    assert "op_1" in names(found)


def test_what_is_found_stands_in_the_order_of_the_catalog() -> None:
    catalog = large()
    found = Relevant(HashEmbedder(), most=7).find("count tickets by project", catalog)
    assert len(found) == 7
    assert names(found) == [name for name in names(tuple(catalog)) if name in set(names(found))]


def test_each_operation_is_embedded_once() -> None:
    embedder = HashEmbedder()
    asked: list[str] = []

    class Counting(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            asked.extend(texts)
            return embedder.embed(texts)

    relevant = Relevant(Counting(), most=4)
    for _ in range(3):
        relevant.find("export invoices", large())
    assert len(asked) == len(set(asked)) + 2 == 201 + 3  # the prompt, three times


def test_no_operations_at_all_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidSettings, match="most is 0"):
        Relevant(most=0)


@settings(max_examples=50)
@given(st.text(max_size=200), st.integers(1, 30))
def test_any_text_finds_as_many_as_asked_for(text: str, most: int) -> None:
    assert len(Relevant(HashEmbedder(), most=most).find(text, CATALOG)) == most


CATALOG = large()
PLAN = calling("approveRefunds", id="{{params.id}}")


def request(prompt: str) -> PlanRequest:
    known = (Parameter("id", "R-7", "R-7"),)
    return PlanRequest(prompt=prompt, schema=None, catalog=CATALOG, params=known)


def test_a_model_is_shown_only_what_the_prompt_is_about() -> None:
    model = ScriptedModel([json.dumps(PLAN)])
    planner = ModelPlanner(model, relevant=Relevant(HashEmbedder(), most=10))
    assert planner.plan(request("approve refund R-7")).plan.operations() == ("approveRefunds",)
    shown = model.calls[0][0].content
    assert shown.count('"input_schema"') == 10
    assert '"approveRefunds"' in shown


def test_a_refusal_is_asked_again_with_more_operations() -> None:
    refusal = json.dumps({"not_actionable": "nothing here approves"})
    model = ScriptedModel([refusal, json.dumps(PLAN)])
    planner = ModelPlanner(model, relevant=Relevant(HashEmbedder(), most=10))
    assert planner.plan(request("wave R-7 through")).plan.operations() == ("approveRefunds",)
    assert [call[0].content.count('"input_schema"') for call in model.calls] == [10, 40]


def test_a_refusal_of_the_whole_catalog_stands() -> None:
    model = ScriptedModel([json.dumps({"not_actionable": "nothing here sings"})])
    with pytest.raises(NotActionable, match="nothing here sings"):
        ModelPlanner(model, relevant=Relevant(most=300)).plan(request("sing R-7"))


KEYWORDS = {"github": ["issue", "pull request", "pr"], "slack": ["channel", "thread"]}
ISSUES = described("github.listIssues", "Do.")
CHANNELS = described("list_channels", "List the channels of a workspace.")
CLOCK = described("get_time", "Do.")


def test_a_keyword_is_a_whole_word_in_either_number() -> None:
    assert domains_of("print the price", KEYWORDS) == ()
    assert domains_of("list my PRs and threads", KEYWORDS) == ("github", "slack")
    assert domains_of("pull the requests", KEYWORDS) == ()
    assert domains_of("what is on GitHub?", KEYWORDS) == ("github",)


# specs: E-10
def test_operations_of_other_domains_are_hidden_and_those_of_none_are_kept() -> None:
    known = (ISSUES, CHANNELS, CLOCK)
    assert in_domains(known, ("github",), KEYWORDS) == (ISSUES, CLOCK)
    assert in_domains(known, (), KEYWORDS) == known
    assert in_domains((CHANNELS,), ("github",), KEYWORDS) == (CHANNELS,)
