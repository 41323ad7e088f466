"""The REST door, over loopback by a real client."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import httpx
import jsonschema
import pytest

from semcache import PlanCache, SemCache, catalog_from
from semcache.errors import StoreUnavailable, WeightsUnavailable
from semcache.server.calls import Calls
from semcache.server.pools import SHARE
from semcache.telemetry.prometheus import PrometheusCounters
from semcache.testing import HashEmbedder
from tests.server.conftest import count_visits
from tests.server.rest.conftest import HOLDERS, Door

GIVEN = {"prompt": "yearly visits to Bergen", "params": {"town": "Bergen"}}
PLAN = [{"name": "refund", "arguments": {"order": "A-17", "reason": "late"}}]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "refund",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "reason": {"type": "string"}},
            },
        },
    }
]


@pytest.fixture
def bare(serve: Callable[..., Door]) -> Door:
    """A door to a cache without operations, that others plan for."""
    return serve(Calls(PlanCache.open(embedder=HashEmbedder())))


def posted(client: httpx.Client, call: str, /, **body: Any) -> Any:
    reply = client.post(f"/v1/{call}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_plan_that_one_service_stores_another_gets_with_its_own_values(bare: Door) -> None:
    missed = posted(bare(), "lookup", prompt="refund order A-17, it came late")
    assert (missed["hit"], missed["reason"]) == (False, "empty")
    stored = posted(bare(), "store", prompt="refund order A-17, it came late", plan=PLAN)
    assert stored["stored"]
    found = posted(bare(), "lookup", prompt="refund order B-2, it came late")
    assert found["plan"][0]["arguments"] == {"order": "B-2", "reason": "late"}
    assert posted(bare(), "feedback", found=found["id"], right=False)["outcome"] == "removed"
    assert not posted(bare(), "lookup", prompt="refund order B-2, it came late")["hit"]


def test_tools_of_a_call_stand_in_place_of_a_catalog(bare: Door) -> None:
    prompt = "refund order A-17, it came late"
    assert posted(bare(), "store", prompt=prompt, plan=PLAN, tools=TOOLS)["stored"]
    assert posted(bare(), "lookup", prompt=prompt, tools=TOOLS)["hit"]
    other = [{**TOOLS[0], "function": {**TOOLS[0]["function"], "name": "repay"}}]
    assert posted(bare(), "lookup", prompt=prompt, tools=other)["reason"] == "catalog"


def test_plans_are_removed_by_tag_and_a_call_that_names_none_is_refused(bare: Door) -> None:
    posted(bare(), "store", prompt="refund order A-17", plan=PLAN, tags=["v1"])
    assert posted(bare(), "invalidate", tag="v1") == {"removed": 1, "pending": ""}
    assert bare().post("/v1/invalidate", json={}).json()["title"] == "InvalidInput"


def test_what_plans_cost_tells_what_hits_saved(bare: Door) -> None:
    cost = {"seconds": 2.5, "prompt_tokens": 900, "completion_tokens": 100}
    posted(bare(), "store", prompt="refund order A-17", plan=PLAN, **cost)
    for order in ("B-2", "C-3"):
        assert posted(bare(), "lookup", prompt=f"refund order {order}")["hit"]
    stats = bare().get("/v1/stats").json()
    assert (stats["hit_rate"], stats["hits"]) == (1.0, {"template": 2})
    assert stats["saved"] == {
        "plans": 2, "prompt_tokens": 1800, "completion_tokens": 200, "seconds": 5.0,
    }  # fmt: skip


def test_a_prompt_is_answered_and_what_was_found_is_shown_and_judged(door: Door) -> None:
    answer = posted(door(), "ask", **GIVEN)
    assert (answer["value"], answer["tier"]) == ({"answer": 6}, "template")
    newest = door().get("/v1/recent").json()[0]
    assert (newest["id"], newest["prompt"], newest["hit"]) == (answer["id"], GIVEN["prompt"], True)
    one = door().get(f"/v1/recent/{answer['id']}").json()
    assert "HIT template" in one["explanation"]
    assert one["right"] is None
    posted(door(), "feedback", found=answer["id"], right=True)
    assert door().get("/v1/recent").json()[0]["right"] is True


def test_a_plan_that_only_its_owner_can_run_is_told_so_when_asked(door: Door) -> None:
    prompt = "refund order A-17, it came late"
    posted(door(), "store", prompt=prompt, plan=PLAN)
    reply = door().post("/v1/ask", json={"prompt": prompt})
    assert (reply.status_code, reply.json()["title"]) == (422, "InvalidPlan")


def test_a_run_that_asks_a_person_goes_on_with_the_answer(serve: Callable[..., Door]) -> None:
    with SemCache.open(catalog=catalog_from(count_visits), embedder=HashEmbedder()) as semcache:
        plan = {
            "start_node": {"route": "which"},
            "which": {
                "operation": "ask_user",
                "input": {"topic": "town", "question": "Which town?"},
                "route": "count",
            },
            "count": {
                "operation": "count_visits",
                "input": {"town": "$.which"},
                "route": "end",
            },
            "end": {"completed": True, "vars": {"answer": "$.count"}},
        }
        assert semcache.cache.store("count visits of a town", plan, tenant="acme")
        client = serve(Calls(semcache))()
        needs = posted(client, "ask", prompt="count visits of a town")["needs"]
        answers = {needs["questions"][0]["topic"]: "Oslo"}
        answer = posted(client, "answer", token=needs["token"], answers=answers)
        assert answer["value"] == {"answer": 4}


def test_a_what_if_is_neither_counted_nor_kept(door: Door) -> None:
    before = door().get("/v1/stats").json()["lookups"]
    seen = posted(door("reader"), "lookup", **GIVEN, what_if=True)
    assert (seen["hit"], seen["id"]) == (True, None)
    assert "HIT template" in seen["explanation"]
    assert door().get("/v1/stats").json()["lookups"] == before
    assert door().get("/v1/recent").json() == []
    assert "tier template" in door("reader").post("/v1/explain", json=GIVEN).text


def test_plans_that_differ_only_in_values_are_one_group(bare: Door) -> None:
    for number, words in enumerate(("refund order", "give the money back for order")):
        posted(bare(), "store", prompt=f"{words} A-{number}", plan=[_call(f"A-{number}")])
    posted(bare(), "store", prompt="cancel order A-9", plan=[{**_call("A-9"), "name": "cancel"}])
    large, small = bare().get("/v1/groups").json()
    assert (large["entries"], small["entries"]) == (2, 1)
    assert bare().get("/v1/groups", params={"count": 1}).json() == [large]
    assert {e["prompt"] for e in large["examples"]} == {
        "refund order A-0", "give the money back for order A-1",
    }  # fmt: skip
    assert large["plan"][0]["arguments"]["order"].startswith("<")


def _call(order: str) -> dict[str, Any]:
    return {"name": "refund", "arguments": {"order": order}}


def test_nobody_is_served_without_a_token_that_is_known(door: Door) -> None:
    for header in ("", "Bearer nobody-0123456789012", "Basic acme-token-0123456789"):
        headers = {"Authorization": header} if header else {}
        for method, path in (("GET", "stats"), ("POST", "lookup"), ("GET", "recent/x")):
            reply = door("").request(method, f"/v1/{path}", json=GIVEN, headers=headers)
            assert (reply.status_code, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "acme" not in reply.text


def test_head_tells_what_get_would_without_the_body(door: Door) -> None:
    for path in ("/", "/health", "/v1/stats"):
        head, got = door().head(path), door().get(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers["Content-Length"] == str(len(got.content))
    assert door("").head("/v1/stats").status_code == 401
    assert door().head("/v1/lookup").status_code == 405


def test_a_token_sees_nothing_of_another_tenant(door: Door) -> None:
    found = posted(door(), "lookup", **GIVEN)
    posted(door(), "store", prompt="secret plans of acme", plan=[{"name": "x"}], tags=["t"])
    theirs = door("initech")
    assert theirs.get("/v1/recent").json() == []
    assert theirs.get(f"/v1/recent/{found['id']}").status_code == 404
    judged = theirs.post("/v1/feedback", json={"found": found["id"], "right": False})
    assert (judged.status_code, judged.json()["title"]) == (404, "UnknownLookup")
    assert "acme" not in theirs.get("/v1/groups").text
    assert theirs.get("/v1/stats").json()["lookups"] == 0
    assert posted(theirs, "invalidate", tag="t")["removed"] == 0
    assert posted(theirs, "lookup", prompt="secret plans of acme")["hit"] is False
    named = theirs.post("/v1/lookup", json={**GIVEN, "tenant": "acme"})
    assert named.status_code == 422


def test_a_right_that_a_token_lacks_is_told(door: Door) -> None:
    reader = door("reader")
    assert reader.get("/v1/me").json() == {
        "tenant": "acme", "rights": ["read"], "operations": True,
    }  # fmt: skip
    found = posted(reader, "lookup", **GIVEN)
    refused = {
        "ask": GIVEN,
        "store": {**GIVEN, "plan": PLAN},
        "invalidate": {"tag": "t"},
        "feedback": {"found": found["id"], "right": False},
    }
    for call, body in refused.items():
        reply = reader.post(f"/v1/{call}", json=body)
        assert (reply.status_code, reply.json()["title"]) == (403, "NotAllowed")
    assert reader.get("/metrics").status_code in {403, 404}
    assert door("metrics").get("/v1/stats").status_code == 403


def test_a_cache_without_operations_answers_no_prompts(bare: Door) -> None:
    reply = bare().post("/v1/ask", json={"prompt": "visits"})
    assert (reply.status_code, reply.json()["title"]) == (404, "UnknownTool")
    assert bare().get("/v1/me").json()["operations"] is False
    assert "/v1/ask" not in bare().get("/openapi.json").json()["paths"]


def test_counters_are_read_by_a_token_with_that_right_alone(serve: Callable[..., Door]) -> None:
    with (
        PrometheusCounters() as counters,
        PlanCache.open(embedder=HashEmbedder(), observer=counters) as cache,
    ):
        door = serve(Calls(cache), metrics=counters.text)
        posted(door(), "lookup", prompt="refund order A-17")
        assert door().get("/metrics").status_code == 403
        text = door("metrics").get("/metrics").text
    assert 'result="miss"' in text
    assert "A-17" not in text


def test_slow_misses_of_a_tenant_delay_neither_its_hits_nor_its_lookups(
    semcache: SemCache, serve: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, goes_on, run = threading.Barrier(SHARE + 1), threading.Event(), SemCache.run

    def planned(self: SemCache, prompt: str, **given: Any) -> Any:
        if prompt.startswith("count"):
            slow.wait(60)
            assert goes_on.wait(60)
        return run(self, prompt, **given)

    monkeypatch.setattr(SemCache, "run", planned)
    door = serve(Calls(semcache))
    body = {"prompt": "count the visits to town 'Oslo'"}
    with ThreadPoolExecutor(SHARE) as pool:
        missing = [pool.submit(door().post, "/v1/ask", json=body) for _ in range(SHARE)]
        slow.wait(60)
        assert posted(door(), "ask", **GIVEN)["tier"] == "template"
        assert posted(door(), "lookup", **GIVEN)["hit"]
        assert door().get("/health").json() == {"status": "ok"}
        assert not any(one.done() for one in missing)
        goes_on.set()
        assert {one.result(60).json()["value"]["answer"] for one in missing} == {4}


def test_a_request_past_its_deadline_is_told_and_keeps_its_place(
    semcache: SemCache, serve: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, ended = threading.Event(), threading.Event()

    def stuck(self: SemCache, *_: Any, **__: Any) -> Any:
        assert goes_on.wait(60)
        ended.set()
        raise AssertionError("nobody waits for this")

    monkeypatch.setattr(SemCache, "run", stuck)
    door = serve(Calls(semcache), deadline_s=0.2)
    reply = door().post("/v1/ask", json=GIVEN)
    assert (reply.status_code, reply.json()["title"]) == (504, "DeadlineExceeded")
    assert not ended.is_set()
    goes_on.set()
    assert ended.wait(60)
    assert door().get("/health").status_code == 200


def test_what_waited_past_its_deadline_is_never_begun(
    semcache: SemCache, serve: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.server.pools.SHARE", 1)
    goes_on, begun, run = threading.Event(), [], SemCache.run

    def slow(self: SemCache, prompt: str, **given: Any) -> Any:
        begun.append(prompt)
        assert goes_on.wait(60)
        return run(self, prompt, **given)

    monkeypatch.setattr(SemCache, "run", slow)
    door = serve(Calls(semcache), deadline_s=0.5)
    for town in ("Bergen", "Oslo"):
        reply = door().post(
            "/v1/ask", json={"prompt": f"yearly visits to {town}", "params": {"town": town}}
        )
        assert reply.status_code == 504
    goes_on.set()
    while door().post("/v1/ask", json=GIVEN).status_code != 200:
        pass
    assert "yearly visits to Oslo" not in begun


def test_calls_beyond_those_that_may_wait_are_refused(
    semcache: SemCache, serve: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcache.server.pools.SHARE", 1)
    monkeypatch.setattr("semcache.server.pools.WAITING", 1)
    goes_on, explain = threading.Event(), Calls.call

    def slow(self: Calls, name: str, *given: Any, **more: Any) -> Any:
        assert name != "explain" or goes_on.wait(60)
        return explain(self, name, *given, **more)

    monkeypatch.setattr(Calls, "call", slow)
    door = serve(Calls(semcache))
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(door().post, "/v1/explain", json=GIVEN) for _ in range(3)]
        refused = next(as_completed(asked)).result(60)
        assert (refused.status_code, refused.json()["title"]) == (429, "Busy")
        assert refused.headers["Retry-After"] == "1"
        assert door("initech").get("/v1/stats").status_code == 200
        goes_on.set()
        assert sorted(one.result(60).status_code for one in asked) == [200, 200, 429]


def test_ready_means_that_store_and_embedder_answer(serve: Callable[..., Door]) -> None:
    loads = threading.Event()

    class SlowEmbedder(HashEmbedder):
        def embed(self, texts: Any) -> Any:
            assert loads.wait(60)
            return super().embed(texts)

    client = serve(Calls(PlanCache.open(embedder=SlowEmbedder())))("")
    reply = client.get("/ready")
    assert (reply.status_code, reply.json()) == (
        503, {"ready": False, "store": "ok", "embedder": "loading"},
    )  # fmt: skip
    assert client.get("/health").status_code == 200
    loads.set()
    while (reply := client.get("/ready")).status_code != 200:
        assert reply.json()["embedder"] == "loading"
    assert reply.json() == {"ready": True, "store": "ok", "embedder": "ok"}


def test_an_embedder_that_failed_is_tried_again_when_somebody_asks(
    serve: Callable[..., Door],
) -> None:
    mended = threading.Event()

    class BrokenEmbedder(HashEmbedder):
        def embed(self, texts: Any) -> Any:
            if not mended.is_set():
                raise WeightsUnavailable("the weights are not there")
            return super().embed(texts)

    client = serve(Calls(PlanCache.open(embedder=BrokenEmbedder())))("")
    while client.get("/ready").json()["embedder"] == "loading":
        pass
    assert client.get("/ready").json() == {"ready": False, "store": "ok", "embedder": "failing"}
    mended.set()
    while client.get("/ready").status_code != 200:
        pass


def test_a_store_that_does_not_answer_is_not_ready(
    serve: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stats(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("locked by password=hunter2")

    monkeypatch.setattr(PlanCache, "stats", stats)
    reply = serve(Calls(PlanCache.open(embedder=HashEmbedder())))("").get("/ready")
    assert (reply.status_code, reply.json()["store"]) == (503, "failing")
    assert "hunter2" not in reply.text


def test_what_is_answered_is_what_the_openapi_document_says(door: Door) -> None:
    document = door("").get("/openapi.json").json()
    answer = posted(door(), "ask", **GIVEN)
    replies = {
        "/health": door().get("/health"),
        "/v1/lookup": door().post("/v1/lookup", json=GIVEN),
        "/v1/store": door().post("/v1/store", json={"prompt": "refund it", "plan": PLAN}),
        "/v1/ask": door().post("/v1/ask", json=GIVEN),
        "/v1/invalidate": door().post("/v1/invalidate", json={"tag": "t"}),
        "/v1/me": door().get("/v1/me"),
        "/v1/stats": door().get("/v1/stats"),
        "/v1/recent": door().get("/v1/recent"),
        "/v1/groups": door().get("/v1/groups"),
        "/v1/feedback": door().post("/v1/feedback", json={"found": answer["id"], "right": True}),
    }
    for path, reply in replies.items():
        assert reply.status_code == 200, reply.text
        (operation,) = document["paths"][path].values()
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(reply.json(), {**schema, "components": document["components"]})
    lookup = document["paths"]["/v1/lookup"]["post"]
    assert "application/problem+json" in lookup["responses"]["default"]["content"]
    assert lookup["security"] == [{"HTTPBearer": []}]
    assert len(HOLDERS) == 4
