import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import (
    Catalog,
    Hit,
    Miss,
    Operation,
    Parameter,
    SemCache,
    Settings,
    catalog_from,
    operation,
)
from semcache.canonical import Json, JsonObject, dumps
from semcache.demo import operations, sales
from semcache.errors import (
    EmbeddingError,
    InvalidInput,
    InvalidParameter,
    InvalidPlan,
    InvalidPrompt,
    InvalidSettings,
    ModelUnavailable,
    NotActionable,
    OperationFailed,
    OperationRefused,
    PlanningError,
    PlanSuspended,
    StoreUnavailable,
)
from semcache.events import LookupFinished, ModelCalled, NodeFinished, PhaseFinished, TierFailed
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.openai import OpenAIModel
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.plans.codec import decode
from semcache.ports import Planned, PlanRequest, PlanStore
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel
from tests.caching import cache_over, semcache_over
from tests.calling import calling, hit
from tests.waiting import count_waiting_threads, until

if TYPE_CHECKING:
    from tests.conftest import OpenAIServer


def plan(operation_name: str = "report", **given: Json) -> JsonObject:
    return calling(operation_name, **given)


class OnePlan:
    """A planner that gives one plan for everything, and counts how often it is asked."""

    def __init__(self, body: JsonObject, *names: str) -> None:
        self.body = body
        self.names = names
        self.requests: list[PlanRequest] = []
        self.gate: threading.Event | None = None
        self.entered = threading.Event()
        self.error: Exception | None = None

    def plan(self, request: PlanRequest) -> Planned:
        self.requests.append(request)
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        words = request.prompt.rstrip("?.").split()
        said = tuple(
            Parameter(name, words[-1], mention=words[-1])
            for name in self.names
            if name not in {p.name for p in request.params}
        )
        return Planned(decode(self.body), (*request.params, *said), "one plan")


class Bench:
    """A SemCache of hand-made parts, and what happened to them."""

    def __init__(
        self,
        planner: OnePlan,
        *,
        store: PlanStore | None = None,
        embedder: Any = None,
        effect: Any = "read",
        settings: Settings | None = None,
    ) -> None:
        self.planner = planner
        self.clock = FakeClock()
        self.observer = RecordingObserver()
        self.calls: list[JsonObject] = []
        self.failure: Exception | None = None
        self.store = store or MemoryStore()
        report = Operation(
            "report", "Reports.", {"type": "object"}, effect=effect, call=self.report
        )
        cache = cache_over(
            self.store,
            settings,
            catalog=Catalog([report]),
            embedder=embedder,
            clock=self.clock,
            observer=self.observer,
        )
        self.semcache = semcache_over(
            self.store, cache, planner, clock=self.clock, normalizers=[RuleNormalizer()]
        )

    def report(self, given_input: JsonObject) -> Json:
        self.calls.append(given_input)
        if self.failure is not None:
            raise self.failure
        return {"seen": len(self.calls)}


def by_word(**more: Any) -> Bench:
    """Plans whose one value is the last word of the prompt."""
    return Bench(OnePlan(plan(of="{{params.of}}"), "of"), **more)


def opened(catalog: Catalog, **parts: Any) -> SemCache:
    """Return a SemCache over a catalog, in memory, on a clock that stands still."""
    return SemCache.open(
        **{"embedder": HashEmbedder(), "clock": FakeClock(), **parts}, catalog=catalog
    )


# From a prompt to an answer ──────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def shop() -> Iterator[Catalog]:
    with closing(sales.memory()) as database:
        yield operations.catalog(database)


def call_input(answer: Any) -> Any:
    return answer.plan.to_dict()["call"]["input"]


