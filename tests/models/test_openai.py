import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from semcache import Settings
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    EmbeddingError,
    InvalidSettings,
    MissingExtra,
    ModelRejected,
    ModelUnavailable,
)
from semcache.models.openai import OpenAIEmbedder, OpenAIModel
from semcache.ports import Completion, Message
from semcache.testing.fakes import together
from semcache.wiring.models import open_model
from tests.conftest import OpenAIServer, Reply

KEY = "sk-secret-1234"
ASK = [Message("system", "You plan."), Message("user", "sales in 2024")]
AT_ONCE = {"Retry-After-Ms": "1"}


@pytest.fixture
def model(openai_server: OpenAIServer) -> Iterator[OpenAIModel]:
    model = OpenAIModel("gpt-x", api_key=KEY, base_url=openai_server.base_url, max_retries=2)
    yield model
    model.close()


@pytest.fixture
def embedder(openai_server: OpenAIServer) -> Iterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(
        api_key=KEY, base_url=openai_server.base_url, max_retries=0, batch_size=2
    )
    yield embedder
    embedder.close()


def test_a_model_answers_with_its_text_its_name_and_its_tokens(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.says("a plan")
    assert model.complete(ASK) == Completion("a plan", "scripted-1", 11, 7)
    request = openai_server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.messages == ["You plan.", "sales in 2024"]
    assert request.body["model"] == "gpt-x"
    assert request.body.keys() == {"model", "messages"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_temperature_and_arguments_are_sent_where_they_are_set(
    openai_server: OpenAIServer,
) -> None:
    settings = Settings.load(
        model="o",
        base_url=openai_server.base_url,
        environ={
            "SEMCACHE_TEMPERATURE": "0.5",
            "SEMCACHE_MODEL_ARGUMENTS": '{"reasoning_effort": "low"}',
        },
    )
    model = open_model(settings)
    assert model is not None
    openai_server.says("a plan")
    model.complete([*ASK, Message("assistant", "no")])
    body = openai_server.requests[0].body
    assert (body["temperature"], body["reasoning_effort"]) == (0.5, "low")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_an_overloaded_server_is_asked_again(
    status: int, openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.replies(Reply({"error": {"message": "later"}}, status=status, headers=AT_ONCE))
    openai_server.says("a plan")
    assert model.complete(ASK).text == "a plan"
    assert len(openai_server.requests) == 2


def test_the_delay_that_a_server_asks_for_is_kept(
    openai_server: OpenAIServer,
    model: OpenAIModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(delay: float) -> None:
        slept.append(delay)

    monkeypatch.setattr("anyio.sleep", sleep)
    openai_server.replies(Reply({}, status=429, headers={"Retry-After": "7"}))
    openai_server.says("a plan")
    model.complete(ASK)
    assert slept == [7]


def test_a_server_that_stays_overloaded_is_unavailable(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.replies(*[Reply({}, status=503, headers=AT_ONCE)] * 3)
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1.*503"):
        model.complete(ASK)
    assert openai_server.unused == 0


def test_a_dropped_connection_is_tried_again(
    openai_server: OpenAIServer,
    model: OpenAIModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    openai_server.replies(Reply(instead="drop"))
    openai_server.says("a plan")
    assert model.complete(ASK).text == "a plan"


def test_a_server_that_hangs_is_unavailable(openai_server: OpenAIServer) -> None:
    model = OpenAIModel("m", base_url=openai_server.base_url, timeout_s=0.05, max_retries=0)
    openai_server.replies(Reply(instead="hang"))
    with pytest.raises(ModelUnavailable, match="timed out"):
        model.complete(ASK)
    model.close()


@pytest.mark.parametrize(
    "answer", [{"instead": "drip"}, {"status": 503, "headers": {"Retry-After": "60"}}]
)
def test_an_answer_that_drips_and_later_tries_end_at_the_deadline_of_the_call(
    answer: dict[str, Any], openai_server: OpenAIServer
) -> None:
    model = OpenAIModel("m", base_url=openai_server.base_url, timeout_s=0.3)
    openai_server.replies(*[Reply({}, **answer)] * 4)
    with pytest.raises(ModelUnavailable, match="timed out: no whole answer") as caught:
        model.complete(ASK)
    assert caught.value.code == "timeout"
    model.close()


def test_a_server_that_is_not_there_is_unavailable() -> None:
    model = OpenAIModel("m", base_url="http://127.0.0.1:1/v1", max_retries=0)
    with pytest.raises(ModelUnavailable, match="Connection error"):
        model.complete(ASK)
    model.close()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "no such model"}),
        (401, {"message": "bad key"}),
        (404, {"message": "not found"}),
        (429, {"message": "pay first", "code": "insufficient_quota"}),
    ],
)
def test_what_no_other_try_can_mend_is_rejected(
    status: int,
    error: dict[str, str],
    openai_server: OpenAIServer,
    model: OpenAIModel,
) -> None:
    openai_server.replies(*[Reply({"error": dict(error)}, status=status, headers=AT_ONCE)] * 3)
    with pytest.raises(ModelRejected, match=error["message"]):
        model.complete(ASK)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [',
        b"<html>hello</html>",
        b"",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": NaN}}]}',
    ],
)
def test_an_answer_that_is_not_the_protocol_is_unavailable(
    body: bytes, openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.replies(Reply(body))
    with pytest.raises(ModelUnavailable, match="gpt-x"):
        model.complete(ASK)


def test_an_answer_without_usage_or_name_is_enough(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.replies(Reply({"choices": [{"message": {"content": "a plan"}}]}))
    assert model.complete(ASK) == Completion("a plan")


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": None, "refusal": "I will not"}},
        {"message": {"content": '{"start_'}, "finish_reason": "length"},
        {"message": {"content": ""}, "finish_reason": "content_filter"},
    ],
)
def test_a_refusal_or_half_an_answer_is_not_passed_on(
    choice: JsonObject,
    openai_server: OpenAIServer,
    model: OpenAIModel,
) -> None:
    openai_server.replies(Reply({"choices": [choice]}))
    with pytest.raises(ModelRejected, match=r"refuses|cut off"):
        model.complete(ASK)


def test_the_key_is_neither_shown_nor_repeated_by_errors(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    address = openai_server.base_url.replace("http://", "http://me:pass@")
    with_password = OpenAIModel("m", api_key=KEY, base_url=address + "?token=t")
    for shown in (repr(model), model.fingerprint, repr(with_password), with_password.fingerprint):
        assert not any(secret in shown for secret in (KEY, "pass", "token"))
    openai_server.replies(Reply({"error": {"message": f"bad key {KEY}"}}, status=401))
    with pytest.raises(ModelRejected, match="bad key <redacted>") as caught:
        model.complete(ASK)
    assert KEY not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_openai_itself_is_not_asked_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ambient")
    with pytest.raises(ModelRejected, match=r"no API key for 'https://api\.openai"):
        OpenAIModel("gpt-x").complete(ASK)


def test_the_environment_does_not_redirect_a_model(
    openai_server: OpenAIServer, model: OpenAIModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ambient")
    openai_server.says("a plan")
    model.complete(ASK)
    assert openai_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAIModel(" "),
        lambda: OpenAIModel("m", base_url="localhost:8000"),
        lambda: OpenAIModel("m", base_url="file:///etc/passwd"),
        lambda: OpenAIModel("m", timeout_s=0),
        lambda: OpenAIModel("m", max_retries=-1),
        lambda: OpenAIModel("m", arguments={"model": "n"}),
        lambda: OpenAIModel("m", arguments={"x": math.nan}),
        lambda: OpenAIEmbedder(batch_size=0),
        lambda: OpenAIEmbedder(memo=-1),
    ],
)
def test_settings_out_of_range_are_named(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidSettings, match="expected"):
        make()


def test_models_that_may_answer_differently_have_different_fingerprints() -> None:
    names = {
        OpenAIModel("a").fingerprint,
        OpenAIModel("b").fingerprint,
        OpenAIModel("a", temperature=1).fingerprint,
        OpenAIModel("a", arguments={"seed": 1}).fingerprint,
        OpenAIModel("a", base_url="http://localhost:8000/v1").fingerprint,
        OpenAIEmbedder("a").fingerprint,
        OpenAIEmbedder("a", dimensions=8).fingerprint,
    }
    assert len(names) == 7


def test_eight_threads_share_a_model(openai_server: OpenAIServer, model: OpenAIModel) -> None:
    openai_server.answers(lambda request: request.messages[-1].upper())
    said = together(8, lambda i: model.complete([Message("user", f"prompt {i}")]).text)
    assert said == [f"PROMPT {i}" for i in range(8)]


def test_embeddings_are_unit_rows_in_the_order_of_the_texts(
    openai_server: OpenAIServer, embedder: OpenAIEmbedder
) -> None:
    together = embedder.embed(["a", "b", "c", "a"])
    assert together.shape == (4, 8)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    assert np.array_equal(together[0], together[3])
    assert [request.body["input"] for request in openai_server.requests] == [["a", "b"], ["c"]]
    alone = OpenAIEmbedder(base_url=openai_server.base_url)
    assert np.array_equal(alone.embed(["b"])[0], together[1])
    alone.close()


def test_a_text_is_embedded_once(openai_server: OpenAIServer, embedder: OpenAIEmbedder) -> None:
    first = embedder.embed(["a"])
    assert np.array_equal(embedder.embed(["a"]), first)
    assert len(openai_server.requests) == 1


def test_no_texts_ask_nobody(openai_server: OpenAIServer, embedder: OpenAIEmbedder) -> None:
    assert len(embedder.embed([])) == 0
    assert openai_server.requests == []


def test_the_length_of_vectors_is_passed_on(openai_server: OpenAIServer) -> None:
    embedder = OpenAIEmbedder(base_url=openai_server.base_url, dimensions=8)
    embedder.embed(["a"])
    assert openai_server.requests[0].body["dimensions"] == 8
    embedder.close()


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 1, "embedding": [1.0]}],
        [{"index": 0, "embedding": [0.0, 0.0]}],
        [{"index": 0, "embedding": ["a"]}],
        [{"index": 0, "embedding": []}],
        [{"index": 0, "embedding": [1e300]}],
        "none",
    ],
)
def test_embeddings_that_cannot_be_used_are_an_error(
    data: Json,
    openai_server: OpenAIServer,
    embedder: OpenAIEmbedder,
) -> None:
    openai_server.replies(Reply({"data": data}))
    with pytest.raises(EmbeddingError, match="text-embedding-3-small"):
        embedder.embed(["a"])


def test_vectors_of_several_lengths_are_an_error(
    openai_server: OpenAIServer, embedder: OpenAIEmbedder
) -> None:
    openai_server.replies(
        Reply({"data": [{"index": i, "embedding": [1.0]} for i in range(2)]}),
        Reply({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}),
    )
    with pytest.raises(EmbeddingError, match="several lengths"):
        embedder.embed(["a", "b", "c"])


def test_a_server_that_fails_is_an_embedding_error(
    openai_server: OpenAIServer, embedder: OpenAIEmbedder
) -> None:
    openai_server.replies(Reply({}, status=500))
    with pytest.raises(EmbeddingError, match="cannot embed") as caught:
        embedder.embed(["a"])
    assert isinstance(caught.value.__cause__, ModelUnavailable)


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"semcache-plans\[openai\]"):
        OpenAIModel("gpt-4o-mini", api_key="k")