# specs: A-1, A-2, A-6, A-7
def test_the_prompts_of_the_document_share_one_plan_with_their_own_years(
    shop: Catalog, minilm: MiniLMEmbedder
) -> None:
    with opened(shop, embedder=minilm) as semcache:
        first = semcache.run("Show me total sales in 2024 by category")
        second = semcache.run("Show me total sales in 2023 by category")
        third = semcache.run("What is the total amount of sales in 2022 for each category?")
        schema = semcache.normalize("Show me total sales in 2024 by category")
    assert [answer.planned for answer in (first, second, third)] == [True, False, False]
    assert schema is not None
    assert schema.key == "summarize-sale-amount_year-group_category"
    for answer, year in ((first, 2024), (second, 2023), (third, 2022)):
        assert call_input(answer)["filters"] == [{"field": "year", "operator": "=", "value": year}]
        assert call_input(answer)["aggregates"] == [{"field": "amount", "function": "sum"}]
    assert isinstance(second.found, Hit)
    assert second.found.key == "summarize-sale-amount_year-group_category"
    assert first.text != second.text != third.text


# specs: A-4
@pytest.mark.parametrize(
    "other",
    [
        "Show me average sales in 2023 by category",
        "Show me total sales in 2023 by state",
        "Show me total sales before 2023 by category",
        "Show me the number of sales in 2023 by category",
    ],
)
def test_another_question_about_the_same_fields_is_planned_afresh(
    shop: Catalog, minilm: MiniLMEmbedder, other: str
) -> None:
    with opened(shop, embedder=minilm) as semcache:
        first = semcache.run("Show me total sales in 2024 by category")
        second = semcache.run(other)
    assert second.planned
    assert call_input(first).keys() >= {"filters", "aggregates", "group_by"}
    assert _asked(second) != _asked(first)


def _asked(answer: Any) -> Any:
    """Return what the call of a plan asks, whichever year it is asked for."""
    given = call_input(answer)
    filters = [{**one, "value": "a year"} for one in given["filters"]]
    return {**given, "filters": filters}


def workflow(year: str) -> str:
    schema = {
        "action": "summarize",
        "entities": ["sale"],
        "group_by": ["category"],
        "params": {"year": int(year), "amount": {"aggregate": "sum"}},
        "mentions": {"year": year},
    }
    return json.dumps({"workflow_type": "sequential", "steps": [{"ps": schema}]})


# specs: A-7
def test_a_real_client_and_server_plan_the_first_prompt_and_are_not_asked_again(
    openai_server: "OpenAIServer", shop: Catalog
) -> None:
    openai_server.says(workflow("2024"))
    model = OpenAIModel("gpt-x", api_key="k", base_url=openai_server.base_url, max_retries=0)
    observer = RecordingObserver()
    with opened(shop, model=model, observer=observer) as semcache:
        first = semcache.run("Split 2024 turnover up categorywise, summing it")
        asked = len(openai_server.requests)
        second = semcache.run("Split 2023 turnover up categorywise, summing it")
    assert (first.planned, second.planned, second.tier) == (True, False, "template")
    assert call_input(second)["filters"][0]["value"] == 2023
    assert len(openai_server.requests) == asked == 1
    assert [call.purpose for call in observer.of(ModelCalled)] == ["normalize"]


# specs: A-1, A-7
def test_a_schema_that_a_model_saw_finds_a_plan_that_other_words_made(
    openai_server: "OpenAIServer", shop: Catalog
) -> None:
    openai_server.says(workflow("2023"))
    model = OpenAIModel("gpt-x", api_key="k", base_url=openai_server.base_url, max_retries=0)
    with opened(shop, model=model) as semcache:
        semcache.run("Show me total sales in 2024 by category")
        found = semcache.run("Split 2023 turnover up categorywise, summing it")
    assert (found.tier, found.planned) == ("schema", False)
    assert call_input(found)["filters"][0]["value"] == 2023


def test_a_model_plans_what_rules_cannot(shop: Catalog) -> None:
    chain: JsonObject = {
        "start_node": {"route": "best"},
        "best": {
            "operation": "query_sales",
            "input": {
                "filters": [{"field": "year", "operator": "=", "value": "{{params.year}}"}],
                "aggregates": [{"field": "amount", "function": "sum"}],
                "group_by": ["category"],
            },
            "route": "end",
        },
        "end": {"completed": True, "vars": {"answer": "$.best.data[0].category"}},
    }
    unexplained = json.loads(workflow("2024"))
    unexplained["steps"][0]["ps"]["unexplained"] = ["lottery"]
    model = ScriptedModel([json.dumps(unexplained), json.dumps(chain)])
    with opened(shop, model=model) as semcache:
        first = semcache.run("Which categories won the lottery of 2024")
        second = semcache.run("Which categories won the lottery of 2023")
    assert (first.planned, second.tier) == (True, "template")
    best: Any = second.plan.to_dict()["best"]
    assert best["input"]["filters"][0]["value"] == 2023
    assert model.unused == []


# specs: A-17
@pytest.mark.parametrize("value", ["$.secret", "{{params.x}}", "../../x", "$$", "'; DROP TABLE x"])
@pytest.mark.parametrize("first", [True, False], ids=["planned", "cached"])
def test_a_value_reaches_the_operation_letter_for_letter(value: str, first: bool) -> None:
    seen: list[str] = []

    @operation(effect="read")
    def find_files(name: str) -> list[str]:
        """Find files by name."""
        seen.append(name)
        return [name]

    with SemCache.open(
        catalog=catalog_from(find_files), embedder=HashEmbedder(), clock=FakeClock()
    ) as semcache:
        if not first:
            semcache.run('Find files with name "report.txt"')
        answer = semcache.run(f'Find files with name "{value}"')
    assert seen[-1] == value
    assert answer.value == {"answer": [value]}
    assert answer.planned is first


# specs: A-17
@pytest.mark.parametrize("value", ["$.secret", "{{params.of}}", "../../x", "$.call"])
def test_a_given_value_reaches_the_operation_letter_for_letter(value: str) -> None:
    bench = Bench(OnePlan(plan(of="{{params.of}}")))
    for given_value in (value, "plain", value):
        bench.semcache.run("report the weekly sales figures", params={"of": given_value})
    assert [call["of"] for call in bench.calls] == [value, "plain", value]
    assert len(bench.planner.requests) == (1 if value != "$.call" else 2)


def test_a_value_has_the_type_that_the_operation_wants_from_the_first_run_on() -> None:
    bench = Bench(OnePlan(plan(of="{{params.of}}"), "of"))
    years: JsonObject = {"type": "object", "properties": {"of": {"type": "integer"}}}
    bench.semcache.catalog = Catalog([
        Operation("report", "Reports.", years, effect="read", call=bench.report)
    ])  # fmt: skip
    bench.semcache.cache.catalog = bench.semcache.catalog
    for year in ("2024", "2023"):
        bench.semcache.run(f"report of {year}")
    assert [call["of"] for call in bench.calls] == [2024, 2023]


def test_an_answer_tells_what_happened_as_json() -> None:
    bench = by_word()
    bench.semcache.run("monthly visitor report of Boston")
    answer = bench.semcache.run("monthly visitor report of Denver")
    said = answer.to_dict()
    assert json.loads(json.dumps(said)) == said
    assert (said["tier"], said["planned"], said["run"]) == (answer.tier, False, answer.run.id)
    assert (said["value"], said["text"]) == ({"answer": {"seen": 2}}, '{"seen":2}')
    assert [node.node for node in answer.nodes if node.operation] == ["call"]


def test_a_run_reports_every_phase_and_node_under_its_id() -> None:
    bench = by_word()
    answer = bench.semcache.run("report of Boston")
    phases = {e.phase for e in bench.observer.of(PhaseFinished) if e.run == answer.run.id}
    assert phases >= {"normalize", "plan", "store", "bind", "execute"}
    assert {e.run for e in bench.observer.of(NodeFinished)} == {answer.run.id}
    assert bench.observer.of(LookupFinished)[0].run == answer.run.id


# What cannot be answered ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "prompt", ["", "  ", None, 7, "a\0b", "a\ud800", "x" * 2**20], ids=lambda p: repr(p)[:9]
)
def test_a_prompt_that_cannot_be_used_is_refused_before_anything_happens(prompt: Any) -> None:
    bench = by_word()
    for call in (bench.semcache.run, bench.semcache.lookup, bench.semcache.normalize):
        with pytest.raises(InvalidPrompt):
            call(prompt)
    assert (bench.planner.requests, bench.calls) == ([], [])


@pytest.mark.parametrize("value", [float("nan"), {1}, "\ud800"])
def test_a_value_that_cannot_be_used_is_refused_before_anything_happens(value: Any) -> None:
    bench = by_word()
    with pytest.raises(InvalidParameter):
        bench.semcache.run("report of Boston", params={"of": value})
    with pytest.raises(InvalidInput):
        bench.semcache.run("report of Boston", tenant="")
    assert (bench.planner.requests, bench.calls) == ([], [])


def test_what_no_stage_gave_is_refused_before_anything_happens() -> None:
    bench = by_word()
    nothing: Any = None
    with pytest.raises(InvalidInput, match="planned is of type NoneType; expected what `create`"):
        bench.semcache.store("report of Boston", nothing)
    with pytest.raises(InvalidPrompt, match="a prompt must be text; found NoneType"):
        bench.semcache.create(nothing)
    assert (bench.planner.requests, bench.calls) == ([], [])


def test_a_prompt_that_is_too_long_for_the_rules_is_left_to_the_planner() -> None:
    bench = by_word(settings=Settings(max_prompt_chars=100_000))
    assert bench.semcache.run("x " * 20_000 + "of Boston").planned


# specs: D-10
def test_a_run_may_be_stricter_than_the_cache_but_not_laxer() -> None:
    bench = by_word(settings=Settings(threshold=0.5))
    bench.semcache.run("report of sales for ORD456")
    asked = "report of the sales for ORD789"
    assert bench.semcache.run(asked, threshold=1).tier == "planned"
    bench = by_word(settings=Settings(threshold=0.5))
    bench.semcache.run("report of sales for ORD456")
    assert bench.semcache.run(asked).tier == "semantic"
    with pytest.raises(InvalidSettings, match=r"threshold is 0\.4; expected 0\.5"):
        bench.semcache.run(asked, threshold=0.4)


def test_tenants_that_ask_the_same_at_once_are_each_planned_for() -> None:
    bench = by_word()
    tenants = [f"t{n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda t: bench.semcache.run("report of ORD456", tenant=t), tenants)
        )
    assert [answer.tier for answer in answers] == ["planned"] * 8
    assert len(bench.planner.requests) == 8


def test_what_cannot_be_done_is_neither_kept_nor_tried_again() -> None:
    bench = by_word()
    bench.planner.error = NotActionable("nobody sells moons")
    with pytest.raises(NotActionable, match="moons"):
        bench.semcache.run("buy the moon")
    assert (len(bench.planner.requests), bench.semcache.cache.entries()) == (1, ())


# specs: D-10
def test_a_final_error_task_of_a_model_is_not_kept(shop: Catalog) -> None:
    refusal = {"tasks": [{"id": "final", "input": {"error": "no ships here"}}]}
    model = ScriptedModel(["no idea"] * 3 + [json.dumps(refusal)])
    with opened(shop, model=model) as semcache:
        with pytest.raises(NotActionable, match="no ships here"):
            semcache.run("Sail around Cape Horn")
        assert (semcache.cache.entries(), model.unused) == ((), [])


def test_a_model_that_is_down_is_said_and_leaves_the_cache_working(shop: Catalog) -> None:
    model = ScriptedModel([ModelUnavailable("down")])
    with opened(shop, model=model) as semcache:
        semcache.run("Show me total sales in 2024 by category")
        with pytest.raises(ModelUnavailable):
            semcache.run("Sail around Cape Horn")
        assert semcache.run("Show me total sales in 2023 by category").tier == "template"


def test_a_plan_of_a_format_that_nobody_runs_is_said(shop: Catalog) -> None:
    bench = Bench(OnePlan({"steps": ["a"]}))
    with pytest.raises(InvalidPlan, match="no engine runs plans of the format 'document'"):
        bench.semcache.run("report it")


def test_no_planner_at_all_is_said() -> None:
    bench = by_word()
    bench.semcache.planners = ()
    with pytest.raises(PlanningError, match="there is no planner"):
        bench.semcache.run("report of Boston")


# Failures ────────────────────────────────────────────────────────────────────────────────────────


# specs: A-14
def test_a_plan_that_keeps_failing_is_made_afresh_then_suspended_and_healed_by_success() -> None:
    bench = by_word()
    bench.failure = LookupError("no such column")
    for _ in range(3):
        with pytest.raises(OperationFailed):
            bench.semcache.run("report of Boston")
    said = [request.failure for request in bench.planner.requests]
    assert said[0] == ""
    assert "no such column" in said[-1]
    with pytest.raises(PlanSuspended, match=r"failed 3 times.*no such column"):
        bench.semcache.run("report of Boston")
    assert len(bench.calls) == 3
    bench.clock.advance(5)
    bench.failure = None
    assert bench.semcache.run("report of Boston").planned
    assert not bench.semcache.run("report of Boston").planned


# specs: A-14
def test_one_failure_does_not_condemn_a_good_plan() -> None:
    bench = by_word()
    bench.semcache.run("monthly visitor report of Boston")
    bench.failure = LookupError("no such city")
    with pytest.raises(OperationFailed):
        bench.semcache.run("monthly visitor report of Atlantis")
    bench.failure = None
    assert not bench.semcache.run("monthly visitor report of Denver").planned


# specs: A-14
def test_failures_survive_a_restart(tmp_path: Path) -> None:
    for _ in range(3):
        with closing(DiskStore.open(tmp_path)) as store:
            bench = by_word(store=store)
            bench.failure = LookupError("broken")
            with pytest.raises(OperationFailed):
                bench.semcache.run("report of Boston")
    with closing(DiskStore.open(tmp_path)) as store, pytest.raises(PlanSuspended):
        by_word(store=store).semcache.run("report of Boston")


# Writes ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_semantic_hit_that_writes_is_planned_afresh_unless_the_caller_allows_it() -> None:
    bench = by_word(effect="write")
    bench.semcache.run("cancel the booking of Boston")
    assert bench.semcache.run("cancel the booking of Boston").tier == "template"
    ask = "please could you cancel the booking of Boston"
    allowed = bench.semcache.run(ask, allow_writes=True)
    assert (allowed.tier, allowed.planned) == ("semantic", False)
    afresh = bench.semcache.run(ask)
    assert afresh.planned
    assert isinstance(afresh.found, Miss)
    assert afresh.found.reason == "writes"


def test_settings_may_allow_writes_from_semantic_hits() -> None:
    bench = by_word(effect="write", settings=Settings(writes_from_semantic=True))
    bench.semcache.run("cancel the booking of Boston")
    assert bench.semcache.run("please cancel the booking of Boston").tier == "semantic"


def test_a_caller_may_forbid_writes() -> None:
    bench = by_word(effect="write")
    with pytest.raises(OperationRefused):
        bench.semcache.run("cancel the booking of Boston", allow_writes=False)
    assert bench.calls == []


# Many at once ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    return count_waiting_threads(monkeypatch)


def together(bench: Bench, prompts: list[str], waiting: Callable[[], int]) -> list[Any]:
    """Run all prompts at once: the planner answers when all of them are under way."""
    gate = threading.Event()
    bench.planner.gate = gate
    with ThreadPoolExecutor(len(prompts)) as pool:
        futures = [pool.submit(bench.semcache.run, prompt) for prompt in prompts]
        assert bench.planner.entered.wait(30)
        until(lambda: waiting() == len(prompts) - 1)
        gate.set()
        return [future.result(60) for future in futures]


# specs: D-8
def test_ten_requests_with_other_values_at_once_are_planned_once_and_each_gets_its_own(
    waiting: Callable[[], int],
) -> None:
    bench = by_word()
    prompts = [f"report of {year}" for year in range(2010, 2020)]
    answers = together(bench, prompts, waiting)
    assert len(bench.planner.requests) == 1
    inputs = [call_input(answer)["of"] for answer in answers]
    assert inputs == [str(year) for year in range(2010, 2020)]
    assert sorted(str(call["of"]) for call in bench.calls) == inputs


# Trouble with the cache ──────────────────────────────────────────────────────────────────────────


class BrokenStore(MemoryStore):
    """A store that can do nothing."""

    def _broken(self, *_: object, **__: object) -> Any:
        raise StoreUnavailable("the disk is full")

    put = get = find = remove = scan = pages = labelled = count = last_change = changes = _broken
    get_note = put_note = update_note = clear = _broken
    use = uses = room = lease = release = _broken


class BrokenEmbedder:
    """An embedder that has no weights."""

    fingerprint = "broken"

    def embed(self, texts: object) -> Any:
        raise EmbeddingError("no weights")


@pytest.mark.parametrize(
    ("parts", "part"),
    [
        (lambda: {"store": BrokenStore()}, "store"),
        (lambda: {"embedder": BrokenEmbedder()}, "embedder"),
    ],
    ids=["store", "embedder"],
)  # fmt: skip
def test_a_caller_with_a_planner_is_answered_whatever_the_cache_does(
    parts: Callable[[], dict[str, Any]], part: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = by_word(**parts())
    for city in ("Boston", "Denver", "Boston"):
        assert bench.semcache.run(f"show the report of {city}").value
    assert [call["of"] for call in bench.calls] == ["Boston", "Denver", "Boston"]
    assert {event.part for event in bench.observer.of(TierFailed)} == {part}
    warnings = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1


def test_the_five_operations_can_be_called_one_by_one(shop: Catalog) -> None:
    prompt = "Show me total sales in 2024 by category"
    with opened(shop) as semcache:
        schema = semcache.normalize(prompt)
        assert not semcache.lookup(prompt, schema=schema)
        planned = semcache.create(prompt, schema)
        assert semcache.store(prompt, planned, schema=schema)
        found = hit(semcache.lookup("Show me total sales in 2023 by category"))
        outcome = semcache.execute(found.plan)
        assert outcome.text == semcache.run("Show me total sales in 2023 by category").text


def test_a_plan_is_run_from_its_object_its_text_or_itself(shop: Catalog) -> None:
    plan: JsonObject = {
        "start_node": {"route": "end"},
        "end": {"vars": {"answer": "none"}, "completed": True},
    }
    with opened(shop) as semcache:
        texts = {semcache.execute(one).text for one in (plan, dumps(plan), decode(plan))}
        with pytest.raises(InvalidPlan, match="of type list; expected"):
            semcache.execute("[]")
    assert len(texts) == 1


@settings(max_examples=50)
@given(st.lists(st.from_regex(r"[a-z]{3,8}[0-9]{3,5}", fullmatch=True), min_size=1, max_size=5))
def test_every_run_calls_the_operation_with_its_own_value(codes: list[str]) -> None:
    bench = by_word(embedder=HashEmbedder(dim=8))
    for code in codes:
        bench.semcache.run(f"report of {code}")
    assert [call["of"] for call in bench.calls] == codes
